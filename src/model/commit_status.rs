//! What is written on a commit.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ids::CommitId;

/// The state of one context on one commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StatusState {
    /// Will happen.
    Pending,
    /// Happens.
    Running,
    /// Ended well.
    Success,
    /// What the user declared failed, or a rule refused it.
    Failure,
    /// Files or environment are broken.
    Error,
    /// Ended by a person or a newer revision.
    Cancelled,
    /// Never reached, or a newer revision took its place.
    Skipped,
    /// There was nothing to do.
    Unchanged,
}

impl StatusState {
    /// The word in notes and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            StatusState::Pending => "pending",
            StatusState::Running => "running",
            StatusState::Success => "success",
            StatusState::Failure => "failure",
            StatusState::Error => "error",
            StatusState::Cancelled => "cancelled",
            StatusState::Skipped | StatusState::Unchanged => "skipped",
        }
    }

    /// Whether nothing follows within the attempt.
    pub fn is_final(self) -> bool {
        !matches!(self, StatusState::Pending | StatusState::Running)
    }
}

impl fmt::Display for StatusState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One line on a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitStatus {
    /// The commit.
    pub commit: CommitId,
    /// Such as `launchway/dev/web/pre`.
    pub context: String,
    /// The state.
    pub state: StatusState,
    /// What happened, one line.
    pub description: String,
    /// A page that tells more: a path below the daemon's public address.
    pub path: Option<String>,
    /// Grows with every retry or new cause; a later attempt may reopen an outcome.
    pub attempt: u32,
}

impl CommitStatus {
    /// Whether readers see the same in both.
    pub fn reads_like(&self, other: &Self) -> bool {
        let seen = |status: &Self| (status.state, status.description.clone(), status.path.clone());
        self.context == other.context && seen(self) == seen(other)
    }
}

/// What a writer has written about one context, as its ledger remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// What readers see.
    pub status: CommitStatus,
    /// Which rendering it is from. Later ones have higher numbers; 0 if another life of the store may have written since.
    pub rendering: u64,
}
