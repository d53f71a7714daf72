//! What becomes of a service in the stages after one in which its sequence ended. It is decided in the transaction that
//! ends the sequence, so that no promotion can be lost between the two.

use std::collections::BTreeSet;

use crate::engine::records::Undecided;
use crate::engine::sequence::queue;
use crate::engine::transition::Transition;
use crate::model::ids::{RunId, StageName};
use crate::model::outcome::Verdict;
use crate::model::plan::{PassedContent, Plan, ServicePlan};
use crate::model::run::{Run, SequenceRun};
use crate::plan::order;

/// Starts the stages whose turn it is after a sequence. A delivery is one revision from end to end; the newest revision
/// that waited for the same content to pass gets its turn too, and has the last word.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn promote(
    transition: &mut Transition<'_>,
    run: &RunId,
    verdict: Verdict,
) -> Result<(), Undecided> {
    let Some(Run::Sequence(ended)) = transition.records.runs.get(run)?.cloned() else { return Ok(()) };
    let Some(id) = ended.plan.clone() else { return Ok(()) };
    let repository = transition.records.repositories.get(&ended.repository)?;
    if repository.is_some_and(|repository| repository.down) {
        return Ok(()); // once it is up again, the head is planned anew
    }
    let service = &ended.service;
    let Some(plan) = transition.plan_of(&id, &service.service)? else { return Ok(()) };
    let newest = transition.newest_plan_of(service)?.filter(|newest| newest.id != plan.id);
    let mut started = BTreeSet::new();
    start_next(transition, &ended, verdict, &plan, |_| true, &mut started)?;
    if let (Some(newest), Some(content)) = (newest, ended.planned_content().cloned()) {
        let passed = PassedContent { stage: service.stage.clone(), content };
        let waited = |part: &ServicePlan| part.previous_stage.as_ref() == Some(&passed);
        start_next(transition, &ended, verdict, &newest, waited, &mut started)?;
    }
    Ok(())
}

fn start_next(
    transition: &mut Transition<'_>,
    ended: &SequenceRun,
    verdict: Verdict,
    plan: &Plan,
    takes_part: impl Fn(&ServicePlan) -> bool,
    started: &mut BTreeSet<StageName>,
) -> Result<(), Undecided> {
    let (stage, sequence) = (&ended.service.stage, ended.sequence());
    for (stage, part) in order::next(plan, stage, &ended.service.service, sequence, verdict) {
        if !takes_part(part) {
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
