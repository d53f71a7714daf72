//! Pods that serve and that another life of the store has left, because it was lost or replaced by a copy. They go on
//! serving: those that run what is wanted are taken over as they are, and the others are replaced like an old version.

use std::collections::BTreeMap;

use crate::engine::deployment::observed::Observed;
use crate::engine::deployment::serve::{self, Serving};
use crate::manifest::digest;
use crate::model::deployment_config::StrategyKind;
use crate::model::ids::{Digest, ServiceName, StageName};
use crate::model::object::{Kind, Object, ObjectKey};
use crate::model::plan::{Change, Decision, Plan, ServicePlan};
use crate::model::pod::{ObservedPod, Origin, PodId, PodOwner};
use crate::model::run::{DeploymentRun, DeploymentStep};
use crate::model::slot::SlotState;
use crate::model::state::{ConfigState, ObjectState, RepositoryState, spec_of};
use crate::model::time::Timestamp;
use crate::model::wanted::Pace;

/// The identity of what the pods of a deployment config run: the template as it was declared.
pub fn template_digest(object: &Object) -> Digest {
    digest::of(&object.template().unwrap_or_default())
}

/// What is done about strangers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strangers {
    /// Others take their place, as that of an old version.
    Replaced,
    /// They serve on beside what is wanted, because nothing of this life has proved itself yet.
    Kept,
    /// Nothing is changed: what is wanted is about to be decided.
    Awaiting,
    /// Nothing is changed, and the deployment gives way that waits for pods of its own: the other life began it, and has left
    /// what came after it.
    Preferred,
    /// Nothing is changed: what is wanted moved on while it was read, and is read again.
    Outdated,
}

/// What strangers of a deployment config are in for, other than being adopted. `owner` is the run that has it in its
/// hands; `is_settled` says that what is wanted was decided in this life of the store.
pub fn judge(state: &ConfigState, is_down: bool, owner: Option<&DeploymentRun>, is_settled: bool) -> Strangers {
    use DeploymentStep as At;
    let is_inherited = state.inherited.is_some() && !is_settled;
    let is_first = state.serving.is_none() && state.wanted.pace != Pace::Recreate;
    let has_moved = owner.is_some_and(|run| run.generation != state.wanted.generation);
    let is_paused = owner.is_some_and(|run| run.waits.paused_by.is_some());
    match owner.map(|run| run.step).filter(|step| *step != At::Done) {
        _ if state.removed || is_down => Strangers::Replaced,
        _ if has_moved => Strangers::Outdated, // one of the two was read before the other changed
        Some(At::ScaleDown) if !is_inherited => Strangers::Replaced,
        _ if state.wanted.targets.is_empty() => Strangers::Kept,
        Some(step) if is_inherited && step.exchanges() && !is_paused => Strangers::Preferred,
        _ if is_inherited => Strangers::Awaiting,
        Some(_) if is_first => Strangers::Kept, // there is no other version to go back to
        Some(At::Prepare | At::Pre) => Strangers::Awaiting,
        None if !is_settled => Strangers::Awaiting,
        _ => Strangers::Replaced,
    }
}

/// What this life of the store knows of what a deployment config is about to be.
#[derive(Clone, Copy, Debug)]
pub struct Prospect<'a> {
    /// Its repository.
    pub repository: Option<&'a RepositoryState>,
    /// The slot of its service.
    pub slot: Option<&'a SlotState>,
    /// The newest plan of its service.
    pub newest: Option<&'a Plan>,
    /// Whether what was delivered last of its service in the stages before has passed there.
    pub has_passed: bool,
}

impl<'a> Prospect<'a> {
    /// Whether what is wanted was decided in this life of the store: a version was deployed in it, or the head is applied,
    /// nothing is under way, and no stage before has still to pass what the head brings here. Until then an old record says
    /// nothing against what serves.
    pub fn is_settled(&self, state: &ConfigState) -> bool {
        if state.serving.is_some() && state.inherited.is_none() {
            return true;
        }
        self.is_idle() && !self.is_coming(state) && self.is_confirmed(state)
    }

    /// Whether what is recorded of a service object and its endpoints was decided in this life of the store, or the head
    /// declares just that and the stages before have passed it.
    pub fn confirms(&self, state: &ObjectState, endpoints: Option<&ObjectState>) -> bool {
        let part = self.part(&state.stage, &state.object.service);
        let mut changes = part.into_iter().flat_map(|part| &part.changes);
        let recorded =
            |key: &ObjectKey| [Some(state), endpoints].into_iter().flatten().find(|it| it.object.key == *key);
        let is_endpoints = |key: &ObjectKey| key.kind == Kind::Endpoints && key.name == state.object.key.name;
        let leads = |key: &ObjectKey| *key == state.object.key || is_endpoints(key);
        let changes_it = |change: &Change| {
            leads(&change.key) && change.digest() != recorded(&change.key).map(|it| &it.object.digest)
        };
        state.inherited.is_none() || self.is_idle() && self.has_passed && !changes.any(changes_it)
    }

    /// Whether the head is applied, and nothing is under way.
    fn is_idle(&self) -> bool {
        let is_applied = self.repository.is_some_and(RepositoryState::has_applied_its_head);
        is_applied && self.slot.is_none_or(SlotState::is_free)
    }

    /// What the head changes of a service in a stage; nothing, if the newest plan of the service is an earlier revision's.
    pub fn part(&self, stage: &StageName, service: &ServiceName) -> Option<&'a ServicePlan> {
        let applied = self.repository?.applied.as_ref();
        self.newest.filter(|newest| Some(&newest.commit) == applied)?.stage(stage)?.service(service)
    }

    /// Whether the head confirms what another life of the store has recorded: it declares just that, and the stages before
    /// have passed it.
    fn is_confirmed(&self, state: &ConfigState) -> bool {
        let declared = state.object.template();
        let is_declared = state.serving.as_ref().is_none_or(|serving| serving.object.template() == declared);
        state.inherited.is_none() || is_declared && self.has_passed
    }

    /// Whether something else than what is recorded waits for its turn in the stage.
    fn is_coming(&self, state: &ConfigState) -> bool {
        let Some(part) = self.part(&state.key.stage, &state.service) else { return false };
        let last = self.slot.and_then(|slot| slot.last_delivery.as_ref());
        let differs = |change: &Change| {
            change.key == state.object.key
                && change.decision != Decision::None
                && change.digest() != Some(&state.object.digest)
        };
        last.is_none_or(|last| last.content != part.content) && part.config_changes().any(differs)
    }
}

/// What each version should have next; what another life left, and is kept, serves on beside it.
pub fn decide(state: &ConfigState, pods: &[ObservedPod], strangers: Strangers, now: Timestamp) -> Serving {
    let (left, counted): (Vec<ObservedPod>, Vec<ObservedPod>) =
        pods.iter().cloned().partition(|pod| is_kept(state, pod, strangers));
    let count = |pods: &[ObservedPod]| Observed::count(pods, &state.key, state.wanted.min_ready_seconds, now);
    let mut serving = serve::decide(&state.wanted.at(now), &count(&counted));
    serving.decide_again = serving.decide_again.into_iter().chain(state.wanted.next_end(now)).min();
    for (version, left) in count(&left).versions {
        *serving.counts.entry(version).or_default() += left.living;
    }
    serving
}

/// Whether a pod is neither counted nor ended. One that was adopted by a version which may not have pods yet, or may
/// have none any more, is kept like a stranger.
fn is_kept(state: &ConfigState, pod: &ObservedPod, strangers: Strangers) -> bool {
    let has_none = |version: u32| !state.wanted.targets.contains_key(&version);
    let is_coming = |version: u32| state.wanted.owner.is_some() && coming(state) == Some(version);
    match (pod.origin, pod.version()) {
        (Origin::Own, _) | (_, None) => false,
        (Origin::Stranger, _) => strangers == Strangers::Kept,
        (Origin::Adopted, Some((_, version))) => {
            has_none(version) && (strangers == Strangers::Kept || is_coming(version))
        }
    }
}

/// Whether others end before the version starts that is being brought up. Where they do not, they serve on meanwhile, and
/// as many are adopted as the version is to have step by step.
fn recreates(state: &ConfigState) -> bool {
    let attempted = state.attempted.as_ref().map(|attempt| &attempt.version.object);
    let spec = attempted.and_then(|object| spec_of(object).ok());
    spec.is_some_and(|spec| spec.strategy.kind == StrategyKind::Recreate)
}

/// The version that is being brought up.
fn coming(state: &ConfigState) -> Option<u32> {
    state.open_attempt().map(|attempt| attempt.version.number)
}

/// Strangers that run what a version is to run become its pods, as many as it is to have: which, and of what version. A
/// pod stays one of the version that it was of, if that has the same template here.
pub fn adopt(state: &ConfigState, pods: &[ObservedPod], observed: &Observed) -> Vec<(PodId, u32)> {
    let templates = templates(state);
    let mut lacking = wanted(state);
    lacking.iter_mut().for_each(|(version, pods)| *pods = pods.saturating_sub(observed.of(*version).living));
    let mut strangers: Vec<(&ObservedPod, u32, &Digest)> = pods.iter().filter_map(|pod| stranger(pod, state)).collect();
    // Those that answer come first, and of these the oldest.
    strangers.sort_by_key(|(pod, ..)| (pod.available_at(0).is_none(), pod.created_at, pod.number()));
    let mut adopted = Vec::new();
    for own_version in [true, false] {
        strangers.retain(|(pod, was, template)| {
            let fits = |version: u32| templates.get(&version) == Some(template) && (version == *was || !own_version);
            let found = lacking.iter_mut().rev().find(|(version, pods)| **pods > 0 && fits(**version));
            let Some((version, pods)) = found else { return true };
            *pods -= 1;
            adopted.push((pod.id.clone(), *version));
            false
        });
    }
    adopted
}

fn stranger<'a>(pod: &'a ObservedPod, state: &ConfigState) -> Option<(&'a ObservedPod, u32, &'a Digest)> {
    match &pod.owner {
        PodOwner::Version { config, version, template } if config == &state.key && pod.is_stranger() && pod.lives() => {
            Some((pod, *version, template))
        }
        _ => None,
    }
}

/// How many pods each version is to have, what served before included.
fn wanted(state: &ConfigState) -> BTreeMap<u32, u32> {
    let mut counts = state.wanted.counts();
    if let Some(fallback) = state.wanted.fallback {
        let pods = counts.entry(fallback.version).or_default();
        *pods = fallback.replicas.max(*pods);
    }
    if let Some(version) = coming(state).filter(|_| counts.is_empty() && recreates(state)) {
        counts.insert(version, state.wanted.replicas); // others end first, and what runs the same is none of them
    }
    counts
}

/// What the versions run that are remembered with their content: one that serves and one that was tried.
fn templates(state: &ConfigState) -> BTreeMap<u32, Digest> {
    let attempted = state.attempted.as_ref().map(|attempt| &attempt.version);
    let beside = state.beside.as_ref().map(|beside| &beside.version);
    let versions = state.serving.iter().chain(beside).chain(attempted);
    versions.map(|version| (version.number, template_digest(&version.object))).collect()
}

#[cfg(test)]
mod tests;
