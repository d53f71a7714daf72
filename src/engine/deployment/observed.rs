//! The pods of a deployment config, counted: what is decided on does not know one pod from another.

use std::collections::BTreeMap;

use crate::model::ids::ConfigKey;
use crate::model::pod::{ObservedPod, PodPhase};
use crate::model::time::Timestamp;

/// How many pods each version has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Versions that have pods.
    pub versions: BTreeMap<u32, Count>,
    /// When the next ready pod becomes available by waiting.
    pub next_available: Option<Timestamp>,
}

/// The pods of one version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Those that run and were not told to end.
    pub living: u32,
    /// Of these, the ones that have been ready for long enough.
    pub available: u32,
    /// Those that are to end and are still there.
    pub leaving: u32,
    /// Those that ended and are kept for their logs.
    pub ended: u32,
}

impl Observed {
    /// Counts the pods of `config` among `pods` as they are at `now`.
    pub fn count(pods: &[ObservedPod], config: &ConfigKey, min_ready_seconds: u32, now: Timestamp) -> Self {
        let mut observed = Self::default();
        for pod in pods {
            let Some((_, version)) = pod.version().filter(|(owner, _)| *owner == config) else { continue };
            let available_at = pod.available_at(min_ready_seconds);
            let coming = available_at.filter(|at| *at > now);
            observed.next_available = observed.next_available.into_iter().chain(coming).min();
            let count = observed.versions.entry(version).or_default();
            match pod.phase {
                PodPhase::Stopping { .. } => count.leaving += 1,
                PodPhase::Ended { .. } => count.ended += 1,
                PodPhase::Starting | PodPhase::Ready { .. } => count.living += 1,
            }
            count.available += u32::from(available_at.is_some_and(|at| at <= now));
        }
        observed
    }

    /// The pods of one version.
    pub fn of(&self, version: u32) -> Count {
        self.versions.get(&version).copied().unwrap_or_default()
    }

    /// Whether nothing of it runs any more.
    pub fn is_gone(&self) -> bool {
        self.versions.values().all(|count| count.living == 0 && count.leaving == 0)
    }
}
