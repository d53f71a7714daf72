//! What services learn of pods, and to which they lead.

use crate::error::Result;
use crate::model::ids::Namespace;
use crate::model::pod::{ObservedPod, PodId};
use crate::runtime::ServiceSpec;
use crate::runtime::local::runtime::Inner;

impl Inner {
    /// Tells all services which pods there are.
    pub(crate) fn tell_all_services(&self) -> Result<()> {
        let mut namespaces = self.table().namespaces();
        namespaces.extend(self.options.services.namespaces()?);
        for namespace in &namespaces {
            let pods = self.table().endpoints(namespace);
            warn_untold(namespace, self.options.services.pods_changed(namespace, pods));
        }
        Ok(())
    }

    /// Tells the services that may lead to a pod what has become of it.
    pub(crate) fn tell_services(&self, id: &PodId) {
        let told = self.options.services.pod_changed(id, &|| self.table().endpoint(id));
        warn_untold(&id.namespace, told);
    }

    /// The pods that a service leads to, sorted by name.
    pub(crate) fn observe_selected(&self, service: &ServiceSpec) -> Vec<ObservedPod> {
        let names = self.options.services.selected(service);
        let id = |name| PodId { namespace: service.namespace.clone(), name };
        let table = self.table();
        names.into_iter().filter_map(|name| table.observe_pod(&id(name))).collect()
    }
}

/// The reconciler applies services again before long; until then they lead where they led.
fn warn_untold(namespace: &Namespace, told: Result<()>) {
    if let Err(failure) = told {
        tracing::warn!(%namespace, failure = failure.one_line(), "services not told of their pods");
    }
}
