//! The slot of a service in a stage: who may change it now.
//!
//! Decided by level on all open runs of the slot, whenever one of them moved: nobody has to be woken.

use std::borrow::Cow;
use std::iter;

use itertools::Itertools;

use crate::model::event::Event;
use crate::model::hold::Hold;
use crate::model::ids::RunId;
use crate::model::outcome::Outcome;
use crate::model::plan::Change;
use crate::model::run::{SequenceRun, SequenceState};
use crate::model::shipyard::{DEPLOYMENT_TASK, QueuePolicy, ROLLBACK_TASK};
use crate::model::slot::{Delivered, SlotState};
use crate::model::time::Timestamp;
use crate::plan::{passed_procedure, procedure};

/// What a slot becomes, given all runs that had it or waited for it.
pub fn seated(slot: &SlotState, runs: &[SequenceRun]) -> SlotState {
    let (ended, open): (Vec<&SequenceRun>, Vec<&SequenceRun>) = runs.iter().partition(|run| run.ended_at.is_some());
    let (yielded, open): (Vec<&SequenceRun>, Vec<&SequenceRun>) = open.into_iter().partition(|run| run.yields_slot());
    let (mut waiting, active): (Vec<&SequenceRun>, Vec<&SequenceRun>) =
        open.into_iter().partition(|run| is_waiting(run));
    waiting.sort_by_key(age);
    // What others took the place of has delivered nothing; but what has applied all it had is there, and has not passed.
    let counts = |run: &&SequenceRun| {
        run.planned_content().is_some() && (run.outcome != Some(Outcome::SUPERSEDED) || run.stopped_awaiting_services())
    };
    let ended: Vec<_> = ended.into_iter().filter(counts).sorted_by_key(|run| (run.ended_at, &run.id)).collect();
    SlotState {
        service: slot.service.clone(),
        holder: active.first().map(|run| run.id.clone()),
        waiting: waiting.into_iter().map(|run| run.id.clone()).collect(),
        yielded: yielded.into_iter().map(|run| run.id.clone()).collect(),
        refused: slot.refused.clone().filter(|_| ended.is_empty()),
        last_delivery: ended.into_iter().filter_map(delivered_by).fold(slot.last_delivery.clone(), |known, ended| {
            Some(known.filter(|known| is_stopped_for_good(known, &ended)).unwrap_or(ended))
        }),
    }
}

/// Whether a delivery was stopped before it began and is newer than one that ends after it: it is not to begin by itself, however
/// long what was under way before it takes to its end. Identities of runs grow with time.
fn is_stopped_for_good(known: &Delivered, older: &Delivered) -> bool {
    !known.deployed && known.run > older.run
}

/// What runs of a slot come by, the oldest first.
fn age<'a>(run: &&'a SequenceRun) -> (Timestamp, &'a RunId) {
    (run.created_at, &run.id)
}

/// Whether a run waits for its slot, for the first time or again.
fn is_waiting(run: &SequenceRun) -> bool {
    matches!(run.state, SequenceState::Queued | SequenceState::Returning { .. })
}

fn delivered_by(run: &SequenceRun) -> Option<Delivered> {
    let content = run.planned_content()?.clone();
    let procedure = procedure(&run.procedure);
    Some(Delivered { run: run.id.clone(), content, procedure, deployed: run.deployed() })
}

/// What to tell the open runs of a repository that was taken down. Not `Cancelled`, which would wait for a retry: once
/// it is up again, what Git says is deployed.
pub fn clear(runs: &[&SequenceRun], by: &str) -> Vec<(RunId, Event)> {
    let open = runs.iter().filter(|run| !matches!(run.state, SequenceState::Ending { .. } | SequenceState::Ended));
    open.map(|run| (run.id.clone(), taken_down(by))).collect()
}

/// What a run hears whose repository was taken down.
pub fn taken_down(by: &str) -> Event {
    Event::Cancel { outcome: Outcome::SUPERSEDED, reason: format!("taken down by {by}") }
}

/// What to tell the open runs of a slot, in whichever order they are named. Nothing, if all know already.
pub fn decide(runs: &[&SequenceRun], holds: &[Hold]) -> Vec<(RunId, Event)> {
    let mut runs = runs.to_vec();
    runs.sort_by_key(age); // one that comes back is as old as it was when it yielded
    let (yielded, runs): (Vec<&SequenceRun>, Vec<&SequenceRun>) = runs.into_iter().partition(|run| run.yields_slot());
    let (queued, active): (Vec<&SequenceRun>, Vec<&SequenceRun>) = runs.into_iter().partition(|run| is_waiting(run));
    let Queue { superseded, paused, next, later } = Queue::of(&queued, holds);
    let mut told: Vec<(RunId, Event)> =
        superseded.into_iter().map(|(run, newer)| (run.id.clone(), superseded_by(&name(newer)))).collect();
    told.extend(paused.iter().filter_map(|(run, hold)| waiting(run, hold.reason.clone())));
    let Some(next) = next else { return told };
    let comes_first = match next.is_rollback {
        true => format!("waits for the {}", next.cause),
        false => format!("waits for {} of {}", next.sequence(), next.commit.short()),
    };
    told.extend(later.iter().filter_map(|run| waiting(run, comes_first.clone())));
    match (holds.iter().find(|hold| next.is_held_by(hold)), active.first()) {
        (Some(hold), _) => told.extend(waiting(next, format!("held by {}: {}", hold.by, hold.reason))),
        (None, None) => {
            // What waits for a person, or is paused, would come back to what a newer one has replaced.
            let passed_by = paused.iter().map(|(run, _)| *run).filter(|run| age(run) < age(&next));
            let newer = |run: &SequenceRun| iter::once(&next).chain(&later).copied().find(|newer| replaces(newer, run));
            let comes_back = yielded.iter().copied().chain(passed_by);
            let replaced = comes_back.filter_map(|run| Some((run.id.clone(), superseded_by(&name(newer(run)?)))));
            told.extend(replaced);
            told.push((next.id.clone(), Event::Admitted));
        }
        (None, Some(active)) => {
            // What is next may wait its turn while what comes after it replaces what is being deployed.
            let newer = iter::once(&next).chain(&later).find(|newer| gives_way(active, newer));
            told.extend(newer.map(|newer| (active.id.clone(), superseded_by(&name(newer)))));
            let reason = format!("waits for {} of {} to end", active.sequence(), active.commit.short());
            told.extend(waiting(next, reason));
        }
    }
    told
}

/// How soon a run that waits has its turn; the first comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Priority {
    /// A person goes back: nothing keeps it, and what runs gives way to it.
    Rollback,
    /// The shipyard says how to go back: it comes before what waits, and no delivery takes its place.
    GoesBack,
    /// In the order in which they came.
    Other,
}

impl Priority {
    fn of(run: &SequenceRun) -> Self {
        match run.is_rollback {
            true => Self::Rollback,
            false if run.procedure.sequence.has_task(ROLLBACK_TASK) => Self::GoesBack,
            false => Self::Other,
        }
    }
}

/// The runs that wait for a slot. What goes back comes before everything else; runs of the same priority have their turn in the
/// order in which they came, but for those that a newer one replaces.
struct Queue<'a> {
    /// Each with the one that replaces it.
    superseded: Vec<(&'a SequenceRun, &'a SequenceRun)>,
    /// Each with what keeps it, and nothing else of its slot.
    paused: Vec<(&'a SequenceRun, &'a Hold)>,
    next: Option<&'a SequenceRun>,
    later: Vec<&'a SequenceRun>,
}

impl<'a> Queue<'a> {
    fn of(oldest_first: &[&'a SequenceRun], holds: &'a [Hold]) -> Self {
        let (mut superseded, mut paused) = (Vec::new(), Vec::new());
        let mut turns = Vec::new();
        let pausing = |run: &SequenceRun| holds.iter().find(|hold| run.is_paused_by(hold));
        for (place, run) in oldest_first.iter().copied().enumerate() {
            let mut newer = oldest_first[place + 1..].iter().copied().rev();
            let is_replaced_by =
                |newer: &&SequenceRun| Priority::of(newer) == Priority::of(run) && replaces_queued(newer, run);
            match (newer.find(is_replaced_by), pausing(run)) {
                (Some(newer), _) => superseded.push((run, newer)),
                (None, Some(hold)) => paused.push((run, hold)), // no hold is a rollback's
                (None, None) => turns.push(run),
            }
        }
        turns.sort_by_key(|run| Priority::of(run)); // of the same one, the older stays before the newer
        let mut turns = turns.into_iter();
        Self { superseded, paused, next: turns.next(), later: turns.collect() }
    }
}

/// Whether a run, which was not told to end yet, ends for the next one. What replaces all that is being deployed takes its
/// place; in any other task a run goes on to its end, so that what it has deployed is also tested, unless the next one
/// tests the same in a better way. A rollback waits for nothing.
fn gives_way(run: &SequenceRun, next: &SequenceRun) -> bool {
    match run.state {
        SequenceState::Running { task } => {
            let deploys = run.tasks.get(task).is_some_and(|task| task.name == DEPLOYMENT_TASK);
            let deploys = deploys && !repeats(next, run) && !lets_go_on(next, run);
            next.is_rollback || ((deploys || corrects(next, run)) && !run.has_its_turn() && replaces(next, run))
        }
        SequenceState::Queued
        | SequenceState::Returning { .. }
        | SequenceState::Ending { .. }
        | SequenceState::Ended => false,
    }
}

/// Whether all that a run deploys is what the next one only pauses: as upstream, that keeps new rollouts from starting, and
/// does not undo the one that runs.
fn lets_go_on(next: &SequenceRun, run: &SequenceRun) -> bool {
    let pauses = |old: &Change| next.changes().iter().any(|new| new.key == old.key && new.is_paused());
    let mut acts = run.changes().iter().filter(|change| change.decision.does_something()).peekable();
    next.delivery.is_some()
        && next.changes().iter().all(|change| !change.decision.does_something())
        && acts.peek().is_some()
        && acts.all(pauses)
}

/// Whether the same content is delivered by another sequence or with other tasks. Newer code of the same tasks waits: whoever
/// pushes often would never let a test end.
fn corrects(next: &SequenceRun, run: &SequenceRun) -> bool {
    brings_the_same(next, run) && passed_procedure(&next.procedure) != passed_procedure(&run.procedure)
}

/// Whether the same content is delivered in the same way, as by a revision that takes back what one between them has changed.
fn repeats(next: &SequenceRun, run: &SequenceRun) -> bool {
    brings_the_same(next, run) && passed_procedure(&next.procedure) == passed_procedure(&run.procedure)
}

fn brings_the_same(next: &SequenceRun, run: &SequenceRun) -> bool {
    let both = run.planned_content().zip(next.planned_content());
    both.is_some_and(|(old, new)| old == new || (next.commit == run.commit && changes_the_same(next, run)))
}

/// Whether neither changes anything that the other does not bring alike. Their contents may differ all the same: a pause that a
/// person lifts is lifted in what runs already, and its revision is planned anew without it.
fn changes_the_same(next: &SequenceRun, run: &SequenceRun) -> bool {
    let brings = |by: &SequenceRun, change: &Change| {
        by.changes().iter().any(|it| it.key == change.key && it.digest() == change.digest())
    };
    let within = |one: &SequenceRun, other: &SequenceRun| {
        one.changes().iter().filter(|change| change.decision.does_something()).all(|change| brings(other, change))
    };
    within(run, next) && within(next, run)
}

/// Whether nothing of a run is left undone if the next one takes its place. A newer revision has the last word on those
/// before, also where a person had one of those delivered again; what only runs tasks brings nothing, and what a person asks
/// for perhaps only one deployment config of several, or a deployment without the tasks that content has to pass.
fn replaces(next: &SequenceRun, run: &SequenceRun) -> bool {
    let is_newer_revision = next.by.is_none() && (run.by.is_none() || run.planned_content().is_some());
    let brings = |old: &Change| {
        let replaces = |new: &Change| new.decision.does_something() || new.digest() != old.digest();
        next.changes().iter().any(|new| new.key == old.key && replaces(new))
    };
    let passes_it = run.planned_content().is_none() || next.planned_content().is_some();
    next.delivery.is_some() && (is_newer_revision || (passes_it && run.changes().iter().all(brings)))
}

/// Whether a run that waits for its turn ends for a newer one that does, as its sequence says.
fn replaces_queued(next: &SequenceRun, run: &SequenceRun) -> bool {
    let is_newest = run.procedure.sequence.queue == Some(QueuePolicy::Newest) && run.state == SequenceState::Queued;
    let repeats = || run.delivery.is_none() && next.delivery.is_none() && run.sequence() == next.sequence();
    (is_newest && repeats()) || (!run.has_its_turn() && replaces(next, run))
}

/// What to tell a run that ends for something newer.
pub fn superseded_by(newer: &str) -> Event {
    Event::Cancel { outcome: Outcome::SUPERSEDED, reason: format!("superseded by {newer}") }
}

/// What a run is called when others end for it.
fn name(run: &SequenceRun) -> Cow<'_, str> {
    let is_of_a_revision = run.plan.is_some() && !run.is_rollback;
    match run.delivery {
        None => format!("a newer {}", run.sequence()).into(),
        Some(_) if is_of_a_revision => run.commit.short().into(),
        Some(_) => (&run.cause).into(),
    }
}

fn waiting(run: &SequenceRun, reason: String) -> Option<(RunId, Event)> {
    (run.message != reason).then(|| (run.id.clone(), Event::Waiting { reason }))
}

#[cfg(test)]
mod tests;
