//! The sequence as a state machine: queued → its tasks, one after another → ended.

use std::time::Duration;

use crate::engine::lifecycle::policy;
use crate::model::action::{Action, Decided, Effect};
use crate::model::event::{Event, Timer};
use crate::model::outcome::Outcome;
use crate::model::pod::PodId;
use crate::model::run::{DoneBy, SequenceRun, SequenceState, TaskRecord};
use crate::model::shipyard::Sequence;
use crate::model::time::Timestamp;
use crate::plan::passed_procedure;

mod deployments;
mod evaluation;
mod executors;
mod pods;

pub(super) use executors::aggregate;

/// Why a sequence ends before its first task in a stage whose runtime is planned for and cannot be deployed to yet.
const NOTHING_THERE: &str = "deploying to Kubernetes is not supported yet: nothing was changed";

/// A step under way: the run as it becomes, and what it asks for.
struct Step {
    run: SequenceRun,
    decided: Decided,
    now: Timestamp,
    /// Whether it has let others have its slot until now: it must have that again before it goes on.
    yielded: bool,
}

/// One empty record per task of a sequence; a task's second time is `<name>-2` and so on.
pub fn task_records(sequence: &Sequence) -> Vec<TaskRecord> {
    let mut records: Vec<TaskRecord> = Vec::new();
    for task in &sequence.tasks {
        let times = 1 + records.iter().filter(|record| record.name == task.name).count();
        let step = if times > 1 { format!("{}-{times}", task.name) } else { task.name.clone() };
        records.push(TaskRecord::new(&task.name, step));
    }
    records
}

/// What a sequence run becomes when it receives `event`.
pub fn step(run: &SequenceRun, event: &Event, now: Timestamp) -> (SequenceRun, Decided) {
    let mut step = Step { run: run.clone(), decided: Decided::default(), now, yielded: run.yields_slot() };
    match (run.state, event) {
        (SequenceState::Queued, Event::Admitted) => step.admitted(),
        (SequenceState::Returning { task }, Event::Admitted) => step.admitted_again(task),
        (SequenceState::Queued | SequenceState::Returning { .. }, Event::Waiting { reason }) => {
            step.run.message.clone_from(reason);
        }
        (SequenceState::Ending { .. } | SequenceState::Ended, Event::Paused { .. } | Event::Resumed { .. }) => {}
        (_, Event::Paused { by }) => step.run.paused = Some(by.clone()),
        (_, Event::Resumed { .. }) => step.run.paused = None,
        (SequenceState::Queued | SequenceState::Returning { .. }, Event::Cancel { outcome, reason }) => {
            step.end(*outcome, reason.clone());
        }
        (SequenceState::Returning { .. }, Event::Timer { timer: Timer::Deadline }) => {
            let late = step.is_late();
            step.end(Outcome::TIMED_OUT, late);
        }
        (SequenceState::Running { task }, Event::Cancel { outcome, reason }) => step.cancel(task, *outcome, reason),
        (SequenceState::Running { task }, Event::Timer { timer }) => step.timer(task, *timer),
        (SequenceState::Running { task }, Event::ServicesChecked { problem }) => step.services_checked(task, problem),
        (SequenceState::Ending { task, .. }, Event::Timer { timer: Timer::Finish }) => step.not_finished(task),
        (SequenceState::Running { task } | SequenceState::Ending { task, .. }, _) => step.take(task, event),
        _ => {}
    }
    (step.run, step.decided)
}

impl Step {
    fn admitted(&mut self) {
        self.run.started_at = Some(self.now);
        (self.run.message, self.run.paused) = (String::new(), None);
        if !self.run.destination.is_local() {
            return self.end(Outcome::FAIL, NOTHING_THERE.to_owned());
        }
        if let Some(limit) = self.run.procedure.sequence.timeout_ms {
            self.set_timer(Timer::Deadline, Duration::from_millis(limit));
        }
        self.go_on(0);
    }

    /// It has its slot again, which it had let others have: whatever pause there was is over, or goes on.
    fn admitted_again(&mut self, index: usize) {
        (self.run.message, self.run.paused) = (String::new(), None);
        self.run.state = SequenceState::Running { task: index };
        match self.run.pauses_until().filter(|until| *until > self.now) {
            Some(due) => self.decided.actions.push(Action::SetTimer { timer: Timer::Delay, due }),
            None => self.start(index),
        }
    }

    /// Begins the first task from `from` on whose turn it is; where there is none, the sequence has ended as its last task did,
    /// or as the first one that failed.
    fn go_on(&mut self, from: usize) {
        let failed = self.run.tasks.iter().find(|task| task.outcome.is_some_and(|outcome| !outcome.passes()));
        let (tasks, has_failed) = (&self.run.procedure.sequence.tasks, failed.is_some());
        let is_over = |index: &usize| self.run.tasks[*index].outcome.is_some(); // in the run that this one goes on with
        let next = (from..tasks.len()).find(|index| !is_over(index) && tasks[*index].condition.holds(has_failed));
        match (next, failed) {
            (Some(index), _) if self.gives_slot() => self.run.state = SequenceState::Returning { task: index },
            (Some(index), _) => self.begin(index),
            (None, Some(task)) => {
                let (outcome, message) = (task.outcome, format!("{}: {}", task.step, task.message));
                self.end(outcome.unwrap_or(Outcome::FAIL), message);
            }
            (None, None) => {
                let last = self.run.tasks.iter().rev().find_map(|task| task.outcome);
                self.end(last.unwrap_or(Outcome::PASS), String::new());
            }
        }
    }

    /// Begins the task at `index`, after its pause if it has one.
    fn begin(&mut self, index: usize) {
        let pause = self.run.declared(index).map_or(0, |task| task.triggered_after_ms);
        self.run.state = SequenceState::Running { task: index };
        match pause {
            0 => self.start(index),
            pause => self.set_timer(Timer::Delay, Duration::from_millis(pause)),
        }
    }

    fn start(&mut self, index: usize) {
        let now = self.now;
        let Some(task) = self.run.tasks.get_mut(index).filter(|task| task.started_at.is_none()) else { return };
        task.started_at = Some(now);
        match self.run.done_by(index) {
            DoneBy::Deployment => self.deploy(index),
            DoneBy::Rollback => self.go_back(index),
            DoneBy::Pod => self.try_task(index),
            DoneBy::Approval => self.ask_for_approval(index),
            DoneBy::Evaluation => self.evaluate(index),
            DoneBy::Executors => self.offer(index),
        }
    }

    fn timer(&mut self, index: usize, timer: Timer) {
        let pauses = self.run.tasks[index].started_at.is_none();
        match timer {
            Timer::Delay if !pauses => {}
            Timer::Delay if self.gives_slot() => self.run.state = SequenceState::Returning { task: index },
            Timer::Delay => self.start(index),
            Timer::Retry => self.retry(index),
            Timer::Start => self.start_is_late(index),
            Timer::Finish => self.not_finished(index),
            Timer::Deadline => {
                let late = self.is_late();
                self.cancel(index, Outcome::TIMED_OUT, &late);
            }
            Timer::Progress => self.is_silent(index),
        }
    }

    /// Whether it must have its slot again before its next task: it has let others have it, or is paused.
    fn gives_slot(&self) -> bool {
        self.yielded || self.run.paused.is_some()
    }

    fn is_late(&self) -> String {
        let limit = Duration::from_millis(self.run.procedure.sequence.timeout_ms.unwrap_or_default());
        format!("timed out: the sequence did not end within {}", policy::format_duration(limit))
    }

    fn take(&mut self, index: usize, event: &Event) {
        match event {
            Event::DeploymentStarted { config, deployment } => self.deployment_started(index, config, deployment),
            Event::DeploymentEnded { deployment, outcome, message, served_already } => {
                self.deployment_ended(index, deployment, (*outcome, *served_already), message);
            }
            Event::GoesBack { .. } | Event::CannotGoBack { .. } => self.goes_back(index, event),
            Event::PodStarted { pod } => self.pod_started(index, pod),
            Event::PodEnded { pod, outcome, result } => self.pod_ended(index, pod, (outcome, result.as_ref())),
            Event::Delayed { message } => self.delayed(index, message),
            Event::Measured { .. } | Event::NotMeasured { .. } | Event::Evaluated { .. } => {
                self.evaluation(index, event);
            }
            Event::ExecutorStarted { .. } | Event::ExecutorReported { .. } | Event::ExecutorFinished { .. } => {
                self.executors(index, event);
            }
            _ => {}
        }
    }

    /// What was to begin by now has not.
    fn start_is_late(&mut self, index: usize) {
        match self.run.done_by(index) {
            DoneBy::Deployment => self.not_listening(index),
            DoneBy::Pod => self.pod_is_late(index),
            DoneBy::Executors => self.nobody_started(index),
            DoneBy::Rollback | DoneBy::Approval | DoneBy::Evaluation => {}
        }
    }

    /// A task ended: the next one begins, or the sequence ends.
    fn finish(&mut self, index: usize, outcome: Outcome, message: String) {
        let task = &mut self.run.tasks[index];
        task.ended_at = Some(self.now);
        task.outcome = Some(outcome);
        task.message = message;
        if matches!(self.run.done_by(index), DoneBy::Approval | DoneBy::Evaluation | DoneBy::Executors) {
            self.clear_timer(Timer::Start);
            self.clear_timer(Timer::Finish);
            self.await_no_sign(index);
        }
        match self.run.state {
            SequenceState::Ending { outcome, .. } => self.end(outcome, self.run.message.clone()),
            _ => self.go_on(index + 1),
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
        open |= self.recall(index);
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
        if self.run.procedure.sequence.timeout_ms.is_some() {
            self.clear_timer(Timer::Deadline);
        }
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
