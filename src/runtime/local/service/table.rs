//! What pods need of services, and what services learn of pods.

use crate::error::Result;
use crate::model::ids::{Namespace, PodName};
use crate::model::pod::PodId;
use crate::runtime::local::service::{PodEndpoint, Services};
use crate::runtime::{ServiceAddress, ServiceSpec};

/// The services of this machine.
pub trait ServiceTable: Send + Sync {
    /// The namespaces that have services.
    fn namespaces(&self) -> Result<Vec<Namespace>>;

    /// One service.
    fn get(&self, namespace: &Namespace, name: &str) -> Result<Option<ServiceAddress>>;

    /// The services of a namespace, by name.
    fn list(&self, namespace: &Namespace) -> Result<Vec<ServiceAddress>>;

    /// The same without asking any of them how it is.
    fn addresses(&self, namespace: &Namespace) -> Result<Vec<ServiceAddress>>;

    /// Makes a service answer at its address, or changes what it selects.
    fn apply(&self, service: &ServiceSpec) -> Result<ServiceAddress>;

    /// A service as it was asked for last; nothing, if it is unknown or that cannot be read any more.
    fn spec(&self, namespace: &Namespace, name: &str) -> Result<Option<ServiceSpec>>;

    /// The pods that a service leads to, as they were last told, sorted.
    fn selected(&self, service: &ServiceSpec) -> Vec<PodName>;

    /// Ends a service. Nothing happens if it is unknown.
    fn remove(&self, namespace: &Namespace, name: &str) -> Result<()>;

    /// Tells which pods a namespace has now. Whether one takes connections is said by its `ready` file.
    fn pods_changed(&self, namespace: &Namespace, pods: Vec<PodEndpoint>) -> Result<()>;

    /// Tells that one pod has come, gone, or changed hands. `now` says what it is by then, if services may lead to it: of
    /// two that tell of a pod at once, the second says what is so.
    fn pod_changed(&self, pod: &PodId, now: &dyn Fn() -> Option<PodEndpoint>) -> Result<()>;
}

impl ServiceTable for Services {
    fn namespaces(&self) -> Result<Vec<Namespace>> {
        Services::namespaces(self)
    }

    fn get(&self, namespace: &Namespace, name: &str) -> Result<Option<ServiceAddress>> {
        Services::get(self, namespace, name)
    }

    fn list(&self, namespace: &Namespace) -> Result<Vec<ServiceAddress>> {
        Services::list(self, namespace)
    }

    fn addresses(&self, namespace: &Namespace) -> Result<Vec<ServiceAddress>> {
        Services::addresses(self, namespace)
    }

    fn apply(&self, service: &ServiceSpec) -> Result<ServiceAddress> {
        Services::apply(self, service)
    }

    fn spec(&self, namespace: &Namespace, name: &str) -> Result<Option<ServiceSpec>> {
        Services::spec(self, namespace, name)
    }

    fn selected(&self, service: &ServiceSpec) -> Vec<PodName> {
        Services::selected(self, service)
    }

    fn remove(&self, namespace: &Namespace, name: &str) -> Result<()> {
        Services::remove(self, namespace, name)
    }

    fn pods_changed(&self, namespace: &Namespace, pods: Vec<PodEndpoint>) -> Result<()> {
        Services::pods_changed(self, namespace, pods)
    }

    fn pod_changed(&self, pod: &PodId, now: &dyn Fn() -> Option<PodEndpoint>) -> Result<()> {
        Services::pod_changed(self, pod, now)
    }
}
