//! What pods need of services, and what services are told of pods.

use std::collections::BTreeMap;

use super::paths::PodDir;
use crate::error::Result;
use crate::model::ids::{Namespace, PodName};
use crate::runtime::{ServiceAddress, ServiceSpec};

/// The services of this machine.
pub trait ServiceTable: Send + Sync {
    /// The namespaces that have services.
    fn namespaces(&self) -> Vec<Namespace>;

    /// The services of a namespace, by name.
    fn addresses(&self, namespace: &Namespace) -> Vec<ServiceAddress>;

    /// Makes a service answer at its address, or changes what it selects.
    fn apply(&self, service: &ServiceSpec) -> Result<ServiceAddress>;

    /// Ends a service. Nothing happens if it is unknown.
    fn remove(&self, namespace: &Namespace, name: &str) -> Result<()>;

    /// Tells which pods a namespace has now. Whether one takes connections is said by its `ready` file.
    fn pods_changed(&self, namespace: &Namespace, pods: &[PodEndpoint]);
}

/// A pod that services may lead to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodEndpoint {
    /// Its name.
    pub name: PodName,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its folder.
    pub dir: PodDir,
}
