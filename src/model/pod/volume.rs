//! A pod's volumes: the part of Kubernetes' `Volume` that launchway reads.
//!
//! These are views of content whose defaults are already applied; fields that only another runtime understands
//! stay in the content and are not listed here. Source of names and defaults: Kubernetes `core/v1`.

use serde::{Deserialize, Serialize};

use super::template::Scalar;

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
