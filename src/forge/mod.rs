//! Git hosting: where results are written back to, and how hosts tell us of pushes.
//!
//! This file is the port. Each host has a folder of its own; hosts never see each other. What they share stands beside
//! them: [`address`] (which host, and where its API is), [`text`] (what fits on one line),
//! [`retry_after`], and [`webhook`] (whose call it is, whether it is authentic, what it says).

pub mod address;
pub mod gitea;
pub mod github;
pub mod plain;
pub mod retry_after;
pub mod text;
pub mod webhook;

use async_trait::async_trait;

use crate::error::Result;
use crate::model::commit_status::CommitStatus;

/// Writes statuses of commits.
#[async_trait]
pub trait StatusWriter: Send + Sync {
    /// Writes statuses, in order. Writing the same ones again changes nothing that a reader sees. Several commits may
    /// be mixed. `Stalled` means that no retry will help (a token without rights, a commit that is gone).
    async fn write(&self, statuses: &[CommitStatus]) -> Result<()>;

    /// How many statuses one call may take; more are split.
    fn batch(&self) -> usize;
}
