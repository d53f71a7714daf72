//! What need not be remembered any more, because nothing of it is there.

use std::collections::BTreeSet;

use crate::engine::deployment::beside;
use crate::engine::names;
use crate::engine::records::{Records, Undecided};
use crate::engine::transition::Transition;
use crate::model::ids::ConfigKey;
use crate::model::state::{Beside, ConfigState, Standing};
use crate::model::time::Timestamp;

/// The last pod of a deployment config that vanished is gone: so is its record, unless it has come back.
pub(in crate::engine) fn forget(transition: &mut Transition<'_>, config: &ConfigKey) -> Result<(), Undecided> {
    let state = transition.records.configs.get(config)?.filter(|state| state.removed);
    let Some(namespace) = state.map(|state| state.destination.namespace.clone()) else { return Ok(()) };
    transition.records.configs.put(config, None)?;
    names::left(transition, &namespace)
}

/// Versions of which nothing is there any more are forgotten, as far as they were only told to go; `generation` is the value of
/// `Wanted` that this was seen for.
pub(in crate::engine) fn forget_versions(
    records: &mut Records,
    config: &ConfigKey,
    generation: u64,
    versions: &BTreeSet<u32>,
    now: Timestamp,
) -> Result<(), Undecided> {
    if records.configs.get(config)?.is_some_and(|state| state.wanted.generation == generation)
        && let Some(state) = records.configs.get_mut(config)?
    {
        have_gone(state, versions, now);
    }
    Ok(())
}

fn have_gone(state: &mut ConfigState, versions: &BTreeSet<u32>, now: Timestamp) {
    let is_over = |beside: &Beside| matches!(beside.standing, Standing::Spare(until) if until <= now);
    let over = state.beside.take_if(|beside| is_over(beside) && versions.contains(&beside.version.number));
    if over.is_some() && state.wanted.owner.is_none() {
        beside::complete(state);
    }
    state.wanted.silenced.retain(|version| !versions.contains(version));
}
