//! What a writer has written on a commit, and what it has to write now. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::commit_status::{CommitStatus, Posted};

/// The statuses of a revision, as they were at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendering {
    /// Later renderings have higher numbers.
    pub number: u64,
    /// All of them.
    pub statuses: Vec<CommitStatus>,
}

/// The number that a status is remembered with which readers may not see: another life of the store may have written
/// meanwhile, or a process died while it replaced it.
pub const DOUBTED: u64 = 0;

/// What of a rendering is news to readers of `posted`, in order. What is older than what they have read is not, whether
/// by its attempt or as a rendering; and within an attempt an outcome is never taken back, so that a late `pending` is
/// no news either. Of what is doubted everything is news.
pub fn news(posted: &[Posted], rendering: Rendering) -> Vec<CommitStatus> {
    let Rendering { number, statuses } = rendering;
    let known: BTreeMap<&str, &Posted> = posted.iter().map(|known| (known.status.context.as_str(), known)).collect();
    let is_news = |status: &CommitStatus| {
        let Some(known) = known.get(status.context.as_str()) else { return true };
        let (before, reopens) = (&known.status, status.attempt > known.status.attempt);
        let is_late = (status.attempt, number) < (before.attempt, known.rendering);
        let takes_back = before.is_outcome() && !status.state.is_final() && !reopens;
        let is_alike = before.reads_like(status) && before.lacks_some == status.lacks_some;
        known.rendering == DOUBTED || !is_late && !takes_back && !is_alike
    };
    statuses.into_iter().filter(is_news).collect()
}

/// The outcomes that `next` takes the place of. An open status is replaced in the end whatever becomes of it, but an outcome
/// may come again.
pub fn outcomes_before<'a>(posted: &'a [Posted], next: &[CommitStatus]) -> Vec<&'a CommitStatus> {
    let next: BTreeSet<&str> = next.iter().map(|status| status.context.as_str()).collect();
    let is_replaced = |known: &&Posted| next.contains(known.status.context.as_str());
    let outcomes = posted.iter().filter(|known| known.rendering != DOUBTED && known.status.state.is_final());
    outcomes.filter(is_replaced).map(|known| &known.status).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::commit_status::StatusState;
    use crate::model::ids::CommitId;

    fn status(state: StatusState, attempt: u32) -> CommitStatus {
        CommitStatus { attempt, ..CommitStatus::new(CommitId::new("c"), "launchway/dev", state, String::new()) }
    }

    #[test]
    fn an_outcome_that_is_replaced_is_doubted_until_it_is_known_what_readers_see() {
        use StatusState::{Running, Success};
        let next = [status(Running, 2)];
        for (state, rendering, expected) in [(Success, 5, 1), (Success, DOUBTED, 0), (Running, 5, 0)] {
            let posted = [Posted { status: status(state, 1), rendering }];
            assert_eq!(outcomes_before(&posted, &next).len(), expected, "{state:?} as of {rendering}");
            assert!(outcomes_before(&posted, &[]).is_empty());
        }
    }

    #[test]
    fn outcomes_stay_within_their_attempt_and_nothing_goes_back_in_time() {
        use StatusState::{Failure, Pending, Running, Skipped, Success};
        // What was written: state, attempt, rendering; what is rendered now; whether that is news.
        for (known, rendered, expected) in [
            ((Success, 1, 5), (Pending, 1, 6), false),
            ((Failure, 1, 5), (Running, 1, 6), false),
            ((Success, 1, 5), (Success, 1, 6), false),
            ((Success, 1, 5), (Success, 2, 6), false),
            ((Failure, 1, 5), (Pending, 2, 6), true),
            ((Failure, 1, 5), (Success, 1, 6), true),
            ((Failure, 2, 5), (Success, 1, 6), false),
            ((Pending, 1, 5), (Running, 1, 6), true),
            ((Running, 1, 5), (Pending, 1, 5), true),
            ((Running, 1, 5), (Pending, 1, 4), false),
            ((Success, 1, 5), (Failure, 1, 4), false),
            ((Skipped, 0, 5), (Pending, 0, 6), true),
            ((Skipped, 0, 5), (Pending, 0, 4), false),
            ((Skipped, 1, 5), (Pending, 1, 6), true),
            ((Skipped, 2, 5), (Running, 1, 6), false),
            ((Success, 1, 0), (Success, 1, 4), true),
            ((Success, 2, 0), (Running, 1, 4), true),
        ] {
            let posted = Posted { status: status(known.0, known.1), rendering: known.2 };
            let rendering = Rendering { number: rendered.2, statuses: vec![status(rendered.0, rendered.1)] };
            assert_eq!(!news(&[posted], rendering).is_empty(), expected, "{known:?} then {rendered:?}");
        }
    }

    #[test]
    fn a_stage_of_which_something_was_never_reached_may_wait_for_that_again() {
        let pending = || Rendering { number: 6, statuses: vec![status(StatusState::Pending, 1)] };
        for (lacks_some, expected) in [(false, 0), (true, 1)] {
            let status = CommitStatus { lacks_some, ..status(StatusState::Success, 1) };
            assert_eq!(news(&[Posted { status, rendering: 5 }], pending()).len(), expected);
        }
    }
}
