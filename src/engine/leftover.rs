//! What is there and no record names: the store that knew it was lost, or is older than it.

use crate::model::ids::StageName;
use crate::model::object::ObjectKey;
use crate::model::plan::{Decision, Plan};
use crate::model::state::RepositoryState;

/// Whether what no record names may go: only once the repository was synced in this life of the store, nothing of it is
/// under way, and its applied revision, whose plan this is, does not want it either.
pub fn may_go(
    repository: &RepositoryState,
    is_idle: bool,
    applied: Option<&Plan>,
    stage: &StageName,
    key: &ObjectKey,
) -> bool {
    let wants = |plan: &Plan| {
        let parts = plan.stage(stage).into_iter().flat_map(|stage| &stage.services);
        parts.flat_map(|part| &part.changes).any(|change| &change.key == key && change.decision != Decision::Delete)
    };
    repository.down || is_idle && repository.seen.is_some() && applied.is_some_and(|plan| !wants(plan))
}
