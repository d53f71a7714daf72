//! What is written on a commit.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ids::{CommitId, Digest};

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
    /// What there is to say beyond the line, if there is something and its host shows that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
    /// Where what it is about can be seen, as a link, if that is known: for a host's environments alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Whether something of it was never reached, and may come to be waited for again within the attempt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacks_some: bool,
}

impl CommitStatus {
    /// A line of the first attempt, beyond which there is nothing to say and that leads nowhere.
    pub fn new(
        commit: CommitId,
        context: impl Into<String>,
        state: StatusState,
        description: impl Into<String>,
    ) -> Self {
        let (context, description) = (context.into(), description.into());
        let (path, details, address, lacks_some) = (None, None, None, false);
        Self { commit, context, state, description, path, attempt: 1, details, address, lacks_some }
    }
}

/// What there is to say beyond one line. It is remembered by its digest, so that what was written takes no more room for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Details {
    digest: Digest,
    /// The last lines of output of what failed.
    #[serde(skip)]
    pub output: Vec<String>,
    /// What is wrong in files, each on a line: `file:line:column: error: message`.
    #[serde(skip)]
    pub problems: Vec<String>,
}

impl Details {
    /// Those whose content has this digest.
    pub fn new(digest: Digest, output: Vec<String>, problems: Vec<String>) -> Self {
        Self { digest, output, problems }
    }
}

impl PartialEq for Details {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Details {}

impl CommitStatus {
    /// Whether it says how all of it ended, which is not taken back within the attempt. That something was skipped is no
    /// outcome: it may be waited for again once what it was never reached for is attempted again, on whichever revision.
    pub fn is_outcome(&self) -> bool {
        self.state.is_final() && self.state != StatusState::Skipped && !self.lacks_some
    }

    /// Whether readers see the same in both.
    pub fn reads_like(&self, other: &Self) -> bool {
        let seen = |status: &Self| (status.state, status.description.clone(), status.path.clone());
        self.context == other.context && seen(self) == seen(other) && self.details == other.details
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn details_are_remembered_by_their_digest_and_take_no_room_where_there_are_none() {
        let plain = CommitStatus::new(CommitId::new("c"), "launchway/plan", StatusState::Error, "1 problem");
        let stored = serde_json::to_value(&plain).unwrap();
        assert!(stored.get("details").is_none(), "{stored}");
        assert_eq!(serde_json::from_value::<CommitStatus>(stored).unwrap(), plain);

        let problems = vec!["a.yaml:1:1: error: no".to_owned()];
        let detailed = |digest: &str| {
            let details = Some(Details::new(digest.into(), Vec::new(), problems.clone()));
            CommitStatus { details, ..plain.clone() }
        };
        let stored = serde_json::to_value(detailed("sha256:1")).unwrap();
        assert_eq!(stored["details"], json!({"digest": "sha256:1"}));
        let read: CommitStatus = serde_json::from_value(stored).unwrap();
        assert!(read.reads_like(&detailed("sha256:1")) && !read.reads_like(&detailed("sha256:2")));
        assert!(!read.reads_like(&plain));
    }
}
