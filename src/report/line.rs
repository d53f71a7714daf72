//! What one context says.

use std::collections::BTreeSet;

use crate::model::commit_status::StatusState;
use crate::model::ids::{CommitId, RunId, ServiceName};
use crate::model::outcome::{Outcome, Status};

/// The state and description of one context.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) state: StatusState,
    pub(super) description: String,
    /// Where to read more, if it is one run's.
    pub(super) run: Option<RunId>,
    /// Grows with every attempt at what it is about.
    pub(super) attempt: u32,
    /// What follows, if it is open.
    pub(super) next: Next,
}

/// What has to happen before something that is open goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Next {
    /// It is not open, or another line says it.
    #[default]
    Nothing,
    /// Nothing: it goes on by itself.
    GoesOn,
    /// Its run, of this context, has its turn, unless a hold keeps it waiting, or one of these other services.
    Turn(Option<String>, BTreeSet<ServiceName>),
    /// What was planned is started, unless the repository is down.
    Start,
    /// Something else passes or ends, on which nothing of it depends.
    Another,
    /// A person lets this deployment config, named as in commands, go on, which its file pauses.
    Paused(String),
    /// A person resumes the rollout of this deployment config, which waits at a step.
    Resume(String),
    /// A person approves what a sequence is at, or rejects it.
    Approve,
    /// A person deploys this deployment config all the same, which hooks would deploy again and again.
    Latest(String),
    /// A person lets this deployment config be deployed again, whose content was rolled back.
    Release(String),
    /// A person pushes what is missing.
    Push,
    /// A person starts the stage.
    ByHand,
    /// Something happens outside on which the stage starts, such as a tag.
    Event,
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
