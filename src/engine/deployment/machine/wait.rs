//! Where a deployment waits, safely: at a pause of its own, or wherever a person has it stay. Everything stays as it is then,
//! and the time that passes counts for no deadline.

use std::time::Duration;

use super::Step;
use crate::clock::rfc3339;
use crate::model::event::{Event, Timer};
use crate::model::run::{DeploymentStep, TrialPart};
use crate::model::trial::{Length, Pause};

impl Step {
    /// A step of a canary stays as it is for a while, or until a person resumes it.
    pub(super) fn begin_pause(&mut self, step: u16) {
        let strategy = &self.run.spec.strategy;
        let steps = strategy.canary_params.as_ref().map_or(0, |params| params.steps.len());
        let Some((weight, pause)) = strategy.canary_step(step).map(|it| (it.weight, it.pause)) else {
            return self.go_on();
        };
        let at = format!("at step {step} of {steps} with {weight} % of the traffic");
        self.stand();
        self.run.problem = match pause {
            Some(Pause::For(Length(length))) => {
                let until = *self.run.waits.until.get_or_insert(self.now + length);
                self.set_timer(Timer::Delay, until.since(self.now));
                format!("{at} until {}", rfc3339(until))
            }
            Some(Pause::UntilResumed) | None => {
                let (target, stage) = (self.run.object.target(), &self.run.config.stage);
                format!("{at}: waits for `launchway rollout resume {target} -s {stage}`")
            }
        };
    }

    /// The pause of a step has lasted as long as it should.
    pub(super) fn pause_is_over(&mut self) {
        if self.is_at_pause() && self.run.waits.until.is_some_and(|until| until <= self.now) {
            self.end_pause();
        }
    }

    /// It goes on, unless it was told to stay where it is.
    fn end_pause(&mut self) {
        if self.run.waits.paused_by.is_none() {
            self.stop_waiting();
            self.go_on();
        }
    }

    /// It goes no further until it is resumed. What is going back goes on.
    pub(super) fn pause(&mut self, by: &str) {
        let waits = &self.run.waits;
        if waits.paused_by.is_some() || self.run.failure.is_some() || self.run.step == DeploymentStep::Restore {
            return;
        }
        self.run.waits.paused_by = Some(by.to_owned());
        self.run.problem = format!("paused by {by}");
        self.stand();
        if self.run.step.exchanges() {
            self.want();
        }
        self.tell_followers(&Event::Paused { by: by.to_owned() });
    }

    /// A person lets it go on: from where it was told to stay, or from a pause of its own.
    pub(super) fn resume(&mut self, by: &str) {
        if self.run.waits.paused_by.take().is_none() {
            if self.is_at_pause() && self.run.failure.is_none() {
                self.end_pause();
            }
            return;
        }
        self.tell_followers(&Event::Resumed { by: by.to_owned() });
        self.run.problem.clear();
        match self.run.step {
            DeploymentStep::Trial { step, part: TrialPart::Pause } => return self.pause_again(step),
            DeploymentStep::Prepare => self.decided.actions.push(super::prepare(&self.run)),
            _ => {}
        }
        self.move_on();
        if self.run.step.exchanges() {
            self.exchange();
        } else if self.point().is_some() {
            self.judge_hook();
            self.deployer_goes_on();
        }
    }

    /// It was told to stay during a pause of its own, which may be over by now.
    fn pause_again(&mut self, step: u16) {
        match self.run.waits.until {
            Some(until) if until <= self.now => self.end_pause(),
            _ => self.begin_pause(step),
        }
    }

    /// A person has it skip the steps that are left: at once where it pauses, else once it has done what it is at.
    pub(super) fn promote(&mut self) {
        let DeploymentStep::Trial { step, .. } = self.run.step else { return };
        if self.run.failure.is_some() || self.run.promoted.is_some() {
            return;
        }
        self.run.promoted = Some(step);
        if self.is_at_pause() {
            self.run.waits.paused_by = None;
            self.end_pause();
        }
    }

    fn is_at_pause(&self) -> bool {
        matches!(self.run.step, DeploymentStep::Trial { part: TrialPart::Pause, .. })
    }

    /// Its time stands still.
    fn stand(&mut self) {
        if self.run.waits.since.is_none() {
            self.run.waits.since = Some(self.now);
            self.clear_timer(Timer::Deadline);
        }
        self.clear_timer(Timer::Progress);
    }

    /// Its time goes on.
    fn move_on(&mut self) {
        let Some(since) = self.run.waits.since.take() else { return };
        let waited = u64::try_from(self.now.since(since).as_millis()).unwrap_or(u64::MAX);
        self.run.waits.waited_ms = self.run.waits.waited_ms.saturating_add(waited);
        if self.run.led_by.is_none() {
            let left = self.until_deadline().max(Duration::from_millis(1));
            self.set_timer(Timer::Deadline, left);
        }
    }

    /// It waits for nothing any more.
    pub(super) fn stop_waiting(&mut self) {
        self.run.waits.paused_by = None;
        if self.run.waits.until.take().is_some() {
            self.clear_timer(Timer::Delay);
        }
        self.move_on();
    }
}
