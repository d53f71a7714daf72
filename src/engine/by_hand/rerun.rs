//! A sequence is run again, from the task that failed or from its beginning.

use super::{is_down, refuse_if_let_pass_no_more, refuse_if_waiting, retry};
use crate::engine::holds;
use crate::engine::records::{Lookup, Records, Undecided};
use crate::engine::sequence::queue;
use crate::engine::transition::Transition;
use crate::error::Failure;
use crate::model::ids::{RunId, ServiceKey};
use crate::model::object::Kind;
use crate::model::outcome::Outcome;
use crate::model::plan::Decision;
use crate::model::run::{Run, SequenceRun, TaskRecord};
use crate::model::shipyard::DEPLOYMENT_TASK;
use crate::plan::same_procedure;

/// Runs a sequence that has failed again, from the task that failed or from its beginning, on the same revision and with what was
/// left on the way; says which run that is. Of deliveries the last one is: what failed of its deployment is attempted again, and
/// what was deployed stays as it is.
///
/// # Errors
/// If it has not ended or passed, is under way again already, or brings what may not be delivered now or is not the last that was.
pub fn rerun(transition: &mut Transition<'_>, of: &RunId, from_start: bool, by: &str) -> Result<RunId, Undecided> {
    let Some(Run::Sequence(of)) = transition.records.runs.get(of)?.cloned() else {
        return Err(Failure::stalled(format!("there is no sequence run `{of}`")).missing().into());
    };
    refuse_if_by_hand(&of)?;
    refuse_if_not_failed(&of, from_start)?;
    let repository = transition.records.repositories.get(&of.repository)?;
    if repository.is_some_and(|repository| repository.down) {
        return Err(is_down(&of.repository).into());
    }
    if of.delivery.is_some() {
        refuse_if_not_last(transition.records, &of)?;
    }
    refuse_if_under_way(transition.records, &of)?;
    let cause = format!("run again by {by}");
    let mut run = match of.delivery {
        Some(_) => delivery(transition, &of, (&cause, by))?,
        None => queue::queued(transition.records, transition.now, once_more(&of, cause, by))?,
    };
    if !from_start && same_procedure(&run.procedure, &of.procedure) {
        let is_there = !is_left_undone(&run);
        let is_done = |task: &&TaskRecord| {
            task.outcome.is_some_and(Outcome::passes) && (is_there || task.name != DEPLOYMENT_TASK)
        };
        for (task, done) in run.tasks.iter_mut().zip(of.tasks.iter().take_while(is_done)) {
            *task = TaskRecord { done_before: true, ..done.clone() };
        }
    }
    let id = run.id.clone();
    transition.start(run)?;
    Ok(id)
}

/// Whether something of what a delivery deploys is not there any more, or may not be: it was rolled back.
fn is_left_undone(run: &SequenceRun) -> bool {
    let deploys = |decision| matches!(decision, Decision::Create | Decision::Deploy | Decision::Wait);
    run.changes().iter().any(|change| change.key.kind == Kind::DeploymentConfig && deploys(change.decision))
}

/// A sequence run of the same revision and in the same context, for what led to the first one.
pub(super) fn once_more(of: &SequenceRun, cause: String, by: &str) -> SequenceRun {
    let revision = (of.repository.clone(), of.commit.clone());
    SequenceRun {
        plan: of.plan.clone(),
        planned_at: of.planned_at,
        cause,
        by: Some(by.to_owned()),
        context: of.context.clone(),
        data: of.data.clone(),
        preceded: of.preceded,
        is_foreign: of.is_foreign,
        after: of.after.clone(),
        ..SequenceRun::draft(of.service.clone(), of.destination.clone(), revision, of.procedure.clone())
    }
}

fn refuse_if_by_hand(of: &SequenceRun) -> Result<(), Failure> {
    if !of.is_by_hand() {
        return Ok(());
    }
    let failure = Failure::stalled(format!("{} was asked for by hand", of.whereabouts()));
    Err(failure
        .hint("`launchway rollout retry` and `launchway rollout latest` deploy again; `--sequence` names another"))
}

fn refuse_if_not_failed(of: &SequenceRun, from_start: bool) -> Result<(), Failure> {
    match of.outcome {
        None => Err(Failure::stalled(format!("{} has not ended", of.whereabouts()))),
        Some(outcome) if outcome.passes() && !from_start => {
            let failure = Failure::stalled(format!("{} has passed", of.whereabouts()));
            Err(failure.hint("`--from-start` runs all of it again"))
        }
        Some(_) => Ok(()),
    }
}

/// A newer run of the same sequence that waits would lose its turn to this one, unless all of them have theirs.
fn refuse_if_under_way(records: &Records, of: &SequenceRun) -> Result<(), Undecided> {
    let ServiceKey { stage, service, .. } = &of.service;
    let is_newer = |run: &SequenceRun| run.id > of.id && !of.has_its_turn();
    let is_same = |run: &SequenceRun| match of.delivery {
        Some(_) => run.delivery.is_some(),
        None => run.sequence() == of.sequence() && (run.context == of.context || is_newer(run)),
    };
    let is_open = |run: &SequenceRun| run.ended_at.is_none() && is_same(run);
    let Some(open) = queue::open_run(records, &of.service, is_open)? else { return Ok(()) };
    let failure = Failure::stalled(format!("{} is under way already, as {}", open.whereabouts(), open.id));
    Err(failure.hint(format!("`launchway why {service} -s {stage}` says what it waits for")).into())
}

/// What was delivered or declared since has the last word.
fn refuse_if_not_last(records: &Records, of: &SequenceRun) -> Result<(), Undecided> {
    let ServiceKey { project, stage, service } = &of.service;
    let hint = format!("`launchway trigger delivery {service} -s {stage}` delivers what is declared now");
    let last = records.slots.get(&of.service)?.and_then(|slot| slot.last_delivery.as_ref());
    if last.is_none_or(|last| last.run != of.id) {
        let failure = Failure::stalled(format!("{} is not the last delivery of `{service}`", of.whereabouts()));
        return Err(failure.hint(hint).into());
    }
    let newest = records.plan(Lookup::NewestPlanOf(project.clone(), service.clone()))?;
    let declared = newest.and_then(|plan| Some((plan, plan.stage(stage)?.service(service)?)));
    match declared.filter(|(_, part)| Some(&part.content) != of.planned_content()) {
        Some((plan, _)) => {
            let message = format!("{} declares something else of `{service}`", plan.commit.short());
            Err(Failure::stalled(message).hint(hint).into())
        }
        None => Ok(()),
    }
}

/// A delivery once more, if what it deploys may be deployed now.
fn delivery(transition: &mut Transition<'_>, of: &SequenceRun, why: (&str, &str)) -> Result<SequenceRun, Undecided> {
    holds::refuse(transition.records, &of.service)?;
    refuse_if_let_pass_no_more(transition.records, of)?;
    let run = retry::again(transition, of, why)?;
    for change in run.changes().iter().filter(|change| change.key.kind == Kind::DeploymentConfig) {
        let config = of.service.config(&change.key.name);
        if let Some(state) = transition.records.configs.get(&config)? {
            retry::refuse_if_paused(state)?;
            refuse_if_waiting(transition.records, state)?;
        }
    }
    Ok(run)
}
