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
    },
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

/// How a deployment, a task or a sequence ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As wanted.
    Success,
    /// Something the user declared failed.
    Failure,
    /// The environment or launchway failed.
    Error,
    /// A person ended it.
    Cancelled,
    /// A newer revision took its place.
    Superseded,
}
