//! What one context says.

use std::collections::BTreeSet;

use crate::model::commit_status::StatusState;
use crate::model::ids::{CommitId, RunId};
use crate::model::outcome::{Outcome, Status};

/// The state and description of one context.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) state: StatusState,
    pub(super) description: String,
    /// Where more is told, if it is one run's.
    pub(super) run: Option<RunId>,
    /// Grows with every attempt at what it is about.
    pub(super) attempt: u32,
}

/// Nothing is done, `"to deploy"` or `"changed"`, beside what earlier revisions are bringing.
pub(super) fn nothing(done: &str, carriers: &BTreeSet<&CommitId>) -> String {
    let carriers: Vec<&str> = carriers.iter().map(|commit| commit.short()).collect();
    match carriers.as_slice() {
        [] => format!("nothing {done}"),
        [one] => format!("nothing {done} that {one} does not bring"),
        several => format!("nothing {done} that {} do not bring", several.join(", ")),
    }
}

/// How an outcome is written.
pub(super) fn state_of(outcome: Outcome) -> StatusState {
    match outcome.status {
        Status::Succeeded if outcome.passes() => StatusState::Success,
        Status::Succeeded => StatusState::Failure,
        Status::Errored | Status::TimedOut | Status::Unknown => StatusState::Error,
        Status::Aborted | Status::Superseded => StatusState::Cancelled,
    }
}
