//! The task `rollback` of a shipyard, which launchway does itself: what a delivery has deployed of a service goes back to what
//! served before, and is not deployed again by a push that says the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{hand_over_to_beside, refuse_if_paused, restore, target};
use crate::engine::by_hand::{config_state, deployment};
use crate::engine::deployment::apply;
use crate::engine::records::{Needs, Records, Undecided};
use crate::engine::transition::Transition;
use crate::error::Failure;
use crate::model::cause::Cause;
use crate::model::event::Event;
use crate::model::ids::{ConfigKey, Digest, RunId};
use crate::model::object::Kind;
use crate::model::outcome::Outcome;
use crate::model::plan::{Change, Decision};
use crate::model::rollback::{Past, RollbackParts, RollbackTo};
use crate::model::run::{DeploymentRun, DoneBy, Run, SequenceRun};
use crate::model::shipyard::DEPLOYMENT_TASK;
use crate::model::state::{ConfigState, Quarantined, Version, spec_of};

/// What goes back, and what does not.
#[derive(Debug, Default, PartialEq, Eq)]
struct Part {
    /// Deployment configs, each with the version whose content comes back.
    to: BTreeMap<String, u32>,
    /// Why others stay as they are.
    left: Vec<String>,
    /// Why others cannot go back.
    cannot: Vec<String>,
}

/// Decides what a sequence run's task at `task` has gone back; the run hears that.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn decide_task(
    transition: &mut Transition<'_>,
    by: &RunId,
    task: usize,
) -> Result<(), Undecided> {
    let Some(run) = transition.records.runs.get(by)?.and_then(Run::sequence).cloned() else { return Ok(()) };
    let event = match part(transition.records, &run) {
        Ok(Part { to, left, cannot }) if cannot.is_empty() || !to.is_empty() => {
            Event::GoesBack { task, to, left: [left, cannot].concat().join("; ") }
        }
        Ok(Part { cannot, .. }) => Event::CannotGoBack { task, message: cannot.join("; ") },
        Err(Undecided::Refused(failure)) => Event::CannotGoBack { task, message: failure.one_line() },
        Err(needs) => return Err(needs),
    };
    transition.tell(by.clone(), event);
    Ok(())
}

/// What of a delivery serves goes back to the last version before that served.
fn part(records: &Records, run: &SequenceRun) -> Result<Part, Undecided> {
    let mut part = Part::default();
    let Some(delivery) = delivery(records, run)? else {
        let (stage, service) = (&run.service.stage, &run.service.service);
        part.left = vec![format!("nothing of {} was delivered last of `{service}` in {stage}", run.commit.short())];
        return Ok(part);
    };
    if let Some(waits) = only_waits(&delivery).filter(|_| run.delivery.is_some() || run.preceded.is_some()) {
        part.left = vec![format!("nothing of {} has failed: {waits}", delivery.whereabouts())];
        return Ok(part);
    }
    let mut needs = Needs::default();
    let is_its = |change: &&Change| change.key.kind == Kind::DeploymentConfig && !change.is_led();
    for change in delivery.changes().iter().filter(is_its) {
        needs.of(of_config(records, &delivery, &change.key.name, &mut part))?;
    }
    needs.none()?;
    if part == Part::default() {
        part.left = vec![format!("{} has deployed nothing", delivery.whereabouts())];
    }
    Ok(part)
}

/// The delivery that is gone back from: the run itself, or the last one to its slot. What only follows another sequence goes back
/// from its own revision alone: a newer one may have come since.
fn delivery(records: &Records, run: &SequenceRun) -> Result<Option<SequenceRun>, Undecided> {
    if run.delivery.is_some() {
        return Ok(Some(run.clone()));
    }
    let Some(last) = records.slots.get(&run.service)?.and_then(|slot| slot.last_delivery.as_ref()) else {
        return Ok(None);
    };
    let last = records.runs.get(&last.run)?.and_then(Run::sequence);
    Ok(last.filter(|last| run.preceded.is_none() || last.commit == run.commit).cloned())
}

/// What a delivery ended for that has deployed all that it could, where something else of it waits for a person.
fn only_waits(delivery: &SequenceRun) -> Option<&str> {
    let first = delivery.tasks.iter().find(|task| task.outcome.is_some_and(|outcome| !outcome.passes()))?;
    let is_deployed = first.deployments.iter().all(|deployment| deployment.outcome.is_some_and(Outcome::passes));
    let waits = first.name == DEPLOYMENT_TASK && first.outcome == Some(Outcome::ABORTED) && is_deployed;
    waits.then_some(&*first.message)
}

fn of_config(records: &Records, delivery: &SequenceRun, name: &str, part: &mut Part) -> Result<(), Undecided> {
    let key = delivery.service.config(name);
    let Some(state) = records.configs.get(&key)?.filter(|state| !state.removed) else {
        part.left.push(format!("`{name}` is deployed no longer"));
        return Ok(());
    };
    let Some(serving) = &state.serving else {
        part.left.push(format!("no version of `{name}` serves"));
        return Ok(());
    };
    if serving.commit != delivery.commit {
        let (number, of, not) = (serving.number, serving.commit.short(), delivery.commit.short());
        part.left.push(format!("version {number} of `{name}` serves, which {of} has brought and not {not}"));
        return Ok(());
    }
    match refuse_if_paused(records, state) {
        Err(Undecided::Refused(paused)) => {
            part.cannot.push(paused.one_line());
            return Ok(());
        }
        decided => decided?,
    }
    match target(records.history(&key)?, state) {
        Ok(number) => drop(part.to.insert(name.to_owned(), number)),
        Err(none) => part.cannot.push(none.to_string()),
    }
    Ok(())
}

/// The last version that served before and was something else, but for what was gone back from as well. An attempt at that which
/// failed has left what is gone back from.
fn target(history: &[Past], state: &ConfigState) -> Result<u32, Failure> {
    let is_bad = |content: &Digest| state.quarantined.iter().any(|bad| bad.content == *content);
    let good: Vec<Past> = history.iter().filter(|past| !is_bad(&past.content)).cloned().collect();
    let beside = state.beside.clone().filter(|beside| !is_bad(&beside.version.object.digest));
    let at_rest = ConfigState { attempted: None, beside, ..state.clone() };
    target::choose(&good, &at_rest, &RollbackTo::LastComplete, &target::Planned::new())
}

/// A deployment config goes back to a version, by a next one that has its content: what that deploys is the earlier revision's.
///
/// # Errors
/// If something must be read first, or that version is gone.
pub(in crate::engine) fn carry_out(
    transition: &mut Transition<'_>,
    by: &RunId,
    config: &str,
    to: u32,
) -> Result<(), Undecided> {
    let Some(run) = transition.records.runs.get(by)?.and_then(Run::sequence).cloned() else { return Ok(()) };
    let key = run.service.config(config);
    let state = config_state(transition.records, &key)?;
    let gone = || Failure::stalled(format!("version {to} of `{config}` is not in the history any more"));
    let earlier = deployment(transition.records, &key, to)?.ok_or_else(gone)?;
    let who = run.by.clone().unwrap_or_else(|| run.event_name());
    let cause = format!("rollback to version {to} by {who}");
    hand_over_to_beside(transition, &state, to, &format!("superseded by {cause}"))?;
    let serving = transition.records.configs.get(&key)?.and_then(|state| state.serving.as_ref());
    let serving = serving.map(|version| version.number);
    if let Some(bad) = state.serving.as_ref().filter(|bad| Some(bad.number) != serving) {
        quarantine(transition, &key, bad, &run.event_name())?; // it does not serve any more
    }
    let object = Arc::new(restore::restore(&state.object, &earlier.object, RollbackParts::ALL));
    let change = Change {
        cause,
        causes: vec![Cause::Rollback { by: who }],
        object: Some(object.clone()),
        ..Change::of(object.key.clone(), Decision::Deploy)
    };
    let parent = SequenceRun { commit: earlier.commit, is_rollback: true, planned_at: None, ..run };
    apply::start_version(transition, &parent, &change)
}

/// A deployment by which a task goes back has ended. What served until then is quarantined; if it serves on, nothing has happened.
pub(in crate::engine) fn ended(
    transition: &mut Transition<'_>,
    run: &DeploymentRun,
    passed: bool,
) -> Result<(), Undecided> {
    let Some(by) = asked_by(transition.records, run)? else { return Ok(()) };
    let now = transition.now;
    let Some(state) = transition.records.configs.get_mut(&run.config)? else { return Ok(()) };
    let Some(serving) = state.serving.clone() else { return Ok(()) };
    if passed {
        // What stood beside has served since it began.
        let is_back = serving.commit == run.commit && serving.object.template() == run.object.template();
        return if is_back { Ok(()) } else { quarantine(transition, &run.config, &serving, &by) };
    }
    let Ok(spec) = spec_of(&serving.object) else { return Ok(()) };
    state.declare(&serving.object, &spec, &serving.commit, now);
    state.wanted.replicas = state.replicas(&spec);
    state.attempted = None;
    Ok(())
}

fn quarantine(transition: &mut Transition<'_>, config: &ConfigKey, bad: &Version, by: &str) -> Result<(), Undecided> {
    let since = transition.now;
    if let Some(state) = transition.records.configs.get_mut(config)? {
        let reason = format!("{by} has rolled back version {}", bad.number);
        state.quarantine(Quarantined { content: bad.object.digest.clone(), reason, since });
    }
    Ok(())
}

/// The sequence whose task goes back by a deployment, if one does.
fn asked_by(records: &Records, run: &DeploymentRun) -> Result<Option<String>, Undecided> {
    if !run.is_rollback {
        return Ok(None);
    }
    let by = records.runs.get(&run.parent)?.and_then(Run::sequence).filter(|by| !by.is_rollback);
    Ok(by.map(SequenceRun::event_name))
}

/// Whether a task of a run has had something gone back, however that ended.
pub(super) fn has_gone_back(run: &SequenceRun) -> bool {
    let tasks = run.tasks.iter().enumerate();
    tasks.filter(|(_, task)| !task.deployments.is_empty()).any(|(index, _)| run.done_by(index) == DoneBy::Rollback)
}

#[cfg(test)]
mod tests;
