use serde_json::json;

use super::*;
use crate::engine::fixtures::{
    Made, Memory, NOW, attempted, delivery, deployed, deployment as run_of, ended, object, repository, sequence,
    serving, slot, version, web,
};
use crate::engine::sequence::machine::task_records;
use crate::manifest::digest;
use crate::model::outcome::Outcome;
use crate::model::project::Procedure;
use crate::model::run::{DeploymentRun, Phase, SequenceState, TaskRecord};
use crate::model::shipyard::{ROLLBACK_TASK, Sequence, Task};
use crate::model::slot::{Delivered, SlotState};
use crate::model::state::{Beside, Standing, Version};
use crate::testing::world::deployment_config;

/// A run at its one task `rollback`, which follows the delivery of revision `b`.
fn undo() -> SequenceRun {
    let sequence = Sequence { name: "undo".into(), tasks: vec![Task::named(ROLLBACK_TASK)], ..Sequence::default() };
    let mut tasks = task_records(&sequence);
    tasks[0].started_at = Some(NOW);
    let procedure = digest::stored(Procedure { sequence, ..Procedure::default() });
    let (state, preceded) = (SequenceState::Running { task: 0 }, Some(Outcome::FAIL));
    SequenceRun { delivery: None, plan: None, procedure, tasks, state, preceded, ..delivery("u1", "b") }
}

fn brought(number: u32, image: &str) -> ConfigState {
    let commit = delivery("s", image).commit;
    ConfigState { serving: Some(Version { commit, ..version(number, image) }), ..serving(number, image) }
}

fn past(number: u32, image: &str, phase: Phase) -> Run {
    deployed(run_of(number, image, &ended(delivery("s0", image), Outcome::PASS), phase))
}

/// Version 2, of revision `b`, serves, whose delivery has failed; before it version 1 did.
fn delivered() -> Memory {
    let bad = ended(delivery("s2", "b"), Outcome::FAIL);
    let content = bad.planned_content().expect("it is planned").clone();
    let last = Delivered { run: bad.id.clone(), content, procedure: "sha256:2".into(), deployed: true };
    let slot = SlotState { last_delivery: Some(last), holder: Some("u1".into()), ..slot(None, &[]) };
    let memory = Memory::default().with(repository()).with(slot).with(sequence(&bad)).with(brought(2, "b"));
    memory.with(past(1, "a", Phase::Complete)).with(past(2, "b", Phase::Complete))
}

fn decided(memory: &Memory, run: &SequenceRun) -> Made<()> {
    let memory = memory.clone().with(sequence(run));
    memory.decide(|transition| decide_task(transition, &run.id, 0)).expect("it is decided")
}

/// What goes back, or else why nothing does.
fn told(memory: &Memory, run: &SequenceRun) -> String {
    match decided(memory, run).told(&run.id)[..] {
        [Event::GoesBack { to, left, .. }, ..] if to.is_empty() => left.clone(),
        [Event::GoesBack { to, .. }, ..] => format!("{to:?}"),
        [Event::CannotGoBack { message, .. }, ..] => format!("cannot: {message}"),
        ref others => unreachable!("{others:?}"),
    }
}

#[test]
fn it_becomes_a_new_version_of_the_earlier_revision_and_what_served_is_quarantined() {
    let made = decided(&delivered(), &undo());
    let new = made.written::<Run>().into_iter().find_map(|run| match run {
        Run::Deployment(run) => Some(&**run),
        Run::Sequence(_) => None,
    });
    let Some(DeploymentRun { version: 3, is_rollback: true, parent, commit, cause, causes, object: what, .. }) = new
    else {
        unreachable!("{new:?}")
    };
    assert_eq!((parent.as_str(), commit.as_str(), &**cause), ("u1", "aaaaaaa", "rollback to version 1 by dev.undo"));
    assert_eq!(causes[..], [Cause::Rollback { by: "dev.undo".into() }]);
    assert_eq!(what.digest, object("a").digest);
    let state = made.only::<ConfigState>();
    let attempt = state.attempted.as_ref().expect("it is attempted");
    assert_eq!((attempt.version.number, attempt.version.commit.as_str()), (3, "aaaaaaa"));
    assert!(state.quarantined.is_empty(), "it serves until then");
}

#[test]
fn what_served_is_quarantined_once_it_does_not_any_more_and_a_rollback_that_fails_leaves_nothing() {
    for (passed, expected) in [(true, vec![object("b").digest.clone()]), (false, Vec::new())] {
        for by_hand in [false, true] {
            let by = SequenceRun { is_rollback: by_hand, ..undo() };
            let run = DeploymentRun { is_rollback: true, ..run_of(3, "a", &by, Phase::Running) };
            let going = attempted(brought(2, "b"), "a", &by, None);
            let memory = delivered().with(sequence(&by)).with(going);
            let made = memory.decide(|transition| {
                super::ended(transition, &run, passed)?;
                Ok(transition.records.configs.get(&web())?.cloned().expect("it is there"))
            });
            let state = made.expect("it is decided").answer;
            let bad: Vec<Digest> = state.quarantined.iter().map(|bad| bad.content.clone()).collect();
            assert_eq!(bad, if by_hand { Vec::new() } else { expected.clone() }, "{passed} {by_hand}");
            let is_as_before = state.attempted.is_none() && state.object.digest == object("b").digest;
            assert_eq!(is_as_before, !passed && !by_hand, "{passed} {by_hand}");
        }
    }
}

#[test]
fn what_stands_beside_serves_at_once_and_what_it_replaces_is_quarantined_then() {
    let earlier = Version { commit: delivery("s", "a").commit, ..version(1, "a") };
    let standing = Standing::Spare(NOW + std::time::Duration::from_secs(600));
    let state = ConfigState { beside: Some(Beside { version: earlier, standing }), ..brought(2, "b") };
    let mut memory = delivered().with(state).with(sequence(&undo()));
    let bad = |state: &ConfigState| state.quarantined.iter().map(|bad| bad.content.clone()).collect::<Vec<_>>();
    memory.commit(|transition| decide_task(transition, &undo().id, 0)).expect("it is decided");
    let state = memory.get::<ConfigState>(web()).clone();
    assert_eq!(state.serving.as_ref().map(|serving| serving.number), Some(1));
    assert_eq!(bad(&state), [object("b").digest.clone()]);
    let Run::Deployment(run) = memory.get::<Run>(web().deployment(3)).clone() else { unreachable!("a deployment") };
    memory.commit(|transition| super::ended(transition, &run, true)).expect("it has ended");
    assert_eq!(bad(memory.get::<ConfigState>(web())), [object("b").digest.clone()], "and not what serves");
}

#[test]
fn only_what_the_delivery_has_brought_goes_back() {
    let (memory, undo) = (delivered(), undo());
    let by_hand = SequenceRun { preceded: None, commit: "ccccccc".into(), by: Some("ann".into()), ..undo.clone() };
    let of_another = SequenceRun { commit: "ccccccc".into(), ..undo.clone() };
    let failed = attempted(brought(2, "b"), "a", &ended(undo.clone(), Outcome::FAIL), Some(Outcome::FAIL));
    let before = brought(1, "a");
    let paused = Arc::new(deployment_config("web", "b", 1, json!({"paused": true})));
    let paused = ConfigState { object: paused, ..brought(2, "b") };
    let gone = ConfigState { removed: true, serving: None, ..brought(2, "b") };
    let nothing = ConfigState { serving: None, ..brought(2, "b") };
    let bad = Quarantined { content: object("a").digest.clone(), reason: "dev.undo".into(), since: NOW };
    let bad_before = ConfigState { quarantined: vec![bad], ..brought(2, "b") };
    let waits = TaskRecord {
        outcome: Some(Outcome::ABORTED),
        message: "side: quarantined".into(),
        ..TaskRecord::new("deployment", "deployment")
    };
    let waits = SequenceRun { tasks: vec![waits], ..ended(delivery("s2", "b"), Outcome::ABORTED) };
    let web = "{\"web\": 1}";
    for (memory, run, expected) in [
        (memory.clone(), &undo, web),
        (memory.clone(), &by_hand, web),
        (memory.clone(), &of_another, "nothing of ccccccc was delivered last of `web` in dev"),
        (memory.clone().with(failed), &undo, web),
        (memory.clone().with(before), &undo, "version 1 of `web` serves, which aaaaaaa has brought and not bbbbbbb"),
        (memory.clone().with(gone), &undo, "`web` is deployed no longer"),
        (memory.clone().with(bad_before), &undo, "cannot: no previous deployment exists for `web`"),
        (memory.clone().with(sequence(&waits)), &undo, "nothing of delivery of bbbbbbb has failed: side: quarantined"),
        (memory.clone().with(sequence(&waits)), &by_hand, web),
        (memory.clone().with(nothing), &undo, "no version of `web` serves"),
        (memory.clone().with(slot(None, &[])), &by_hand, "nothing of ccccccc was delivered last of `web` in dev"),
        (memory.clone().with(past(1, "a", Phase::Failed)), &undo, "cannot: no previous deployment exists for `web`"),
        (
            memory.with(paused),
            &undo,
            "cannot: cannot rollback a paused deployment config (`launchway rollout resume dc/web -s dev` lets it go on; \
             then go back)",
        ),
    ] {
        assert_eq!(told(&memory, run), expected);
    }
}

#[test]
fn in_a_delivery_it_goes_back_from_that_one() {
    let (undo, memory) = (undo(), delivered().with(slot(None, &[])));
    let inside = SequenceRun { id: "s3".into(), delivery: delivery("s3", "b").delivery, ..undo };
    assert_eq!(told(&memory, &inside), "{\"web\": 1}");
    assert_eq!(decided(&memory, &inside).only::<ConfigState>().key, web());
}
