//! What one context says.

use std::collections::BTreeSet;

use serde_json::json;

use crate::manifest::digest;
use crate::model::commit_status::{Details, StatusState};
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
    /// What there is to say beyond its description.
    pub(super) details: Option<Details>,
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

/// The most lines of output that are shown with a failure.
const MOST_OUTPUT: usize = 20;

/// What there is to say beyond a description: the end of the output of what failed, and what is wrong in files.
pub(super) fn details(output: &str, problems: &[String]) -> Option<Details> {
    let output: Vec<&str> = output.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let output = &output[output.len().saturating_sub(MOST_OUTPUT)..];
    if output.is_empty() && problems.is_empty() {
        return None;
    }
    let output: Vec<String> = output.iter().map(|line| (*line).to_owned()).collect();
    Some(Details::new(digest::of(&json!([output, problems])), output, problems.to_vec()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_beyond_a_line_has_an_identity_and_an_end() {
        assert!(details(" \n", &[]).is_none());
        let found = details("one\n\n two \n", &[]).unwrap();
        assert_eq!(found.output, ["one", " two"]);
        assert_eq!(found, details("one\n two", &[]).unwrap());
        assert_ne!(found, details("one", &[]).unwrap());
        let long: String = (0..100).map(|line| format!("{line}\n")).collect();
        let output = details(&long, &[]).unwrap().output;
        assert_eq!((output.len(), output[0].as_str()), (MOST_OUTPUT, "80"));
        let problems = ["a.yaml:1:1: error: no".to_owned()];
        assert_eq!(details("", &problems).unwrap().problems, problems);
    }
}
