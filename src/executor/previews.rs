//! The port to the open pull requests of a repository's host, where is told what merging them would do.

use async_trait::async_trait;

use crate::error::{Failure, Result};
use crate::model::preview::Preview;
use crate::model::state::RepositoryState;

/// What was told, and what could not be told yet.
#[derive(Debug, Default)]
pub struct Looked {
    /// What is told now of the pull requests that are open.
    pub previews: Vec<Preview>,
    /// Why something is not told yet.
    pub failure: Option<Failure>,
}

/// Looks at the open pull requests of repositories.
#[async_trait]
pub trait Previews: Send + Sync {
    /// Tells of every open pull request for the watched branch what merging it would do, unless that was told. Doing it again
    /// shows nothing twice.
    ///
    /// # Errors
    /// `Transient` if the remote or its host cannot be reached.
    async fn look(&self, repository: &RepositoryState) -> Result<Looked>;
}

/// Where there are no pull requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPreviews;

#[async_trait]
impl Previews for NoPreviews {
    async fn look(&self, repository: &RepositoryState) -> Result<Looked> {
        Ok(Looked { previews: repository.previews.clone(), failure: None })
    }
}
