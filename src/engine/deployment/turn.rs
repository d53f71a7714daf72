//! One deployment of a config after another. Those of one service follow each other in its slot. A config that moves to
//! another service is deployed in that one's slot, while a hook of the deployment before may still be ending: hooks of one
//! config never overlap.

use std::ops::Range;

use crate::engine::deployment::machine;
use crate::engine::records::{Records, Undecided};
use crate::model::action::Decided;
use crate::model::event::Event;
use crate::model::ids::{ConfigKey, RunId};
use crate::model::run::{DeploymentRun, DeploymentStep, Run};

/// What a deployment hears instead of `event`, if it is about to begin while an earlier one of its config has not ended.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn postponed(
    records: &Records,
    run: &DeploymentRun,
    event: &Event,
) -> Result<Option<Event>, Undecided> {
    if (run.step, event) != (DeploymentStep::Prepare, &Event::Prepared) {
        return Ok(None);
    }
    // What serves has ended well, and so has everything before it.
    let open = open_between(records, &run.config, run.previous.unwrap_or(0) + 1..run.version)?;
    Ok(open.map(|version| Event::Delayed { message: format!("waits for version {version} to end") }))
}

/// The newest of so many versions whose deployment has not ended.
///
/// # Errors
/// If something must be read first.
pub(super) fn open_between(
    records: &Records,
    config: &ConfigKey,
    versions: Range<u32>,
) -> Result<Option<u32>, Undecided> {
    for version in versions.rev() {
        match deployment(records, config, version)? {
            Some(earlier) if earlier.ended_at.is_none() => return Ok(Some(version)),
            Some(earlier) if !has_begun_nothing(earlier) => break,
            Some(_) | None => {} // it may have waited for one before it
        }
    }
    Ok(None)
}

/// The deployment that may have waited for this one to end, and what it does.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn next(records: &Records, ended: &DeploymentRun) -> Result<Option<(RunId, Decided)>, Undecided> {
    let Some(state) = records.configs.get(&ended.config)? else { return Ok(None) };
    let Some(attempt) = state.open_attempt().filter(|attempt| attempt.version.number > ended.version) else {
        return Ok(None);
    };
    let next = deployment(records, &ended.config, attempt.version.number)?;
    let next = next.filter(|next| next.step == DeploymentStep::Prepare && next.ended_at.is_none());
    Ok(next.map(|next| {
        let actions = vec![machine::prepare(next)];
        (next.id.clone(), Decided { actions, ..Decided::default() })
    }))
}

fn has_begun_nothing(run: &DeploymentRun) -> bool {
    run.failure.as_ref().is_some_and(|failure| failure.step == DeploymentStep::Prepare)
}

/// The deployment of a version.
///
/// # Errors
/// If something must be read first.
pub(super) fn deployment<'a>(
    records: &'a Records,
    config: &ConfigKey,
    version: u32,
) -> Result<Option<&'a DeploymentRun>, Undecided> {
    Ok(match records.runs.get(&config.deployment(version))? {
        Some(Run::Deployment(run)) => Some(run),
        Some(Run::Sequence(_)) | None => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fixtures::{Made, Memory, attempted, delivery, deployed, deploying, deployment, serving, web};
    use crate::model::action::Action;
    use crate::model::outcome::Outcome;
    use crate::model::run::{DeploymentFailure, Phase};
    use crate::model::transaction::Write;

    /// The version before is at `step`, or ended there; the next one, of another service, has just been prepared.
    fn memory(step: DeploymentStep, ended: bool) -> Memory {
        let (one, other) = (deploying(delivery("s1", "b"), 2), deploying(delivery("s2", "c"), 3));
        let phase = if ended { Phase::Failed } else { Phase::New };
        let mut first = deployment(2, "b", &one, phase);
        if ended {
            let message = "gave way".to_owned();
            first.failure = Some(DeploymentFailure { step, outcome: Outcome::SUPERSEDED, message });
        } else {
            first.step = step;
        }
        let second = deployment(3, "c", &other, Phase::New);
        let state = attempted(attempted(serving(1, "a"), "b", &one, None), "c", &other, None);
        let runs = [one, other].map(|run| Run::Sequence(Box::new(run)));
        runs.into_iter().fold(Memory::default().with(state).with(deployed(first)).with(deployed(second)), Memory::with)
    }

    fn prepared(memory: &mut Memory) -> Made<()> {
        let told = memory.commit(|transition| {
            transition.tell(web().deployment(3), Event::Prepared);
            Ok(())
        });
        told.expect("it is told")
    }

    fn problem(memory: &Memory) -> (DeploymentStep, String) {
        let Run::Deployment(run) = memory.get::<Run>(web().deployment(3)) else { unreachable!("a deployment") };
        (run.step, run.problem.clone())
    }

    #[test]
    fn a_deployment_waits_for_an_earlier_one_that_has_not_ended() {
        let mut memory = memory(DeploymentStep::Pre, false);
        prepared(&mut memory);
        assert_eq!(problem(&memory), (DeploymentStep::Prepare, "waits for version 2 to end".to_owned()));
    }

    #[test]
    fn what_has_ended_is_not_waited_for() {
        for at in [DeploymentStep::Prepare, DeploymentStep::Pre, DeploymentStep::Restore] {
            let mut memory = memory(at, true);
            prepared(&mut memory);
            assert_eq!(problem(&memory), (DeploymentStep::Rollout, String::new()), "{at:?}");
        }
    }

    #[test]
    fn the_end_of_the_earlier_one_lets_it_go_on() {
        let mut memory = memory(DeploymentStep::Pre, false);
        prepared(&mut memory);
        let ended = memory.commit(|transition| {
            let reason = "version 3 has taken over".to_owned();
            transition.tell(web().deployment(2), Event::Disowned { reason });
            Ok(())
        });
        let asks = |write: &Write| {
            let Write::Ask { run, action, .. } = write else { return false };
            *run == web().deployment(3) && matches!(**action, Action::Prepare { .. })
        };
        assert!(ended.expect("it ends").transaction.writes.iter().any(asks));
        prepared(&mut memory);
        assert_eq!(problem(&memory).0, DeploymentStep::Rollout);
    }
}
