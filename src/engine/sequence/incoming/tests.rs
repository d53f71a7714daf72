use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::*;
use crate::engine::fixtures::{self, Memory, NOW, delivery, plan, sequence, slot};
use crate::engine::sequence::machine::{step, task_records};
use crate::model::cloud_event::PREFIX;
use crate::model::project::Procedure;
use crate::model::run::ExecutorRecord;
use crate::model::shipyard::{APPROVAL_TASK, Shipyard, Stage};
use crate::testing::world::project;

fn event(source: &str, id: &str, kind: &str, data: Value) -> CloudEvent {
    CloudEvent { source: source.into(), ..CloudEvent::of(format!("{PREFIX}{kind}"), id.to_owned(), data) }
}

#[test]
fn what_could_not_be_read_again_is_not_taken() {
    let nested = |levels: usize| {
        let deep = (2..levels).fold(json!([]), |inner, _| json!([inner]));
        event("ci", "e1", "dev.check.triggered", json!({"project": "shop", "service": "web", "deep": deep}))
    };
    check(&nested(MOST_DEPTH)).expect("it is not too deep");
    let refused = check(&nested(MOST_DEPTH + 1)).expect_err("it is too deep");
    assert_eq!(refused.to_string(), "the data of an event may be nested 32 levels deep");
}

#[test]
fn sources_and_ids_tell_events_apart() {
    let of = |source, id| once(&event(source, id, "problem.open", json!({})));
    assert_eq!(of("ci", "1 2"), "event ci 1 2");
    let delivered = once_to(&of("a", "b"), &"c".into());
    let all = [of("a b", "c"), of("a", "b c"), of("a%20b", "c"), of("a", "b"), of("a", "b to c"), delivered];
    let told: BTreeSet<&String> = all.iter().collect();
    assert_eq!(told.len(), all.len(), "{told:?}");
    assert!(all.iter().all(|once| once.starts_with(KEPT_BY_AGE)), "as long as events are: {all:?}");
}

#[test]
fn what_happens_happens_in_a_stage_that_is_there() {
    let stages = ["dev", "production"].map(|name| Stage { name: name.into(), sequences: Vec::new() });
    let shipyard = Shipyard { name: "shop".into(), stages: stages.into(), ..Shipyard::default() };
    let plan = plan(&project(shipyard, &[]), "c1", &BTreeMap::new());
    let told = |kind, stage: Option<&str>| {
        let stage = stage.map(StageName::new);
        happened_at(&plan, kind, stage.as_ref()).map_err(|failure| failure.to_string())
    };
    let differ = "its type is about stage `production`, its data about `dev`";
    for (kind, stage, expected) in [
        ("problem.open", None, None),
        ("problem.open", Some("dev"), None),
        ("dev.problem.open", None, None),
        ("dev.problem.open", Some("dev"), None),
        ("production.problem.open", Some("dev"), Some(differ)),
        ("sh.keptn.event.production.problem.open", Some("dev"), Some(differ)),
        ("problem.open", Some("nope"), Some("project `shop` has no stage `nope`")),
    ] {
        assert_eq!(told(kind, stage).err().as_deref(), expected, "{kind} {stage:?}");
    }
}

/// A run of one task that has its slot.
fn admitted(task: Task) -> SequenceRun {
    let sequence = Sequence { name: "check".into(), tasks: vec![task], ..Sequence::default() };
    let tasks = task_records(&sequence);
    let procedure = content::stored(Procedure { sequence, ..Procedure::default() });
    let run = SequenceRun { is_foreign: true, delivery: None, procedure, tasks, ..delivery("r1", "a") };
    step(&run, &Event::Admitted, NOW).0
}

#[test]
fn what_a_task_does_not_wait_for_has_no_effect() {
    let finished = event("ci", "e1", "ship.finished", json!({}));
    let told = |run: &SequenceRun, task: &str, phase: Phase| {
        let triggered = run.triggered_id(0);
        has_no_effect(run, 0, (task, &triggered, phase), &finished)
    };
    let reason = |run: &SequenceRun, task: &str| told(run, task, Phase::Finished);
    let asks = admitted(Task::named(APPROVAL_TASK));
    assert_eq!(reason(&asks, APPROVAL_TASK), None);
    let pauses = admitted(Task { triggered_after_ms: 4000, ..Task::named("ship") });
    assert_eq!(pauses.state, SequenceState::Running { task: 0 });
    assert_eq!(reason(&pauses, "ship").as_deref(), Some("`ship` does not wait for it"));
    let mut crowded = asks;
    crowded.tasks[0].executors = (0..MOST_EXECUTORS).map(|number| ExecutorRecord::of(&format!("e{number}"))).collect();
    let many = "`approval` has 100 executors, which are enough";
    assert_eq!(reason(&crowded, APPROVAL_TASK).as_deref(), Some(many));
    crowded.tasks[0].executors[7].name = "ci".into();
    assert_eq!(reason(&crowded, APPROVAL_TASK), None);
    crowded.tasks[0].executors[7].started_at = Some(NOW);
    assert_eq!(told(&crowded, APPROVAL_TASK, Phase::Started).as_deref(), Some(many), "it would be one more");
    assert_eq!(told(&crowded, APPROVAL_TASK, Phase::StatusChanged), None);
    crowded.tasks[0].executors[7].finished_at = Some(NOW);
    assert_eq!(reason(&crowded, APPROVAL_TASK).as_deref(), Some(many));
}

#[test]
fn a_long_message_is_cut() {
    let long = event("ci", "e1", "ship.finished", json!({"message": "é".repeat(LONGEST_MESSAGE + 1)}));
    let Event::ExecutorFinished { message, .. } = fact(&long, 0, Phase::Finished) else { unreachable!() };
    assert_eq!(message.chars().count(), LONGEST_MESSAGE);
}

/// A revision that changes another service says nothing of one that is being delivered: the event delivers that, and is no
/// event about something that is declared nowhere. Where it is one, the delivery of its stage is what it was told for.
#[test]
fn what_is_under_way_is_delivered_and_what_is_declared_nowhere_is_started_once() {
    let event = event("ci", "e1", "dev.delivery.triggered", json!({"project": "shop", "service": "web"}));
    let plan = fixtures::plan(&fixtures::project(&["shipyard dev", "declare api"]), "c1", &BTreeMap::new());
    let run = delivery("s1", "a");
    let foreign = SequenceRun { delivery: None, ..run.clone() };
    for (in_slot, delivers) in [(None, false), (Some(&foreign), false), (Some(&run), true)] {
        let mut memory = Memory::default().with(fixtures::repository()).planned(&plan);
        if let Some(run) = in_slot {
            memory = memory.with(sequence(run)).with(slot(Some(run), &[]));
        }
        let made = memory.decide(|transition| receive(transition, &"repo".into(), &event)).expect("it is taken");
        let told = made.transaction.writes.iter().filter_map(|write| match write {
            Write::Delivery { id, .. } => Some(id.as_str()),
            _ => None,
        });
        let started = ["event ci e1", "event %to/dev ci e1"];
        assert_eq!(told.collect::<Vec<_>>(), if delivers { &[][..] } else { &started[..] });
        assert_eq!((made.answer.delivers.len(), made.answer.runs.len()), if delivers { (1, 0) } else { (0, 1) });
    }
}
