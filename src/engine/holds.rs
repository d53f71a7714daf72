//! Holds: placed and lifted, and what they keep from happening.

use crate::engine::records::{Records, Undecided};
use crate::engine::transition::Transition;
use crate::error::Failure;
use crate::model::hold::{Hold, HoldKind, HoldScope, ProjectHolds, Release};
use crate::model::ids::{HoldId, ProjectName, RepositoryName, ServiceKey};
use crate::model::run::SequenceRun;

/// Places a hold. That of a rollback takes the place of those that earlier ones have left on the same service.
///
/// # Errors
/// If something must be read first.
pub fn place(
    transition: &mut Transition<'_>,
    kind: HoldKind,
    scope: HoldScope,
    reason: String,
    by: &str,
) -> Result<Hold, Undecided> {
    let project = scope.project.clone();
    let id = HoldId::new(transition.records.fresh_id()?);
    let hold = Hold { id, kind, scope, reason, by: by.to_owned(), since: transition.now };
    let holds = transition.records.holds.get(&project)?.cloned();
    let mut holds = holds.unwrap_or_else(|| ProjectHolds::none(project.clone()));
    if kind == HoldKind::Rollback {
        holds.holds.retain(|earlier| earlier.kind != kind || earlier.scope != hold.scope);
    }
    holds.holds.push(hold.clone());
    transition.records.holds.put(&project, Some(holds))?;
    Ok(hold)
}

/// Releases holds of a project and what its files pause or is quarantined; who waited is examined by whoever asked for this. The head of the
/// repository that declares it is planned anew, also if whoever asked dies right after.
///
/// # Errors
/// If something must be read first.
pub fn release(
    transition: &mut Transition<'_>,
    project: &ProjectName,
    release: &Release,
    declaring: Option<&RepositoryName>,
) -> Result<(), Undecided> {
    let holds = transition.records.holds.get(project)?.cloned();
    let holds = holds.unwrap_or_else(|| ProjectHolds::none(project.clone())).after(release);
    transition.records.holds.put(project, Some(holds))?;
    for config in release.paused.iter().map(|lifted| &lifted.config) {
        let is_quarantined = transition.records.configs.get(config)?.is_some_and(|it| !it.quarantined.is_empty());
        if is_quarantined && let Some(state) = transition.records.configs.get_mut(config)? {
            state.quarantined.clear();
        }
    }
    if let Some(repository) = declaring
        && let Some(state) = transition.records.repositories.get_mut(repository)?
    {
        state.plan_again();
    }
    Ok(())
}

/// Who has paused what a run belongs to, if somebody has.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn pausing(records: &Records, run: &SequenceRun) -> Result<Option<String>, Undecided> {
    let holds = records.holds.get(&run.service.project)?;
    let pausing = holds.and_then(|holds| holds.holds.iter().find(|hold| run.is_paused_by(hold)));
    Ok(pausing.map(|hold| hold.by.clone()))
}

/// Under a hold, nothing is started by hand either.
pub(in crate::engine) fn refuse(records: &Records, service: &ServiceKey) -> Result<(), Undecided> {
    refuse_by(records, service, |_| true)
}

/// What only a hold of a person's keeps from happening.
pub(in crate::engine) fn refuse_by_a_persons(records: &Records, service: &ServiceKey) -> Result<(), Undecided> {
    refuse_by(records, service, |hold| hold.kind == HoldKind::Person)
}

/// Under a hold other than a pause, nothing goes on either.
pub(in crate::engine) fn refuse_but_for_pauses(records: &Records, service: &ServiceKey) -> Result<(), Undecided> {
    refuse_by(records, service, |hold| hold.kind != HoldKind::Pause)
}

fn refuse_by(records: &Records, service: &ServiceKey, counts: impl Fn(&Hold) -> bool) -> Result<(), Undecided> {
    let holds = records.holds.get(&service.project)?;
    let covers = |hold: &&Hold| hold.scope.covers(&service.project, &service.stage, &service.service) && counts(hold);
    let Some(hold) = holds.and_then(|holds| holds.holds.iter().find(covers)) else { return Ok(()) };
    let message = format!("held by {}: {}", hold.by, hold.reason);
    Err(Failure::stalled(message).hint(format!("`launchway release {}` lifts the hold", hold.id)).into())
}

#[cfg(test)]
mod tests;
