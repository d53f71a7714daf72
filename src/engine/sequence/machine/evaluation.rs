//! The task whose objectives launchway judges itself.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::Step;
use crate::engine::evaluation::measurement;
use crate::model::action::{Action, Effect};
use crate::model::evaluation::Reading;
use crate::model::event::{Event, Timer};
use crate::model::outcome::Outcome;
use crate::model::run::DoneBy;
use crate::model::time::Timestamp;

impl Step {
    /// Has measured what the objectives of a task are about; what is known already is judged at once.
    pub(super) fn evaluate(&mut self, index: usize) {
        let objectives = match self.run.objectives(index) {
            Some(Ok(objectives)) => objectives,
            Some(Err(wrong)) => {
                return self.finish(index, Outcome::ERRORED, format!("its objectives are wrong: {wrong}"));
            }
            None => return,
        };
        self.count_offer(index);
        self.run.tasks[index].measured_at = None;
        let limit = self.run.declared(index).and_then(|task| task.timeout_ms).map(Duration::from_millis);
        let Some(measurement) = measurement(&self.run, (index, &objectives), self.now) else {
            return self.judge_objectives(index, self.now, BTreeMap::new());
        };
        self.set_timer(Timer::Finish, limit.unwrap_or(self.run.limits.run));
        self.run.tasks[index].message = format!("asks {} for {} values", measurement.url, measurement.queries.len());
        self.decided.actions.push(Action::Measure { task: index, measurement: Box::new(measurement) });
    }

    /// What has become of measuring or of judging.
    pub(super) fn evaluation(&mut self, index: usize, event: &Event) {
        if !self.run.is_at(index) || self.run.done_by(index) != DoneBy::Evaluation {
            return;
        }
        match event {
            Event::Measured { task, at, readings } if *task == index => {
                self.judge_objectives(index, *at, readings.clone());
            }
            Event::NotMeasured { task, message } if *task == index => {
                self.finish(index, Outcome::ERRORED, message.clone());
            }
            Event::Evaluated { task, outcome, message, evaluation } if *task == index => {
                self.evaluated(index, *outcome, message, evaluation);
            }
            _ => {}
        }
    }

    fn judge_objectives(&mut self, index: usize, at: Timestamp, readings: BTreeMap<String, Reading>) {
        let task = &mut self.run.tasks[index];
        if task.measured_at.is_some() {
            return;
        }
        task.measured_at = Some(at);
        "is judged".clone_into(&mut task.message);
        let by = self.run.id.clone();
        self.decided.effects.push(Effect::Judge { by, task: index, at, readings });
    }

    fn evaluated(&mut self, index: usize, outcome: Outcome, message: &str, evaluation: &Value) {
        let retries = self.run.declared(index).map_or(0, |task| task.retries);
        if !outcome.passes() && self.run.tasks[index].offers <= retries {
            return self.again(index, message);
        }
        self.run.tasks[index].evaluation = evaluation.clone();
        self.bound_data(index);
        if self.run.tasks[index].ended_at.is_none() {
            self.finish(index, outcome, message.to_owned());
        }
    }
}
