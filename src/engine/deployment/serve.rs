//! What serves is kept by level: wanted against observed, on full snapshots.
//!
//! A rolling step, a dead pod, a reboot and a changed number of replicas are all the same question here: which pods
//! are missing, which are too many, and how many may be exchanged now.

use std::time::Duration;

use crate::model::pod::{ObservedPod, PodId, PodOwner, PodPhase};
use crate::model::state::{Pace, Progress, Wanted};
use crate::model::time::Timestamp;

/// What to do now to come closer to what is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Serving {
    /// Numbers of pods of the wanted version to start.
    pub start: Vec<u32>,
    /// Pods to end.
    pub stop: Vec<PodId>,
    /// Ended pods to forget.
    pub remove: Vec<PodId>,
    /// How far it is.
    pub progress: Progress,
    /// Whether what is there is what is wanted.
    pub converged: bool,
    /// When to decide again although nothing is announced: a ready pod becomes available by waiting.
    pub decide_again: Option<Timestamp>,
}

/// How many ended pods of a deployment config are kept, for their logs.
const ENDED_PODS_KEPT: usize = 3;

/// One observed pod with what is decided on.
struct Seen<'a> {
    pod: &'a ObservedPod,
    number: u32,
    available: bool,
}

/// The observed pods of one deployment config, sorted into what matters.
struct Snapshot<'a> {
    new: Vec<Seen<'a>>,
    old: Vec<Seen<'a>>,
    /// Pods of other versions that were told to end and are still there.
    leaving: usize,
}

/// What to do for one deployment config; `pods` are all its pods that the runtime knows.
pub fn decide(wanted: &Wanted, pods: &[ObservedPod], now: Timestamp) -> Serving {
    let snapshot = take(wanted, pods, now);
    let mut serving = match wanted.pace {
        Pace::Recreate => recreate(wanted, &snapshot),
        Pace::Rolling { max_surge, max_unavailable, pause_at } => {
            rolling(wanted, &snapshot, max_surge, max_unavailable, pause_at)
        }
    };
    serving.start = free_numbers(wanted, pods, serving.start.len());
    serving.remove = forgotten(pods);
    serving.progress = Progress {
        updated: count(snapshot.new.len()),
        available: count(snapshot.new.iter().filter(|seen| seen.available).count()),
        old: count(snapshot.old.len() + snapshot.leaving),
    };
    serving.decide_again = next_available(wanted, pods, now);
    serving
}

fn take<'a>(wanted: &Wanted, pods: &'a [ObservedPod], now: Timestamp) -> Snapshot<'a> {
    let mut snapshot = Snapshot { new: Vec::new(), old: Vec::new(), leaving: 0 };
    for pod in pods {
        let PodOwner::Version { version, .. } = pod.owner else { continue };
        let is_new = wanted.version == Some(version);
        let seen =
            Seen { pod, number: number_of(pod), available: available_at(wanted, pod).is_some_and(|at| at <= now) };
        match pod.phase {
            PodPhase::Ended { .. } => {}
            PodPhase::Stopping if is_new => {}
            PodPhase::Stopping => snapshot.leaving += 1,
            PodPhase::Starting | PodPhase::Ready { .. } if is_new => snapshot.new.push(seen),
            PodPhase::Starting | PodPhase::Ready { .. } => snapshot.old.push(seen),
        }
    }
    // Those that may go first stand last: not available before available, young before old.
    let rank = |seen: &Seen<'_>| (!seen.available, seen.pod.created_at, seen.number);
    snapshot.new.sort_by_key(rank);
    snapshot.old.sort_by_key(rank);
    snapshot
}

/// Others end first; nothing starts before they are gone.
fn recreate(wanted: &Wanted, snapshot: &Snapshot<'_>) -> Serving {
    let target = if wanted.version.is_some() { wanted.replicas as usize } else { 0 };
    let mut serving = Serving { stop: ids(&snapshot.old), ..Serving::default() };
    serving.stop.extend(ids(snapshot.new.get(target..).unwrap_or_default()));
    if snapshot.old.is_empty() && snapshot.leaving == 0 {
        serving.start = vec![0; target.saturating_sub(snapshot.new.len())];
        serving.converged = snapshot.new.len() == target && snapshot.new.iter().all(|seen| seen.available);
    }
    serving
}

/// Step by step: never more than `replicas + max_surge` pods, never fewer than `replicas - max_unavailable` available.
fn rolling(wanted: &Wanted, snapshot: &Snapshot<'_>, surge: u32, unavailable: u32, pause_at: Option<u32>) -> Serving {
    let replicas = if wanted.version.is_some() { wanted.replicas as usize } else { 0 };
    let target = pause_at.map_or(replicas, |pause| replicas.min(pause as usize));
    let (new, old) = (&snapshot.new, &snapshot.old);
    let new_available = new.iter().filter(|seen| seen.available).count();
    let old_available = old.iter().filter(|seen| seen.available).count();

    let room = if old.is_empty() { target } else { (replicas + surge as usize).saturating_sub(old.len()) };
    let start = target.min(room).saturating_sub(new.len());

    let must_stay = replicas.saturating_sub(unavailable as usize);
    let spare = (new_available + old_available).saturating_sub(must_stay).min(old_available);
    let finished = target == replicas && new_available >= replicas;
    let mut stop = match (finished, spare) {
        (true, _) => ids(old),
        (false, spare) => ids(&old[old_available - spare..]),
    };
    stop.extend(ids(new.get(target..).unwrap_or_default()));

    let all_new = new.len() == target && new_available == target;
    let converged = all_new && (pause_at.is_some() || old.is_empty());
    Serving { start: vec![0; start], stop, converged, ..Serving::default() }
}

/// When a pod counts as available; never while it is not ready.
fn available_at(wanted: &Wanted, pod: &ObservedPod) -> Option<Timestamp> {
    match pod.phase {
        PodPhase::Ready { since } => Some(since + Duration::from_secs(wanted.min_ready_seconds.into())),
        PodPhase::Starting | PodPhase::Stopping | PodPhase::Ended { .. } => None,
    }
}

fn next_available(wanted: &Wanted, pods: &[ObservedPod], now: Timestamp) -> Option<Timestamp> {
    pods.iter().filter_map(|pod| available_at(wanted, pod)).filter(|at| *at > now).min()
}

/// The lowest numbers that no pod of the wanted version has, ended ones included: a name is free once it is forgotten.
fn free_numbers(wanted: &Wanted, pods: &[ObservedPod], how_many: usize) -> Vec<u32> {
    let of_version =
        |pod: &&ObservedPod| matches!(pod.owner, PodOwner::Version { version, .. } if Some(version) == wanted.version);
    let taken: std::collections::BTreeSet<u32> = pods.iter().filter(of_version).map(number_of).collect();
    (0..).filter(|number| !taken.contains(number)).take(how_many).collect()
}

/// All ended pods but the youngest few.
fn forgotten(pods: &[ObservedPod]) -> Vec<PodId> {
    let mut ended: Vec<&ObservedPod> = pods.iter().filter(|pod| matches!(pod.phase, PodPhase::Ended { .. })).collect();
    ended.sort_by_key(|pod| std::cmp::Reverse((pod.created_at, number_of(pod))));
    ended.into_iter().skip(ENDED_PODS_KEPT).map(|pod| pod.id.clone()).collect()
}

/// The number at the end of a pod's name.
fn number_of(pod: &ObservedPod) -> u32 {
    pod.id.name.as_str().rsplit('-').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

fn ids(seen: &[Seen<'_>]) -> Vec<PodId> {
    seen.iter().map(|seen| seen.pod.id.clone()).collect()
}

fn count(pods: usize) -> u32 {
    u32::try_from(pods).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::model::ids::{ConfigKey, Namespace, PodName};
    use crate::model::outcome::PodOutcome;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn pod(version: u32, number: u32, phase: PodPhase) -> ObservedPod {
        let config = ConfigKey { project: "p".into(), stage: "s".into(), name: "web".into() };
        ObservedPod {
            id: PodId { namespace: Namespace::new("p-s"), name: PodName::new(format!("web-{version}-{number}")) },
            owner: PodOwner::Version { config, version },
            labels: BTreeMap::new(),
            phase,
            restarts: 0,
            message: String::new(),
            created_at: Timestamp(i64::from(number)),
        }
    }

    fn ready(version: u32, number: u32) -> ObservedPod {
        pod(version, number, PodPhase::Ready { since: Timestamp(0) })
    }

    fn wanted(replicas: u32, max_surge: u32, max_unavailable: u32) -> Wanted {
        let pace = Pace::Rolling { max_surge, max_unavailable, pause_at: None };
        Wanted { version: Some(2), replicas, pace, ..Wanted::default() }
    }

    fn names(ids: &[PodId]) -> Vec<&str> {
        ids.iter().map(|id| id.name.as_str()).collect()
    }

    #[test]
    fn a_surge_starts_one_before_one_ends() {
        let step = decide(&wanted(2, 1, 0), &[ready(1, 0), ready(1, 1)], NOW);
        assert_eq!((step.start.as_slice(), step.stop.len()), ([0].as_slice(), 0));
        let step = decide(&wanted(2, 1, 0), &[ready(1, 0), ready(1, 1), ready(2, 0)], NOW);
        assert_eq!((step.start.len(), names(&step.stop)), (0, vec!["web-1-1"]));
        let step = decide(&wanted(2, 1, 0), &[ready(1, 0), ready(2, 0), ready(2, 1)], NOW);
        assert_eq!((names(&step.stop), step.converged), (vec!["web-1-0"], false));
        assert!(decide(&wanted(2, 1, 0), &[ready(2, 0), ready(2, 1)], NOW).converged);
    }

    #[test]
    fn recreate_waits_until_the_old_ones_are_gone() {
        let wanted = Wanted { pace: Pace::Recreate, ..wanted(1, 0, 0) };
        let step = decide(&wanted, &[ready(1, 0)], NOW);
        assert_eq!((step.start.len(), names(&step.stop)), (0, vec!["web-1-0"]));
        let step = decide(&wanted, &[pod(1, 0, PodPhase::Stopping)], NOW);
        assert_eq!((step.start.len(), step.stop.len(), step.converged), (0, 0, false));
        assert_eq!(decide(&wanted, &[], NOW).start, [0]);
    }

    #[test]
    fn a_dead_pod_is_replaced_under_another_name() {
        let dead = pod(2, 0, PodPhase::Ended { outcome: PodOutcome::Unknown { message: String::new() } });
        let step = decide(&wanted(2, 1, 0), &[dead, ready(2, 1)], NOW);
        assert_eq!(step.start, [2]);
    }

    #[test]
    fn a_ready_pod_is_available_only_after_its_minimum() {
        let wanted = Wanted { min_ready_seconds: 10, ..wanted(1, 1, 0) };
        let step = decide(&wanted, &[pod(2, 0, PodPhase::Ready { since: NOW })], NOW);
        assert_eq!((step.converged, step.decide_again), (false, Some(NOW + Duration::from_secs(10))));
        assert!(decide(&wanted, &[pod(2, 0, PodPhase::Ready { since: NOW })], NOW + Duration::from_secs(10)).converged);
    }

    #[test]
    fn a_pause_holds_the_takeover_back() {
        let pace = Pace::Rolling { max_surge: 1, max_unavailable: 0, pause_at: Some(1) };
        let wanted = Wanted { pace, ..wanted(3, 1, 0) };
        let step = decide(&wanted, &[ready(1, 0), ready(1, 1), ready(1, 2), ready(2, 0)], NOW);
        assert_eq!((step.start.len(), step.stop.len(), step.converged), (0, 1, true));
    }

    #[test]
    fn nothing_wanted_ends_everything() {
        let wanted = Wanted { version: None, ..Wanted::default() };
        let step = decide(&wanted, &[ready(1, 0), ready(2, 0)], NOW);
        assert_eq!((step.stop.len(), step.start.len(), step.converged), (2, 0, false));
        assert!(decide(&wanted, &[], NOW).converged);
    }

    #[test]
    fn of_ended_pods_the_youngest_are_kept() {
        let ended = |number| pod(2, number, PodPhase::Ended { outcome: PodOutcome::Succeeded });
        let step = decide(&wanted(1, 1, 0), &[ended(1), ended(2), ended(3), ended(4), ended(5)], NOW);
        assert_eq!((names(&step.remove), step.start), (vec!["web-2-2", "web-2-1"], vec![0]));
    }

    /// Carries decisions out: what was started becomes ready or stays unready, and what was stopped goes.
    fn act(pods: &mut Vec<ObservedPod>, step: &Serving, becomes_ready: bool) {
        pods.retain(|pod| !step.stop.contains(&pod.id) && !step.remove.contains(&pod.id));
        if becomes_ready {
            for pod in pods.iter_mut().filter(|pod| pod.phase == PodPhase::Starting) {
                pod.phase = PodPhase::Ready { since: Timestamp(0) };
            }
        }
        pods.extend(step.start.iter().map(|number| pod(2, *number, PodPhase::Starting)));
    }

    proptest! {
        #[test]
        fn a_rollout_keeps_its_bounds_and_converges(
            replicas in 0_u32..6, old in 0_u32..6, surge in 0_u32..3, unavailable in 0_u32..3, patience in prop::collection::vec(any::<bool>(), 40),
        ) {
            let unavailable = if surge == 0 { unavailable.max(1) } else { unavailable };
            let wanted = wanted(replicas, surge, unavailable);
            let mut pods: Vec<ObservedPod> = (0..old).map(|number| ready(1, number)).collect();
            let available = |pods: &[ObservedPod]| pods.iter().filter(|pod| matches!(pod.phase, PodPhase::Ready { .. })).count();
            let floor = (replicas.saturating_sub(unavailable) as usize).min(old as usize);
            for becomes_ready in patience.into_iter().chain([true; 40]) {
                let step = decide(&wanted, &pods, NOW);
                act(&mut pods, &step, becomes_ready);
                prop_assert!(available(&pods) >= floor, "{} available, {floor} must be", available(&pods));
                prop_assert!(pods.len() <= (replicas + surge).max(old) as usize);
            }
            let step = decide(&wanted, &pods, NOW);
            prop_assert!(step.converged && step.start.is_empty() && step.stop.is_empty(), "{step:?}");
        }
    }
}
