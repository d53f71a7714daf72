//! What a new head leaves of holds.

use crate::engine::records::Undecided;
use crate::engine::rollback::propose;
use crate::engine::transition::Transition;
use crate::model::hold::{Hold, Lifted};
use crate::model::ids::ServiceKey;
use crate::model::project::Project;
use crate::model::state::RepositoryState;

/// What people let go stays let go as far as the head pauses it, and rollbacks that it says itself are held no longer.
///
/// # Errors
/// If something must be read first.
pub(super) fn carry_over(
    transition: &mut Transition<'_>,
    state: &RepositoryState,
    project: &Project,
    lifted: &[Lifted],
) -> Result<(), Undecided> {
    let Some(known) = transition.records.holds.get(&project.name)?.cloned() else { return Ok(()) };
    let fulfilled = propose::fulfilled(state, project, &known);
    let is_fulfilled = |hold: &&Hold| fulfilled.contains(&hold.id);
    let services: Vec<ServiceKey> =
        known.holds.iter().filter(is_fulfilled).filter_map(|hold| hold.scope.one_service()).collect();
    if let Some(holds) = transition.records.holds.get_mut(&project.name)? {
        lifted.clone_into(&mut holds.lifted);
        holds.holds.retain(|hold| !fulfilled.contains(&hold.id));
    }
    services.into_iter().for_each(|service| transition.examine(service));
    Ok(())
}
