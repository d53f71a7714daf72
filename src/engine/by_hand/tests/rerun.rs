//! Sequences that are run again.

use super::*;
use crate::engine::fixtures::change;

#[test]
fn what_is_under_way_already_is_not_run_again() {
    let failed = ended(SequenceRun { delivery: None, ..delivery("s1", "b") }, Outcome::FAIL);
    let again = SequenceRun { delivery: None, ..delivery("s2", "b") };
    let elsewhere = SequenceRun { context: Some("c2".into()), ..again.clone() };
    let older = SequenceRun { id: "s0".into(), ..elsewhere.clone() };
    let over = ended(again.clone(), Outcome::FAIL);
    let memory = Memory::default().with(repository()).with(sequence(&failed));
    for (other, is_refused) in [(&again, true), (&elsewhere, true), (&older, false), (&over, false)] {
        let memory = memory.clone().with(sequence(other)).with(slot(None, &[other]));
        let decided = memory.decide(|transition| rerun(transition, &failed.id, false, "ann"));
        match is_refused {
            true => assert!(refused(decided).contains("is under way already, as s2 (`launchway why web -s dev` says")),
            false => assert_eq!(decided.expect("it runs again").started().len(), 1),
        }
    }
}

/// Version 2 serves, and the test after its deployment has failed.
fn untested() -> SequenceRun {
    let mut by = deploying(delivery("s1", "b"), 2);
    let mut sequence = by.procedure.sequence.clone();
    sequence.tasks.push(Task::named("test"));
    by.procedure = digest::stored(Procedure { sequence, ..Procedure::default() });
    by.tasks[0].outcome = Some(Outcome::PASS);
    let failed = TaskRecord { outcome: Some(Outcome::FAIL), ..TaskRecord::new("test", "test") };
    by.tasks.push(failed);
    ended(by, Outcome::FAIL)
}

fn delivered(by: &SequenceRun) -> Memory {
    let (run, content) = (by.id.clone(), by.planned_content().expect("it is planned").clone());
    let last = Delivered { run, content, procedure: "sha256:2".into(), deployed: by.deployed() };
    let slot = SlotState { last_delivery: Some(last), ..slot(None, &[]) };
    Memory::default().with(repository()).with(serving(2, "b")).with(sequence(by)).with(slot)
}

#[test]
fn a_delivery_goes_on_from_the_test_that_failed_and_touches_nothing_that_serves() {
    let failed = untested();
    let run = |from_start| {
        let made = delivered(&failed).decide(|transition| rerun(transition, &failed.id, from_start, "ann"));
        made.expect("it runs again").started()[0].clone()
    };
    let again = run(false);
    assert_eq!((&*again.cause, again.attempt), ("run again by ann", 2));
    assert!(again.changes().iter().all(|change| !change.decision.does_something()), "{:?}", again.changes());
    assert_eq!((&again.plan, again.planned_content()), (&failed.plan, failed.planned_content()));
    let done = |run: &SequenceRun| run.tasks.iter().map(|it| (it.done_before, it.outcome)).collect::<Vec<_>>();
    assert_eq!(done(&again), [(true, Some(Outcome::PASS)), (false, None)]);
    assert_eq!(done(&run(true)), [(false, Some(Outcome::PASS)), (false, None)], "nothing is left to be deployed");
}

#[test]
fn what_was_rolled_back_since_is_not_tested_without_being_deployed() {
    let failed = untested();
    let bad = Quarantined { content: object("b").digest.clone(), reason: "dev.undo".into(), since: NOW };
    let back = ConfigState { quarantined: vec![bad], ..serving(3, "a") };
    let made = delivered(&failed).with(back).decide(|transition| rerun(transition, &failed.id, false, "ann"));
    let made = made.expect("it runs again");
    let again = &made.started()[0];
    assert!(again.changes()[0].is_quarantined(), "{:?}", again.changes());
    assert!(again.tasks.iter().all(|task| !task.done_before), "{:?}", again.tasks);
}

#[test]
fn a_delivery_goes_on_from_the_deployment_that_failed() {
    let failed = ended(deploying(delivery("s1", "b"), 2), Outcome::FAIL);
    let state = attempted(serving(1, "a"), "b", &failed, Some(Outcome::FAIL));
    let memory = delivered(&failed).with(state);
    let made = memory.decide(|transition| rerun(transition, &failed.id, false, "ann")).expect("it runs again");
    let [run] = made.started()[..] else { unreachable!("{made:#?}") };
    assert_eq!((run.changes()[0].retry, run.tasks[0].done_before), (Some(2), false));
}

#[test]
fn a_delivery_is_not_run_again_that_must_not_be_delivered() {
    let failed = untested();
    let never = SequenceRun { id: "s0".into(), ..failed.clone() };
    let by_hand = SequenceRun { plan: None, ..never.clone() };
    let open = delivery("s2", "c");
    let passed = SequenceRun { outcome: Some(Outcome::PASS), ..failed.clone() };
    let bad = ended(deploying(delivery("s1", "b"), 2), Outcome::FAIL);
    let paused = with_spec(attempted(serving(1, "a"), "b", &bad, Some(Outcome::FAIL)), json!({"paused": true}));
    let files = project(&["shipyard dev:deployment,test", "task test", "declare web image=c"]);
    let newer = plan(&files, "c2", &BTreeMap::new());
    for (memory, of, expected) in [
        (delivered(&failed), "gone", "there is no sequence run `gone`"),
        (delivered(&failed).with(sequence(&never)), "s0", "is not the last delivery of `web`"),
        (delivered(&failed).with(sequence(&by_hand)), "s0", "was asked for by hand"),
        (delivered(&failed).planned(&newer), "s1", "c2 declares something else of `web`"),
        (delivered(&passed), "s1", "has passed (`--from-start` runs all of it again)"),
        (delivered(&failed).with(down()), "s1", DOWN),
        (delivered(&failed).with(holds(HoldKind::Person)), "s1", HELD),
        (delivered(&bad).with(paused), "s1", "unable to retry paused deployment config `web`"),
    ] {
        let refused = refused(memory.decide(|transition| rerun(transition, &of.into(), false, "ann")));
        assert!(refused.contains(expected), "{refused}");
    }
    let last = SlotState {
        last_delivery: delivered(&failed).get::<SlotState>(service("dev")).last_delivery.clone(),
        ..slot(None, &[&open])
    };
    let memory = delivered(&failed).with(sequence(&open)).with(last);
    let refused = refused(memory.decide(|transition| rerun(transition, &failed.id, false, "ann")));
    assert!(refused.contains("delivery of ccccccc is under way already, as s2"), "{refused}");
}

#[test]
fn what_a_deployment_has_left_undone_is_still_to_be_done() {
    let side = deployment_config("side", "b", 1, json!({"triggers": []}));
    let created = change(Decision::Create, &side.into());
    let mut failed = ended(deploying(delivery("s1", "b"), 2), Outcome::ABORTED);
    failed.delivery.iter_mut().for_each(|delivery| delivery.changes.push(created.clone()));
    let left = |memory: Memory| {
        let made = memory.decide(|transition| rerun(transition, &failed.id, false, "ann")).expect("it runs again");
        made.started()[0].changes().iter().map(|it| (it.key.name.clone(), it.decision)).collect::<Vec<_>>()
    };
    assert_eq!(left(delivered(&failed)), [("web".into(), Decision::None), ("side".into(), Decision::Create)]);
}
