//! What a runtime sees: pods and services.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::time;
use crate::model::ids::Namespace;
use crate::model::pod::{ObservedPod, PodOwner, PodPhase, STRANGER};
use crate::model::state::ObjectState;
use crate::runtime::ServiceAddress;

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodView {
    /// Where it lives.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The deployment config whose replica it is.
    pub config: Option<String>,
    /// Of which version, if this store knows it.
    pub version: Option<u32>,
    /// The run whose hook or task it is.
    pub run: Option<String>,
    /// `Starting`, `Ready`, `Stopping`, `Succeeded`, `Failed` or `Unknown`.
    pub status: String,
    /// Since when it is ready.
    pub ready_since: Option<String>,
    /// How often containers were started again.
    pub restarts: u32,
    /// What holds it back or how it ended.
    pub message: String,
    /// When it was asked for.
    pub created_at: String,
}

impl PodView {
    /// Whether nothing of it runs any more.
    pub fn has_ended(&self) -> bool {
        matches!(self.status.as_str(), "Succeeded" | "Failed" | "Unknown")
    }
}

impl From<&ObservedPod> for PodView {
    fn from(pod: &ObservedPod) -> Self {
        let (config, version, run) = match &pod.owner {
            PodOwner::Version { config, .. } => {
                let version = pod.version().map(|(_, version)| version).filter(|version| *version != STRANGER);
                (Some(config.name.clone()), version, None)
            }
            PodOwner::Run { run, .. } => (None, None, Some(run.to_string())),
            PodOwner::Unknown => (None, None, None),
        };
        let ready_since = match pod.phase {
            PodPhase::Ready { since } => Some(time(since)),
            _ => None,
        };
        Self {
            namespace: pod.id.namespace.to_string(),
            name: pod.id.name.to_string(),
            config,
            version,
            run,
            status: pod.phase.as_str().to_owned(),
            ready_since,
            restarts: pod.restarts,
            message: message(pod),
            created_at: time(pod.created_at),
        }
    }
}

/// What a pod says of itself, and whose it is if this store does not know its version.
fn message(pod: &ObservedPod) -> String {
    let project = pod.version().map(|(config, _)| &config.project).filter(|_| pod.is_stranger() && pod.lives());
    let left = project.map(|project| format!("left by an earlier store, of project {project}"));
    left.into_iter().chain(Some(pod.message.clone()).filter(|told| !told.is_empty())).collect::<Vec<_>>().join("; ")
}

/// A service's address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceView {
    /// Where it lives.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: String,
    /// The ports that clients use.
    pub ports: Vec<u16>,
    /// How many pods it has that are ready.
    pub ready: u32,
    /// Why it does not answer.
    pub problem: Option<String>,
}

impl ServiceView {
    /// A service of a namespace, with the object that declares it, if that is known.
    pub fn new(namespace: &Namespace, service: &ServiceAddress, declared: Option<&ObjectState>) -> Self {
        Self {
            namespace: namespace.to_string(),
            name: service.name.clone(),
            address: service.address.to_string(),
            ports: service.ports.iter().map(|port| port.port).collect(),
            ready: service.ready,
            problem: service.problem.clone().or_else(|| is_kept(declared?)).or_else(|| leads_nowhere(service)),
        }
    }
}

/// That nobody is reached, though nothing is wrong with the service itself.
fn leads_nowhere(service: &ServiceAddress) -> Option<String> {
    (service.selects == Some(0)).then(|| "no pod has the labels that it selects by".to_owned())
}

/// That it will go.
fn is_kept(declared: &ObjectState) -> Option<String> {
    let keepers: Vec<&str> = declared.kept_by.iter().map(String::as_str).collect();
    let until = format!("declared no longer; it goes once what serves of {} is replaced", keepers.join(", "));
    declared.is_kept().then_some(until)
}
