//! Sequences that are run again.

use super::*;

#[test]
fn what_is_under_way_already_is_not_run_again() {
    let failed = ended(SequenceRun { delivery: None, ..delivery("s1", "b") }, Outcome::FAIL);
    let again = SequenceRun { delivery: None, ..delivery("s2", "b") };
    let elsewhere = SequenceRun { context: Some("c2".into()), ..again.clone() };
    let over = ended(again.clone(), Outcome::FAIL);
    let memory = Memory::default().with(repository()).with(sequence(&failed));
    for (other, is_refused) in [(&again, true), (&elsewhere, false), (&over, false)] {
        let memory = memory.clone().with(sequence(other)).with(slot(None, &[other]));
        let decided = memory.decide(|transition| rerun(transition, &failed.id, false, "ann"));
        match is_refused {
            true => assert!(refused(decided).contains("is under way already, as s2 (`launchway why web -s dev` says")),
            false => assert_eq!(decided.expect("it runs again").started().len(), 1),
        }
    }
}
