//! What one context says.

use crate::model::commit_status::StatusState;
use crate::model::ids::RunId;
use crate::model::outcome::Verdict;

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

/// How a verdict is written.
pub(super) fn state_of(verdict: Verdict) -> StatusState {
    match verdict {
        Verdict::Success => StatusState::Success,
        Verdict::Failure => StatusState::Failure,
        Verdict::Error => StatusState::Error,
        Verdict::Cancelled | Verdict::Superseded => StatusState::Cancelled,
    }
}
