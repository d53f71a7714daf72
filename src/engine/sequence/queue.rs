//! The one place that makes a sequence run: queued, with everything that it needs to its end.

use std::collections::BTreeSet;

use crate::engine::deployment::apply;
use crate::engine::records::{Lookup, Needs, Records, Undecided};
use crate::engine::sequence::incoming;
use crate::engine::sequence::machine::task_records;
use crate::error::Failure;
use crate::manifest::digest;
use crate::model::ids::{ProjectName, RunId, ServiceKey, ServiceName};
use crate::model::plan::{Change, Decision, PassedContent, Plan, ServicePlan, StagePlan};
use crate::model::run::{Delivery, Run, SequenceRun};
use crate::model::slot::{Delivered, PassedKey};
use crate::model::time::Timestamp;
use crate::plan::passed::deploys;
use crate::plan::{delivery_procedure, passed_procedure, procedure, same_procedure};

/// Makes a draft a queued run. Its attempt is one more than the revision has had for the service: at delivering it, or at
/// this sequence if it only runs tasks.
///
/// # Errors
/// If something must be read first.
pub fn queued(records: &mut Records, now: Timestamp, draft: SequenceRun) -> Result<SequenceRun, Undecided> {
    let sequence = draft.only_tasks().map(str::to_owned);
    let before = Lookup::Attempts(draft.repository.clone(), draft.commit.clone(), draft.service.clone(), sequence);
    let attempt = 1 + records.number(before)?;
    let id = records.fresh_run()?;
    let tasks = task_records(&draft.procedure.sequence);
    let context = Some(draft.context.clone().unwrap_or_else(|| context(&draft, &id)));
    Ok(SequenceRun { id, attempt, tasks, context, created_at: now, ..draft })
}

/// What a run has in common with those of the same delivery in other stages: the plan and the service, if it is of a revision.
fn context(draft: &SequenceRun, id: &RunId) -> String {
    incoming::derived_context(&match &draft.plan {
        Some(plan) => format!("{plan} {}", draft.service.service),
        None => id.to_string(),
    })
}

/// The run for a service's part of a plan, whether it finds anything to do or not; nothing, if its stage has no delivery
/// sequence. What was decided when the plan was made is decided again on what is applied now, because that may have
/// moved.
///
/// # Errors
/// If something must be read first.
pub fn delivery(
    records: &mut Records,
    now: Timestamp,
    plan: &Plan,
    stage: &StagePlan,
    part: &ServicePlan,
    cause: String,
) -> Result<Option<SequenceRun>, Undecided> {
    let Some(procedure) = delivery_procedure(plan, stage, part) else { return Ok(None) };
    let service =
        ServiceKey { project: plan.project.clone(), stage: stage.stage.clone(), service: part.service.clone() };
    let (changes, takes_from) = decide_again(records, &service, &part.changes)?;
    let revision = (plan.repository.clone(), plan.commit.clone());
    let draft = SequenceRun {
        plan: Some(plan.id.clone()),
        planned_at: Some(plan.at),
        cause,
        delivery: Some(Delivery { content: part.content.clone(), changes, configs: Some(part.configs) }),
        takes_from,
        ..SequenceRun::draft(service, stage.destination.clone(), revision, digest::stored(procedure))
    };
    queued(records, now, draft).map(Some)
}

/// Changes of a service as they are now, because what is applied may have moved since they were decided, and the services that
/// have something of it until then.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn decide_again(
    records: &Records,
    service: &ServiceKey,
    planned: &[Change],
) -> Result<(Vec<Change>, BTreeSet<ServiceName>), Undecided> {
    let (mut changes, mut takes_from, mut needs) = (Vec::new(), BTreeSet::new(), Needs::default());
    for change in planned {
        changes.extend(needs.of(apply::decide_again(records, service, change))?);
        if change.object.is_none() {
            continue; // what another service has is not its to delete
        }
        let recorded = needs.of(apply::recorded(records, service, change))?.flatten();
        takes_from.extend(recorded.map(|recorded| recorded.service).filter(|of| *of != service.service));
    }
    needs.none()?;
    Ok((changes, takes_from))
}

/// The same, but nothing if the part does nothing now.
///
/// # Errors
/// If something must be read first.
pub fn due_delivery(
    records: &mut Records,
    now: Timestamp,
    plan: &Plan,
    stage: &StagePlan,
    part: &ServicePlan,
    cause: String,
) -> Result<Option<SequenceRun>, Undecided> {
    let Some(run) = delivery(records, now, plan, stage, part, cause)? else { return Ok(None) };
    let last = last_alike(records, &run)?;
    let is_left = last.as_ref().is_some_and(|last| !last.deployed);
    let acts = !is_left && run.changes().iter().any(|change| change.decision.does_something());
    let runs_again = last.is_none() && is_untested(part, &run) && !has_passed(records, &run)?;
    Ok(if acts || runs_again || overtakes(records, &run)? { Some(run) } else { None })
}

/// Whether all that a part brings is there, without this sequence, which does more than deploy: that was so when it was
/// planned, or another delivery has brought it since.
fn is_untested(part: &ServicePlan, run: &SequenceRun) -> bool {
    let was_to_act = part.changes.iter().any(|change| change.is_held() || change.decision.does_something());
    let is_there = |change: &Change| change.decision == Decision::None && change.cause.is_empty();
    let is_brought = was_to_act && run.changes().iter().all(is_there) && deploys(&run.procedure.sequence).is_none();
    part.runs_again.is_some() || is_brought
}

/// The last delivery to a run's slot, if it brought the same in the same way: how that ended, it stays, until a person has it
/// run again.
fn last_alike(records: &Records, run: &SequenceRun) -> Result<Option<Delivered>, Undecided> {
    let last = records.slots.get(&run.service)?.and_then(|slot| slot.last_delivery.clone());
    let same =
        |last: &Delivered| Some(&last.content) == run.planned_content() && last.procedure == procedure(&run.procedure);
    Ok(last.filter(same))
}

/// Whether the stage before has passed what a service's part of a plan needs of it: a trigger only causes this check.
///
/// # Errors
/// If something must be read first.
pub fn is_let_pass(records: &Records, project: &ProjectName, part: &ServicePlan) -> Result<bool, Undecided> {
    let Some(previous) = &part.previous_stage else { return Ok(true) };
    let (mut all, mut needs) = (true, Needs::default());
    for key in previous.keys(project, &part.service) {
        all &= needs.of(records.passed.get(&key))?.flatten().is_some();
    }
    needs.none()?;
    Ok(all)
}

/// Why what a service declares is not started: what has to pass before has not.
pub fn not_passed(previous: &PassedContent, service: &ServiceName) -> Failure {
    Failure::stalled(format!("{} has not passed what `{service}` declares", previous.by_what()))
}

/// Whether what a run brings has passed its sequence.
fn has_passed(records: &Records, run: &SequenceRun) -> Result<bool, Undecided> {
    let Some(content) = run.planned_content().cloned() else { return Ok(false) };
    let passed = records.passed.get(&PassedKey { service: run.service.clone(), content })?;
    Ok(passed.is_some_and(|passed| passed.procedure == passed_procedure(&run.procedure)))
}

/// Whether a run that finds nothing to do now has to take its turn all the same, because an open delivery is about to
/// bring other content, or the same in another way.
fn overtakes(records: &Records, newer: &SequenceRun) -> Result<bool, Undecided> {
    Ok(open_run(records, &newer.service, |run| brings_other(run, newer))?.is_some())
}

/// The first such run of those that have a service's slot or wait for it.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn open_run<'a>(
    records: &'a Records,
    service: &ServiceKey,
    is_meant: impl Fn(&SequenceRun) -> bool,
) -> Result<Option<&'a SequenceRun>, Undecided> {
    let Some(slot) = records.slots.get(service)? else { return Ok(None) };
    for id in slot.open() {
        if let Some(Run::Sequence(run)) = records.runs.get(id)?
            && is_meant(run)
        {
            return Ok(Some(run));
        }
    }
    Ok(None)
}

/// Whether what a delivery brings is not what a newer one does: what is done by hand is compared object by object.
fn brings_other(run: &SequenceRun, newer: &SequenceRun) -> bool {
    let differs = |one: &Change, other: &Change| one.key == other.key && one.digest() != other.digest();
    match run.planned_content() {
        Some(content) => Some(content) != newer.planned_content() || !same_procedure(&run.procedure, &newer.procedure),
        None => run.changes().iter().any(|one| newer.changes().iter().any(|other| differs(one, other))),
    }
}

#[cfg(test)]
mod tests;
