//! What should run for a deployment config, and how far it is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ids::{ConfigKey, RunId};

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

impl Target {
    /// All replicas, and all of the traffic.
    pub const ALL: Self = Self { portion: Portion::All, share: None };
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

    /// How many pods each version is to have.
    pub fn counts(&self) -> BTreeMap<u32, u32> {
        let named = self.targets.values().map(|target| match target.portion {
            Portion::AtMost(pods) => pods,
            Portion::All | Portion::Rest => 0,
        });
        let rest = self.replicas.saturating_sub(named.fold(0, u32::saturating_add));
        let count = |target: &Target| match target.portion {
            Portion::All => self.replicas,
            Portion::AtMost(pods) => pods.min(self.replicas),
            Portion::Rest => rest,
        };
        self.targets.iter().map(|(version, target)| (*version, count(target))).collect()
    }

    /// Whether versions have shares of the traffic.
    pub fn shares_traffic(&self) -> bool {
        self.targets.values().any(|target| target.share.is_some())
    }

    /// The version that is being brought up or serves: the newest that is to have pods.
    pub fn version(&self) -> Option<u32> {
        self.targets.keys().next_back().copied()
    }

    /// How many pods are to answer once everything is as wanted.
    pub fn desired(&self) -> u32 {
        if self.targets.is_empty() { 0 } else { self.replicas }
    }
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
