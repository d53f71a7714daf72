//! Going back to what ran before: an emergency, which waits for nothing that is under way.
//!
//! `target` says to which version, `restore` what of it comes back, `start` whether it may and with which runs,
//! `group` what the end of one part means for the others, and `evaluate` what people should know before and after. `task` does the
//! same where a shipyard says so.
//!
//! `propose` has Git say again what ran before instead, as a pull request; `files` says how its files change for that, and
//! `companions` what else comes back with it.

pub mod companions;
pub mod evaluate;
pub mod files;
mod group;
pub mod propose;
mod restore;
mod start;
mod target;
mod task;
mod undo;

use crate::engine::by_hand::is_paused;
use crate::engine::deployment::{apply, beside};
use crate::engine::holds;
use crate::engine::records::{Records, Undecided};
use crate::engine::transition::Transition;
use crate::error::Failure;
use crate::model::hold::{HoldKind, HoldScope};
use crate::model::ids::{RunId, ServiceKey};
use crate::model::object::Kind;
use crate::model::outcome::Outcome;
use crate::model::run::Run;
use crate::model::state::ConfigState;

pub use start::{RolledBack, Started, roll_back};
pub(in crate::engine) use task::{carry_out, decide_task, ended as task_ended};
pub use undo::undo;

/// A sequence run has ended. Once somebody has gone back, Git says something else than what serves: the head is planned on
/// that, so that its commit tells what is held.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn ended(transition: &mut Transition<'_>, run: &RunId) -> Result<(), Undecided> {
    let Some(Run::Sequence(ended)) = transition.records.runs.get(run)? else { return Ok(()) };
    let went_back = (ended.is_rollback && ended.outcome.is_some_and(Outcome::passes)) || task::has_gone_back(ended);
    let repository = ended.repository.clone();
    if went_back {
        transition.plan_again(&repository)?;
    }
    group::ended(transition, run)
}

/// In the words of `oc` and `kubectl`, which refuse it too, whoever has paused it.
fn refuse_if_paused(records: &Records, state: &ConfigState) -> Result<(), Undecided> {
    if !is_paused(records, state)? {
        return Ok(());
    }
    let kind = if state.object.declared_kind() == Kind::Deployment { "deployment" } else { "deployment config" };
    let hint = format!(
        "`launchway rollout resume {} -s {}` lets it go on; then go back",
        state.object.target(),
        state.key.stage
    );
    Err(Failure::stalled(format!("cannot rollback a paused {kind}")).hint(hint).into())
}

/// The deployments under way in a slot give way: a rollback exchanges their pods for its own, and does not wait until what
/// served before is back. Its turn in the slot ends the rest of the run.
fn give_way(transition: &mut Transition<'_>, service: &ServiceKey, reason: &str) -> Result<(), Undecided> {
    let holder = transition.records.slots.get(service)?.and_then(|slot| slot.holder.clone());
    let Some(holder) = holder else { return Ok(()) };
    let Some(Run::Sequence(run)) = transition.records.runs.get(&holder)?.cloned() else { return Ok(()) };
    let open = run.tasks.iter().flat_map(|task| &task.deployments).filter(|deployment| deployment.outcome.is_none());
    open.into_iter().try_for_each(|open| apply::give_way(transition, &service.config(&open.config), reason))
}

/// The service whose deployment configs go back, each to a version, waits from then on: the next push must not undo that.
fn hold<'a>(
    transition: &mut Transition<'_>,
    service: &ServiceKey,
    members: impl IntoIterator<Item = (&'a str, u32)>,
    by: &str,
) -> Result<(), Undecided> {
    let told = members.into_iter().map(|(name, version)| format!("a rollback of {name} to version {version}"));
    let reason = format!("{}; release it when Git says what should run", told.collect::<Vec<_>>().join(" and "));
    holds::place(transition, HoldKind::Rollback, HoldScope::of(service.clone()), reason, by).map(drop)
}

/// A version that stands beside the one that serves has its traffic from the moment in which somebody goes back to it.
fn hand_over_to_beside(
    transition: &mut Transition<'_>,
    state: &ConfigState,
    target: u32,
    reason: &str,
) -> Result<(), Undecided> {
    if state.beside.as_ref().is_none_or(|beside| beside.version.number != target) {
        return Ok(());
    }
    apply::give_way(transition, &state.key, reason)?;
    if let Some(state) = transition.records.configs.get_mut(&state.key)? {
        beside::go_back_to_beside(state);
    }
    Ok(())
}
