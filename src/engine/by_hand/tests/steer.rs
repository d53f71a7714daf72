//! What is done with a rollout that waits, and with what stands beside the version that serves.

use super::*;
use crate::engine::fixtures::version;
use crate::model::hold::ProjectHolds;
use crate::model::ids::RepositoryName;
use crate::model::run::{DeploymentStep, TrialPart, Waits};
use crate::model::state::{Beside, Standing};
use crate::model::time::Timestamp;

fn paused(memory: &Memory) -> Made<bool> {
    memory.decide(|transition| pause(transition, &web(), "ann")).expect("it is paused")
}

fn resumed(memory: &Memory) -> crate::error::Result<Made<Resumed>> {
    let declaring = RepositoryName::new("repo");
    memory.decide(|transition| resume(transition, &web(), Some(&declaring), "ann"))
}

fn promoted(memory: &Memory) -> crate::error::Result<Made<u32>> {
    memory.decide(|transition| promote(transition, &web(), "ann"))
}

/// Version 2 is at a part of the first step of a canary.
fn at(part: TrialPart) -> Memory {
    let by = deploying(delivery("s1", "b"), 2);
    let since = (part == TrialPart::Pause).then_some(NOW);
    let waits = Waits { since, ..Waits::default() };
    let step = DeploymentStep::Trial { step: 1, part };
    rolls_out().with(deployed(DeploymentRun {
        step,
        waits,
        previous: Some(1),
        restored_as: None,
        restored_after: None,
        ..deployment(2, "b", &by, Phase::Running)
    }))
}

/// Version 2 serves beside version 1, which has this standing.
fn beside(standing: Standing) -> ConfigState {
    let state = ConfigState { beside: Some(Beside { version: version(1, "a"), standing }), ..serving(2, "b") };
    let wanted = Wanted { targets: state.settled_targets(), ..state.wanted.clone() };
    ConfigState { wanted, ..state }
}

#[test]
fn a_pause_is_a_hold_of_the_service_that_is_placed_once() {
    let made = paused(&serves());
    let holds = made.only::<ProjectHolds>();
    assert!(
        made.answer
            && holds.holds[0].kind == HoldKind::Pause
            && holds.holds[0].scope.covers(&"shop".into(), &"dev".into(), &"web".into())
    );
    let memory = serves().with(holds.clone());
    assert!(!paused(&memory).answer, "already");
    assert!(
        refused(memory.decide(|transition| latest(transition, &web(), Images::Newest, "ann")))
            .contains("dc/web is paused")
    );
    let scaled = memory.decide(|transition| scale(transition, &web(), 3, "ann"));
    assert!(scaled.is_ok(), "replicas may change");
    let made = resumed(&memory).expect("it is resumed");
    assert_eq!(made.answer, Resumed { paused: true, ..Resumed::default() });
    assert!(made.only::<ProjectHolds>().holds.is_empty());
    assert_eq!(made.only::<RepositoryState>().seen, None, "the head is planned anew");
}

#[test]
fn who_takes_a_pause_back_has_not_judged_a_canary() {
    let memory = at(TrialPart::Pause);
    let memory = memory.with(paused(&at(TrialPart::Pause)).only::<ProjectHolds>().clone());
    let made = resumed(&memory).expect("it is resumed");
    assert_eq!(made.answer, Resumed { rollout: false, paused: true, waits: true });
    assert!(made.told(&web().deployment(2)).is_empty());
}

#[test]
fn what_waits_goes_on_and_nothing_else_does() {
    let told = Event::Resumed { by: "ann".into() };
    let made = resumed(&at(TrialPart::Pause)).expect("it is resumed");
    assert_eq!(made.answer, Resumed { rollout: true, ..Resumed::default() });
    assert_eq!(made.told(&web().deployment(2)), [&told]);
    for memory in [serves(), at(TrialPart::Weight), rolls_out()] {
        assert_eq!(resumed(&memory).expect("nothing waits").answer, Resumed::default());
    }
    let held = at(TrialPart::Pause).with(holds(HoldKind::Person));
    assert_eq!(refused(resumed(&held)), HELD);
    assert_eq!(refused(resumed(&at(TrialPart::Pause).with(down()))), DOWN);
    assert_eq!(refused(resumed(&Memory::default())), NO_CONFIG);
    let file = with_spec(serving(1, "a"), json!({"paused": true}));
    let made = resumed(&serves().with(file)).expect("the file is overridden");
    assert!(made.answer.paused && made.only::<ProjectHolds>().lifted[0].config == web());
}

#[test]
fn a_canary_or_the_newer_side_of_a_b_is_promoted() {
    let told = Event::Promoted { by: "ann".into() };
    for part in [TrialPart::Weight, TrialPart::Pause, TrialPart::Analysis] {
        let made = promoted(&at(part)).expect("it is promoted");
        assert_eq!((made.answer, made.told(&web().deployment(2))), (2, vec![&told]), "{part:?}");
    }
    let both = beside(Standing::Part(80));
    assert_eq!(both.wanted.targets, Target::split((1, 80), 2));
    let made = promoted(&serves().with(both.clone())).expect("it is promoted");
    let state = made.only::<ConfigState>();
    assert_eq!((made.answer, &state.beside), (2, &None));
    assert_eq!(state.wanted.targets, BTreeMap::from([(2, Target::ALL)]));
    assert!(state.wanted.silenced.is_empty(), "the older one answers until it is replaced");
    assert_eq!(refused(promoted(&serves().with(both).with(holds(HoldKind::Person)))), HELD);
    let nothing = "there is nothing to promote: no version of `web` has only a part";
    let kept = beside(Standing::Spare(Timestamp(NOW.0 + 1)));
    for memory in [serves(), serves().with(kept)] {
        assert_eq!(refused(promoted(&memory)), nothing);
    }
    assert!(refused(promoted(&rolls_out())).starts_with("#2 is New and takes no steps that could be skipped"));
}
