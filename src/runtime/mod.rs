//! The runtime's port: where pods live.
//!
//! Everything here is idempotent by name, returns soon, and reports what becomes of it through [`Runtime::observe`]
//! and the hints of [`Runtime::changes`].

pub mod exec;
pub mod local;
pub mod logs;
pub mod replicas;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use self::exec::{ExecCommand, ExecSession};
use self::logs::{LogQuery, LogStream};
use crate::error::Result;
use crate::model::ids::{ConfigKey, Namespace, RepositoryName};
pub use crate::model::pod::references::Objects;
use crate::model::pod::{ObservedPod, Pod, PodId, PodOwner, PodResult, ReplicaSet};
use crate::model::selector::selects;
use crate::model::time::Timestamp;
use crate::model::wanted::Backend;

/// Where pods live. A runtime is opened for one life of the store: what another one has started is a stranger to it.
#[async_trait]
pub trait Runtime: Send + Sync {
    /// Makes the images of a pod runnable: installed, verified, built. Fails as `Waiting` while that is under way
    /// (a change is announced when it ends), as `Stalled` with the builder's last lines if it cannot be done.
    async fn prepare(&self, pod: &Pod) -> Result<()>;

    /// Forgets that images of a pod could not be made runnable, so that they are tried again.
    async fn forget_failures(&self, pod: &Pod) -> Result<()>;

    /// Brings a version of a deployment config from `living` pods to so many: which of them start and end is the runtime's
    /// to choose, and it keeps the last few that ended, for their logs. If not so many live any more, nothing happens,
    /// because it was decided on something else: by a daemon that another has taken over from since, or before a pod died.
    /// One that keeps ending is started again after a growing pause, and many are started in several goes; the result is
    /// when to ask again because of all that. `objects` is as for [`Runtime::start_pod`].
    async fn scale(&self, set: &ReplicaSet, living: u32, objects: &Objects) -> Result<Option<Timestamp>>;

    /// Starts a run-once pod, unless one of that name is or was there. `objects` holds the ConfigMaps, Secrets and claims
    /// that its template refers to and that exist; it fails as `Waiting` while one is missing that it needs. Run-once pods
    /// that another life of the store has left in its namespace end first, and one of its name that was another run's:
    /// nothing that they did is an answer to this one. It fails as `Waiting` until they have.
    async fn start_pod(&self, pod: &Pod, objects: &Objects) -> Result<()>;

    /// Makes a stranger that serves one of the pods of a version; it runs on as it is.
    async fn adopt(&self, pod: &PodId, version: u32) -> Result<()>;

    /// Asks a pod to end: it leaves its services, `preStop` runs, then SIGTERM, and SIGKILL after its grace period.
    /// Nothing happens if it is unknown or ended.
    async fn stop_pod(&self, pod: &PodId) -> Result<()>;

    /// Forgets a pod that ended, with its logs. Nothing happens if it is unknown; one that still runs stays, and so does
    /// another that has its name by now.
    async fn remove_pod(&self, pod: &ObservedPod) -> Result<()>;

    /// What a run-once pod that ended has written of how it went, if it was to and did.
    async fn result(&self, pod: &PodId) -> Result<Option<PodResult>>;

    /// All pods of a namespace, ended ones included until they are removed, sorted by name.
    async fn observe(&self, namespace: &Namespace) -> Result<Vec<ObservedPod>>;

    /// The same of one deployment config's versions.
    async fn observe_config(&self, namespace: &Namespace, config: &ConfigKey) -> Result<Vec<ObservedPod>> {
        let mut pods = self.observe(namespace).await?;
        pods.retain(|pod| pod.version().is_some_and(|(owner, _)| owner == config));
        Ok(pods)
    }

    /// The same of those that a service leads to.
    async fn observe_selected(&self, service: &ServiceSpec) -> Result<Vec<ObservedPod>> {
        let mut pods = self.observe(&service.namespace).await?;
        pods.retain(|pod| service.selects(pod.version(), &pod.labels));
        Ok(pods)
    }

    /// The same of one pod.
    async fn observe_pod(&self, pod: &PodId) -> Result<Option<ObservedPod>> {
        Ok(self.observe(&pod.namespace).await?.into_iter().find(|seen| &seen.id == pod))
    }

    /// Whether a namespace has pods that another life of the store has left and that nobody has told to end.
    async fn has_strangers(&self, namespace: &Namespace) -> Result<bool> {
        Ok(self.observe(namespace).await?.iter().any(|pod| pod.is_stranger() && pod.lives()))
    }

    /// How many pods run on under another version of this program, which they were started with.
    async fn pods_of_another_version(&self) -> Result<usize> {
        Ok(0)
    }

    /// The namespaces in which anything is or was running.
    async fn namespaces(&self) -> Result<Vec<Namespace>>;

    /// Makes a service answer at its address, or changes what it selects.
    async fn apply_service(&self, service: &ServiceSpec) -> Result<ServiceAddress>;

    /// A service as it was asked for last; nothing, if it is unknown or that cannot be read any more.
    async fn service_spec(&self, namespace: &Namespace, name: &str) -> Result<Option<ServiceSpec>>;

    /// Ends a service. Nothing happens if it is unknown.
    async fn remove_service(&self, namespace: &Namespace, name: &str) -> Result<()>;

    /// One service.
    async fn service(&self, namespace: &Namespace, name: &str) -> Result<Option<ServiceAddress>>;

    /// The services of a namespace, by name.
    async fn services(&self, namespace: &Namespace) -> Result<Vec<ServiceAddress>>;

    /// What of a pod's output is asked for.
    async fn logs(&self, pod: &PodId, query: &LogQuery) -> Result<LogStream>;

    /// Starts a command beside the processes of a running pod, in its environment. One that is not there ends with 127, and
    /// says why on its standard error, as under a shell.
    async fn exec(&self, pod: &PodId, container: Option<&str>, command: &ExecCommand) -> Result<ExecSession>;

    /// Hints that something changed. Losing one costs latency only.
    fn changes(&self) -> broadcast::Receiver<RuntimeChange>;

    /// Deletes installed images that no pod uses and that are not among `keep`, or only counts them; says how many.
    async fn collect_garbage(&self, keep: &[ImageUse], dry_run: bool) -> Result<u64>;
}

/// Something changed: observe again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuntimeChange {
    /// A pod started, became ready or unready, or ended.
    Pod(PodId, PodOwner),
    /// What [`crate::error::Failure::awaits`] an image: it was prepared, or failed to be.
    Image(String),
    /// Events may have been lost.
    Everything,
    /// So many pods had changed without an announcement; only the runtime's safety net found that.
    Overlooked(usize),
}

/// A service as it is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceSpec {
    /// Where it lives.
    pub namespace: Namespace,
    /// Its name.
    pub name: String,
    /// Its ports.
    pub ports: Vec<ServicePort>,
    /// The labels of the pods behind it; empty: none are selected.
    pub selector: BTreeMap<String, String>,
    /// Where connections go instead, if nothing is selected.
    pub external: Vec<ExternalEndpoint>,
    /// How the traffic is shared among the versions that are selected; what is not named gets none. Without any, all
    /// ready pods get the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<Backend>,
    /// What it was before it changed, for the pods of versions whose places others are still to take.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<EarlierService>,
}

/// What a service was for the pods of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierService {
    /// The deployment config.
    pub config: ConfigKey,
    /// Its version.
    pub version: u32,
    /// The ports.
    pub ports: Vec<ServicePort>,
    /// The labels of the pods behind it.
    pub selector: BTreeMap<String, String>,
}

impl ServiceSpec {
    /// Whether it leads to a pod with these labels, which is one of a version of a deployment config, or of none.
    pub fn selects(&self, version: Option<(&ConfigKey, u32)>, labels: &BTreeMap<String, String>) -> bool {
        selects(self.earlier_of(version).map_or(&self.selector, |earlier| &earlier.selector), labels)
    }

    /// What it was for the pods of a version, if that is another than what it is.
    pub fn earlier_of(&self, version: Option<(&ConfigKey, u32)>) -> Option<&EarlierService> {
        let (config, version) = version?;
        self.earlier.iter().find(|earlier| (&earlier.config, earlier.version) == (config, version))
    }

    /// The labels by which it selects any pods.
    pub fn selectors(&self) -> impl Iterator<Item = &BTreeMap<String, String>> {
        std::iter::once(&self.selector).chain(self.earlier.iter().map(|earlier| &earlier.selector))
    }

    /// The ports on which it listens, for pods of any version.
    pub fn port_numbers(&self) -> BTreeSet<u16> {
        let ports = self.ports.iter().chain(self.earlier.iter().flat_map(|earlier| &earlier.ports));
        ports.map(|port| port.port).collect()
    }
}

/// One port of a service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ServicePort {
    /// Its name, if there are several.
    pub name: Option<String>,
    /// The port that clients use.
    pub port: u16,
    /// The container's port: a number or a name.
    pub target_port: crate::model::pod::Scalar,
    /// `TCP` unless given.
    #[serde(default)]
    pub protocol: Option<String>,
}

/// A machine outside that a service leads to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalEndpoint {
    /// A host name or an address.
    pub host: String,
    /// Its port; the service's own if absent.
    pub port: Option<u16>,
}

/// Where a service answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceAddress {
    /// Its name.
    pub name: String,
    /// Its address, the same for its whole life.
    pub address: IpAddr,
    /// Its ports.
    pub ports: Vec<ServicePort>,
    /// How many pods have the labels that it selects by; nothing, if it selects by none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selects: Option<u32>,
    /// How many pods it has that are ready.
    pub ready: u32,
    /// Why it does not answer, if it does not.
    pub problem: Option<String>,
}

/// An image that must stay installed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ImageUse {
    /// The repository that `git:` images are read from.
    pub repository: RepositoryName,
    /// The resolved image.
    pub image: String,
}
