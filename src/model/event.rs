//! Facts that a run receives.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::evaluation::Reading;
use super::ids::{CommitId, PodName, RunId, SinkName};
use super::outcome::{Outcome, PodOutcome};
use super::pod::PodResult;
use super::run::{Asked, DeploymentStep, Phase};
use super::time::Timestamp;
use super::wanted::Progress;

/// A fact. Every run ignores facts that it does not wait for, so telling one twice does no harm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "event")]
pub enum Event {
    /// The sequence was started, and enters its slot.
    Queued {
        /// By whom or what, for people.
        cause: String,
    },
    /// The slot is this sequence's now.
    Admitted,
    /// Why it does not have the slot yet.
    Waiting {
        /// For what.
        reason: String,
    },
    /// End: somebody or something wants that.
    Cancel {
        /// How it counts: `Cancelled` or `Superseded`.
        outcome: Outcome,
        /// By whom or what, for people.
        reason: String,
    },
    /// A deployment that this sequence asked for got its version.
    DeploymentStarted {
        /// The deployment config's name.
        config: String,
        /// The run.
        deployment: RunId,
    },
    /// A deployment that this sequence waits for ended.
    DeploymentEnded {
        /// The run.
        deployment: RunId,
        /// How.
        outcome: Outcome,
        /// What happened, for people.
        message: String,
        /// Whether it is an earlier one that serves what was asked for: nothing was deployed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        served_already: bool,
    },
    /// What a task has gone back was decided.
    GoesBack {
        /// Which of the sequence's, counted from 0.
        task: usize,
        /// Deployment configs, each with the version whose content comes back.
        to: BTreeMap<String, u32>,
        /// Why others stay as they are, for people.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        left: String,
    },
    /// A task cannot have anything gone back.
    CannotGoBack {
        /// Which.
        task: usize,
        /// Why and what to do.
        message: String,
    },
    /// Images are installed and built.
    Prepared,
    /// An image cannot be made runnable.
    PrepareFailed {
        /// Why and what to do.
        message: String,
    },
    /// What the run asked for could not be done yet, and is tried again.
    Delayed {
        /// Why and what to do; empty once that is over.
        message: String,
    },
    /// A run-once pod was started.
    PodStarted {
        /// Which.
        pod: PodName,
    },
    /// A run-once pod ended.
    PodEnded {
        /// Which.
        pod: PodName,
        /// How.
        outcome: PodOutcome,
        /// What it has written of that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<PodResult>,
    },
    /// A deployer of the user's own asks for what should run.
    DeployerAsked {
        /// Its pod.
        pod: PodName,
        /// What.
        asked: Asked,
        /// How many pods there are to be then.
        replicas: u32,
    },
    /// What serves changed.
    Served {
        /// Which value of `Wanted` this is about.
        generation: u64,
        /// How far it is.
        progress: Progress,
        /// Whether what is there is what is wanted.
        converged: bool,
        /// What holds new pods back, for people; empty if nothing is known.
        problem: String,
        /// What keeps a `Service` that leads to new pods from listening, for people; empty if nothing does.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        not_listening: String,
        /// Whether the delivery that brings the pods has changed one of these.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        brought: bool,
    },
    /// The deployment that leads this one, which is a replication controller's, has got to a step.
    Led {
        /// Which.
        step: DeploymentStep,
    },
    /// The deployment that leads this one has ended, and so does this one.
    LeaderEnded {
        /// As what.
        phase: Phase,
        /// How.
        outcome: Outcome,
        /// What happened, for people.
        message: String,
    },
    /// The deployment of a replication controller that this one leads has done its part of a step.
    Followed {
        /// Its name.
        controller: String,
        /// Which.
        step: DeploymentStep,
    },
    /// The deployment of a replication controller that this one leads cannot do its part.
    FollowerFailed {
        /// Its name.
        controller: String,
        /// How that counts.
        outcome: Outcome,
        /// Why, for people.
        message: String,
        /// Whether it has ended by that.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        has_left: bool,
    },
    /// An executor has begun a task.
    ExecutorStarted {
        /// Which of the sequence's, counted from 0.
        task: usize,
        /// Who.
        executor: String,
        /// The id of its event.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        id: String,
        /// What it leaves to those after it; `null` if nothing.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        data: Value,
    },
    /// An executor tells how far it is.
    ExecutorReported {
        /// At which task.
        task: usize,
        /// Who.
        executor: String,
        /// The id of its event.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        id: String,
        /// What it says, for people.
        message: String,
    },
    /// An executor is done with a task, or a person has decided.
    ExecutorFinished {
        /// Which.
        task: usize,
        /// Who.
        executor: String,
        /// The id of its event.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        id: String,
        /// How it went.
        outcome: Outcome,
        /// What it says, for people.
        message: String,
        /// What it leaves to those after it; `null` if nothing.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        data: Value,
    },
    /// What objectives are about was measured.
    Measured {
        /// For which of the sequence's tasks, counted from 0.
        task: usize,
        /// For which time.
        at: Timestamp,
        /// By indicator.
        readings: BTreeMap<String, Reading>,
    },
    /// It cannot be measured before a person puts something right.
    NotMeasured {
        /// For which task.
        task: usize,
        /// Why and what to do.
        message: String,
    },
    /// A task's objectives were judged.
    Evaluated {
        /// Which task.
        task: usize,
        /// What came of it.
        outcome: Outcome,
        /// Why, for people.
        message: String,
        /// What it leaves to those after it, in Keptn's shape.
        evaluation: Value,
    },
    /// How the `Service` objects are that were applied without a deployment.
    #[serde(alias = "answering")]
    ServicesChecked {
        /// What keeps one of them from listening, for people; empty if nothing does.
        problem: String,
    },
    /// What its deployment config should run is no longer in the run's hands: it was removed or taken down, or another
    /// run has taken over.
    Disowned {
        /// Which of these, for people.
        reason: String,
    },
    /// A deployment is to go no further: everything stays as it is until it is resumed. A sequence begins no further task.
    Paused {
        /// Who or what wants that, for people.
        by: String,
    },
    /// A deployment that waits where it is goes on, or a sequence with its tasks.
    Resumed {
        /// Who wants that.
        by: String,
    },
    /// A deployment that proves itself in steps is to skip the ones that are left.
    Promoted {
        /// Who wants that.
        by: String,
    },
    /// A sink is never told something that happened to the run.
    NotTold {
        /// Which sink.
        sink: SinkName,
        /// The event's type.
        kind: String,
        /// The event's id.
        id: String,
        /// Why.
        problem: String,
    },
    /// A timer that the run set has come due.
    Timer {
        /// Which.
        timer: Timer,
    },
    /// A person changed the number of replicas of a deployment config.
    Scaled {
        /// The version that had them.
        version: Option<u32>,
        /// From so many.
        from: u32,
        /// To so many.
        to: u32,
        /// Who.
        by: String,
    },
    /// A delivery that an event asked for was not started.
    NotDelivered {
        /// What asked for it, for people.
        by: String,
        /// Why not, for people.
        reason: String,
    },
    /// What a commit says of what waits for approval does not count.
    NotApproved {
        /// Which commit.
        commit: CommitId,
        /// Why not, for people.
        reason: String,
    },
    /// A person ran a command beside the processes of a pod.
    Executed {
        /// The pod.
        pod: PodName,
        /// The beginning of the command, as it was asked for.
        command: String,
        /// Who.
        by: String,
    },
}

impl Event {
    /// A run-once pod ended and has written nothing.
    pub fn pod_ended(pod: PodName, outcome: PodOutcome) -> Self {
        Self::PodEnded { pod, outcome, result: None }
    }
}

/// The timers that runs set; each run has at most one of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Timer {
    /// A deployment has taken too long as a whole.
    Deadline,
    /// A rollout has stood still for too long, or who has begun a task was silent for too long.
    Progress,
    /// The pause before a failed hook or task runs again is over.
    Retry,
    /// A pause is over: the one before a task (`triggeredAfter`), or that of a step of a canary.
    Delay,
    /// A task should have been begun by now: its pod, an executor, what was applied.
    Start,
    /// Who has begun a task should have finished it by now.
    Finish,
}

impl Timer {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Deadline, Self::Progress, Self::Retry, Self::Delay, Self::Start, Self::Finish];

    /// Its word in keys.
    pub fn as_str(self) -> &'static str {
        match self {
            Timer::Deadline => "deadline",
            Timer::Progress => "progress",
            Timer::Retry => "retry",
            Timer::Delay => "delay",
            Timer::Start => "start",
            Timer::Finish => "finish",
        }
    }
}
