use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::engine::fixtures::{
    DOWN, HELD, Made, Memory, NOW, attempted, declared, delivery, deployed, deploying, deployment, down, ended, holds,
    object, plan, project, refused, repository, sequence, service, serving, slot, web,
};
use crate::model::cause::Cause;
use crate::model::hold::HoldKind;
use crate::model::run::{Phase, TaskRecord};
use crate::model::shipyard::{APPROVAL_TASK, Task};
use crate::model::slot::{Delivered, SlotState};
use crate::model::state::{Quarantined, RepositoryState};
use crate::model::wanted::{Target, Wanted};
use crate::testing::world::deployment_config;

mod approval;
mod pause;
mod rerun;
mod retry;
mod steer;
mod switch;

const NO_CONFIG: &str = "deployment config `web` does not exist in stage dev";
const WAY_OUT: &str = "`launchway rollout cancel dc/web -s dev` ends it";

/// Version 1 serves as declared.
fn serves() -> Memory {
    Memory::default().with(repository()).with(serving(1, "a"))
}

/// Version 2 is being deployed while version 1 serves.
fn rolls_out() -> Memory {
    let by = deploying(delivery("s1", "b"), 2);
    let memory = serves().with(attempted(serving(1, "a"), "b", &by, None)).with(sequence(&by));
    memory.with(slot(Some(&by), &[])).with(deployed(deployment(2, "b", &by, Phase::New)))
}

/// The same config with something else in its spec.
fn with_spec(state: ConfigState, spec: serde_json::Value) -> ConfigState {
    let object = deployment_config("web", "a", 1, spec).into();
    ConfigState { object, ..state }
}

/// A run that has the slot and is at a task before its deployment.
fn tests_first(run: SequenceRun) -> SequenceRun {
    first("test", run)
}

/// The same with a task before all others, which is under way.
fn first(task: &str, run: SequenceRun) -> SequenceRun {
    let mut sequence = run.procedure.sequence.clone();
    sequence.tasks.insert(0, Task::named(task));
    let procedure = digest::stored(Procedure { sequence, ..Procedure::default() });
    let before = TaskRecord { name: task.into(), step: task.into(), started_at: Some(NOW), ..run.tasks[0].clone() };
    let tasks = std::iter::once(before).chain(run.tasks.clone()).collect();
    SequenceRun { procedure, tasks, state: SequenceState::Running { task: 0 }, ..run }
}

fn cancelled(memory: &Memory) -> crate::error::Result<Made<Cancelled>> {
    memory.decide(|transition| cancel(transition, &web(), &service("dev"), "ann"))
}

#[test]
fn what_has_the_slot_is_cancelled_whatever_it_is_at() {
    let event = Event::Cancel { outcome: Outcome::ABORTED, reason: "cancelled by ann".into() };
    let tests = tests_first(delivery("s1", "b"));
    let holds = |memory: Memory| memory.with(sequence(&tests)).with(slot(Some(&tests), &[]));
    for (memory, what, run) in [
        (rolls_out(), "version 2", web().deployment(2)),
        (holds(serves()), "delivery of bbbbbbb at `test`", "s1".into()),
        (holds(Memory::default()), "delivery of bbbbbbb at `test`", "s1".into()),
    ] {
        let made = cancelled(&memory).expect("something is under way");
        assert_eq!(made.answer, Cancelled { what: what.into(), run });
        assert_eq!(made.told(&"s1".into())[0], &event);
    }
}

#[test]
fn what_takes_a_config_from_its_service_is_cancelled_before_it_has() {
    let elsewhere = ServiceKey { service: "shop".into(), ..service("dev") };
    let run = tests_first(SequenceRun { service: elsewhere.clone(), ..delivery("s1", "b") });
    let slot = SlotState { service: elsewhere.clone(), ..slot(Some(&run), &[]) };
    let memory = serves().with(sequence(&run)).with(slot);
    let made = memory.decide(|transition| cancel(transition, &web(), &elsewhere, "ann"));
    assert_eq!(made.expect("something is under way").answer.run, run.id);
}

#[test]
fn nothing_is_cancelled_where_nobody_has_the_slot() {
    let over = deployed(deployment(1, "a", &delivery("s0", "a"), Phase::Complete));
    let failed = deployed(deployment(1, "a", &delivery("s0", "a"), Phase::Failed));
    let queued = delivery("s1", "b");
    for (memory, expected) in [
        (Memory::default(), "no rollout is in progress"),
        (serves(), "no rollout is in progress"),
        (serves().with(over.clone()), "no rollout is in progress (latest rollout #1 complete)"),
        (serves().with(failed), "no rollout is in progress (latest rollout #1 failed)"),
        (
            serves().with(over).with(sequence(&queued)).with(slot(None, &[&queued])),
            "no rollout is in progress (latest rollout #1 complete)",
        ),
    ] {
        assert_eq!(refused(cancelled(&memory)), expected);
    }
}

#[test]
fn what_a_deployment_config_would_be_is_worked_out_whatever_is_in_its_way() {
    let generated = |memory: &Memory| {
        let made = memory.decide(|transition| generate(transition.records, &web(), Images::Newest));
        let Generated { version, is_new, is_paused, .. } = made.expect("it is there").answer;
        (version, is_new, is_paused)
    };
    let paused = with_spec(serving(1, "a"), json!({"paused": true}));
    for (memory, expected) in [
        (serves(), (1, false, false)),
        (serves().with(declared("b")), (1, true, false)), // never deployed
        (rolls_out(), (2, false, false)),
        (serves().with(holds(HoldKind::Person)), (1, false, false)),
        (serves().with(paused), (2, true, true)),
    ] {
        assert_eq!(generated(&memory), expected);
    }
    let nowhere = Memory::default().decide(|transition| generate(transition.records, &web(), Images::Newest));
    assert_eq!(refused(nowhere), NO_CONFIG);
}

fn latest_of(memory: &Memory) -> crate::error::Result<Made<Latest>> {
    memory.decide(|transition| latest(transition, &web(), Images::Newest, "ann"))
}

#[test]
fn what_is_declared_is_deployed_once_more_although_nothing_differs() {
    let mut memory = serves();
    let made =
        memory.commit(|transition| latest(transition, &web(), Images::Newest, "ann")).expect("nothing is in its way");
    let [run] = made.started()[..] else { unreachable!("{made:#?}") };
    let told = (made.answer.version, run.event_name(), &*run.cause);
    assert_eq!(told, (2, "dev.rollout".into(), "manual change by ann"));
    assert_eq!((run.by.as_deref(), &run.plan, run.commit.as_str(), run.is_rollback), (Some("ann"), &None, "c1", false));
    assert_eq!(run.changes()[0].causes, [Cause::Manual { by: "ann".into() }]);
    let state = memory.get::<ConfigState>(web());
    assert_eq!((state.latest_version, &state.object), (2, &object("a")));
    let again = format!("#2 is already in progress (New). ({WAY_OUT})");
    assert_eq!(refused(latest_of(&memory)), again, "asked twice, it is done once");
}

#[test]
fn nothing_is_deployed_by_hand_that_must_not_change() {
    let paused = with_spec(serving(1, "a"), json!({"paused": true}));
    let hint = "`launchway release dc/web -s dev` lets it go on, or set `paused: false` and push";
    for (memory, expected) in [
        (Memory::default(), NO_CONFIG.to_owned()),
        (serves().with(ConfigState { removed: true, ..serving(1, "a") }), NO_CONFIG.to_owned()),
        (serves().with(down()), DOWN.to_owned()),
        (serves().with(holds(HoldKind::Person)), HELD.to_owned()),
        (serves().with(holds(HoldKind::Rollback)), HELD.to_owned()),
        (rolls_out(), format!("#2 is already in progress (New). ({WAY_OUT})")),
        (serves().with(paused), format!("cannot deploy a paused deployment config ({hint})")),
    ] {
        assert_eq!(refused(latest_of(&memory)), expected);
    }
}

#[test]
fn a_newer_revision_that_is_still_to_deploy_is_not_overtaken_by_hand() {
    let queued = SequenceRun { message: "held by bob: sale".into(), ..delivery("s1", "b") };
    let tests = tests_first(delivery("s1", "b"));
    let under_way = format!("delivery of bbbbbbb at `test` is under way: {WAY_OUT}");
    let first = "delivery of bbbbbbb comes first";
    for (state, run, expected) in [
        (slot(None, &[&queued]), &queued, format!("{first}: held by bob: sale")),
        (slot(Some(&tests), &[]), &tests, format!("{first} ({under_way})")),
    ] {
        assert_eq!(refused(latest_of(&serves().with(state).with(sequence(run)))), expected);
    }
    let (tasks, has_deployed) =
        (SequenceRun { delivery: None, ..delivery("s1", "b") }, deploying(delivery("s1", "b"), 1));
    let mut beside = tests_first(delivery("s1", "b"));
    beside.delivery.iter_mut().flat_map(|it| &mut it.changes).for_each(|change| change.key.name = "beside".into());
    for (state, run) in [
        (slot(None, &[&tasks]), &tasks),
        (slot(Some(&beside), &[]), &beside),
        (slot(Some(&has_deployed), &[]), &has_deployed),
        (slot(Some(&ended(tests.clone(), Outcome::PASS)), &[]), &ended(tests, Outcome::PASS)),
    ] {
        let made = latest_of(&serves().with(state).with(sequence(run)));
        assert_eq!(made.expect("nothing newer is still to be deployed").answer.version, 2);
    }
}

#[test]
fn what_is_declared_and_must_wait_is_not_passed_over_for_what_was_declared_before() {
    let files = project(&["shipyard dev", "declare web image=b paused=true"]);
    let waits = plan(&files, "c2", &BTreeMap::new());
    let mut held = waits.clone();
    held.stages[0].services[0].changes[0].cause = "hold h1 by bob: sale".into();
    let hint = "`launchway why dc/web` says more; push what lets it go on";
    assert_eq!(
        refused(latest_of(&serves().planned(&waits))),
        format!("cannot deploy what c2 declares: paused ({hint})")
    );
    let goes_on = plan(&project(&["shipyard dev", "declare web image=b"]), "c3", &BTreeMap::new());
    for memory in [serves().planned(&held), serves().planned(&waits).planned(&goes_on)] {
        assert_eq!(latest_of(&memory).expect("nothing keeps it from being deployed").answer.version, 2);
    }
    let made = latest_of(&serves()).expect("nothing was planned");
    let noted = made.only::<RepositoryState>().generation;
    assert_eq!((noted, made.started().len()), (1, 1), "a head that is being planned meanwhile is planned again");
}

#[test]
fn what_a_person_has_rejected_is_not_deployed_past_them() {
    let mut rejected = ended(first(APPROVAL_TASK, delivery("s1", "b")), Outcome::FAIL);
    rejected.tasks[0].outcome = Some(Outcome::FAIL);
    rejected.tasks[0].message = "rejected by bob: no".to_owned();
    let delivered = |deployed: bool| {
        let (content, procedure) = ("content".into(), "procedure".into());
        let last = Delivered { run: rejected.id.clone(), content, procedure, deployed };
        SlotState { last_delivery: Some(last), ..slot(None, &[]) }
    };
    let memory = Memory::default().with(repository()).with(sequence(&rejected));
    let hint = "`launchway trigger delivery web -s dev` asks for approval again";
    for declared in [declared("b"), ConfigState { serving: serving(1, "a").serving, ..declared("b") }] {
        let memory = memory.clone().with(delivered(false)).with(declared);
        let expected = format!("bbbbbbb of web may not go on: rejected by bob: no ({hint})");
        assert_eq!(refused(latest_of(&memory)), expected);
    }
    let again = memory.clone().with(delivered(false)).with(serving(1, "b"));
    assert!(latest_of(&again).is_ok(), "what serves may start again");
    assert!(latest_of(&memory.clone().with(delivered(true)).with(declared("b"))).is_ok(), "it was approved");

    let mut by_a_pod = (*rejected.procedure).clone();
    let task = json!({"command": ["false"], "image": "host", "location": {"file": "a.yaml", "line": 1, "column": 1}});
    by_a_pod.tasks.insert(APPROVAL_TASK.to_owned(), serde_json::from_value(task).expect("a Task"));
    let failed = SequenceRun { procedure: digest::stored(by_a_pod), ..rejected.clone() };
    let memory = memory.with(sequence(&failed)).with(delivered(false)).with(declared("b"));
    assert!(latest_of(&memory).is_ok(), "a Task of that name asks no person");
}

#[test]
fn the_number_of_replicas_changes_at_once_also_during_a_rollout() {
    for (memory, version) in [(serves(), Some(1)), (rolls_out(), Some(1)), (serves().with(declared("a")), None)] {
        let before = memory.get::<ConfigState>(web());
        let made = memory.decide(|transition| scale(transition, &web(), 4, "ann")).expect("nobody holds it");
        let scaled = Some(Scaled { replicas: 4, by: "ann".into(), at: NOW });
        let wanted = Wanted { replicas: 4, ..before.wanted.clone() };
        let from = before.wanted.replicas;
        assert_eq!(*made.only::<ConfigState>(), ConfigState { scaled, wanted, ..before.clone() });
        assert_eq!(made.told(&web().events()), [&Event::Scaled { version, from, to: 4, by: "ann".into() }]);
    }
}

#[test]
fn only_a_persons_hold_keeps_the_number_of_replicas() {
    let scaled = |memory: &Memory| memory.decide(|transition| scale(transition, &web(), 4, "ann"));
    for (memory, expected) in
        [(Memory::default(), NO_CONFIG), (serves().with(down()), DOWN), (serves().with(holds(HoldKind::Person)), HELD)]
    {
        assert_eq!(refused(scaled(&memory)), expected);
    }
    scaled(&serves().with(holds(HoldKind::Rollback))).expect("a rollback's hold is about something else");
}
