use std::collections::BTreeMap;

use super::*;
use crate::model::ids::{CommitId, Destination, Namespace, PodName, RepositoryName};
use crate::model::pod::{Origin, PodOwner, PodTemplate};

const NOW: Timestamp = Timestamp(10_000_000);

fn config() -> ConfigKey {
    ConfigKey { project: "p".into(), stage: "s".into(), name: "web".into() }
}

fn set(replicas: u32) -> ReplicaSet {
    ReplicaSet {
        config: config(),
        version: 2,
        destination: Destination::local(Namespace::new("p-s")),
        template: PodTemplate::default(),
        object: None,
        digest: "t".into(),
        repository: RepositoryName::new("repo"),
        commit: CommitId::new("c"),
        replicas,
        min_ready_seconds: 0,
    }
}

fn pod(number: u32, phase: PodPhase) -> ObservedPod {
    ObservedPod {
        id: PodId { namespace: Namespace::new("p-s"), name: PodName::new(format!("web-2-{number}")) },
        owner: PodOwner::Version { config: config(), version: 2, template: "t".into() },
        origin: Origin::Own,
        labels: BTreeMap::new().into(),
        phase,
        restarts: 0,
        message: String::new(),
        created_at: Timestamp(i64::from(number)),
        ended_at: None,
    }
}

fn ready(number: u32) -> ObservedPod {
    pod(number, PodPhase::Ready { since: Timestamp(0) })
}

/// A pod that started and ended so many seconds before now.
fn failed(number: u32, started: i64, ended: i64) -> ObservedPod {
    let outcome = PodOutcome::Failed { code: 1, reason: FailureReason::Error, message: String::new() };
    let before = |seconds: i64| Timestamp(NOW.0 - seconds * 1_000);
    ObservedPod {
        created_at: before(started),
        ended_at: Some(before(ended)),
        ..pod(number, PodPhase::Ended { outcome })
    }
}

/// What is done if it was decided on these pods.
fn chosen(set: &ReplicaSet, pods: &[ObservedPod], now: Timestamp) -> Choice {
    let of_version = |pod: &&ObservedPod| pod.version() == Some((&set.config, set.version)) && pod.lives();
    let living = pods.iter().filter(of_version).count();
    choose(set, u32::try_from(living).expect("few pods"), pods, now)
}

fn names(ids: &[PodId]) -> Vec<&str> {
    ids.iter().map(|id| id.name.as_str()).collect()
}

fn in_seconds(seconds: i64) -> Option<Timestamp> {
    Some(Timestamp(NOW.0 + seconds * 1_000))
}

#[test]
fn what_is_not_ready_goes_first_and_then_the_youngest() {
    let choice = chosen(&set(1), &[ready(0), pod(1, PodPhase::Starting), ready(2)], NOW);
    assert_eq!(names(&choice.stop), ["web-2-2", "web-2-1"]);
    assert_eq!(chosen(&set(3), &[ready(0), ready(2)], NOW).start, [1]);
}

#[test]
fn nothing_is_done_where_another_number_of_pods_lives_than_it_was_decided_on() {
    let pods = [ready(0), ready(1), pod(2, PodPhase::Ended { outcome: PodOutcome::Succeeded })];
    let again = Choice { again: Some(NOW), ..Choice::default() };
    for (expected, replicas) in [(0, 1), (1, 2), (1, 3), (3, 0), (3, 4)] {
        assert_eq!(choose(&set(replicas), expected, &pods, NOW), again, "{expected} → {replicas}");
    }
    assert_eq!(names(&choose(&set(1), 2, &pods, NOW).stop), ["web-2-1"]);
}

#[test]
fn a_pod_that_ended_is_replaced_under_another_name() {
    let choice = chosen(&set(2), &[failed(0, 100, 50), ready(1)], NOW);
    assert_eq!((choice.start, choice.again), (vec![2], None));
}

#[test]
fn many_pods_start_in_several_goes() {
    let choice = chosen(&set(600), &[], NOW);
    assert_eq!((choice.start.len(), choice.again), (STARTS_AT_ONCE, Some(NOW)));
    assert_eq!(chosen(&set(3), &[], NOW).again, None);
}

#[test]
fn the_pause_between_failures_doubles_up_to_its_longest() {
    let seconds = |choice: &Choice| choice.again.map(|at| at.since(NOW).as_secs());
    let first = failed(0, 1, 0);
    assert_eq!(chosen(&set(1), std::slice::from_ref(&first), NOW).start, [1], "the first end may be chance");
    for (waited, pause) in [(0, 10), (5, 10), (10, 20), (20, 40), (160, 300), (300, 300)] {
        let choice = chosen(&set(1), &[failed(0, 500, waited + 1), failed(1, 1, 0)], NOW);
        assert_eq!((choice.start.len(), seconds(&choice)), (0, Some(pause)), "after {waited} seconds");
    }
    let choice = chosen(&set(1), &[failed(0, 500, 31), failed(1, 21, 20)], NOW);
    assert_eq!((choice.start, choice.again), (vec![2], None), "twice ten seconds are over");
}

#[test]
fn whoever_ran_well_or_was_asked_to_end_is_replaced_at_once() {
    let choice = chosen(&set(1), &[failed(0, 900, 700), failed(1, 650, 0)], NOW);
    assert_eq!((choice.start, choice.again), (vec![2], None));
    let outcome = PodOutcome::Failed { code: 143, reason: FailureReason::Cancelled, message: String::new() };
    let stopped =
        |number| ObservedPod { ended_at: Some(NOW), ..pod(number, PodPhase::Ended { outcome: outcome.clone() }) };
    assert_eq!(chosen(&set(1), &[stopped(0), stopped(1)], NOW).start, [2]);
    let unknown = |number, seconds| {
        let outcome = PodOutcome::unknown("the machine was restarted");
        ObservedPod { phase: PodPhase::Ended { outcome }, ..failed(number, seconds, seconds) }
    };
    assert_eq!(chosen(&set(1), &[unknown(0, 1), unknown(1, 0)], NOW).start, [2]);
}

#[test]
fn what_ended_with_its_shim_is_not_replaced_while_the_machine_may_be_shutting_down() {
    let interrupted = |number, seconds| {
        let outcome = PodOutcome::interrupted("its shim was told to end");
        ObservedPod { phase: PodPhase::Ended { outcome }, ..failed(number, 900, seconds) }
    };
    let choice = chosen(&set(2), &[interrupted(0, 3), interrupted(1, 1)], NOW);
    assert_eq!((choice.start, choice.again), (vec![], in_seconds(9)));
    assert_eq!(chosen(&set(2), &[interrupted(0, 13), interrupted(1, 10)], NOW).start, [2, 3]);
    for (interrupted, start, again) in [(true, vec![], in_seconds(10)), (false, vec![2], None)] {
        let ending = pod(0, PodPhase::Stopping { interrupted });
        let choice = chosen(&set(2), &[ending, ready(1)], NOW);
        assert_eq!((choice.start, choice.again), (start, again), "one that still ends: {interrupted}");
    }
}

#[test]
fn pods_that_end_together_are_one_failure() {
    let together: Vec<ObservedPod> = (0..3).map(|number| failed(number, 20, i64::from(number))).collect();
    assert_eq!(chosen(&set(3), &together, NOW).start, [3, 4, 5]);
}

#[test]
fn of_ended_pods_the_youngest_are_kept_and_who_tells_the_pause() {
    let ended = |number| pod(number, PodPhase::Ended { outcome: PodOutcome::Succeeded });
    let kept_for_logs = chosen(&set(0), &[ended(5), ended(6), ended(7), ended(8)], Timestamp(0));
    assert_eq!(names(&kept_for_logs.remove), ["web-2-5"]);
    // Three died together forty seconds after their predecessors had: the pause was forty, and the next is eighty.
    let mut pods: Vec<ObservedPod> = (3..6).map(|number| failed(number, 1, 0)).collect();
    pods.extend((0..3).map(|number| failed(number, 60, 41 + i64::from(number))));
    let choice = chosen(&set(3), &pods, NOW);
    assert_eq!((choice.start.len(), choice.again), (0, in_seconds(80)));
    assert_eq!(names(&choice.remove), ["web-2-2", "web-2-1"]);
}

#[test]
fn what_another_life_of_the_store_has_left_becomes_fewer_and_keeps_its_names() {
    let stranger = |number| ObservedPod { origin: Origin::Stranger, ..ready(number) };
    let left = [stranger(0), stranger(1)];
    let of_strangers = |replicas| ReplicaSet::strangers(config(), Destination::local("p-s".into()), replicas);
    assert_eq!(names(&chosen(&of_strangers(1), &left, NOW).stop), ["web-2-1"]);
    assert_eq!(chosen(&of_strangers(3), &left, NOW), Choice::default());
    let ours = chosen(&set(1), &left, NOW);
    assert_eq!((ours.start, ours.stop), (vec![2], vec![]));
}
