//! Repositories, and what may not change in them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::time;
use crate::control::commands::propose::ProposalView;
use crate::model::environment::Environment;
use crate::model::hold::Hold;
use crate::model::ids::{ServiceKey, StageName};
use crate::model::object::Object;
use crate::model::state::{ConfigState, Quarantined, RepositoryState};
use crate::model::time::Timestamp;
use crate::store::Damaged;

/// The status of a repository that was taken down.
const DOWN: &str = "Down";

/// A repository that is watched, or was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepositoryView {
    /// Its name.
    pub name: String,
    /// Where it is, without credentials.
    pub url: String,
    /// The branch that is watched.
    pub branch: String,
    /// What it declares itself to be.
    pub project: Option<String>,
    /// `New`, `Ready`, `Failed`, `Down`, or `Unwatched`, if it was watched earlier and is in the configuration no longer.
    pub status: String,
    /// The head that was last applied.
    pub applied: Option<String>,
    /// The head that was last synced.
    pub seen: Option<String>,
    /// When it was last synced with news: a head, or a problem.
    pub synced_at: Option<String>,
    /// When the daemon last found out what its head is, news or not.
    #[serde(default)]
    pub polled_at: Option<String>,
    /// What is wrong with it.
    pub problem: Option<String>,
    /// Why statuses do not reach its commits; deployments go on.
    #[serde(default)]
    pub status_problem: Option<String>,
    /// How many pods, of all repositories, run on under another version of launchway until they start anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods_of_another_version: Option<usize>,
    /// Who brought it up again, the last time that it was taken down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_by: Option<String>,
    /// Rollbacks that are or were proposed as pull requests, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proposals: Vec<ProposalView>,
    /// What becomes of the environments of its pull requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environments: Vec<EnvironmentView>,
}

/// The environment of a pull request, or why it has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentView {
    /// The number of the pull request.
    pub number: u64,
    /// The stage that it is.
    pub stage: String,
    /// What the pull request brings.
    pub head: String,
    /// `Wanted`, `Waiting` for its turn, `Unapproved` and of a fork, `Elsewhere` (in another repository alone), `Expired`, or `Over`.
    pub standing: String,
    /// `Nothing`, `There`, or `Ending`.
    pub presence: String,
    /// When what it brings was seen first.
    pub since: String,
}

impl From<&Environment> for EnvironmentView {
    fn from(one: &Environment) -> Self {
        Self {
            number: one.number,
            stage: StageName::of_pull(one.number).to_string(),
            head: one.head.to_string(),
            standing: one.standing.as_str().to_owned(),
            presence: one.presence.as_str().to_owned(),
            since: time(one.since),
        }
    }
}

impl From<&RepositoryState> for RepositoryView {
    fn from(state: &RepositoryState) -> Self {
        Self {
            name: state.name.to_string(),
            url: state.url.clone(),
            branch: state.branch.clone(),
            project: state.project.as_ref().map(ToString::to_string),
            status: status(state).to_owned(),
            applied: state.applied.as_ref().map(ToString::to_string),
            seen: state.seen.as_ref().map(ToString::to_string),
            synced_at: state.synced_at.map(time),
            polled_at: None,
            problem: state.problem.clone(),
            status_problem: state.status_problem(),
            pods_of_another_version: None,
            up_by: Some(state.up_by.clone()).filter(|by| !by.is_empty()),
            proposals: state.proposals.iter().map(ProposalView::from).collect(),
            environments: state.environments.iter().map(EnvironmentView::from).collect(),
        }
    }
}

impl RepositoryView {
    /// With whether it is still watched, and when it was synced last if it is: of one that is not, no push arrives, and
    /// what runs of it runs on.
    #[must_use]
    pub fn with_watching(self, watched: Option<Option<Timestamp>>) -> Self {
        if let Some(polled_at) = watched {
            return Self { polled_at: polled_at.map(time), ..self };
        }
        if self.status == DOWN {
            return self;
        }
        let problem =
            format!("it is not watched any more, and what it runs goes on; `launchway down {}` ends that", self.name);
        Self { status: "Unwatched".to_owned(), problem: Some(problem), ..self }
    }
}

impl From<&Damaged> for RepositoryView {
    /// What can be said of one whose record cannot be read.
    fn from(damaged: &Damaged) -> Self {
        Self {
            name: damaged.key.to_string(),
            status: "Failed".to_owned(),
            problem: Some(damaged.failure().one_line()),
            ..Self::default()
        }
    }
}

fn status(state: &RepositoryState) -> &'static str {
    match (state.down, &state.problem, state.synced_at) {
        (true, ..) => DOWN,
        (false, Some(_), _) => "Failed",
        (false, None, None) => "New",
        (false, None, Some(_)) => "Ready",
    }
}

/// Why something may not change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HoldView {
    /// Its identity, which `release` takes; `dc/NAME` or `deploy/NAME` for what a file pauses.
    pub id: String,
    /// `hold` for a person's, `rollback` for a rollback's, `paused` for what a file says, `quarantine` for what Git was rolled
    /// back from.
    pub kind: String,
    /// The project, with stage and service if it covers less.
    pub scope: String,
    /// The repository that declares the project.
    #[serde(default)]
    pub repository: Option<String>,
    /// The project.
    pub project: String,
    /// The stage, if it covers one alone.
    pub stage: Option<String>,
    /// The service, if it covers one alone.
    pub service: Option<String>,
    /// Why.
    pub reason: String,
    /// Who placed it, or the file that says it.
    pub by: String,
    /// Since when, if that is known.
    pub since: Option<String>,
}

impl HoldView {
    /// What a deployment config's own file keeps from changing.
    pub fn paused(service: &ServiceKey, object: &Object) -> Self {
        Self {
            id: object.target(),
            kind: "paused".to_owned(),
            scope: service.to_string(),
            repository: None,
            project: service.project.to_string(),
            stage: Some(service.stage.to_string()),
            service: Some(service.service.to_string()),
            reason: "its file says `paused: true`".to_owned(),
            by: object.location.file.clone(),
            since: None,
        }
    }
}

impl HoldView {
    /// What of a deployment config is not deployed again.
    pub fn quarantined(config: &ConfigState, bad: &Quarantined) -> Self {
        Self {
            kind: "quarantine".to_owned(),
            reason: bad.reason.clone(),
            since: Some(time(bad.since)),
            ..Self::paused(&config.service_key(), &config.object)
        }
    }
}

impl From<&Hold> for HoldView {
    fn from(hold: &Hold) -> Self {
        Self {
            id: hold.id.to_string(),
            kind: hold.kind.as_str().to_owned(),
            scope: hold.scope.to_string(),
            repository: None,
            project: hold.scope.project.to_string(),
            stage: hold.scope.stage.as_ref().map(ToString::to_string),
            service: hold.scope.service.as_ref().map(ToString::to_string),
            reason: hold.reason.clone(),
            by: hold.by.clone(),
            since: Some(time(hold.since)),
        }
    }
}
