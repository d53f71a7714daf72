//! Which pods of a version start and end so that there are as many as wanted, for runtimes that choose themselves.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

use crate::model::ids::{ConfigKey, PodName};
use crate::model::outcome::{FailureReason, PodOutcome};
use crate::model::pod::{ObservedPod, Origin, PodId, PodPhase, ReplicaSet, STRANGER};
use crate::model::time::Timestamp;

/// How many ended pods of a deployment config are kept, for their logs.
pub const ENDED_PODS_KEPT: usize = 3;
/// How many pods are started in one go. Then it is decided again, on what is wanted by then.
const STARTS_AT_ONCE: usize = 8;
/// The pause before a pod is started again whose successor ended as well; it doubles with every further end.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// The longest of these pauses.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// A pod that ran for so long ran well: its successor is started at once.
const RAN_WELL: Duration = Duration::from_secs(600);

/// What to do so that there are as many pods as a replica set says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Numbers of pods to start.
    pub start: Vec<u32>,
    /// Pods to end.
    pub stop: Vec<PodId>,
    /// Ended pods to forget.
    pub remove: Vec<PodId>,
    /// When to choose again, because pods are lacking that may not start yet.
    pub again: Option<Timestamp>,
}

/// What to do now; `pods` holds at least all pods of the deployment config, and `expected` of the version lived when it was
/// decided how many there should be. Who decided that on something else decides again: a version that was to grow must not
/// lose pods because it has grown further since.
pub fn choose(set: &ReplicaSet, expected: u32, pods: &[ObservedPod], now: Timestamp) -> Choice {
    let of_version = |pod: &&ObservedPod| pod.version() == Some((&set.config, set.version));
    let mut living: Vec<&ObservedPod> = pods.iter().filter(of_version).filter(|pod| pod.lives()).collect();
    if living.len() != expected as usize {
        return Choice { again: Some(now), ..Choice::default() };
    }
    // Those that may go first stand last: not available before available, young before old. What another life of the
    // store has left is older than all others, however coarse the clock is.
    living.sort_by_key(|pod| {
        let available = pod.available_at(set.min_ready_seconds).is_some_and(|at| at <= now);
        (!available, pod.created_at, pod.origin == Origin::Own, pod.number())
    });
    let ended: Vec<&ObservedPod> = pods.iter().filter(of_version).filter(|pod| has_failed(pod)).collect();
    let surplus = living.get(set.replicas as usize..).unwrap_or_default();
    // What another life of the store has left can only become fewer: nobody knows what it was made of.
    let wanted = if set.version == STRANGER { 0 } else { set.replicas as usize };
    let lacking = wanted.saturating_sub(living.len());
    let due = next_start(&ended).max(after_interruption(pods.iter().filter(of_version), now));
    let (how_many, again) = match lacking {
        0 => (0, None),
        _ if due.is_some_and(|due| due > now) => (0, due),
        lacking => (lacking.min(STARTS_AT_ONCE), (lacking > STARTS_AT_ONCE).then_some(now)),
    };
    Choice {
        start: free_numbers(set, pods, how_many),
        stop: surplus.iter().map(|pod| pod.id.clone()).collect(),
        remove: forgotten(&set.config, pods, &ended),
        again,
    }
}

/// Whether it failed by itself. The containers of a pod that serves are always started again, so one that ended well was
/// asked to; and where nobody knows, the machine was restarted, which is no fault of the pod.
fn has_failed(pod: &ObservedPod) -> bool {
    let PodPhase::Ended { outcome: PodOutcome::Failed { reason, .. } } = &pod.phase else { return false };
    *reason != FailureReason::Cancelled
}

/// Not before then does another pod take the place of those that were told to end with their shims: if the machine shuts
/// down, it is over by then. Those that still end have what their successors need, such as a port.
fn after_interruption<'a>(pods: impl Iterator<Item = &'a ObservedPod>, now: Timestamp) -> Option<Timestamp> {
    let over = |pod: &ObservedPod| match pod.phase {
        PodPhase::Stopping { interrupted: true } => Some(now),
        PodPhase::Ended { outcome: PodOutcome::Unknown { interrupted: true, .. } } => Some(ended_at(pod)),
        _ => None,
    };
    pods.filter_map(over).max().map(|over| over + FIRST_PAUSE)
}

fn ended_at(pod: &ObservedPod) -> Timestamp {
    pod.ended_at.unwrap_or(pod.created_at)
}

/// Not before then may another pod start after those that ended: at once after the first, and from then on after a
/// pause twice as long as the one before. All of that can be told from the pods.
fn next_start(ended: &[&ObservedPod]) -> Option<Timestamp> {
    let last = ended.iter().max_by_key(|pod| ended_at(pod))?;
    if ended_at(last).since(last.created_at) >= RAN_WELL {
        return None;
    }
    let waited = last.created_at.since(ended_at(predecessor(last, ended)?));
    Some(ended_at(last) + (waited * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE))
}

/// The pod that had ended when `pod` was started.
fn predecessor<'a>(pod: &ObservedPod, ended: &[&'a ObservedPod]) -> Option<&'a ObservedPod> {
    let before = |other: &&&ObservedPod| other.id != pod.id && ended_at(other) <= pod.created_at;
    ended.iter().copied().filter(|other| before(&other)).max_by_key(|other| ended_at(other))
}

/// The lowest numbers whose names no pod has, whoever started it, ended ones included: a name is free once it is forgotten.
fn free_numbers(set: &ReplicaSet, pods: &[ObservedPod], how_many: usize) -> Vec<u32> {
    if how_many == 0 {
        return Vec::new();
    }
    let taken: BTreeSet<&PodName> = pods.iter().map(|pod| &pod.id.name).collect();
    (0..).filter(|number| !taken.contains(&set.pod_name(*number))).take(how_many).collect()
}

/// All ended pods of a deployment config but the youngest few, and the one that tells how long the last pause was.
fn forgotten(config: &ConfigKey, pods: &[ObservedPod], failed: &[&ObservedPod]) -> Vec<PodId> {
    let is_ended = |pod: &&ObservedPod| {
        matches!(pod.phase, PodPhase::Ended { .. }) && pod.version().is_some_and(|(owner, _)| owner == config)
    };
    let mut ended: Vec<&ObservedPod> = pods.iter().filter(is_ended).collect();
    ended.sort_by_key(|pod| Reverse((pod.created_at, pod.number())));
    let last = failed.iter().max_by_key(|pod| ended_at(pod));
    let witness = last.and_then(|last| predecessor(last, failed)).map(|pod| &pod.id);
    let old = ended.into_iter().skip(ENDED_PODS_KEPT).map(|pod| &pod.id);
    old.filter(|pod| Some(*pod) != witness).cloned().collect()
}

#[cfg(test)]
mod tests;
