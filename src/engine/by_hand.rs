//! What people ask for by hand, decided on what is remembered. Every change of a service takes its slot by a sequence
//! run, like a push does; what does not fit is refused with what to do.

use std::sync::Arc;

use crate::engine::deployment::apply::next_version;
use crate::engine::holds;
use crate::engine::records::{Lookup, Records, Undecided};
use crate::engine::sequence::queue;
use crate::engine::transition::Transition;
use crate::error::Failure;
use crate::manifest::digest;
use crate::model::cause::Cause;
use crate::model::event::Event;
use crate::model::ids::{CommitId, ConfigKey, ProjectName, RunId, ServiceKey, StageName};
use crate::model::object::Object;
use crate::model::outcome::Outcome;
use crate::model::plan::{Change, Decision};
use crate::model::project::Procedure;
use crate::model::run::{Delivery, DeploymentRun, DoneBy, Run, SequenceRun, SequenceState, TaskRecord};
use crate::model::shipyard::Shipyard;
use crate::model::state::{Attempt, ConfigState, Scaled};
use crate::model::transaction::Write;

mod decide;
mod generate;
mod pause;
mod rerun;
mod retry;
mod signed;
mod steer;
mod switch;

use generate::with_images;

pub use decide::{Meant, Verdict, abort, abort_run, decide};
pub use generate::{Generated, Images, Latest, generate};
pub use pause::{Part, pause_delivery, resume_delivery};
pub use rerun::rerun;
pub use retry::{Retried, retry};
pub use signed::{Signed, decide_signed};
pub use steer::{Resumed, pause, promote, release, resume};
pub(in crate::engine) use steer::{is_paused, open_rollout};
pub(in crate::engine) use switch::refuse_if_down;
pub use switch::{bring_up, is_down, stop_missed, take_down};

/// The sequence of one task that carries out what a person asked for deployment configs of one service.
const BY_HAND: &str = "rollout";

/// What a person ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancelled {
    /// What that is, for people.
    pub what: String,
    /// The run that ends.
    pub run: RunId,
}

/// Cancels what has the slot of a deployment config's service, whatever it is at: a deployment, a task, or the pause before
/// one. `service` is the one that it is delivered with, which may be about to take it from another one.
///
/// # Errors
/// If nobody has the slot.
pub fn cancel(
    transition: &mut Transition<'_>,
    config: &ConfigKey,
    service: &ServiceKey,
    by: &str,
) -> Result<Cancelled, Undecided> {
    let state = transition.records.configs.get(config)?.cloned();
    state.as_ref().map_or(Ok(()), refuse_if_led)?;
    let attempt = state.as_ref().and_then(ConfigState::open_attempt);
    let (tell, cancelled) = match attempt {
        Some(Attempt { version, run, .. }) => {
            let what = format!("version {}", version.number);
            (run.clone(), Cancelled { what, run: config.deployment(version.number) })
        }
        None => {
            let Some(run) = holder(transition.records, service)? else {
                return Err(Failure::stalled(no_rollout(transition.records, state.as_ref())?).into());
            };
            (run.id.clone(), Cancelled { what: run.whereabouts(), run: run.id.clone() })
        }
    };
    let event = Event::Cancel { outcome: Outcome::ABORTED, reason: format!("cancelled by {by}") };
    transition.tell(tell, event);
    Ok(cancelled)
}

fn no_rollout(records: &Records, state: Option<&ConfigState>) -> Result<String, Undecided> {
    let latest = match state {
        Some(state) => deployment(records, &state.key, state.latest_version)?,
        None => None,
    };
    Ok(match latest {
        Some(run) => {
            format!("no rollout is in progress (latest rollout #{} {})", run.version, run.phase.as_str().to_lowercase())
        }
        None => "no rollout is in progress".to_owned(),
    })
}

/// The run that has a slot.
fn holder<'a>(records: &'a Records, service: &ServiceKey) -> Result<Option<&'a SequenceRun>, Undecided> {
    let Some(id) = records.slots.get(service)?.and_then(|slot| slot.holder.as_ref()) else { return Ok(None) };
    Ok(records.runs.get(id)?.and_then(Run::sequence))
}

/// A refusal with how a person ends what has the slot.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn with_way_out(
    refused: Failure,
    records: &Records,
    service: &ServiceKey,
    target: &str,
) -> Result<Failure, Undecided> {
    Ok(match way_out(records, service, target)? {
        Some(way_out) => refused.hint(way_out),
        None => refused,
    })
}

/// How a person ends what has a slot, so that what waits for it has its turn; nothing, if nobody has it.
fn way_out(records: &Records, service: &ServiceKey, target: &str) -> Result<Option<String>, Undecided> {
    let ends = |run: &SequenceRun| format!("{} is under way: {}", run.whereabouts(), ends_it(target, &service.stage));
    Ok(holder(records, service)?.map(ends))
}

/// The command that ends what has the slot of a service, of which `target` is a deployment config as commands name it.
pub fn ends_it(target: &str, stage: &StageName) -> String {
    format!("`launchway rollout cancel {target} -s {stage}` ends it")
}

/// Deploys what is declared now as a new version, although nothing changed; says which.
///
/// # Errors
/// If it is paused, or what is declared now waits for something, or a rollout is in progress.
pub fn latest(
    transition: &mut Transition<'_>,
    config: &ConfigKey,
    images: Images,
    by: &str,
) -> Result<Latest, Undecided> {
    let state = rolled_out(transition.records, config)?;
    refuse_if_down(transition.records, &state)?;
    holds::refuse(transition.records, &state.service_key())?;
    refuse_if_busy(transition.records, &state)?;
    refuse_if_queued(transition.records, &state)?;
    if state.spec().is_ok_and(|spec| spec.paused) {
        return Err(Failure::stalled("cannot deploy a paused deployment config")
            .hint(format!(
                "`launchway release {} -s {}` lets it go on, or set `paused: false` and push",
                state.object.target(),
                config.stage
            ))
            .into());
    }
    refuse_if_waiting(transition.records, &state)?;
    refuse_if_not_passed(transition.records, &state)?;
    let cause = format!("manual change by {by}");
    let object = with_images(transition.records, &state, images)?;
    let (commit, objects) = (state.declared_on.clone(), vec![(Arc::clone(&object), cause.clone())]);
    let run = by_hand(transition, &state, ByHand { commit, objects, cause, by, is_rollback: false })?;
    transition.start(run)?;
    Ok(Latest { version: next_version(transition.records, config)?, object })
}

/// Changes the number of replicas until a revision declares another one: at once, also during a rollout. Only a hold of a
/// person's stops it, because nothing else is changed.
///
/// # Errors
/// If there is no such deployment config, or a person holds it.
pub fn scale(transition: &mut Transition<'_>, config: &ConfigKey, replicas: u32, by: &str) -> Result<(), Undecided> {
    let state = config_state(transition.records, config)?;
    refuse_if_down(transition.records, &state)?;
    holds::refuse_by_a_persons(transition.records, &state.service_key())?;
    let (version, from) = (state.wanted.version(), state.wanted.replicas);
    if let Some(state) = transition.records.configs.get_mut(config)? {
        state.scaled = Some(Scaled { replicas, by: by.to_owned(), at: transition.now });
        state.wanted.replicas = replicas;
    }
    let event = Box::new(Event::Scaled { version, from, to: replicas, by: by.to_owned() });
    transition.write(Write::Event { run: config.events(), at: transition.now, event });
    Ok(())
}

fn refuse_if_busy(records: &Records, state: &ConfigState) -> Result<(), Undecided> {
    let Some(attempt) = state.open_attempt() else { return Ok(()) };
    let version = attempt.version.number;
    let phase = deployment(records, &state.key, version)?.map_or("New", |run| run.phase.as_str());
    let message = format!("#{version} is already in progress ({phase}).");
    Err(Failure::stalled(message).hint(ends_it(&state.object.target(), &state.key.stage)).into())
}

/// A newer revision that waits for its turn, or has not got to its deployment yet, must not be overtaken by what was
/// declared before it.
fn refuse_if_queued(records: &Records, state: &ConfigState) -> Result<(), Undecided> {
    let comes_first =
        |run: &SequenceRun| run.delivery.is_some() && (run.state == SequenceState::Queued || is_to_deploy(run, state));
    let Some(run) = queue::open_run(records, &state.service_key(), comes_first)? else { return Ok(()) };
    let message = format!("{} of {} comes first: {}", run.sequence(), run.commit.short(), run.message);
    let refused = Failure::stalled(message.trim_end_matches(": "));
    Err(with_way_out(refused, records, &run.service, &state.object.target())?.into())
}

/// Whether a run that has its slot is still to deploy a config: after a task that comes first, or a delay.
fn is_to_deploy(run: &SequenceRun, state: &ConfigState) -> bool {
    let changes_it = |change: &Change| change.key == state.object.key && change.decision.does_something();
    let mut begun = run.tasks.iter().flat_map(|task| &task.deployments);
    matches!(run.state, SequenceState::Running { .. })
        && run.changes().iter().any(changes_it)
        && !begun.any(|deployment| deployment.config == state.key.name)
}

/// What is declared now and may not be deployed yet must not be passed over for what was declared before. A plan leaves
/// out what an open delivery carries, so the newest one that names the service tells.
fn refuse_if_waiting(records: &Records, state: &ConfigState) -> Result<(), Undecided> {
    let newest = Lookup::NewestPlanOf(state.key.project.clone(), state.service.clone());
    let Some(plan) = records.plan(newest)? else { return Ok(()) };
    let part = plan.stage(&state.key.stage).and_then(|stage| stage.service(&state.service));
    let may_start = |change: &Change| change.decision != Decision::Wait || change.is_held() || change.came_round();
    let waits = |change: &&Change| change.key == state.object.key && !may_start(change);
    let Some(change) = part.and_then(|part| part.changes.iter().find(waits)) else { return Ok(()) };
    let message = format!("cannot deploy what {} declares: {}", plan.commit.short(), change.cause);
    let hint = format!("`launchway why {}` says more; push what lets it go on", state.object.target());
    Err(Failure::stalled(message).hint(hint).into())
}

/// What does not serve yet is deployed only as long as the stage before lets it pass, unless a person has taken it upon them
/// when it was delivered.
fn refuse_if_not_passed(records: &Records, state: &ConfigState) -> Result<(), Undecided> {
    if state.serving.as_ref().is_some_and(|serving| serving.object.digest == state.object.digest) {
        return Ok(());
    }
    let service = state.service_key();
    let last = records.slots.get(&service)?.and_then(|slot| slot.last_delivery.as_ref());
    if let Some(last) = last.filter(|last| !last.deployed) {
        refuse_if_rejected(records, &last.run)?;
    }
    let attempted = state.attempted.as_ref().map(|attempt| &attempt.run);
    for by in attempted.into_iter().chain(last.map(|last| &last.run)) {
        if let Some(Run::Sequence(run)) = records.runs.get(by)?
            && run.plan.is_some()
        {
            return refuse_if_let_pass_no_more(records, run);
        }
    }
    Ok(())
}

/// What a person was asked about, and did not let pass, is not deployed past them; nor is what was declared before it.
fn refuse_if_rejected(records: &Records, delivery: &RunId) -> Result<(), Undecided> {
    let Some(Run::Sequence(run)) = records.runs.get(delivery)? else { return Ok(()) };
    let is_rejected = |&(index, task): &(usize, &TaskRecord)| {
        run.done_by(index) == DoneBy::Approval && task.outcome.is_some_and(|outcome| !outcome.passes())
    };
    let Some((_, rejected)) = run.tasks.iter().enumerate().find(is_rejected) else { return Ok(()) };
    let ServiceKey { stage, service, .. } = &run.service;
    let message = format!("{} of {service} may not go on: {}", run.commit.short(), rejected.message);
    let hint = format!("`launchway trigger delivery {service} -s {stage}` asks for approval again");
    Err(Failure::stalled(message).hint(hint).into())
}

/// What a delivery brings may have failed in the stage before since.
fn refuse_if_let_pass_no_more(records: &Records, run: &SequenceRun) -> Result<(), Undecided> {
    let ServiceKey { project, stage, service } = &run.service;
    let Some(id) = run.plan.as_ref().filter(|_| run.forced.is_none()) else { return Ok(()) };
    let plan = records.plan(Lookup::PlanOf(id.clone(), service.clone()))?;
    let part = plan.and_then(|plan| plan.stage(stage)?.service(service));
    let Some((part, previous)) = part.and_then(|part| Some((part, part.previous_stage.as_ref()?))) else {
        return Ok(());
    };
    if queue::is_let_pass(records, project, part)? {
        return Ok(());
    }
    let hint = format!("`launchway trigger delivery {service} -s {stage} --force REASON` starts it all the same");
    Err(queue::not_passed(previous, service).hint(hint).into())
}

/// What is said to somebody who names a stage that a project does not have; `there` are those that it has.
pub fn no_stage<'a>(project: &ProjectName, stage: &str, there: impl Iterator<Item = &'a StageName>) -> Failure {
    let there: Vec<&str> = there.map(StageName::as_str).collect();
    let failure = Failure::stalled(format!("project `{project}` has no stage `{stage}`")).missing();
    failure.hint(format!("its stages: {}", there.join(", ")))
}

/// What a person wants to be deployed of a service.
pub(in crate::engine) struct ByHand<'a> {
    /// Whose revision it is.
    pub commit: CommitId,
    /// Which deployment configs, each as it is to be, and why, for people.
    pub objects: Vec<(Arc<Object>, String)>,
    /// Why all that is done, for people.
    pub cause: String,
    /// Who.
    pub by: &'a str,
    /// Whether it goes back to what ran before.
    pub is_rollback: bool,
}

/// A sequence run of one deployment task for deployment configs of one service, of which `state` is one.
pub(in crate::engine) fn by_hand(
    transition: &mut Transition<'_>,
    state: &ConfigState,
    asked: ByHand<'_>,
) -> Result<SequenceRun, Undecided> {
    let ByHand { commit, objects, cause, by, is_rollback } = asked;
    let implicit = Shipyard::implicit().stages.into_iter().next().and_then(|stage| stage.sequences.into_iter().next());
    let mut sequence = implicit.ok_or_else(|| Failure::stalled("there is no implicit sequence"))?;
    sequence.name = BY_HAND.into();
    let content = match &objects[..] {
        [(object, _)] => object.digest.clone(),
        several => digest::of(&several.iter().map(|(object, _)| object.digest.as_str()).collect()),
    };
    let who = by.to_owned();
    let as_data = if is_rollback { Cause::Rollback { by: who } } else { Cause::Manual { by: who } };
    let changes = objects.into_iter().map(|(object, cause)| {
        let change = Change::of(object.key.clone(), Decision::Deploy);
        Change { cause, causes: vec![as_data.clone()], object: Some(object), ..change }
    });
    let procedure = digest::stored(Procedure { sequence, ..Procedure::default() });
    let revision = (state.repository.clone(), commit);
    let draft = SequenceRun {
        cause,
        by: Some(by.to_owned()),
        is_rollback,
        delivery: Some(Delivery { content, changes: changes.collect(), configs: None }),
        ..SequenceRun::draft(state.service_key(), state.destination.clone(), revision, procedure)
    };
    queue::queued(transition.records, transition.now, draft)
}

/// What is remembered of a deployment config, which must be there, and not only because its pods have not ended yet.
pub(in crate::engine) fn config_state(records: &Records, config: &ConfigKey) -> Result<ConfigState, Undecided> {
    let state = records.configs.get(config)?.filter(|state| !state.removed).cloned();
    let missing =
        || Failure::stalled(format!("deployment config `{}` does not exist in stage {}", config.name, config.stage));
    Ok(state.ok_or_else(missing)?)
}

/// The same of something that has rollouts of its own.
pub(in crate::engine) fn rolled_out(records: &Records, config: &ConfigKey) -> Result<ConfigState, Undecided> {
    let state = config_state(records, config)?;
    refuse_if_led(&state)?;
    Ok(state)
}

/// A replication controller is deployed with others, by the deployment config that it belongs to.
fn refuse_if_led(state: &ConfigState) -> Result<(), Failure> {
    let Some(leader) = state.spec().ok().and_then(|spec| spec.controller_of) else { return Ok(()) };
    let message = format!("{} has no rollouts of its own: dc/{leader} deploys it", state.object.target());
    Err(Failure::stalled(message).hint(format!("ask for that of dc/{leader}; `launchway scale` is for each alone")))
}

/// A version of a deployment config, if history knows it.
pub(in crate::engine) fn deployment(
    records: &Records,
    config: &ConfigKey,
    version: u32,
) -> Result<Option<DeploymentRun>, Undecided> {
    let id: RunId = config.deployment(version);
    Ok(match records.runs.get(&id)? {
        Some(Run::Deployment(run)) => Some((**run).clone()),
        Some(Run::Sequence(_)) | None => None,
    })
}

#[cfg(test)]
mod tests;
