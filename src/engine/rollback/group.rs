//! A rollback of several deployment configs: if one of them fails, those that went back already are brought back to what
//! served before.

use crate::engine::by_hand::{ByHand, by_hand};
use crate::engine::holds;
use crate::engine::records::{Needs, Records, Undecided};
use crate::engine::rollback::restore;
use crate::engine::transition::Transition;
use crate::model::event::Event;
use crate::model::hold::{HoldKind, HoldScope};
use crate::model::ids::RunId;
use crate::model::outcome::{Outcome, Status};
use crate::model::run::{DeploymentRef, Run, SequenceRun, SequenceState};
use crate::model::state::{ConfigState, Version};

/// The most characters of a failure that the others tell.
const MOST_OF_A_FAILURE: usize = 200;

/// Begins what is reported about a part that failed.
const FAILED: &str = "the rollback of ";

/// What the end of one part means for the others.
#[derive(Debug, PartialEq, Eq)]
struct Verdict<'a> {
    /// The part that failed first; nothing, if none has.
    failed: Option<&'a SequenceRun>,
    /// What is still to end.
    cancelled: Vec<&'a SequenceRun>,
    /// What has gone back, and is to be brought back.
    undone: Vec<&'a SequenceRun>,
}

/// A sequence run has ended, which may be a part of a rollback of several.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn ended(transition: &mut Transition<'_>, run: &RunId) -> Result<(), Undecided> {
    let Some(Run::Sequence(ended)) = transition.records.runs.get(run)?.cloned() else { return Ok(()) };
    let Some(group) = &ended.group else { return Ok(()) };
    let others = parts(transition.records, group.runs.iter().filter(|other| *other != run))?;
    let Verdict { failed: Some(failed), cancelled, undone } = judge(&ended, &others) else { return Ok(()) };
    let because = because(failed);
    for part in cancelled {
        transition.tell(part.id.clone(), Event::Cancel { outcome: Outcome::ABORTED, reason: because.clone() });
    }
    if transition.records.repositories.get(&ended.repository)?.is_some_and(|repository| repository.down) {
        return Ok(()); // nothing runs, and nothing is brought back by itself
    }
    let mut needs = Needs::default();
    for part in undone {
        needs.of(bring_back(transition, part, &because))?;
    }
    needs.none()
}

/// A part that another one took the place of has not failed: who wanted that has the last word on it. Each part is brought back
/// once, when the first one fails or else when it ends.
fn judge<'a>(ended: &'a SequenceRun, others: &'a [SequenceRun]) -> Verdict<'a> {
    let has_failed = |run: &&SequenceRun| {
        run.outcome.is_some_and(|outcome| !outcome.passes() && outcome.status != Status::Superseded)
    };
    let first = |run: &&SequenceRun| (run.outcome == Some(Outcome::ABORTED), run.ended_at);
    if let Some(before) = others.iter().filter(has_failed).min_by_key(first) {
        return Verdict { failed: Some(before), cancelled: Vec::new(), undone: vec![ended] };
    }
    if !has_failed(&ended) {
        return Verdict { failed: None, cancelled: Vec::new(), undone: Vec::new() };
    }
    let (over, open): (Vec<_>, Vec<_>) = others.iter().partition(|other| other.ended_at.is_some());
    let cancelled = open.into_iter().filter(|open| !matches!(open.state, SequenceState::Ending { .. })).collect();
    let undone = over.into_iter().chain([ended]).collect();
    Verdict { failed: Some(ended), cancelled, undone }
}

/// What was ended because of another part tells of that one.
fn because(failed: &SequenceRun) -> String {
    let told: String = failed.message.chars().take(MOST_OF_A_FAILURE).collect();
    if told.starts_with(FAILED) { told } else { format!("{FAILED}{} failed: {told}", failed.service.service) }
}

fn parts<'a>(records: &Records, runs: impl Iterator<Item = &'a RunId>) -> Result<Vec<SequenceRun>, Undecided> {
    let (mut found, mut needs) = (Vec::new(), Needs::default());
    for run in runs {
        found.extend(needs.of(records.runs.get(run))?.flatten().and_then(Run::sequence).cloned());
    }
    needs.none()?;
    Ok(found)
}

/// What served before is deployed again, of what a part has brought and still serves.
fn bring_back(transition: &mut Transition<'_>, part: &SequenceRun, because: &str) -> Result<(), Undecided> {
    let mut back: Vec<(ConfigState, &Version)> = Vec::new();
    for deployment in part.tasks.iter().flat_map(|task| &task.deployments) {
        back.extend(to_bring_back(transition.records, part, deployment)?);
    }
    let Some((state, newest)) = back.iter().max_by_key(|(_, before)| before.number) else { return Ok(()) };
    let cause = |before: &Version| format!("back to version {}, because {because}", before.number);
    let told = back.iter().map(|(state, before)| format!("{} goes back to version {}", state.key.name, before.number));
    let reason = format!("{}, because {because}", told.collect::<Vec<_>>().join(" and "));
    let by = part.by.as_deref().unwrap_or_default();
    let run = ByHand {
        commit: newest.commit.clone(),
        objects: back
            .iter()
            .map(|(state, before)| (restore::whole(&state.object, &before.object), cause(before)))
            .collect(),
        cause: if back.len() == 1 { cause(newest) } else { format!("back, because {because}") },
        by,
        is_rollback: true,
    };
    let run = by_hand(transition, state, run)?;
    transition.start(run)?;
    holds::place(transition, HoldKind::Rollback, HoldScope::of(part.service.clone()), reason, by).map(drop)
}

/// A deployment config that went back and serves so, with what served before.
fn to_bring_back<'a>(
    records: &Records,
    part: &'a SequenceRun,
    deployment: &DeploymentRef,
) -> Result<Option<(ConfigState, &'a Version)>, Undecided> {
    let went_back = deployment.outcome.is_some_and(Outcome::passes) && !deployment.served_already;
    let Some(run) = deployment.run.as_ref().filter(|_| went_back) else { return Ok(None) };
    let key = part.service.config(&deployment.config);
    let state = records.configs.get(&key)?.filter(|state| !state.removed && state.open_attempt().is_none());
    let serves =
        |state: &&ConfigState| state.serving.as_ref().is_some_and(|serving| &key.deployment(serving.number) == run);
    let before = part.group.iter().flat_map(|group| &group.before);
    let before = before.into_iter().find(|version| version.object.key.name == deployment.config);
    Ok(state.filter(serves).cloned().zip(before))
}

#[cfg(test)]
mod tests;
