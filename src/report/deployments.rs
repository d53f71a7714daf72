//! What a host's environments show of a revision: a deployment for each time that it was brought to a stage, and how that
//! goes. They follow from the revision's statuses and from what was told before. Pure.

use std::collections::BTreeSet;

use crate::model::commit_status::{CommitStatus, Posted, StatusState};
use crate::model::ids::StageName;
use crate::report::ledger::DOUBTED;
use crate::report::status::{stage_context, stage_of};

/// Stands between a stage and the number of a deployment there, and in no stage's name.
const NUMBERED: char = '#';

/// One of the deployments of a revision to a stage.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deployment {
    /// The stage, which is the environment on a host.
    pub stage: StageName,
    /// 1, and one more for each time that it was brought there again after it had ended.
    pub number: u32,
}

impl Deployment {
    /// Which one a status of [`told`] is about.
    pub fn of(status: &CommitStatus) -> Self {
        let (stage, number) = status.context.split_once(NUMBERED).unwrap_or((&status.context, "1"));
        Self { stage: StageName::new(stage), number: number.parse().unwrap_or(1) }
    }

    /// What such a status is remembered under, and what the host keeps with the deployment.
    fn context(&self) -> String {
        match self.number {
            1 => self.stage.to_string(),
            number => format!("{}{NUMBERED}{number}", self.stage),
        }
    }
}

/// The contexts of the stages of which something was told.
pub fn known(posted: &[Posted]) -> BTreeSet<String> {
    posted.iter().map(|posted| stage_context(&Deployment::of(&posted.status).stage)).collect()
}

/// What there is to tell, given a revision's statuses. What has not begun is none of it, and of what goes on only that it
/// does. What had ended and is done again is another deployment: a host takes no outcome back.
pub fn told(statuses: &[CommitStatus], posted: &[Posted]) -> Vec<CommitStatus> {
    let of = |status: &CommitStatus| {
        let stage = stage_of(&status.context)?;
        let number = number(&stage, status, posted)?;
        Some(CommitStatus { context: Deployment { stage, number }.context(), ..status.clone() })
    };
    statuses.iter().filter_map(of).collect()
}

/// Whether it is not known that anybody was told of a deployment before it had ended well. A newer one may have taken its
/// place meanwhile, and would seem to be the older one.
pub fn is_late(told: &CommitStatus, posted: &[Posted]) -> bool {
    let is_known = |known: &Posted| known.status.context == told.context && known.rendering != DOUBTED;
    told.state == StatusState::Success && !posted.iter().any(is_known)
}

/// What is told instead where that is so; nothing, unless the host may have it as going on.
pub fn replaced(told: &CommitStatus, posted: &[Posted]) -> Option<CommitStatus> {
    let goes_on = |known: &&Posted| known.status.context == told.context && !known.status.state.is_final();
    let description = "a newer one has taken its place".to_owned();
    posted.iter().find(goes_on).map(|_| CommitStatus { state: StatusState::Cancelled, description, ..told.clone() })
}

/// Those of which a host is about to hear for the first time. They are doubted until it is known that it has: whoever dies
/// meanwhile has to see to their ends.
pub fn begun<'a>(next: &'a [CommitStatus], posted: &[Posted]) -> Vec<&'a CommitStatus> {
    let is_new = |status: &&CommitStatus| posted.iter().all(|known| known.status.context != status.context);
    next.iter().filter(is_new).collect()
}

/// Which of a stage's deployments a status is about, if it is about one.
fn number(stage: &StageName, status: &CommitStatus, posted: &[Posted]) -> Option<u32> {
    let begins = has_begun(status.state);
    let known = posted.iter().map(|known| (Deployment::of(&known.status), known));
    let last = known.filter(|(deployment, _)| deployment.stage == *stage).max_by_key(|(known, _)| known.number);
    let Some((Deployment { number, .. }, Posted { status: before, rendering })) = last else {
        return begins.then_some(1);
    };
    let is_again = status.attempt > before.attempt;
    let reads_alike = |status: &CommitStatus| (status.state, status.description.clone(), status.path.clone());
    let is_doubted = *rendering == DOUBTED && !is_again;
    let is_told = match before.state.is_final() {
        false => status.state.is_final() || is_doubted && begins,
        true if is_doubted => begins,
        // What was cancelled stays so, until it is done again.
        true => begins && (is_again || has_begun(before.state)) && reads_alike(before) != reads_alike(status),
    };
    is_told.then_some(number + u32::from(is_again && before.state.is_final()))
}

/// Whether anything of a delivery has been under way, or has ended by itself.
fn has_begun(state: StatusState) -> bool {
    matches!(state, StatusState::Running | StatusState::Success | StatusState::Failure | StatusState::Error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::CommitId;

    fn status(context: &str, state: StatusState, attempt: u32) -> CommitStatus {
        CommitStatus {
            attempt,
            ..CommitStatus::new(CommitId::new("c"), context, state, format!("{state} of {attempt}"))
        }
    }

    #[test]
    fn a_deployment_begins_with_the_delivery_and_another_one_when_it_is_done_again() {
        use StatusState::{Cancelled, Error, Failure, Pending, Running, Skipped, Success, Unchanged};
        // What was told last, as a context, a state and an attempt; what is rendered; what is told.
        for (known, rendered, expected) in [
            (None, (Pending, 1), None),
            (None, (Skipped, 1), None),
            (None, (Unchanged, 1), None),
            (None, (Cancelled, 1), None),
            (None, (Running, 1), Some("dev")),
            (None, (Success, 3), Some("dev")),
            (None, (Failure, 1), Some("dev")),
            (None, (Error, 1), Some("dev")),
            (Some(("dev", Running, 1)), (Pending, 1), None),
            (Some(("dev", Running, 1)), (Running, 2), None),
            (Some(("dev", Running, 1)), (Success, 2), Some("dev")),
            (Some(("dev", Running, 1)), (Cancelled, 1), Some("dev")),
            (Some(("dev", Running, 1)), (Unchanged, 1), Some("dev")),
            (Some(("dev", Success, 1)), (Success, 1), None),
            (Some(("dev", Success, 1)), (Failure, 1), Some("dev")),
            (Some(("dev", Success, 1)), (Pending, 2), None),
            (Some(("dev", Success, 1)), (Cancelled, 2), None),
            (Some(("dev", Success, 1)), (Unchanged, 2), None),
            (Some(("dev", Cancelled, 1)), (Success, 1), None),
            (Some(("dev", Cancelled, 1)), (Success, 2), Some("dev#2")),
            (Some(("dev", Success, 1)), (Running, 2), Some("dev#2")),
            (Some(("dev", Success, 1)), (Success, 2), Some("dev#2")),
            (Some(("dev#2", Running, 2)), (Failure, 2), Some("dev#2")),
            (Some(("dev#9", Failure, 9)), (Running, 10), Some("dev#10")),
        ] {
            let posted =
                known.map(|(context, state, attempt)| Posted { status: status(context, state, attempt), rendering: 5 });
            let posted: Vec<Posted> = posted.into_iter().collect();
            let rendered = [
                status("launchway/plan", Success, 1),
                status("launchway/dev", rendered.0, rendered.1),
                status("launchway/dev/web", Running, 1),
            ];
            let told = told(&rendered, &posted);
            let told: Vec<&str> = told.iter().map(|told| told.context.as_str()).collect();
            assert_eq!(told, expected.into_iter().collect::<Vec<_>>(), "{known:?} then {rendered:?}");
        }
    }

    #[test]
    fn an_attempt_in_an_earlier_stage_that_changes_nothing_here_is_no_deployment() {
        let before = CommitStatus { description: "web version 2".into(), ..status("dev", StatusState::Success, 2) };
        let now = CommitStatus { context: "launchway/dev".into(), attempt: 3, ..before.clone() };
        assert!(told(&[now], &[Posted { status: before, rendering: 5 }]).is_empty());
    }

    #[test]
    fn the_last_of_several_counts_and_what_is_doubted_is_told_again() {
        let posted =
            |context: &str, state, attempt, rendering| Posted { status: status(context, state, attempt), rendering };
        let ended = [
            posted("dev", StatusState::Failure, 1, 3),
            posted("dev#10", StatusState::Success, 12, 9),
            posted("dev#2", StatusState::Failure, 2, 4),
            posted("production", StatusState::Running, 1, 4),
        ];
        let contexts = |posted: &[Posted], state, attempt| {
            let told = told(&[status("launchway/dev", state, attempt)], posted);
            told.into_iter().map(|told| told.context).collect::<Vec<_>>()
        };
        assert_eq!(contexts(&ended, StatusState::Running, 13), ["dev#11"]);
        assert_eq!(known(&ended), ["launchway/dev", "launchway/production"].map(str::to_owned).into());
        for (rendered, expected) in [((StatusState::Failure, 1), "dev"), ((StatusState::Running, 2), "dev#2")] {
            let doubted = [posted("dev", StatusState::Failure, 1, DOUBTED)];
            assert_eq!(contexts(&doubted, rendered.0, rendered.1), [expected]);
        }
    }

    #[test]
    fn what_nobody_was_told_of_before_it_ended_is_late() {
        let posted = [Posted { status: status("dev", StatusState::Running, 1), rendering: 5 }];
        for (context, state, expected) in [
            ("dev", StatusState::Success, false),
            ("dev#2", StatusState::Success, true),
            ("test", StatusState::Success, true),
            ("test", StatusState::Failure, false),
            ("test", StatusState::Running, false),
        ] {
            assert_eq!(is_late(&status(context, state, 1), &posted), expected, "{context} {state}");
        }
    }

    #[test]
    fn what_the_host_may_have_as_going_on_is_ended_and_nothing_else_is_told_late() {
        let success = status("dev", StatusState::Success, 1);
        for (known, expected) in [
            (None, None),
            (Some(StatusState::Running), Some(StatusState::Cancelled)),
            (Some(StatusState::Success), None),
        ] {
            let posted: Vec<Posted> =
                known.map(|state| Posted { status: status("dev", state, 1), rendering: DOUBTED }).into_iter().collect();
            assert!(is_late(&success, &posted));
            assert_eq!(replaced(&success, &posted).map(|told| told.state), expected, "{known:?}");
            assert_eq!(begun(std::slice::from_ref(&success), &posted).len(), usize::from(known.is_none()));
        }
    }
}
