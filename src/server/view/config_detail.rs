//! Everything about one deployment config, and about one version of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::condition::ConditionView;
use super::deployer::is_there;
use super::deployment::{ConfigView, HistoryRow};
use super::hook::HookView;
use super::lint;
use crate::engine::deployment::deployer::at_work;
use crate::engine::deployment::observed::{Count, Observed};
use crate::manifest::image_trigger::Streams;
use crate::model::deployment_config::DeploymentConfigSpec;
use crate::model::object::CONTENT;
use crate::model::pod::references::Objects;
use crate::model::run::DeploymentRun;
use crate::model::state::{ConfigState, ObjectState};
use crate::plan::generated;

/// A deployment config with what it declares and how far that is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigDetail {
    /// It.
    #[serde(flatten)]
    pub config: ConfigView,
    /// Its hooks, in the order in which they run.
    #[serde(default)]
    pub hooks: Vec<HookView>,
    /// `Available` and, once something was deployed, `Progressing`, as upstream's.
    #[serde(default)]
    pub conditions: Vec<ConditionView>,
    /// How many pods there are, as `rollout status` counts them; absent if no runtime was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<PodCounts>,
    /// What of it may not be meant so, each a sentence without a period.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// What stays as it was for versions of it that run, although files declare it otherwise or no longer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs_with: Vec<RunsWithView>,
}

/// An object that stays as it was for versions that run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunsWithView {
    /// What it is.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Whether files declare it, which is otherwise then.
    pub declared: bool,
    /// The versions for which it is what it was before it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<u32>,
}

impl RunsWithView {
    /// Nothing, if it is to all of them as it is declared.
    fn new(object: &ObjectState, config: &str) -> Option<Self> {
        let its = object.earlier.iter().filter(|earlier| earlier.config == config);
        let (versions, declared): (Vec<u32>, _) = (its.map(|earlier| earlier.version).collect(), !object.is_kept());
        let (kind, name) = (object.object.key.kind.name().to_owned(), object.object.key.name.clone());
        (!declared || !versions.is_empty()).then_some(Self { kind, name, declared, versions })
    }
}

/// The pods of a deployment config, counted as upstream's `status` does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodCounts {
    /// How many there are to be once its deployment has ended.
    pub wanted: u32,
    /// How many there are.
    pub replicas: u32,
    /// Of these, the ones of the version that was attempted last.
    pub updated: u32,
    /// How many are available.
    pub available: u32,
}

impl PodCounts {
    fn new(state: &ConfigState, spec: &DeploymentConfigSpec, observed: &Observed) -> Self {
        let sum = |count: fn(&Count) -> u32| -> u32 { observed.versions.values().map(count).sum() };
        let updated = state.last_version().map_or(0, |last| observed.of(last.number).living);
        let (replicas, available) = (sum(|count| count.living), sum(|count| count.available));
        Self { wanted: state.replicas(spec), replicas, updated, available }
    }
}

/// What a deployment config refers to in its stage, as far as that is there.
#[derive(Clone, Debug, Default)]
pub struct Referred {
    /// The image streams that it follows.
    pub streams: Streams,
    /// What its pods need.
    pub objects: Objects,
    /// What stays as it was for versions of it that run.
    pub kept: Vec<ObjectState>,
}

impl ConfigDetail {
    /// A deployment config whose last deployment is `run`. What is observed is absent where no runtime can be asked.
    pub fn new(
        config: ConfigView,
        state: &ConfigState,
        run: Option<&DeploymentRun>,
        observed: Option<&Observed>,
        referred: &Referred,
    ) -> Self {
        // What cannot be read as one declares nothing, as everywhere.
        let spec = shown_spec(state).unwrap_or_default();
        let available = ConditionView::available(&spec, &state.wanted, observed);
        let progressing = run.map(|run| ConditionView::progressing(run, stalled(run, state, observed)));
        let warnings = lint::warnings(state, &spec, referred);
        let pods = observed.map(|observed| PodCounts::new(state, &spec, observed));
        // A replication controller has the hooks of what deploys it.
        let hooks = if config.deployed_by.is_some() { Vec::new() } else { HookView::all(&spec.strategy) };
        let conditions = [available].into_iter().chain(progressing).collect();
        let runs_with = referred.kept.iter().filter_map(|object| RunsWithView::new(object, &state.key.name)).collect();
        Self { config, hooks, conditions, pods, warnings, runs_with }
    }
}

/// What is declared, as people may see it.
pub(super) fn shown_spec(state: &ConfigState) -> Option<DeploymentConfigSpec> {
    let mut content = generated::shown(&state.object.content.value());
    serde_json::from_value(content.get_mut("spec")?.take()).ok()
}

/// Why what a deployer has asked for makes no progress, if so.
pub(super) fn stalled<'a>(run: &'a DeploymentRun, state: &ConfigState, observed: Option<&Observed>) -> Option<&'a str> {
    let settled = observed.is_some_and(|observed| is_there(run, state, observed));
    let told = Some(run.deployer.stalled.as_str()).filter(|stalled| !stalled.is_empty() && !settled);
    at_work(run).and(told)
}

/// A version of a deployment config with what its pods look like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionDetail {
    /// It.
    #[serde(flatten)]
    pub row: HistoryRow,
    /// What every pod of it looks like, without what is generated.
    pub template: Value,
}

impl VersionDetail {
    /// The version that a deployment brings, as the history tells it.
    pub fn new(row: HistoryRow, run: &DeploymentRun) -> Self {
        let content = generated::shown(&run.object.content.value());
        let mut template = content.pointer("/spec/template").cloned().unwrap_or_default();
        let annotations = template.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        // It is worked out from what Secrets hold, among others.
        annotations.map(|annotations| annotations.shift_remove(CONTENT));
        Self { row, template }
    }
}
