//! What the API, the commands and the page show: values of their own, made from the store's by pure functions.
//!
//! Times are RFC 3339 in UTC; whatever a Secret holds is left out.

mod condition;
mod config_detail;
mod deployer;
mod deployment;
mod drift;
mod event;
mod explanation;
mod hook;
mod image_stream;
mod keptn;
mod lint;
pub mod openshift;
mod placement;
mod plan;
mod repository;
mod revision;
mod run;
mod sink;
mod webhook_call;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use condition::ConditionView;
pub use config_detail::{ConfigDetail, PodCounts, Referred, RunsWithView, VersionDetail};
pub use deployer::{ControllerPods, DeployerView, PreviousView, VersionPods};
pub use deployment::{CauseView, ConfigView, DetailsView, HistoryRow, ImageFromView, ImageTriggerView, ScalingView};
pub use event::EventView;
pub use explanation::{Explanation, Facts, Reason, at_rest, explain};
pub use hook::{HookView, TagView};
pub use image_stream::ImageTagView;
pub use keptn::{
    ContextState, EventPage, ProjectPage, ProjectView, SequencePage, SequenceView, ServiceOfStage, ServicePage,
    StageOfProject, StagePage,
};
pub use placement::{PodView, ServiceView};
pub use plan::{ChangeView, DiffLine, DifferenceView, PlanView};
pub use repository::{HoldView, RepositoryView};
pub use revision::{RevisionView, StatusView, WaitView};
pub use run::{RunDetail, RunView, StepView, TryView};
pub use sink::SinkView;
pub use webhook_call::WebhookCallView;

use crate::clock;
use crate::model::time::Timestamp;
use crate::store::Damaged;

/// Several of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct List<T> {
    /// They.
    pub items: Vec<T>,
    /// What is there as well and cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedView>,
}

/// A record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DamagedView {
    /// Which.
    pub name: String,
    /// Why, and what to do.
    pub problem: String,
}

impl<T> List<T> {
    /// The same beside what cannot be read.
    #[must_use]
    pub fn beside(mut self, damaged: &[Damaged]) -> Self {
        let view = |it: &Damaged| DamagedView { name: it.key.to_string(), problem: it.failure().one_line() };
        self.damaged.extend(damaged.iter().map(view));
        self
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self { items: items.into_iter().collect(), damaged: Vec::new() }
    }
}

fn time(at: Timestamp) -> String {
    clock::rfc3339(at)
}
