//! What serves is decided by level: wanted against observed, on full counts.
//!
//! A rolling step, a dead pod, a reboot and a changed number of replicas are all the same question here: how many pods
//! each version should have next. Which pods these are, and how they come and go, is the runtime's.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::deployment::observed::{Count, Observed};
use crate::model::time::Timestamp;
use crate::model::wanted::{Fallback, Pace, Progress, Wanted};

/// What to do now to come closer to what is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Serving {
    /// How many pods each version should have next: all versions that have or should have any.
    pub counts: BTreeMap<u32, u32>,
    /// Each version's share of the traffic; empty: every ready pod gets the same.
    pub shares: BTreeMap<u32, u32>,
    /// How far it is.
    pub progress: Progress,
    /// Whether what is there is what is wanted.
    pub converged: bool,
    /// When to decide again although nothing is announced: a ready pod becomes available by waiting.
    pub decide_again: Option<Timestamp>,
}

/// What a rolling exchange may not go beyond.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// No fewer pods than these are available, if so many were.
    floor: u32,
    /// No more pods than these are there.
    ceiling: u32,
}

/// What each version should have next.
pub fn decide(wanted: &Wanted, observed: &Observed) -> Serving {
    let goal = wanted.counts();
    let counts = match wanted.pace {
        _ if wanted.stays => standing(wanted, observed),
        Pace::Recreate => recreate(&goal, observed),
        Pace::Rolling { max_surge, max_unavailable } => {
            let (total, desired) = (goal.values().copied().fold(0, u32::saturating_add), wanted.desired());
            // Where a part of the pods is wanted alone, no more than these are kept.
            let floor = desired.saturating_sub(max_unavailable).min(total);
            let ceiling = desired.saturating_add(max_surge);
            rolling(&goal, wanted.fallback, observed, Bounds { floor, ceiling: ceiling.max(total) })
        }
    };
    Serving {
        counts,
        shares: shares(wanted, observed),
        progress: progress(wanted, observed),
        converged: !wanted.stays && is_converged(wanted, &goal, observed),
        decide_again: observed.next_available,
    }
}

/// Every version stays as it is. Pods that are lacking are of what serves until the rest is there, also those that others do
/// not make up for because they are not available; too many go where the most are, those that are not available before all
/// others.
fn standing(wanted: &Wanted, observed: &Observed) -> BTreeMap<u32, u32> {
    let (surge, floor) = match wanted.pace {
        Pace::Rolling { max_surge, max_unavailable } => (max_surge, wanted.desired().saturating_sub(max_unavailable)),
        Pace::Recreate => (0, 0),
    };
    let mut next: BTreeMap<u32, u32> = observed.versions.iter().map(|(version, it)| (*version, it.living)).collect();
    let total = next.values().copied().fold(0, u32::saturating_add);
    let keeper = wanted.fallback.map(|fallback| fallback.version).or(wanted.version());
    let ceiling = wanted.desired().saturating_add(surge);
    if let Some(keeper) = keeper {
        let others = observed.versions.iter().filter(|(version, _)| **version != keeper);
        let available: u32 = others.map(|(_, count)| count.available).sum();
        let living = next.entry(keeper).or_default();
        let lacking = floor.saturating_sub(available).saturating_sub(*living).min(ceiling.saturating_sub(total));
        *living += lacking.max(wanted.desired().saturating_sub(total));
    }
    let mut excess = total.saturating_sub(ceiling);
    for (version, pods) in next.iter_mut().rev() {
        let Count { living, available, .. } = observed.of(*version);
        let cut = excess.min(living.saturating_sub(available));
        (*pods, excess) = (*pods - cut, excess - cut);
    }
    for _ in 0..excess {
        if let Some((_, most)) = next.iter_mut().max_by_key(|(_, pods)| **pods) {
            *most = most.saturating_sub(1);
        }
    }
    next.retain(|version, pods| *pods > 0 || observed.of(*version).living > 0);
    next
}

/// Others end first; nothing starts before they are gone.
fn recreate(goal: &BTreeMap<u32, u32>, observed: &Observed) -> BTreeMap<u32, u32> {
    let alone = others(goal, observed).all(|(_, count)| count.living == 0 && count.leaving == 0);
    let next = |version: u32| {
        let goal = goal.get(&version).copied().unwrap_or_default();
        if alone { goal } else { goal.min(observed.of(version).living) }
    };
    versions(goal, None, observed).into_iter().map(|version| (version, next(version))).collect()
}

/// Step by step, within bounds. What has too many pods gives up what is not needed, what served before is brought back
/// as far as it is, and then the rest grows into the room that there is.
fn rolling(
    goal: &BTreeMap<u32, u32>,
    fallback: Option<Fallback>,
    observed: &Observed,
    bounds: Bounds,
) -> BTreeMap<u32, u32> {
    let mut next = shrunk(goal, fallback, observed, bounds);
    if let Some(Fallback { version, replicas }) = fallback {
        let others = || next.iter().filter(|(other, _)| **other != version);
        let answering: u32 = others().map(|(other, pods)| observed.of(*other).available.min(*pods)).sum();
        let goal = goal.get(&version).copied().unwrap_or_default();
        let needed = bounds.floor.saturating_sub(answering).max(goal);
        let room = room(bounds, others(), observed);
        let pods = next.entry(version).or_default();
        *pods = needed.min(replicas.max(goal)).min(room).max(*pods); // it may be scaled up meanwhile
    }
    for (version, goal) in goal.iter().filter(|(version, _)| fallback.is_none_or(|it| it.version != **version)) {
        let lacking = goal.saturating_sub(next[version]);
        let room = room(bounds, next.iter(), observed);
        *next.entry(*version).or_default() += lacking.min(room);
    }
    next.retain(|version, pods| *pods > 0 || observed.of(*version).living > 0);
    next
}

/// Versions that have more than they should lose what is not available, and of the rest what can be spared; the one
/// that is fallen back to comes last.
fn shrunk(
    goal: &BTreeMap<u32, u32>,
    fallback: Option<Fallback>,
    observed: &Observed,
    bounds: Bounds,
) -> BTreeMap<u32, u32> {
    let available: u32 = observed.versions.values().map(|count| count.available).sum();
    let mut spare = available.saturating_sub(bounds.floor);
    let mut versions = Vec::from_iter(versions(goal, fallback, observed));
    versions.sort_by_key(|version| fallback.is_some_and(|it| it.version == *version));
    let mut next = BTreeMap::new();
    for version in versions {
        let (goal, Count { living, available, .. }) =
            (goal.get(&version).copied().unwrap_or_default(), observed.of(version));
        let cut = spare.min(available.saturating_sub(goal));
        let pods = if living > goal { goal.max(available - cut) } else { living };
        spare -= if living > goal { cut } else { 0 };
        next.insert(version, pods);
    }
    next
}

/// How many more pods may come: one that is about to go still takes its place.
fn room<'a>(bounds: Bounds, next: impl Iterator<Item = (&'a u32, &'a u32)>, observed: &Observed) -> u32 {
    let there = next.map(|(version, pods)| observed.of(*version).living.max(*pods));
    bounds.ceiling.saturating_sub(there.fold(0, u32::saturating_add))
}

/// All versions that have or should have pods.
fn versions(goal: &BTreeMap<u32, u32>, fallback: Option<Fallback>, observed: &Observed) -> BTreeSet<u32> {
    let fallback = fallback.map(|fallback| fallback.version);
    goal.keys().chain(observed.versions.keys()).copied().chain(fallback).collect()
}

/// The versions that should have no pods and have some.
fn others<'a>(goal: &'a BTreeMap<u32, u32>, observed: &'a Observed) -> impl Iterator<Item = (u32, &'a Count)> {
    let other = |(version, _): &(&u32, &Count)| goal.get(version).is_none_or(|pods| *pods == 0);
    observed.versions.iter().filter(other).map(|(version, count)| (*version, count))
}

/// What each version gets of the traffic, if they share it. One without a share answers only until one with a share does.
fn shares(wanted: &Wanted, observed: &Observed) -> BTreeMap<u32, u32> {
    if !wanted.shares_traffic() {
        return BTreeMap::new();
    }
    let share = |version: &u32| wanted.targets.get(version).and_then(|target| target.share);
    let answers = |version: &u32| share(version).is_some_and(|share| share > 0) && observed.of(*version).available > 0;
    let is_answered = wanted.targets.keys().any(answers);
    let weight = |version: u32| match share(&version) {
        Some(share) => share,
        None if is_answered || wanted.silenced.contains(&version) => 0,
        None => observed.of(version).living,
    };
    let living = observed.versions.iter().filter(|(_, count)| count.living > 0).map(|(version, _)| version);
    wanted.targets.keys().chain(&wanted.silenced).chain(living).map(|version| (*version, weight(*version))).collect()
}

fn progress(wanted: &Wanted, observed: &Observed) -> Progress {
    let new = wanted.version().map(|version| observed.of(version)).unwrap_or_default();
    let old = observed.versions.iter().filter(|(version, _)| Some(**version) != wanted.version());
    let old = old.map(|(_, count)| count.living + count.leaving).sum();
    Progress { updated: new.living, available: new.available, old }
}

/// Whether the newest version is complete and no other has more than it should. One of them that lacks a pod gets it
/// back, but nobody has to wait for that. Where others have to end first, they have to be gone.
fn is_converged(wanted: &Wanted, goal: &BTreeMap<u32, u32>, observed: &Observed) -> bool {
    let complete = wanted.version().is_none_or(|version| {
        let (goal, Count { living, available, .. }) = (goal[&version], observed.of(version));
        (living, available) == (goal, goal)
    });
    let surplus = |(version, count): (&u32, &Count)| count.living > goal.get(version).copied().unwrap_or_default();
    let gone = wanted.pace != Pace::Recreate || others(goal, observed).all(|(_, count)| count.leaving == 0);
    complete && gone && !observed.versions.iter().any(surplus)
}

#[cfg(test)]
mod tests;
