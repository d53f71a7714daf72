//! What the end of a sequence starts: the service's delivery to the stages whose turn it is, and other sequences that the
//! shipyard of its revision triggers on it. It is decided in the transaction that ends the sequence, so that nothing can
//! be lost between the two.

use std::collections::BTreeSet;

use crate::engine::records::Undecided;
use crate::engine::sequence::queue;
use crate::engine::transition::Transition;
use crate::manifest::digest;
use crate::model::ids::{RunId, ServiceKey, StageName};
use crate::model::outcome::Outcome;
use crate::model::plan::{PassedContent, Plan, ServicePlan, StagePlan};
use crate::model::run::{Run, SequenceRun};
use crate::model::slot::PassedKey;
use crate::plan::order;

/// Starts the stages whose turn it is after a sequence. A delivery is one revision from end to end; the newest revision
/// that waited for the same content to pass gets its turn too, and has the last word.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn promote(
    transition: &mut Transition<'_>,
    run: &RunId,
    outcome: Outcome,
) -> Result<(), Undecided> {
    let Some(Run::Sequence(ended)) = transition.records.runs.get(run)?.cloned() else { return Ok(()) };
    let Some(id) = ended.plan.clone() else { return Ok(()) };
    let repository = transition.records.repositories.get(&ended.repository)?;
    if repository.is_some_and(|repository| repository.down) {
        return Ok(()); // once it is up again, the head is planned anew
    }
    let service = &ended.service;
    let Some(mut plan) = transition.plan_of(&id, &service.service)? else { return Ok(()) };
    let mut newest = transition.newest_plan_of(service)?.filter(|newest| newest.id != plan.id);
    if let Some(repository) = repository {
        // A stage that the applied revision no longer has gets nothing more.
        let is_there = |stage: &StagePlan| repository.namespaces.contains(&stage.destination.namespace);
        plan.stages.retain(is_there);
        newest.iter_mut().for_each(|newest| newest.stages.retain(is_there));
    }
    start_others(transition, &ended, outcome, &plan)?;
    let mut started = BTreeSet::new();
    start_next(transition, &ended, outcome, &plan, |_| true, &mut started)?;
    let content =
        plan.stage(&service.stage).and_then(|stage| stage.service(&service.service)).map(|part| &part.content);
    if let (Some(newest), Some(content)) = (newest, content.cloned()) {
        let passed = PassedContent { stage: service.stage.clone(), content };
        let waited = |part: &ServicePlan| part.previous_stage.as_ref() == Some(&passed);
        start_next(transition, &ended, outcome, &newest, waited, &mut started)?;
    }
    Ok(())
}

fn start_next(
    transition: &mut Transition<'_>,
    ended: &SequenceRun,
    outcome: Outcome,
    plan: &Plan,
    takes_part: impl Fn(&ServicePlan) -> bool,
    started: &mut BTreeSet<StageName>,
) -> Result<(), Undecided> {
    let (stage, sequence) = (&ended.service.stage, ended.sequence());
    for (stage, part) in order::next(plan, stage, &ended.service.service, sequence, outcome) {
        if !takes_part(part) || !may_start(transition, &ended.service, part)? {
            continue;
        }
        let cause = format!("{}.{sequence} finished", ended.service.stage);
        let (records, now) = (&mut *transition.records, transition.now);
        let run = if started.contains(&stage.stage) {
            // It takes the place of what an older revision starts here, even if nothing differs now.
            queue::delivery(records, now, plan, stage, part, cause)?
        } else {
            queue::due_delivery(records, now, plan, stage, part, cause)?
        };
        if let Some(run) = run {
            started.insert(stage.stage.clone());
            transition.start(run)?;
        }
    }
    Ok(())
}

/// Whether the stage before has passed what a stage needs of it: a trigger only causes this check.
fn may_start(transition: &Transition<'_>, service: &ServiceKey, part: &ServicePlan) -> Result<bool, Undecided> {
    let Some(PassedContent { stage, content }) = part.previous_stage.clone() else { return Ok(true) };
    let key = PassedKey { service: ServiceKey { stage, ..service.clone() }, content };
    Ok(transition.records.passed.get(&key)?.is_some())
}

/// Starts the sequences that bring nothing and only run tasks, for the same service.
fn start_others(
    transition: &mut Transition<'_>,
    ended: &SequenceRun,
    outcome: Outcome,
    plan: &Plan,
) -> Result<(), Undecided> {
    let after: Vec<String> = ended.after.iter().cloned().chain([ended.event_name()]).collect();
    for (stage, sequence) in order::others(plan, &ended.event_name(), outcome) {
        if after.contains(&format!("{}.{}", stage.stage, sequence.name)) {
            continue; // else a circle of triggers never ends
        }
        let service = ServiceKey { stage: stage.stage.clone(), ..ended.service.clone() };
        let revision = (ended.repository.clone(), ended.commit.clone());
        let procedure = plan.procedures.procedure(&stage.stage, sequence, &service.service);
        let draft = SequenceRun {
            plan: ended.plan.clone(),
            cause: format!("{} finished", ended.event_name()),
            after: after.clone(),
            ..SequenceRun::draft(service, stage.destination.clone(), revision, digest::stored(procedure))
        };
        let run = queue::queued(transition.records, transition.now, draft)?;
        transition.start(run)?;
    }
    Ok(())
}
