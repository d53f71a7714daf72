//! What a person has delivered: the delivery sequence of a stage, with what the applied revision declares.

use std::collections::BTreeMap;

use crate::engine::by_hand::{self, is_down};
use crate::engine::holds;
use crate::engine::records::{Needs, Records, Undecided};
use crate::engine::sequence::incoming::Incoming;
use crate::engine::sequence::queue;
use crate::engine::sync::{Head, Planning, Watched, already_there, judge};
use crate::engine::transition::Transition;
use crate::error::Failure;
use crate::model::ids::{RunId, ServiceKey, ServiceName, StageName};
use crate::model::object::Kind;
use crate::model::plan::{Plan, ServicePlan, StagePlan};
use crate::model::project::Project;
use crate::model::run::SequenceRun;
use crate::model::state::RepositoryState;
use crate::model::transaction::Write;
use crate::plan::build::Applied;

/// What a person wants to be delivered.
#[derive(Clone, Copy, Debug)]
pub struct Trigger<'a> {
    /// In which stage.
    pub stage: &'a StageName,
    /// For one service, also if nothing differs, or for all that differ.
    pub service: Option<&'a ServiceName>,
    /// Why, although the stage before has not passed it.
    pub force: Option<&'a str>,
    /// Who wants it.
    pub by: &'a str,
    /// The event that says so, if one does.
    pub incoming: Option<&'a Incoming>,
}

/// Starts the delivery sequence of a stage with what the applied revision declares; hands back the runs.
///
/// # Errors
/// If that is held, under way, or not passed by the stage before, the revision has no plan, there is no such stage or
/// service, or something must be read first.
pub fn trigger(
    transition: &mut Transition<'_>,
    watched: &Watched,
    head: &Head,
    mut applied: BTreeMap<StageName, Applied>,
    asked: Trigger<'_>,
) -> Result<Vec<RunId>, Undecided> {
    let state = ready(transition.records, watched, head)?;
    let cause = format!("triggered by {}", asked.by);
    let seen = applied.entry(asked.stage.clone()).or_default();
    // What is still in a stage before is what a person does not wait for.
    let coming = std::mem::take(&mut seen.under_way).into_iter();
    seen.under_way = coming.filter_map(|(service, coming)| Some((service, coming.arrived()?))).collect();
    if let (Some(service), Some(project)) = (asked.service, &state.project) {
        let (project, stage) = (project.clone(), asked.stage.clone());
        holds::refuse(transition.records, &ServiceKey { project, stage, service: service.clone() })?;
        seen.not_passed.insert(service.clone(), cause.clone());
        seen.never_deployed.remove(service);
    }
    let Ok((project, plan)) = judge(transition, watched, &state, head, &Planning::against(applied))? else {
        return Err(Failure::stalled("the last revision has no plan").hint("`launchway status` says why").into());
    };
    already_there::pass(transition, &project, &plan)?;
    let stage = asked_stage(&project, &plan, asked)?;
    let (mut runs, mut needs) = (Vec::new(), Needs::default());
    for part in stage.services.iter().filter(|part| asked.service.is_none_or(|service| service == &part.service)) {
        runs.extend(needs.of(trigger_one(transition, (&plan, stage, part), asked, &cause))?.flatten());
    }
    needs.none()?;
    if let (true, Some(service)) = (runs.is_empty(), asked.service) {
        return Err(under_way(transition.records, &project, asked.stage, service)?.into());
    }
    if let Some(incoming) = asked.incoming {
        incoming.remember(transition, &watched.name);
    }
    transition.write(Write::Plan(Box::new(plan)));
    Ok(runs)
}

/// Why nothing is started, with how a person ends what is under way.
fn under_way(
    records: &Records,
    project: &Project,
    stage: &StageName,
    service: &ServiceName,
) -> Result<Failure, Undecided> {
    let failure = Failure::stalled("a delivery of what is declared is under way already");
    let mut objects = project.stage(stage).into_iter().flat_map(|stage| stage.objects.of_service(service));
    let config = objects.find(|object| object.key.kind == Kind::DeploymentConfig && !object.is_led());
    let slot = ServiceKey { project: project.name.clone(), stage: stage.clone(), service: service.clone() };
    match config {
        Some(config) => by_hand::with_way_out(failure, records, &slot, &config.target()),
        None => Ok(failure),
    }
}

fn trigger_one(
    transition: &mut Transition<'_>,
    (plan, stage, part): (&Plan, &StagePlan, &ServicePlan),
    asked: Trigger<'_>,
    cause: &str,
) -> Result<Option<RunId>, Undecided> {
    let forced = pass_gate(transition.records, plan, part, asked)?;
    let (records, now) = (&mut *transition.records, transition.now);
    let run = match asked.service {
        Some(_) => queue::delivery(records, now, plan, stage, part, cause.to_owned())?,
        None => queue::due_delivery(records, now, plan, stage, part, cause.to_owned())?,
    };
    let Some(run) = run else { return Ok(None) };
    holds::refuse(transition.records, &run.service)?;
    let id = run.id.clone();
    let mut run = SequenceRun { by: Some(asked.by.to_owned()), forced, ..run };
    if let Some(Incoming { context, id, trigger, data, .. }) = asked.incoming {
        run.context = Some(context.clone());
        run.triggered_by = Some(id.clone());
        run.trigger = Some(trigger.clone());
        run.data = data.clone();
    }
    transition.start(run)?;
    Ok(Some(id))
}

/// What is remembered of the repository, if a person may start something for this revision.
fn ready(records: &Records, watched: &Watched, head: &Head) -> Result<RepositoryState, Undecided> {
    let Some(state) = records.repositories.get(&watched.name)?.cloned() else {
        return Err(Failure::stalled(format!("nothing is known of repository `{}`", watched.name)).into());
    };
    if state.down {
        return Err(is_down(&watched.name).into());
    }
    if state.applied.as_ref() != Some(&head.commit) {
        return Err(Failure::transient("a newer revision was applied meanwhile").into());
    }
    Ok(state)
}

fn asked_stage<'a>(project: &Project, plan: &'a Plan, asked: Trigger<'_>) -> Result<&'a StagePlan, Undecided> {
    let stage = plan.stage(asked.stage);
    let there = plan.stages.iter().map(|stage| &stage.stage);
    let stage = stage.ok_or_else(|| by_hand::no_stage(&plan.project, asked.stage.as_str(), there))?;
    let declared = project.stage(asked.stage);
    let declares =
        |service: &ServiceName| declared.is_some_and(|stage| stage.objects.of_service(service).next().is_some());
    match asked.service.filter(|service| !declares(service) && stage.service(service).is_none()) {
        Some(service) => Err(Failure::stalled(format!("stage `{}` has no service `{service}`", asked.stage)).into()),
        None => Ok(stage),
    }
}

/// Only what the stage before has passed is started, unless a person takes it upon them; says why and who.
fn pass_gate(
    records: &Records,
    plan: &Plan,
    part: &ServicePlan,
    asked: Trigger<'_>,
) -> Result<Option<String>, Undecided> {
    let Some(previous) = &part.previous_stage else { return Ok(None) };
    if queue::is_let_pass(records, &plan.project, part)? {
        return Ok(None);
    }
    match asked.force {
        Some(reason) => Ok(Some(format!("{} although {} has not passed it: {reason}", asked.by, previous.by()))),
        None => {
            let refused = queue::not_passed(previous, &part.service);
            Err(refused.hint("`--force REASON` starts it all the same, and says so").into())
        }
    }
}
