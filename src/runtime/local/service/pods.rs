//! The pods of a namespace, as services see them.

use std::collections::BTreeMap;

use super::PodEndpoint;
use super::by_label::ByLabel;
use crate::model::ids::PodName;
use crate::runtime::ServiceSpec;

/// Pods by name.
#[derive(Debug, Default)]
pub(super) struct Pods {
    by_name: BTreeMap<PodName, PodEndpoint>,
    by_label: ByLabel<PodName>,
}

impl Pods {
    /// Adds a pod, or exchanges it; what it was before.
    pub(super) fn insert(&mut self, pod: PodEndpoint) -> Option<PodEndpoint> {
        let before = self.remove(&pod.name);
        self.by_label.add(&*pod.labels, &pod.name);
        self.by_name.insert(pod.name.clone(), pod);
        before
    }

    /// Forgets a pod; what it was.
    pub(super) fn remove(&mut self, name: &PodName) -> Option<PodEndpoint> {
        let pod = self.by_name.remove(name)?;
        self.by_label.remove(&*pod.labels, name);
        Some(pod)
    }

    /// The pods that a service may select: those with the first label of a selector.
    pub(super) fn candidates(&self, spec: &ServiceSpec) -> impl Iterator<Item = &PodEndpoint> {
        let names = self.by_label.with_any(spec.selectors().flat_map(|selector| selector.iter().take(1)));
        names.into_iter().filter_map(|name| self.by_name.get(name))
    }
}

impl FromIterator<PodEndpoint> for Pods {
    fn from_iter<T: IntoIterator<Item = PodEndpoint>>(all: T) -> Self {
        let mut pods = Self::default();
        all.into_iter().for_each(|pod| drop(pods.insert(pod)));
        pods
    }
}
