//! A deployment config gets its next version, or a failed one is attempted again.

use std::sync::Arc;

use super::{config_or_new, controllers, next_version, remove_config, sequence, typed};
use crate::engine::deployment::{machine, quarantine};
use crate::engine::records::Undecided;
use crate::engine::transition::Transition;
use crate::model::cause::Cause;
use crate::model::deployment_config::DeploymentConfigSpec;
use crate::model::event::Event;
use crate::model::ids::{ConfigKey, RunId};
use crate::model::object::Object;
use crate::model::outcome::Outcome;
use crate::model::plan::Change;
use crate::model::run::{Deployer, DeploymentRun, DeploymentStep, Phase, Run, SequenceRun, Waits};
use crate::model::state::{Attempt, ConfigState, Version};
use crate::model::time::Timestamp;
use crate::model::wanted::Progress;

/// A deployment config gets its next version, and a run for it; nothing but an answer if that content serves already.
pub(in crate::engine) fn start_deployment(
    transition: &mut Transition<'_>,
    by: &RunId,
    change: &Change,
) -> Result<(), Undecided> {
    let Some(parent) = sequence(transition.records, by)? else { return Ok(()) };
    start_version(transition, &parent, change)
}

/// The same for a run as it is given.
pub(in crate::engine) fn start_version(
    transition: &mut Transition<'_>,
    parent: &SequenceRun,
    change: &Change,
) -> Result<(), Undecided> {
    let Some(object) = change.object.clone() else { return Ok(()) };
    let by = &parent.id;
    let key = parent.service.config(&change.key.name);
    let spec = typed(&object)?;
    let on_failure =
        transition.records.repositories.get(&parent.repository)?.map(|it| it.on_failure).unwrap_or_default();
    let (next, now) = (next_version(transition.records, &key)?, transition.now);
    quarantine::keep(transition.records, &key, &object.digest, now)?;
    let go = controllers::superfluous(transition.records, &key, &spec)?;
    let all_serve = controllers::all_serve(transition.records, &key, &spec)?;
    let state = config_or_new(transition.records, parent, &object)?;
    let by_hand = change.is_by_hand();
    if let Some(serving) =
        state.serving.as_ref().filter(|it| it.object.digest == object.digest && !by_hand && all_serve)
    {
        let deployment = key.deployment(serving.number);
        for name in go {
            remove_config(transition.records, &ConfigKey { name, ..key.clone() })?;
        }
        serves_already(transition, by, &key, deployment);
        return Ok(());
    }
    let number = change.retry.map_or(next, |failed| retried_as(state, failed, next));
    let version = Version { number, commit: parent.commit.clone(), object: object.clone() };
    // What only runs while it is deployed takes no other version's place, and leaves none.
    let exchanged = state.exchanged().filter(|_| !spec.test && !state.wanted.rests).map(|exchanged| exchanged.number);
    let previous = exchanged.filter(|exchanged| *exchanged != number);
    state.latest_version = state.latest_version.max(number);
    state.attempted = Some(Attempt { version, run: by.clone(), outcome: None });
    state.declare(&object, &spec, &parent.commit, now);
    state.planned_at = parent.planned_at.or(state.planned_at);
    let replicas = state.replicas(&spec);
    let fresh = deployment_run(parent, change, (key, number), (object, spec), previous, now);
    let fresh = DeploymentRun { replicas, on_failure, ..fresh };
    let controllers = controllers::start(transition, (parent, change), &fresh, go)?;
    let fresh = DeploymentRun { controllers, ..fresh };
    begin(transition, by, fresh)
}

/// The number under which a failed version is attempted again: its own, unless what served has come back as a newer one. What is brought
/// up always has a higher number than what it takes the place of.
pub(in crate::engine) fn retried_as(state: &ConfigState, failed: u32, next: u32) -> u32 {
    let is_behind = state.serving.as_ref().is_some_and(|serving| serving.number > failed);
    if is_behind { next } else { failed }
}

fn serves_already(transition: &mut Transition<'_>, by: &RunId, key: &ConfigKey, deployment: RunId) {
    let (outcome, message, served_already) = (Outcome::PASS, "serves already".to_owned(), true);
    let started = Event::DeploymentStarted { config: key.name.clone(), deployment: deployment.clone() };
    transition.tell(by.clone(), started);
    transition.tell(by.clone(), Event::DeploymentEnded { deployment, outcome, message, served_already });
}

/// A new deployment run, or a new attempt at one that failed.
pub(super) fn begin(transition: &mut Transition<'_>, by: &RunId, mut fresh: DeploymentRun) -> Result<(), Undecided> {
    let id = fresh.id.clone();
    // Counted on, so that what was observed before can never pass for an answer to what this run wants.
    fresh.generation = transition.records.configs.get(&fresh.config)?.map_or(0, |state| state.wanted.generation);
    let mut handed_on = None;
    if let Some(Run::Deployment(earlier)) = transition.records.runs.get(&id)? {
        fresh.attempt = earlier.attempt + 1;
        handed_on = (earlier.commit != fresh.commit).then(|| (earlier.repository.clone(), earlier.commit.clone()));
        fresh.hooks.clone_from(&earlier.hooks);
        let again = std::mem::replace(&mut fresh.causes, earlier.causes.clone());
        fresh.causes.extend(again.into_iter().filter(|cause| !earlier.causes.contains(cause)));
    }
    if let Some((repository, commit)) = handed_on {
        transition.report(repository, commit); // that attempt is an earlier one now
    }
    let (run, decided) = machine::begin(&fresh, transition.now);
    let started = Event::DeploymentStarted { config: run.config.name.clone(), deployment: id.clone() };
    transition.put_run(Run::Deployment(Box::new(run)))?;
    transition.tell(by.clone(), started);
    transition.apply(&id, decided)
}

/// Why a version is made: what differs, and who started that, if a person did, and forced it.
fn cause(parent: &SequenceRun, change: &Change) -> String {
    let started = parent.by.is_some() && parent.cause != change.cause;
    let forced = parent.forced.as_ref().map(|forced| format!("forced by {forced}"));
    let parts = [Some(change.cause.clone()), started.then(|| parent.cause.clone()), forced];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The same as data. What a person has started by hand is one of them, whatever differs.
fn causes(parent: &SequenceRun, change: &Change) -> Vec<Cause> {
    let started = parent.cause != change.cause && !change.is_by_hand();
    let asked = parent.by.clone().map(|by| Cause::Manual { by }).filter(|_| started);
    change.causes.iter().cloned().chain(asked).collect()
}

pub(in crate::engine::deployment) fn deployment_run(
    parent: &SequenceRun,
    change: &Change,
    (config, version): (ConfigKey, u32),
    (object, spec): (Arc<Object>, DeploymentConfigSpec),
    previous: Option<u32>,
    now: Timestamp,
) -> DeploymentRun {
    DeploymentRun {
        id: config.deployment(version),
        service: parent.service.service.clone(),
        destination: parent.destination.clone(),
        repository: parent.repository.clone(),
        commit: parent.commit.clone(),
        parent: parent.id.clone(),
        config,
        version,
        attempt: 1,
        cause: cause(parent, change),
        causes: causes(parent, change),
        is_rollback: parent.is_rollback,
        object,
        replicas: spec.replicas.unwrap_or(1),
        spec,
        previous,
        restored_as: None,
        restored_after: None,
        phase: Phase::New,
        step: DeploymentStep::Prepare,
        hooks: Vec::new(),
        generation: 0,
        progress: Progress::default(),
        problem: String::new(),
        not_listening: String::new(),
        waits: Waits::default(),
        promoted: None,
        deployer: Deployer::default(),
        controllers: Default::default(),
        led_by: None,
        failure: None,
        on_failure: Default::default(),
        created_at: now,
        ended_at: None,
        message: String::new(),
    }
}
