//! The port to what people ask for in comments on pull requests, and to where that is answered.

use async_trait::async_trait;

use crate::error::Result;
use crate::model::comment::CommentCommand;
use crate::model::ids::RepositoryName;

/// Does what people ask for in comments.
#[async_trait]
pub trait Comments: Send + Sync {
    /// Carries a command out, or says in its pull request what came of it: whichever is next. Gives what is left to do. What is
    /// carried out has its answer in the same transaction, so that neither is done twice, nor one without the other.
    ///
    /// # Errors
    /// `Transient` if the host or the store cannot be reached, `Stalled` if the answer cannot be written before a person acts.
    async fn go_on(&self, repository: &RepositoryName, command: &CommentCommand) -> Result<Option<CommentCommand>>;
}

/// Where nobody comments.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoComments;

#[async_trait]
impl Comments for NoComments {
    async fn go_on(&self, _repository: &RepositoryName, _command: &CommentCommand) -> Result<Option<CommentCommand>> {
        Ok(None)
    }
}
