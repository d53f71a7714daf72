//! What a pod consists of: the part of Kubernetes' pod template that launchway reads.
//!
//! These are views of content whose defaults are already applied; fields that only another runtime understands
//! stay in the content and are not listed here. Source of names and defaults: Kubernetes `core/v1`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::probe::{ContainerLifecycle, Probe};
use super::volume::{Volume, VolumeMount};

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
    /// The machine's own port that stands for it; zero is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_port: Option<u16>,
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

impl Resources {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.limits.is_empty() && self.requests.is_empty()
    }
}

/// A number or a text, as Kubernetes' `IntOrString` and quantities allow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// A whole number.
    Number(i64),
    /// A text, such as a port's name, a percentage or a quantity.
    Text(String),
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
