//! Going back to what ran before: an emergency, which waits for nothing that is under way.

use crate::engine::by_hand::{ByHand, by_hand, config_state, deployment, refuse_if_down};
use crate::engine::deployment::{apply, beside};
use crate::engine::holds;
use crate::engine::records::{Records, Undecided};
use crate::engine::transition::Transition;
use crate::error::Failure;
use crate::manifest::digest;
use crate::model::hold::{HoldKind, HoldScope};
use crate::model::ids::{ConfigKey, ServiceKey};
use crate::model::object::{Kind, Object};
use crate::model::run::{Phase, Run};
use crate::model::state::ConfigState;

/// In the words of `oc` and `kubectl`, which refuse it too.
fn refuse_if_paused(state: &ConfigState) -> Result<(), Failure> {
    if !state.spec().is_ok_and(|spec| spec.paused) {
        return Ok(());
    }
    let kind = if state.object.declared_kind() == Kind::Deployment { "deployment" } else { "deployment config" };
    Err(Failure::stalled(format!("cannot rollback a paused {kind}")).hint("set `paused: false` and push; then go back"))
}

/// Deploys an earlier version's template as a new version, and holds the service so that the next push does not undo
/// it; says which version is restored. What is under way gives way at once. A version that stands beside the one that serves
/// has its traffic from the same moment.
///
/// # Errors
/// If there is no such version.
pub fn undo(transition: &mut Transition<'_>, config: &ConfigKey, to: Option<u32>, by: &str) -> Result<u32, Undecided> {
    let state = config_state(transition.records, config)?;
    refuse_if_down(transition.records, &state)?;
    refuse_if_paused(&state)?;
    let target = match to {
        Some(version) => version,
        None => last_complete_before(transition.records, &state)?,
    };
    let gone = || Failure::stalled("unable to find the specified revision").hint("`launchway history` lists them");
    let earlier = deployment(transition.records, config, target)?.ok_or_else(gone)?;
    let template = earlier.object.template().ok_or_else(gone)?;
    let mut object = Object::clone(&state.object);
    let mut content = object.content.value();
    if let Some(spec) = content.get_mut("spec").and_then(serde_json::Value::as_object_mut) {
        spec.insert("template".into(), template);
    }
    digest::exchange(&mut object, content);
    let cause = format!("rollback to version {target} by {by}");
    give_way(transition, &state.service_key(), &format!("superseded by {cause}"))?;
    if state.beside.as_ref().is_some_and(|beside| beside.version.number == target) {
        apply::give_way(transition, config, &format!("superseded by {cause}"))?;
        if let Some(state) = transition.records.configs.get_mut(config)? {
            beside::go_back_to_beside(state);
        }
    }
    // What it deploys is the earlier revision's, and so is its result.
    let (commit, object) = (earlier.commit, object.into());
    let run = by_hand(transition, &state, ByHand { commit, object, cause, by, is_rollback: true })?;
    transition.start(run)?;
    let scope = HoldScope {
        project: config.project.clone(),
        stage: Some(config.stage.clone()),
        service: Some(state.service.clone()),
    };
    let name = &config.name;
    let reason = format!("{name} was rolled back to version {target}; release it when Git says what should run");
    holds::place(transition, HoldKind::Rollback, scope, reason, by)?;
    Ok(target)
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

fn last_complete_before(records: &Records, state: &ConfigState) -> Result<u32, Undecided> {
    let serving = state.serving.as_ref().map(|serving| serving.number);
    if let (Some(serving), Some(_)) = (serving, &state.attempted) {
        return Ok(serving); // the latest one failed: what serves is what to go back to
    }
    if let Some(beside) = &state.beside {
        return Ok(beside.version.number); // it is there, so that going back takes no time
    }
    for version in (1..=state.latest_version).rev().filter(|version| Some(*version) != serving) {
        if deployment(records, &state.key, version)?.is_some_and(|run| run.phase == Phase::Complete) {
            return Ok(version);
        }
    }
    Err(Failure::stalled(format!("no previous deployment exists for `{}`", state.key.name)).into())
}

#[cfg(test)]
mod tests;
