//! Deliveries that begin no further task for a while.

use super::*;
use crate::model::hold::ProjectHolds;

fn part() -> Part {
    Part { project: "shop".into(), context: "c1".into(), stage: None }
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
    assert!(!paused(&memory).expect("no mistake").answer, "already");
    let resumed =
        memory.decide(|transition| resume_delivery(transition, &part(), &runs, "ann")).expect("it is resumed");
    assert!(resumed.answer && resumed.only::<ProjectHolds>().holds.is_empty());
}

#[test]
fn what_has_ended_is_not_paused() {
    let none = serves().decide(|transition| pause_delivery(transition, &part(), &[], "ann"));
    assert!(refused(none).contains("nothing with context `c1` is under way there"));
}
