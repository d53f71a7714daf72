//! A deployer of the user's own at work: it says what runs, step by step, and its end what becomes of the deployment.

use super::Step;
use crate::engine::deployment::deployer::deployer_pod;
use crate::engine::lifecycle::policy;
use crate::model::action::Action;
use crate::model::deployment_config::HookPoint;
use crate::model::event::Timer;
use crate::model::ids::PodName;
use crate::model::outcome::Outcome;
use crate::model::run::{Asked, Deployer, DeploymentStep, Phase};
use crate::model::wanted::Progress;

impl Step {
    /// The deployer is started. What served before is wanted until it asks for something else, and nothing beside it.
    pub(super) fn deploy(&mut self) {
        self.run.deployer = Deployer::default();
        self.run.progress = Progress::default();
        if self.run.phase == Phase::New {
            self.run.phase = Phase::Pending;
        }
        self.want();
        let attempt = 1 + self.run.hooks.iter().filter(|record| record.point == HookPoint::Deployer).count();
        let pod = deployer_pod(&self.run, attempt, self.until_deadline().as_secs().max(1));
        self.hook_started(HookPoint::Deployer, pod.id.name.clone());
        self.set_timer(Timer::Start, self.run.spec.strategy.timeout());
        self.decided.actions.push(Action::RunPod { pod: Box::new(pod) });
    }

    /// Its pod was started.
    pub(super) fn deployer_started(&mut self, pod: &PodName) {
        if self.is_deployer(pod) && !self.run.deployer.started {
            self.run.deployer.started = true;
            self.clear_timer(Timer::Start);
        }
    }

    /// Its pod should have been started by now.
    pub(super) fn deployer_is_late(&mut self) {
        if self.run.failure.is_none() && !self.run.deployer.started && self.hook_runs() {
            let waited = policy::format_duration(self.run.spec.strategy.timeout());
            let message = self.because(format!("the deployer could not be started for {waited}"));
            self.give_up(Outcome::FAIL, message);
        }
    }

    /// It asks for something. Whoever told it that it may has judged that; what came later counts all the same.
    pub(super) fn deployer_asked(&mut self, pod: &PodName, asked: Asked, replicas: u32) {
        let goes_on = self.run.failure.is_none() && self.run.waits.paused_by.is_none();
        if !goes_on || self.run.led_by.is_none() && !self.is_deployer(pod) {
            return;
        }
        self.run.replicas = replicas;
        let deployer = &mut self.run.deployer;
        (deployer.asked, deployer.settled) = (Some(asked), false);
        deployer.stalled.clear();
        deployer.asks = deployer.asks.saturating_add(1);
        self.want();
        self.set_timer(Timer::Progress, self.run.timeout());
    }

    /// How far what it asked for is. It finds that out by itself, and asks for more.
    pub(super) fn deployer_served(&mut self, progress: Progress, converged: bool) {
        let asked = self.run.deployer.asked.is_some();
        if progress != self.run.progress {
            self.run.progress = progress;
            if asked && !converged {
                self.set_timer(Timer::Progress, self.run.timeout());
            }
        }
        if self.run.phase == Phase::Pending && progress.updated > 0 {
            self.run.phase = Phase::Running;
        }
        if asked && converged && !self.run.deployer.settled {
            self.run.deployer.settled = true;
            self.run.deployer.stalled.clear();
            self.clear_timer(Timer::Progress);
        }
    }

    /// What it asked for makes no progress. What that means is for it to say.
    pub(super) fn deployer_stalls(&mut self) {
        if self.run.deployer.asked.is_some() && !self.run.deployer.settled {
            let waited = policy::format_duration(self.run.timeout());
            self.run.deployer.stalled = self.because(format!("no progress for {waited}"));
        }
    }

    /// A person lets it go on: what it asked for before has its time again.
    pub(super) fn deployer_goes_on(&mut self) {
        let Deployer { asked, settled, .. } = &self.run.deployer;
        let is_at_work = self.run.led_by.is_some() || self.hook_runs();
        if self.run.step == DeploymentStep::Deployer && asked.is_some() && !settled && is_at_work {
            self.set_timer(Timer::Progress, self.run.timeout());
        }
    }

    fn is_deployer(&self, pod: &PodName) -> bool {
        let last = self.run.hooks.last();
        last.is_some_and(|record| record.point == HookPoint::Deployer && &record.pod == pod && record.outcome.is_none())
    }
}
