use proptest::prelude::*;

use super::*;
use crate::model::wanted::{Portion, Target};

/// So many living pods of a version, of which so many are available.
fn pods(living: u32, available: u32) -> Count {
    Count { living, available, ..Count::default() }
}

fn observed(versions: &[(u32, Count)]) -> Observed {
    Observed { versions: versions.iter().copied().collect(), next_available: None }
}

/// Version 2 takes over from version 1.
fn wanted(replicas: u32, max_surge: u32, max_unavailable: u32) -> Wanted {
    let pace = Pace::Rolling { max_surge, max_unavailable };
    Wanted {
        targets: BTreeMap::from([(2, Target::ALL)]),
        fallback: Some(fallback(replicas)),
        replicas,
        pace,
        ..Wanted::default()
    }
}

fn fallback(replicas: u32) -> Fallback {
    Fallback { version: 1, replicas }
}

fn counts(serving: &Serving) -> Vec<(u32, u32)> {
    serving.counts.iter().map(|(version, pods)| (*version, *pods)).collect()
}

#[test]
fn a_surge_starts_one_before_one_ends() {
    let rolling = |there: &[(u32, Count)]| decide(&wanted(2, 1, 0), &observed(there));
    assert_eq!(counts(&rolling(&[(1, pods(2, 2))])), [(1, 2), (2, 1)]);
    assert_eq!(counts(&rolling(&[(1, pods(2, 2)), (2, pods(1, 0))])), [(1, 2), (2, 1)]);
    assert_eq!(counts(&rolling(&[(1, pods(2, 2)), (2, pods(1, 1))])), [(1, 1), (2, 1)]);
    let last = rolling(&[(1, pods(1, 1)), (2, pods(2, 2))]);
    assert_eq!((counts(&last), last.converged), (vec![(1, 0), (2, 2)], false));
    assert!(rolling(&[(2, pods(2, 2))]).converged);
}

#[test]
fn recreate_waits_until_the_old_ones_are_gone() {
    let wanted = Wanted { pace: Pace::Recreate, fallback: None, ..wanted(1, 0, 0) };
    let leaving = Count { leaving: 1, ..Count::default() };
    assert_eq!(counts(&decide(&wanted, &observed(&[(1, pods(1, 1))]))), [(1, 0), (2, 0)]);
    let step = decide(&wanted, &observed(&[(1, leaving)]));
    assert_eq!((step.counts[&2], step.converged), (0, false));
    assert_eq!(counts(&decide(&wanted, &observed(&[]))), [(2, 1)]);
}

#[test]
fn one_of_the_first_new_pods_stands_beside_the_rest_of_the_old() {
    let part = |portion| Target { portion, ..Target::ALL };
    let targets = BTreeMap::from([(1, part(Portion::Rest)), (2, part(Portion::AtMost(1)))]);
    let wanted = Wanted { targets, ..wanted(3, 1, 0) };
    assert_eq!(counts(&decide(&wanted, &observed(&[(1, pods(3, 3))]))), [(1, 3), (2, 1)]);
    assert_eq!(counts(&decide(&wanted, &observed(&[(1, pods(3, 3)), (2, pods(1, 1))]))), [(1, 2), (2, 1)]);
    let there = decide(&wanted, &observed(&[(1, pods(2, 2)), (2, pods(1, 1))]));
    assert_eq!((counts(&there), there.converged), (vec![(1, 2), (2, 1)], true));
    let scaled = Wanted { replicas: 5, ..wanted };
    assert_eq!(scaled.counts(), BTreeMap::from([(1, 4), (2, 1)]));
    assert_eq!(counts(&decide(&scaled, &observed(&[(1, pods(2, 2)), (2, pods(1, 1))]))), [(1, 4), (2, 1)]);
}

#[test]
fn a_first_new_pod_that_is_to_stand_alone_takes_the_place_of_what_gave_way() {
    let targets = BTreeMap::from([(2, Target { portion: Portion::AtMost(1), ..Target::ALL })]);
    let alone = Wanted { targets, fallback: None, ..wanted(3, 1, 0) };
    let step = |there: &[(u32, Count)]| decide(&alone, &observed(there));
    assert_eq!(counts(&step(&[(1, pods(1, 1)), (2, pods(1, 0))])), [(1, 1), (2, 1)]);
    let over = step(&[(1, pods(1, 1)), (2, pods(1, 1))]);
    assert_eq!((counts(&over), over.converged), (vec![(1, 0), (2, 1)], false));
    assert!(step(&[(2, pods(1, 1))]).converged);
}

#[test]
fn a_pod_of_what_should_serve_comes_back() {
    assert_eq!(counts(&decide(&wanted(2, 1, 0), &observed(&[(2, pods(1, 1))]))), [(1, 1), (2, 2)]);
    let settled = Wanted { fallback: None, ..wanted(2, 1, 0) };
    assert_eq!(counts(&decide(&settled, &observed(&[(2, pods(1, 1))]))), [(2, 2)]);
}

#[test]
fn after_a_reboot_what_served_comes_back_first() {
    assert_eq!(counts(&decide(&wanted(3, 1, 0), &observed(&[]))), [(1, 3), (2, 1)]);
    assert_eq!(counts(&decide(&wanted(4, 0, 1), &observed(&[]))), [(1, 3), (2, 1)]);
    let exchanged = Wanted { fallback: None, ..wanted(3, 1, 0) };
    assert_eq!(counts(&decide(&exchanged, &observed(&[]))), [(2, 3)]);
}

#[test]
fn nothing_wanted_ends_everything() {
    let step = decide(&Wanted::default(), &observed(&[(1, pods(1, 1)), (2, pods(3, 0))]));
    assert_eq!((counts(&step), step.converged), (vec![(1, 0), (2, 0)], false));
    assert!(decide(&Wanted::default(), &observed(&[])).converged);
}

#[test]
fn traffic_is_shared_once_only_those_that_share_it_are_there() {
    let half = |portion| Target { portion, ..Target::ALL.with_share(50) };
    let targets = BTreeMap::from([(2, half(Portion::Rest)), (3, half(Portion::AtMost(1)))]);
    let wanted = Wanted { targets, ..wanted(2, 1, 0) };
    let there = decide(&wanted, &observed(&[(2, pods(1, 1)), (3, pods(1, 1))]));
    assert_eq!(there.shares, BTreeMap::from([(2, 50), (3, 50)]));
    let fallen_back = decide(&wanted, &observed(&[(1, pods(2, 2)), (3, pods(1, 0))]));
    assert_eq!(fallen_back.shares[&1], 2, "until one that has a share answers");
    let answers = decide(&wanted, &observed(&[(1, pods(2, 2)), (3, pods(1, 1))]));
    assert_eq!((answers.shares[&1], answers.shares[&3]), (0, 50));
}

/// A runtime in counts: what is taken away is gone at once, and what is started becomes available some time later.
#[derive(Debug)]
struct Fleet(BTreeMap<u32, Count>);

impl Fleet {
    fn observed(&self) -> Observed {
        Observed { versions: self.0.clone(), next_available: None }
    }

    fn act(&mut self, serving: &Serving, becomes_available: impl Fn(u32) -> bool) {
        for (version, count) in &mut self.0 {
            if becomes_available(*version) {
                count.available = count.living;
            }
        }
        for (version, pods) in &serving.counts {
            let count = self.0.entry(*version).or_default();
            count.living = *pods;
            count.available = count.available.min(*pods);
        }
    }

    fn available(&self) -> u32 {
        self.0.values().map(|count| count.available).sum()
    }

    fn living(&self) -> u32 {
        self.0.values().map(|count| count.living).sum()
    }
}

/// What a rollout may be asked to do.
fn rollouts() -> impl Strategy<Value = (Wanted, u32)> {
    (0_u32..6, 0_u32..6, 0_u32..3, 0_u32..3, any::<bool>(), 0_u32..4).prop_map(
        |(replicas, old, surge, unavailable, falls_back, shape)| {
            let unavailable = if surge == 0 { unavailable.max(1) } else { unavailable };
            let mut wanted = wanted(replicas, surge, unavailable);
            let part = |portion| Target { portion, ..Target::ALL };
            wanted.targets = match shape {
                0 => BTreeMap::from([(1, part(Portion::Rest)), (2, part(Portion::AtMost(1)))]),
                1 => Target::split((2, 10 + 7 * old), 1),
                2 => BTreeMap::from([(1, Target::ALL.with_share(1)), (2, Target::spare(None))]),
                _ => wanted.targets,
            };
            wanted.fallback = falls_back.then_some(fallback(old));
            (wanted, old)
        },
    )
}

fn bounds(wanted: &Wanted) -> (u32, u32) {
    let (max_surge, max_unavailable) = match wanted.pace {
        Pace::Rolling { max_surge, max_unavailable } => (max_surge, max_unavailable),
        Pace::Recreate => (0, wanted.replicas),
    };
    let total = wanted.counts().values().sum::<u32>();
    (wanted.replicas.saturating_sub(max_unavailable), (wanted.replicas + max_surge).max(total))
}

#[test]
fn a_canary_keeps_its_bounds_from_step_to_step() {
    let mut wanted = Wanted { targets: Target::split((2, 10), 1), ..wanted(10, 3, 0) };
    let mut fleet = Fleet(BTreeMap::from([(1, pods(10, 10))]));
    for (percent, expected) in [(10, (9, 1)), (50, (5, 5)), (75, (3, 8))] {
        wanted.targets = Target::split((2, percent), 1);
        for _ in 0..20 {
            let step = decide(&wanted, &fleet.observed());
            fleet.act(&step, |_| true);
            assert!(fleet.available() >= 10 && fleet.living() <= 13, "{fleet:?}");
        }
        let there = decide(&wanted, &fleet.observed());
        assert_eq!((fleet.0[&1].living, fleet.0[&2].living), expected, "{percent} %");
        assert!(there.converged && there.shares == BTreeMap::from([(1, 100 - percent), (2, percent)]));
    }
}

#[test]
fn what_was_never_judged_gets_no_traffic_whatever_becomes_of_the_rest() {
    let green = BTreeMap::from([(1, Target::ALL.with_share(1)), (2, Target::spare(None))]);
    let trial = Wanted { targets: green, ..wanted(2, 2, 0) };
    for there in [vec![(1, pods(2, 2)), (2, pods(2, 2))], vec![(2, pods(2, 2))]] {
        assert_eq!(decide(&trial, &observed(&there)).shares[&2], 0, "{there:?}");
    }
    let back = Wanted { targets: BTreeMap::from([(1, Target::ALL)]), silenced: [2].into(), fallback: None, ..trial };
    let shares = decide(&back, &observed(&[(1, pods(2, 2)), (2, pods(2, 2))])).shares;
    assert_eq!(shares, BTreeMap::from([(1, 2), (2, 0)]));
}

#[test]
fn what_is_to_stay_as_it_is_only_loses_and_gets_pods_by_their_number() {
    let stays = Wanted { stays: true, ..wanted(3, 1, 0) };
    let next = |wanted: &Wanted, there: &[(u32, Count)]| {
        let step = decide(wanted, &observed(there));
        assert!(!step.converged);
        counts(&step)
    };
    assert_eq!(next(&stays, &[(1, pods(2, 2)), (2, pods(2, 1))]), [(1, 2), (2, 2)], "nothing is exchanged");
    assert_eq!(next(&stays, &[(1, pods(1, 1)), (2, pods(1, 1))]), [(1, 2), (2, 1)], "one has died");
    assert_eq!(
        next(&stays, &[(1, pods(1, 1)), (2, pods(2, 0))]),
        [(1, 2), (2, 2)],
        "what is new does not make up for it"
    );
    let more = Wanted { replicas: 6, ..stays.clone() };
    assert_eq!(next(&more, &[(1, pods(2, 2)), (2, pods(2, 2))]), [(1, 4), (2, 2)], "it was scaled up");
    let fewer = Wanted { replicas: 1, ..stays };
    assert_eq!(next(&fewer, &[(1, pods(3, 3)), (2, pods(1, 0))]), [(1, 2), (2, 0)], "it was scaled down");
}

proptest! {
    #[test]
    fn a_rollout_keeps_its_bounds_and_converges(
        (wanted, old) in rollouts(), patience in prop::collection::vec(any::<bool>(), 40),
    ) {
        let mut fleet = Fleet(BTreeMap::from([(1, pods(old, old))]));
        let (floor, ceiling) = bounds(&wanted);
        for becomes_available in patience.into_iter().chain([true; 40]) {
            let step = decide(&wanted, &fleet.observed());
            let before = fleet.available();
            fleet.act(&step, |_| becomes_available);
            let (available, living) = (fleet.available(), fleet.living());
            prop_assert!(available >= floor.min(before), "{available} available, {floor} must be");
            prop_assert!(living <= ceiling.max(old), "{living} there, {ceiling} may be");
        }
        let step = decide(&wanted, &fleet.observed());
        let now: BTreeMap<u32, u32> = fleet.0.iter().map(|(version, count)| (*version, count.living)).collect();
        prop_assert!(step.converged && step.counts.iter().all(|(version, pods)| now[version] == *pods), "{step:?}");
    }

    #[test]
    fn after_a_reboot_at_any_moment_what_served_answers_again(
        (wanted, old) in rollouts(), patience in prop::collection::vec(any::<bool>(), 0..20),
    ) {
        let wanted = Wanted { fallback: Some(fallback(old)), ..wanted };
        let mut fleet = Fleet(BTreeMap::from([(1, pods(old, old))]));
        for becomes_available in patience {
            let step = decide(&wanted, &fleet.observed());
            fleet.act(&step, |_| becomes_available);
        }
        fleet.0.clear();
        let (floor, ceiling) = bounds(&wanted);
        for _ in 0..20 {
            let step = decide(&wanted, &fleet.observed());
            fleet.act(&step, |version| version == 1); // the new version never gets ready
            prop_assert!(fleet.living() <= ceiling);
        }
        let floor = floor.min(old);
        prop_assert!(fleet.available() >= floor, "{} available, {floor} must be", fleet.available());
        for _ in 0..40 {
            let step = decide(&wanted, &fleet.observed());
            fleet.act(&step, |_| true);
        }
        prop_assert!(decide(&wanted, &fleet.observed()).converged, "the rollout goes on: {fleet:?}");
    }
}
