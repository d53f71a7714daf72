//! The port to what revisions declare, for whoever deletes what nobody declares any more.

use std::sync::Arc;

use async_trait::async_trait;

use crate::error::Result;
use crate::model::ids::{CommitId, RepositoryName};
use crate::model::project::Project;

/// What revisions declare.
#[async_trait]
pub trait Declarations: Send + Sync {
    /// What a revision declares; nothing, if its files are broken or its repository is not watched any more.
    ///
    /// # Errors
    /// If the repository cannot be read.
    async fn project(&self, repository: &RepositoryName, commit: &CommitId) -> Result<Option<Arc<Project>>>;
}
