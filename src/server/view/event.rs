//! What happened to runs, for people.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::time;
use crate::model::cloud_event::short;
use crate::model::event::Event;
use crate::model::outcome::PodOutcome;
use crate::model::run::{Asked, DeploymentStep};
use crate::store::EventRow;

/// A fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventView {
    /// Grows over all runs.
    pub number: i64,
    /// The run that received it.
    pub run: String,
    /// When.
    pub at: String,
    /// What kind of fact, such as `podEnded`.
    pub event: String,
    /// What happened.
    pub message: String,
}

impl From<&EventRow> for EventView {
    fn from(row: &EventRow) -> Self {
        Self {
            number: row.number,
            run: row.run.to_string(),
            at: time(row.at),
            event: tag(&row.event),
            message: message(&row.event),
        }
    }
}

/// The word that stands for the variant on disk, so that there is one list of them.
fn tag(event: &Event) -> String {
    let value = serde_json::to_value(event).unwrap_or_default();
    value.get("event").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn message(event: &Event) -> String {
    match event {
        Event::Queued { cause } => format!("queued: {cause}"),
        Event::Admitted => "it is its turn".to_owned(),
        Event::Waiting { reason } => format!("waits: {reason}"),
        Event::Cancel { outcome, reason } => format!("{}: {reason}", outcome.word()),
        Event::DeploymentStarted { config, deployment } => format!("{config} is deployed by {deployment}"),
        Event::DeploymentEnded { deployment, outcome, message, .. } => {
            format!("{deployment} ended, {}: {message}", outcome.word())
        }
        Event::GoesBack { to, left, .. } => going_back(to, left),
        Event::CannotGoBack { message, .. } => format!("cannot go back: {message}"),
        Event::Prepared => "images are ready".to_owned(),
        Event::PrepareFailed { message } => format!("images are not ready: {message}"),
        Event::Delayed { message } if message.is_empty() => "goes on".to_owned(),
        Event::Delayed { message } => format!("tried again: {message}"),
        Event::PodStarted { pod } => format!("{pod} was started"),
        Event::PodEnded { pod, outcome, .. } => format!("{pod} {}", ending(outcome)),
        Event::DeployerAsked { pod, asked, .. } => format!("{pod} asks for {}", asked_for(*asked)),
        Event::Led { step } => format!("led to its step `{}`", step_word(*step)),
        Event::LeaderEnded { outcome, message, .. } => format!("what leads it ended, {}: {message}", outcome.word()),
        Event::Followed { controller, step } => format!("{controller} has done its part of `{}`", step_word(*step)),
        Event::FollowerFailed { controller, message, .. } => format!("{controller} cannot go on: {message}"),
        Event::ExecutorStarted { executor, .. } => format!("{executor} has started it"),
        Event::ExecutorReported { executor, message, .. } => format!("{executor}: {message}"),
        Event::ExecutorFinished { executor, outcome, message, .. } => {
            format!("finished by {executor}, {}: {message}", outcome.word()).trim_end_matches([':', ' ']).to_owned()
        }
        Event::Measured { readings, .. } => {
            format!("measured: {}", readings.keys().map(String::as_str).collect::<Vec<_>>().join(", "))
        }
        Event::NotMeasured { message, .. } => format!("cannot be measured: {message}"),
        Event::Evaluated { message, .. } => format!("evaluated: {message}"),
        Event::Served { progress, converged, not_listening, .. } => {
            let so_far =
                format!("{} updated, {} available, {} old pods", progress.updated, progress.available, progress.old);
            match (*converged, not_listening.as_str()) {
                (true, "") => format!("{so_far}: as wanted"),
                (_, "") => so_far,
                (_, not_listening) => format!("{so_far}; {not_listening}"),
            }
        }
        Event::ServicesChecked { problem } if problem.is_empty() => "what was applied listens".to_owned(),
        Event::ServicesChecked { problem } => format!("what was applied does not listen: {problem}"),
        Event::Disowned { reason } => format!("gives way: {reason}"),
        Event::Scaled { from, to, by, .. } => scaled(*from, *to, by),
        Event::Paused { by } => format!("paused by {by}"),
        Event::Resumed { by } => format!("resumed by {by}"),
        Event::Promoted { by } => format!("promoted by {by}"),
        Event::Executed { pod, command, by } => format!("`{command}` was run in {pod} by {by}"),
        Event::NotTold { sink, kind, problem, .. } => format!("{} was not told to {sink}: {problem}", short(kind)),
        Event::NotDelivered { by, reason } => format!("nothing is delivered on {by}: {reason}"),
        Event::NotApproved { commit, reason } => format!("what {} approves does not count: {reason}", commit.short()),
        Event::Timer { timer } => format!("the time for {} is over", timer.as_str()),
    }
}

/// What goes back to which version, and why the rest does not.
fn going_back(to: &BTreeMap<String, u32>, left: &str) -> String {
    let back = to.iter().map(|(config, version)| format!("{config} goes back to version {version}"));
    let left = Some(left.to_owned()).filter(|left| !left.is_empty());
    back.chain(left).collect::<Vec<_>>().join("; ")
}

/// A step of a deployment that others follow.
fn step_word(step: DeploymentStep) -> String {
    format!("{step:?}").to_lowercase()
}

/// What became of a number of replicas, for people.
pub(super) fn scaled(from: u32, to: u32, by: &str) -> String {
    format!("scaled from {from} to {to} by {by}")
}

/// What a deployer asks for, for people.
fn asked_for(asked: Asked) -> String {
    match asked {
        Asked::Scale { new, old: None } => format!("{new} new pods"),
        Asked::Scale { new, old: Some(old) } => format!("{new} new and {old} old pods"),
        Asked::Until { percent } => format!("{percent} % new pods"),
    }
}

fn ending(outcome: &PodOutcome) -> String {
    match outcome {
        PodOutcome::Succeeded => "succeeded".to_owned(),
        PodOutcome::Failed { code, message, .. } => format!("failed with exit code {code}: {message}"),
        PodOutcome::Unknown { message, .. } => format!("ended, and nobody knows how: {message}"),
    }
}
