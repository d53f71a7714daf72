use serde_json::json;

use super::*;
use crate::engine::fixtures::{NOW, delivery};
use crate::engine::sequence::dataflow::{of_sequence, of_triggered};
use crate::engine::sequence::machine::{step, task_records};
use crate::manifest::digest;
use crate::model::action::{Action, Decided};
use crate::model::project::Procedure;
use crate::model::run::SequenceRun;
use crate::model::shipyard::{Condition, Sequence, Task};
use crate::model::time::Timestamp;

const WARNING: Outcome = Outcome { status: Status::Succeeded, result: TaskResult::Warning };

/// A run of these tasks that has its slot; nothing of it is declared here.
fn admitted(tasks: Vec<Task>) -> SequenceRun {
    let sequence = Sequence { name: "delivery".into(), tasks, ..Sequence::default() };
    let records = task_records(&sequence);
    let procedure = digest::stored(Procedure { sequence, ..Procedure::default() });
    let run = SequenceRun { is_foreign: true, delivery: None, procedure, tasks: records, ..delivery("r1", "a") };
    after(run, &[Event::Admitted])
}

fn after(run: SequenceRun, events: &[Event]) -> SequenceRun {
    events.iter().fold(run, |run, event| step(&run, event, NOW).0)
}

fn asked(run: &SequenceRun, event: &Event) -> Decided {
    step(run, event, NOW).1
}

fn started(task: usize, executor: &str) -> Event {
    Event::ExecutorStarted { task, executor: executor.into(), id: String::new(), data: Value::Null }
}

fn finished(task: usize, executor: &str, outcome: Outcome) -> Event {
    leaving(task, executor, outcome, Value::Null)
}

fn leaving(task: usize, executor: &str, outcome: Outcome, data: Value) -> Event {
    Event::ExecutorFinished {
        task,
        executor: executor.into(),
        id: String::new(),
        outcome,
        message: String::new(),
        data,
    }
}

fn timer(timer: Timer) -> Event {
    Event::Timer { timer }
}

#[test]
fn the_worst_that_was_said_of_a_task_counts() {
    let of = |status: Status| Outcome { status, result: TaskResult::Pass };
    for (outcomes, expected) in [
        (vec![Outcome::PASS, Outcome::PASS], Outcome::PASS),
        (vec![Outcome::PASS, WARNING], WARNING),
        (vec![WARNING, Outcome::FAIL], Outcome::FAIL),
        (vec![Outcome::FAIL, Outcome::ERRORED], Outcome::ERRORED),
        (vec![Outcome::PASS, of(Status::Errored)], Outcome::ERRORED),
        (vec![Outcome::PASS, of(Status::Aborted)], Outcome::ABORTED),
        (vec![of(Status::Aborted), Outcome::ERRORED], Outcome::ERRORED),
        (vec![Outcome::PASS, of(Status::Unknown)], Outcome::UNKNOWN),
        (vec![], Outcome::FAIL),
    ] {
        assert_eq!(aggregate(outcomes.iter().copied()), expected, "{outcomes:?}");
    }
}

#[test]
fn a_task_ends_once_all_that_began_have_finished_in_whichever_order_that_is_told() {
    let both = ["a", "b"].map(|name| name.to_owned()).to_vec();
    for (case, declared, events, ended) in [
        ("nobody yet", vec![], vec![], false),
        ("one has begun", vec![], vec![started(0, "a")], false),
        ("one is done", vec![], vec![started(0, "a"), finished(0, "a", Outcome::PASS)], true),
        ("one of two", vec![], vec![started(0, "a"), started(0, "b"), finished(0, "a", Outcome::PASS)], false),
        ("its end comes first", vec![], vec![finished(0, "a", Outcome::PASS)], false),
        ("then its start", vec![], vec![finished(0, "a", Outcome::PASS), started(0, "a")], true),
        ("twice by one name", vec![], vec![started(0, "a"), started(0, "a"), finished(0, "a", Outcome::PASS)], false),
        ("one of the declared", both.clone(), vec![started(0, "a"), finished(0, "a", Outcome::PASS)], false),
        (
            "all of the declared",
            both,
            vec![started(0, "a"), finished(0, "a", Outcome::PASS), started(0, "b"), finished(0, "b", Outcome::PASS)],
            true,
        ),
        ("of another task", vec![], vec![started(1, "a"), finished(1, "a", Outcome::PASS)], false),
    ] {
        let task = Task { executors: declared, ..Task::named("test") };
        let run = after(admitted(vec![task]), &events);
        assert_eq!(run.ended_at.is_some(), ended, "{case}: {run:?}");
    }
}

#[test]
fn nobody_waits_for_ever() {
    let run = admitted(vec![Task::named("test")]);
    let late = after(run.clone(), &[timer(Timer::Start)]);
    assert_eq!(late.outcome, Some(Outcome::TIMED_OUT));
    assert!(late.message.contains("no executor has started `test` within"), "{}", late.message);
    let begun = after(run, &[started(0, "jmeter"), timer(Timer::Start)]);
    assert_eq!(begun.ended_at, None, "it has begun in time");
    let lost = after(begun, &[timer(Timer::Finish)]);
    assert_eq!(lost.outcome, Some(Outcome::TIMED_OUT));
    assert!(lost.message.contains("runs at jmeter"), "{}", lost.message);
    assert_eq!(after(lost.clone(), &[finished(0, "jmeter", Outcome::PASS)]), lost, "what is late has no effect");
}

#[test]
fn it_is_said_who_is_awaited_and_nobody_is_for_ever() {
    let both = ["a", "b"].map(|name| name.to_owned()).to_vec();
    let (begun, done) = (started(0, "a"), finished(0, "a", Outcome::PASS));
    for (declared, events, message, late) in [
        (vec![], vec![], "waits for an executor to start it", Timer::Start),
        (both.clone(), vec![], "waits for a, b to start it", Timer::Start),
        (vec![], vec![done.clone()], "waits for a to tell `started`", Timer::Start),
        (vec![], vec![begun.clone()], "runs at a", Timer::Finish),
        (both.clone(), vec![begun.clone()], "runs at a; waits for b to start it", Timer::Finish),
        (both, vec![begun.clone(), done.clone()], "waits for b to start it", Timer::Finish),
        (vec![], vec![started(0, "b"), done], "runs at b; waits for a to tell `started`", Timer::Finish),
        (
            vec![],
            vec![begun, finished(0, "b", Outcome::PASS), finished(0, "a", Outcome::PASS)],
            "waits for b to tell `started`",
            Timer::Finish,
        ),
    ] {
        let task = Task { executors: declared, ..Task::named("test") };
        let run = after(admitted(vec![task]), &events);
        assert_eq!(run.tasks[0].message, message, "{events:?}");
        let ended = after(run, &[timer(late)]);
        assert_eq!(ended.outcome, Some(Outcome::TIMED_OUT), "{message}");
        assert!(ended.message.contains(message) || events.is_empty(), "{}", ended.message);
    }
}

#[test]
fn limits_are_as_the_task_says() {
    let task = Task { start_timeout_ms: Some(1_000), timeout_ms: Some(2_000), ..Task::named("test") };
    let sequence = Sequence { name: "delivery".into(), tasks: vec![task], ..Sequence::default() };
    let tasks = task_records(&sequence);
    let procedure = digest::stored(Procedure { sequence, ..Procedure::default() });
    let run = SequenceRun { is_foreign: true, delivery: None, procedure, tasks, ..delivery("r1", "a") };
    let due = |decided: &Decided, asked: Timer| {
        let of = |action: &Action| match action {
            Action::SetTimer { timer, due } if *timer == asked => Some(*due),
            _ => None,
        };
        decided.actions.iter().find_map(of)
    };
    assert_eq!(due(&asked(&run, &Event::Admitted), Timer::Start), Some(NOW + Duration::from_secs(1)));
    let run = after(run, &[Event::Admitted]);
    assert_eq!(due(&asked(&run, &started(0, "a")), Timer::Finish), Some(NOW + Duration::from_secs(2)));
}

#[test]
fn who_has_begun_and_is_silent_for_too_long_ends_the_task() {
    let at = |seconds: i64| Timestamp(NOW.0 + 1_000 * seconds);
    let told = |run: &SequenceRun, event: Event, seconds: i64| step(run, &event, at(seconds)).0;
    let says = |name: &str, message: &str| Event::ExecutorReported {
        task: 0,
        executor: name.into(),
        id: String::new(),
        message: message.into(),
    };
    let ends = |run: &SequenceRun, seconds: i64| told(run, timer(Timer::Progress), seconds);
    let run = admitted(vec![Task { heartbeat_ms: Some(60_000), retries: 1, ..Task::named("test") }]);
    assert_eq!(ends(&run, 600).ended_at, None, "nobody has begun");
    let begun = told(&run, started(0, "k6"), 0);
    assert_eq!(begun.awaited_sign(0).map(|(_, due)| due), Some(at(60)));
    assert_eq!(ends(&begun, 59), begun, "it has time left");
    let silent = ends(&begun, 60);
    assert_eq!(silent.outcome, Some(Outcome::TIMED_OUT));
    assert_eq!(silent.message, "test: nothing was heard of k6 for 1m00s");
    let (heard, decided) = step(&begun, &says("k6", "half of it"), at(50));
    assert!(decided.actions.contains(&Action::SetTimer { timer: Timer::Progress, due: at(110) }), "{decided:?}");
    assert_eq!(ends(&heard, 60), heard, "it was heard of since");
    let message = "test: nothing was heard of k6 for 1m10s; it said last: half of it";
    assert_eq!(ends(&heard, 120).message, message);
    let two = told(&heard, started(0, "jmeter"), 55);
    assert_eq!(ends(&told(&two, says("k6", ""), 100), 115).message, "test: nothing was heard of jmeter for 1m00s");
    let one = told(&two, finished(0, "k6", Outcome::PASS), 60);
    assert_eq!(ends(&one, 114), one, "who is done may be silent");
    let again = told(&begun, finished(0, "k6", Outcome::FAIL), 10);
    assert_eq!(ends(&again, 600), again, "nobody is at it before it is tried again");
    let asks_for_none = told(&admitted(vec![Task::named("test")]), started(0, "k6"), 0);
    assert_eq!(ends(&told(&asks_for_none, says("k6", ""), 10), 6_000).ended_at, None);
}

#[test]
fn an_approval_is_given_by_itself_or_by_a_person_as_its_strategy_says() {
    let strategy = |pass: &str, warning: &str| json!({"pass": pass, "warning": warning});
    for (properties, before, is_automatic) in [
        (strategy("automatic", "manual"), Outcome::PASS, true),
        (strategy("automatic", "manual"), WARNING, false),
        (strategy("manual", "automatic"), Outcome::PASS, false),
        (strategy("manual", "automatic"), WARNING, true),
        (json!({}), Outcome::PASS, false),
        (Value::Null, Outcome::PASS, false),
    ] {
        let approval = Task { properties: properties.clone(), ..Task::named("approval") };
        let run = admitted(vec![Task::named("evaluation"), approval]);
        let run = after(run, &[started(0, "lighthouse"), finished(0, "lighthouse", before)]);
        assert_eq!(run.awaits_approval().is_none(), is_automatic, "{properties} after {before:?}");
        assert_eq!(run.outcome, is_automatic.then_some(before), "{properties} after {before:?}");
    }
}

#[test]
fn the_first_word_about_an_approval_decides_whoever_else_has_begun() {
    let asks = admitted(vec![Task::named("approval"), Task::named("ship")]);
    let thinks = after(asks, &[started(0, "approval-service")]);
    assert_eq!(thinks.tasks[0].message, "waits for approval: runs at approval-service");
    for outcome in [Outcome::PASS, Outcome::FAIL] {
        let decided = after(thinks.clone(), &[finished(0, "ann", outcome)]);
        assert_eq!(decided.tasks[0].outcome, Some(outcome));
        assert_eq!(decided.tasks[0].message, "finished by ann");
        let late = after(decided.clone(), &[finished(0, "approval-service", Outcome::FAIL)]);
        assert_eq!(late.tasks[0].outcome, Some(outcome));
    }
    let both = Task { executors: vec!["ann".into(), "bob".into()], ..Task::named("approval") };
    let half = after(admitted(vec![both]), &[finished(0, "ann", Outcome::PASS)]);
    assert_eq!(half.tasks[0].outcome, None);
    assert_eq!(half.tasks[0].message, "waits for approval: waits for bob to start it");
    assert_eq!(after(half, &[finished(0, "bob", Outcome::FAIL)]).tasks[0].outcome, Some(Outcome::FAIL));
}

#[test]
fn two_executors_may_call_their_events_the_same() {
    let begun = |name: &str| Event::ExecutorStarted {
        task: 0,
        executor: name.into(),
        id: "t-started".into(),
        data: Value::Null,
    };
    let both = Task { executors: vec!["jm".into(), "k6".into()], ..Task::named("load") };
    let run = after(admitted(vec![both]), &[begun("jm"), begun("jm"), begun("k6")]);
    let names: Vec<_> = run.tasks[0].executors.iter().map(|it| (it.name.as_str(), it.started_at.is_some())).collect();
    assert_eq!(names, [("jm", true), ("k6", true)]);
}

#[test]
fn who_waits_for_a_person_lets_others_have_the_slot_and_takes_it_again() {
    let run = admitted(vec![Task::named("approval"), Task::named("release")]);
    assert!(run.yields_slot());
    let approved = after(run.clone(), &[finished(0, "ann", Outcome::PASS)]);
    assert_eq!(approved.state, SequenceState::Returning { task: 1 });
    assert_eq!(approved.tasks[1].started_at, None, "it does not have the slot yet");
    let goes_on = after(approved, &[Event::Admitted]);
    assert_eq!(goes_on.state, SequenceState::Running { task: 1 });
    let rejected = after(run, &[finished(0, "ann", Outcome::FAIL)]);
    assert_eq!(rejected.outcome, Some(Outcome::FAIL));
}

#[test]
fn a_pause_may_let_others_have_the_slot() {
    let paused = |holds_slot| Task { triggered_after_ms: 1_000, holds_slot, ..Task::named("test") };
    let holds = admitted(vec![paused(true)]);
    assert!(!holds.yields_slot());
    assert_eq!(after(holds, &[timer(Timer::Delay)]).tasks[0].started_at, Some(NOW));
    let yields = admitted(vec![paused(false)]);
    assert!(yields.yields_slot());
    let later = Timestamp(NOW.0 + 1_000);
    let (over, _) = step(&yields, &timer(Timer::Delay), later);
    assert_eq!(over.state, SequenceState::Returning { task: 0 });
    let (again, _) = step(&over, &Event::Admitted, later);
    assert_eq!(again.tasks[0].started_at, Some(later));
}

#[test]
fn what_comes_after_a_failure_is_what_its_condition_says() {
    let task = |name: &str, condition| Task { condition, ..Task::named(name) };
    let tasks = vec![
        task("test", Condition::OnSuccess),
        task("release", Condition::OnSuccess),
        task("notify", Condition::OnFailure),
        task("cleanup", Condition::Always),
    ];
    let done = |index| [started(index, "a"), finished(index, "a", Outcome::PASS)];
    let failed = after(admitted(tasks.clone()), &[started(0, "a"), finished(0, "a", Outcome::FAIL)]);
    assert_eq!(failed.state, SequenceState::Running { task: 2 });
    let failed = after(failed, &[done(2), done(3)].concat());
    assert_eq!(failed.outcome, Some(Outcome::FAIL), "what handles a failure does not undo it");
    assert_eq!(failed.message, "test: finished by a");
    let passed = after(admitted(tasks), &[done(0), done(1), done(3)].concat());
    assert_eq!(passed.outcome, Some(Outcome::PASS));
    assert_eq!(passed.tasks[2].started_at, None);
}

#[test]
fn what_failed_is_offered_again() {
    let run = admitted(vec![Task { retries: 1, ..Task::named("test") }]);
    let failed = [started(0, "a"), finished(0, "a", Outcome::FAIL)];
    let again = after(run, &failed);
    assert_eq!(again.ended_at, None);
    assert_eq!(after(again.clone(), &failed), again, "what is said in between has no effect");
    let again = after(again, &[timer(Timer::Retry)]);
    assert_eq!(again.tasks[0].offers, 2);
    assert_eq!(after(again, &failed).outcome, Some(Outcome::FAIL));
}

#[test]
fn an_abort_waits_for_who_has_begun_but_not_for_ever() {
    let cancel = Event::Cancel { outcome: Outcome::ABORTED, reason: "aborted by ann".into() };
    let offered = admitted(vec![Task::named("test")]);
    assert_eq!(after(offered.clone(), std::slice::from_ref(&cancel)).outcome, Some(Outcome::ABORTED));
    let ending = after(offered, &[started(0, "a"), cancel]);
    assert!(matches!(ending.state, SequenceState::Ending { .. }), "{ending:?}");
    assert_eq!(after(ending.clone(), &[finished(0, "a", Outcome::PASS)]).outcome, Some(Outcome::ABORTED));
    let never_began = [finished(0, "b", Outcome::PASS), finished(0, "a", Outcome::PASS)];
    assert_eq!(after(ending.clone(), &never_began).outcome, Some(Outcome::ABORTED), "nobody waits for b to begin");
    assert_eq!(after(ending, &[timer(Timer::Finish)]).outcome, Some(Outcome::ABORTED));
}

#[test]
fn every_task_finds_what_those_before_it_left() {
    let test = Task { properties: json!({"teststrategy": "functional"}), ..Task::named("test") };
    let run = SequenceRun {
        data: json!({"configurationChange": {"values": {"image": "web:1"}}}),
        ..admitted(vec![Task::named("deployment"), test])
    };
    let left = json!({"deployment": {"deploymentURI": "http://web"}, "message": "deployed", "stage": "elsewhere"});
    let run = after(run, &[started(0, "helm"), leaving(0, "helm", WARNING, left)]);
    assert_eq!(
        of_triggered(&run, 1),
        json!({
            "project": "shop", "stage": "dev", "service": "web",
            "status": "succeeded", "result": "warning", "message": "",
            "configurationChange": {"values": {"image": "web:1"}},
            "deployment": {"deploymentURI": "http://web"},
            "test": {"teststrategy": "functional"},
        })
    );
    let run = after(run, &[started(1, "jmeter"), finished(1, "jmeter", Outcome::PASS)]);
    assert_eq!(
        of_sequence(&run),
        json!({
            "project": "shop", "stage": "dev", "service": "web", "status": "succeeded", "result": "pass", "message": "",
        })
    );
}

#[test]
fn too_much_data_ends_the_task_and_says_so() {
    let run = admitted(vec![Task::named("test")]);
    let much = json!({"test": {"log": "x".repeat(MOST_DATA)}});
    let run = after(run, &[started(0, "a"), leaving(0, "a", Outcome::PASS, much)]);
    assert_eq!(run.outcome, Some(Outcome::ERRORED));
    assert!(run.message.contains("more than 65536"), "{}", run.message);
}
