//! What became of the hooks and tasks of a service's delivery.

use crate::engine::deployment::strategy;
use crate::engine::lifecycle::policy::describe;
use crate::model::commit_status::StatusState;
use crate::model::deployment_config::{FailurePolicy, HookPoint};
use crate::model::outcome::{FailureReason, Outcome, PodOutcome, Status};
use crate::model::run::{DeploymentRun, HookRecord, SequenceRun, TaskRecord};
use crate::model::shipyard::DEPLOYMENT_TASK;
use crate::report::delivery::Delivery;
use crate::report::line::{Line, Next, details, state_of};

/// Begins what is said of a hook that failed where that is ignored.
pub(crate) const IGNORED: &str = "ignored: ";

/// The hooks and tasks of a run that have begun, in order. All are of the attempt of the run.
pub(super) fn lines(run: &SequenceRun, delivery: &Delivery<'_>) -> Vec<(String, Line)> {
    let mut steps = Vec::new();
    for task in run.tasks.iter().filter(|task| task.started_at.is_some()) {
        if task.name == DEPLOYMENT_TASK {
            let deployments =
                task.deployments.iter().filter_map(|deployment| delivery.deployment(deployment.run.as_ref()));
            steps.extend(deployments.flat_map(|deployment| hooks(deployment, run, delivery)));
        } else {
            steps.push((task.step.clone(), task_line(run, task)));
        }
    }
    let attempt = delivery.attempt(&run.service.stage, &run.service.service);
    steps.into_iter().map(|(step, line)| (step, Line { attempt, ..line })).collect()
}

/// The tasks that have begun of a sequence that delivers nothing, as `<sequence>.<task>`.
pub(super) fn of_other(run: &SequenceRun) -> impl Iterator<Item = (String, Line)> {
    let begun = run.tasks.iter().filter(|task| task.started_at.is_some());
    begun.map(|task| (format!("{}.{}", run.sequence(), task.step), task_line(run, task)))
}

/// A step of an earlier attempt: what it says of that one is no longer so.
pub(super) fn not_reached(run: &SequenceRun, attempt: u32) -> Line {
    let (state, description) = match run.ended_at {
        None => (StatusState::Pending, "not reached yet in this attempt"),
        Some(_) => (StatusState::Skipped, "not reached in the last attempt"),
    };
    let (description, next) = (description.to_owned(), Next::Nothing);
    Line { state, description, run: Some(run.id.clone()), attempt, next, details: None }
}

fn task_line(run: &SequenceRun, task: &TaskRecord) -> Line {
    let state = task.outcome.map_or(StatusState::Running, state_of);
    let tries = task.tries.len();
    let description = match task.outcome {
        Some(_) => task.message.clone(),
        None if !task.message.is_empty() && tries > 0 => format!("does not start yet: {}", task.message),
        None if !task.message.is_empty() => task.message.clone(),
        None if tries > 1 => format!("running, try {tries}"),
        None => "running".into(),
    };
    Line { state, description, run: Some(run.id.clone()), attempt: run.attempt, next: Next::Nothing, details: None }
}

/// Each hook that a run had a deployment run, once: its newest try.
fn hooks(deployment: &DeploymentRun, run: &SequenceRun, delivery: &Delivery<'_>) -> Vec<(String, Line)> {
    let mut newest: Vec<&HookRecord> = Vec::new();
    for hook in deployment.hooks.iter().filter(|hook| hook.by == run.id) {
        newest.retain(|earlier| earlier.point != hook.point);
        newest.push(hook);
    }
    let prefix = prefix(deployment, run, delivery);
    newest.into_iter().map(|hook| (format!("{prefix}{}", hook.point), hook_line(deployment, run, hook))).collect()
}

/// `<config>.` where the service has several deployment configs. What the revision declares decides, not what a run does,
/// so that a retry of one of them writes where the first attempt did.
fn prefix(deployment: &DeploymentRun, run: &SequenceRun, delivery: &Delivery<'_>) -> String {
    let several = match delivery.configs(&run.service.stage, &run.service.service) {
        Some(configs) => configs > 1,
        // Nobody knows: only where the names agree is it surely the only one.
        None => deployment.config.name != run.service.service.as_str(),
    };
    if several { format!("{}.", deployment.config.name) } else { String::new() }
}

fn hook_line(run: &DeploymentRun, by: &SequenceRun, hook: &HookRecord) -> Line {
    let over = run.ended_at.is_some() || run.parent != by.id;
    let policy = run.spec.strategy.hook(hook.point).map(|hook| hook.failure_policy);
    let (state, description) = match (&hook.outcome, hook.ended_at) {
        (None, _) | (_, None) if !over => (StatusState::Running, "running".into()),
        (None, _) | (_, None) => (StatusState::Error, "its end was not seen".into()),
        (Some(outcome), Some(ended)) => {
            let told = describe(outcome, ended.since(hook.started_at));
            match (outcome, stopped(run, by, hook.point), policy) {
                (PodOutcome::Succeeded, _, _) => (StatusState::Success, told),
                (PodOutcome::Failed { reason: FailureReason::Cancelled, .. }, Some(by), _) => {
                    (StatusState::Cancelled, by.to_owned())
                }
                (_, Some(by), _) => (StatusState::Cancelled, format!("{by}; {told}")),
                (_, None, Some(FailurePolicy::Ignore)) => (StatusState::Success, format!("{IGNORED}{told}")),
                (_, None, Some(FailurePolicy::Retry)) if !over => {
                    (StatusState::Running, format!("tries again: {told}"))
                }
                _ => (StatusState::Failure, told),
            }
        }
    };
    let details = details(output(state, hook), &[]);
    Line { state, description, run: Some(run.id.clone()), attempt: run.attempt, next: Next::Nothing, details }
}

/// What a hook has printed last, if it failed.
fn output(state: StatusState, hook: &HookRecord) -> &str {
    match &hook.outcome {
        Some(PodOutcome::Failed { message, .. } | PodOutcome::Unknown { message, .. })
            if matches!(state, StatusState::Failure | StatusState::Error) =>
        {
            message
        }
        Some(_) | None => "",
    }
}

/// Why a hook was stopped, or not tried again: somebody or a newer revision ended the deployment while it was there.
fn stopped<'a>(run: &'a DeploymentRun, by: &'a SequenceRun, point: HookPoint) -> Option<&'a str> {
    if run.parent != by.id {
        return stopped_earlier(run, by);
    }
    let failure = run.failure.as_ref()?;
    let at = strategy::hook_point(&run.spec.strategy, failure.step);
    let by_somebody = was_ended(failure.outcome);
    (by_somebody && at == Some(point)).then_some(failure.message.as_str())
}

/// The same of an earlier attempt: the run that waited for it knows how it ended.
fn stopped_earlier<'a>(run: &DeploymentRun, by: &'a SequenceRun) -> Option<&'a str> {
    let mut deployments = by.tasks.iter().flat_map(|task| &task.deployments);
    let ended = deployments.find(|deployment| deployment.run.as_ref() == Some(&run.id))?;
    let by_somebody = ended.outcome.is_some_and(was_ended);
    by_somebody.then_some(ended.message.as_str())
}

/// Whether a person or a newer revision ended it.
fn was_ended(outcome: Outcome) -> bool {
    matches!(outcome.status, Status::Aborted | Status::Superseded)
}
