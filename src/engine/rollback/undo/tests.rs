use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::engine::fixtures::{
    DOWN, Made, Memory, NOW, attempted, delivery, deployed, deploying, deployment, down, ended, holds, refused,
    repository, sequence, service, serving, slot, version, web,
};
use crate::model::event::Event;
use crate::model::hold::{HoldKind, ProjectHolds};
use crate::model::outcome::Outcome;
use crate::model::run::{Phase, SequenceRun};
use crate::model::state::ConfigState;
use crate::model::state::{Beside, Standing};
use crate::model::time::Timestamp;
use crate::model::wanted::{Target, Wanted};
use crate::testing::world::deployment_config;

/// Version 4 serves; 3 has failed, and 2 is the last that was complete before.
fn history() -> Memory {
    let by = |image: &str| ended(delivery("s0", image), Outcome::PASS);
    let run = |number, image: &str, phase| deployed(deployment(number, image, &by(image), phase));
    let memory = Memory::default().with(repository()).with(serving(4, "d")).with(run(4, "d", Phase::Complete));
    memory.with(run(3, "c", Phase::Failed)).with(run(2, "b", Phase::Complete)).with(run(1, "a", Phase::Complete))
}

/// Version 5 is attempted by a run, which has failed to or goes on.
fn attempts(by: &SequenceRun, outcome: Option<Outcome>) -> Memory {
    let phase = if outcome.is_some() { Phase::Failed } else { Phase::New };
    let memory = history().with(attempted(serving(4, "d"), "e", by, outcome)).with(sequence(by));
    memory.with(deployed(deployment(5, "e", by, phase)))
}

fn undone(memory: &Memory, to: Option<u32>) -> crate::error::Result<Made<RolledBack>> {
    memory.decide(|transition| undo(transition, &web(), to, "ann"))
}

#[test]
fn without_a_version_it_goes_back_to_the_last_complete_one_that_does_not_serve() {
    let failed = ended(delivery("s1", "e"), Outcome::FAIL);
    let nothing = ConfigState { serving: None, ..serving(4, "d") };
    for (memory, to, expected) in [
        (history(), None, 2),
        (history(), Some(1), 1),
        (history(), Some(3), 3),
        (history().with(nothing), None, 4),
        (attempts(&failed, Some(Outcome::FAIL)), Some(2), 2),
        (attempts(&deploying(delivery("s1", "e"), 5), None), None, 4),
    ] {
        assert_eq!(undone(&memory, to).expect("there is such a version").answer.to, expected);
    }
}

#[test]
fn what_serves_already_is_gone_back_to_only_from_what_is_under_way() {
    let failed = attempts(&ended(delivery("s1", "e"), Outcome::FAIL), Some(Outcome::FAIL));
    let hint = "(`--to-revision N` chooses another version; `launchway history` lists them)";
    for (memory, to, expected) in [
        (history(), Some(4), "version 4 of `web` serves already"),
        (failed.clone(), None, "version 4 of `web` serves already: version 5 was attempted and is not what runs"),
    ] {
        assert_eq!(refused(undone(&memory, to)), format!("{expected} {hint}"));
    }
    // A task before the deployment is under way as well.
    let test = delivery("s2", "f");
    let made = undone(&failed.with(slot(Some(&test), &[])).with(sequence(&test)), None);
    assert_eq!(made.expect("it is ended").answer.to, 4);
}

#[test]
fn what_stands_beside_has_everything_at_once() {
    for standing in [Standing::Part(80), Standing::Spare(Timestamp(NOW.0 + 60_000))] {
        let beside = Some(Beside { version: version(2, "b"), standing });
        let state = ConfigState { beside, ..serving(4, "d") };
        let targets = state.settled_targets();
        let memory = history().with(ConfigState { wanted: Wanted { targets, ..state.wanted.clone() }, ..state });
        let made = undone(&memory, None).expect("there is such a version");
        let state = made.only::<ConfigState>();
        assert_eq!((made.answer.to, state.serving.as_ref().map(|serving| serving.number)), (2, Some(2)));
        let all = BTreeMap::from([(2, Target::ALL.with_share(1))]);
        assert_eq!((&state.beside, &state.wanted.targets), (&None, &all), "what has no share answers no longer");
        assert_eq!(undone(&memory, Some(1)).expect("there is such a version").answer.to, 1);
    }
}

#[test]
fn there_is_no_way_back_to_what_nobody_knows() {
    let first = Memory::default().with(repository()).with(serving(1, "a"));
    for (memory, to, expected) in [
        (history(), Some(9), "unable to find the specified revision (`launchway history` lists them)"),
        (first, None, "no previous deployment exists for `web`"),
        (Memory::default(), None, "deployment config `web` does not exist in stage dev"),
        (history().with(down()), None, DOWN),
    ] {
        assert_eq!(refused(undone(&memory, to)), expected);
    }
}

#[test]
fn an_earlier_template_comes_back_as_a_new_version_of_what_is_declared_now() {
    let now = deployment_config("web", "d", 3, json!({"minReadySeconds": 9}));
    let mut memory = history().with(ConfigState { object: now.into(), ..serving(4, "d") });
    let made = memory.commit(|transition| undo(transition, &web(), None, "ann")).expect("version 2 was complete");
    let [run] = made.started()[..] else { unreachable!("{made:#?}") };
    assert_eq!((run.commit.as_str(), &*run.cause), ("bbbbbbb", "rollback to version 2 by ann"), "its result is 2's");
    assert_eq!((run.by.as_deref(), run.is_rollback, &run.plan), (Some("ann"), true, &None));
    let state = memory.get::<ConfigState>(web());
    let expected = deployment_config("web", "b", 3, json!({"minReadySeconds": 9}));
    assert_eq!((state.latest_version, &*state.object), (5, &expected));
}

#[test]
fn the_service_is_held_so_that_the_next_push_does_not_undo_it() {
    let made = undone(&history(), None).expect("version 2 was complete");
    let [hold] = &made.only::<ProjectHolds>().holds[..] else { unreachable!("{made:#?}") };
    assert_eq!((hold.kind, hold.scope.to_string(), hold.since), (HoldKind::Rollback, "shop/dev/web".into(), NOW));
    let reason = "a rollback of web to version 2; release it when Git says what should run";
    assert_eq!((&*hold.by, &*hold.reason), ("ann", reason));
}

#[test]
fn no_hold_keeps_a_rollback() {
    for kind in [HoldKind::Person, HoldKind::Rollback] {
        let made = undone(&history().with(holds(kind)), None).expect("version 2 was complete");
        assert!(made.started()[0].started_at.is_some(), "it has begun");
        assert_eq!(made.only::<ProjectHolds>().holds.len(), 2, "the other one stays");
    }
}

#[test]
fn a_deployment_under_way_gives_way_at_once_and_what_served_is_wanted_again() {
    let by = deploying(delivery("s1", "e"), 5);
    let memory = attempts(&by, None).with(slot(Some(&by), &[]));
    let made = undone(&memory, None).expect("version 4 serves");
    let reason = "superseded by rollback to version 4 by ann";
    assert_eq!(made.told(&web().deployment(5)), [&Event::Disowned { reason: reason.into() }]);
    let [rollback] = made.started()[..] else { unreachable!("{made:#?}") };
    assert!(rollback.started_at.is_some(), "its turn has come");
    let wanted = &made.only::<ConfigState>().wanted;
    assert_eq!((&wanted.owner, &wanted.targets), (&Some(web().deployment(6)), &[(4, Target::ALL)].into()));
}

#[test]
fn what_has_ended_already_has_nothing_to_give_way_with() {
    let mut over = deploying(delivery("s1", "e"), 5);
    over.tasks[0].deployments[0].outcome = Some(Outcome::PASS);
    let wanted = Wanted { owner: Some("other".into()), ..serving(4, "d").wanted };
    let memory = history().with(ConfigState { wanted, ..serving(4, "d") }).with(sequence(&over));
    for slot in [slot(Some(&over), &[]), slot(None, &[&over]), slot(None, &[])] {
        let memory = memory.clone().with(slot);
        let made = memory.decide(|it| give_way(it, &service("dev"), "undone")).expect("it is asked");
        assert!(made.changes_nothing(), "{made:#?}");
    }
}
