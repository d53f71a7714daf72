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
    /// When to look again although nothing is announced: a ready pod becomes available by waiting.
    pub look_again: Option<Timestamp>,
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
    serving.look_again = next_available(wanted, pods, now);
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
