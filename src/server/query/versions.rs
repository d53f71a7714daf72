//! Which versions of a deployment config are meant.

use std::collections::BTreeSet;

use crate::model::pod::{ObservedPod, PodOwner};
use crate::model::state::ConfigState;

/// Versions of a deployment config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Versions {
    /// The one that serves, and the one that was attempted last if that is another.
    Current,
    /// The last one before those of which pods are kept.
    Previous,
    /// This one.
    Number(u32),
    /// All of which pods are kept.
    All,
}

impl Versions {
    /// The pods of these versions and of their hooks, and those of which nobody can tell.
    pub(super) fn among(self, pods: Vec<ObservedPod>, states: &[ConfigState]) -> Vec<ObservedPod> {
        if self == Self::All {
            return pods;
        }
        let placed: Vec<Option<(&ConfigState, u32)>> = pods.iter().map(|pod| place(pod, states)).collect();
        let is_meant = |place: &Option<(&ConfigState, u32)>| {
            let Some((state, version)) = place else { return self == Self::Current };
            let current = current(state);
            match (self, current.first()) {
                (Self::Previous, Some(first)) => {
                    let same = placed.iter().flatten().filter(|(other, _)| other.key == state.key);
                    let before = same.map(|(_, version)| *version).filter(|version| version < first);
                    before.max() == Some(*version)
                }
                (Self::Number(number), _) => *version == number,
                _ => current.contains(version),
            }
        };
        let meant: Vec<bool> = placed.iter().map(is_meant).collect();
        pods.into_iter().zip(meant).filter_map(|(pod, is_meant)| is_meant.then_some(pod)).collect()
    }
}

/// The deployment config of a pod, and the version that it or its hook is of.
fn place<'a>(pod: &ObservedPod, states: &'a [ConfigState]) -> Option<(&'a ConfigState, u32)> {
    match &pod.owner {
        PodOwner::Version { config, version, .. } => {
            states.iter().find(|state| state.key == *config).map(|state| (state, *version))
        }
        PodOwner::Run { run, .. } => {
            let version = run.as_str().rsplit_once('-')?.1.parse().ok()?;
            states.iter().find(|state| state.key.deployment(version) == *run).map(|state| (state, version))
        }
        PodOwner::Unknown => None,
    }
}

fn current(state: &ConfigState) -> BTreeSet<u32> {
    let attempted = state.attempted.as_ref().map(|attempt| attempt.version.number);
    let serving = state.serving.as_ref().map(|serving| serving.number);
    let beside = state.beside.as_ref().map(|beside| beside.version.number);
    let current: BTreeSet<u32> = serving.into_iter().chain(beside).chain(attempted).collect();
    if current.is_empty() { BTreeSet::from([state.latest_version]) } else { current }
}
