//! What becomes of sequences and of what is reported about them: after every commit, and once everything has come to rest.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Result;
use crate::model::cloud_event::CloudEvent;
use crate::model::ids::RunId;
use crate::model::run::{ExecutorRecord, Run, SequenceRun, TaskRecord, triggered_by};
use crate::report::cloud_event;
use crate::simulation::memory_store::MemoryDisk;
use crate::simulation::outcome::Waiting;
use crate::store::{RunFilter, Store};
use crate::testing::interleaved::checks::{Held, Invariant, Violation};
use crate::testing::interleaved::events::Events;
use crate::testing::interleaved::people::now;

/// What was seen of sequences so far.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    /// Each as it was seen last, with its version.
    seen: BTreeMap<RunId, (u64, SequenceRun)>,
}

impl Sequences {
    /// Each sequence goes on from where it was: no task begins twice, or before those before it have ended, and what has ended
    /// stays as it ended.
    pub(super) fn check(&mut self, store: &dyn Store, disk: &MemoryDisk) -> Held {
        let open = disk.open_runs();
        let mut moved: Vec<(u64, SequenceRun)> = Vec::new();
        for run in open.iter().filter_map(|run| Some((run.version, run.value.sequence()?))) {
            if self.seen.get(&run.1.id).is_none_or(|(version, _)| *version != run.0) {
                moved.push((run.0, run.1.clone()));
            }
        }
        let is_open = |id: &RunId| open.iter().any(|run| run.value.id() == id);
        let gone = self.seen.iter().filter(|(id, (_, run))| run.ended_at.is_none() && !is_open(id));
        for id in gone.map(|(id, _)| id) {
            let ended = now(store.run(id))?;
            moved.extend(ended.and_then(|run| Some((run.version, run.value.sequence()?.clone()))));
        }
        for (version, run) in moved {
            let before = self.seen.get(&run.id).map(|(_, before)| before);
            if let Some(what) = before.and_then(|before| contradicts(before, &run)).or_else(|| is_disordered(&run)) {
                let what = format!("{} of {}: {what}", run.id, run.whereabouts());
                return Ok(Err(Violation::new(Invariant::TasksInOrder, what)));
            }
            self.seen.insert(run.id.clone(), (version, run));
        }
        Ok(Ok(()))
    }

    /// Nothing has happened to what has ended.
    pub(super) fn ended_stay(&self, store: &dyn Store) -> Held {
        for run in all(store)? {
            let ended = self.seen.get(&run.id).map(|(_, seen)| seen).filter(|seen| seen.ended_at.is_some());
            if ended.is_some_and(|ended| *ended != run) {
                let what = format!("{} ({}) changes after its end", run.id, run.whereabouts());
                return Ok(Err(Violation::new(Invariant::TasksInOrder, what)));
            }
        }
        Ok(Ok(()))
    }
}

/// What a run takes back of what it has been.
fn contradicts(before: &SequenceRun, after: &SequenceRun) -> Option<String> {
    let both = before.tasks.iter().zip(&after.tasks).enumerate();
    let mut taken_back = both.filter_map(|(index, (was, is))| {
        let most = after.declared(index).map_or(0, |task| task.retries) + 1;
        let what = match () {
            () if was.ended_at.is_some() && was != is => "changes after its end",
            () if was.started_at.is_some() && was.started_at != is.started_at => "begins twice",
            () if is.offers < was.offers || is.offers > most => "is left to executors too often",
            () if is.offers == was.offers && !goes_on(&was.executors, &is.executors) => "takes back who did it",
            () if is.tries.len() < was.tries.len() => "takes back a try",
            () => return None,
        };
        Some(format!("`{}` {what}", was.step))
    });
    taken_back.next()
}

/// Whether all that executors said still stands, with perhaps more.
fn goes_on(before: &[ExecutorRecord], after: &[ExecutorRecord]) -> bool {
    let stands = |(was, is): (&ExecutorRecord, &ExecutorRecord)| {
        was.name == is.name
            && (was.started_at.is_none() || (was.started_at, &was.started_by) == (is.started_at, &is.started_by))
            && (was.finished_at.is_none() || (was.finished_at, was.outcome) == (is.finished_at, is.outcome))
    };
    before.len() <= after.len() && before.iter().zip(after).all(stands)
}

/// Why the tasks of a run do not follow each other.
fn is_disordered(run: &SequenceRun) -> Option<String> {
    let own: Vec<&TaskRecord> = run.tasks.iter().filter(|task| !task.done_before).collect();
    let (mut open, mut last) = (None, None);
    for task in own.into_iter().filter(|task| task.started_at.is_some()) {
        if let Some(open) = open {
            return Some(format!("`{}` begins before `{open}` has ended", task.step));
        }
        if task.started_at < last {
            return Some(format!("`{}` begins before the one before it ends", task.step));
        }
        open = task.ended_at.is_none().then_some(&task.step);
        last = task.ended_at.or(last);
    }
    None
}

/// Each event from outside counts once, and what was told in vain does not count.
pub(super) fn events_count_once(store: &dyn Store, events: &Events) -> Held {
    let mut counted: BTreeSet<(String, String)> = BTreeSet::new();
    let vain = events.vain();
    for run in all(store)? {
        let started =
            run.triggered_by.iter().map(|id| (id.clone(), format!("{} of {}", run.event_name(), run.service)));
        for (id, how) in started.chain(of_executors(&run)) {
            if vain.contains(&id) {
                let what = format!("{id} was told in vain, and counts in {}: {how}", run.id);
                return Ok(Err(Violation::new(Invariant::EventsCountOnce, what)));
            }
            if !counted.insert((id.clone(), how.clone())) {
                let what = format!("{id} counts twice: {how}");
                return Ok(Err(Violation::new(Invariant::EventsCountOnce, what)));
            }
        }
    }
    Ok(Ok(()))
}

/// The ids of the events by which executors have done the tasks of a run, and what each of them said.
fn of_executors(run: &SequenceRun) -> impl Iterator<Item = (String, String)> {
    let executors = run.tasks.iter().filter(|task| !task.done_before).flat_map(|task| &task.executors);
    let said = executors.flat_map(|it| {
        let said = |what: &str, id: &String| (id.clone(), format!("{} {what}", it.name));
        [said("began", &it.started_by), said("finished", &it.finished_by)]
    });
    said.filter(|(id, _)| !id.is_empty())
}

/// Whatever goes on says what it waits for, if it is no pod or deployment that is under way.
pub(super) fn say_what_they_wait_for(disk: &MemoryDisk) -> Held {
    let open = disk.open_runs();
    let is_silent = |run: &&SequenceRun| {
        let works = run.task().is_some_and(|task| !task.deployments.is_empty() || !task.tries.is_empty());
        Waiting::of(run).message.is_empty() && !works
    };
    let silent = open.iter().filter_map(|run| run.value.sequence()).find(is_silent);
    Ok(match silent {
        Some(run) => {
            let what = format!("{} ({}) goes on, and does not say what it waits for", run.id, run.whereabouts());
            Err(Violation::new(Invariant::SaysWhatItWaitsFor, what))
        }
        None => Ok(()),
    })
}

/// Who listens has heard all that has happened to the sequences that there are, each in its order; if no daemon has died,
/// also nothing twice.
pub(super) fn all_is_heard(store: &dyn Store, events: &Events, lives: u64) -> Held {
    let Some(heard) = events.heard() else { return Ok(Ok(())) };
    let mut known: BTreeSet<(String, String, String)> = BTreeSet::new();
    let mut at: BTreeMap<RunId, (usize, u32)> = BTreeMap::new();
    for event in &heard {
        if !known.insert(name(event)) {
            if lives > 1 {
                continue; // that it was heard could not be remembered
            }
            let what = format!("{} {} is heard twice", event.short_kind(), event.id);
            return Ok(Err(Violation::new(Invariant::EverythingIsHeard, what)));
        }
        let Some((run, place)) = place(event) else { continue };
        let before = at.insert(run.clone(), place);
        if before.is_some_and(|before| before > place) {
            let what = format!("{} {} of {run} is heard after {before:?}", event.short_kind(), event.id);
            return Ok(Err(Violation::new(Invariant::EverythingIsHeard, what)));
        }
    }
    for run in all(store)? {
        if let Some(missing) = cloud_event::of_run(&run).iter().find(|event| !known.contains(&name(event))) {
            let what = format!("nobody hears {} {} of {}", missing.short_kind(), missing.id, run.id);
            return Ok(Err(Violation::new(Invariant::EverythingIsHeard, what)));
        }
    }
    Ok(Ok(()))
}

fn name(event: &CloudEvent) -> (String, String, String) {
    (event.source.clone(), event.id.clone(), event.kind.clone())
}

/// Where in its run an event belongs: at its beginning, at a task and how often that was left to executors, or at its end.
fn place(event: &CloudEvent) -> Option<(RunId, (usize, u32))> {
    let own = |end: &str| event.id.strip_suffix(end).filter(|run| !run.contains('.')).map(RunId::new);
    if let Some(run) = own(".finished") {
        return Some((run, (usize::MAX, 0)));
    }
    if let Some(run) = own(".started").or_else(|| own(".triggered")) {
        return Some((run, (0, 0)));
    }
    let asked = event.triggeredid.as_deref().unwrap_or(&event.id);
    let (run, task) = triggered_by(asked).filter(|(run, _)| !run.as_str().contains('.'))?;
    let (_, offers) = asked.rsplit_once('.')?;
    Some((run, (task + 1, offers.parse().ok()?)))
}

fn all(store: &dyn Store) -> Result<Vec<SequenceRun>> {
    let sequences = RunFilter { sequences: Some(true), ..RunFilter::default() };
    let runs = now(store.runs(&sequences))?.whole()?;
    Ok(runs
        .into_iter()
        .filter_map(|run| match run.value {
            Run::Sequence(run) => Some(*run),
            Run::Deployment(_) => None,
        })
        .collect())
}
