//! Comments on pull requests in which people command.

use serde::{Deserialize, Serialize};

use super::time::Timestamp;

/// Who wrote a comment, as its host knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// By which people know them.
    pub login: String,
    /// The host's id of them.
    pub id: String,
}

/// A new comment on a pull request with commands in it, as its host tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// The host's id of it.
    pub id: u64,
    /// The number of the pull request.
    pub pull: u64,
    /// The repository, as `<owner>/<name>`.
    pub repository: String,
    /// Who wrote it.
    pub author: Author,
    /// When.
    pub at: Timestamp,
    /// The lines that are commands, in their order.
    pub commands: Vec<String>,
}

/// A command of a comment, from when it was taken to when it is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommentCommand {
    /// The host's id of the comment.
    pub comment: u64,
    /// Which of the comment's commands, counted from 0.
    pub place: usize,
    /// The number of the pull request.
    pub pull: u64,
    /// Who asks, as `<host>:<login>`.
    pub by: String,
    /// The line.
    pub line: String,
    /// When the comment was written.
    pub written_at: Timestamp,
    /// What there is to say of it; nothing, as long as nothing was done.
    pub answer: Option<String>,
}
