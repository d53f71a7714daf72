//! What runs decide about deployment configs and other objects, applied to what is remembered of them.

use std::sync::Arc;

use crate::engine::deployment::{beside, ownership, quarantine, restored, turn};
use crate::engine::records::{Lookup, Records, Undecided};
use crate::engine::rollback;
use crate::engine::sequence::slot;
use crate::engine::transition::Transition;
use crate::error::{Context, Failure};
use crate::model::deployment_config::DeploymentConfigSpec;
use crate::model::event::Event;
use crate::model::ids::{ConfigKey, RunId, ServiceKey, ServiceName};
use crate::model::object::{Kind, Object};
use crate::model::outcome::Outcome;
use crate::model::plan::{Change, Decision};
use crate::model::run::{DeploymentStep, Run, SequenceRun};
use crate::model::state::{ConfigState, spec_of};
use crate::model::time::Timestamp;
use crate::model::transaction::ObjectPlace;
use crate::model::wanted::Wanted;

mod again;
mod controllers;
mod kept;
mod object;
mod start;

pub use again::decide_again;
pub(in crate::engine) use kept::update_kept;
pub(super) use kept::{hand_on, kept_by};
use object::{place, put_object};
pub(super) use start::deployment_run;
pub(in crate::engine) use start::{retried_as, start_deployment, start_version};

/// Why a deployment gives way over a store that was lost or restored.
const LEFT: &str = "another life of the store has left what serves";

/// What is remembered of something that is to be changed.
pub(in crate::engine) struct LastChange {
    /// The service that it belongs to.
    pub(in crate::engine) service: ServiceName,
    /// When the newest revision was planned that has changed it.
    pub(in crate::engine) planned_at: Option<Timestamp>,
    /// That revision, if it is known, for people.
    pub(in crate::engine) by: String,
}

/// What is remembered of something that is to be changed in the stage of a service; nothing, if it is not there.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn recorded(
    records: &Records,
    service: &ServiceKey,
    change: &Change,
) -> Result<Option<LastChange>, Undecided> {
    Ok(match change.key.kind {
        Kind::DeploymentConfig => records.configs.get(&service.config(&change.key.name))?.map(|config| LastChange {
            service: config.service.clone(),
            planned_at: config.planned_at,
            by: config.declared_on.short().to_owned(),
        }),
        _ => records.objects.get(&place(service, change))?.map(|state| LastChange {
            service: state.object.service.clone(),
            planned_at: state.planned_at,
            by: "a newer revision".to_owned(),
        }),
    })
}

/// What an earlier delivery, planned at `before`, is still to bring for another service does not change an object of this
/// one, which is as the revision declares it that is planned now: it counts as changed by that. What the other service has
/// until now, and is declared alike, is this one's from now on: nothing else is left to be done about it.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn confirm(
    records: &mut Records,
    service: &ServiceKey,
    object: &Arc<Object>,
    before: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), Undecided> {
    let is_open = |planned_at: Option<Timestamp>| before.is_some() && planned_at <= before;
    if object.key.kind == Kind::DeploymentConfig {
        let key = service.config(&object.key.name);
        let state = records.configs.get(&key)?;
        let is_its = state.is_some_and(|state| state.service == service.service && is_open(state.planned_at));
        if is_its && let Some(state) = records.configs.get_mut(&key)? {
            state.planned_at = Some(now);
        }
        return Ok(());
    }
    let (project, stage) = (service.project.clone(), service.stage.clone());
    let place = ObjectPlace { project, stage, key: object.key.clone() };
    let state = records.objects.get(&place)?.filter(|state| is_open(state.planned_at));
    let (is_alike, is_its) = state.map_or((false, false), |state| {
        (state.object.digest == object.digest, state.object.service == service.service)
    });
    if (is_alike || is_its)
        && let Some(state) = records.objects.get_mut(&place)?
    {
        state.planned_at = Some(now);
        if is_alike {
            state.object = object.clone();
        }
    }
    Ok(())
}

/// Applies a change that needs no deployment. What another service has, that service's deliveries delete.
pub(in crate::engine) fn change(transition: &mut Transition<'_>, by: &RunId, change: &Change) -> Result<(), Undecided> {
    let Some(run) = sequence(transition.records, by)? else { return Ok(()) };
    if change.decision == Decision::Delete
        && recorded(transition.records, &run.service, change)?.is_some_and(|it| it.service != run.service.service)
    {
        return Ok(());
    }
    let records = &mut *transition.records;
    match (&change.key.kind, change.decision, &change.object) {
        (Kind::DeploymentConfig, Decision::Delete, _) => {
            let key = run.service.config(&change.key.name);
            if controllers::stays(records, &run, &key)? { Ok(()) } else { remove_config(records, &key) }
        }
        (Kind::DeploymentConfig, Decision::Create | Decision::Update | Decision::Scale, Some(object)) => {
            declare_config(transition, &run, object)
        }
        (_, Decision::Delete, _) => kept::withdraw(records, &run, change),
        (_, Decision::Create | Decision::Update, Some(object)) => {
            put_object(records, &run, change, Some(object.clone()))
        }
        _ => Ok(()),
    }
}

/// It stays until its pods are gone.
pub(in crate::engine) fn remove_config(records: &mut Records, key: &ConfigKey) -> Result<(), Undecided> {
    if let Some(state) = records.configs.get_mut(key)? {
        state.removed = true;
        state.serving = None;
        state.beside = None;
        state.attempted = None;
        state.scaled = None;
        state.wanted = state.wanted.nothing();
    }
    Ok(())
}

fn declare_config(transition: &mut Transition<'_>, run: &SequenceRun, object: &Arc<Object>) -> Result<(), Undecided> {
    let spec = typed(object)?;
    let key = run.service.config(&object.key.name);
    let attempt = transition.records.configs.get(&key)?.and_then(ConfigState::open_attempt);
    if attempt.is_some_and(|attempt| attempt.run != run.id) {
        let reason = format!("superseded by {}", run.commit.short());
        give_way(transition, &key, &reason)?; // it belonged to another service, whose delivery goes on
    }
    let now = transition.now;
    quarantine::keep(transition.records, &key, &object.digest, now)?;
    kept::declared_again(transition.records, &key)?;
    let state = config_or_new(transition.records, run, object)?;
    state.declare(object, &spec, &run.commit, now);
    state.planned_at = run.planned_at.or(state.planned_at);
    state.attempted = None;
    state.wanted.replicas = state.replicas(&spec);
    state.wanted.min_ready_seconds = spec.min_ready_seconds;
    state.wanted.rests = spec.test;
    Ok(())
}

/// A run takes what a deployment config should run into its hands, unless the repository was taken down.
pub(in crate::engine) fn own(transition: &mut Transition<'_>, config: &ConfigKey, by: &RunId) -> Result<(), Undecided> {
    let Some(state) = transition.records.configs.get(config)?.cloned() else { return Ok(()) };
    let repository = transition.records.repositories.get(&state.repository)?;
    if let Some(down) = repository.filter(|repository| repository.down) {
        let reason = format!("taken down by {}", down.down_by);
        transition.tell(by.clone(), Event::Disowned { reason });
        return Ok(());
    }
    let owner = named(transition.records, by)?;
    let Some(state) = transition.records.configs.get_mut(config)? else { return Ok(()) };
    if let Some(before) = ownership::take(&mut state.wanted, by) {
        transition.tell(before, ownership::lost(&owner));
    }
    Ok(())
}

/// A deployment as a person knows it.
fn named(records: &Records, run: &RunId) -> Result<String, Undecided> {
    Ok(match records.runs.get(run)? {
        Some(Run::Deployment(run)) => format!("version {} of {}", run.version, run.commit.short()),
        Some(Run::Sequence(_)) | None => format!("run {run}"),
    })
}

/// What a deployment config should run changes, if the run that asks has it in its hands.
pub(in crate::engine) fn want(
    transition: &mut Transition<'_>,
    config: &ConfigKey,
    by: RunId,
    fallback: Option<u32>,
    wanted: Wanted,
) -> Result<(), Undecided> {
    let state = transition.records.configs.get(config)?;
    let owner = match state.and_then(|state| state.wanted.owner.as_ref()) {
        Some(owner) => named(transition.records, owner)?,
        None => String::new(),
    };
    if let Some(refusal) = ownership::refusal(state, &by, &owner) {
        transition.tell(by, refusal);
        return Ok(());
    }
    let run = match transition.records.runs.get(&by)? {
        Some(Run::Deployment(run)) => Some(run),
        Some(Run::Sequence(_)) | None => None,
    };
    let is_inherited = state.is_some_and(|state| state.inherited.is_some());
    let is_of_this_life = state.zip(run).is_some_and(|(state, run)| state.is_of_this_life(run));
    let restores = run.is_some_and(|run| run.step == DeploymentStep::Restore);
    // What has exchanged nothing in this life of the store, or was begun in another one, has nothing to go back to: what another
    // life has left serves on.
    if restores && is_inherited {
        return give_way(transition, config, LEFT);
    }
    let Some(state) = transition.records.configs.get_mut(config)? else { return Ok(()) };
    // A deployment of this life takes its place.
    state.inherited = state.inherited.filter(|_| !is_of_this_life);
    let spec = typed(&state.object)?;
    let (replicas, min_ready_seconds) = (state.replicas(&spec), spec.min_ready_seconds);
    let fallback = fallback.map(|version| state.wanted.fall_back_to(version));
    // What served together serves together again.
    let targets = if restores { state.settled_targets() } else { wanted.targets };
    let silenced = state.wanted.silenced_by(&targets, restores);
    let (owner, rests) = (Some(by), restores && spec.test);
    state.wanted = Wanted { owner, replicas, rests, targets, fallback, min_ready_seconds, silenced, ..wanted };
    Ok(())
}

/// A deployment that another life of the store began gives way to what that has left: it has come after it. `generation` is the
/// value of `Wanted` that this was seen for.
pub(in crate::engine) fn give_way_to_what_is_left(
    transition: &mut Transition<'_>,
    config: &ConfigKey,
    generation: u64,
) -> Result<(), Undecided> {
    let state = transition.records.configs.get(config)?.filter(|state| state.wanted.generation == generation);
    let Some((state, owner)) = state.and_then(|state| Some((state, state.wanted.owner.as_ref()?))) else {
        return Ok(());
    };
    match transition.records.runs.get(owner)? {
        Some(Run::Deployment(run)) if state.is_of_this_life(run) => Ok(()),
        _ => give_way(transition, config, LEFT),
    }
}

/// A deployment gives way to a rollback: what serves is wanted again, and nobody waits until it is there.
pub(in crate::engine) fn give_way(
    transition: &mut Transition<'_>,
    config: &ConfigKey,
    reason: &str,
) -> Result<(), Undecided> {
    let Some(state) = transition.records.configs.get_mut(config)? else { return Ok(()) };
    let Some(owner) = state.wanted.owner.take() else { return Ok(()) };
    beside::want_what_serves(state);
    transition.tell(owner, Event::Disowned { reason: reason.to_owned() });
    Ok(())
}

/// Nothing more is to run for a deployment config, which stays declared. The run that attempts it hears of it at once: it
/// must not end well after everything is brought up again.
pub(in crate::engine) fn quiesce(
    transition: &mut Transition<'_>,
    config: &ConfigKey,
    by: &str,
) -> Result<(), Undecided> {
    let Some(state) = transition.records.configs.get_mut(config)? else { return Ok(()) };
    let owner = state.wanted.owner.clone();
    state.wanted = state.wanted.nothing();
    let run = state.open_attempt_mut().map(|attempt| {
        attempt.outcome = Some(Outcome::SUPERSEDED); // whoever brings everything up again plans it anew
        attempt.run.clone()
    });
    run.into_iter().for_each(|run| transition.tell(run, slot::taken_down(by)));
    if let Some(owner) = owner {
        transition.tell(owner, Event::Disowned { reason: format!("taken down by {by}") });
    }
    Ok(())
}

/// What served is to serve again.
pub(in crate::engine) fn resume(records: &mut Records, config: &ConfigKey) -> Result<(), Undecided> {
    let Some(state) = records.configs.get_mut(config)? else { return Ok(()) };
    let Some(serving) = state.serving.clone().filter(|_| !state.removed) else { return Ok(()) };
    let spec = typed(&serving.object)?;
    state.wanted = Wanted {
        generation: state.wanted.generation + 1,
        targets: state.settled_targets(),
        replicas: state.replicas(&spec),
        min_ready_seconds: spec.min_ready_seconds,
        rests: spec.test,
        ..Wanted::default()
    };
    Ok(())
}

/// A deployment of version `number` ended.
pub(in crate::engine) fn attempt_ended(
    transition: &mut Transition<'_>,
    key: &ConfigKey,
    by: &RunId,
    number: u32,
    outcome: Outcome,
) -> Result<(), Undecided> {
    let run = match transition.records.runs.get(by)? {
        Some(Run::Deployment(run)) => Some((**run).clone()),
        Some(Run::Sequence(_)) | None => None,
    };
    if let Some(run) = &run {
        rollback::task_ended(transition, run, outcome.passes())?;
        restored::ended(transition, run)?;
    }
    let (records, now) = (&mut *transition.records, transition.now);
    let Some(state) = records.configs.get_mut(key)? else { return Ok(()) };
    let had_it = state.wanted.owner.as_ref() == Some(by);
    ownership::give_back(&mut state.wanted, by);
    state.wanted.rests = state.wanted.owner.is_none() && state.is_test();
    if let Some(attempt) = state.attempted.as_mut().filter(|attempt| attempt.version.number == number) {
        if outcome.passes() {
            let serving = attempt.version.clone();
            state.quarantined.retain(|bad| bad.content != serving.object.digest);
            state.attempted = None;
            state.beside = run.as_ref().and_then(|run| beside::left_by(state, run, now));
            state.serve(serving, run.as_ref().is_some_and(|run| run.is_rollback));
        } else {
            attempt.outcome = Some(outcome);
        }
    }
    if had_it && outcome.passes() {
        beside::complete(state);
    }
    let is_left = is_left_half_way(records, key)?;
    if is_left && let Some(state) = records.configs.get_mut(key)? {
        beside::want_what_serves(state);
    }
    Ok(())
}

/// Whether nobody has in his hands any more what a deployment has begun to exchange: the one that took it over has ended
/// before it changed anything. What is still to end of the others comes first, as where one goes back by itself.
fn is_left_half_way(records: &Records, key: &ConfigKey) -> Result<bool, Undecided> {
    let Some(state) = records.configs.get(key)?.filter(|state| state.wanted.owner.is_none()) else { return Ok(false) };
    if state.wanted.targets == state.settled_targets() {
        return Ok(false);
    }
    let is_down = records.repositories.get(&state.repository)?.is_some_and(|repository| repository.down);
    let since = state.serving.as_ref().map_or(0, |serving| serving.number) + 1;
    Ok(!is_down && turn::open_between(records, key, since..state.latest_version + 1)?.is_none())
}

/// The version that a deployment config gets next. One that comes back goes on counting from what history knows of, also where it
/// is declared before it is deployed.
pub(in crate::engine) fn next_version(records: &Records, key: &ConfigKey) -> Result<u32, Undecided> {
    let newest = match records.configs.get(key)?.map_or(0, |state| state.latest_version) {
        0 => records.number(Lookup::NewestVersion(key.clone()))?,
        latest => latest,
    };
    Ok(newest + 1)
}

fn sequence(records: &Records, id: &RunId) -> Result<Option<SequenceRun>, Undecided> {
    Ok(records.runs.get(id)?.and_then(Run::sequence).cloned())
}

fn config_or_new<'a>(
    records: &'a mut Records,
    run: &SequenceRun,
    object: &Arc<Object>,
) -> Result<&'a mut ConfigState, Undecided> {
    let key = run.service.config(&object.key.name);
    if records.configs.get(&key)?.is_none() {
        let (destination, repository) = (run.destination.clone(), run.repository.clone());
        let fresh = ConfigState::new(key.clone(), destination, repository, object.clone(), run.commit.clone());
        records.configs.put(&key, Some(fresh))?;
    }
    let state = records.configs.get_mut(&key)?;
    state.ok_or_else(|| Failure::stalled(format!("`{key}` has no content")).into())
}

fn typed(object: &Object) -> Result<DeploymentConfigSpec, Undecided> {
    Ok(spec_of(object).or_stalled(|| format!("cannot read `{}`", object.key))?)
}

#[cfg(test)]
mod tests;
