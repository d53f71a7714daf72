//! The sequence as a state machine: queued → its tasks, one after another → ended.

use std::time::Duration;

use crate::model::action::{Action, Decided, Effect};
use crate::model::event::{Event, Timer};
use crate::model::outcome::Outcome;
use crate::model::pod::PodId;
use crate::model::run::{SequenceRun, SequenceState, TaskRecord};
use crate::model::shipyard::{DEPLOYMENT_TASK, Sequence};
use crate::model::time::Timestamp;
use crate::plan::passed_procedure;

mod deployments;
mod pods;

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

    fn take(&mut self, index: usize, event: &Event) {
        match event {
            Event::DeploymentStarted { config, deployment } => self.deployment_started(index, config, deployment),
            Event::DeploymentEnded { deployment, outcome, message, served_already } => {
                self.deployment_ended(index, deployment, (*outcome, *served_already), message);
            }
            Event::PodStarted { pod } => self.pod_started(index, pod),
            Event::PodEnded { pod, outcome } => self.pod_ended(index, pod, outcome),
            Event::Delayed { message } => self.delayed(index, message),
            _ => {}
        }
    }

    /// What was to begin by now has not.
    fn start_is_late(&mut self, index: usize) {
        match self.run.awaits_services() {
            true => self.not_listening(index),
            false => self.pod_is_late(index),
        }
    }

    fn step_of(&self, index: usize) -> &str {
        &self.run.tasks[index].step
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

#[cfg(test)]
mod tests;
