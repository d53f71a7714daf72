//! Several replication controllers under one deployment. That of their deployment config leads: it goes to its next step once all
//! have done theirs, and ends for all of them in one transaction. Theirs follow: each does with its own pods what its step asks for,
//! and tells when that is done.

use super::Step;
use crate::engine::lifecycle::policy;
use crate::model::action::Effect;
use crate::model::event::{Event, Timer};
use crate::model::outcome::Outcome;
use crate::model::run::{Deployer, DeploymentFailure, DeploymentRun, DeploymentStep, Phase};
use crate::model::wanted::Progress;

impl Step {
    /// What a leading deployment does about its followers; whether there is nothing else to be done.
    pub(super) fn lead(&mut self, event: &Event) -> bool {
        match event {
            Event::Followed { controller, step } => self.followed(controller, *step),
            Event::FollowerFailed { controller, outcome, message, has_left } => {
                self.follower_failed(controller, *outcome, message, *has_left);
            }
            Event::Prepared if self.run.step == DeploymentStep::Prepare => return !self.all_followed(),
            _ => return false,
        }
        true
    }

    /// The followers are told where it is.
    pub(super) fn call_followers(&mut self) {
        let step = self.run.step;
        self.tell_followers(&Event::Led { step });
    }

    pub(super) fn tell_followers(&mut self, event: &Event) {
        let following: Vec<_> = self.run.controllers.following().map(|it| self.run.deployment_of(it)).collect();
        self.decided.effects.extend(following.into_iter().map(|run| Effect::Tell { run, event: event.clone() }));
    }

    /// Whether every follower has done its part of the step.
    pub(super) fn all_followed(&self) -> bool {
        self.run.controllers.following().all(|follower| follower.reached == Some(self.run.step))
    }

    /// The leading deployment has done its own part of a step, which goes on once all have followed.
    pub(super) fn go_on_together(&mut self) {
        let step = self.run.step;
        // They have no part in the steps of other strategies than Custom.
        let goes_on = self.all_followed() || !matches!(step, DeploymentStep::Rollout | DeploymentStep::Restore);
        if goes_on || self.run.controllers.waited_at.replace(step) != Some(step) {
            self.clear_timer(Timer::Progress);
        }
        if goes_on {
            self.go_on();
        }
    }

    /// Whether it has done its own part of its step, and waits for the others.
    pub(super) fn waits_for_others(&self) -> bool {
        let told = self.run.led_by.as_ref().and_then(|leader| leader.told);
        self.run.controllers.waited_at.or(told) == Some(self.run.step)
    }

    /// It has its part of its step to do, once more if it was done.
    pub(super) fn has_to_do(&mut self) {
        self.run.controllers.waited_at = None;
        if let Some(leader) = &mut self.run.led_by {
            leader.told = None;
        }
    }

    /// A follower has done its part of a step.
    fn followed(&mut self, controller: &str, step: DeploymentStep) {
        if step != self.run.step {
            return;
        }
        let mut all = self.run.controllers.all.iter_mut();
        let Some(follower) = all.find(|it| it.name == controller) else { return };
        follower.reached = Some(step);
        self.look_again();
    }

    fn look_again(&mut self) {
        if !self.all_followed() || self.run.waits.paused_by.is_some() {
            return;
        }
        match self.run.step {
            DeploymentStep::Prepare => self.decided.actions.push(super::prepare(&self.run)),
            step if self.run.controllers.waited_at == Some(step) => self.go_on(),
            _ => {}
        }
    }

    fn follower_failed(&mut self, controller: &str, outcome: Outcome, message: &str, has_left: bool) {
        let mut all = self.run.controllers.all.iter_mut();
        let Some(follower) = all.find(|it| it.name == controller) else { return };
        follower.has_left |= has_left;
        match self.run.failure {
            // Its pods were there when it was told to be done: what becomes of them then is not a matter of the rollout.
            None if !has_left && self.run.step == DeploymentStep::Post => {}
            None => self.give_up(outcome, format!("{controller}: {message}")),
            Some(_) => self.look_again(),
        }
    }

    /// What a following deployment does about an event; whether there is nothing else to be done.
    pub(super) fn follow(&mut self, event: &Event) -> bool {
        use DeploymentStep as At;
        match (self.run.step, event) {
            (_, Event::Led { step }) => self.led_to(*step),
            (_, Event::LeaderEnded { phase, outcome, message }) => self.end_with_leader(*phase, *outcome, message),
            (At::Prepare, Event::Prepared) => match self.run.spec.not_carried_out() {
                Some(what) => self.cannot_follow(Outcome::FAIL, what, false),
                None => self.has_followed(),
            },
            (At::Prepare, Event::PrepareFailed { message }) => {
                self.cannot_follow(Outcome::FAIL, message.clone(), false);
            }
            (_, Event::Disowned { reason }) => {
                self.cannot_follow(Outcome::SUPERSEDED, reason.clone(), true);
                let message = format!("version {} gave way: {reason}", self.run.version);
                self.goes_back(Outcome::SUPERSEDED, message.clone());
                self.close(Phase::Failed, Outcome::SUPERSEDED, message);
            }
            (At::Rollout, Event::Timer { timer: Timer::Progress }) if self.run.waits.since.is_some() => {}
            (At::Rollout, Event::Timer { timer: Timer::Progress }) if !self.run.not_listening.is_empty() => {
                self.has_followed(); // what served before would not be reached either
            }
            (At::Rollout, Event::Timer { timer: Timer::Progress }) => {
                let message = self.no_progress();
                self.cannot_follow(Outcome::FAIL, message, false);
            }
            (At::Restore, Event::Timer { timer: Timer::Progress }) => self.has_followed(),
            // How long all may take is a matter of what leads.
            (_, Event::Cancel { .. } | Event::Promoted { .. } | Event::Timer { timer: Timer::Deadline }) => {}
            _ => return false,
        }
        true
    }

    /// Where the leading deployment has got to.
    fn led_to(&mut self, step: DeploymentStep) {
        if let Some(leader) = &mut self.run.led_by {
            leader.told = None;
        }
        match step {
            DeploymentStep::Deployer => self.in_hands_of_deployer(),
            DeploymentStep::Rollout => self.enter(step),
            DeploymentStep::Restore if self.run.step == DeploymentStep::Prepare => {
                self.goes_back(Outcome::FAIL, String::new());
                self.run.step = step; // nothing was exchanged
                self.has_followed();
            }
            DeploymentStep::Restore => {
                self.stop_waiting();
                self.goes_back(Outcome::FAIL, String::new());
                self.enter(step);
            }
            _ => {}
        }
    }

    /// What served before is wanted until the deployer asks for something else, and nothing beside it.
    fn in_hands_of_deployer(&mut self) {
        self.run.step = DeploymentStep::Deployer;
        self.run.deployer = Deployer::default();
        self.run.progress = Progress::default();
        self.run.problem.clear();
        if self.run.phase == Phase::New {
            self.run.phase = Phase::Pending;
        }
        self.want();
    }

    /// It has done its part of its step, which is told once.
    pub(super) fn has_followed(&mut self) {
        let step = self.run.step;
        let controller = self.run.config.name.clone();
        let Some(leader) = self.run.led_by.as_mut().filter(|leader| leader.told != Some(step)) else { return };
        leader.told = Some(step);
        let run = leader.run.clone();
        self.clear_timer(Timer::Progress);
        self.decided.effects.push(Effect::Tell { run, event: Event::Followed { controller, step } });
    }

    fn cannot_follow(&mut self, outcome: Outcome, message: String, has_left: bool) {
        let Some(run) = self.run.led_by.as_ref().map(|leader| leader.run.clone()) else { return };
        message.clone_into(&mut self.run.problem);
        let controller = self.run.config.name.clone();
        let event = Event::FollowerFailed { controller, outcome, message, has_left };
        self.decided.effects.push(Effect::Tell { run, event });
    }

    /// The followers end with it, and those go that the version which serves now does not have.
    pub(super) fn end_controllers(&mut self, outcome: Outcome) {
        let (phase, message) = (self.run.phase, self.run.message.clone());
        self.tell_followers(&Event::LeaderEnded { phase, outcome, message });
        if phase == Phase::Complete {
            let go = self.run.controllers.go.iter().map(|name| self.run.controller(name));
            let go: Vec<Effect> = go.map(|config| Effect::Remove { config }).collect();
            self.decided.effects.extend(go);
        }
    }

    fn end_with_leader(&mut self, phase: Phase, outcome: Outcome, message: &str) {
        let DeploymentRun { version, spec, previous, .. } = &self.run;
        let leader = spec.controller_of.as_deref().unwrap_or_default();
        let message = match (phase, previous) {
            (Phase::Complete, _) => {
                let took = policy::format_duration(self.now.since(self.run.created_at));
                format!("version {version} serves after {took}")
            }
            (_, Some(previous)) => {
                format!("version {version} went back to version {previous} with {leader}: {message}")
            }
            (_, None) => format!("version {version} ended with {leader}: {message}"),
        };
        if phase != Phase::Complete {
            self.goes_back(outcome, message.clone());
        }
        self.close(phase, outcome, message);
    }

    /// What was the step of its failure stays so; how that counts is known once what leads it has ended.
    fn goes_back(&mut self, outcome: Outcome, message: String) {
        let step = self.run.failure.as_ref().map_or(self.run.step, |failure| failure.step);
        self.run.failure = Some(DeploymentFailure { step, outcome, message });
    }
}
