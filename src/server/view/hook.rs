//! Lifecycle hooks as they are declared. Of variables only the names are told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::deployment_config::{HookPoint, LifecycleHook, Strategy, TagImage};

/// A lifecycle hook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HookView {
    /// `pre`, `mid`, `post`, `analysis` of blue/green, or `analysis-<step>` of a canary.
    pub point: String,
    /// `pod`, if it runs a command in a pod of its own; `tagImages`, if it gives images a tag.
    #[serde(rename = "type")]
    pub kind: String,
    /// What its failure means: `Retry`, `Abort` or `Ignore`.
    pub failure_policy: String,
    /// Of `pod`: the container whose image and settings it has.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub container: String,
    /// What it runs instead of that container's image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Of `pod`: the command, not run by a shell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The names of its variables beside those of the container.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<String>,
    /// The volumes of the template that it has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<String>,
    /// Of `tagImages`: which images get which tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<TagView>,
    /// Seconds that one try may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// How often `Retry` runs it again; until the deadline, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
}

/// A tag that the image of a container gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TagView {
    /// The container.
    pub container: String,
    /// The tag, as `<stream>:<tag>`.
    pub to: String,
}

impl HookView {
    /// The hooks of a strategy, in the order in which they run.
    pub(super) fn all(strategy: &Strategy) -> Vec<Self> {
        let hook = |point: HookPoint| Some(Self::new(point, strategy.hook(point)?));
        strategy.points().filter_map(hook).collect()
    }

    fn new(point: HookPoint, hook: &LifecycleHook) -> Self {
        let tag = |tag: &TagImage| TagView { container: tag.container_name.clone(), to: tag.to.name.clone() };
        let exec = hook.exec_new_pod.as_ref();
        let command = exec.cloned().unwrap_or_default();
        Self {
            point: point.to_string(),
            kind: if exec.is_some() { "pod" } else { "tagImages" }.to_owned(),
            failure_policy: hook.failure_policy.as_str().to_owned(),
            container: command.container_name,
            image: hook.image.clone(),
            command: command.command,
            environment: command.env.into_iter().map(|variable| variable.name).collect(),
            volumes: command.volumes,
            tags: hook.tag_images.iter().map(tag).collect(),
            timeout_seconds: hook.timeout_seconds,
            retries: hook.retries,
        }
    }
}
