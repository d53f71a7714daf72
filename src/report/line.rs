//! What one context says.

use crate::model::commit_status::StatusState;
use crate::model::ids::RunId;
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

/// How an outcome is written.
pub(super) fn state_of(outcome: Outcome) -> StatusState {
    match outcome.status {
        Status::Succeeded if outcome.passes() => StatusState::Success,
        Status::Succeeded => StatusState::Failure,
        Status::Errored | Status::TimedOut | Status::Unknown => StatusState::Error,
        Status::Aborted | Status::Superseded => StatusState::Cancelled,
    }
}
