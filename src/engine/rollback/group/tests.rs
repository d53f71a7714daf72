use super::*;
use crate::engine::fixtures::{delivery, deploying, ended};
use crate::model::rollback::RollbackGroup;

/// A part of a rollback of three, which has ended so or goes on.
fn part(id: &str, outcome: Option<Outcome>) -> SequenceRun {
    let run = match outcome {
        Some(outcome) => ended(delivery(id, "a"), outcome),
        None => deploying(delivery(id, "a"), 5),
    };
    let runs = ["a", "b", "c"].map(RunId::from).to_vec();
    SequenceRun { group: Some(RollbackGroup { runs, before: Vec::new() }), ..run }
}

type Parts = &'static [&'static str];
/// How each part ended, and which one failed, which are cancelled and which are brought back.
type Case = ([Option<Outcome>; 3], Option<&'static str>, Parts, Parts);

#[test]
fn the_first_failure_brings_all_back_and_each_part_is_brought_back_once() {
    let (good, bad, open) = (Some(Outcome::PASS), Some(Outcome::FAIL), None);
    let gave_way = Some(Outcome::SUPERSEDED);
    let table: [Case; 8] = [
        ([good, open, open], None, &[], &[]),
        ([good, good, good], None, &[], &[]),
        ([bad, open, open], Some("a"), &["b", "c"], &["a"]),
        ([bad, good, open], Some("a"), &["c"], &["b", "a"]),
        ([bad, good, good], Some("a"), &[], &["b", "c", "a"]),
        ([good, bad, open], Some("b"), &[], &["a"]), // it went back although it was to end
        ([Some(Outcome::ABORTED), bad, good], Some("b"), &[], &["a"]),
        ([gave_way, good, open], None, &[], &[]), // somebody else has the last word on it
    ];
    for (outcomes, failed, cancelled, undone) in table {
        let [ended, b, c] = outcomes;
        let (ended, others) = (part("a", ended), [part("b", b), part("c", c)]);
        let verdict = judge(&ended, &others);
        let ids = |runs: &[&SequenceRun]| runs.iter().map(|run| run.id.to_string()).collect::<Vec<_>>();
        assert_eq!(verdict.failed.map(|run| run.id.as_str()), failed, "{outcomes:?}");
        assert_eq!(
            (ids(&verdict.cancelled), ids(&verdict.undone)),
            (cancelled.iter().map(ToString::to_string).collect(), undone.iter().map(ToString::to_string).collect(),),
            "{outcomes:?}"
        );
    }
}

#[test]
fn what_ends_already_is_not_told_again() {
    let bad = part("a", Some(Outcome::FAIL));
    let state = SequenceState::Ending { task: 0, outcome: Outcome::ABORTED };
    let others = [SequenceRun { state, ..part("b", None) }, part("c", None)];
    let cancelled: Vec<&str> = judge(&bad, &others).cancelled.iter().map(|run| run.id.as_str()).collect();
    assert_eq!(cancelled, ["c"]);
}
