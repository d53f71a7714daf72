//! A failed version is attempted again.

use super::*;
use crate::engine::fixtures::{change, version};
use crate::model::ids::Digest;
use crate::model::plan::PassedContent;
use crate::model::slot::{Delivered, SlotState};

/// Version 2 has failed in a delivery that ended so.
fn failed() -> Memory {
    let by = ended(deploying(delivery("s1", "b"), 2), Outcome::FAIL);
    failed_by(&by)
}

fn failed_by(by: &SequenceRun) -> Memory {
    let state = attempted(serving(1, "a"), "b", by, Some(Outcome::FAIL));
    serves().with(state).with(sequence(by)).with(deployed(deployment(2, "b", by, Phase::Failed)))
}

/// A slot in which a run was the last to deliver something.
fn last(run: &SequenceRun) -> SlotState {
    let (run, content, procedure) = (run.id.clone(), "sha256:1".into(), "sha256:2".into());
    SlotState { last_delivery: Some(Delivered { run, content, procedure, deployed: true }), ..slot(None, &[]) }
}

fn retried(memory: &Memory) -> crate::error::Result<Made<Retried>> {
    memory.decide(|transition| retry(transition, &web(), "ann"))
}

#[test]
fn what_failed_is_attempted_again_with_the_rest_of_its_sequence() {
    let mut memory = failed();
    let made = memory.commit(|transition| retry(transition, &web(), "ann")).expect("it has failed");
    let [run] = made.started()[..] else { unreachable!("{made:#?}") };
    let first = delivery("s1", "b");
    assert_eq!(made.answer, Retried { failed: 2, version: 2 });
    assert_eq!((&*run.cause, run.by.as_deref()), ("retried by ann", Some("ann")));
    assert_eq!((&run.plan, &run.procedure, run.attempt), (&first.plan, &first.procedure, 2));
    assert_eq!(run.planned_content(), first.planned_content());
    assert_eq!(run.changes()[0].retry, Some(2));
    let state = memory.get::<ConfigState>(web());
    assert_eq!(state.open_attempt().map(|attempt| (attempt.version.number, &attempt.run)), Some((2, &run.id)));
    let under_way = format!("delivery of bbbbbbb at `deployment` is under way: {WAY_OUT}");
    let expected = format!("rollout #2 is in progress; only failed deployments can be retried ({under_way})");
    assert_eq!(refused(retried(&memory)), expected, "asked twice, it is done once");
}

#[test]
fn what_failed_before_something_came_back_is_attempted_as_the_next_version() {
    let by = ended(deploying(delivery("s1", "b"), 2), Outcome::FAIL);
    let state = attempted(serving(1, "a"), "b", &by, Some(Outcome::FAIL));
    let back = ConfigState { latest_version: 3, serving: Some(version(3, "a")), ..state };
    let mut memory = failed_by(&by).with(back);
    let made = memory.commit(|transition| retry(transition, &web(), "ann")).expect("it has failed");
    assert_eq!(made.answer, Retried { failed: 2, version: 4 });
    let attempted = memory.get::<ConfigState>(web()).open_attempt().map(|attempt| attempt.version.number);
    assert_eq!(attempted, Some(4), "as it was said");
}

#[test]
fn what_else_was_deployed_is_left_as_it_is() {
    let mut by = ended(deploying(delivery("s1", "b"), 2), Outcome::FAIL);
    let other = deployment_config("other", "b", 1, json!({}));
    let other = change(Decision::Deploy, &other.into());
    by.delivery.iter_mut().for_each(|delivery| delivery.changes.push(other.clone()));
    let of_another = attempted(serving(1, "a"), "c", &delivery("s0", "c"), Some(Outcome::FAIL));
    let of_another = ConfigState { key: service("dev").config("other"), ..of_another };
    let changes = |by: &SequenceRun| {
        let made = retried(&failed_by(by).with(of_another.clone())).expect("it has failed");
        made.started()[0].changes().iter().map(|it| (it.key.name.clone(), it.retry)).collect::<Vec<_>>()
    };
    assert_eq!(changes(&by), [("web".into(), Some(2))]);
    let never_deployed = SequenceRun { tasks: delivery("s1", "b").tasks, ..by };
    let both = [("web".into(), Some(2)), ("other".into(), None)];
    assert_eq!(changes(&never_deployed), both, "what never got to its deployment has brought nothing of the others");
}

#[test]
fn the_newest_delivery_that_brings_what_failed_is_run_again() {
    let later = SequenceRun { commit: "later00".into(), ..ended(delivery("s2", "b"), Outcome::FAIL) };
    let other = ended(delivery("s3", "c"), Outcome::FAIL);
    let tests = SequenceRun { delivery: None, ..tests_first(delivery("s4", "b")) };
    for (newer, state, expected) in [
        (&later, last(&later), "later00"),
        (&other, last(&other), "bbbbbbb"),
        (&tests, slot(Some(&tests), &[]), "bbbbbbb"),
    ] {
        let memory = failed().with(sequence(newer)).with(state);
        let made = retried(&memory).expect("it has failed");
        assert_eq!(made.started()[0].commit.as_str(), expected);
    }
}

#[test]
fn what_failed_before_a_newer_delivery_that_never_got_to_its_deployment_is_left() {
    let newer = ended(delivery("s3", "c"), Outcome::ABORTED);
    let mut state = last(&newer);
    state.last_delivery.iter_mut().for_each(|last| last.deployed = false);
    let memory = failed().with(sequence(&newer)).with(state);
    let expected = "a newer delivery than that of rollout #2 ended before its deployment \
                    (`launchway trigger delivery web -s dev` runs that again)";
    assert_eq!(refused(retried(&memory)), expected);
}

#[test]
fn what_a_newer_delivery_under_way_leaves_out_waits_for_its_end() {
    let newer = deploying(delivery("s3", "c"), 3);
    let memory = failed().with(sequence(&newer)).with(slot(Some(&newer), &[]));
    let refused = refused(retried(&memory));
    assert!(refused.starts_with("a newer delivery of its service is under way"), "{refused}");
    assert!(refused.contains("`launchway rollout cancel dc/web -s dev` ends it"), "{refused}");
}

#[test]
fn nothing_is_retried_that_did_not_fail() {
    let latest = "`launchway rollout latest` deploys again";
    let complete = "rollout #1 is complete; only failed deployments can be retried";
    let trigger = "`launchway rerun web -s dev --sequence delivery` goes on from the task that failed";
    let (bad, good) = (ended(delivery("s1", "a"), Outcome::FAIL), ended(delivery("s1", "a"), Outcome::PASS));
    let tests = SequenceRun { delivery: None, ..tests_first(delivery("s2", "a")) };
    let under_way = format!("delivery of aaaaaaa at `test` is under way: {WAY_OUT}");
    for (memory, expected) in [
        (serves().with(declared("a")), format!("no rollouts found for `web` ({latest})")),
        (serves(), format!("{complete} ({latest})")),
        (serves().with(last(&good)).with(sequence(&good)), format!("{complete} ({latest})")),
        (serves().with(last(&bad)), format!("{complete} ({latest})")),
        (serves().with(last(&bad)).with(sequence(&bad)), format!("{complete} ({trigger})")),
        (serves().with(slot(Some(&tests), &[])).with(sequence(&tests)), format!("{complete} ({under_way})")),
    ] {
        assert_eq!(refused(retried(&memory)), expected);
    }
}

#[test]
fn nothing_is_retried_that_must_not_change() {
    let has_failed = |id| attempted(serving(1, "a"), "b", &delivery(id, "b"), Some(Outcome::FAIL));
    let paused = with_spec(has_failed("s1"), json!({"paused": true}));
    let queued = delivery("s2", "c");
    for (memory, expected) in [
        (Memory::default(), NO_CONFIG),
        (failed().with(down()), DOWN),
        (failed().with(paused), "unable to retry paused deployment config `web`"),
        (failed().with(holds(HoldKind::Rollback)), HELD),
        (failed().with(sequence(&queued)).with(slot(None, &[&queued])), "delivery of ccccccc comes first"),
        (failed().with(has_failed("gone")), "the record of version 2 is gone"),
    ] {
        assert_eq!(refused(retried(&memory)), expected);
    }
}

#[test]
fn what_failed_is_attempted_again_as_it_is_to_be_delivered_now() {
    let first = delivery("s1", "b");
    let newest = |shipyard: &str, content: Option<&Digest>| {
        let files = project(&[shipyard, "task test", "declare web image=b"]);
        let mut plan = plan(&files, "c2", &BTreeMap::new());
        plan.stages[0].services[0].content = content.cloned().unwrap_or_else(|| "sha256:other".into());
        plan
    };
    let (tested, same) = ("shipyard dev:deployment,test", "shipyard dev");
    for (plan, commit, steps) in [
        (newest(tested, first.planned_content()), "c2", vec!["deployment", "test"]),
        (newest(same, first.planned_content()), "bbbbbbb", vec!["deployment"]),
        (newest(tested, None), "bbbbbbb", vec!["deployment"]),
    ] {
        let made = retried(&failed().planned(&plan)).expect("it has failed");
        let run = made.started()[0];
        let tasks: Vec<&str> = run.tasks.iter().map(|task| &*task.name).collect();
        assert_eq!((run.commit.as_str(), tasks), (commit, steps));
        assert_eq!(run.plan.as_ref() == Some(&plan.id), commit == "c2", "what comes next is that plan's as well");
    }
    let mut not_passed = newest(tested, first.planned_content());
    let needs = PassedContent { stage: "before".into(), content: "sha256:needed".into(), sequence: None, alone: false };
    not_passed.stages[0].services[0].previous_stage = Some(needs);
    let made = retried(&failed().planned(&not_passed)).expect("it has failed");
    assert_eq!(made.started()[0].commit, "bbbbbbb".into(), "the stage before has not let that revision pass");
}
