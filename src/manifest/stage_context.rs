//! What a file says depends on more than the file: on the stage that it is read for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::deployment_config::StrategyKind;
use crate::model::ids::{ProjectName, StageName};
use crate::model::seed::Seed;

/// Where a stage's pods live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Runtime {
    /// On this machine.
    #[default]
    Local,
    /// On a Kubernetes cluster.
    Kubernetes,
}

/// What of a stage all of its objects are read by, templates or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) runtime: Runtime,
    /// By what its `deployment` task has deployment configs deployed, whatever they say themselves.
    pub(crate) strategy: Option<StrategyKind>,
}

/// A stage, as far as what its files declare depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StageContext {
    pub(crate) project: ProjectName,
    pub(crate) stage: StageName,
    pub(crate) terms: Terms,
    /// Values for the parameters of templates, from the project file.
    pub(crate) parameters: BTreeMap<String, String>,
    /// What generated values are derived from.
    pub(crate) seed: Seed,
}

impl StageContext {
    /// For a file that no stage has: it can only be wrong.
    pub(crate) fn nowhere() -> Self {
        let (project, stage) = (ProjectName::new(""), StageName::new(""));
        Self { project, stage, terms: Terms::default(), parameters: BTreeMap::new(), seed: Seed::NONE }
    }
}

/// The stages among those that have a file for which something in it is declared; all of them if absent.
pub(crate) type Stages = Option<Arc<BTreeSet<StageName>>>;

/// Whether something is declared for a stage that has its file.
pub(crate) fn is_for(stages: &Stages, stage: &StageName) -> bool {
    stages.as_ref().is_none_or(|stages| stages.contains(stage))
}
