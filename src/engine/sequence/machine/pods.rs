//! Tasks that run-once pods do.

use super::Step;
use crate::engine::lifecycle::policy;
use crate::engine::sequence::pod_result::{self, Judged};
use crate::engine::sequence::task_pod::task_pod;
use crate::model::action::Action;
use crate::model::cloud_event::{Phase, SOURCE};
use crate::model::event::Timer;
use crate::model::ids::PodName;
use crate::model::outcome::{Outcome, PodOutcome};
use crate::model::pod::{PodId, PodResult};
use crate::model::run::{DoneBy, ExecutorRecord, SequenceState, TaskTry};
use crate::model::time::Timestamp;

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
        let Some(definition) = self.run.definition(index) else {
            let message = format!("nothing says how to run `{}`: add a Task object of that name", task.name);
            return self.finish(index, Outcome::ERRORED, message);
        };
        let pod = task_pod(&self.run, index, definition, task.tries.len() + 1);
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

    pub(super) fn pod_ended(
        &mut self,
        index: usize,
        pod: &PodName,
        (outcome, result): (&PodOutcome, Option<&PodResult>),
    ) {
        let now = self.now;
        let Some(last) = self.last_try(index).filter(|last| &last.pod == pod) else { return };
        last.ended_at = Some(now);
        last.outcome = Some(outcome.clone());
        let (began, timed_out) = (last.running_since.unwrap_or(last.started_at), last.timed_out);
        let judged = pod_result::judge(outcome, result, now.since(began));
        self.clear_timer(Timer::Start);
        let task = &self.run.tasks[index];
        let tries = u32::try_from(task.tries.len()).unwrap_or(u32::MAX);
        let retries = self.run.definition(index).map_or(0, |definition| definition.retries);
        let retries = retries.max(self.run.declared(index).map_or(0, |task| task.retries));
        match self.run.state {
            _ if judged.outcome.passes() => self.ended_by_pod(index, began, judged, result.is_some()),
            SequenceState::Ending { outcome, .. } => {
                let message = format!("{}; {} {}", self.run.message, self.run.tasks[index].step, judged.message);
                self.finish(index, outcome, message);
            }
            _ if timed_out => self.finish(index, Outcome::TIMED_OUT, self.not_started(index, pod, &judged.message)),
            _ if tries <= retries => self.set_timer(Timer::Retry, policy::pause(tries)),
            _ => self.ended_by_pod(index, began, judged, result.is_some()),
        }
    }

    /// A task ended as its pod did. One that has written of that has told it as executors do.
    fn ended_by_pod(&mut self, index: usize, began: Timestamp, judged: Judged, has_written: bool) {
        let Judged { outcome, message, data } = judged;
        if has_written {
            let told = ExecutorRecord {
                started_at: Some(began),
                finished_at: Some(self.now),
                finished_by: format!("{}.{}", self.run.triggered_id(index), Phase::Finished.word()),
                outcome: Some(outcome),
                message: message.clone(),
                data,
                ..ExecutorRecord::of(SOURCE)
            };
            self.run.tasks[index].executors = vec![told];
            self.bound_data(index);
        }
        match self.run.tasks[index].ended_at {
            Some(_) => self.run.tasks[index].executors.clear(), // more than fits is not told at all
            None => self.finish(index, outcome, message),
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
