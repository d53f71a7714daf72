//! The slot of a service in a stage: who may change it now.
//!
//! Decided by level on all open runs of the slot, whenever one of them moved: nobody has to be woken.

use crate::model::event::Event;
use crate::model::hold::Hold;
use crate::model::ids::RunId;
use crate::model::outcome::Outcome;
use crate::model::plan::Change;
use crate::model::run::{SequenceRun, SequenceState};
use crate::model::shipyard::DEPLOYMENT_TASK;
use crate::model::slot::{Delivered, SlotState};
use crate::plan::procedure;

/// What a slot becomes, given all runs that had it or waited for it.
pub fn seated(slot: &SlotState, runs: &[SequenceRun]) -> SlotState {
    let (ended, open): (Vec<&SequenceRun>, Vec<&SequenceRun>) = runs.iter().partition(|run| run.ended_at.is_some());
    let (mut waiting, active): (Vec<&SequenceRun>, Vec<&SequenceRun>) =
        open.into_iter().partition(|run| run.state == SequenceState::Queued);
    waiting.sort_by_key(|run| (run.created_at, &run.id));
    let counts = |run: &&&SequenceRun| run.planned_content().is_some() && run.outcome != Some(Outcome::SUPERSEDED);
    let last = ended.iter().filter(counts).max_by_key(|run| (run.ended_at, &run.id));
    SlotState {
        service: slot.service.clone(),
        holder: active.first().map(|run| run.id.clone()),
        waiting: waiting.into_iter().map(|run| run.id.clone()).collect(),
        last_delivery: last.and_then(|run| delivered_by(run)).or_else(|| slot.last_delivery.clone()),
    }
}

fn delivered_by(run: &SequenceRun) -> Option<Delivered> {
    let content = run.planned_content()?.clone();
    Some(Delivered { run: run.id.clone(), content, procedure: procedure(&run.procedure) })
}

/// What the open runs of a repository that was taken down are told. Not `Cancelled`, which would wait for a retry: once
/// it is up again, what Git says is deployed.
pub fn clear(runs: &[&SequenceRun], by: &str) -> Vec<(RunId, Event)> {
    let open = runs.iter().filter(|run| !matches!(run.state, SequenceState::Ending { .. } | SequenceState::Ended));
    open.map(|run| (run.id.clone(), taken_down(by))).collect()
}

/// What a run hears whose repository was taken down.
pub fn taken_down(by: &str) -> Event {
    Event::Cancel { outcome: Outcome::SUPERSEDED, reason: format!("taken down by {by}") }
}

/// What the open runs of a slot are told; `runs` are oldest first. Nothing, if all know already.
///
/// Of queued deliveries the newest counts, and those that it replaces are superseded; a rollback comes before everything
/// else.
pub fn decide(runs: &[&SequenceRun], holds: &[Hold]) -> Vec<(RunId, Event)> {
    let (queued, active): (Vec<&SequenceRun>, Vec<&SequenceRun>) =
        runs.iter().copied().partition(|run| run.state == SequenceState::Queued);
    let (others, queued): (Vec<&SequenceRun>, Vec<&SequenceRun>) =
        queued.into_iter().partition(|run| run.delivery.is_none());
    let (mut rollbacks, mut deliveries): (Vec<&SequenceRun>, Vec<&SequenceRun>) =
        queued.into_iter().partition(|run| run.is_rollback);
    let (rollback, delivery) = (rollbacks.pop(), deliveries.pop());
    let (older, kept): (Vec<&SequenceRun>, Vec<&SequenceRun>) =
        deliveries.into_iter().partition(|run| delivery.is_some_and(|newest| replaces(newest, run)));
    // What is not replaced has its turn in the order in which it came.
    let others: Vec<&SequenceRun> = others.into_iter().chain(kept).collect();
    let first = others.iter().copied().chain(delivery).min_by_key(|run| (run.created_at, &run.id));
    let Some(next) = rollback.or(first) else { return Vec::new() };
    let mut told = Vec::new();
    for (older, newest) in [(rollbacks, rollback), (older, delivery)] {
        let superseded =
            |newest: &SequenceRun| older.iter().map(|run| (run.id.clone(), superseded_by(newest))).collect();
        told.extend(newest.map_or_else(Vec::new, superseded));
    }
    let comes_first = match rollback {
        Some(rollback) => format!("waits for the {}", rollback.cause),
        None => format!("waits for {} of {}", next.sequence(), next.commit.short()),
    };
    let later = others.into_iter().chain(delivery).filter(|run| run.id != next.id);
    told.extend(later.filter_map(|run| waiting(run, comes_first.clone())));
    let covers = |hold: &&Hold| {
        hold.scope.covers(&next.service.project, &next.service.stage, &next.service.service) && !next.is_rollback
    };
    match (holds.iter().find(covers), active.first()) {
        (Some(hold), _) => told.extend(waiting(next, format!("held by {}: {}", hold.by, hold.reason))),
        (None, None) => told.push((next.id.clone(), Event::Admitted)),
        (None, Some(active)) => {
            // What is next may wait its turn while what comes after it replaces what is being deployed.
            if let Some(newer) = [Some(next), delivery].into_iter().flatten().find(|newer| gives_way(active, newer)) {
                told.push((active.id.clone(), superseded_by(newer)));
            }
            let reason = format!("waits for {} of {} to end", active.sequence(), active.commit.short());
            told.extend(waiting(next, reason));
        }
    }
    told
}

/// Whether a run, which was not told to end yet, ends for the next one. What replaces all that is being deployed takes its
/// place; in any other task a run goes on to its end, so that what it has deployed is also tested. A rollback waits for
/// nothing.
fn gives_way(run: &SequenceRun, next: &SequenceRun) -> bool {
    match run.state {
        SequenceState::Running { task } => {
            let deploys = run.tasks.get(task).is_some_and(|task| task.name == DEPLOYMENT_TASK);
            next.is_rollback || (deploys && replaces(next, run))
        }
        SequenceState::Queued | SequenceState::Ending { .. } | SequenceState::Ended => false,
    }
}

/// Whether nothing of a run is left undone if the next one takes its place. A newer revision has the last word on those
/// before; what only runs tasks brings nothing, and what a person asks for perhaps only one deployment config of several.
fn replaces(next: &SequenceRun, run: &SequenceRun) -> bool {
    let revisions_alone = next.by.is_none() && run.by.is_none();
    let digest = |change: &Change| change.object.as_ref().map(|object| object.digest.clone());
    let brings = |old: &Change| {
        let replaces = |new: &Change| new.decision.does_something() || digest(new) != digest(old);
        next.changes().iter().any(|new| new.key == old.key && replaces(new))
    };
    next.delivery.is_some() && (revisions_alone || run.changes().iter().all(brings))
}

fn superseded_by(newer: &SequenceRun) -> Event {
    let by = if newer.is_rollback { &newer.cause } else { newer.commit.short() };
    Event::Cancel { outcome: Outcome::SUPERSEDED, reason: format!("superseded by {by}") }
}

fn waiting(run: &SequenceRun, reason: String) -> Option<(RunId, Event)> {
    (run.message != reason).then(|| (run.id.clone(), Event::Waiting { reason }))
}
