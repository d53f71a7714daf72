//! What served before a version that fails once it has taken its place comes back by itself. Its pods are gone by then, so that it
//! comes back as the next version: numbers only grow, and the history says what runs and why. No hook runs for it. The deployment
//! that has failed brings it up, and both end together. Sources: the proposals "Deployment Hooks" (a `post` hook that must succeed)
//! and "Deployments" (a rollback is a new version) of OpenShift.

use super::apply::{self, deployment_run, next_version};
use super::turn::deployment;
use crate::engine::lifecycle::policy;
use crate::engine::records::{Records, Undecided};
use crate::engine::transition::Transition;
use crate::model::cause::Cause;
use crate::model::ids::ConfigKey;
use crate::model::outcome::Outcome;
use crate::model::plan::{Change, Decision};
use crate::model::run::{Controlled, Controllers, DeploymentRun, DeploymentStep, Phase, Run, SequenceRun};
use crate::model::state::{ConfigState, Version, spec_of};

/// Who asks for a rollback for which nobody has asked.
const BY_ITSELF: &str = "launchway";

/// What a deployment has taken the place of comes back as the next version, and is what serves from now on.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn bring_back(
    transition: &mut Transition<'_>,
    config: &ConfigKey,
    after: u32,
) -> Result<(), Undecided> {
    let Some(failed) = deployment(transition.records, config, after)?.cloned() else { return Ok(()) };
    let Some(state) = transition.records.configs.get(config)?.cloned() else { return Ok(()) };
    let Some(before) = replaced(&state, &failed) else { return Ok(()) };
    let next = Version { number: next_version(transition.records, config)?, ..before.clone() };
    if is_led_to_by_number(transition.records, &state, &before, &next)? {
        return Ok(());
    }
    let Some(run) = as_next(transition, &failed, &before, next.number)? else { return Ok(()) };
    transition.put_run(Run::Deployment(Box::new(run)))?;
    let records = &mut *transition.records;
    if let Some(Run::Deployment(failed)) = records.runs.get_mut(&failed.id)? {
        failed.restored_as = Some(next.number);
    }
    apply::hand_on(records, &state, before.number, next.number)?;
    if let Some(state) = records.configs.get_mut(config)? {
        state.latest_version = next.number;
        state.serve(next, true);
    }
    Ok(())
}

/// What a deployment has taken the place of, if that served alone and well, and what runs is still in its hands. Where something
/// stood beside it, both come back as they were; and what another life of the store began goes back to nothing that this one knows.
fn replaced(state: &ConfigState, failed: &DeploymentRun) -> Option<Version> {
    let is_in_its_hands = state.wanted.owner.as_ref() == Some(&failed.id);
    let is_alone = state.beside.is_none();
    let before = state.serving.as_ref().filter(|_| is_in_its_hands && state.is_of_this_life(failed) && is_alone);
    before.filter(|before| Some(before.number) == failed.previous).cloned()
}

/// Whether a `Service` that is kept for a version selects its pods by its number.
fn is_led_to_by_number(
    records: &Records,
    state: &ConfigState,
    before: &Version,
    next: &Version,
) -> Result<bool, Undecided> {
    let (old, new) = (before.pod_labels(), next.pod_labels());
    let kept = apply::kept_by(records, state)?.into_iter();
    let mut its = kept.map(|object| object.of_version(&state.key.name, before.number));
    Ok(its.any(|object| object.leads_to(&old) && !object.leads_to(&new)))
}

/// The deployment of what comes back; nothing, if what served had failed as well, or is not on record any more.
fn as_next(
    transition: &Transition<'_>,
    failed: &DeploymentRun,
    before: &Version,
    number: u32,
) -> Result<Option<DeploymentRun>, Undecided> {
    let records = &*transition.records;
    let earlier = deployment(records, &failed.config, before.number)?;
    let parent = records.runs.get(&failed.parent)?.and_then(Run::sequence);
    let earlier = earlier.filter(|earlier| earlier.failure.is_none());
    let (Some(earlier), Some(parent), Ok(spec)) = (earlier, parent, spec_of(&before.object)) else { return Ok(None) };
    let change = Change {
        cause: cause(before, failed),
        causes: vec![Cause::Rollback { by: BY_ITSELF.to_owned() }],
        ..Change::of(before.object.key.clone(), Decision::Deploy)
    };
    let commit = before.commit.clone();
    let parent = SequenceRun { commit, is_rollback: true, by: None, forced: None, ..parent.clone() };
    let version = (failed.config.clone(), number);
    let fresh = deployment_run(&parent, &change, version, (before.object.clone(), spec), None, transition.now);
    Ok(Some(DeploymentRun {
        repository: earlier.repository.clone(),
        restored_after: Some(failed.version),
        replicas: failed.replicas,
        controllers: as_they_are(&earlier.controllers),
        phase: Phase::Pending,
        step: DeploymentStep::Restore,
        ..fresh
    }))
}

/// A deployment has ended, and with it the version that it has brought back.
///
/// # Errors
/// If something must be read first.
pub(super) fn ended(transition: &mut Transition<'_>, run: &DeploymentRun) -> Result<(), Undecided> {
    let Some(version) = run.restored_as else { return Ok(()) };
    let now = transition.now;
    let restored = deployment(transition.records, &run.config, version)?;
    let Some(restored) = restored.filter(|restored| restored.ended_at.is_none()) else { return Ok(()) };
    let state = transition.records.configs.get(&run.config)?;
    let wanted = state.and_then(|state| state.wanted.counts().get(&version).copied());
    let (took, available) = (policy::format_duration(now.since(restored.created_at)), run.progress.available);
    let message = match wanted {
        Some(pods) if available >= pods => format!("version {version} serves after {took}"),
        Some(pods) => format!("version {version} is to serve: {available} of {pods} pods were available after {took}"),
        None => format!("version {version} gave way after {took}"),
    };
    let ended = DeploymentRun {
        step: DeploymentStep::Done,
        phase: Phase::Complete,
        ended_at: Some(now),
        message,
        ..restored.clone()
    };
    transition.put_run(Run::Deployment(Box::new(ended)))
}

fn cause(before: &Version, failed: &DeploymentRun) -> String {
    let (to, version) = (before.number, failed.version);
    let how = match &failed.failure {
        Some(failure) if failure.outcome == Outcome::FAIL => format!("failed: {}", failure.message),
        Some(failure) => format!("was ended: {}", failure.message),
        None => "was ended".to_owned(),
    };
    format!("rollback to version {to}, because version {version} {how}")
}

/// The replication controllers of the version that comes back go back by deployments of their own.
fn as_they_are(controllers: &Controllers) -> Controllers {
    let all =
        controllers.all.iter().map(|it| Controlled { is_new: false, reached: None, has_left: false, ..it.clone() });
    Controllers { all: all.collect(), ..Controllers::default() }
}

#[cfg(test)]
mod tests;
