//! The tasks of a sequence run: how long they may take, and what becomes of them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ExecutorRecord;
use crate::model::ids::{PodName, RunId};
use crate::model::outcome::{Outcome, PodOutcome};
use crate::model::time::Timestamp;

/// How long the tasks of a sequence may take, as the daemon was configured when the run was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLimits {
    /// From when a task is asked for until its pod was started.
    pub start: Duration,
    /// From then on to the end of one try, unless the task says otherwise.
    pub run: Duration,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self { start: Duration::from_secs(600), run: Duration::from_secs(3600) }
    }
}

/// What became of one task of a sequence run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// The task's name.
    pub name: String,
    /// Its word in status contexts: the name, with `-2` for its second time in a sequence.
    pub step: String,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// What happened, for people.
    pub message: String,
    /// For the deployment task: what it started.
    pub deployments: Vec<DeploymentRef>,
    /// For a task that pods do: those of its tries.
    pub tries: Vec<TaskTry>,
    /// How often it was left to executors, or evaluated.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub offers: u32,
    /// When that is done once more, because it has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_at: Option<Timestamp>,
    /// Who has taken it or decided about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub executors: Vec<ExecutorRecord>,
    /// When it was left to executors, or evaluated, the last time, if that was not the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_at: Option<Timestamp>,
    /// Each time before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<EarlierOffer>,
    /// When what its objectives are about was known: it is judged by that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_at: Option<Timestamp>,
    /// What came of evaluating it, in Keptn's shape; `null` if nothing was evaluated.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub evaluation: Value,
    /// Whether a run before has done it, where that failed later and this one goes on: that one tells of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub done_before: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

impl TaskRecord {
    /// When it was left to executors, or evaluated, the last time.
    pub fn last_offer(&self) -> Option<Timestamp> {
        self.offered_at.or(self.started_at)
    }

    /// One that has not begun.
    pub fn new(name: impl Into<String>, step: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            step: step.into(),
            started_at: None,
            ended_at: None,
            outcome: None,
            message: String::new(),
            deployments: Vec::new(),
            tries: Vec::new(),
            offers: 0,
            again_at: None,
            executors: Vec::new(),
            offered_at: None,
            earlier: Vec::new(),
            measured_at: None,
            evaluation: Value::Null,
            done_before: false,
        }
    }
}

/// What has come of leaving a task to executors, or of evaluating it, before that was done once more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierOffer {
    /// When it was.
    pub at: Timestamp,
    /// Who had taken it; what they have left counts no more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub executors: Vec<ExecutorRecord>,
}

/// A deployment that a task waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeploymentRef {
    /// The deployment config's name.
    pub config: String,
    /// Its run, once it has a version.
    pub run: Option<RunId>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// What happened, for people.
    pub message: String,
    /// Whether an earlier deployment serves what was asked for: nothing was deployed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub served_already: bool,
}

impl DeploymentRef {
    /// A deployment that was asked for.
    pub fn asked(config: impl Into<String>) -> Self {
        let (config, message) = (config.into(), String::new());
        Self { config, run: None, outcome: None, message, served_already: false }
    }
}

/// One try of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskTry {
    /// Its pod.
    pub pod: PodName,
    /// When it was asked for.
    pub started_at: Timestamp,
    /// When its pod was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_since: Option<Timestamp>,
    /// Whether it was given up because its pod was not started in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    pub outcome: Option<PodOutcome>,
}
