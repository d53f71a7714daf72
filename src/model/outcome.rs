//! How something ended.

use serde::{Deserialize, Serialize};

/// How a command or a whole run-once pod ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "outcome")]
pub enum PodOutcome {
    /// Exit code 0.
    Succeeded,
    /// It ran and failed.
    Failed {
        /// The exit code, or 128 + the signal's number.
        code: i32,
        /// `Error`, `DeadlineExceeded`, `StartError`, `Cancelled`.
        reason: FailureReason,
        /// Its last lines of output, or why it could not start.
        message: String,
    },
    /// Its owner died too, so nobody knows; the policy decides, never a guess.
    Unknown {
        /// What is known.
        message: String,
        /// Whether its owner was told to end, as when the machine shuts down: nothing takes its place right away.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        interrupted: bool,
    },
}

impl PodOutcome {
    /// Its owner died.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::Unknown { message: message.into(), interrupted: false }
    }

    /// Its owner was told to end.
    pub fn interrupted(message: impl Into<String>) -> Self {
        Self::Unknown { message: message.into(), interrupted: true }
    }
}

/// Why a run-once pod failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureReason {
    /// The command said so by its exit code.
    Error,
    /// It took longer than allowed and was ended.
    DeadlineExceeded,
    /// The command could not be started.
    StartError,
    /// It was asked to end.
    Cancelled,
}

/// How a deployment, a task or a sequence ended: what became of running it, and what came of it. Source: `status` and
/// `result` of Keptn's `.finished` events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Outcome {
    /// What became of running it.
    pub status: Status,
    /// What came of it.
    pub result: TaskResult,
}

/// What became of running something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Status {
    /// It ran to its end.
    Succeeded,
    /// The environment or launchway failed.
    Errored,
    /// A person ended it.
    Aborted,
    /// It took too long, or nobody started it in time.
    TimedOut,
    /// A newer revision took its place.
    Superseded,
    /// Nobody knows.
    Unknown,
}

impl Status {
    /// The word that events say and selectors match. Keptn knows the first three and `unknown`.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Succeeded => "succeeded",
            Status::Errored => "errored",
            Status::Aborted => "aborted",
            Status::TimedOut => "timedOut",
            Status::Superseded => "superseded",
            Status::Unknown => "unknown",
        }
    }
}

/// What came of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskResult {
    /// As wanted.
    Pass,
    /// Good enough to go on.
    Warning,
    /// Not good enough.
    Fail,
}

impl TaskResult {
    /// Keptn's word, which selectors match.
    pub fn as_str(self) -> &'static str {
        match self {
            TaskResult::Pass => "pass",
            TaskResult::Warning => "warning",
            TaskResult::Fail => "fail",
        }
    }
}

impl Outcome {
    /// As wanted.
    pub const PASS: Self = Self { status: Status::Succeeded, result: TaskResult::Pass };
    /// Something that the user declared failed.
    pub const FAIL: Self = Self::failed(Status::Succeeded);
    /// The environment or launchway failed.
    pub const ERRORED: Self = Self::failed(Status::Errored);
    /// A person ended it.
    pub const ABORTED: Self = Self::failed(Status::Aborted);
    /// It took too long, or nobody started it in time.
    pub const TIMED_OUT: Self = Self::failed(Status::TimedOut);
    /// A newer revision took its place.
    pub const SUPERSEDED: Self = Self::failed(Status::Superseded);
    /// Nobody knows; what is not known did not pass.
    pub const UNKNOWN: Self = Self::failed(Status::Unknown);

    const fn failed(status: Status) -> Self {
        Self { status, result: TaskResult::Fail }
    }

    /// Whether what comes after it may go on.
    pub fn passes(self) -> bool {
        self.result != TaskResult::Fail
    }

    /// Its word in tables, events and metrics.
    pub fn word(self) -> &'static str {
        match (self.status, self.result) {
            (Status::Succeeded, TaskResult::Pass) => "success",
            (Status::Succeeded, TaskResult::Warning) => "warning",
            (Status::Succeeded, TaskResult::Fail) => "failure",
            (Status::Errored, _) => "error",
            (Status::Aborted, _) => "cancelled",
            (Status::TimedOut, _) => "timed out",
            (Status::Superseded, _) => "superseded",
            (Status::Unknown, _) => "unknown",
        }
    }
}
