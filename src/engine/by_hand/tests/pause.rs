//! Deliveries that begin no further task for a while.

use super::*;
use crate::model::hold::{Hold, HoldKind, HoldScope, ProjectHolds, Release};

fn part() -> Part {
    Part { project: "shop".into(), context: Some("c1".into()), stage: None }
}

#[test]
fn a_pause_is_a_hold_of_a_context_that_is_placed_once_and_lifted_again() {
    let run = SequenceRun { context: Some("c1".into()), ..tests_first(delivery("s1", "b")) };
    let memory = serves().with(sequence(&run)).with(slot(Some(&run), &[]));
    let runs = [run.id.clone()];
    let paused = |memory: &Memory| memory.decide(|transition| pause_delivery(transition, &part(), &runs, "ann"));
    let made = paused(&memory).expect("it is paused");
    let holds = made.only::<ProjectHolds>();
    let other = SequenceRun { context: Some("c2".into()), ..run.clone() };
    assert!(made.answer && run.is_held_by(&holds.holds[0]) && !other.is_held_by(&holds.holds[0]));
    let memory = memory.with(holds.clone());
    let again = paused(&memory).expect("no mistake");
    assert!(!again.answer, "already");
    assert_eq!(
        again.told(&run.id),
        [&Event::Paused { by: "ann".into() }],
        "it had begun before it could meet the pause"
    );
    let has_heard = SequenceRun { paused: Some("ann".into()), ..run.clone() };
    let again = paused(&memory.clone().with(sequence(&has_heard))).expect("no mistake");
    assert!(!again.answer && again.told(&run.id).is_empty());
    let resumed =
        memory.decide(|transition| resume_delivery(transition, &part(), &runs, "ann")).expect("it is resumed");
    assert!(resumed.answer && resumed.only::<ProjectHolds>().holds.is_empty());
}

#[test]
fn what_is_paused_twice_goes_on_once_nothing_pauses_it() {
    let (context, paused) = (Some("c1".into()), Some("ann".into()));
    let run = SequenceRun { context, paused, ..tests_first(delivery("s1", "b")) };
    let here = Part { stage: Some(run.service.stage.clone()), ..part() };
    let hold = |id: &str, part: &Part| {
        let (kind, scope, reason, by) = (HoldKind::Pause, part.scope(), "paused by ann".into(), "ann".into());
        Hold { id: id.into(), kind, scope, reason, by, since: NOW }
    };
    let holds = |holds: &[Hold]| ProjectHolds { holds: holds.to_vec(), ..ProjectHolds::none("shop".into()) };
    let (whole, of_stage) = (hold("h1", &part()), hold("h2", &here));
    let memory = serves().with(sequence(&run)).with(slot(Some(&run), &[]));
    let runs = [run.id.clone()];
    let resumed = |part: &Part, of: &[Hold]| {
        let memory = memory.clone().with(holds(of));
        let made = memory.decide(|transition| resume_delivery(transition, part, &runs, "ann")).expect("it is resumed");
        (made.only::<ProjectHolds>().holds.len(), made.told(&run.id).into_iter().cloned().collect::<Vec<_>>())
    };
    assert_eq!(resumed(&here, &[whole.clone(), of_stage]), (1, vec![]), "the whole delivery is still paused");
    assert_eq!(resumed(&part(), std::slice::from_ref(&whole)), (0, vec![Event::Resumed { by: "ann".into() }]));
    let h1 = Release { holds: vec![whole.id.clone()], ..Release::default() };
    let memory = memory.with(holds(&[whole]));
    let made = memory.decide(|transition| release(transition, &"shop".into(), &h1, None, (&runs, "bob")));
    let made = made.expect("it is released");
    assert!(made.only::<ProjectHolds>().holds.is_empty());
    assert_eq!(made.told(&run.id), [&Event::Resumed { by: "bob".into() }], "in the same transaction");
}

#[test]
fn a_stage_that_is_paused_pauses_all_that_is_in_it_or_comes_but_who_goes_back() {
    let stage = Part { context: None, stage: Some("dev".into()), ..part() };
    let run = tests_first(delivery("s1", "b"));
    let memory = serves().with(sequence(&run)).with(slot(Some(&run), &[]));
    let made = memory.decide(|transition| pause_delivery(transition, &stage, std::slice::from_ref(&run.id), "ann"));
    let made = made.expect("it is paused");
    assert_eq!(made.told(&run.id), [&Event::Paused { by: "ann".into() }]);
    let hold = &made.only::<ProjectHolds>().holds[0];
    assert_eq!((hold.kind, hold.scope.to_string()), (HoldKind::Pause, "shop/dev".into()));
    let elsewhere = SequenceRun { service: service("production"), ..run.clone() };
    let back = SequenceRun { is_rollback: true, ..run.clone() };
    assert_eq!([&run, &elsewhere, &back].map(|run| run.is_paused_by(hold)), [true, false, false]);
    let rollouts = Hold { scope: HoldScope::of(run.service.clone()), ..hold.clone() };
    assert!(!run.is_paused_by(&rollouts), "tasks go on while rollouts are paused");
    let nothing = serves().decide(|transition| pause_delivery(transition, &stage, &[], "ann"));
    assert!(nothing.expect("a stage is paused before anything comes").answer);
}

#[test]
fn what_has_ended_is_not_paused() {
    let none = serves().decide(|transition| pause_delivery(transition, &part(), &[], "ann"));
    assert!(refused(none).contains("nothing with context `c1` is under way there"));
}
