//! What was written on a commit, and what has to be written now. Pure.

use crate::model::commit_status::CommitStatus;

/// What of `rendered` is news to readers of `posted`, in order. An outcome is never changed back within its attempt,
/// so a late `pending` is not news.
pub fn news(posted: &[CommitStatus], rendered: Vec<CommitStatus>) -> Vec<CommitStatus> {
    let known = |status: &CommitStatus| posted.iter().find(|known| known.context == status.context);
    let is_news = |status: &CommitStatus| match known(status) {
        None => true,
        Some(known) if known == status => false,
        Some(known) => status.attempt > known.attempt || !known.state.is_final() || status.state.is_final(),
    };
    rendered.into_iter().filter(is_news).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::commit_status::StatusState;
    use crate::model::ids::CommitId;

    fn status(state: StatusState, attempt: u32) -> CommitStatus {
        CommitStatus {
            commit: CommitId::new("c"),
            context: "launchway/dev".into(),
            state,
            description: String::new(),
            path: None,
            attempt,
        }
    }

    #[test]
    fn a_late_pending_never_overwrites_an_outcome_of_its_attempt() {
        use StatusState::{Failure, Pending, Running, Success};
        for (known, rendered, expected) in [
            ((Success, 1), (Pending, 1), false),
            ((Failure, 1), (Running, 1), false),
            ((Success, 1), (Success, 1), false),
            ((Failure, 1), (Pending, 2), true),
            ((Failure, 1), (Success, 1), true),
            ((Pending, 1), (Running, 1), true),
        ] {
            let told = news(&[status(known.0, known.1)], vec![status(rendered.0, rendered.1)]);
            assert_eq!(!told.is_empty(), expected, "{known:?} then {rendered:?}");
        }
    }
}
