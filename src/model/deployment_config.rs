//! OpenShift's `DeploymentConfig` as launchway executes it, every default applied.
//!
//! Source of fields, defaults and words: `apps.openshift.io/v1`; of the hooks: the proposal "post-deployment hooks".

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::pod::{EnvVar, PodTemplate, Resources, Scalar};
use super::trial::{AbParams, BlueGreenParams, CanaryParams, CanaryStep, DEFAULT_KEEP};

mod asked;
mod hook;

pub use hook::{ExecNewPod, FailurePolicy, HookPoint, LifecycleHook, TagImage};

/// The most pods of one deployment config: what one machine was measured with, and a number that is rather mistyped beyond.
pub const MOST_REPLICAS: u32 = 1000;

/// The field of a spec that says which autoscaler says how many pods serve; stages write it, and no file.
pub const AUTOSCALER: &str = "autoscaler";
/// Where that is in a deployment config.
pub const AUTOSCALER_POINTER: &str = "/spec/autoscaler";

/// The field of a spec that says which deployment config deploys a replication controller; no file writes it.
pub const CONTROLLER_OF: &str = "controllerOf";
/// Where that is in a replication controller.
pub const CONTROLLER_OF_POINTER: &str = "/spec/controllerOf";
/// The field of a spec with the templates of the replication controllers that it deploys; stages write it, and no file.
pub const CONTROLLERS: &str = "controllers";
/// Where that is in a deployment config.
pub const CONTROLLERS_POINTER: &str = "/spec/controllers";

/// `DeploymentConfigSpec`, read from content whose defaults are applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentConfigSpec {
    /// How many pods serve; absent where the file leaves that alone, as only a `Deployment` can.
    pub replicas: Option<u32>,
    /// The autoscaler of its stage that says how many pods serve, if one does: then `replicas` is only what it starts with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoscaler: Option<String>,
    /// Which pods belong to it.
    pub selector: BTreeMap<String, String>,
    /// How a new version replaces the old one.
    pub strategy: Strategy,
    /// What starts a deployment.
    pub triggers: Vec<Trigger>,
    /// Seconds a pod must be ready before it counts as available.
    pub min_ready_seconds: u32,
    /// How many old versions are kept; all if absent.
    pub revision_history_limit: Option<u32>,
    /// Scaled to zero whenever no deployment runs.
    pub test: bool,
    /// Nothing starts while this is set.
    pub paused: bool,
    /// The deployment config that deploys it, if it is a replication controller: then it has no triggers and no strategy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller_of: Option<String>,
    /// The templates of the replication controllers that it deploys beside its own, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub controllers: BTreeMap<String, Value>,
    /// What every pod looks like.
    pub template: PodTemplate,
}

/// `DeploymentTriggerPolicy`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Trigger {
    /// `ConfigChange`, `ImageChange`, or anything else for "by hand".
    #[serde(rename = "type")]
    pub kind: String,
    /// Of `ImageChange`: which image, and where it goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_change_params: Option<ImageChangeParams>,
}

/// `DeploymentTriggerImageChangeParams`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageChangeParams {
    /// Whether a new image starts a deployment; else only people do.
    pub automatic: bool,
    /// The containers and init containers that get the image.
    pub container_names: Vec<String>,
    /// What is watched.
    pub from: ImageReference,
    /// The image that it has brought. Nothing, where no stream of the stage is followed: then it brings none; empty, as long
    /// as it has brought none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_triggered_image: Option<String>,
}

/// The type of a trigger that follows the tag of an image stream.
pub const IMAGE_CHANGE: &str = "ImageChange";

impl ImageChangeParams {
    /// Whether it has brought an image.
    pub fn has_brought(&self) -> bool {
        self.last_triggered_image.as_ref().is_some_and(|image| !image.is_empty())
    }

    /// Whether it will bring one by itself, and has not yet.
    pub fn is_awaited(&self) -> bool {
        self.automatic && self.last_triggered_image.as_ref().is_some_and(String::is_empty)
    }
}

/// The part of `ObjectReference` that names an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageReference {
    /// `ImageStreamTag`.
    pub kind: String,
    /// `<stream>:<tag>`.
    pub name: String,
    /// Where the stream is; that of the deployment config if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// `DeploymentStrategy`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Strategy {
    /// Which of the blocks below applies.
    #[serde(rename = "type")]
    pub kind: StrategyKind,
    /// What the file says instead, where the stage's `deployment` task asks for this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overrides: Option<StrategyKind>,
    /// For `Rolling`.
    pub rolling_params: Option<RollingParams>,
    /// For `Recreate`.
    pub recreate_params: Option<RecreateParams>,
    /// For `Custom`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_params: Option<CustomParams>,
    /// For `Canary`.
    pub canary_params: Option<CanaryParams>,
    /// For `BlueGreen`.
    pub blue_green_params: Option<BlueGreenParams>,
    /// For `AB`.
    pub ab_params: Option<AbParams>,
    /// Seconds that hooks and rollout may take together.
    pub active_deadline_seconds: Option<u64>,
    /// Of the deployer's pod.
    #[serde(skip_serializing_if = "Resources::is_empty")]
    pub resources: Resources,
    /// Of the pods of hooks and of the deployer.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Of the pods of hooks and of the deployer.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// `DeploymentStrategyType`, and three of launchway's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StrategyKind {
    /// Pod by pod, within `maxSurge` and `maxUnavailable`.
    #[default]
    Rolling,
    /// All old pods end before the first new one starts.
    Recreate,
    /// A user's own program.
    Custom,
    /// The new version gets more and more of the traffic, in steps that it has to pass.
    Canary,
    /// The new version comes up whole without traffic, and gets all of it at once.
    BlueGreen,
    /// Both versions stay, each with its part.
    #[serde(rename = "AB")]
    Ab,
}

impl StrategyKind {
    /// Its word in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rolling => "Rolling",
            Self::Recreate => "Recreate",
            Self::Custom => "Custom",
            Self::Canary => "Canary",
            Self::BlueGreen => "BlueGreen",
            Self::Ab => "AB",
        }
    }
}

/// `RollingDeploymentStrategyParams`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RollingParams {
    /// Seconds between two changes of the number of pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_period_seconds: Option<i64>,
    /// Seconds between two looks at the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_seconds: Option<i64>,
    /// Seconds without any progress after which the deployment fails.
    pub timeout_seconds: Option<u64>,
    /// Pods that may be missing, a number or a percentage rounded down.
    pub max_unavailable: Option<Scalar>,
    /// Pods that may be there beyond `replicas`, a number or a percentage rounded up.
    pub max_surge: Option<Scalar>,
    /// Runs before anything changes.
    pub pre: Option<LifecycleHook>,
    /// Runs once the first new pod is available (an extension: upstream has it for Recreate only).
    pub mid: Option<LifecycleHook>,
    /// Runs after all new pods are available.
    pub post: Option<LifecycleHook>,
}

/// `RecreateDeploymentStrategyParams`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RecreateParams {
    /// Seconds the pods may take to become available.
    pub timeout_seconds: Option<u64>,
    /// Runs before anything changes.
    pub pre: Option<LifecycleHook>,
    /// Runs after the old pods ended and before the new ones start.
    pub mid: Option<LifecycleHook>,
    /// Runs after all new pods are available.
    pub post: Option<LifecycleHook>,
}

/// `CustomDeploymentStrategyParams`: the user's own deployer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CustomParams {
    /// What it runs in.
    pub image: String,
    /// Its variables.
    pub environment: Vec<EnvVar>,
    /// The command, not run by a shell; the image's own if empty.
    pub command: Vec<String>,
}

/// Upstream's default for `timeoutSeconds` of both strategies.
pub const DEFAULT_STRATEGY_TIMEOUT: Duration = Duration::from_secs(600);
/// Upstream's default for `activeDeadlineSeconds`: six hours.
pub const DEFAULT_ACTIVE_DEADLINE: Duration = Duration::from_secs(21_600);

/// What a block of parameters says about pods: `maxSurge` and `maxUnavailable`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits<'a> {
    /// Pods that may be there beyond `replicas`.
    pub max_surge: Option<&'a Scalar>,
    /// Pods that may be missing.
    pub max_unavailable: Option<&'a Scalar>,
}

/// What the blocks of all strategies have.
struct Block<'a> {
    timeout_seconds: Option<u64>,
    limits: Limits<'a>,
    hooks: [&'a Option<LifecycleHook>; 3],
}

impl Strategy {
    /// The block that applies.
    fn block(&self) -> Option<Block<'_>> {
        Some(match self.kind {
            StrategyKind::Recreate => {
                let RecreateParams { timeout_seconds, pre, mid, post } = self.recreate_params.as_ref()?;
                Block { timeout_seconds: *timeout_seconds, limits: Limits::default(), hooks: [pre, mid, post] }
            }
            StrategyKind::Rolling => {
                let RollingParams { timeout_seconds, max_unavailable, max_surge, pre, mid, post, .. } =
                    self.rolling_params.as_ref()?;
                let limits = Limits { max_surge: max_surge.as_ref(), max_unavailable: max_unavailable.as_ref() };
                Block { timeout_seconds: *timeout_seconds, limits, hooks: [pre, mid, post] }
            }
            StrategyKind::Custom => self.block_of_custom(),
            StrategyKind::Canary => {
                let CanaryParams { timeout_seconds, max_unavailable, max_surge, pre, mid, post, .. } =
                    self.canary_params.as_ref()?;
                let limits = Limits { max_surge: max_surge.as_ref(), max_unavailable: max_unavailable.as_ref() };
                Block { timeout_seconds: *timeout_seconds, limits, hooks: [pre, mid, post] }
            }
            StrategyKind::BlueGreen => {
                let BlueGreenParams { timeout_seconds, pre, mid, post, .. } = self.blue_green_params.as_ref()?;
                Block { timeout_seconds: *timeout_seconds, limits: Limits::default(), hooks: [pre, mid, post] }
            }
            StrategyKind::Ab => {
                let AbParams { timeout_seconds, max_unavailable, max_surge, pre, mid, post, .. } =
                    self.ab_params.as_ref()?;
                let limits = Limits { max_surge: max_surge.as_ref(), max_unavailable: max_unavailable.as_ref() };
                Block { timeout_seconds: *timeout_seconds, limits, hooks: [pre, mid, post] }
            }
        })
    }

    /// What a deployer has left to do is done as Rolling does it. Its strategy has no hooks.
    fn block_of_custom(&self) -> Block<'_> {
        let rolling = self.rolling_params.as_ref();
        let (max_surge, max_unavailable) =
            rolling.map(|it| (it.max_surge.as_ref(), it.max_unavailable.as_ref())).unwrap_or_default();
        let of_recreate = || self.recreate_params.as_ref().and_then(|it| it.timeout_seconds);
        Block {
            timeout_seconds: rolling.and_then(|it| it.timeout_seconds).or_else(of_recreate),
            limits: Limits { max_surge, max_unavailable },
            hooks: [&None, &None, &None],
        }
    }

    /// The user's own deployer: what carries `Custom` out, or decorates Rolling and Recreate.
    pub fn deployer(&self) -> Option<&CustomParams> {
        let params = self.custom_params.as_ref()?;
        match self.kind {
            StrategyKind::Custom => Some(params),
            StrategyKind::Rolling | StrategyKind::Recreate => Some(params).filter(|params| params.names_something()),
            StrategyKind::Canary | StrategyKind::BlueGreen | StrategyKind::Ab => None,
        }
    }

    /// Whether something runs at a point of it.
    pub fn runs_at(&self, point: HookPoint) -> bool {
        match point {
            HookPoint::Deployer => self.deployer().is_some(),
            _ => self.hook(point).is_some(),
        }
    }

    /// The hook at `point` of the block that applies.
    pub fn hook(&self, point: HookPoint) -> Option<&LifecycleHook> {
        let hook = match point {
            HookPoint::Pre => self.block()?.hooks[0],
            HookPoint::Deployer => return None,
            HookPoint::Mid => self.block()?.hooks[1],
            HookPoint::Post => self.block()?.hooks[2],
            HookPoint::Analysis(0) => {
                let params = self.blue_green_params.as_ref().filter(|_| self.kind == StrategyKind::BlueGreen);
                &params?.analysis
            }
            HookPoint::Analysis(step) => &self.canary_step(step)?.analysis,
        };
        hook.as_ref()
    }

    /// The points of it at which something runs, in order.
    pub fn points(&self) -> impl Iterator<Item = HookPoint> {
        let steps = self.canary_params.as_ref().map_or(0, |params| params.steps.len());
        let analyses = (0..=u16::try_from(steps).unwrap_or(u16::MAX)).map(HookPoint::Analysis);
        let before = [HookPoint::Pre, HookPoint::Deployer].into_iter();
        let all = before.chain(analyses).chain([HookPoint::Mid, HookPoint::Post]);
        all.filter(move |point| self.runs_at(*point))
    }

    /// How many hooks it has; a deployer of the user's own counts as one.
    pub fn hooks(&self) -> usize {
        self.points().count()
    }

    /// A step of the canary, from 1.
    pub fn canary_step(&self, step: u16) -> Option<&CanaryStep> {
        let canary = self.canary_params.as_ref().filter(|_| self.kind == StrategyKind::Canary)?;
        canary.steps.get(usize::from(step).checked_sub(1)?)
    }

    /// How many pods may be missing or beyond `replicas`, as far as the block that applies says.
    pub fn limits(&self) -> Limits<'_> {
        self.block().map(|block| block.limits).unwrap_or_default()
    }

    /// How much of the traffic and of the replicas a new version gets for good under A/B, in percent.
    pub fn ab_weight(&self) -> Option<u32> {
        self.ab_params.as_ref().filter(|_| self.kind == StrategyKind::Ab).map(|params| params.weight)
    }

    /// How long blue/green keeps the version that served before.
    pub fn keep(&self) -> Option<Duration> {
        let params = self.blue_green_params.as_ref().filter(|_| self.kind == StrategyKind::BlueGreen)?;
        Some(params.keep.map_or(DEFAULT_KEEP, |keep| keep.0))
    }

    /// How long a rollout may stand still.
    pub fn timeout(&self) -> Duration {
        let seconds = self.block().and_then(|block| block.timeout_seconds);
        seconds.map_or(DEFAULT_STRATEGY_TIMEOUT, Duration::from_secs)
    }

    /// How long hooks and rollout may take together.
    pub fn active_deadline(&self) -> Duration {
        self.active_deadline_seconds.map_or(DEFAULT_ACTIVE_DEADLINE, Duration::from_secs)
    }
}

impl CustomParams {
    /// Whether they say what runs.
    pub fn names_something(&self) -> bool {
        !self.image.is_empty() || !self.command.is_empty()
    }
}
