//! What is told of sequences as CloudEvents, from their runs alone. Pure: nothing is kept beside the runs.
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
    let id = run.triggered_by.clone().unwrap_or_else(|| format!("{}.triggered", run.id));
    let mut events = vec![sequence(run, ("triggered", id.clone()), run.created_at, dataflow::about(run))];
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

/// Everything that has happened to runs, newest first, as the runs come. What happens at once is told run after run, as sinks
/// are told of it: what ends one begins the next.
pub fn newest_first(runs: &[SequenceRun]) -> Vec<CloudEvent> {
    let mut events: Vec<CloudEvent> = runs.iter().flat_map(|run| of_run(run).into_iter().rev()).collect();
    events.sort_by(|one, other| other.time.cmp(&one.time));
    events
}

/// What has happened to a run since it was as `before`, oldest first; everything, if it was not there.
pub fn news(before: Option<&SequenceRun>, now: &SequenceRun) -> Vec<CloudEvent> {
    let name = |event: &CloudEvent| (event.kind.clone(), event.source.clone(), event.id.clone());
    let known: BTreeSet<_> = before.map(of_run).unwrap_or_default().iter().map(name).collect();
    of_run(now).into_iter().filter(|event| !known.contains(&name(event))).collect()
}

/// The task that executors may take, or about which a person is to decide.
pub fn open_task(run: &SequenceRun) -> Option<CloudEvent> {
    let (index, task) = run.offered()?;
    Some(triggered(run, index, task))
}

fn of_task(run: &SequenceRun, index: usize, task: &TaskRecord) -> Vec<CloudEvent> {
    let asked = triggered(run, index, task);
    let id = asked.id.clone();
    let mut events = vec![asked];
    let is_ours = !matches!(run.done_by(index), DoneBy::Executors);
    if is_ours {
        events.push(own(run, task, ("started", &id), task.started_at, None));
    }
    for executor in &task.executors {
        let told = of_executor(run, task, executor, &id);
        events.extend(told.filter(|event| !is_ours || !event.kind.ends_with(".started"))); // who decides, only decides
    }
    let is_told = task.executors.iter().any(|it| it.finished_at.is_some());
    if let (Some(outcome), false) = (task.outcome, is_told) {
        events.push(own(run, task, ("finished", &id), task.ended_at, Some(outcome)));
    }
    events
}

fn triggered(run: &SequenceRun, index: usize, task: &TaskRecord) -> CloudEvent {
    let event =
        CloudEvent::of(format!("{PREFIX}{}.triggered", task.name), run.triggered_id(index), of_triggered(run, index));
    about(run, event, task.started_at)
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
    let data = merge(executor.data.clone(), said(run, executor.outcome, &executor.message));
    [started, told("finished", &executor.finished_by, executor.finished_at, data)].into_iter().flatten()
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
    use crate::model::event::Event;
    use crate::model::ids::{Destination, ServiceKey};
    use crate::model::project::Procedure;
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

    #[test]
    fn what_is_new_is_told_once() {
        let all = of_run(&ended());
        let before = SequenceRun { ended_at: None, outcome: None, ..ended() };
        let news = news(Some(&before), &ended());
        assert_eq!(news.iter().map(CloudEvent::short_kind).collect::<Vec<_>>(), ["dev.delivery.finished"]);
        assert_eq!((super::news(None, &ended()), super::news(Some(&ended()), &ended())), (all, Vec::new()));
    }

    #[test]
    fn only_what_executors_may_take_is_open() {
        assert_eq!(open_task(&ended()), None);
    }
}
