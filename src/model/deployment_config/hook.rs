//! Lifecycle hooks of a deployment config: what runs, where in a deployment, and what its failure means.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ImageReference;
use crate::model::pod::{EnvFrom, EnvVar, Resources};

/// `LifecycleHook`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LifecycleHook {
    /// What its failure means.
    pub failure_policy: FailurePolicy,
    /// The command.
    pub exec_new_pod: Option<ExecNewPod>,
    /// The images that get a tag; instead of a command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tag_images: Vec<TagImage>,
    /// Seconds one attempt may take (an extension).
    pub timeout_seconds: Option<u64>,
    /// How often it is run again under `Retry`; without it until the deadline (an extension).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// What it runs, instead of the container's image (an extension).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Its limits and requests, instead of the container's (an extension).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Sets of variables beside those of the container (an extension).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env_from: Vec<EnvFrom>,
}

/// `LifecycleHookFailurePolicy`; the proposal's `Continue` is read as `Ignore`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailurePolicy {
    /// Run it again, with growing pauses, until the deadline.
    Retry,
    /// The deployment fails.
    #[default]
    Abort,
    /// The deployment goes on.
    #[serde(alias = "Continue")]
    Ignore,
}

impl FailurePolicy {
    /// Its word in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "Retry",
            Self::Abort => "Abort",
            Self::Ignore => "Ignore",
        }
    }
}

/// `ExecNewPodHook`: a command in a pod of its own, made from a container of the template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExecNewPod {
    /// The command, not run by a shell.
    pub command: Vec<String>,
    /// Added to the container's variables; wins by name.
    pub env: Vec<EnvVar>,
    /// The container whose image and settings are taken.
    pub container_name: String,
    /// Volumes of the template to mount.
    pub volumes: Vec<String>,
}

/// `TagImageHook`: the image of a container of the template gets a tag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TagImage {
    /// The container.
    pub container_name: String,
    /// The tag.
    pub to: ImageReference,
}

/// Where in a deployment a lifecycle hook stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookPoint {
    /// Before the strategy.
    Pre,
    /// The strategy, or the beginning of it: no hook, but the user's own deployer.
    Deployer,
    /// After this step of a canary, from 1; after the only one of blue/green, if 0.
    Analysis(u16),
    /// Inside the strategy.
    Mid,
    /// After the strategy.
    Post,
}

/// The point's word in statuses and pod names.
impl fmt::Display for HookPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HookPoint::Pre => f.write_str("pre"),
            HookPoint::Deployer => f.write_str("deployer"),
            HookPoint::Analysis(0) => f.write_str("analysis"),
            HookPoint::Analysis(step) => write!(f, "analysis-{step}"),
            HookPoint::Mid => f.write_str("mid"),
            HookPoint::Post => f.write_str("post"),
        }
    }
}
