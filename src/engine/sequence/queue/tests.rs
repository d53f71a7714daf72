use std::collections::BTreeMap;

use super::*;
use crate::engine::fixtures::{
    Memory, NOW, applied, attempted, delivery as run_of, deploying, ended, passed, plan, project, sequence, service,
    serving, slot,
};
use crate::engine::transition::Transition;
use crate::model::outcome::Outcome;
use crate::model::plan::Decision;
use crate::model::project::Project;
use crate::model::slot::{PassedState, SlotState};
use crate::plan::build::{Applied, content_of};

const TESTED: [&str; 3] = ["shipyard dev:deployment,test", "task test", "declare web image=b"];

/// A plan of revision `c2`, which brings image `b` to `dev` where image `a` serves.
fn planned(lines: &[&str]) -> (Project, Plan) {
    planned_on(lines, applied(&serving(1, "a")))
}

fn planned_on(lines: &[&str], applied: Applied) -> (Project, Plan) {
    let project = project(lines);
    let plan = plan(&project, "c2", &BTreeMap::from([("dev".into(), applied)]));
    (project, plan)
}

/// A plan that has the sequence run although nothing differs.
fn planned_again() -> (Project, Plan) {
    let not_passed = BTreeMap::from([("web".into(), "`delivery` has changed".to_owned())]);
    planned_on(&TESTED, Applied { not_passed, ..applied(&serving(2, "b")) })
}

/// The run for the plan's part for `web` in `dev`, whether it is due or not.
fn asked(memory: &Memory, plan: &Plan, due: bool) -> Option<SequenceRun> {
    let stage = plan.stage(&"dev".into()).expect("a stage");
    let part = stage.service(&"web".into()).expect("a part of the plan");
    let decide = if due { due_delivery } else { delivery };
    let made = memory.decide(|it| decide(it.records, it.now, plan, stage, part, "push".into()));
    made.expect("nothing is refused").answer
}

fn is_due(memory: &Memory, plan: &Plan) -> bool {
    asked(memory, plan, true).is_some()
}

/// What was delivered last is what a plan brings in the same way.
fn delivered(plan: &Plan, deployed: bool) -> SlotState {
    let run = asked(&Memory::default(), plan, false).expect("a run");
    let content = run.planned_content().cloned().expect("what it brings");
    let procedure = procedure(&run.procedure);
    SlotState { last_delivery: Some(Delivered { run: "s0".into(), content, procedure, deployed }), ..slot(None, &[]) }
}

#[test]
fn each_attempt_at_a_revision_is_one_more_and_sequences_of_tasks_count_apart() {
    let before = |attempt| SequenceRun { attempt, ..ended(run_of("s1", "b"), Outcome::FAIL) };
    let tasks = SequenceRun { id: "s2".into(), delivery: None, attempt: 5, ..before(0) };
    let memory = Memory::default().with(sequence(&before(2))).with(sequence(&tasks));
    for (draft, expected) in [
        (before(0), 3),
        (tasks, 6),
        (run_of("", "c"), 1),
        (SequenceRun { service: service("production"), ..before(0) }, 1),
    ] {
        let made = memory.decide(|it| queued(it.records, it.now, draft.clone())).expect("it is queued");
        assert_eq!((made.answer.attempt, made.answer.created_at), (expected, NOW));
        assert_eq!(made.answer.tasks.len(), 1, "it has a record of each task");
        assert!(made.changes_nothing(), "it is queued once it is started");
    }
}

#[test]
fn a_delivery_carries_everything_that_it_needs_to_its_end() {
    let (project, plan) = planned(&TESTED);
    let run = asked(&Memory::default().with(serving(1, "a")), &plan, false).expect("a run");
    assert_eq!((run.plan.as_ref(), run.commit.as_str(), &*run.cause), (Some(&plan.id), "c2", "push"));
    assert_eq!(run.planned_content(), Some(&content_of(&project.stages[0], &"web".into())));
    let steps: Vec<&str> = run.tasks.iter().map(|task| &*task.step).collect();
    assert_eq!((steps, run.procedure.tasks.contains_key("test")), (vec!["deployment", "test"], true));
}

#[test]
fn what_was_decided_when_the_plan_was_made_is_decided_again() {
    let (_, plan) = planned(&["shipyard dev", "declare web image=b"]);
    for (now, expected) in [(serving(1, "a"), Decision::Deploy), (serving(2, "b"), Decision::None)] {
        let run = asked(&Memory::default().with(now), &plan, false).expect("a run");
        assert_eq!(run.changes()[0].decision, expected);
    }
}

#[test]
fn what_a_large_service_is_decided_on_is_read_at_once() {
    let rounds = |maps: usize| {
        let map = |number: usize| format!("object ConfigMap m{number} color=red service=web");
        let maps: Vec<String> = (0..maps).map(map).collect();
        let lines = ["shipyard dev", "declare web image=b"].into_iter().chain(maps.iter().map(String::as_str));
        let plan = planned(&lines.collect::<Vec<_>>()).1;
        let stage = &plan.stages[0];
        let decide =
            |it: &mut Transition<'_>| delivery(it.records, it.now, &plan, stage, &stage.services[0], "push".into());
        let made = Memory::default().decide(decide).expect("nothing is refused");
        assert_eq!(made.answer.expect("a run").changes().len(), maps.len() + 1);
        made.rounds
    };
    assert_eq!(rounds(1), rounds(20));
}

#[test]
fn a_stage_without_a_delivery_sequence_gets_nothing() {
    let (_, mut plan) = planned(&["shipyard dev", "declare web image=b"]);
    plan.stages[0].sequence = None;
    assert_eq!(asked(&Memory::default(), &plan, false), None);
    assert!(!is_due(&Memory::default(), &plan));
}

#[test]
fn a_delivery_is_due_while_it_would_do_something_and_has_not_ended_before_its_deployment() {
    let (_, plan) = planned(&["shipyard dev", "declare web image=b"]);
    let differs = Memory::default().with(serving(1, "a"));
    let mut other = delivered(&plan, false);
    other.last_delivery.iter_mut().for_each(|last| last.procedure = "sha256:other".into());
    for (case, memory, expected) in [
        ("it differs", differs.clone(), true),
        ("it serves", Memory::default().with(serving(2, "b")), false),
        ("it was deployed and has changed since", differs.clone().with(delivered(&plan, true)), true),
        ("a task before its deployment has stopped it", differs.clone().with(delivered(&plan, false)), false),
        ("another sequence has stopped it", differs.with(other), true),
    ] {
        assert_eq!(is_due(&memory, &plan), expected, "{case}");
    }
}

#[test]
fn a_sequence_runs_again_where_nothing_differs_until_it_has_passed_or_ended_otherwise() {
    let (project, plan) = planned_again();
    let serves = Memory::default().with(serving(2, "b"));
    let run = asked(&serves, &plan, false).expect("a run");
    let content = content_of(&project.stages[0], &"web".into());
    let by = |procedure| PassedState {
        procedure,
        ..passed(PassedKey { service: service("dev"), content: content.clone() })
    };
    for (case, memory, expected) in [
        ("it has not passed", serves.clone(), true),
        ("it has passed", serves.clone().with(by(passed_procedure(&run.procedure))), false),
        ("it has passed another sequence", serves.clone().with(by("sha256:other".into())), true),
        ("it has ended otherwise", serves.with(delivered(&plan, true)), false),
    ] {
        assert_eq!(is_due(&memory, &plan), expected, "{case}");
    }
}

#[test]
fn what_has_nothing_to_do_takes_its_turn_after_what_brings_something_else() {
    let (_, plan) = planned(&["shipyard dev", "declare web image=b"]);
    let serves = Memory::default().with(serving(2, "b"));
    let same = asked(&serves, &plan, false).expect("a run");
    let same = SequenceRun { id: "s1".into(), ..same };
    let by_hand = |image: &str| SequenceRun { plan: None, by: Some("ann".into()), ..run_of("s1", image) };
    let mut beside = by_hand("a");
    let changes = beside.delivery.iter_mut().flat_map(|delivery| &mut delivery.changes);
    changes.for_each(|change| change.key.name = "beside".into());
    let tasks = SequenceRun { delivery: None, ..by_hand("a") };
    for (case, run, expected) in [
        ("an older revision", run_of("s1", "a"), true),
        ("the same", same, false),
        ("another version by hand", by_hand("a"), true),
        ("the same by hand", by_hand("b"), false),
        ("something beside it by hand", beside, false),
        ("tasks alone", tasks, false),
    ] {
        let holds = deploying(run.clone(), 3);
        for (state, run) in [(slot(None, &[&run]), &run), (slot(Some(&holds), &[]), &holds)] {
            let memory = serves.clone().with(sequence(run)).with(state);
            assert_eq!(is_due(&memory, &plan), expected, "{case}: {:?}", run.state);
        }
    }
}

#[test]
fn what_another_delivery_has_brought_without_the_sequence_is_tested_when_its_turn_comes() {
    let (_, tested) = planned(&TESTED);
    let (_, untested) = planned(&["shipyard dev", "declare web image=b"]);
    let brought = Memory::default().with(serving(2, "b"));
    let run = asked(&brought, &tested, false).expect("a run");
    let key = PassedKey { service: service("dev"), content: run.planned_content().cloned().expect("what it brings") };
    let passed = PassedState { procedure: passed_procedure(&run.procedure), ..passed(key) };
    let failed = attempted(serving(1, "a"), "b", &ended(run_of("s0", "b"), Outcome::FAIL), Some(Outcome::FAIL));
    for (case, memory, plan, expected) in [
        ("it is there", brought.clone(), &tested, true),
        ("and has passed the tests", brought.clone().with(passed), &tested, false),
        ("and nothing tests it", brought, &untested, false),
        ("it failed", Memory::default().with(failed), &tested, false),
    ] {
        assert_eq!(is_due(&memory, plan), expected, "{case}");
    }
}
