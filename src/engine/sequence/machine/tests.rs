use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::deployments::worst;
use super::*;
use crate::engine::fixtures::{NOW, change, delivery, object, web};
use crate::engine::sequence::dataflow::of_triggered;
use crate::manifest::digest;
use crate::model::cloud_event::CloudEvent;
use crate::model::data::MOST_DATA;
use crate::model::ids::Destination;
use crate::model::object::Location;
use crate::model::outcome::{FailureReason, PodOutcome, Status, TaskResult};
use crate::model::plan::{Change, Decision};
use crate::model::pod::PodResult;
use crate::model::project::{Procedure, TaskDefinition};
use crate::model::shipyard::{DEPLOYMENT_TASK, Task};
use crate::plan::selector;
use crate::report::cloud_event;

#[test]
fn nothing_is_done_in_a_stage_that_cannot_be_deployed_to_yet() {
    let local = run_of(&["deployment"]);
    let run = SequenceRun { destination: Destination::kubernetes("shop-dev".into()), ..local };
    let (run, asked) = after(run, &[Event::Admitted]);
    assert_eq!((run.state, run.outcome), (SequenceState::Ended, Some(Outcome::FAIL)));
    assert_eq!(run.message, "deploying to Kubernetes is not supported yet: nothing was changed");
    let does = |effect: &Effect| matches!(effect, Effect::StartDeployment { .. } | Effect::Apply { .. });
    assert!(!asked.effects.iter().any(does), "{:?}", asked.effects);
}

/// A delivery of one version of `web` by a sequence of tasks, each of which is tried once more.
fn run_of(tasks: &[&str]) -> SequenceRun {
    let named = |name: &&str| Task::named(*name);
    let sequence =
        Sequence { name: "delivery".into(), tasks: tasks.iter().map(named).collect(), ..Sequence::default() };
    let definition = TaskDefinition {
        command: vec!["true".into()],
        image: "git:tests@1".into(),
        env: Vec::new(),
        timeout_seconds: None,
        retries: 1,
        stages: Vec::new(),
        services: Vec::new(),
        properties: Default::default(),
        location: Location::default(),
    };
    let defined = tasks.iter().filter(|name| ![DEPLOYMENT_TASK].contains(name));
    let tasks: BTreeMap<String, TaskDefinition> =
        defined.map(|name| ((*name).to_owned(), definition.clone())).collect();
    let records = task_records(&sequence);
    let procedure = digest::stored(Procedure { sequence, tasks, ..Procedure::default() });
    SequenceRun { procedure, tasks: records, ..delivery("r1", "a") }
}

/// What a run becomes by events, one after the other, and all that it asks for.
fn after(run: SequenceRun, events: &[Event]) -> (SequenceRun, Decided) {
    let mut all = Decided::default();
    let mut run = run;
    for event in events {
        let (next, decided) = step(&run, event, NOW);
        run = next;
        all.effects.extend(decided.effects);
        all.actions.extend(decided.actions);
    }
    (run, all)
}

fn started() -> Event {
    Event::DeploymentStarted { config: "web".into(), deployment: web().deployment(1) }
}

fn deployed(outcome: Outcome) -> Event {
    let (deployment, message) = (web().deployment(1), "version 1 serves".into());
    Event::DeploymentEnded { deployment, outcome, message, served_already: false }
}

fn ended(run: &SequenceRun, outcome: PodOutcome) -> Event {
    let last = run.task().and_then(|task| task.tries.last()).expect("a try");
    Event::pod_ended(last.pod.clone(), outcome)
}

fn failed() -> PodOutcome {
    PodOutcome::Failed { code: 1, reason: FailureReason::Error, message: String::new() }
}

fn cancel() -> Event {
    Event::Cancel { outcome: Outcome::ABORTED, reason: "cancelled by ann".into() }
}

fn late_start() -> Event {
    Event::Timer { timer: Timer::Start }
}

fn pods(decided: &Decided) -> usize {
    decided.actions.iter().filter(|action| matches!(action, Action::RunPod { .. })).count()
}

fn stops(decided: &Decided) -> usize {
    decided.actions.iter().filter(|action| matches!(action, Action::StopPod { .. })).count()
}

/// What the end of a run says of what it brings; nothing, if something newer does that.
fn passes(decided: &Decided) -> Option<bool> {
    decided.effects.iter().find_map(|effect| match effect {
        Effect::Passed { .. } => Some(true),
        Effect::NotPassed { .. } => Some(false),
        _ => None,
    })
}

fn finished(decided: &Decided) -> usize {
    decided.effects.iter().filter(|effect| matches!(effect, Effect::Finished { .. })).count()
}

#[test]
fn a_task_that_comes_again_has_a_step_of_its_own() {
    let steps: Vec<String> =
        run_of(&["test", "deployment", "test", "test"]).tasks.into_iter().map(|it| it.step).collect();
    assert_eq!(steps, ["test", "deployment", "test-2", "test-3"]);
}

#[test]
fn tasks_run_one_after_another_and_the_last_one_passes_the_content() {
    let (run, decided) = after(run_of(&["check", "deployment", "test"]), &[Event::Admitted]);
    assert_eq!((run.state, pods(&decided)), (SequenceState::Running { task: 0 }, 1));
    let (run, decided) = after(run.clone(), &[ended(&run, PodOutcome::Succeeded)]);
    assert!(matches!(&decided.effects[..], [Effect::StartDeployment { .. }]), "{decided:?}");
    let (run, decided) = after(run, &[started(), deployed(Outcome::PASS)]);
    assert_eq!(
        (run.state, run.tasks[1].outcome, pods(&decided)),
        (SequenceState::Running { task: 2 }, Some(Outcome::PASS), 1)
    );
    let (run, decided) = after(run.clone(), &[ended(&run, PodOutcome::Succeeded)]);
    assert_eq!((run.outcome, passes(&decided), finished(&decided)), (Some(Outcome::PASS), Some(true), 1));
}

#[test]
fn a_task_is_tried_again_as_often_as_it_says_and_then_fails_the_sequence() {
    let (first, _) = after(run_of(&["test", "deployment"]), &[Event::Admitted]);
    let again = Event::Timer { timer: Timer::Retry };
    let (second, decided) = after(first.clone(), &[ended(&first, failed()), again.clone()]);
    assert_eq!((second.tasks[0].tries.len(), pods(&decided)), (2, 1));
    let (same, decided) = after(second.clone(), &[again]);
    assert_eq!((same, decided), (second.clone(), Decided::default()), "while it runs no timer starts another");
    let (last, decided) = after(second.clone(), &[ended(&second, failed())]);
    assert_eq!((last.outcome, passes(&decided)), (Some(Outcome::FAIL), Some(false)));
    assert!(last.message.starts_with("test: "), "{}", last.message);
    assert_eq!(last.tasks[1].started_at, None, "what comes after it never starts");
}

/// The pod of a run's task ends well and has written this.
fn wrote(run: &SequenceRun, written: Value) -> Event {
    let Event::PodEnded { pod, outcome, .. } = ended(run, PodOutcome::Succeeded) else { unreachable!() };
    Event::PodEnded { pod, outcome, result: Some(PodResult::Written(written)) }
}

#[test]
fn what_a_pod_writes_is_told_and_left_to_others_as_if_an_executor_had_told_it() {
    let (first, _) = after(run_of(&["test", "report"]), &[Event::Admitted]);
    let written = json!({"result": "warning", "message": "slow", "test": {"score": 97.5}, "labels": {"build": "17"}});
    let (second, decided) = after(first.clone(), &[wrote(&first, written)]);
    let warning = Outcome { status: Status::Succeeded, result: TaskResult::Warning };
    assert_eq!((second.tasks[0].outcome, second.tasks[0].message.as_str()), (Some(warning), "slow"));
    assert_eq!(pods(&decided), 1, "a warning goes on");
    let told = of_triggered(&second, 1);
    assert_eq!((&told["test"], &told["labels"]), (&json!({"score": 97.5}), &json!({"build": "17"})));
    let events = cloud_event::of_run(&second);
    let of_test: Vec<&CloudEvent> = events.iter().filter(|event| event.kind.contains(".test.")).collect();
    let kinds: Vec<&str> = of_test.iter().map(|event| event.short_kind()).collect();
    assert_eq!(kinds, ["test.triggered", "test.started", "test.finished"]);
    assert_eq!((of_test[2].id.as_str(), of_test[2].source.as_str()), ("r1.0.0.finished", "launchway"));
    assert_eq!((of_test[2].text("message"), &of_test[2].data["test"]["score"]), ("slow", &json!(97.5)));
    let facts = selector::facts_of_task(&second, 0).expect("it has ended");
    assert_eq!((&facts["result"], &facts["test"]["score"]), (&json!("warning"), &json!(97.5)));
}

#[test]
fn what_a_pod_writes_may_fail_its_task_which_is_tried_again_first() {
    let (first, _) = after(run_of(&["test"]), &[Event::Admitted]);
    let fail = json!({"result": "fail", "message": "3 failed", "test": {"failed": 3}});
    let again = Event::Timer { timer: Timer::Retry };
    let (second, _) = after(first.clone(), &[wrote(&first, fail.clone()), again]);
    assert_eq!((second.tasks[0].tries.len(), second.tasks[0].executors.len()), (2, 0));
    let (over, _) = after(second.clone(), &[wrote(&second, fail)]);
    assert_eq!((over.outcome, over.message.as_str()), (Some(Outcome::FAIL), "test: 3 failed"));
    assert_eq!(over.gathered(1), json!({"test": {"failed": 3}}));
    let good = after(second.clone(), &[wrote(&second, json!({"result": "pass"}))]).0;
    assert_eq!((good.outcome, good.gathered(1)), (Some(Outcome::PASS), Value::Null));
}

#[test]
fn more_than_a_sequence_may_gather_is_an_error_and_nothing_of_it_is_told() {
    let mut run = run_of(&["test"]);
    run.data = json!({"labels": {"note": "x".repeat(MOST_DATA / 2)}});
    let (run, _) = after(run, &[Event::Admitted]);
    let much = json!({"test": {"log": "x".repeat(MOST_DATA / 2)}});
    let (over, _) = after(run.clone(), &[wrote(&run, much)]);
    assert_eq!(over.outcome, Some(Outcome::ERRORED));
    assert!(over.message.contains("more than 65536"), "{}", over.message);
    let told = cloud_event::of_run(&over);
    let finished = told.iter().find(|event| event.short_kind() == "test.finished").expect("it is told");
    assert_eq!((finished.text("status"), finished.data.get("test")), ("errored", None));
}

#[test]
fn a_pod_that_does_not_start_in_time_is_stopped_before_its_task_ends() {
    let (run, _) = after(run_of(&["test"]), &[Event::Admitted]);
    let (waiting, decided) = after(run.clone(), &[Event::Delayed { message: "no image".into() }, late_start()]);
    assert_eq!((waiting.state, stops(&decided)), (SequenceState::Running { task: 0 }, 1));
    let (over, _) = after(waiting.clone(), &[ended(&waiting, failed())]);
    assert_eq!(over.outcome, Some(Outcome::TIMED_OUT), "it is not tried again");
    assert!(over.message.contains("did not start within 10m00s: no image"), "{}", over.message);
    let pod = run.tasks[0].tries[0].pod.clone();
    let (runs, decided) = after(run, &[Event::PodStarted { pod }, late_start()]);
    assert_eq!((runs.tasks[0].tries[0].timed_out, stops(&decided)), (false, 0), "it did");
}

#[test]
fn a_pause_before_a_task_is_waited_for() {
    let mut run = run_of(&["test"]);
    let mut procedure = (*run.procedure.value).clone();
    procedure.sequence.tasks[0].triggered_after_ms = 5000;
    run.procedure = digest::stored(procedure);
    let (paused, decided) = after(run, &[Event::Admitted]);
    let due = NOW + Duration::from_secs(5);
    assert_eq!(decided.actions, [Action::SetTimer { timer: Timer::Delay, due }]);
    let delay = Event::Timer { timer: Timer::Delay };
    let (begun, decided) = after(paused, &[delay.clone(), delay]);
    assert_eq!((begun.tasks[0].tries.len(), pods(&decided)), (1, 1), "once, however often its timer comes");
}

#[test]
fn a_sequence_that_is_cancelled_ends_once_what_it_started_has() {
    let running = after(run_of(&["test"]), &[Event::Admitted]).0;
    let pod_ended = ended(&running, failed());
    let deploying = after(run_of(&["deployment", "test"]), &[Event::Admitted, started()]).0;
    for (case, run, end) in [("a pod", running, pod_ended), ("a deployment", deploying, deployed(Outcome::PASS))] {
        let (ending, decided) = after(run, &[cancel()]);
        let told =
            decided.effects.iter().any(|effect| matches!(effect, Effect::Tell { event: Event::Cancel { .. }, .. }));
        assert!(told || stops(&decided) == 1, "{case}: {decided:?}");
        assert_eq!((ending.ended_at, finished(&decided)), (None, 0), "{case}");
        let (over, decided) = after(ending, &[end]);
        assert_eq!((over.outcome, passes(&decided)), (Some(Outcome::ABORTED), Some(false)), "{case}");
        assert_eq!(pods(&decided), 0, "{case}: nothing comes after it");
    }
    let (over, decided) = after(run_of(&["test"]), &[cancel()]);
    assert_eq!((over.outcome, finished(&decided)), (Some(Outcome::ABORTED), 1), "it had not begun");
    let newer = Event::Cancel { outcome: Outcome::SUPERSEDED, reason: "superseded".into() };
    assert_eq!(passes(&after(run_of(&["test"]), &[newer]).1), None, "what takes its place decides");
}

#[test]
fn a_service_that_is_not_all_that_its_revision_declares_does_not_pass() {
    let because =
        |decision, cause: &str| Change { cause: cause.into(), reasons: Vec::new(), ..change(decision, &object("a")) };
    let undeployed = change(Decision::None, &object("a"));
    for (case, change, expected) in [
        ("nothing differs", because(Decision::None, ""), Outcome::PASS),
        ("only replicas", because(Decision::Scale, "only replicas differ"), Outcome::PASS),
        ("it is gone", because(Decision::Delete, "no longer declared"), Outcome::PASS),
        ("it is paused", because(Decision::Wait, "paused"), Outcome::ABORTED),
        ("it failed before", because(Decision::None, "version 2 of the same content failed"), Outcome::FAIL),
        ("its new template is not deployed", change(Decision::Update, &object("a")), Outcome::ABORTED),
        ("its template was never deployed", undeployed, Outcome::ABORTED),
    ] {
        let mut run = run_of(&["deployment", "test"]);
        run.delivery.as_mut().expect("a delivery").changes = vec![change];
        let (run, _) = after(run, &[Event::Admitted]);
        assert_eq!(run.tasks[0].outcome, Some(expected), "{case}: {}", run.tasks[0].message);
        assert_eq!(run.state == SequenceState::Running { task: 1 }, expected.passes(), "{case}");
    }
}

#[test]
fn the_worst_of_several_deployments_counts() {
    for (outcomes, expected) in [
        (vec![Outcome::PASS, Outcome::PASS], Outcome::PASS),
        (vec![Outcome::FAIL, Outcome::PASS], Outcome::FAIL),
        (vec![Outcome::FAIL, Outcome::ERRORED], Outcome::ERRORED),
        (vec![Outcome::SUPERSEDED, Outcome::ABORTED], Outcome::ABORTED),
        (vec![], Outcome::PASS),
    ] {
        assert_eq!(worst(outcomes.iter().copied()), expected, "{outcomes:?}");
    }
}
