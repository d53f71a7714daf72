//! Tasks that run-once pods do.

use super::Step;
use crate::engine::lifecycle::policy;
use crate::engine::sequence::task_pod::task_pod;
use crate::model::action::Action;
use crate::model::event::Timer;
use crate::model::ids::PodName;
use crate::model::outcome::{Outcome, PodOutcome};
use crate::model::pod::PodId;
use crate::model::run::{DoneBy, SequenceState, TaskTry};

impl Step {
    pub(super) fn retry(&mut self, index: usize) {
        let task = &self.run.tasks[index];
        let failed = task.tries.last().is_some_and(|last| last.outcome.is_some());
        if failed {
            self.try_task(index);
        } else if task.again_at.is_some() && self.run.done_by(index) == DoneBy::Evaluation {
            self.evaluate(index);
        } else if task.again_at.is_some() {
            self.offer(index);
        }
    }

    pub(super) fn try_task(&mut self, index: usize) {
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

    /// What the pod of a task waits for, or what is measured for it, if that is under way.
    pub(super) fn delayed(&mut self, index: usize, message: &str) {
        let is_measured = self.run.done_by(index) == DoneBy::Evaluation && self.run.is_at(index);
        if is_measured || self.last_try(index).is_some() {
            message.clone_into(&mut self.run.tasks[index].message);
        }
    }

    /// The try of a task that is under way.
    fn last_try(&mut self, index: usize) -> Option<&mut TaskTry> {
        self.run.tasks[index].tries.last_mut().filter(|last| last.outcome.is_none())
    }

    pub(super) fn pod_started(&mut self, index: usize, pod: &PodName) {
        let now = self.now;
        let Some(last) = self.last_try(index).filter(|last| &last.pod == pod && last.running_since.is_none()) else {
            return;
        };
        last.running_since = Some(now);
        self.run.tasks[index].message.clear();
        self.clear_timer(Timer::Start);
    }

    /// The pod of a task is not started in time: it is stopped, and the task ends once that is certain.
    pub(super) fn pod_is_late(&mut self, index: usize) {
        let namespace = self.run.destination.namespace.clone();
        let Some(last) = self.last_try(index).filter(|last| last.running_since.is_none()) else { return };
        last.timed_out = true;
        let pod = PodId { namespace, name: last.pod.clone() };
        self.decided.actions.push(Action::StopPod { pod });
    }

    pub(super) fn pod_ended(&mut self, index: usize, pod: &PodName, outcome: &PodOutcome) {
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
        let retries = retries.max(self.run.declared(index).map_or(0, |task| task.retries));
        match (outcome, self.run.state) {
            (PodOutcome::Succeeded, _) => self.finish(index, Outcome::PASS, told),
            (_, SequenceState::Ending { outcome, .. }) => {
                let message = format!("{}; {} {told}", self.run.message, self.run.tasks[index].step);
                self.finish(index, outcome, message);
            }
            _ if timed_out => self.finish(index, Outcome::TIMED_OUT, self.not_started(index, pod, &told)),
            _ if tries <= retries => self.set_timer(Timer::Retry, policy::pause(tries)),
            (PodOutcome::Unknown { .. }, _) => self.finish(index, Outcome::UNKNOWN, told),
            _ => self.finish(index, Outcome::FAIL, told),
        }
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
}
