//! The port to what revisions declare, for whoever deletes what nobody declares any more.

use async_trait::async_trait;

use crate::error::Result;
use crate::model::ids::{CommitId, RepositoryName, StageName};
use crate::model::object::ObjectKey;

/// What revisions declare.
#[async_trait]
pub trait Declarations: Send + Sync {
    /// Whether a revision wants an object to be there: it declares it, or deletes nothing in that stage.
    ///
    /// # Errors
    /// If the revision cannot be read.
    async fn declares(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
        stage: &StageName,
        key: &ObjectKey,
    ) -> Result<bool>;
}
