//! What is there and no record names: the store that knew it was lost, or is older than it.

use crate::model::state::RepositoryState;

/// Whether what no record names may go: only once the repository's head was applied in this life of the store, nothing of
/// it is under way, and that head does not declare it either. What a delivery that failed should have brought is declared
/// all the same, and serves on.
pub fn may_go(repository: &RepositoryState, is_idle: bool, is_declared: bool) -> bool {
    repository.down || is_idle && repository.has_applied_its_head() && !is_declared
}
