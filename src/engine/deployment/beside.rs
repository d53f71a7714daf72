//! What stands beside the version that serves: the other side of A/B, and what blue/green keeps for a while.

use std::collections::BTreeMap;

use crate::model::run::DeploymentRun;
use crate::model::state::{Beside, ConfigState, Standing};
use crate::model::time::Timestamp;
use crate::model::wanted::{Target, Wanted};

/// What a deployment that has completed leaves beside its version, of what served before.
pub(super) fn left_by(state: &ConfigState, run: &DeploymentRun, now: Timestamp) -> Option<Beside> {
    let strategy = &run.spec.strategy;
    let standing = match (strategy.ab_weight(), strategy.keep()) {
        _ if run.is_rollback => None,
        (Some(weight), _) => Some(Standing::Part(100_u32.saturating_sub(weight))),
        (None, Some(keep)) if !keep.is_zero() => Some(Standing::Spare(now + keep)),
        (None, _) => None,
    }?;
    let version = state.exchanged().filter(|exchanged| Some(exchanged.number) == run.previous)?.clone();
    Some(Beside { version, standing })
}

/// What serves is wanted, and nothing else: what stood against it gets no traffic any more.
pub(super) fn want_what_serves(state: &mut ConfigState) {
    aim(state, true);
    state.wanted.fallback = None;
    state.wanted.stays = false;
    state.wanted.rests = state.is_test();
    state.wanted.generation += 1;
}

/// A version that stands beside the one that serves serves in its place, at once: its pods are there. As soon as one of them
/// answers, none of the other version does.
pub(in crate::engine) fn go_back_to_beside(state: &mut ConfigState) {
    let Some(Beside { version, .. }) = state.beside.take() else { return };
    let targets = BTreeMap::from([(version.number, Target::ALL.with_share(1))]);
    state.serve(version, true);
    state.wanted.silenced = state.wanted.silenced_by(&targets, false);
    state.wanted = Wanted { targets, fallback: None, generation: state.wanted.generation + 1, ..state.wanted.clone() };
}

/// The version that serves gets everything that one beside it has.
pub(in crate::engine) fn promote(state: &mut ConfigState) {
    state.beside = None;
    aim(state, false);
    state.wanted.generation += 1;
}

/// What a deployment wanted that has completed becomes what is wanted from now on.
pub(super) fn complete(state: &mut ConfigState) {
    aim(state, false);
}

fn aim(state: &mut ConfigState, goes_back: bool) {
    let targets = state.settled_targets();
    state.wanted.silenced = state.wanted.silenced_by(&targets, goes_back);
    state.wanted.targets = targets;
}
