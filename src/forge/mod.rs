//! Git hosting: where results are written back to, and how hosts tell us of pushes.
//!
//! This file is the port. Each host has a folder of its own; hosts never see each other. What they share stands beside
//! them: [`address`] (which host, and where its API is), `api` (requests to it), `ask` (what is asked of it), `hosted` (how
//! statuses are written to any), `deployment` (and what their environments have), [`pull_request`], [`registration`] (of
//! webhooks), `paging` (whether more follows), [`credential`] (what opens a host), `budget` (how much may be written), `redirect` (where the token may go), [`retry_after`], [`text`] (what fits on
//! one line), and [`webhook`] (whose call it is, whether it is authentic, what it says).

pub mod address;
mod answer;
mod api;
mod ask;
pub mod azure;
pub mod bitbucket;
mod budget;
pub mod credential;
mod deployment;
pub mod gitea;
pub mod github;
pub mod gitlab;
mod hosted;
mod paging;
pub mod plain;
pub mod pull_request;
mod redirect;
pub mod registration;
pub mod retry_after;
pub mod text;
pub mod webhook;

pub use hosted::HostSettings;

use std::collections::BTreeSet;

use async_trait::async_trait;

use crate::error::{Class, Failure};
use crate::model::commit_status::CommitStatus;
use crate::model::ids::{StageName, WriterName};

/// Writes statuses of commits.
#[async_trait]
pub trait StatusWriter: Send + Sync {
    /// What it is called; what it has written is remembered under this name, so that it never changes.
    fn name(&self) -> WriterName;

    /// Writes statuses, in order. Writing the same ones again changes nothing that a reader sees. Several commits may
    /// be mixed; those that are not refused are written.
    async fn write(&self, statuses: &[CommitStatus]) -> Result<(), Refusal>;

    /// How many statuses one call may take; more are split.
    fn batch(&self) -> usize;

    /// Whether readers see more than a line of what it writes; else it is not told.
    fn shows_details(&self) -> bool {
        false
    }

    /// What it writes.
    fn subject(&self) -> Subject {
        Subject::Statuses
    }
}

/// What a writer writes of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// All statuses.
    Statuses,
    /// What the environments of a host show: [`crate::report::deployments`].
    Deployments,
}

/// Why statuses were not written, and what that says about others.
#[derive(Debug)]
pub enum Refusal {
    /// The commit cannot have them, and no retry will help: it is gone from the host.
    Commit(Failure),
    /// Nothing is taken until a person acts: a token without rights.
    All(Failure),
    /// Some environments take no deployment until a person acts: the others were told of theirs.
    Environments {
        /// Those that do not.
        refused: BTreeSet<StageName>,
        /// Why.
        failure: Failure,
    },
    /// The host is busy, broken or out of reach: the same may be taken later.
    Busy(Failure),
}

impl Refusal {
    /// What is wrong, for people.
    pub fn failure(&self) -> &Failure {
        match self {
            Refusal::Commit(failure) | Refusal::All(failure) | Refusal::Busy(failure) => failure,
            Refusal::Environments { failure, .. } => failure,
        }
    }
}

impl Refusal {
    /// What is wrong, for whoever asks for nothing else.
    pub(crate) fn into_failure(self) -> Failure {
        match self {
            Refusal::Commit(failure) | Refusal::All(failure) | Refusal::Busy(failure) => failure,
            Refusal::Environments { failure, .. } => failure,
        }
    }
}

impl From<Failure> for Refusal {
    /// For what is refused before any commit is read.
    fn from(failure: Failure) -> Self {
        match failure.class() {
            Class::Stalled => Refusal::All(failure),
            Class::Transient | Class::Waiting => Refusal::Busy(failure),
        }
    }
}
