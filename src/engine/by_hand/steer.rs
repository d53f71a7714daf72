//! What people do with a rollout that waits, and with what stands beside the version that serves.

use super::pause::resumed;
use super::{deployment, ends_it, holder, refuse_if_down, rolled_out};
use crate::engine::deployment::beside;
use crate::engine::holds;
use crate::engine::records::{Lookup, Records, Undecided};
use crate::engine::transition::Transition;
use crate::error::Failure;
use crate::model::event::Event;
use crate::model::hold::{Hold, HoldKind, HoldScope, Lifted, Release};
use crate::model::ids::{ConfigKey, HoldId, ProjectName, RepositoryName, RunId};
use crate::model::object::Kind;
use crate::model::run::{DeploymentRun, DeploymentStep, Run, SequenceRun};
use crate::model::state::{ConfigState, Standing};
use crate::model::transaction::Write;

/// What `resume` has let go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resumed {
    /// A rollout that waited where it was.
    pub rollout: bool,
    /// What a person or the file had paused: the head is planned anew.
    pub paused: bool,
    /// Whether a rollout still waits where it is: who takes a pause back has not judged a canary.
    pub waits: bool,
}

/// Nothing new starts for the service of a deployment config until it is resumed. What is under way goes on, as in OpenShift;
/// a `Deployment`'s stays where it is, as in Kubernetes. Says whether that was not so before.
///
/// # Errors
/// If there is no such deployment config.
pub fn pause(transition: &mut Transition<'_>, config: &ConfigKey, by: &str) -> Result<bool, Undecided> {
    let state = rolled_out(transition.records, config)?;
    if !pauses(transition.records, &state)?.is_empty() {
        return Ok(false);
    }
    let scope = HoldScope::of(state.service_key());
    let target = state.object.target();
    let reason = format!("{target} is paused; `launchway rollout resume {target} -s {}`", config.stage);
    holds::place(transition, HoldKind::Pause, scope, reason, by)?;
    if let Some(run) = open_rollout(transition.records, &state)? {
        transition.tell(run.id, Event::Paused { by: by.to_owned() });
    }
    Ok(true)
}

/// The rollout of a `Deployment` that is under way, which a pause stops. That of a `DeploymentConfig` goes on.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn open_rollout(
    records: &Records,
    state: &ConfigState,
) -> Result<Option<DeploymentRun>, Undecided> {
    match state.object.declared_kind() {
        Kind::Deployment => open_deployment(records, state),
        _ => Ok(None),
    }
}

/// Nothing is paused any more, neither by a person nor by the file, until a revision changes that; where nothing was, a rollout
/// goes on that waits at a step of its own. `declaring` is the repository that declares the project.
///
/// # Errors
/// If there is no such deployment config, or something else holds it.
pub fn resume(
    transition: &mut Transition<'_>,
    config: &ConfigKey,
    declaring: Option<&RepositoryName>,
    by: &str,
) -> Result<Resumed, Undecided> {
    let state = rolled_out(transition.records, config)?;
    refuse_if_down(transition.records, &state)?;
    let placed = pauses(transition.records, &state)?;
    let is_file_paused = is_paused_by_file(transition.records, &state)?;
    let paused = is_file_paused || !placed.is_empty();
    let waiting = waiting(transition.records, &state)?;
    let goes_on = |run: &&DeploymentRun| !paused || run.waits.paused_by.is_some();
    let rollout = waiting.as_ref().filter(goes_on);
    if let Some(run) = rollout {
        holds::refuse_but_for_pauses(transition.records, &state.service_key())?;
        transition.tell(run.id.clone(), Event::Resumed { by: by.to_owned() });
    }
    if paused {
        let lifted = Lifted { config: config.clone(), by: by.to_owned(), since: transition.now };
        let release = Release { holds: placed, paused: is_file_paused.then_some(lifted).into_iter().collect() };
        holds::release(transition, &config.project, &release, declaring)?;
    }
    Ok(Resumed { rollout: rollout.is_some(), paused, waits: waiting.is_some() && rollout.is_none() })
}

/// Releases what a project holds or pauses, and what the released pauses have stopped goes on: rollouts, and the `paused` runs,
/// which are told who lets them.
///
/// # Errors
/// If something must be read first.
pub fn release(
    transition: &mut Transition<'_>,
    project: &ProjectName,
    release: &Release,
    declaring: Option<&RepositoryName>,
    (paused, by): (&[RunId], &str),
) -> Result<(), Undecided> {
    let known = transition.records.holds.get(project)?.cloned();
    let is_released = |hold: &&Hold| hold.kind == HoldKind::Pause && release.holds.contains(&hold.id);
    for hold in known.iter().flat_map(|known| &known.holds).filter(is_released) {
        for run in stopped_by(transition.records, hold)? {
            transition.tell(run, Event::Resumed { by: format!("the release of hold {}", hold.id) });
        }
    }
    holds::release(transition, project, release, declaring)?;
    resumed(transition, paused, by)
}

/// The rollouts that a person's pause has stopped.
fn stopped_by(records: &Records, hold: &Hold) -> Result<Vec<RunId>, Undecided> {
    let Some(service) = hold.scope.one_service() else { return Ok(Vec::new()) };
    let holder = holder(records, &service)?;
    let task = holder.and_then(SequenceRun::task);
    let mut stopped = Vec::new();
    for open in task.into_iter().flat_map(|task| &task.deployments).filter(|it| it.outcome.is_none()) {
        if let Some(Run::Deployment(run)) = open.run.as_ref().map(|id| records.runs.get(id)).transpose()?.flatten()
            && run.waits.paused_by.as_ref() == Some(&hold.by)
        {
            stopped.push(run.id.clone());
        }
    }
    Ok(stopped)
}

/// A version that proves itself beside another gets everything; says which. A canary skips the steps that are left, and A/B ends.
///
/// # Errors
/// If there is no such deployment config, something holds it, or there is nothing to promote.
pub fn promote(transition: &mut Transition<'_>, config: &ConfigKey, by: &str) -> Result<u32, Undecided> {
    let state = rolled_out(transition.records, config)?;
    refuse_if_down(transition.records, &state)?;
    holds::refuse(transition.records, &state.service_key())?;
    let event = Event::Promoted { by: by.to_owned() };
    if let Some(run) = open_deployment(transition.records, &state)? {
        if run.failure.is_some() || !matches!(run.step, DeploymentStep::Trial { .. }) {
            let message =
                format!("#{} is {} and takes no steps that could be skipped", run.version, run.phase.as_str());
            return Err(Failure::stalled(message).hint(ends_it(&state.object.target(), &config.stage)).into());
        }
        transition.tell(run.id.clone(), event);
        return Ok(run.version);
    }
    let is_part = state.beside.as_ref().is_some_and(|beside| matches!(beside.standing, Standing::Part(_)));
    let Some(serving) = state.serving.as_ref().filter(|_| is_part) else {
        let message = format!("there is nothing to promote: no version of `{}` has only a part", config.name);
        return Err(Failure::stalled(message).into());
    };
    if let Some(state) = transition.records.configs.get_mut(config)? {
        beside::promote(state);
    }
    transition.write(Write::Event { run: config.events(), at: transition.now, event: Box::new(event) });
    Ok(serving.number)
}

fn open_deployment(records: &Records, state: &ConfigState) -> Result<Option<DeploymentRun>, Undecided> {
    match state.open_attempt() {
        Some(attempt) => deployment(records, &state.key, attempt.version.number),
        None => Ok(None),
    }
}

/// The rollout of a deployment config, if it waits where it is.
fn waiting(records: &Records, state: &ConfigState) -> Result<Option<DeploymentRun>, Undecided> {
    Ok(open_deployment(records, state)?.filter(|run| run.waits.since.is_some() && run.failure.is_none()))
}

/// Whether a person or its file has paused a deployment config, or the service that it is of.
pub(in crate::engine) fn is_paused(records: &Records, state: &ConfigState) -> Result<bool, Undecided> {
    Ok(!pauses(records, state)?.is_empty() || is_paused_by_file(records, state)?)
}

/// The holds by which people have paused the service of a deployment config.
fn pauses(records: &Records, state: &ConfigState) -> Result<Vec<HoldId>, Undecided> {
    let service = state.service_key();
    let holds = records.holds.get(&service.project)?;
    let is_its = |hold: &&Hold| hold.kind == HoldKind::Pause && hold.scope.one_service().as_ref() == Some(&service);
    Ok(holds.iter().flat_map(|holds| &holds.holds).filter(is_its).map(|hold| hold.id.clone()).collect())
}

/// Whether what is declared now says `paused`, which nobody has lifted.
fn is_paused_by_file(records: &Records, state: &ConfigState) -> Result<bool, Undecided> {
    let holds = records.holds.get(&state.key.project)?;
    let is_lifted = holds.is_some_and(|holds| holds.has_lifted(&state.key));
    let newest = Lookup::NewestPlanOf(state.key.project.clone(), state.service.clone());
    let plan = records.plan(newest)?;
    let part = plan.and_then(|plan| plan.stage(&state.key.stage)?.service(&state.service));
    let mut changes = part.into_iter().flat_map(|part| &part.changes);
    let is_planned = changes.any(|change| change.key == state.object.key && change.is_paused());
    Ok(!is_lifted && (is_planned || state.spec().is_ok_and(|spec| spec.paused)))
}
