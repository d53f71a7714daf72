//! The sequence as a state machine: queued → its tasks, one after another → ended.

use std::time::Duration;

use crate::engine::lifecycle::policy;
use crate::engine::sequence::task_pod::task_pod;
use crate::model::action::{Action, Decided, Effect};
use crate::model::event::{Event, Timer};
use crate::model::ids::{PodName, RunId};
use crate::model::object::Kind;
use crate::model::outcome::{Outcome, PodOutcome, Status};
use crate::model::plan::{Change, Decision};
use crate::model::pod::PodId;
use crate::model::run::{DeploymentRef, SequenceRun, SequenceState, TaskRecord, TaskTry};
use crate::model::shipyard::{DEPLOYMENT_TASK, Sequence};
use crate::model::time::Timestamp;
use crate::plan::passed_procedure;

/// Why a sequence ends before its first task in a stage whose runtime is planned for and cannot be deployed to yet.
const NOTHING_THERE: &str = "deploying to Kubernetes is not supported yet: nothing was changed";

/// A step under way: the run as it becomes, and what it asks for.
struct Step {
    run: SequenceRun,
    decided: Decided,
    now: Timestamp,
}

/// One empty record per task of a sequence; a task's second time is `<name>-2` and so on.
pub fn task_records(sequence: &Sequence) -> Vec<TaskRecord> {
    let mut records: Vec<TaskRecord> = Vec::new();
    for task in &sequence.tasks {
        let times = 1 + records.iter().filter(|record| record.name == task.name).count();
        let step = if times > 1 { format!("{}-{times}", task.name) } else { task.name.clone() };
        records.push(TaskRecord {
            name: task.name.clone(),
            step,
            started_at: None,
            ended_at: None,
            outcome: None,
            message: String::new(),
            deployments: Vec::new(),
            tries: Vec::new(),
        });
    }
    records
}

/// What a sequence run becomes when it receives `event`.
pub fn step(run: &SequenceRun, event: &Event, now: Timestamp) -> (SequenceRun, Decided) {
    let mut step = Step { run: run.clone(), decided: Decided::default(), now };
    match (run.state, event) {
        (SequenceState::Queued, Event::Admitted) => step.admitted(),
        (SequenceState::Queued, Event::Waiting { reason }) => step.run.message = reason.clone(),
        (SequenceState::Queued, Event::Cancel { outcome, reason }) => step.end(*outcome, reason.clone()),
        (SequenceState::Running { task }, Event::Cancel { outcome, reason }) => step.cancel(task, *outcome, reason),
        (SequenceState::Running { task }, Event::Timer { timer: Timer::Delay }) => step.start(task),
        (SequenceState::Running { task }, Event::Timer { timer: Timer::Retry }) => step.retry(task),
        (SequenceState::Running { task }, Event::Timer { timer: Timer::Start }) => step.start_is_late(task),
        (SequenceState::Running { task }, Event::ServicesChecked { problem }) => step.services_checked(task, problem),
        (SequenceState::Running { task } | SequenceState::Ending { task, .. }, _) => step.take(task, event),
        _ => {}
    }
    (step.run, step.decided)
}

impl Step {
    fn admitted(&mut self) {
        self.run.started_at = Some(self.now);
        self.run.message = String::new();
        if !self.run.destination.is_local() {
            return self.end(Outcome::FAIL, NOTHING_THERE.to_owned());
        }
        self.begin(0);
    }

    /// Begins the task at `index`, after its pause if it has one; past the last one the sequence has passed.
    fn begin(&mut self, index: usize) {
        let Some(task) = self.run.procedure.sequence.tasks.get(index) else {
            return self.end(Outcome::PASS, String::new());
        };
        self.run.state = SequenceState::Running { task: index };
        match task.triggered_after_ms {
            0 => self.start(index),
            pause => self.set_timer(Timer::Delay, Duration::from_millis(pause)),
        }
    }

    fn start(&mut self, index: usize) {
        let now = self.now;
        let Some(task) = self.run.tasks.get_mut(index).filter(|task| task.started_at.is_none()) else { return };
        task.started_at = Some(now);
        if task.name == DEPLOYMENT_TASK {
            self.deploy(index);
        } else {
            self.try_task(index);
        }
    }

    /// Everything that needs no deployment is applied at once; each deployment is a run of its own.
    fn deploy(&mut self, index: usize) {
        let by = self.run.id.clone();
        let mut deployments = Vec::new();
        for change in self.run.changes() {
            let change_box = Box::new(change.clone());
            if change.starts_deployment() {
                let config = change.key.name.clone();
                deployments.push(DeploymentRef::asked(config));
                self.decided.effects.push(Effect::StartDeployment { by: by.clone(), change: change_box });
            } else {
                self.decided.effects.push(Effect::Apply { by: by.clone(), change: change_box });
            }
        }
        let none = deployments.is_empty();
        self.run.tasks[index].deployments = deployments;
        if none {
            self.serves(index);
        }
    }

    /// Nothing is deployed any more. What was applied without a deployment is done once its `Service` objects listen.
    fn serves(&mut self, index: usize) {
        match self.run.awaits_services() {
            true => self.set_timer(Timer::Start, self.run.limits.start),
            false => self.deployed(index),
        }
    }

    /// How the `Service` objects are that it may wait for.
    fn services_checked(&mut self, index: usize, problem: &str) {
        if !self.run.awaits_services() {
            return;
        }
        if !problem.is_empty() {
            problem.clone_into(&mut self.run.tasks[index].message);
            return;
        }
        self.clear_timer(Timer::Start);
        self.deployed(index);
    }

    /// Everything that could be deployed serves. The task has succeeded only if that is all: what failed before, waits,
    /// or must be deployed by hand keeps the service from being what the revision declares.
    fn deployed(&mut self, index: usize) {
        let message = match &self.run.tasks[index].deployments[..] {
            [] => undeployed(self.run.changes()),
            ended => told(ended),
        };
        let lacking = |change: &&Change| match change.decision {
            Decision::Wait => true,
            Decision::None => !change.cause.is_empty(),
            _ => change.is_not_deployed(),
        };
        let Some(change) = self.run.changes().iter().find(lacking) else {
            return self.finish(index, Outcome::PASS, message);
        };
        let has_failed = change.decision == Decision::None && !change.is_not_deployed();
        let outcome = if has_failed { Outcome::FAIL } else { Outcome::ABORTED };
        let message = format!("{}: {}", change.key.name, change.cause);
        self.finish(index, outcome, message);
    }

    fn retry(&mut self, index: usize) {
        let failed = self.run.tasks[index].tries.last().is_some_and(|last| last.outcome.is_some());
        if failed {
            self.try_task(index);
        }
    }

    fn try_task(&mut self, index: usize) {
        let task = &self.run.tasks[index];
        let Some(definition) = self.run.procedure.tasks.get(&task.name) else {
            let message = format!("nothing says how to run `{}`: add a Task object of that name", task.name);
            return self.finish(index, Outcome::ERRORED, message);
        };
        let pod = task_pod(&self.run, task, definition, task.tries.len() + 1);
        let name = pod.id.name.clone();
        self.run.tasks[index].tries.push(TaskTry {
            pod: name,
            started_at: self.now,
            running_since: None,
            timed_out: false,
            ended_at: None,
            outcome: None,
        });
        self.decided.actions.push(Action::RunPod { pod: Box::new(pod) });
        self.set_timer(Timer::Start, self.run.limits.start);
    }

    fn take(&mut self, index: usize, event: &Event) {
        match event {
            Event::DeploymentStarted { config, deployment } => self.deployment_started(index, config, deployment),
            Event::DeploymentEnded { deployment, outcome, message, served_already } => {
                self.deployment_ended(index, deployment, (*outcome, *served_already), message);
            }
            Event::PodStarted { pod } => self.pod_started(index, pod),
            Event::PodEnded { pod, outcome } => self.pod_ended(index, pod, outcome),
            Event::Delayed { message } if self.last_try(index).is_some() => {
                self.run.tasks[index].message.clone_from(message);
            }
            _ => {}
        }
    }

    /// The try of a task that is under way.
    fn last_try(&mut self, index: usize) -> Option<&mut TaskTry> {
        self.run.tasks[index].tries.last_mut().filter(|last| last.outcome.is_none())
    }

    fn pod_started(&mut self, index: usize, pod: &PodName) {
        let now = self.now;
        let Some(last) = self.last_try(index).filter(|last| &last.pod == pod && last.running_since.is_none()) else {
            return;
        };
        last.running_since = Some(now);
        self.run.tasks[index].message.clear();
        self.clear_timer(Timer::Start);
    }

    /// The pod of a task is not started in time: it is stopped, and the task ends once that is certain. What only has to
    /// listen has failed.
    fn start_is_late(&mut self, index: usize) {
        if self.run.awaits_services() {
            let limit = policy::format_duration(self.run.limits.start);
            let message = match self.run.tasks[index].message.as_str() {
                "" => format!("nobody knows after {limit} whether it listens"),
                known => format!("does not listen after {limit}: {known}"),
            };
            return self.finish(index, Outcome::FAIL, message);
        }
        let namespace = self.run.destination.namespace.clone();
        let Some(last) = self.last_try(index).filter(|last| last.running_since.is_none()) else { return };
        last.timed_out = true;
        let pod = PodId { namespace, name: last.pod.clone() };
        self.decided.actions.push(Action::StopPod { pod });
    }

    fn deployment_started(&mut self, index: usize, config: &str, deployment: &RunId) {
        let refs = &mut self.run.tasks[index].deployments;
        if let Some(started) = refs.iter_mut().find(|started| started.config == config) {
            started.run = Some(deployment.clone());
        }
    }

    fn deployment_ended(
        &mut self,
        index: usize,
        deployment: &RunId,
        (outcome, served_already): (Outcome, bool),
        message: &str,
    ) {
        let refs = &mut self.run.tasks[index].deployments;
        let ended = refs.iter_mut().find(|ended| ended.run.as_ref() == Some(deployment) && ended.outcome.is_none());
        let Some(ended) = ended else { return };
        ended.outcome = Some(outcome);
        ended.message = message.to_owned();
        ended.served_already = served_already;
        if refs.iter().all(|ended| ended.outcome.is_some()) {
            let outcome = worst(refs.iter().filter_map(|ended| ended.outcome));
            let message = told(refs);
            match outcome.passes() {
                true => self.serves(index),
                false => self.finish(index, outcome, message),
            }
        }
    }

    fn pod_ended(&mut self, index: usize, pod: &PodName, outcome: &PodOutcome) {
        let now = self.now;
        let Some(last) = self.last_try(index).filter(|last| &last.pod == pod) else { return };
        last.ended_at = Some(now);
        last.outcome = Some(outcome.clone());
        let told = policy::describe(outcome, now.since(last.running_since.unwrap_or(last.started_at)));
        let timed_out = last.timed_out;
        self.clear_timer(Timer::Start);
        let task = &self.run.tasks[index];
        let tries = u32::try_from(task.tries.len()).unwrap_or(u32::MAX);
        let retries = self.run.procedure.tasks.get(&task.name).map_or(0, |definition| definition.retries);
        match (outcome, self.run.state) {
            (PodOutcome::Succeeded, _) => self.finish(index, Outcome::PASS, told),
            (_, SequenceState::Ending { outcome, .. }) => {
                let message = format!("{}; {} {told}", self.run.message, self.step_of(index));
                self.finish(index, outcome, message);
            }
            _ if timed_out => self.finish(index, Outcome::TIMED_OUT, self.not_started(index, pod, &told)),
            _ if tries <= retries => self.set_timer(Timer::Retry, policy::pause(tries)),
            (PodOutcome::Unknown { .. }, _) => self.finish(index, Outcome::UNKNOWN, told),
            _ => self.finish(index, Outcome::FAIL, told),
        }
    }

    fn step_of(&self, index: usize) -> &str {
        &self.run.tasks[index].step
    }

    /// Why a task ended whose pod was not started in time, and what became of that.
    fn not_started(&self, index: usize, pod: &PodName, told: &str) -> String {
        let why = match self.run.tasks[index].message.as_str() {
            "" => String::new(),
            known => format!(": {known}"),
        };
        let limit = policy::format_duration(self.run.limits.start);
        format!("timed out: it did not start within {limit}{why}; its pod {pod} {told}")
    }

    /// A task ended: the next one begins, or the sequence ends.
    fn finish(&mut self, index: usize, outcome: Outcome, message: String) {
        let task = &mut self.run.tasks[index];
        task.ended_at = Some(self.now);
        task.outcome = Some(outcome);
        task.message.clone_from(&message);
        let step = task.step.clone();
        match (self.run.state, outcome) {
            (SequenceState::Ending { outcome, .. }, _) => self.end(outcome, self.run.message.clone()),
            _ if outcome.passes() => self.begin(index + 1),
            (_, _) => self.end(outcome, format!("{step}: {message}")),
        }
    }

    /// Tells what runs to end; the sequence itself ends when that has.
    fn cancel(&mut self, index: usize, outcome: Outcome, reason: &str) {
        if self.run.awaits_services() {
            self.clear_timer(Timer::Start);
        }
        self.run.state = SequenceState::Ending { task: index, outcome };
        self.run.message = reason.to_owned();
        let mut open = false;
        for deployment in self.run.tasks[index].deployments.iter().filter(|deployment| deployment.outcome.is_none()) {
            if let Some(run) = deployment.run.clone() {
                open = true;
                let event = Event::Cancel { outcome, reason: reason.to_owned() };
                self.decided.effects.push(Effect::Tell { run, event });
            }
        }
        if let Some(last) = self.run.tasks[index].tries.last().filter(|last| last.outcome.is_none()) {
            open = true;
            let pod = PodId { namespace: self.run.destination.namespace.clone(), name: last.pod.clone() };
            self.decided.actions.push(Action::StopPod { pod });
        }
        if !open {
            self.finish(index, outcome, reason.to_owned());
        }
    }

    fn end(&mut self, outcome: Outcome, message: String) {
        let run = &mut self.run;
        run.state = SequenceState::Ended;
        run.ended_at = Some(self.now);
        run.outcome = Some(outcome);
        run.message = message;
        if let Some(delivery) = &run.delivery {
            let (service, content) = (run.service.clone(), delivery.content.clone());
            if outcome.passes() {
                let procedure = passed_procedure(&run.procedure);
                self.decided.effects.push(Effect::Passed { service, content, commit: run.commit.clone(), procedure });
            } else if outcome != Outcome::SUPERSEDED {
                self.decided.effects.push(Effect::NotPassed { service, content });
            }
        }
        self.decided.effects.push(Effect::Finished { run: run.id.clone(), outcome });
        for timer in [Timer::Delay, Timer::Retry] {
            self.clear_timer(timer);
        }
    }

    fn clear_timer(&mut self, timer: Timer) {
        self.decided.actions.push(Action::ClearTimer { timer });
    }

    fn set_timer(&mut self, timer: Timer, after: Duration) {
        self.decided.actions.push(Action::SetTimer { timer, due: self.now + after });
    }
}

/// The outcome that counts for a whole: the first that does not pass, errors before the rest.
fn worst(outcomes: impl Iterator<Item = Outcome>) -> Outcome {
    let weight = |outcome: &Outcome| match outcome.status {
        Status::Succeeded if outcome.passes() => 0,
        Status::Superseded => 1,
        Status::Aborted => 2,
        Status::Succeeded => 3,
        Status::Errored | Status::TimedOut | Status::Unknown => 4,
    };
    outcomes.max_by_key(weight).unwrap_or(Outcome::PASS)
}

/// What is said of deployments.
fn told(deployments: &[DeploymentRef]) -> String {
    let told = deployments.iter().map(|ended| format!("{} {}", ended.config, ended.message));
    told.collect::<Vec<_>>().join("; ")
}

/// What is said of changes of which none is a deployment.
fn undeployed(changes: &[Change]) -> String {
    let all = |decision: Decision| changes.iter().all(|change| change.decision == decision);
    let runs_something = |change: &Change| change.key.kind == Kind::DeploymentConfig;
    match (all(Decision::None), all(Decision::Delete)) {
        (true, _) => "nothing differs".to_owned(),
        (_, true) if changes.iter().any(runs_something) => "removed".to_owned(),
        (_, true) => {
            let gone: Vec<String> = changes.iter().map(|change| change.key.to_string()).collect();
            format!("{} removed", gone.join(", "))
        }
        _ => "applied without a deployment".to_owned(),
    }
}

#[cfg(test)]
mod tests;
