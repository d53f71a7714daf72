//! What is said of a service that is declared nowhere, of which executors do everything.

use super::*;
use crate::model::shipyard::Task;

/// A run of a sequence of one task for `stray`, which waits for its turn or is at that task.
fn foreign(id: &str, name: &str, attempt: u32, state: SequenceState) -> SequenceRun {
    let sequence = Sequence { name: name.into(), tasks: vec![Task::named("verify")], ..Sequence::default() };
    let started_at = matches!(state, SequenceState::Running { .. }).then_some(Timestamp(0));
    SequenceRun {
        delivery: None,
        is_foreign: true,
        procedure: digest::stored(Procedure { sequence, ..Procedure::default() }),
        tasks: vec![TaskRecord { started_at, ..TaskRecord::new("verify", "verify") }],
        state,
        ..super::sequence(id, "dev", "stray", attempt, &[])
    }
}

fn all(runs: [SequenceRun; 2]) -> Vec<Run> {
    runs.map(|run| Run::Sequence(Box::new(run))).into()
}

#[test]
fn a_task_that_a_newer_run_of_its_sequence_does_not_reach_says_so() {
    let (revision, step) = (revision(two_stages(), StatusDetail::Hooks), "launchway/dev/stray/fix.verify");
    let first = ended(foreign("1", "fix", 1, SequenceState::Running { task: 0 }), Outcome::SUPERSEDED, "down");
    let second = foreign("2", "fix", 2, SequenceState::Queued);
    for (run, expected) in [
        (second.clone(), "pending launchway/dev/stray/fix.verify: not reached yet in this attempt"),
        (
            ended(second, Outcome::SUPERSEDED, "down"),
            "skipped launchway/dev/stray/fix.verify: not reached in the last attempt",
        ),
    ] {
        let told = told(&revision, &all([first.clone(), run]), None, &[step]);
        assert_eq!(of(&told, step), expected);
    }
}

#[test]
fn the_sequence_that_delivers_has_the_last_word_however_often_another_ran() {
    let revision = revision(two_stages(), StatusDetail::Hooks);
    let attempt = |runs: [SequenceRun; 2]| {
        let rendered = rendered(&revision, &all(runs), None, &BTreeSet::new());
        let said = |context: &str| rendered.iter().find(|status| status.context == context).unwrap().attempt;
        assert_eq!(said("launchway/dev"), said("launchway/dev/stray"), "what is said of the stage goes on with it");
        let of_service = rendered.iter().find(|status| status.context == "launchway/dev/stray").unwrap();
        (of_service.state, of_service.attempt)
    };
    let fix = |attempt: u32| foreign(&attempt.to_string(), "fix", attempt, SequenceState::Queued);
    let delivery = ended(foreign("3", "delivery", 1, SequenceState::Running { task: 0 }), Outcome::PASS, "");
    let (before, after) = (attempt([fix(1), fix(2)]), attempt([fix(2), delivery]));
    assert_eq!((before, after), ((StatusState::Pending, 2), (StatusState::Success, 3)));
}
