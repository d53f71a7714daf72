//! Status is a function of what is remembered about a revision: the one place that words it. Pure.

use std::collections::BTreeMap;

use crate::engine::lifecycle::policy::describe;
use crate::engine::sequence::machine::starts_deployment;
use crate::model::commit_status::{CommitStatus, StatusState};
use crate::model::deployment_config::HookPoint;
use crate::model::ids::{RunId, ServiceName, StageName};
use crate::model::outcome::{PodOutcome, Verdict};
use crate::model::plan::{Decision, Plan, ServicePlan, StagePlan, StageStart};
use crate::model::project::StatusDetail;
use crate::model::run::{DeploymentRun, HookRecord, Run, SequenceRun, SequenceState, TaskRecord};
use crate::model::shipyard::{DEPLOYMENT_TASK, SequenceTrigger};
use crate::model::state::{RevisionResult, RevisionState, spec_of};
use crate::model::time::Timestamp;

/// With more statuses than this below the stages, only failures are written there. Source: the interface's `auto`.
const DETAILS: usize = 20;
/// How many of a broken revision's problems its status shows.
const PROBLEMS_SHOWN: usize = 3;

/// The state and description of one context.
struct Told {
    state: StatusState,
    description: String,
    run: Option<RunId>,
    attempt: u32,
}

/// All statuses of a revision, given all runs on it.
pub fn render(revision: &RevisionState, runs: &[Run]) -> Vec<CommitStatus> {
    let mut statuses = vec![status(revision, "launchway/plan".into(), plan_status(revision))];
    let RevisionResult::Planned(plan) = &revision.result else { return statuses };
    let runs = Runs::of(runs);
    let mut details = Vec::new();
    for stage in &plan.stages {
        let services = service_statuses(plan, stage, &runs);
        let told = stage_status(&services);
        statuses.push(status(revision, format!("launchway/{}", stage.stage), told));
        for (name, told) in services {
            let context = format!("launchway/{}/{name}", stage.stage);
            let steps = runs.newest(&stage.stage, &name).map(|run| step_statuses(run, &runs)).unwrap_or_default();
            details.push((false, status(revision, context.clone(), told)));
            details.extend(
                steps.into_iter().map(|(step, told)| (true, status(revision, format!("{context}/{step}"), told))),
            );
        }
    }
    statuses.extend(chosen(plan, details));
    statuses
}

/// Which of the statuses below the stages are written; each comes with whether it is one of a step. The plan decides
/// once, so that a status that was written is also written to its end.
fn chosen(plan: &Plan, details: Vec<(bool, CommitStatus)>) -> Vec<CommitStatus> {
    let all = expected(plan) <= DETAILS;
    let failed = |status: &CommitStatus| matches!(status.state, StatusState::Failure | StatusState::Error);
    let keep = |is_step: bool, status: &CommitStatus| match plan.statuses {
        StatusDetail::Hooks => true,
        StatusDetail::Services => !is_step,
        StatusDetail::Stages => false,
        StatusDetail::Auto => all || failed(status),
    };
    details.into_iter().filter(|(is_step, status)| keep(*is_step, status)).map(|(_, status)| status).collect()
}

/// How many statuses below the stages a plan leads to: services, their tasks, and the hooks of their deployments.
fn expected(plan: &Plan) -> usize {
    let hooks = |service: &ServicePlan| -> usize {
        let deployments = service.changes.iter().filter(|change| starts_deployment(change));
        let specs = deployments.filter_map(|change| spec_of(change.object.as_ref()?).ok());
        let points = [HookPoint::Pre, HookPoint::Mid, HookPoint::Post];
        specs.map(|spec| points.iter().filter(|point| spec.strategy.hook(**point).is_some()).count()).sum()
    };
    let tasks = |stage: &StagePlan| {
        let tasks = stage.sequence.iter().flat_map(|sequence| &sequence.tasks);
        tasks.filter(|task| task.name != DEPLOYMENT_TASK).count()
    };
    let of_stage =
        |stage: &StagePlan| -> usize { stage.services.iter().map(|service| 1 + tasks(stage) + hooks(service)).sum() };
    plan.stages.iter().map(of_stage).sum()
}

fn status(revision: &RevisionState, context: String, told: Told) -> CommitStatus {
    let path = match &told.run {
        Some(run) => format!("/runs/{run}"),
        None => format!("/revisions/{}/{}", revision.repository, revision.commit),
    };
    CommitStatus {
        commit: revision.commit.clone(),
        context,
        state: told.state,
        description: told.description.split_whitespace().collect::<Vec<_>>().join(" "),
        path: Some(path),
        attempt: told.attempt,
    }
}

/// The runs on a revision, by what they are.
struct Runs<'a> {
    sequences: BTreeMap<(&'a StageName, &'a ServiceName), &'a SequenceRun>,
    deployments: BTreeMap<&'a RunId, &'a DeploymentRun>,
}

impl<'a> Runs<'a> {
    /// Of several runs for a service the newest counts: ids grow.
    fn of(runs: &'a [Run]) -> Self {
        let mut found = Self { sequences: BTreeMap::new(), deployments: BTreeMap::new() };
        for run in runs {
            match run {
                Run::Sequence(run) => {
                    let newest = found.sequences.entry((&run.service.stage, &run.service.service)).or_insert(run);
                    if newest.id < run.id {
                        *newest = run;
                    }
                }
                Run::Deployment(run) => {
                    found.deployments.insert(&run.id, run);
                }
            }
        }
        found
    }

    fn newest(&self, stage: &StageName, service: &ServiceName) -> Option<&'a SequenceRun> {
        self.sequences.get(&(stage, service)).copied()
    }
}

fn plan_status(revision: &RevisionState) -> Told {
    let (state, description) = match &revision.result {
        RevisionResult::Broken { problems } => {
            let shown = problems.iter().take(PROBLEMS_SHOWN).map(String::as_str).collect::<Vec<_>>().join("; ");
            let more = problems.len().saturating_sub(PROBLEMS_SHOWN);
            let more = if more > 0 { format!("; {more} more") } else { String::new() };
            (StatusState::Error, format!("{}: {shown}{more}", counted(problems.len(), "problem")))
        }
        RevisionResult::Refused { reason } => (StatusState::Failure, format!("refused: {reason}")),
        RevisionResult::Planned(plan) => (StatusState::Success, planned(plan)),
    };
    Told { state, description, run: None, attempt: 1 }
}

/// `dev: 1 deploy, 2 create; production: 1 deploy`.
fn planned(plan: &Plan) -> String {
    let of_stage = |stage: &StagePlan| {
        let mut counts: BTreeMap<Decision, usize> = BTreeMap::new();
        for change in stage.services.iter().flat_map(|service| &service.changes) {
            *counts.entry(change.decision).or_default() += 1;
        }
        let counts = counts.iter().filter(|(decision, _)| **decision != Decision::None);
        let told: Vec<String> = counts.map(|(decision, count)| format!("{count} {}", decision.as_str())).collect();
        (!told.is_empty()).then(|| format!("{}: {}", stage.stage, told.join(", ")))
    };
    let stages: Vec<String> = plan.stages.iter().filter_map(of_stage).collect();
    if stages.is_empty() { "nothing to deploy".into() } else { stages.join("; ") }
}

fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

fn service_statuses(plan: &Plan, stage: &StagePlan, runs: &Runs<'_>) -> Vec<(ServiceName, Told)> {
    let with_run =
        runs.sequences.keys().filter(|(name, _)| **name == stage.stage).map(|(_, service)| (*service).clone());
    let planned = stage.services.iter().map(|service| service.service.clone());
    let names: std::collections::BTreeSet<ServiceName> = with_run.chain(planned).collect();
    let told = |name: ServiceName| {
        let told = match (runs.newest(&stage.stage, &name), stage.service(&name)) {
            (Some(run), _) => sequence_status(run, runs),
            (None, Some(service)) => not_started(plan, stage, service, runs),
            (None, None) => return None,
        };
        Some((name, told))
    };
    names.into_iter().filter_map(told).collect()
}

fn sequence_status(run: &SequenceRun, runs: &Runs<'_>) -> Told {
    let state = match (run.state, run.verdict) {
        (SequenceState::Queued, _) => StatusState::Pending,
        (SequenceState::Running { .. } | SequenceState::Ending { .. }, _) => StatusState::Running,
        (SequenceState::Ended, verdict) => verdict.map_or(StatusState::Error, state_of),
    };
    let description = match run.state {
        SequenceState::Queued if run.message.is_empty() => "queued".to_owned(),
        SequenceState::Queued => run.message.clone(),
        SequenceState::Running { task } => run.tasks.get(task).map(|task| under_way(task, runs)).unwrap_or_default(),
        SequenceState::Ending { .. } => format!("ending: {}", run.message),
        SequenceState::Ended if run.verdict == Some(Verdict::Success) => succeeded(run),
        SequenceState::Ended => run.message.clone(),
    };
    let description = match &run.forced {
        Some(forced) => format!("{description} (forced by {forced})"),
        None => description,
    };
    Told { state, description, run: Some(run.id.clone()), attempt: run.attempt }
}

fn under_way(task: &TaskRecord, runs: &Runs<'_>) -> String {
    let deployment = task.deployments.iter().find(|deployment| deployment.verdict.is_none());
    let deployment = deployment.and_then(|deployment| runs.deployments.get(deployment.run.as_ref()?));
    match deployment {
        Some(run) => {
            let told = format!("{} version {} is {}", run.config.name, run.version, run.phase.as_str());
            if run.is_delayed() { format!("{told}: {}", run.problem) } else { told }
        }
        None => format!("{} is running", task.step),
    }
}

fn succeeded(run: &SequenceRun) -> String {
    let told = |task: &TaskRecord| {
        if task.name == DEPLOYMENT_TASK { task.message.clone() } else { format!("{} {}", task.step, task.message) }
    };
    run.tasks.iter().map(told).collect::<Vec<_>>().join("; ")
}

/// A service that the plan changes and for which nothing has started.
fn not_started(plan: &Plan, stage: &StagePlan, service: &ServicePlan, runs: &Runs<'_>) -> Told {
    let told = |state, description| Told { state, description, run: None, attempt: 1 };
    if service.changes.iter().all(|change| matches!(change.decision, Decision::None | Decision::Wait)) {
        let cause =
            service.changes.first().map(|change| format!("{} {}", change.key, change.cause)).unwrap_or_default();
        let waits = service.changes.iter().any(|change| change.decision == Decision::Wait);
        return told(if waits { StatusState::Pending } else { StatusState::Skipped }, cause);
    }
    match (&stage.start, &service.previous_stage) {
        (StageStart::ByHand, _) => told(StatusState::Pending, "started by hand: `launchway trigger delivery`".into()),
        (_, Some(previous)) => match stopped_by(plan, &previous.stage, &service.service, runs) {
            Some((stopper, attempt)) => {
                let description = format!("never reached: {stopper} stopped it");
                Told { attempt, ..told(StatusState::Skipped, description) }
            }
            None => told(StatusState::Pending, format!("waits for {} to pass", previous.stage)),
        },
        (StageStart::After(triggers), None) => untriggered(triggers, &service.service, runs),
        (StageStart::Push, None) => told(StatusState::Pending, "about to start".into()),
    }
}

/// A stage that starts on something else than another's passing.
fn untriggered(triggers: &[SequenceTrigger], service: &ServiceName, runs: &Runs<'_>) -> Told {
    let named = |trigger: &SequenceTrigger| {
        let selector = trigger.selector.iter().map(|(key, value)| format!(" with {key} {value}"));
        format!("{}{}", trigger.event, selector.collect::<String>())
    };
    let ended = |trigger: &SequenceTrigger| {
        let stage = trigger.event.trim_start_matches("sh.keptn.event.").split('.').next().map(StageName::new);
        stage.and_then(|stage| runs.newest(&stage, service)).is_some_and(|run| run.ended_at.is_some())
    };
    let events = triggers.iter().map(named).collect::<Vec<_>>().join(", ");
    let (state, description) = if triggers.iter().all(ended) {
        (StatusState::Skipped, format!("not triggered: it starts on {events}"))
    } else {
        (StatusState::Pending, format!("waits for {events}"))
    };
    Told { state, description, run: None, attempt: 1 }
}

/// The stage before in which the service's delivery ended without passing.
fn stopped_by(plan: &Plan, stage: &StageName, service: &ServiceName, runs: &Runs<'_>) -> Option<(StageName, u32)> {
    if let Some(run) = runs.newest(stage, service) {
        let stopped = run.verdict.is_some_and(|verdict| verdict != Verdict::Success);
        return stopped.then(|| (stage.clone(), run.attempt));
    }
    let before = plan.stage(stage)?.service(service)?.previous_stage.as_ref()?;
    stopped_by(plan, &before.stage, service, runs)
}

fn stage_status(services: &[(ServiceName, Told)]) -> Told {
    let attempt = services.iter().map(|(_, told)| told.attempt).max().unwrap_or(1);
    let only = |state: StatusState| services.iter().filter(move |(_, told)| told.state == state);
    // While anything is under way the stage is, so that its outcome is written once.
    let order = [
        StatusState::Running,
        StatusState::Pending,
        StatusState::Error,
        StatusState::Failure,
        StatusState::Cancelled,
        StatusState::Success,
        StatusState::Skipped,
    ];
    let Some(state) = order.into_iter().find(|state| only(*state).next().is_some()) else {
        return Told { state: StatusState::Skipped, description: "nothing changed".into(), run: None, attempt };
    };
    let of_state: Vec<String> = only(state).map(|(name, told)| format!("{name}: {}", told.description)).collect();
    let description = if of_state.len() == 1 { of_state[0].clone() } else { tally(services) };
    Told { state, description, run: None, attempt }
}

/// `2 success, 1 failure (web)`.
fn tally(services: &[(ServiceName, Told)]) -> String {
    let mut by_state: Vec<(StatusState, Vec<&str>)> = Vec::new();
    for (name, told) in services {
        match by_state.iter_mut().find(|(state, _)| *state == told.state) {
            Some((_, names)) => names.push(name.as_str()),
            None => by_state.push((told.state, vec![name.as_str()])),
        }
    }
    let told = by_state.iter().map(|(state, names)| format!("{} {state} ({})", names.len(), names.join(", ")));
    told.collect::<Vec<_>>().join("; ")
}

/// The hooks and tasks of a run that have begun, in order.
fn step_statuses(run: &SequenceRun, runs: &Runs<'_>) -> Vec<(String, Told)> {
    let mut steps = Vec::new();
    for task in run.tasks.iter().filter(|task| task.started_at.is_some()) {
        if task.name == DEPLOYMENT_TASK {
            let several = task.deployments.len() > 1;
            let deployments =
                task.deployments.iter().filter_map(|deployment| runs.deployments.get(deployment.run.as_ref()?));
            for deployment in deployments {
                let prefix = if several { format!("{}.", deployment.config.name) } else { String::new() };
                steps.extend(
                    hook_statuses(deployment).into_iter().map(|(point, told)| (format!("{prefix}{point}"), told)),
                );
            }
        } else {
            let told = task_status(run, task);
            steps.push((task.step.clone(), told));
        }
    }
    steps
}

fn task_status(run: &SequenceRun, task: &TaskRecord) -> Told {
    let state = task.verdict.map_or(StatusState::Running, state_of);
    let tries = task.tries.len();
    let description = match task.verdict {
        Some(_) => task.message.clone(),
        None if tries > 1 => format!("running, try {tries}"),
        None => "running".into(),
    };
    Told { state, description, run: Some(run.id.clone()), attempt: run.attempt }
}

/// Each hook once: its newest try.
fn hook_statuses(run: &DeploymentRun) -> Vec<(&'static str, Told)> {
    let mut newest: Vec<&HookRecord> = Vec::new();
    for hook in &run.hooks {
        newest.retain(|earlier| earlier.point != hook.point);
        newest.push(hook);
    }
    newest.into_iter().map(|hook| (hook.point.as_str(), hook_status(run, hook))).collect()
}

fn hook_status(run: &DeploymentRun, hook: &HookRecord) -> Told {
    use crate::model::deployment_config::FailurePolicy;
    let policy = run.spec.strategy.hook(hook.point).map(|hook| hook.failure_policy);
    let took = |ended: Timestamp| ended.since(hook.started_at);
    let (state, description) = match (&hook.outcome, hook.ended_at) {
        (Some(PodOutcome::Succeeded), Some(ended)) => {
            (StatusState::Success, describe(&PodOutcome::Succeeded, took(ended)))
        }
        (Some(outcome), Some(ended)) => {
            let told = describe(outcome, took(ended));
            match policy {
                Some(FailurePolicy::Ignore) => (StatusState::Success, format!("ignored: {told}")),
                Some(FailurePolicy::Retry) if run.ended_at.is_none() => {
                    (StatusState::Running, format!("tries again: {told}"))
                }
                _ => (StatusState::Failure, told),
            }
        }
        _ => (StatusState::Running, "running".into()),
    };
    Told { state, description, run: Some(run.id.clone()), attempt: run.attempt }
}

/// How a verdict is written.
pub fn state_of(verdict: Verdict) -> StatusState {
    match verdict {
        Verdict::Success => StatusState::Success,
        Verdict::Failure => StatusState::Failure,
        Verdict::Error => StatusState::Error,
        Verdict::Cancelled | Verdict::Superseded => StatusState::Cancelled,
    }
}
