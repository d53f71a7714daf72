//! The port to where proposed rollbacks are made: the branch of a repository, and the pull requests of its host.

use async_trait::async_trait;

use crate::error::Result;
use crate::model::proposal::Proposal;
use crate::model::state::RepositoryState;

/// Brings proposals to where people decide about them.
#[async_trait]
pub trait Proposals: Send + Sync {
    /// Makes a proposal, or hears what became of it; says what it is now. Doing it again changes nothing.
    ///
    /// # Errors
    /// `Transient` if the remote or its host cannot be reached. What a person has to put right is said in the proposal.
    async fn bring(&self, repository: &RepositoryState, proposal: &Proposal) -> Result<Proposal>;
}

/// Where nothing is proposed.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProposals;

#[async_trait]
impl Proposals for NoProposals {
    async fn bring(&self, _repository: &RepositoryState, proposal: &Proposal) -> Result<Proposal> {
        Ok(proposal.clone())
    }
}

/// The proposal of a repository on a branch, with what is known of the repository.
pub(crate) fn found(state: RepositoryState, branch: &str) -> Option<(RepositoryState, Proposal)> {
    let proposal = state.proposals.iter().find(|proposal| proposal.branch == branch).cloned()?;
    Some((state, proposal))
}
