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
pub fn decide(runs: &[&SequenceRun], holds: &[Hold]) -> Vec<(RunId, Event)> {
    let (queued, active): (Vec<&SequenceRun>, Vec<&SequenceRun>) =
        runs.iter().copied().partition(|run| run.state == SequenceState::Queued);
    let Some((newest, older)) = queued.split_last() else { return Vec::new() };
    let mut told: Vec<(RunId, Event)> = older.iter().map(|run| (run.id.clone(), superseded_by(newest))).collect();
    let hold = holds
        .iter()
        .find(|hold| hold.scope.covers(&newest.service.project, &newest.service.stage, &newest.service.service));
    match (hold, active.first()) {
        (Some(hold), _) => told.extend(waiting(newest, format!("held by {}: {}", hold.by, hold.reason))),
        (None, None) => told.push((newest.id.clone(), Event::Admitted)),
        (None, Some(active)) => {
            if deploys(active) {
                told.push((active.id.clone(), superseded_by(newest)));
            }
            let reason = format!("waits for {} of {} to end", active.sequence.name, active.commit.short());
            told.extend(waiting(newest, reason));
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
    Event::Cancel { verdict: Verdict::Superseded, reason: format!("superseded by {}", newer.commit.short()) }
}

fn waiting(run: &SequenceRun, reason: String) -> Option<(RunId, Event)> {
    (run.message != reason).then(|| (run.id.clone(), Event::Waiting { reason }))
}
