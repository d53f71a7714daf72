//! The state machines walked whole: what becomes of every state with every fact is written down in tables beside this
//! file, and what holds for all of them is tried on random facts.
//!
//! `UPDATE_STORIES=1` writes the tables anew; read the difference before it is committed.

mod deployment;
mod samples;
mod sequence;
mod slot;
mod table;

use launchway::model::evaluation::Reading;
use launchway::model::event::{Event, Timer};
use launchway::model::outcome::{FailureReason, Outcome, PodOutcome};
use launchway::model::run::{DeploymentStep, Phase};
use launchway::model::wanted::Progress;
use serde_json::{Value, json};

fn failed() -> PodOutcome {
    PodOutcome::Failed { code: 1, reason: FailureReason::Error, message: "boom".into() }
}

fn timer(timer: Timer) -> Event {
    Event::Timer { timer }
}

fn cancel() -> Event {
    Event::Cancel { outcome: Outcome::ABORTED, reason: "cancelled by ann".into() }
}

fn pod_ended(pod: &str, outcome: PodOutcome) -> Event {
    Event::pod_ended(pod.into(), outcome)
}

fn served(generation: u64, updated: u32, converged: bool) -> Event {
    let progress = Progress { updated, available: updated, old: 2 - updated.min(2) };
    let (problem, not_listening, brought) = Default::default();
    Event::Served { generation, progress, converged, problem, not_listening, brought }
}

/// All pods are there, and a service that leads to them does not listen: their delivery has changed it, or not.
fn not_listening(generation: u64, brought: bool) -> Event {
    let progress = Progress { updated: 2, available: 2, old: 0 };
    let (problem, not_listening) = (String::new(), "service `web`: port 80 is in use".into());
    Event::Served { generation, progress, converged: true, problem, not_listening, brought }
}

fn services_checked(problem: &str) -> Event {
    Event::ServicesChecked { problem: problem.into() }
}

fn executor_started(task: usize, executor: &str) -> Event {
    Event::ExecutorStarted { task, executor: executor.into(), id: String::new(), data: Value::Null }
}

fn executor_reported(task: usize, executor: &str) -> Event {
    Event::ExecutorReported { task, executor: executor.into(), id: "e3".into(), message: "half way".into() }
}

fn executor_finished(task: usize, executor: &str, outcome: Outcome) -> Event {
    Event::ExecutorFinished {
        task,
        executor: executor.into(),
        id: String::new(),
        outcome,
        message: "done".into(),
        data: Value::Null,
    }
}

fn measured(task: usize) -> Event {
    let readings = [("time".to_owned(), Reading::of("5"))].into();
    Event::Measured { task, at: samples::NOW, readings }
}

fn not_measured(task: usize) -> Event {
    Event::NotMeasured { task, message: "nobody is there".into() }
}

fn evaluated(task: usize, outcome: Outcome) -> Event {
    let evaluation = json!({"result": outcome.result.as_str()});
    Event::Evaluated { task, outcome, message: "judged".into(), evaluation }
}

/// What the deployments of a config and of its replication controllers tell each other.
fn of_controllers(step: DeploymentStep) -> Vec<(Event, &'static str)> {
    let failed = |has_left| {
        let (controller, outcome, message) = ("east".into(), Outcome::FAIL, "no progress".into());
        Event::FollowerFailed { controller, outcome, message, has_left }
    };
    let ended = |phase, outcome| Event::LeaderEnded { phase, outcome, message: "so it was".into() };
    vec![
        (Event::Led { step: DeploymentStep::Deployer }, "Deployer"),
        (Event::Led { step: DeploymentStep::Rollout }, "Rollout"),
        (Event::Led { step: DeploymentStep::Restore }, "Restore"),
        (ended(Phase::Complete, Outcome::PASS), "well"),
        (ended(Phase::Failed, Outcome::FAIL), "badly"),
        (Event::Followed { controller: "east".into(), step }, ""),
        (failed(false), ""),
        (failed(true), "and left"),
    ]
}

/// What was decided about going back at a task of a sequence: that something does, that nothing has to, that it cannot.
fn of_rollbacks(task: usize) -> Vec<(Event, &'static str)> {
    let goes_back = |task, to: &[(&str, u32)]| {
        let to = to.iter().map(|(config, version)| ((*config).to_owned(), *version)).collect();
        Event::GoesBack { task, to, left: "version 1 of `side` serves".into() }
    };
    vec![
        (goes_back(task, &[("api", 4), ("web", 1)]), "two"),
        (goes_back(task, &[]), "none"),
        (goes_back(9, &[("web", 1)]), "elsewhere"),
        (Event::CannotGoBack { task, message: "it is paused".into() }, ""),
    ]
}

fn not_told() -> Event {
    let (kind, id, problem) = ("test.finished".into(), "1".into(), "it answers 400".into());
    Event::NotTold { sink: "ci".into(), kind, id, problem }
}

/// A fact's word in the tables. Every fact has one: a new kind does not compile until it is walked too.
fn kind(event: &Event) -> &'static str {
    match event {
        Event::Queued { .. } => "queued",
        Event::Admitted => "admitted",
        Event::Waiting { .. } => "waiting",
        Event::Cancel { .. } => "cancel",
        Event::DeploymentStarted { .. } => "deployment started",
        Event::DeploymentEnded { .. } => "deployment ended",
        Event::GoesBack { .. } => "goes back",
        Event::CannotGoBack { .. } => "cannot go back",
        Event::Prepared => "prepared",
        Event::PrepareFailed { .. } => "prepare failed",
        Event::Delayed { .. } => "delayed",
        Event::PodStarted { .. } => "pod started",
        Event::PodEnded { .. } => "pod ended",
        Event::DeployerAsked { .. } => "deployer asked",
        Event::Served { .. } => "served",
        Event::ServicesChecked { .. } => "services checked",
        Event::Disowned { .. } => "disowned",
        Event::Timer { timer: Timer::Deadline } => "deadline",
        Event::Timer { timer: Timer::Progress } => "progress timer",
        Event::Timer { timer: Timer::Retry } => "retry timer",
        Event::Timer { timer: Timer::Delay } => "delay timer",
        Event::Timer { timer: Timer::Start } => "start timer",
        Event::Timer { timer: Timer::Finish } => "finish timer",
        Event::Led { .. } => "led",
        Event::LeaderEnded { .. } => "leader ended",
        Event::Followed { .. } => "followed",
        Event::FollowerFailed { .. } => "follower failed",
        Event::ExecutorStarted { .. } => "executor started",
        Event::ExecutorReported { .. } => "executor reported",
        Event::ExecutorFinished { .. } => "executor finished",
        Event::Measured { .. } => "measured",
        Event::NotMeasured { .. } => "not measured",
        Event::Evaluated { .. } => "evaluated",
        Event::Scaled { .. } => "scaled",
        Event::Paused { .. } => "paused",
        Event::Resumed { .. } => "resumed",
        Event::Promoted { .. } => "promoted",
        Event::Executed { .. } => "executed",
        Event::NotDelivered { .. } => "not delivered",
        Event::NotApproved { .. } => "not approved",
        Event::NotTold { .. } => "not told",
    }
}

/// Every kind of fact; a table in which one is not tried is not whole.
const KINDS: [&str; 41] = [
    "goes back",
    "cannot go back",
    "led",
    "leader ended",
    "followed",
    "follower failed",
    "not told",
    "not delivered",
    "not approved",
    "queued",
    "admitted",
    "waiting",
    "cancel",
    "deployment started",
    "deployment ended",
    "prepared",
    "prepare failed",
    "delayed",
    "pod started",
    "pod ended",
    "deployer asked",
    "served",
    "services checked",
    "disowned",
    "deadline",
    "progress timer",
    "retry timer",
    "delay timer",
    "start timer",
    "finish timer",
    "executor started",
    "executor reported",
    "executor finished",
    "measured",
    "not measured",
    "evaluated",
    "scaled",
    "paused",
    "resumed",
    "promoted",
    "executed",
];
