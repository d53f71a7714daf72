use std::collections::BTreeMap;

use super::*;
use crate::engine::fixtures::{
    Made, Memory, delivery, down, ended, passed, plan as planned, project, repository, sequence, service, serving,
};
use crate::manifest::digest::stored;
use crate::model::event::Event;
use crate::model::outcome::TaskResult;
use crate::model::plan::Decision;
use crate::model::project::{Procedure, Project};
use crate::model::run::Delivery;
use crate::model::shipyard::{Requirement, Selector, Sequence, SequenceTrigger, Task};
use crate::model::slot::{PassedKey, SlotState};
use crate::model::state::{ConfigState, RepositoryState};
use crate::model::time::Timestamp;
use crate::testing::world::config_key;

const FILES: [&str; 2] = ["shipyard dev production", "declare web image=b"];

/// Files that declare `b` for `dev`, and something of its own for `production`.
fn files(production: &str) -> Project {
    project(&[
        "shipyard dev production",
        "declare web image=b",
        &format!("declare web image={production} stage=production"),
    ])
}

/// What a revision would do where nothing is deployed.
fn plan(project: &Project, commit: &str) -> Plan {
    planned(project, commit, &BTreeMap::new())
}

/// A plan's delivery to `dev`, which has just ended.
fn over(plan: &Plan) -> SequenceRun {
    let part = plan.stages[0].services[0].clone();
    let delivery_of = Delivery { content: part.content, changes: part.changes, configs: None };
    let (run, commit) = (ended(delivery("s1", "b"), Outcome::PASS), plan.commit.clone());
    SequenceRun { plan: Some(plan.id.clone()), delivery: Some(delivery_of), commit, ..run }
}

/// What a run's end starts: `dev` has passed what the plan brings there, and serves it.
fn memory(plan: &Plan, run: &SequenceRun) -> Memory {
    let content = plan.stages[0].services[0].content.clone();
    let passed = passed(PassedKey { service: service("dev"), content });
    Memory::default().with(repository()).with(sequence(run)).with(passed).with(serving(1, "b")).planned(plan)
}

fn promoted(memory: &Memory, outcome: Outcome) -> Made<()> {
    memory.decide(|transition| promote(transition, &"s1".into(), outcome)).expect("nothing is refused")
}

/// What is started, as `<stage>.<sequence> of <commit>`.
fn started(made: &Made<()>) -> Vec<String> {
    made.started().iter().map(|run| format!("{} of {}", run.event_name(), run.commit)).collect()
}

const NEXT: [&str; 1] = ["production.delivery of c2"];

#[test]
fn the_next_stage_takes_the_same_revision_and_says_what_has_started_it() {
    let plan = plan(&project(&FILES), "c2");
    let made = promoted(&memory(&plan, &over(&plan)), Outcome::PASS);
    assert_eq!(started(&made), NEXT);
    let run = made.started()[0];
    assert_eq!((&*run.cause, &run.plan, &run.by), ("dev.delivery finished", &Some(plan.id), &None));
}

#[test]
fn a_stage_starts_only_with_what_the_stage_before_has_passed() {
    let plan = plan(&project(&FILES), "c2");
    let run = over(&plan);
    let passed_other = passed(PassedKey { service: service("dev"), content: "sha256:other".into() });
    let not_passed = Memory::default().with(repository()).with(sequence(&run)).planned(&plan);
    for (memory, outcome) in [
        (not_passed.clone(), Outcome::PASS),
        (not_passed.with(passed_other), Outcome::PASS),
        (memory(&plan, &run), Outcome::FAIL),
        (memory(&plan, &run), Outcome::SUPERSEDED),
    ] {
        assert!(started(&promoted(&memory, outcome)).is_empty(), "{outcome:?}");
    }
}

#[test]
fn nothing_starts_while_the_repository_is_down_or_where_it_has_no_stage_any_more() {
    let plan = plan(&project(&FILES), "c2");
    let memory = memory(&plan, &over(&plan));
    let namespaces = ["shop-dev"].map(Into::into).into();
    for state in [down(), RepositoryState { namespaces, ..repository() }] {
        assert!(started(&promoted(&memory.clone().with(state), Outcome::PASS)).is_empty());
    }
}

#[test]
fn what_nobody_knows_and_what_has_no_plan_left_starts_nothing() {
    let plan = plan(&project(&FILES), "c2");
    let unplanned = SequenceRun { plan: Some("gone".into()), ..over(&plan) };
    for memory in [Memory::default(), memory(&plan, &unplanned)] {
        assert!(promoted(&memory, Outcome::PASS).changes_nothing());
    }
}

/// What has the last word where two revisions wait for the same to pass.
const BOTH: [&str; 2] = ["production.delivery of c2", "production.delivery of c3"];

#[test]
fn a_newer_revision_that_waited_for_the_same_content_has_the_last_word() {
    let (older, newer) = (plan(&files("c"), "c2"), plan(&files("d"), "c3"));
    let memory = memory(&older, &over(&older));
    assert_eq!(started(&promoted(&memory.clone().planned(&newer), Outcome::PASS)), BOTH);
    let other = plan(&project(&["shipyard dev production", "declare web image=x"]), "c3");
    let content = other.stages[0].services[0].content.clone();
    let passed_before = passed(PassedKey { service: service("dev"), content });
    let made = promoted(&memory.planned(&other).with(passed_before), Outcome::PASS);
    assert_eq!(started(&made), NEXT, "what waits for other content is not what this has let go on");
}

#[test]
fn a_revision_that_was_planned_again_meanwhile_starts_nothing_twice() {
    let first = plan(&project(&FILES), "c2");
    let again = Plan { id: "again".into(), at: Timestamp(first.at.0 + 1), ..first.clone() };
    let memory = memory(&first, &over(&first)).planned(&again);
    assert_eq!(started(&promoted(&memory, Outcome::PASS)), NEXT);
}

#[test]
fn a_newer_revision_takes_the_place_of_an_older_one_even_if_nothing_differs() {
    let there = |image: &str| ConfigState { key: config_key("production", "web"), ..serving(1, image) };
    let started = |older: &Plan, newer: &Plan, there: ConfigState| {
        let memory = memory(older, &over(older)).planned(newer).with(there);
        started(&promoted(&memory, Outcome::PASS))
    };
    let (mut older, newer) = (plan(&files("c"), "c2"), plan(&files("d"), "c3"));
    assert_eq!(started(&older, &newer, there("d")), BOTH);
    assert_eq!(started(&older, &newer, there("c")), BOTH[1..], "the older one has nothing to do");
    older.stages[1].services[0].runs_again = Some("`delivery` has changed".into());
    assert_eq!(started(&older, &plan(&files("c"), "c3"), there("c")), BOTH, "also with the same content");
}

#[test]
fn where_nothing_is_left_to_be_done_or_under_way_the_stage_after_has_its_turn() {
    let plan = plan(&project(&["shipyard dev test production", "declare web image=b"]), "c2");
    let there = |image: &str| ConfigState { key: config_key("test", "web"), ..serving(1, image) };
    let namespaces = ["shop-dev", "shop-test", "shop-production"].map(Into::into).into();
    let content = plan.stages[1].services[0].content.clone();
    let memory = memory(&plan, &over(&plan)).with(RepositoryState { namespaces, ..repository() });
    let tested = memory.clone().with(passed(PassedKey { service: service("test"), content }));
    let run = SequenceRun { id: "s0".into(), service: service("test"), ..over(&plan) };
    let slot = SlotState { holder: Some(run.id.clone()), ..SlotState::free(run.service.clone()) };
    for (case, memory, expected) in [
        ("it has passed there", tested.clone().with(there("b")), &NEXT[..]),
        ("it has not", memory.with(there("b")), &[]),
        ("it does not serve there", tested.clone().with(there("a")), &["test.delivery of c2"]),
        ("it is under way there", tested.with(there("b")).with(sequence(&run)).with(slot), &[]),
    ] {
        assert_eq!(started(&promoted(&memory, Outcome::PASS)), expected, "{case}");
    }
}

#[test]
fn whoever_waits_in_vain_from_now_on_is_told() {
    let plan = plan(&project(&FILES), "c2");
    let reported = |plan: &Plan| {
        let made = promoted(&memory(plan, &over(plan)).with(down()), Outcome::FAIL);
        made.touched.reports.contains(&("repo".into(), "c2".into()))
    };
    assert!(reported(&plan));
    let only_dev = planned(&project(&["shipyard dev", "declare web image=b"]), "c2", &BTreeMap::new());
    assert!(!reported(&only_dev), "nothing waits behind it");
}

/// A person has deployed `b` in `dev` by hand.
fn by_hand() -> SequenceRun {
    SequenceRun { plan: None, by: Some("ann".into()), ..ended(delivery("s1", "b"), Outcome::PASS) }
}

#[test]
fn what_is_done_by_hand_lets_go_on_what_waited_for_what_is_declared() {
    let plan = plan(&project(&FILES), "c2");
    let mut beside = by_hand();
    let changes = beside.delivery.iter_mut().flat_map(|delivery| &mut delivery.changes);
    changes.for_each(|change| change.key.name = "beside".into());
    let mut held = plan.clone();
    held.stages[0].services[0].changes[0] = Change {
        decision: Decision::Wait,
        cause: "hold h1 by bob: sale".into(),
        ..held.stages[0].services[0].changes[0].clone()
    };
    for (case, memory, expected) in [
        ("it serves what is declared", memory(&plan, &by_hand()), &NEXT[..]),
        ("something is left", memory(&plan, &by_hand()).with(serving(1, "a")), &[]),
        ("it was no part of the plan", memory(&plan, &beside), &[]),
        ("what is declared is held", memory(&held, &by_hand()), &[]),
        ("nothing was planned", Memory::default().with(sequence(&by_hand())), &[]),
    ] {
        assert_eq!(started(&promoted(&memory, Outcome::PASS)), expected, "{case}");
    }
}

/// Files whose `dev` has a sequence of tasks that is triggered by events.
fn with_sequence(name: &str, on: &[&str]) -> Project {
    let mut project = project(&FILES);
    let trigger = |event: &&str| SequenceTrigger { event: (*event).to_owned(), selector: Selector::default() };
    let task = Task::named("test");
    let triggered_on = on.iter().map(trigger).collect();
    project.shipyard.stages[0].sequences.push(Sequence {
        name: name.into(),
        triggered_on,
        tasks: vec![task],
        ..Sequence::default()
    });
    project
}

#[test]
fn the_end_of_a_sequence_starts_others_that_name_it() {
    let plan = plan(&with_sequence("cleanup", &["dev.delivery.finished"]), "c2");
    let made = promoted(&memory(&plan, &over(&plan)), Outcome::PASS);
    assert_eq!(started(&made), ["dev.cleanup of c2", NEXT[0]]);
    let [run, _] = made.started()[..] else { unreachable!("{made:#?}") };
    assert_eq!((&run.delivery, &run.after), (&None, &vec!["dev.delivery".to_owned()]), "it brings nothing");
    let queued = Event::Queued { cause: "dev.delivery finished".into() };
    assert_eq!((made.told(&run.id)[0], run.attempt), (&queued, 1));
}

#[test]
fn a_sequence_that_asks_nothing_is_not_started_by_its_own_end_however_many_lie_between() {
    let plan =
        plan(&with_sequence("cleanup", &["dev.delivery.finished", "dev.cleanup.finished", "dev.audit.finished"]), "c2");
    let named = |name: &str, after: &[&str]| {
        let sequence = Sequence { name: name.into(), ..over(&plan).procedure.sequence.clone() };
        let procedure = stored(Procedure { sequence, ..Procedure::default() });
        let after = after.iter().map(|event| (*event).to_owned()).collect();
        SequenceRun { delivery: None, procedure, after, ..over(&plan) }
    };
    for (run, expected) in [
        (named("audit", &["dev.delivery"]), &["dev.cleanup of c2"][..]),
        (named("audit", &["dev.delivery", "dev.cleanup"]), &[]),
        (named("cleanup", &["dev.delivery"]), &[]),
    ] {
        let made = promoted(&memory(&plan, &run), Outcome::PASS);
        assert_eq!(started(&made), expected, "{} after {:?}", run.event_name(), run.after);
    }
}

#[test]
fn a_sequence_that_asks_how_something_ended_runs_ten_times_at_most() {
    let mut project = with_sequence("cleanup", &["dev.cleanup.finished"]);
    let cleanup = &mut project.shipyard.stages[0].sequences[1];
    cleanup.triggered_on[0].selector = [Requirement::is("result", "fail")].into_iter().collect();
    let procedure = Procedure { sequence: cleanup.clone(), ..Procedure::default() };
    let plan = plan(&project, "c2");
    let run = |times: usize| {
        let after = vec!["dev.cleanup".to_owned(); times - 1];
        SequenceRun { delivery: None, procedure: stored(procedure.clone()), after, ..over(&plan) }
    };
    for (times, expected) in [(1, &["dev.cleanup of c2"][..]), (9, &["dev.cleanup of c2"]), (10, &[])] {
        let made = promoted(&memory(&plan, &run(times)), Outcome::FAIL);
        assert_eq!(started(&made), expected, "after {times}");
    }
}

#[test]
fn a_task_that_ends_starts_what_names_it_before_its_sequence_ends() {
    let plan = plan(&with_sequence("cleanup", &["dev.deployment.finished", "dev.delivery.finished"]), "c2");
    let over = over(&plan);
    let mut run = over.clone();
    let deployment = crate::engine::sequence::machine::task_records(&run.procedure.sequence).remove(0);
    run.tasks = vec![deployment];
    let before = sequence(&run);
    for (outcome, expected) in [
        (Outcome::PASS, &["dev.cleanup of c2"][..]),
        (Outcome::FAIL, &[]), // no selector: `pass` or `warning`
        (Outcome::SUPERSEDED, &[]),
    ] {
        run.tasks[0].outcome = Some(outcome);
        let now = sequence(&run);
        assert_eq!((ended_tasks(&before, &now), ended_tasks(&now, &now)), (vec![0], vec![]));
        let started_by = |memory: &Memory| {
            let made = memory.decide(|transition| tasks_ended(transition, &"s1".into(), &[0]));
            started(&made.expect("nothing is refused"))
        };
        assert_eq!(started_by(&memory(&plan, &run)), expected, "{outcome:?}");
        let down = memory(&plan, &run).with(down());
        assert!(started_by(&down).is_empty(), "nothing starts while it is down");
    }
    let warned = Outcome { result: TaskResult::Warning, ..Outcome::PASS };
    run.tasks[0].outcome = Some(warned);
    let made = memory(&plan, &run).decide(|transition| tasks_ended(transition, &"s1".into(), &[0]));
    let preceded = made.expect("nothing is refused").started()[0].preceded;
    assert_eq!(preceded, Some(warned), "an approval there goes by how the task ended");
    run.tasks[0].outcome = Some(Outcome::PASS);
    assert_eq!(started(&promoted(&memory(&plan, &run), Outcome::PASS)), NEXT, "it was started by the task");
    assert_eq!(started(&promoted(&memory(&plan, &over), Outcome::PASS)), ["dev.cleanup of c2", NEXT[0]]);
}

#[test]
fn a_stage_in_which_a_newer_revision_had_its_turn_is_not_brought_back_to_an_older_one() {
    let older = plan(&files("c"), "c2");
    let other = ["shipyard dev production", "declare web image=x", "declare web image=d stage=production"];
    let newer = Plan { at: Timestamp(older.at.0 + 1), ..plan(&project(&other), "c3") };
    let there = ConfigState { key: config_key("production", "web"), ..serving(1, "d") };
    let later = Some(newer.at);
    let taken_over = ConfigState { service: "api".into(), planned_at: later, ..there.clone() };
    let run = SequenceRun { id: "s0".into(), plan: Some(newer.id.clone()), ..over(&newer) };
    for (case, there, planned_at, expected) in [
        ("the newer one had its turn", &there, later, &[][..]),
        ("an older one had", &there, Some(Timestamp(0)), &NEXT),
        ("another service has taken it over", &taken_over, Some(Timestamp(0)), &[]),
    ] {
        let run = SequenceRun { service: service("production"), planned_at, ..run.clone() };
        let slot = SlotState { holder: Some(run.id.clone()), ..SlotState::free(run.service.clone()) };
        let memory = memory(&older, &over(&older)).with(there.clone()).with(sequence(&run)).planned(&newer);
        assert_eq!(started(&promoted(&memory.with(slot), Outcome::PASS)), expected, "{case}");
    }
}

#[test]
fn what_a_person_has_run_again_leads_on_as_the_newest_revision_says() {
    let (older, newer) = (plan(&files("c"), "c2"), plan(&files("d"), "c3"));
    let again = SequenceRun { by: Some("ann".into()), ..over(&older) };
    let started = |newer: &Plan| started(&promoted(&memory(&older, &again).planned(newer), Outcome::PASS));
    assert_eq!(started(&newer), BOTH[1..]);
    let mut nothing_later = newer;
    nothing_later.stages.truncate(1);
    assert!(started(&nothing_later).is_empty(), "it found nothing to change there");
    let other = plan(&project(&["shipyard dev production", "declare web image=x"]), "c3");
    assert_eq!(started(&other), NEXT, "which declares something else here");
}
