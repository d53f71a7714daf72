//! What is reported about sequences as CloudEvents, from their runs alone. Pure: nothing is kept beside the runs.
//!
//! Source: keptn/spec 0.2.4; that a sequence has `.started` is the seed's.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::clock::rfc3339_sorting;
use crate::engine::sequence::dataflow::{self, of_sequence, of_triggered, told};
use crate::model::cloud_event::{CloudEvent, PREFIX};
use crate::model::data::merge;
use crate::model::outcome::Outcome;
use crate::model::run::{DoneBy, ExecutorRecord, SequenceRun, TaskRecord};
use crate::model::time::Timestamp;

/// Everything that has happened to a run, oldest first. Of tasks that a run before has done, that one tells.
pub fn of_run(run: &SequenceRun) -> Vec<CloudEvent> {
    let asked = asked(run);
    let id = asked.id.clone();
    let mut events = vec![asked];
    if let Some(at) = run.started_at {
        let started = sequence(run, ("started", format!("{}.started", run.id)), at, dataflow::about(run));
        events.push(answering(started, &id));
    }
    let is_told = |(_, task): &(usize, &TaskRecord)| task.started_at.is_some() && !task.done_before;
    for (index, task) in run.tasks.iter().enumerate().filter(is_told) {
        events.extend(of_task(run, index, task));
    }
    if let Some(at) = run.ended_at {
        let finished = sequence(run, ("finished", format!("{}.finished", run.id)), at, of_sequence(run));
        events.push(answering(finished, &id));
    }
    events
}

/// What asks for a sequence: the event that somebody told, if that is what it says, else one of our own, which answers what
/// has happened.
fn asked(run: &SequenceRun) -> CloudEvent {
    let ours = sequence(run, ("triggered", format!("{}.triggered", run.id)), run.created_at, dataflow::about(run));
    match (&run.triggered_by, &run.trigger) {
        (Some(id), Some(told)) if told.kind == ours.kind => {
            CloudEvent { id: id.clone(), source: told.source.clone(), ..ours }
        }
        (Some(id), Some(_)) => answering(ours, id),
        (Some(id), None) => CloudEvent { id: id.clone(), ..ours }, // recorded before its source was
        (None, _) => ours,
    }
}

/// What has happened that started a run, if that is no event about sequences.
fn happened(run: &SequenceRun) -> Option<CloudEvent> {
    let (id, told) = run.triggered_by.as_ref().zip(run.trigger.as_ref())?;
    let asked = asked(run);
    let data = merge(run.data.clone(), dataflow::about(run));
    let event = CloudEvent { source: told.source.clone(), ..CloudEvent::of(told.kind.clone(), id.clone(), data) };
    (told.kind != asked.kind).then(|| about(run, event, Some(run.created_at)))
}

/// Everything that has happened to runs, newest first, as the runs come. What happens at once is told run after run, as sinks
/// are told of it: what ends one begins the next.
pub fn newest_first(runs: &[SequenceRun]) -> Vec<CloudEvent> {
    let mut heard = BTreeSet::new();
    let mut events: Vec<(bool, CloudEvent)> = Vec::new();
    for run in runs {
        let told = happened(run).filter(|event| heard.insert(identity(event)));
        let all: Vec<CloudEvent> = told.into_iter().chain(of_run(run)).collect();
        events.extend(all.into_iter().rev().map(|event| (goes_on(run, &event), event)));
    }
    events.sort_by(|(one_goes_on, one), (other_goes_on, other)| {
        other.time.cmp(&one.time).then(one_goes_on.cmp(other_goes_on))
    });
    events.into_iter().map(|(_, event)| event).collect()
}

/// What tells an event from others, also from those of other types that follow from the same.
fn identity(event: &CloudEvent) -> (String, String, String) {
    (event.kind.clone(), event.source.clone(), event.id.clone())
}

/// Whether an event is about a run that had begun before: at one time, that is told before what begins.
fn goes_on(run: &SequenceRun, event: &CloudEvent) -> bool {
    run.started_at.is_some_and(|began| Some(rfc3339_sorting(began)) < event.time)
}

/// What has happened to runs since each was as `before`, in that order; everything of those that were not there. What goes on or
/// ends is told before what begins at the same time: it makes room.
pub fn news<'a>(
    changed: impl Iterator<Item = (Option<&'a SequenceRun>, &'a SequenceRun)>,
) -> Vec<(&'a SequenceRun, CloudEvent)> {
    let mut found: Vec<(&SequenceRun, CloudEvent)> = Vec::new();
    for (before, now) in changed {
        let known: BTreeSet<_> = before.map(of_run).unwrap_or_default().iter().map(identity).collect();
        let news = of_run(now).into_iter().filter(|event| !known.contains(&identity(event)));
        found.extend(news.map(|event| (now, event)));
    }
    found.sort_by_cached_key(|(run, event)| !goes_on(run, event));
    found
}

/// The task that executors may take, or about which a person is to decide.
pub fn open_task(run: &SequenceRun) -> Option<CloudEvent> {
    let (index, task) = run.offered()?;
    Some(triggered(run, (index, task), (&run.triggered_id(index), task.last_offer())))
}

fn of_task(run: &SequenceRun, index: usize, task: &TaskRecord) -> Vec<CloudEvent> {
    let mut events = Vec::new();
    for (offer, earlier) in (1..).zip(&task.earlier) {
        let id = run.triggered_id_of(index, offer);
        events.extend(of_offer(run, (index, task), (&id, Some(earlier.at)), &earlier.executors));
    }
    let id = run.triggered_id(index);
    events.extend(of_offer(run, (index, task), (&id, task.last_offer()), &task.executors));
    let is_told = task.executors.iter().any(|it| it.finished_at.is_some());
    if let (Some(outcome), false) = (task.outcome, is_told) {
        events.push(own(run, task, ("finished", &id), task.ended_at, Some(outcome)));
    }
    events
}

/// What has come of telling once that a task is to be done.
fn of_offer(
    run: &SequenceRun,
    (index, task): (usize, &TaskRecord),
    (id, at): (&str, Option<Timestamp>),
    executors: &[ExecutorRecord],
) -> Vec<CloudEvent> {
    let mut events = vec![triggered(run, (index, task), (id, at))];
    let is_ours = !matches!(run.done_by(index), DoneBy::Executors);
    if is_ours {
        events.push(own(run, task, ("started", id), at, None));
    }
    for executor in executors {
        let told = of_executor(run, task, executor, id);
        events.extend(told.filter(|event| !is_ours || !event.kind.ends_with(".started"))); // who decides, only decides
    }
    events
}

fn triggered(
    run: &SequenceRun,
    (index, task): (usize, &TaskRecord),
    (id, at): (&str, Option<Timestamp>),
) -> CloudEvent {
    let data = of_triggered(run, index);
    about(run, CloudEvent::of(format!("{PREFIX}{}.triggered", task.name), id.to_owned(), data), at)
}

/// What launchway says of a task that it does itself, or that nobody has done.
fn own(
    run: &SequenceRun,
    task: &TaskRecord,
    (word, triggered): (&str, &str),
    at: Option<Timestamp>,
    outcome: Option<Outcome>,
) -> CloudEvent {
    let message = if outcome.is_some() { task.message.as_str() } else { "" };
    let mut data = said(run, outcome, message);
    if outcome.is_some() && !task.evaluation.is_null() {
        data = merge(data, serde_json::json!({ &task.name: task.evaluation }));
    }
    let event = CloudEvent::of(format!("{PREFIX}{}.{word}", task.name), format!("{triggered}.{word}"), data);
    answering(about(run, event, at), triggered)
}

/// What an executor has said of a task, under the ids of its own events.
fn of_executor(
    run: &SequenceRun,
    task: &TaskRecord,
    executor: &ExecutorRecord,
    triggered: &str,
) -> impl Iterator<Item = CloudEvent> {
    let told = |word: &str, id: &str, at: Option<Timestamp>, data: Value| {
        let id = if id.is_empty() { format!("{triggered}.{}.{word}", executor.name) } else { id.to_owned() };
        let event = CloudEvent::of(format!("{PREFIX}{}.{word}", task.name), id, data);
        let event = CloudEvent { source: executor.name.clone(), ..about(run, event, at) };
        at.map(|_| answering(event, triggered))
    };
    let started = told("started", &executor.started_by, executor.started_at, said(run, None, ""));
    let reported = said(run, None, &executor.reported);
    let reported = told("status.changed", &executor.reported_by, executor.reported_at, reported);
    let data = merge(executor.data.clone(), said(run, executor.outcome, &executor.message));
    let finished = told("finished", &executor.finished_by, executor.finished_at, data);
    [started, reported, finished].into_iter().flatten()
}

fn said(run: &SequenceRun, outcome: Option<Outcome>, message: &str) -> Value {
    let data = merge(dataflow::about(run), outcome.map_or(Value::Null, told));
    if message.is_empty() { data } else { merge(data, serde_json::json!({ "message": message })) }
}

fn sequence(run: &SequenceRun, (word, id): (&str, String), at: Timestamp, data: Value) -> CloudEvent {
    let event = CloudEvent::of(format!("{PREFIX}{}.{word}", run.event_name()), id, data);
    about(run, event, Some(at))
}

fn answering(event: CloudEvent, triggered: &str) -> CloudEvent {
    CloudEvent { triggeredid: Some(triggered.to_owned()), ..event }
}

fn about(run: &SequenceRun, event: CloudEvent, at: Option<Timestamp>) -> CloudEvent {
    CloudEvent {
        time: at.map(rfc3339_sorting),
        shkeptncontext: run.context.clone(),
        gitcommitid: Some(run.commit.to_string()),
        ..event
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::sequence::machine::{step, task_records};
    use crate::manifest::digest;
    use crate::model::event::{Event, Timer};
    use crate::model::ids::{Destination, ServiceKey};
    use crate::model::project::Procedure;
    use crate::model::run::{SequenceState, TriggerEvent};
    use crate::model::shipyard::{Sequence, Task};

    /// A run of an approval and a release by an executor, which are both over.
    fn ended() -> SequenceRun {
        let tasks = vec![Task::named("approval"), Task::named("release")];
        let sequence = Sequence { name: "delivery".into(), tasks, ..Sequence::default() };
        let tasks = task_records(&sequence);
        let procedure = digest::stored(Procedure { sequence, ..Procedure::default() });
        let service = ServiceKey { project: "shop".into(), stage: "dev".into(), service: "web".into() };
        let draft =
            SequenceRun::draft(service, Destination::local("shop".into()), ("repo".into(), "a".into()), procedure);
        let run = SequenceRun { id: "r1".into(), is_foreign: true, tasks, ..draft };
        let finished = |task: usize, executor: &str, id: &str| Event::ExecutorFinished {
            task,
            executor: executor.into(),
            id: id.into(),
            outcome: Outcome::PASS,
            message: "good".into(),
            data: Value::Null,
        };
        let started = Event::ExecutorStarted { task: 1, executor: "helm".into(), id: "e1".into(), data: Value::Null };
        let events = [Event::Admitted, finished(0, "ann", ""), Event::Admitted, started, finished(1, "helm", "e2")];
        events.iter().fold(run, |run, event| step(&run, event, Timestamp(0)).0)
    }

    #[test]
    fn a_run_tells_all_that_has_happened_to_it_in_order_each_answering_what_it_follows_from() {
        let told: Vec<String> = of_run(&ended())
            .iter()
            .map(|event| {
                let kind = event.short_kind();
                let answers = event.triggeredid.as_deref().unwrap_or("-");
                format!("{kind} {} of {} answers {answers}, {}", event.id, event.source, event.text("result"))
            })
            .collect();
        assert_eq!(
            told,
            [
                "dev.delivery.triggered r1.triggered of launchway answers -, ",
                "dev.delivery.started r1.started of launchway answers r1.triggered, ",
                "approval.triggered r1.0.0 of launchway answers -, ",
                "approval.started r1.0.0.started of launchway answers r1.0.0, ",
                "approval.finished r1.0.0.ann.finished of ann answers r1.0.0, pass",
                "release.triggered r1.1.1 of launchway answers -, pass",
                "release.started e1 of helm answers r1.1.1, ",
                "release.finished e2 of helm answers r1.1.1, pass",
                "dev.delivery.finished r1.finished of launchway answers r1.triggered, pass",
            ]
        );
    }

    #[test]
    fn a_run_that_goes_on_where_another_has_failed_does_not_tell_again_what_that_has_told() {
        let mut run = ended();
        run.tasks[0].done_before = true;
        let told: Vec<String> = of_run(&run).iter().map(|event| event.short_kind().to_owned()).collect();
        assert_eq!(
            told,
            [
                "dev.delivery.triggered",
                "dev.delivery.started",
                "release.triggered",
                "release.started",
                "release.finished",
                "dev.delivery.finished",
            ]
        );
    }

    #[test]
    fn what_happens_at_once_stands_after_what_it_follows_from_when_the_newest_comes_first() {
        let later = |at: i64| SequenceRun { id: "r2".into(), created_at: Timestamp(at), ended_at: None, ..ended() };
        let newest = |runs: &[SequenceRun]| {
            let of_sequences = newest_first(runs).into_iter().filter(|event| event.id.starts_with('r'));
            let of_sequences = of_sequences.filter(|event| event.short_kind().starts_with("dev."));
            of_sequences.map(|event| event.id).collect::<Vec<_>>()
        };
        let last = |at: i64| SequenceRun { ended_at: Some(Timestamp(at)), ..ended() };
        let at_once = ["r2.started", "r2.triggered", "r1.finished", "r1.started", "r1.triggered"];
        assert_eq!(newest(&[later(0), ended()]), at_once);
        let after = ["r1.finished", "r2.started", "r2.triggered", "r1.started", "r1.triggered"];
        assert_eq!(newest(&[later(0), last(1)]), after);
    }

    /// A run whose only task has failed once, and is left to executors again.
    fn retried() -> SequenceRun {
        let sequence = Sequence {
            name: "delivery".into(),
            tasks: vec![Task { retries: 1, ..Task::named("release") }],
            ..Sequence::default()
        };
        let tasks = task_records(&sequence);
        let procedure = digest::stored(Procedure { sequence, ..Procedure::default() });
        let run = SequenceRun { tasks, procedure, ..ended() };
        let run = SequenceRun { state: SequenceState::Queued, started_at: None, ended_at: None, outcome: None, ..run };
        let (task, executor) = (0, || "helm".to_owned());
        let started = Event::ExecutorStarted { task, executor: executor(), id: "e1".into(), data: Value::Null };
        let half = Event::ExecutorReported { task, executor: executor(), id: "e2".into(), message: "half way".into() };
        let (id, message, data) = ("e3".to_owned(), "no".to_owned(), Value::Null);
        let failed = Event::ExecutorFinished { task, executor: executor(), id, outcome: Outcome::FAIL, message, data };
        let again = Event::Timer { timer: Timer::Retry };
        let events = [Event::Admitted, started, half, failed, again];
        events.iter().zip(0..).fold(run, |run, (event, second)| step(&run, event, Timestamp(second * 1000)).0)
    }

    #[test]
    fn what_was_told_of_a_task_before_it_was_tried_again_is_told_still() {
        let told: Vec<String> = of_run(&retried())
            .iter()
            .map(|event| {
                let (kind, at) = (event.short_kind(), event.time.clone().unwrap_or_default());
                format!("{kind} {} at {} {}", event.id, &at[17..19], event.text("message"))
            })
            .collect();
        assert_eq!(
            told,
            [
                "dev.delivery.triggered r1.triggered at 00 ",
                "dev.delivery.started r1.started at 00 ",
                "release.triggered r1.0.1 at 00 ",
                "release.started e1 at 01 ",
                "release.status.changed e2 at 02 half way",
                "release.finished e3 at 03 no",
                "release.triggered r1.0.2 at 04 ",
            ]
        );
    }

    /// Two sequences that one event starts are told apart, and both follow from it; one that it asks for is just that event.
    #[test]
    fn each_event_has_an_id_of_its_own_with_its_source() {
        let told = |kind: &str| {
            let trigger = TriggerEvent { kind: format!("{PREFIX}{kind}"), source: "ci".into() };
            let run = SequenceRun { triggered_by: Some("e7".into()), trigger: Some(trigger), ..ended() };
            let mut oldest = newest_first(&[run.clone(), SequenceRun { id: "r2".into(), ..run }]);
            oldest.retain(|event| event.short_kind().ends_with("triggered") || event.short_kind() == "problem.open");
            let of = |event: CloudEvent| {
                let answers = event.triggeredid.clone().unwrap_or_default();
                format!("{} {} of {} {answers}", event.short_kind(), event.id, event.source)
            };
            oldest
                .into_iter()
                .rev()
                .map(of)
                .filter(|told| !told.contains("release") && !told.contains("approval"))
                .collect::<Vec<_>>()
        };
        let of_two = [
            "dev.delivery.triggered r2.triggered of launchway e7",
            "problem.open e7 of ci ",
            "dev.delivery.triggered r1.triggered of launchway e7",
        ];
        let mut happened = told("problem.open");
        happened.sort();
        let mut expected = of_two.to_vec();
        expected.sort_unstable();
        assert_eq!(happened, expected);
        assert_eq!(
            told("dev.delivery.triggered"),
            ["dev.delivery.triggered e7 of ci ", "dev.delivery.triggered e7 of ci "]
        );
    }

    /// Who waits for a slot begins once it is free.
    #[test]
    fn what_ends_is_told_before_what_begins_for_that() {
        let ends = SequenceRun { id: "r9".into(), ended_at: Some(Timestamp(5)), ..ended() };
        let before = SequenceRun { ended_at: None, outcome: None, ..ends.clone() };
        let waits = SequenceRun { started_at: None, ended_at: None, outcome: None, tasks: Vec::new(), ..ended() };
        let begins = SequenceRun { started_at: Some(Timestamp(5)), ..waits.clone() };
        let news = news([(Some(&waits), &begins), (Some(&before), &ends)].into_iter());
        let told: Vec<&str> = news.iter().map(|(_, event)| event.id.as_str()).collect();
        assert_eq!(told, ["r9.finished", "r1.started"]);
        let newest = newest_first(&[ends, begins]);
        let newest: Vec<&str> = newest.iter().map(|event| event.id.as_str()).take(2).collect();
        assert_eq!(newest, ["r1.started", "r9.finished"]);
    }

    #[test]
    fn what_is_new_is_told_once() {
        let all = of_run(&ended());
        let before = SequenceRun { ended_at: None, outcome: None, ..ended() };
        let news = |before: Option<&SequenceRun>| {
            let now = ended();
            news(std::iter::once((before, &now))).into_iter().map(|(_, event)| event).collect::<Vec<_>>()
        };
        let told = news(Some(&before));
        assert_eq!(told.iter().map(CloudEvent::short_kind).collect::<Vec<_>>(), ["dev.delivery.finished"]);
        assert_eq!((news(None), news(Some(&ended()))), (all, Vec::new()));
    }

    #[test]
    fn only_what_executors_may_take_is_open() {
        assert_eq!(open_task(&ended()), None);
    }
}
