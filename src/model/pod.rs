//! What runs: the part of Kubernetes' `core/v1` pod that launchway reads.
//!
//! These are views of content whose defaults are already applied; fields that only another runtime understands
//! stay in the content and are not listed here. Source of names and defaults: Kubernetes `core/v1`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ids::{CommitId, ConfigKey, Destination, Digest, Namespace, PodName, RepositoryName, RunId};
use super::object::Object;
use super::outcome::PodOutcome;
use super::time::Timestamp;

/// `PodTemplateSpec`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodTemplate {
    /// Labels and annotations of every pod.
    pub metadata: PodMetadata,
    /// Containers and how they live.
    pub spec: PodSpec,
}

/// The part of `ObjectMeta` that a template may carry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodMetadata {
    /// What selectors match.
    pub labels: BTreeMap<String, String>,
    /// Notes, such as `launchway.dev/listen`.
    pub annotations: BTreeMap<String, String>,
}

/// `PodSpec`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// Run one after another to their end before the containers start.
    pub init_containers: Vec<Container>,
    /// The processes of the pod.
    pub containers: Vec<Container>,
    /// What containers may mount.
    pub volumes: Vec<Volume>,
    /// `Always`, `OnFailure` or `Never`.
    pub restart_policy: RestartPolicy,
    /// Seconds from SIGTERM to SIGKILL.
    pub termination_grace_period_seconds: Option<u64>,
    /// Seconds after which the pod is ended as failed.
    pub active_deadline_seconds: Option<u64>,
    /// Users and groups for all containers.
    pub security_context: SecurityContext,
}

/// When a container that ended is started again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RestartPolicy {
    /// Whatever its exit code.
    #[default]
    Always,
    /// If its exit code is not 0.
    OnFailure,
    /// Never.
    Never,
}

/// `Container`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// Unique in the pod.
    pub name: String,
    /// What it runs; on the local runtime a launchable.
    pub image: String,
    /// Replaces the image's entry point; `$(VAR)` is expanded.
    pub command: Vec<String>,
    /// Arguments; `$(VAR)` is expanded.
    pub args: Vec<String>,
    /// Where it starts; the launchable's root unless given.
    pub working_dir: Option<String>,
    /// Ports that it serves.
    pub ports: Vec<ContainerPort>,
    /// Sources of whole sets of variables.
    pub env_from: Vec<EnvFrom>,
    /// Variables; later ones may refer to earlier ones with `$(VAR)`.
    pub env: Vec<EnvVar>,
    /// Limits and requests as quantities.
    pub resources: Resources,
    /// Where volumes appear.
    pub volume_mounts: Vec<VolumeMount>,
    /// Restarts the container when it fails.
    pub liveness_probe: Option<Probe>,
    /// Takes the pod out of its services when it fails.
    pub readiness_probe: Option<Probe>,
    /// Holds the other two back until it succeeds.
    pub startup_probe: Option<Probe>,
    /// `postStart` and `preStop`.
    pub lifecycle: ContainerLifecycle,
    /// User and group of this container; wins over the pod's.
    pub security_context: SecurityContext,
}

/// `ContainerPort`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerPort {
    /// The name services and probes may use.
    pub name: Option<String>,
    /// The declared port.
    pub container_port: u16,
    /// `TCP` or `UDP`.
    pub protocol: Option<String>,
}

/// `EnvVar`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvVar {
    /// The variable's name.
    pub name: String,
    /// A literal, with `$(VAR)` expanded.
    pub value: Option<String>,
    /// Taken from elsewhere.
    pub value_from: Option<EnvVarSource>,
}

/// `EnvVarSource`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvVarSource {
    /// A key of a ConfigMap.
    pub config_map_key_ref: Option<KeyRef>,
    /// A key of a Secret.
    pub secret_key_ref: Option<KeyRef>,
    /// A field of the pod, such as `metadata.name`.
    pub field_ref: Option<FieldRef>,
    /// A limit or request of a container.
    pub resource_field_ref: Option<ResourceFieldRef>,
}

/// A key in a named ConfigMap or Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KeyRef {
    /// The object.
    pub name: String,
    /// The key in its data.
    pub key: String,
    /// Whether the pod may start without it.
    pub optional: bool,
}

/// `ObjectFieldSelector`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FieldRef {
    /// Such as `metadata.namespace` or `status.podIP`.
    pub field_path: String,
}

/// `ResourceFieldSelector`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceFieldRef {
    /// Such as `limits.memory`.
    pub resource: String,
    /// The container, if not the same one.
    pub container_name: Option<String>,
    /// The unit to divide by.
    pub divisor: Option<String>,
}

/// `EnvFromSource`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvFrom {
    /// Put before every key.
    pub prefix: String,
    /// All keys of a ConfigMap.
    pub config_map_ref: Option<ObjectRef>,
    /// All keys of a Secret.
    pub secret_ref: Option<ObjectRef>,
}

/// An object by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectRef {
    /// Its name.
    pub name: String,
    /// Whether the pod may start without it.
    pub optional: bool,
}

/// `ResourceRequirements`; the values are quantities such as `250m` and `64Mi`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Resources {
    /// What may not be exceeded.
    pub limits: BTreeMap<String, Scalar>,
    /// What is asked for.
    pub requests: BTreeMap<String, Scalar>,
}

/// A number or a text, as Kubernetes' `IntOrString` and quantities allow.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// A whole number.
    Number(i64),
    /// A text, such as a port's name, a percentage or a quantity.
    Text(String),
}

/// `VolumeMount`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeMount {
    /// The volume.
    pub name: String,
    /// Where it appears.
    pub mount_path: String,
    /// A path inside the volume.
    pub sub_path: Option<String>,
    /// Whether writing is refused.
    pub read_only: bool,
}

/// `Volume`; exactly one source is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Volume {
    /// The name that mounts use.
    pub name: String,
    /// A folder that lives as long as the pod.
    pub empty_dir: Option<EmptyDir>,
    /// A folder of the machine.
    pub host_path: Option<HostPath>,
    /// Files from a ConfigMap.
    pub config_map: Option<ConfigMapVolume>,
    /// Files from a Secret.
    pub secret: Option<SecretVolume>,
    /// A folder that outlives pods.
    pub persistent_volume_claim: Option<ClaimVolume>,
}

/// `EmptyDirVolumeSource`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EmptyDir {
    /// The most it may hold.
    pub size_limit: Option<Scalar>,
}

/// `HostPathVolumeSource`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HostPath {
    /// An absolute path.
    pub path: String,
    /// `Directory`, `DirectoryOrCreate`, `File`, `FileOrCreate`, or empty.
    #[serde(rename = "type")]
    pub kind: Option<String>,
}

/// `ConfigMapVolumeSource`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigMapVolume {
    /// The ConfigMap.
    pub name: String,
    /// Which keys, and as which files; all when empty.
    pub items: Vec<KeyToPath>,
    /// The files' mode.
    pub default_mode: Option<u32>,
    /// Whether the pod may start without it.
    pub optional: bool,
}

/// `SecretVolumeSource`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SecretVolume {
    /// The Secret.
    pub secret_name: String,
    /// Which keys, and as which files; all when empty.
    pub items: Vec<KeyToPath>,
    /// The files' mode.
    pub default_mode: Option<u32>,
    /// Whether the pod may start without it.
    pub optional: bool,
}

/// One key as one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KeyToPath {
    /// The key.
    pub key: String,
    /// The file, relative to the volume.
    pub path: String,
    /// The file's mode.
    pub mode: Option<u32>,
}

/// `PersistentVolumeClaimVolumeSource`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimVolume {
    /// The claim.
    pub claim_name: String,
    /// Whether writing is refused.
    pub read_only: bool,
}

/// `Probe`; exactly one handler is set. All periods are seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Probe {
    /// The check.
    #[serde(flatten)]
    pub handler: Handler,
    /// From the container's start to the first check.
    pub initial_delay_seconds: u32,
    /// From check to check.
    pub period_seconds: u32,
    /// How long one check may take.
    pub timeout_seconds: u32,
    /// Successes in a row that count as healthy.
    pub success_threshold: u32,
    /// Failures in a row that count as unhealthy.
    pub failure_threshold: u32,
}

impl Default for Probe {
    /// Kubernetes' own defaults.
    fn default() -> Self {
        Self {
            handler: Handler::default(),
            initial_delay_seconds: 0,
            period_seconds: 10,
            timeout_seconds: 1,
            success_threshold: 1,
            failure_threshold: 3,
        }
    }
}

/// `ProbeHandler` and `LifecycleHandler`: exactly one is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Handler {
    /// A command in the container; exit code 0 is good.
    pub exec: Option<ExecHandler>,
    /// An HTTP GET; 200 to 399 is good.
    pub http_get: Option<HttpGetHandler>,
    /// A connection; being accepted is good.
    pub tcp_socket: Option<TcpSocketHandler>,
    /// A pause, in lifecycle handlers only.
    pub sleep: Option<SleepHandler>,
}

/// `ExecAction`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecHandler {
    /// The command, not run by a shell.
    pub command: Vec<String>,
}

/// `HTTPGetAction`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpGetHandler {
    /// `/` unless given.
    #[serde(default)]
    pub path: Option<String>,
    /// A declared port's number or name.
    pub port: Scalar,
    /// The pod unless given.
    #[serde(default)]
    pub host: Option<String>,
    /// `HTTP` or `HTTPS`.
    #[serde(default)]
    pub scheme: Option<String>,
    /// Headers to send.
    #[serde(default)]
    pub http_headers: Vec<HttpHeader>,
}

/// `HTTPHeader`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpHeader {
    /// The header's name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// `TCPSocketAction`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpSocketHandler {
    /// A declared port's number or name.
    pub port: Scalar,
    /// The pod unless given.
    #[serde(default)]
    pub host: Option<String>,
}

/// `SleepAction`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SleepHandler {
    /// How long.
    pub seconds: u64,
}

/// `Lifecycle` of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerLifecycle {
    /// Runs right after the start; the container is not ready before it ended.
    pub post_start: Option<Handler>,
    /// Runs before SIGTERM, inside the grace period.
    pub pre_stop: Option<Handler>,
}

/// The part of `PodSecurityContext` and `SecurityContext` that the local runtime honours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SecurityContext {
    /// The user id of the process.
    pub run_as_user: Option<u32>,
    /// The group id of the process.
    pub run_as_group: Option<u32>,
}

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
}

impl PodOwner {
    /// Whether a pod of this owner is an answer to what the other asks for.
    pub fn answers(&self, other: &Self) -> bool {
        let known = |since: &Timestamp| *since != Timestamp::default();
        match (self, other) {
            (Self::Run { run, step, since }, Self::Run { run: asked, step: which, since: at }) => {
                (run, step) == (asked, which) && (since == at || !known(since) || !known(at))
            }
            _ => self == other,
        }
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
    pub labels: BTreeMap<String, String>,
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
            PodOwner::Run { .. } => None,
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
            PodPhase::Starting | PodPhase::Stopping | PodPhase::Ended { .. } => None,
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
    Stopping,
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
            PodPhase::Stopping => "Stopping",
            PodPhase::Ended { outcome: PodOutcome::Succeeded } => "Succeeded",
            PodPhase::Ended { outcome: PodOutcome::Failed { .. } } => "Failed",
            PodPhase::Ended { outcome: PodOutcome::Unknown { .. } } => "Unknown",
        }
    }
}
