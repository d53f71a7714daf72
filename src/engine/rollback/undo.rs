//! `rollout undo`: the template of an earlier version, and nothing else of it.

use std::sync::Arc;

use crate::engine::by_hand::{ByHand, by_hand, deployment, refuse_if_down, rolled_out};
use crate::engine::deployment::apply::next_version;
use crate::engine::records::{Records, Undecided};
use crate::engine::rollback::start::runs_already;
use crate::engine::rollback::{RolledBack, give_way, hand_over_to_beside, hold, refuse_if_paused, target};
use crate::engine::transition::Transition;
use crate::error::Failure;
use crate::manifest::digest;
use crate::model::deployment_config::{CONTROLLERS, CONTROLLERS_POINTER};
use crate::model::ids::ConfigKey;
use crate::model::object::Object;
use crate::model::rollback::{RollbackParts, RollbackTo};
use crate::model::state::ConfigState;
use crate::plan::generated;

/// Deploys an earlier version's template as a new version, and holds the service so that the next push does not undo
/// it; says what that means. What is under way gives way at once. A version that stands beside the one that serves
/// has its traffic from the same moment.
///
/// # Errors
/// If there is no such version, or it is what serves and nothing is under way.
pub fn undo(
    transition: &mut Transition<'_>,
    config: &ConfigKey,
    to: Option<u32>,
    by: &str,
) -> Result<RolledBack, Undecided> {
    let state = rolled_out(transition.records, config)?;
    refuse_if_down(transition.records, &state)?;
    refuse_if_paused(transition.records, &state)?;
    let history = transition.records.history(config)?;
    let target = match to {
        Some(version) => version, // refused below in the words of `oc`
        None => target::choose(history, &state, &RollbackTo::LastComplete, &target::Planned::new())?,
    };
    let never_served = history.iter().any(|past| past.version == target && !past.is_complete);
    let gone = || Failure::stalled("unable to find the specified revision").hint("`launchway history` lists them");
    let earlier = deployment(transition.records, config, target)?.ok_or_else(gone)?;
    let object = Arc::new(with_template_of(&state, &earlier.object).ok_or_else(gone)?);
    if let Some(serving) = serves_already(transition.records, &state, &object)? {
        let hint = "`--to-revision N` chooses another version; `launchway history` lists them";
        return Err(Failure::stalled(runs_already(&state, serving, target)).hint(hint).into());
    }
    let cause = format!("rollback to version {target} by {by}");
    let reason = format!("superseded by {cause}");
    give_way(transition, &state.service_key(), &reason)?;
    hand_over_to_beside(transition, &state, target, &reason)?;
    // What it deploys is the earlier revision's, and so is its result.
    let (commit, objects) = (earlier.commit.clone(), vec![(object.clone(), cause.clone())]);
    let asked = ByHand { commit, objects, cause: cause.clone(), by, is_rollback: true };
    let run = by_hand(transition, &state, asked)?;
    transition.start(run)?;
    hold(transition, &state.service_key(), [(config.name.as_str(), target)], by)?;
    Ok(RolledBack {
        to: target,
        never_served,
        version: next_version(transition.records, config)?,
        object,
        parts: RollbackParts { template: true, ..RollbackParts::NOTHING },
        commit: earlier.commit,
        created_at: earlier.created_at,
        cause,
        state,
    })
}

/// What is declared, with the template of an earlier version and those of its replication controllers.
fn with_template_of(state: &ConfigState, earlier: &Object) -> Option<Object> {
    let template = earlier.template()?;
    let mut object = Object::clone(&state.object);
    let mut content = object.content.value();
    if let Some(spec) = content.get_mut("spec").and_then(serde_json::Value::as_object_mut) {
        spec.insert("template".into(), template);
        match earlier.content.at(CONTROLLERS_POINTER) {
            Some(controllers) => spec.insert(CONTROLLERS.to_owned(), controllers),
            None => spec.remove(CONTROLLERS),
        };
    }
    generated::mark_as_in(&mut content, &earlier.content.value());
    digest::exchange(&mut object, content);
    Some(object)
}

/// The version that serves just that already, if nothing else is under way that an undo would end, and nothing but that serves.
fn serves_already(records: &Records, state: &ConfigState, object: &Object) -> Result<Option<u32>, Undecided> {
    let slot = records.slots.get(&state.service_key())?;
    let is_at_rest = slot.is_none_or(|slot| slot.open().next().is_none()) && state.open_attempt().is_none();
    let is_alone = state.beside.is_none() && state.inherited.is_none();
    let serving =
        state.serving.as_ref().filter(|serving| is_at_rest && is_alone && serving.object.digest == object.digest);
    Ok(serving.map(|serving| serving.number))
}

#[cfg(test)]
mod tests;
