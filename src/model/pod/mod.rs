//! What runs: pods as they are asked for and as they are seen. Their parts are named as in Kubernetes' `core/v1`.

mod probe;
pub mod references;
mod result;
mod template;
mod volume;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::ids::{CommitId, ConfigKey, Destination, Digest, Namespace, PodName, RepositoryName, RunId};
use crate::model::object::Object;
use crate::model::outcome::PodOutcome;
use crate::model::time::Timestamp;

pub use probe::{
    ContainerLifecycle, ExecHandler, Handler, HttpGetHandler, HttpHeader, Probe, SleepHandler, TcpSocketHandler,
};
pub use result::PodResult;
pub use template::{
    Container, ContainerPort, EnvFrom, EnvVar, EnvVarSource, FieldRef, KeyRef, ObjectRef, PodMetadata, PodSpec,
    PodTemplate, ResourceFieldRef, Resources, RestartPolicy, Scalar, SecurityContext,
};
pub use volume::{ClaimVolume, ConfigMapVolume, EmptyDir, HostPath, KeyToPath, SecretVolume, Volume, VolumeMount};

/// A pod that a runtime is asked to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pod {
    /// Where it lives.
    pub id: PodId,
    /// Whose it is.
    pub owner: PodOwner,
    /// What runs, images resolved.
    pub template: PodTemplate,
    /// The repository that `git:` images are read from.
    pub repository: RepositoryName,
    /// The revision that asked for it; told to its processes as `LAUNCHWAY_REVISION`.
    pub commit: CommitId,
    /// Set for a pod whose containers run once: how many seconds they may take, pod start to end.
    pub run_once_seconds: Option<u64>,
    /// Whether it may say more of how it went than its exit code does, in the file that `LAUNCHWAY_RESULT` names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tells_result: bool,
    /// Whether it is a deployer: its processes reach where the daemon answers those.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deploys: bool,
}

/// Pods of one version of a deployment config, as many as there should be now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaSet {
    /// The deployment config.
    pub config: ConfigKey,
    /// The version.
    pub version: u32,
    /// Where its pods live.
    pub destination: Destination,
    /// What runs in each, images resolved: the part that launchway reads.
    pub template: PodTemplate,
    /// What was declared, of which `template` is a view.
    pub object: Option<Arc<Object>>,
    /// Of the template as it was declared.
    pub digest: Digest,
    /// The repository that `git:` images are read from.
    pub repository: RepositoryName,
    /// The revision that asked for it.
    pub commit: CommitId,
    /// How many there should be.
    pub replicas: u32,
    /// Seconds a pod must be ready before it counts as available.
    pub min_ready_seconds: u32,
}

/// The version of pods that another life of the store has left, and that run nothing which this one knows.
pub const STRANGER: u32 = 0;

impl ReplicaSet {
    /// At most so many of the pods that another life of the store has left.
    pub fn strangers(config: ConfigKey, destination: Destination, replicas: u32) -> Self {
        Self { replicas, ..Self::nothing_of(config, STRANGER, destination) }
    }

    /// No pods of a version of which nothing else is known.
    pub fn nothing_of(config: ConfigKey, version: u32, destination: Destination) -> Self {
        Self {
            config,
            version,
            destination,
            template: PodTemplate::default(),
            object: None,
            digest: Digest::new(""),
            repository: RepositoryName::new(""),
            commit: CommitId::new(""),
            replicas: 0,
            min_ready_seconds: 0,
        }
    }

    /// The template as it was declared, with the fields that launchway does not know.
    pub fn whole_template(&self) -> Option<Value> {
        self.object.as_ref()?.template()
    }

    /// The name of pod number `number`: `<config>-<version>-<number>`.
    pub fn pod_name(&self, number: u32) -> PodName {
        PodName::new(format!("{}-{}-{number}", self.config.name, self.version))
    }

    /// Pod number `number` of it.
    pub fn pod(&self, number: u32) -> Pod {
        Pod {
            id: PodId { namespace: self.destination.namespace.clone(), name: self.pod_name(number) },
            owner: PodOwner::Version {
                config: self.config.clone(),
                version: self.version,
                template: self.digest.clone(),
            },
            template: self.template.clone(),
            repository: self.repository.clone(),
            commit: self.commit.clone(),
            run_once_seconds: None,
            tells_result: false,
            deploys: false,
        }
    }
}

/// A pod's identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodId {
    /// Where it lives.
    pub namespace: Namespace,
    /// Its name there.
    pub name: PodName,
}

impl PodId {
    /// Whether its name is one that [`ReplicaSet::pod_name`] gives to pods of a deployment config of this name.
    pub fn may_be_of(&self, config: &str) -> bool {
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let rest = self.name.as_str().strip_prefix(config).and_then(|rest| rest.strip_prefix('-'));
        rest.and_then(|rest| rest.split_once('-'))
            .is_some_and(|(version, number)| is_number(version) && is_number(number))
    }
}

impl std::fmt::Display for PodId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Whose pod it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "owner")]
pub enum PodOwner {
    /// One of a deployment config's version's replicas.
    Version {
        /// The deployment config.
        config: ConfigKey,
        /// The version.
        version: u32,
        /// Of the template as it was declared.
        template: Digest,
    },
    /// A run-once pod of a run: a lifecycle hook or a task.
    Run {
        /// The run that hears how it ended.
        run: RunId,
        /// Which hook or task it is.
        step: String,
        /// When the run was asked for: of a deployment config that comes back after all of it was forgotten, versions are
        /// counted from 1 again. Pods that an earlier version of the program started do not say.
        #[serde(default)]
        since: Timestamp,
    },
    /// Nobody can tell: what was written down of it cannot be read.
    Unknown,
}

impl PodOwner {
    /// Whether a pod of this owner is an answer to what the other asks for.
    pub fn answers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Run { step, .. }, Self::Run { run, step: which, since }) => step == which && self.is_of(run, *since),
            _ => self == other,
        }
    }

    /// Whether a pod of this owner was started by a run that was asked for then.
    pub fn is_of(&self, run: &RunId, asked_at: Timestamp) -> bool {
        let known = |since: Timestamp| since != Timestamp::default();
        matches!(self, Self::Run { run: of, since, .. }
            if of == run && (*since == asked_at || !known(*since) || !known(asked_at)))
    }
}

/// Which life of the store a pod comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// It was started in this one.
    #[default]
    Own,
    /// It was started in another one, and runs what a version of this one is to run.
    Adopted,
    /// It was started in another one, and nobody in this one asked for it.
    Stranger,
}

/// What a runtime sees of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedPod {
    /// Its identity.
    pub id: PodId,
    /// Whose it is.
    pub owner: PodOwner,
    /// Which life of the store it comes from.
    pub origin: Origin,
    /// Its labels, which services select by.
    pub labels: Arc<BTreeMap<String, String>>,
    /// Where it is in its life.
    pub phase: PodPhase,
    /// How often containers were started again.
    pub restarts: u32,
    /// What holds it back or how it ended, for people; empty if all is well.
    pub message: String,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When all its processes were gone, if that is known.
    pub ended_at: Option<Timestamp>,
}

impl ObservedPod {
    /// The deployment config and the version that it is one of the pods of; [`STRANGER`] if it is of none that this life
    /// of the store knows.
    pub fn version(&self) -> Option<(&ConfigKey, u32)> {
        match &self.owner {
            PodOwner::Version { config, .. } if self.is_stranger() => Some((config, STRANGER)),
            PodOwner::Version { config, version, .. } => Some((config, *version)),
            PodOwner::Run { .. } | PodOwner::Unknown => None,
        }
    }

    /// Whether another life of the store started it and this one has not adopted it.
    pub fn is_stranger(&self) -> bool {
        self.origin == Origin::Stranger
    }

    /// Whether anything of it still runs.
    pub fn runs(&self) -> bool {
        !matches!(self.phase, PodPhase::Ended { .. })
    }

    /// When it counts as available; never while it is not ready.
    pub fn available_at(&self, min_ready_seconds: u32) -> Option<Timestamp> {
        match self.phase {
            PodPhase::Ready { since } => Some(since + Duration::from_secs(min_ready_seconds.into())),
            PodPhase::Starting | PodPhase::Stopping { .. } | PodPhase::Ended { .. } => None,
        }
    }

    /// Whether it runs and nobody has told it to end.
    pub fn lives(&self) -> bool {
        matches!(self.phase, PodPhase::Starting | PodPhase::Ready { .. })
    }

    /// The number at the end of its name.
    pub fn number(&self) -> u32 {
        self.id.name.as_str().rsplit('-').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }
}

/// Where a pod is in its life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "phase")]
pub enum PodPhase {
    /// Volumes, init containers, start, or not ready yet.
    Starting,
    /// All containers are ready.
    Ready {
        /// Since when.
        since: Timestamp,
    },
    /// Asked to end, or ending by itself; it takes no new connections.
    Stopping {
        /// Whether that is because its owner was told to end, as when the machine shuts down: nothing takes its place right away.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        interrupted: bool,
    },
    /// All its processes are gone.
    Ended {
        /// How; for a pod that is not run-once only whether somebody knows matters.
        outcome: PodOutcome,
    },
}

impl PodPhase {
    /// The word in tables.
    pub fn as_str(&self) -> &'static str {
        match self {
            PodPhase::Starting => "Starting",
            PodPhase::Ready { .. } => "Ready",
            PodPhase::Stopping { .. } => "Stopping",
            PodPhase::Ended { outcome: PodOutcome::Succeeded } => "Succeeded",
            PodPhase::Ended { outcome: PodOutcome::Failed { .. } } => "Failed",
            PodPhase::Ended { outcome: PodOutcome::Unknown { .. } } => "Unknown",
        }
    }
}
