//! Runs: sequences and deployments, and the steps of each.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::plan::ChangeView;
use super::time;
use crate::engine::deployment::strategy;
use crate::engine::lifecycle::policy;
use crate::model::deployment_config::HookPoint;
use crate::model::outcome::PodOutcome;
use crate::model::run::{
    DeploymentRun, DeploymentStep, HookRecord, Run, SequenceRun, SequenceState, TaskRecord, TrialPart,
};
use crate::model::time::Timestamp;

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunView {
    /// Its identity; its page is at `/runs/<id>`.
    pub id: String,
    /// `sequence` or `deployment`.
    pub kind: String,
    /// The sequence's name, or `<config>-<version>`.
    pub name: String,
    /// The project.
    pub project: String,
    /// The stage.
    pub stage: String,
    /// The service.
    pub service: String,
    /// The repository.
    pub repository: String,
    /// The revision.
    pub commit: String,
    /// Why it was started.
    pub cause: String,
    /// 1, and more for each retry.
    pub attempt: u32,
    /// `queued`, `running`, or how it ended: `success`, `failure`, `error`, `cancelled`, `superseded`.
    pub status: String,
    /// Why it waits, or how it ended.
    pub message: String,
    /// When it was created.
    pub created_at: String,
    /// When it ended.
    pub ended_at: Option<String>,
    /// The id of the event by which it asks a person to approve something, as long as it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits_approval: Option<String>,
}

/// A run with all that happened in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunDetail {
    /// The run.
    #[serde(flatten)]
    pub run: RunView,
    /// The sequence that asked for a deployment.
    pub parent: Option<String>,
    /// Its steps, in order.
    pub steps: Vec<StepView>,
    /// What it changes.
    pub changes: Vec<ChangeView>,
    /// By which OpenShift's proposal of lifecycle hooks tells the pod of each, and the phase of that.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// A step of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepView {
    /// Its name, as in status contexts where it has one.
    pub name: String,
    /// `pending`, `running`, `success`, `failure`, `error`, `cancelled`, `superseded` or `skipped`.
    pub status: String,
    /// What happened.
    pub message: String,
    /// The runs that it started.
    pub runs: Vec<String>,
    /// Its pods, one for each try.
    pub tries: Vec<TryView>,
}

/// One try of a hook or a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TryView {
    /// Its pod.
    pub pod: String,
    /// When it was asked for.
    pub started_at: String,
    /// When it ended.
    pub ended_at: Option<String>,
    /// `running`, `success`, `failure`, or `unknown` if nobody saw its end.
    pub status: String,
    /// Its exit code, where it has one.
    pub exit_code: Option<i32>,
    /// Its last lines, or why it could not start.
    pub output: String,
}

/// What the task that a run is at waits for: executors, people or services, or the end of the pause before it is tried again.
pub(super) fn awaits(run: &SequenceRun) -> Option<String> {
    if let Some(at) = tries_again_at(run) {
        return Some(format!("it has failed, and is tried again at {}", time(at)));
    }
    let is_told = run.awaits_services() || run.offered().is_some();
    let (task, SequenceState::Running { task: index }) = (run.task().filter(|_| is_told)?, run.state) else {
        return None;
    };
    let sign = run.awaited_sign(index).map(|(who, due)| format!("; {} must be heard of by {}", who.name, time(due)));
    (!task.message.is_empty()).then(|| format!("{}{}", task.message, sign.unwrap_or_default()))
}

/// When the task at which a run is begins anew that has failed; nothing, if none waits for that.
fn tries_again_at(run: &SequenceRun) -> Option<Timestamp> {
    let is_running = matches!(run.state, SequenceState::Running { .. });
    let task = run.task().filter(|task| is_running && task.ended_at.is_none())?;
    let failed = task.tries.last().filter(|last| last.outcome.is_some());
    let tries = u32::try_from(task.tries.len()).unwrap_or(u32::MAX);
    task.again_at.or_else(|| Some(failed?.ended_at? + policy::pause(tries)))
}

/// Why a run waits, or how it ended.
fn remark(run: &SequenceRun) -> String {
    let told = |awaited: String| Some(format!("{}: {awaited}", run.task()?.step));
    let awaited = awaits(run).filter(|_| run.message.is_empty()).and_then(told);
    awaited.unwrap_or_else(|| run.message.clone())
}

impl From<&Run> for RunView {
    fn from(run: &Run) -> Self {
        let service = run.service();
        let (repository, commit) = run.revision();
        let (kind, name, cause, attempt, message) = match run {
            Run::Sequence(run) => ("sequence", run.sequence().to_owned(), &run.cause, run.attempt, remark(run)),
            Run::Deployment(run) => {
                let name = format!("{}-{}", run.config.name, run.version);
                ("deployment", name, &run.cause, run.attempt, run.remark().to_owned())
            }
        };
        Self {
            id: run.id().to_string(),
            kind: kind.to_owned(),
            name,
            project: service.project.to_string(),
            stage: service.stage.to_string(),
            service: service.service.to_string(),
            repository: repository.to_string(),
            commit: commit.to_string(),
            cause: cause.clone(),
            attempt,
            status: run_status(run).to_owned(),
            message,
            created_at: time(run.created_at()),
            ended_at: run.ended_at().map(time),
            awaits_approval: run.sequence().and_then(SequenceRun::asks),
        }
    }
}

fn run_status(run: &Run) -> &'static str {
    match run {
        Run::Sequence(run) => match (run.state, run.outcome) {
            (_, Some(outcome)) => outcome.word(),
            (SequenceState::Queued, None) => "queued",
            (_, None) => "running",
        },
        Run::Deployment(run) => match (&run.failure, run.ended_at) {
            (_, None) => "running",
            (None, Some(_)) => "success",
            (Some(failure), Some(_)) => failure.outcome.word(),
        },
    }
}

impl RunDetail {
    /// A run; a deployment with the sequence that asked for it, as long as that is kept.
    pub fn new(run: &Run, parent: Option<&Run>) -> Self {
        let run_view = RunView::from(run);
        match (run, parent) {
            (Run::Sequence(run), _) => Self {
                run: run_view,
                parent: None,
                steps: sequence_steps(run),
                changes: sequence_changes(run),
                annotations: BTreeMap::new(),
            },
            (Run::Deployment(run), parent) => Self {
                run: run_view,
                parent: Some(run.parent.to_string()),
                steps: deployment_steps(run),
                changes: deployment_changes(run, parent),
                annotations: hook_annotations(run),
            },
        }
    }
}

/// The last try of each hook: its pod, and that pod's phase in Kubernetes' words. Upstream proposed this for `pre` and
/// `post`, and shipped names of pods instead.
fn hook_annotations(run: &DeploymentRun) -> BTreeMap<String, String> {
    let last = |point| run.hooks.iter().rfind(move |hook| hook.point == point);
    let tries = [HookPoint::Pre, HookPoint::Mid, HookPoint::Post].into_iter().filter_map(last);
    let annotated = |hook: &HookRecord| {
        let phase = match (&hook.outcome, hook.ended_at) {
            (Some(PodOutcome::Succeeded), _) => "Succeeded",
            (Some(PodOutcome::Failed { .. }), _) => "Failed",
            (Some(PodOutcome::Unknown { .. }), _) | (None, Some(_)) => "Unknown",
            (None, None) => "Running",
        };
        let prefix = format!("openshift.io/deployment.lifecycle.{}.execnewpod", hook.point);
        [(format!("{prefix}.pod"), hook.pod.to_string()), (format!("{prefix}.phase"), phase.to_owned())]
    };
    tries.flat_map(annotated).collect()
}

/// Of what a sequence changes, its deployment config. What goes back in a sequence brings nothing of that: it takes it back.
fn deployment_changes(run: &DeploymentRun, parent: Option<&Run>) -> Vec<ChangeView> {
    let Some(Run::Sequence(parent)) = parent else { return Vec::new() };
    if run.restored_after.is_some() || (run.is_rollback && !parent.is_rollback) {
        return Vec::new();
    }
    let mut changes = sequence_changes(parent);
    changes.retain(|change| change.kind == "DeploymentConfig" && change.name == run.config.name);
    changes
}

fn sequence_changes(run: &SequenceRun) -> Vec<ChangeView> {
    let view = |change| {
        let service = &run.service;
        ChangeView::new(service.stage.as_str(), run.destination.namespace.as_str(), service.service.as_str(), change)
    };
    run.changes().iter().map(view).collect()
}

fn sequence_steps(run: &SequenceRun) -> Vec<StepView> {
    let ended = run.outcome.is_some();
    run.tasks.iter().map(|task| task_step(task, ended)).collect()
}

fn task_step(task: &TaskRecord, ended: bool) -> StepView {
    let status = match (task.outcome, task.started_at) {
        (Some(outcome), _) => outcome.word(),
        (None, Some(_)) => "running",
        (None, None) if ended => "skipped",
        (None, None) => "pending",
    };
    let tries = task
        .tries
        .iter()
        .map(|one| TryView::new(one.pod.as_str(), (one.started_at, one.ended_at), one.outcome.as_ref()));
    StepView {
        name: task.step.clone(),
        status: status.to_owned(),
        message: task.message.clone(),
        runs: task.deployments.iter().filter_map(|started| started.run.as_ref()).map(ToString::to_string).collect(),
        tries: tries.collect(),
    }
}

/// The way of a deployment by its spec, hooks that are not declared left out, with where it stands.
fn deployment_steps(run: &DeploymentRun) -> Vec<StepView> {
    if run.restored_after.is_some() {
        return vec![deployment_step(run, DeploymentStep::Restore)];
    }
    let next = |step: &DeploymentStep| Some(strategy::next_step(run, *step));
    let way = std::iter::successors(Some(DeploymentStep::Prepare), next);
    let way = way.take_while(|step| *step != DeploymentStep::Done);
    let declared = |step: &DeploymentStep| point_of(run, *step).is_none_or(|point| run.spec.strategy.runs_at(point));
    let mut steps: Vec<StepView> = way.filter(declared).map(|step| deployment_step(run, step)).collect();
    if run.failure.as_ref().is_some_and(|failure| failure.step > DeploymentStep::Pre) {
        steps.push(deployment_step(run, DeploymentStep::Restore));
    }
    steps
}

fn point_of(run: &DeploymentRun, step: DeploymentStep) -> Option<HookPoint> {
    strategy::hook_point(&run.spec.strategy, step)
}

fn deployment_step(run: &DeploymentRun, step: DeploymentStep) -> StepView {
    let hooks = run.hooks.iter().filter(|hook| Some(hook.point) == point_of(run, step));
    let tries =
        hooks.map(|hook| TryView::new(hook.pod.as_str(), (hook.started_at, hook.ended_at), hook.outcome.as_ref()));
    StepView {
        name: step_name(run, step),
        status: step_status(run, step).to_owned(),
        message: step_message(run, step),
        runs: Vec::new(),
        tries: tries.collect(),
    }
}

fn step_name(run: &DeploymentRun, step: DeploymentStep) -> String {
    let name = match step {
        DeploymentStep::Prepare => "prepare",
        DeploymentStep::Pre => "pre",
        DeploymentStep::Deployer => "deployer",
        DeploymentStep::ScaleDown => "scale down",
        DeploymentStep::FirstPod => "first pod",
        DeploymentStep::Trial { step: number, part } => return trial_name(run, step, (number, part)),
        DeploymentStep::Mid => "mid",
        DeploymentStep::Rollout => "rollout",
        DeploymentStep::Post => "post",
        DeploymentStep::Restore => "restore",
        DeploymentStep::Done => "done",
    };
    name.to_owned()
}

/// A part of a trial; what judges it is named as in status contexts.
fn trial_name(run: &DeploymentRun, step: DeploymentStep, (number, part): (u16, TrialPart)) -> String {
    let strategy = &run.spec.strategy;
    match (part, strategy.canary_step(number)) {
        (TrialPart::Weight, Some(canary)) => format!("step {number}, {} %", canary.weight),
        (TrialPart::Weight, None) => "beside".to_owned(),
        (TrialPart::Pause, _) => format!("pause {number}"),
        (TrialPart::Analysis, _) => {
            strategy::hook_point(strategy, step).map(|point| point.to_string()).unwrap_or_default()
        }
    }
}

fn step_status(run: &DeploymentRun, step: DeploymentStep) -> &'static str {
    let failed_at = run.failure.as_ref().map(|failure| failure.step);
    match failed_at {
        Some(failed) if failed == step => run.failure.as_ref().map_or("failure", |failure| failure.outcome.word()),
        Some(_) if step == DeploymentStep::Restore => {
            if run.ended_at.is_some() {
                "success"
            } else {
                "running"
            }
        }
        Some(failed) if step > failed => "skipped",
        _ if step == run.step => "running",
        _ if step < run.step => "success",
        _ => "pending",
    }
}

fn step_message(run: &DeploymentRun, step: DeploymentStep) -> String {
    match &run.failure {
        Some(failure) if failure.step == step => failure.message.clone(),
        _ if run.step != step => String::new(),
        _ if run.waits.since.is_some() => run.problem.clone(),
        _ => match step {
            DeploymentStep::Rollout
            | DeploymentStep::Deployer
            | DeploymentStep::FirstPod
            | DeploymentStep::Trial { part: TrialPart::Weight, .. } => {
                let progress = run.progress;
                format!("{} updated, {} available, {} old pods", progress.updated, progress.available, progress.old)
            }
            _ => String::new(),
        },
    }
}

impl TryView {
    fn new(pod: &str, (started_at, ended_at): (Timestamp, Option<Timestamp>), outcome: Option<&PodOutcome>) -> Self {
        let (status, exit_code, output) = match outcome {
            None => ("running", None, ""),
            Some(PodOutcome::Succeeded) => ("success", Some(0), ""),
            Some(PodOutcome::Failed { code, message, .. }) => ("failure", Some(*code), message.as_str()),
            Some(PodOutcome::Unknown { message, .. }) => ("unknown", None, message.as_str()),
        };
        Self {
            pod: pod.to_owned(),
            started_at: time(started_at),
            ended_at: ended_at.map(time),
            status: status.to_owned(),
            exit_code,
            output: output.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::Value;

    use super::*;
    use crate::engine::fixtures::{NOW, delivery, deployed, deployment, sequence};
    use crate::engine::sequence::machine::{step, task_records};
    use crate::manifest::digest;
    use crate::model::event::Event;
    use crate::model::project::Procedure;
    use crate::model::run::{Phase, TaskTry};
    use crate::model::shipyard::{Sequence, Task};

    #[test]
    fn who_is_awaited_is_told_and_by_when() {
        let test = Task { heartbeat_ms: Some(60_000), ..Task::named("test") };
        let sequence = Sequence { name: "check".into(), tasks: vec![test], ..Sequence::default() };
        let tasks = task_records(&sequence);
        let procedure = digest::stored(Procedure { sequence, ..Procedure::default() });
        let queued = SequenceRun { delivery: None, procedure, tasks, ..delivery("r1", "a") };
        let told = |run: &SequenceRun| RunView::from(&Run::Sequence(Box::new(run.clone()))).message;
        assert_eq!(told(&queued), "");
        let (offered, _) = step(&queued, &Event::Admitted, NOW);
        assert_eq!(told(&offered), "test: waits for an executor to start it");
        let started = Event::ExecutorStarted { task: 0, executor: "k6".into(), id: String::new(), data: Value::Null };
        let due = time(NOW + Duration::from_secs(60));
        assert_eq!(told(&step(&offered, &started, NOW).0), format!("test: runs at k6; k6 must be heard of by {due}"));
    }

    #[test]
    fn what_comes_back_has_one_step_and_none_of_the_changes_of_what_has_failed() {
        let parent = delivery("r1", "b");
        let detail = |run: DeploymentRun| {
            let detail = RunDetail::new(&deployed(run), Some(&sequence(&parent)));
            let steps: Vec<String> = detail.steps.into_iter().map(|step| step.name).collect();
            (steps.join(" "), detail.changes.len())
        };
        let failed = deployment(2, "b", &parent, Phase::Failed);
        let back = DeploymentRun { restored_after: Some(2), ..deployment(3, "a", &parent, Phase::Complete) };
        let by_task = DeploymentRun { is_rollback: true, ..deployment(4, "a", &parent, Phase::Complete) };
        assert_eq!(detail(failed), ("prepare rollout".into(), 1));
        assert_eq!(detail(back), ("restore".into(), 0));
        assert_eq!(detail(by_task), ("prepare rollout".into(), 0));
    }

    #[test]
    fn what_has_failed_says_when_it_is_tried_again() {
        let pause = |task: TaskRecord| {
            let state = SequenceState::Running { task: 0 };
            let run = SequenceRun { state, tasks: vec![task], ..delivery("r1", "a") };
            RunView::from(&Run::Sequence(Box::new(run))).message
        };
        let tried = |outcome: Option<PodOutcome>| TaskTry {
            pod: "check-1".into(),
            started_at: NOW,
            running_since: None,
            timed_out: false,
            ended_at: outcome.is_some().then_some(NOW),
            outcome,
        };
        let failed = || tried(Some(PodOutcome::unknown("it is gone")));
        let task = |tries| TaskRecord { tries, started_at: Some(NOW), ..TaskRecord::new("check", "check") };
        let again = |seconds| {
            format!("check: it has failed, and is tried again at {}", time(NOW + Duration::from_secs(seconds)))
        };
        assert_eq!(pause(task(vec![failed()])), again(1));
        assert_eq!(pause(task(vec![failed(), failed()])), again(2));
        assert_eq!(pause(task(vec![failed(), tried(None)])), "", "the second try is under way");
        assert_eq!(pause(TaskRecord { ended_at: Some(NOW), ..task(vec![failed()]) }), "");
        let offered = TaskRecord { again_at: Some(NOW + Duration::from_secs(3)), offers: 1, ..task(Vec::new()) };
        assert_eq!(pause(offered), again(3));
    }
}
