use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::engine::fixtures::{
    Made, Memory, attempted, change as planned, declared, delivery, deployed, deploying, deployment, object, refused,
    sequence as run, service, serving, version, web,
};
use crate::model::hold::{Lifted, ProjectHolds};
use crate::model::ids::Destination;
use crate::model::object::{Location, ObjectKey};
use crate::model::run::{DeploymentRun, Phase, SequenceState};
use crate::model::state::{Attempt, ObjectState, Scaled, Version};
use crate::model::wanted::Target;
use crate::plan::change::deletion;
use crate::testing::world;

mod hands;
mod start;

/// Applies a change in the name of run `s1`, which delivers to `dev`.
fn applied(memory: &Memory, asked: &Change) -> Made<()> {
    let memory = memory.clone().with(run(&delivery("s1", "b")));
    memory.decide(|transition| change(transition, &"s1".into(), asked)).expect("it is applied")
}

fn again(memory: &Memory, asked: &Change) -> Change {
    memory.decide(|transition| decide_again(transition.records, &service("dev"), asked)).expect("it is decided").answer
}

fn map(color: &str) -> Arc<Object> {
    let content = json!({"data": {"color": color}});
    Arc::new(Object {
        key: ObjectKey { kind: Kind::ConfigMap, name: "colors".into() },
        service: "web".into(),
        location: Location::default(),
        autoscaled_at: None,
        digest: crate::manifest::digest::of(&content),
        content: content.into(),
    })
}

fn stored(color: &str) -> ObjectState {
    let destination = Destination::local("shop-dev".into());
    ObjectState::new(("shop".into(), "dev".into()), destination, "repo".into(), map(color))
}

#[test]
fn a_change_is_decided_again_on_what_is_applied_now() {
    let by = deploying(delivery("s0", "b"), 2);
    let ending = SequenceState::Ending { task: 0, outcome: Outcome::SUPERSEDED };
    let attempt = Memory::default().with(attempted(serving(1, "a"), "b", &by, None));
    for (now, memory, expected) in [
        ("nothing", Memory::default(), Decision::Create),
        ("what was there before", Memory::default().with(serving(1, "a")), Decision::Deploy),
        ("the same", Memory::default().with(serving(2, "b")), Decision::None),
        ("vanishing", Memory::default().with(ConfigState { removed: true, ..serving(2, "b") }), Decision::Create),
        ("under way", attempt.clone().with(run(&by)), Decision::None),
        ("giving way", attempt.with(run(&SequenceRun { state: ending, ..by })), Decision::Deploy),
    ] {
        let asked = planned(Decision::Deploy, &object("b"));
        assert_eq!(again(&memory, &asked).decision, expected, "{now}");
        let held = Change { decision: Decision::Wait, cause: "hold h1 by bob: sale".into(), ..asked };
        assert_eq!(again(&memory, &held).decision, expected, "{now}, and it was held when it was planned");
    }
}

#[test]
fn what_a_person_has_let_go_meanwhile_is_paused_no_longer() {
    let paused = world::deployment_config("web", "b", 1, json!({"paused": true})).into();
    let asked = planned(Decision::Wait, &paused);
    let memory = Memory::default().with(serving(1, "a"));
    let waits = again(&memory, &asked);
    assert_eq!((waits.decision, waits.object), (Decision::Wait, Some(paused)));
    let lifted = vec![Lifted { config: web(), by: "ann".into(), since: Timestamp(0) }];
    let goes_on = again(&memory.with(ProjectHolds { lifted, ..ProjectHolds::none("shop".into()) }), &asked);
    let declared = world::deployment_config("web", "b", 1, json!({"paused": false})).into();
    assert_eq!((goes_on.decision, goes_on.object), (Decision::Deploy, Some(declared)));
}

#[test]
fn another_object_is_decided_again_too() {
    for (memory, expected) in [
        (Memory::default(), Decision::Create),
        (Memory::default().with(stored("red")), Decision::Update),
        (Memory::default().with(stored("blue")), Decision::None),
    ] {
        assert_eq!(again(&memory, &planned(Decision::Update, &map("blue"))).decision, expected);
    }
}

#[test]
fn what_a_person_asked_for_stays_as_asked() {
    let asked = Change { reasons: Vec::new(), ..planned(Decision::Deploy, &object("a")) };
    assert_eq!(again(&Memory::default().with(serving(1, "a")), &asked), asked);
}

#[test]
fn a_deletion_that_was_held_is_due_once_it_is_decided_again() {
    let gone = deletion(&object("a").key);
    assert_eq!(again(&Memory::default(), &gone), gone);
    let held = Change { decision: Decision::Wait, cause: "hold h1 by bob: sale".into(), ..gone.clone() };
    assert_eq!(again(&Memory::default(), &held), gone);
}

#[test]
fn what_vanishes_runs_no_longer_and_is_remembered_until_its_pods_are_gone() {
    let before = attempted(serving(1, "a"), "b", &delivery("s0", "b"), None);
    let made = applied(&Memory::default().with(before.clone()), &deletion(&object("a").key));
    let (wanted, removed) = (Wanted { generation: 4, ..Wanted::default() }, true);
    let expected = ConfigState { wanted, removed, serving: None, attempted: None, ..before };
    assert_eq!(*made.only::<ConfigState>(), expected);
    assert!(applied(&Memory::default(), &deletion(&object("a").key)).changes_nothing());
}

#[test]
fn what_needs_no_deployment_is_declared_and_what_does_is_left_to_its_run() {
    let failed = attempted(serving(1, "a"), "b", &delivery("s0", "b"), Some(Outcome::FAIL));
    for (decision, declares) in [
        (Decision::Create, true),
        (Decision::Update, true),
        (Decision::Scale, true),
        (Decision::Deploy, false),
        (Decision::None, false),
        (Decision::Wait, false),
    ] {
        let made = applied(&Memory::default().with(failed.clone()), &planned(decision, &object("c")));
        assert_eq!(!made.changes_nothing(), declares, "{decision:?}");
        for state in made.written::<ConfigState>() {
            assert_eq!((&state.object, state.declared_on.as_str()), (&object("c"), "bbbbbbb"));
            assert_eq!((&state.attempted, &state.serving), (&None, &Some(version(1, "a"))), "what serves stays");
        }
    }
}

#[test]
fn a_persons_number_of_replicas_holds_until_the_files_ask_for_another() {
    let scaled = Scaled { replicas: 5, by: "ann".into(), at: Timestamp(0) };
    let state = ConfigState { scaled: Some(scaled), ..serving(1, "a") };
    let files = |replicas| -> Arc<Object> {
        crate::testing::world::deployment_config("web", "a", replicas, json!({"minReadySeconds": 9})).into()
    };
    for (declared, expected) in [(1, 5), (3, 3)] {
        let made = applied(&Memory::default().with(state.clone()), &planned(Decision::Update, &files(declared)));
        let wanted = &made.only::<ConfigState>().wanted;
        assert_eq!((wanted.replicas, wanted.min_ready_seconds), (expected, 9), "files say {declared}");
    }
}

#[test]
fn other_objects_come_and_go_with_their_changes() {
    let key = ObjectPlace::from(&stored("red"));
    for (before, decision, expected) in [
        (None, Decision::Create, Some("blue")),
        (Some("red"), Decision::Update, Some("blue")),
        (Some("red"), Decision::None, Some("red")),
        (Some("red"), Decision::Delete, None),
    ] {
        let mut memory =
            before.map(stored).into_iter().fold(Memory::default(), Memory::with).with(run(&delivery("s1", "b")));
        let asked = Change { object: expected.map(map), ..planned(decision, &map("blue")) };
        memory.commit(|transition| change(transition, &"s1".into(), &asked)).expect("it is applied");
        let now = memory.decide(|transition| Ok(transition.records.objects.get(&key)?.cloned()));
        assert_eq!(now.expect("it is read").answer, expected.map(stored), "{decision:?}");
    }
}

#[test]
fn what_another_service_is_still_to_change_is_this_ones_where_it_is_declared_alike() {
    let key = ObjectPlace::from(&stored("blue"));
    let of = |service: &str, color, planned_at| {
        let object = Object { service: service.into(), ..Object::clone(&map(color)) };
        ObjectState { object: object.into(), planned_at: Some(Timestamp(planned_at)), ..stored(color) }
    };
    for (case, recorded, before, expected) in [
        ("declared alike", of("other", "blue", 1), Some(Timestamp(2)), of("web", "blue", 9)),
        (
            "declared otherwise, which is to be delivered",
            of("other", "red", 1),
            Some(Timestamp(2)),
            of("other", "red", 1),
        ),
        ("this one's already", of("web", "blue", 1), Some(Timestamp(2)), of("web", "blue", 9)),
        ("changed since by a newer revision", of("other", "blue", 3), Some(Timestamp(2)), of("other", "blue", 3)),
        ("what a person asked for", of("other", "blue", 1), None, of("other", "blue", 1)),
    ] {
        let mut memory = Memory::default().with(recorded);
        let confirmed = |transition: &mut Transition<'_>| {
            confirm(transition.records, &service("dev"), &map("blue"), before, Timestamp(9))
        };
        memory.commit(confirmed).expect("it is confirmed");
        let now = memory.decide(|transition| Ok(transition.records.objects.get(&key)?.cloned()));
        assert_eq!(now.expect("it is read").answer, Some(expected), "{case}");
    }
}

#[test]
fn nothing_is_applied_for_a_run_that_nobody_knows() {
    let asked = planned(Decision::Create, &object("a"));
    let made = Memory::default().decide(|transition| change(transition, &"s1".into(), &asked));
    assert!(made.expect("it is ignored").changes_nothing());
}

#[test]
fn what_another_service_attempts_gives_way_to_what_is_declared_now() {
    let other = delivery("s2", "c");
    let begun = deployment(2, "c", &other, Phase::Running);
    let mut under_way = attempted(serving(1, "b"), "c", &other, None);
    under_way.wanted.owner = Some(begun.id.clone());
    under_way.wanted.targets = BTreeMap::from([(2, Target::ALL)]);
    let memory = Memory::default().with(under_way).with(run(&other)).with(deployed(begun.clone()));
    let made = applied(&memory, &planned(Decision::Update, &object("b")));
    let state = made.only::<ConfigState>();
    assert_eq!((state.wanted.version(), &state.wanted.owner, &state.attempted), (Some(1), &None, &None));
    assert!(matches!(made.told(&begun.id)[..], [Event::Disowned { .. }]), "{made:#?}");
}
