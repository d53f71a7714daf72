//! The slot of a service in a stage: who may change it now.
//!
//! Decided by level on all open runs of the slot, so that a crash between two of them costs nothing.

use crate::model::event::Event;
use crate::model::hold::Hold;
use crate::model::ids::RunId;
use crate::model::outcome::Verdict;
use crate::model::run::{SequenceRun, SequenceState};
use crate::model::shipyard::DEPLOYMENT_TASK;

/// What the open runs of a slot are told; `runs` are oldest first. Nothing, if all know already.
///
/// Of queued deliveries the newest counts, the others are superseded; a rollback comes before it.
pub fn decide(runs: &[&SequenceRun], holds: &[Hold]) -> Vec<(RunId, Event)> {
    let (queued, active): (Vec<&SequenceRun>, Vec<&SequenceRun>) =
        runs.iter().copied().partition(|run| run.state == SequenceState::Queued);
    let (mut rollbacks, mut deliveries): (Vec<&SequenceRun>, Vec<&SequenceRun>) =
        queued.into_iter().partition(|run| run.is_rollback);
    let (rollback, delivery) = (rollbacks.pop(), deliveries.pop());
    let Some(next) = rollback.or(delivery) else { return Vec::new() };
    let mut told = Vec::new();
    for (older, newest) in [(rollbacks, rollback), (deliveries, delivery)] {
        let superseded =
            |newest: &SequenceRun| older.iter().map(|run| (run.id.clone(), superseded_by(newest))).collect();
        told.extend(newest.map_or_else(Vec::new, superseded));
    }
    if let (Some(rollback), Some(delivery)) = (rollback, delivery) {
        told.extend(waiting(delivery, format!("waits for the {}", rollback.cause)));
    }
    let covers = |hold: &&Hold| {
        hold.scope.covers(&next.service.project, &next.service.stage, &next.service.service) && !next.is_rollback
    };
    match (holds.iter().find(covers), active.first()) {
        (Some(hold), _) => told.extend(waiting(next, format!("held by {}: {}", hold.by, hold.reason))),
        (None, None) => told.push((next.id.clone(), Event::Admitted)),
        (None, Some(active)) => {
            if deploys(active) {
                told.push((active.id.clone(), superseded_by(next)));
            }
            let reason = format!("waits for {} of {} to end", active.sequence.name, active.commit.short());
            told.extend(waiting(next, reason));
        }
    }
    told
}

/// Whether a run is in a deployment and was not told to end: a newer revision takes its place. In any other task it
/// goes on to its end, so that what it has deployed is also tested.
fn deploys(run: &SequenceRun) -> bool {
    match run.state {
        SequenceState::Running { task } => run.tasks.get(task).is_some_and(|task| task.name == DEPLOYMENT_TASK),
        SequenceState::Queued | SequenceState::Ending { .. } | SequenceState::Ended => false,
    }
}

fn superseded_by(newer: &SequenceRun) -> Event {
    let by = if newer.is_rollback { &newer.cause } else { newer.commit.short() };
    Event::Cancel { verdict: Verdict::Superseded, reason: format!("superseded by {by}") }
}

fn waiting(run: &SequenceRun, reason: String) -> Option<(RunId, Event)> {
    (run.message != reason).then(|| (run.id.clone(), Event::Waiting { reason }))
}
