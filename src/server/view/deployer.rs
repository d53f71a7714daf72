//! A deployment as its deployer reads it.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::condition::ConditionView;
use super::deployment::DetailsView;
use crate::engine::deployment::deployer::has_converged;
use crate::engine::deployment::observed::Observed;
use crate::model::run::{Controlled, DeploymentRun};
use crate::model::state::{ConfigState, Version};

/// A deployment, what it takes the place of, and what runs of both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeployerView {
    /// `<config>-<version>`.
    pub name: String,
    /// Where its pods live.
    pub namespace: String,
    /// The project.
    pub project: String,
    /// The stage.
    pub stage: String,
    /// The service.
    pub service: String,
    /// The deployment config.
    pub config: String,
    /// The version.
    pub version: u32,
    /// The revision it comes from.
    pub commit: String,
    /// Why it was made.
    pub cause: String,
    /// The same as data.
    #[serde(default)]
    pub details: DetailsView,
    /// The type of its strategy.
    pub strategy: String,
    /// OpenShift's word for where it is.
    pub phase: String,
    /// How many pods there are to be in the end.
    pub replicas: u32,
    /// What every pod of the new version looks like.
    pub template: Value,
    /// What served before; absent, if nothing did.
    pub previous: Option<PreviousView>,
    /// Grows with everything that is asked for.
    pub generation: u64,
    /// The versions that have pods, or are to have some, oldest first.
    pub versions: Vec<VersionPods>,
    /// The replication controllers that belong to the deployment, by name.
    #[serde(default)]
    pub controllers: Vec<ControllerPods>,
    /// Whether just what is asked for is there.
    pub settled: bool,
    /// Why that makes no progress, if it has made none for the strategy's `timeoutSeconds`.
    pub stalled: Option<String>,
    /// What is known to be in the way.
    pub problem: Option<String>,
    /// Why the deployment is being given up, if it is: its deployer is about to be ended.
    pub failure: Option<String>,
    /// `Available` and `Progressing`, as upstream's.
    pub conditions: Vec<ConditionView>,
}

/// What served before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviousView {
    /// `<config>-<version>`.
    pub name: String,
    /// The version.
    pub version: u32,
    /// The revision it came from.
    pub commit: String,
    /// What every pod of it looks like.
    pub template: Value,
}

/// The pods of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionPods {
    /// The version; 0 are pods whose version is not known.
    pub version: u32,
    /// How many there are to be.
    pub wanted: u32,
    /// How many run and are not told to end.
    pub pods: u32,
    /// Of these, the ones that have been ready for long enough.
    pub available: u32,
    /// How many are ending.
    pub ending: u32,
}

/// A replication controller of a deployment, and what runs of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControllerPods {
    /// Its name.
    pub name: String,
    /// Its version that belongs to the deployment.
    pub version: u32,
    /// Whether the deployment brings that version; else it stays as it is.
    pub is_new: bool,
    /// How many pods there are to be in the end.
    pub replicas: u32,
    /// The version that served before; absent, if none did.
    pub previous: Option<u32>,
    /// The versions that have pods, or are to have some, oldest first.
    pub versions: Vec<VersionPods>,
    /// Whether just what is asked for is there.
    pub settled: bool,
    /// Why that makes no progress.
    pub stalled: Option<String>,
    /// What is known to be in the way.
    pub problem: Option<String>,
}

impl ControllerPods {
    /// One whose deployment is `run`, if the deployment that it belongs to brings its version.
    pub fn new(controlled: &Controlled, run: Option<&DeploymentRun>, state: &ConfigState, observed: &Observed) -> Self {
        let settled = run.is_none_or(|run| is_there(run, state, observed));
        let said = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Self {
            name: controlled.name.clone(),
            version: controlled.version,
            is_new: controlled.is_new,
            replicas: state.wanted.replicas,
            previous: state.serving.as_ref().map(|serving| serving.number),
            versions: versions(state, observed),
            settled,
            stalled: run.and_then(|run| said(&run.deployer.stalled)).filter(|_| !settled),
            problem: run.and_then(|run| said(&run.problem)),
        }
    }
}

/// Whether just what a deployment asks for is there.
pub(super) fn is_there(run: &DeploymentRun, state: &ConfigState, observed: &Observed) -> bool {
    let is_its = state.wanted.owner.as_ref() == Some(&run.id) && state.wanted.generation == run.generation;
    is_its && has_converged(&state.wanted, observed)
}

impl DeployerView {
    /// A deployment that is in the hands of its deployer.
    pub fn new(
        run: &DeploymentRun,
        state: &ConfigState,
        observed: &Observed,
        controllers: Vec<ControllerPods>,
    ) -> Self {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let settled = is_there(run, state, observed) && controllers.iter().all(|controller| controller.settled);
        let stalls =
            |controller: &ControllerPods| Some(format!("{}: {}", controller.name, controller.stalled.as_ref()?));
        let stalled = text(&run.deployer.stalled).or_else(|| controllers.iter().find_map(stalls)).filter(|_| !settled);
        let available = ConditionView::available(&run.spec, &state.wanted, Some(observed));
        let progressing = ConditionView::progressing(run, stalled.as_deref());
        Self {
            name: format!("{}-{}", run.config.name, run.version),
            namespace: run.destination.namespace.to_string(),
            project: run.config.project.to_string(),
            stage: run.config.stage.to_string(),
            service: run.service.to_string(),
            config: run.config.name.clone(),
            version: run.version,
            commit: run.commit.to_string(),
            cause: run.cause.clone(),
            details: DetailsView::from(run),
            strategy: run.spec.strategy.kind.as_str().to_owned(),
            phase: run.phase.as_str().to_owned(),
            replicas: state.wanted.replicas,
            template: run.object.template().unwrap_or_default(),
            previous: previous(run, state),
            generation: run.generation,
            versions: versions(state, observed),
            controllers,
            settled,
            stalled,
            problem: text(&run.problem),
            failure: run.failure.as_ref().map(|failure| failure.message.clone()),
            conditions: vec![available, progressing],
        }
    }

    /// Whether there is nothing more to wait for.
    pub fn is_decided(&self) -> bool {
        self.settled || self.stalled.is_some() || self.failure.is_some()
    }
}

fn previous(run: &DeploymentRun, state: &ConfigState) -> Option<PreviousView> {
    let known = state.serving.iter().chain(state.beside.as_ref().map(|beside| &beside.version));
    let Version { number, commit, object } = known.into_iter().find(|version| Some(version.number) == run.previous)?;
    Some(PreviousView {
        name: format!("{}-{number}", run.config.name),
        version: *number,
        commit: commit.to_string(),
        template: object.template().unwrap_or_default(),
    })
}

fn versions(state: &ConfigState, observed: &Observed) -> Vec<VersionPods> {
    let wanted = state.wanted.counts();
    let lives = |version: &u32| observed.of(*version).living + observed.of(*version).leaving > 0;
    let there = observed.versions.keys().copied().filter(lives);
    let all: BTreeSet<u32> = wanted.keys().copied().chain(there).collect();
    let pods = |version: u32| {
        let count = observed.of(version);
        VersionPods {
            version,
            wanted: wanted.get(&version).copied().unwrap_or_default(),
            pods: count.living,
            available: count.available,
            ending: count.leaving,
        }
    };
    all.into_iter().map(pods).collect()
}
