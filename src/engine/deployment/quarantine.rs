//! What was rolled back by itself is not deployed again by a push that says it again: once it is no longer the last attempt, it
//! is quarantined, until it is changed or a person lets it.

use crate::engine::records::{Records, Undecided};
use crate::model::ids::{ConfigKey, Digest};
use crate::model::outcome::Outcome;
use crate::model::run::{DeploymentRun, DeploymentStep, Run};
use crate::model::state::{Attempt, ConfigState, Quarantined};
use crate::model::time::Timestamp;

/// The last attempt at a deployment config is about to be forgotten for other content.
///
/// # Errors
/// If something must be read first.
pub(super) fn keep(records: &mut Records, key: &ConfigKey, other: &Digest, now: Timestamp) -> Result<(), Undecided> {
    let Some(attempt) = records.configs.get(key)?.and_then(|state| failed(state, other)).cloned() else {
        return Ok(());
    };
    let why = match records.runs.get(&key.deployment(attempt.version.number))? {
        Some(Run::Deployment(run)) => why_rolled_back(run),
        Some(Run::Sequence(_)) | None => None,
    };
    let Some(reason) = why else { return Ok(()) };
    if let Some(state) = records.configs.get_mut(key)? {
        state.quarantine(Quarantined { content: attempt.version.object.digest.clone(), reason, since: now });
    }
    Ok(())
}

/// What has failed beside something that serves.
fn failed<'a>(state: &'a ConfigState, other: &Digest) -> Option<&'a Attempt> {
    let is_other = |attempt: &&Attempt| attempt.version.object.digest != *other;
    let attempt = state.attempted.as_ref().filter(is_other)?;
    (attempt.outcome == Some(Outcome::FAIL) && state.serving.is_some()).then_some(attempt)
}

/// Why it was rolled back by itself: it failed once something of it was there. What fails before says nothing of the version.
fn why_rolled_back(run: &DeploymentRun) -> Option<String> {
    let failure = run.failure.as_ref().filter(|failure| failure.outcome == Outcome::FAIL)?;
    let is_its = failure.step > DeploymentStep::Pre && run.on_failure.goes_back() && !run.is_rollback;
    let is_its = is_its && run.led_by.is_none(); // what leads it is quarantined
    is_its.then(|| format!("version {} failed: {}", run.version, failure.message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fixtures::{delivery, deploying, deployment};
    use crate::model::project::OnFailure;
    use crate::model::run::{DeploymentFailure, Phase};

    #[test]
    fn what_failed_before_anything_of_it_was_there_and_what_people_ended_may_come_again() {
        use DeploymentStep::{Post, Pre, Prepare, Rollout};
        for (step, outcome, on_failure, is_rollback, expected) in [
            (Post, Outcome::FAIL, OnFailure::Automatic, false, true),
            (Rollout, Outcome::FAIL, OnFailure::Automatic, false, true),
            (Pre, Outcome::FAIL, OnFailure::Automatic, false, false),
            (Prepare, Outcome::FAIL, OnFailure::Automatic, false, false),
            (Post, Outcome::ABORTED, OnFailure::Automatic, false, false),
            (Post, Outcome::SUPERSEDED, OnFailure::Automatic, false, false),
            (Post, Outcome::FAIL, OnFailure::None, false, false),
            (Post, Outcome::FAIL, OnFailure::PullRequest, false, false),
            (Post, Outcome::FAIL, OnFailure::AutomaticAndPullRequest, false, true),
            (Post, Outcome::FAIL, OnFailure::Automatic, true, false),
        ] {
            let run = deployment(2, "b", &deploying(delivery("s1", "b"), 2), Phase::Failed);
            let failure = Some(DeploymentFailure { step, outcome, message: "exit 3".to_owned() });
            let run = DeploymentRun { failure, on_failure, is_rollback, ..run };
            let why = expected.then(|| "version 2 failed: exit 3".to_owned());
            assert_eq!(why_rolled_back(&run), why, "{step:?} {outcome:?} {on_failure:?} {is_rollback}");
        }
    }
}
