//! What should run for a deployment config, and how far it is.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::ids::{ConfigKey, RunId};
use super::time::Timestamp;

/// What should run for a deployment config: the whole input of `engine::deployment::serve` beside what is observed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// Grows with every change of this value; a progress report about an earlier value shows by it.
    pub generation: u64,
    /// The run that changes it now, and hears about progress. No other run may change it meanwhile.
    pub owner: Option<RunId>,
    /// How many pods the deployment config is to have; what a person scales.
    pub replicas: u32,
    /// What each version gets of them. A version that is not named gets none.
    pub targets: BTreeMap<u32, Target>,
    /// The version that serves until the targets can: it is brought back where too few pods are available.
    pub fallback: Option<Fallback>,
    /// How versions make room for each other.
    pub pace: Pace,
    /// Seconds a pod must be ready before it counts as available.
    pub min_ready_seconds: u32,
    /// Versions that get no traffic although pods of theirs may still be there: one that was judged and failed, and one that
    /// never was.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub silenced: BTreeSet<u32>,
    /// Whether there are no pods for now, because they only run while they are deployed (`test: true`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rests: bool,
    /// Whether every version stays as it is: pods that die come back, and more or fewer come with the number of replicas,
    /// but no version gives way to another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stays: bool,
}

/// What serves until the targets can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fallback {
    /// The version.
    pub version: u32,
    /// How many pods it had: it is brought back to no more.
    pub replicas: u32,
}

/// What one version is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Its part of the replicas.
    pub portion: Portion,
    /// Its share of the traffic, in relation to the shares of the other versions; without any, all ready pods answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<u32>,
    /// Until when; for good, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// How many pods a version gets out of the replicas of its deployment config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Portion {
    /// As many as there are replicas.
    All,
    /// So many, if there are so many replicas.
    AtMost(u32),
    /// What the others leave.
    Rest,
    /// So many in a hundred, rounded up; at least one if there are any, and together no more than a surge allows.
    Percent(u32),
}

/// How one version's pods take over from another's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Pace {
    /// Others end first; nothing starts before they are gone.
    #[default]
    Recreate,
    /// Step by step.
    Rolling {
        /// Pods beyond `replicas`.
        max_surge: u32,
        /// Available pods that may be missing from `replicas`.
        max_unavailable: u32,
    },
}

impl Pace {
    /// Every version has its pods at once, whatever is missing meanwhile.
    pub const AT_ONCE: Self = Self::Rolling { max_surge: u32::MAX, max_unavailable: u32::MAX };
}

impl Target {
    /// All replicas, and all of the traffic.
    pub const ALL: Self = Self { portion: Portion::All, share: None, until: None };

    /// The same with a share of the traffic.
    #[must_use]
    pub fn with_share(self, share: u32) -> Self {
        Self { share: Some(share), ..self }
    }

    /// All replicas and none of the traffic, until then if that is said.
    pub fn spare(until: Option<Timestamp>) -> Self {
        Self { until, ..Self::ALL.with_share(0) }
    }

    /// So many in a hundred of the replicas and of the traffic for one version, and the rest for another.
    pub fn split((one, percent): (u32, u32), other: u32) -> BTreeMap<u32, Self> {
        let part = |percent| Self { portion: Portion::Percent(percent), ..Self::ALL }.with_share(percent);
        BTreeMap::from([(one, part(percent)), (other, part(100_u32.saturating_sub(percent)))])
    }
}

impl Wanted {
    /// No pods at all, and whoever owned it before owns it no longer.
    #[must_use]
    pub fn nothing(&self) -> Self {
        Self { generation: self.generation + 1, ..Self::default() }
    }

    /// A version as what serves until something else does: it keeps the number of pods that it has or once had.
    pub fn fall_back_to(&self, version: u32) -> Fallback {
        let now = Fallback { version, replicas: self.replicas };
        self.fallback.filter(|fallback| fallback.version == version).unwrap_or(now)
    }

    /// What it is at a time: what was wanted until then is wanted no longer.
    #[must_use]
    pub fn at(&self, now: Timestamp) -> Self {
        let mut then = self.clone();
        let is_over = |target: &Target| target.until.is_some_and(|until| until <= now);
        then.silenced.extend(self.targets.iter().filter(|(_, target)| is_over(target)).map(|(version, _)| *version));
        then.targets.retain(|_, target| !is_over(target));
        then
    }

    /// When something that is wanted now is wanted no longer.
    pub fn next_end(&self, now: Timestamp) -> Option<Timestamp> {
        self.targets.values().filter_map(|target| target.until).filter(|until| *until > now).min()
    }

    /// Which versions get no traffic any more once `next` is wanted: those that have none, or, where it goes back, no share
    /// of it any more.
    pub fn silenced_by(&self, next: &BTreeMap<u32, Target>, goes_back: bool) -> BTreeSet<u32> {
        let loses = |target: &Target| target.share.is_some_and(|share| share == 0 || goes_back);
        let losing = self.targets.iter().filter(|(_, target)| loses(target)).map(|(version, _)| *version);
        self.silenced.iter().copied().chain(losing).filter(|version| !next.contains_key(version)).collect()
    }

    /// How many pods each version is to have.
    pub fn counts(&self) -> BTreeMap<u32, u32> {
        let named = self.targets.values().map(|target| match target.portion {
            Portion::AtMost(pods) => pods,
            Portion::All | Portion::Rest | Portion::Percent(_) => 0,
        });
        let replicas = self.there_are();
        let rest = replicas.saturating_sub(named.fold(0, u32::saturating_add));
        let count = |target: &Target| match target.portion {
            Portion::All => replicas,
            Portion::AtMost(pods) => pods.min(replicas),
            Portion::Rest => rest,
            Portion::Percent(percent) => part(replicas, percent),
        };
        let mut counts: BTreeMap<u32, u32> =
            self.targets.iter().map(|(version, target)| (*version, count(target))).collect();
        self.fit_parts(&mut counts);
        counts
    }

    /// Parts that are rounded up are no more than fit into the surge; the older version has less then.
    fn fit_parts(&self, counts: &mut BTreeMap<u32, u32>) {
        let Pace::Rolling { max_surge, .. } = self.pace else { return };
        let is_part = |version: &u32| matches!(self.targets[version].portion, Portion::Percent(_));
        let total = counts.iter().filter(|(version, _)| is_part(version)).fold(0, |sum: u32, (_, pods)| sum + pods);
        let replicas = self.there_are();
        let excess = total.saturating_sub(replicas.saturating_add(max_surge));
        if let Some((_, pods)) = counts.iter_mut().find(|(version, _)| is_part(version)) {
            *pods = pods.saturating_sub(excess).max(1.min(replicas));
        }
    }

    /// Whether versions have shares of the traffic.
    pub fn shares_traffic(&self) -> bool {
        !self.silenced.is_empty() || self.targets.values().any(|target| target.share.is_some())
    }

    /// The version that is being brought up or serves: the newest that is to have pods.
    pub fn version(&self) -> Option<u32> {
        self.targets.keys().next_back().copied()
    }

    /// How many pods are to answer once everything is as wanted.
    pub fn desired(&self) -> u32 {
        if self.targets.is_empty() { 0 } else { self.there_are() }
    }

    /// How many pods there are to be now.
    fn there_are(&self) -> u32 {
        if self.rests { 0 } else { self.replicas }
    }
}

/// So many in a hundred of the pods, rounded up: one at least, if there are any.
fn part(replicas: u32, percent: u32) -> u32 {
    let pods = (u64::from(replicas) * u64::from(percent)).div_ceil(100).max(1);
    u32::try_from(pods).unwrap_or(u32::MAX).min(replicas)
}

/// One of the versions behind a service, with its weight among all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backend {
    /// The deployment config.
    pub config: ConfigKey,
    /// The version.
    pub version: u32,
    /// Its weight.
    pub weight: u32,
}

/// How far a rollout is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Pods of the version that is being brought up.
    pub updated: u32,
    /// Of these, the available ones.
    pub available: u32,
    /// Pods of other versions that are still there.
    pub old: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_rounded_up_and_fit_into_the_surge() {
        for (replicas, percent, max_surge, expected) in [
            (10, 10, 3, (9, 1)),
            (10, 25, 3, (8, 3)),
            (10, 25, 0, (7, 3)),
            (3, 10, 1, (3, 1)),
            (3, 10, 0, (2, 1)),
            (3, 60, 1, (2, 2)),
            (4, 99, 1, (1, 4)),
            (1, 10, 1, (1, 1)),
            (1, 10, 0, (1, 1)),
            (0, 50, 1, (0, 0)),
        ] {
            let pace = Pace::Rolling { max_surge, max_unavailable: 0 };
            let targets = Target::split((2, percent), 1);
            let wanted = Wanted { replicas, pace, targets, ..Wanted::default() };
            let counts = wanted.counts();
            assert_eq!((counts[&1], counts[&2]), expected, "{percent} % of {replicas} with a surge of {max_surge}");
        }
    }

    #[test]
    fn what_is_kept_for_a_while_goes_when_that_is_over() {
        let spare = Target::spare(Some(Timestamp(100)));
        let targets = BTreeMap::from([(1, spare), (2, Target::ALL.with_share(1))]);
        let wanted = Wanted { replicas: 2, targets, ..Wanted::default() };
        assert_eq!((wanted.at(Timestamp(99)), wanted.next_end(Timestamp(99))), (wanted.clone(), Some(Timestamp(100))));
        let later = wanted.at(Timestamp(100));
        assert_eq!((later.counts(), later.silenced), (BTreeMap::from([(2, 2)]), BTreeSet::from([1])));
        assert_eq!(wanted.next_end(Timestamp(100)), None);
    }

    #[test]
    fn what_has_no_traffic_gets_none_by_another_wish() {
        let all = |version| BTreeMap::from([(version, Target::ALL)]);
        let green = BTreeMap::from([(1, Target::ALL.with_share(1)), (2, Target::spare(None))]);
        let trial = Wanted { targets: green, ..Wanted::default() };
        assert_eq!(trial.silenced_by(&all(1), false), BTreeSet::from([2]));
        assert_eq!(trial.silenced_by(&all(2), false), BTreeSet::new());
        let canary = Wanted { targets: Target::split((2, 10), 1), ..Wanted::default() };
        assert_eq!(canary.silenced_by(&all(2), false), BTreeSet::new(), "the old one answers until it is replaced");
        assert_eq!(canary.silenced_by(&all(1), true), BTreeSet::from([2]), "the new one has failed");
    }
}
