//! The forge's port: where results are written back to.

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
