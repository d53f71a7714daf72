//! Revisions and what is written on them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::time;
use crate::executor::renderings::RevisionReport;
use crate::model::commit_status::CommitStatus;
use crate::model::ids::CommitId;
use crate::model::state::{RevisionResult, RevisionState};
use crate::report::rest::{Wait, WaitKind};

/// A revision that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionView {
    /// The repository.
    pub repository: String,
    /// The commit.
    pub commit: String,
    /// The first line of its message.
    pub subject: String,
    /// When it was last judged.
    pub at: String,
    /// `planned`, `broken` or `refused`.
    pub result: String,
    /// Its plan, if it has one.
    pub plan: Option<String>,
    /// The earlier revisions whose deliveries bring a part of what it declares.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carriers: Vec<String>,
    /// What is wrong with it, each on a line.
    pub problems: Vec<String>,
    /// What may not be meant so in its files, each on a line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What is written on it, by context, and on earlier revisions that bring what it declares as well; left out of lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<StatusView>,
    /// Whether more happens to it by itself; left out of lists.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub goes_on: bool,
    /// What it waits for, if nothing does; left out of lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<WaitView>,
}

/// What a revision waits for to which nothing more happens by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitView {
    /// `down`, `hold`, `paused`, `plan`, `stage`, or `byHand`, which keeps nothing from being good.
    pub kind: String,
    /// What it is.
    pub message: String,
    /// What a person can do.
    pub hint: String,
}

/// One line on a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusView {
    /// Such as `launchway/dev/web`.
    pub context: String,
    /// The earlier revision whose delivery it is about, if that brings what this one declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The state's word.
    pub state: String,
    /// What happened.
    pub description: String,
    /// The page that tells more, below the daemon's address.
    pub path: Option<String>,
    /// Grows with every retry.
    pub attempt: u32,
}

impl RevisionView {
    /// A revision with what is written on it.
    pub fn new(state: &RevisionState, report: &RevisionReport) -> Self {
        let carriers = state.plan().map(|plan| plan.carriers(&plan.stages)).unwrap_or_default();
        let (result, plan, problems) = match &state.result {
            RevisionResult::Planned(plan) => ("planned", Some(plan.id.to_string()), Vec::new()),
            RevisionResult::Broken { problems } => ("broken", None, problems.clone()),
            RevisionResult::Refused { reason } => ("refused", None, vec![reason.clone()]),
        };
        Self {
            repository: state.repository.to_string(),
            commit: state.commit.to_string(),
            subject: state.subject.clone(),
            at: time(state.at),
            result: result.to_owned(),
            plan,
            carriers: carriers.into_iter().map(ToString::to_string).collect(),
            problems,
            warnings: state.warnings.clone(),
            statuses: report.statuses.iter().map(|status| StatusView::new(status, &state.commit)).collect(),
            goes_on: report.goes_on,
            waits: report.waits.iter().map(WaitView::from).collect(),
        }
    }
}

impl RevisionView {
    /// Whether nothing more will happen to it by itself.
    pub fn is_settled(&self) -> bool {
        !self.statuses.is_empty() && !self.goes_on
    }

    /// Whether all that was to be done was, and well. What nobody has asked for yet is not to be done.
    pub fn is_good(&self) -> bool {
        !self.has_failed() && self.waits.iter().all(|wait| wait.kind == WaitKind::ByHand.as_str())
    }

    /// Whether anything on it failed, or was ended before it could.
    pub fn has_failed(&self) -> bool {
        self.statuses.iter().any(|status| matches!(status.state.as_str(), "failure" | "error" | "cancelled"))
    }
}

impl From<&Wait> for WaitView {
    fn from(wait: &Wait) -> Self {
        Self { kind: wait.kind.as_str().to_owned(), message: wait.message.clone(), hint: wait.hint.clone() }
    }
}

impl StatusView {
    /// A status as it is shown at a revision.
    fn new(status: &CommitStatus, at: &CommitId) -> Self {
        Self {
            context: status.context.clone(),
            commit: (status.commit != *at).then(|| status.commit.to_string()),
            state: status.state.to_string(),
            description: status.description.clone(),
            path: status.path.clone(),
            attempt: status.attempt,
        }
    }

    /// Where it stands: its context, with the commit if that is another one.
    pub fn place(&self) -> String {
        match &self.commit {
            Some(commit) => format!("{} ({})", self.context, CommitId::new(commit.as_str()).short()),
            None => self.context.clone(),
        }
    }

    /// Whether something follows within the attempt.
    pub fn is_open(&self) -> bool {
        matches!(self.state.as_str(), "pending" | "running")
    }
}
