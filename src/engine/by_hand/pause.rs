//! Deliveries and stages that begin no further task for a while.

use crate::engine::holds;
use crate::engine::records::{Records, Undecided};
use crate::engine::transition::Transition;
use crate::error::Failure;
use crate::model::event::Event;
use crate::model::hold::{Hold, HoldKind, HoldScope, Release};
use crate::model::ids::{HoldId, ProjectName, RunId, StageName};
use crate::model::run::{Run, SequenceRun};

/// A delivery through its stages, its part in one of them, or all that is in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The project.
    pub project: ProjectName,
    /// What all of it has in common; nothing, if a stage is all that it has.
    pub context: Option<String>,
    /// One stage, or all.
    pub stage: Option<StageName>,
}

impl Part {
    /// What a hold on just this covers.
    pub fn scope(&self) -> HoldScope {
        let Self { project, context, stage } = self.clone();
        HoldScope { project, stage, service: None, context }
    }

    /// Whether a hold pauses just this.
    pub fn is_paused_by(&self, hold: &Hold) -> bool {
        hold.kind == HoldKind::Pause && hold.scope == self.scope()
    }
}

/// Has a delivery, or a stage, begin no further task until it is resumed: what is at a task ends that. Says whether it was not
/// paused. Of one that is, those are told that have not heard of it, because they had begun before they could meet the pause.
///
/// # Errors
/// If nothing of a delivery is under way, or something must be read first.
pub fn pause_delivery(
    transition: &mut Transition<'_>,
    part: &Part,
    runs: &[RunId],
    by: &str,
) -> Result<bool, Undecided> {
    let mut open = open(transition.records, runs)?;
    if !paused(transition.records, part)?.is_empty() {
        open.retain(|(_, run)| run.paused.is_none());
        tell_paused(transition, open, by);
        return Ok(false);
    }
    if let Some(context) = part.context.as_ref().filter(|_| open.is_empty()) {
        return Err(Failure::stalled(format!("nothing with context `{context}` is under way there")).into());
    }
    holds::place(transition, HoldKind::Pause, part.scope(), format!("paused by {by}"), by)?;
    tell_paused(transition, open, by);
    Ok(true)
}

fn tell_paused(transition: &mut Transition<'_>, open: Vec<(RunId, SequenceRun)>, by: &str) {
    for (id, _) in open.into_iter().filter(|(_, run)| !run.is_rollback) {
        transition.tell(id, Event::Paused { by: by.to_owned() });
    }
}

/// Lets a delivery go on that was paused. Says whether it was.
///
/// # Errors
/// If something must be read first.
pub fn resume_delivery(
    transition: &mut Transition<'_>,
    part: &Part,
    runs: &[RunId],
    by: &str,
) -> Result<bool, Undecided> {
    let holds = paused(transition.records, part)?;
    if holds.is_empty() {
        return Ok(false);
    }
    holds::release(transition, &part.project, &Release { holds, ..Release::default() }, None)?;
    resumed(transition, runs, by)?;
    Ok(true)
}

/// Tells runs that they go on, of which a pause was lifted: those that nothing else pauses.
///
/// # Errors
/// If something must be read first.
pub(super) fn resumed(transition: &mut Transition<'_>, runs: &[RunId], by: &str) -> Result<(), Undecided> {
    for (id, run) in open(transition.records, runs)? {
        if holds::pausing(transition.records, &run)?.is_none() {
            transition.examine(run.service);
            transition.tell(id, Event::Resumed { by: by.to_owned() });
        }
    }
    Ok(())
}

/// What pauses just this part.
fn paused(records: &Records, part: &Part) -> Result<Vec<HoldId>, Undecided> {
    let holds = records.holds.get(&part.project)?;
    let found = holds.into_iter().flat_map(|holds| &holds.holds).filter(|hold| part.is_paused_by(hold));
    Ok(found.map(|hold| hold.id.clone()).collect())
}

/// Those that have not ended by now.
fn open(records: &Records, runs: &[RunId]) -> Result<Vec<(RunId, SequenceRun)>, Undecided> {
    let mut open = Vec::new();
    for id in runs {
        if let Some(Run::Sequence(run)) = records.runs.get(id)?
            && run.ended_at.is_none()
        {
            open.push((id.clone(), run.as_ref().clone()));
        }
    }
    Ok(open)
}
