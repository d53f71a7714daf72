//! The deployment as a state machine: prepare → pre → (deployer) → (scale down | first pod → mid | trials) → rollout → post → done, and
//! back to the previous version when it fails. Where it waits for a person, everything stays as it is and no time counts.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::deployment::adoption::template_digest;
use crate::engine::deployment::deployer::with_reason;
use crate::engine::deployment::strategy;
use crate::engine::lifecycle::pod::{hook_pod, pod_name};
use crate::engine::lifecycle::policy::{self, Consequence};
use crate::model::action::{Action, Decided, Effect};
use crate::model::deployment_config::{FailurePolicy, HookPoint, LifecycleHook, TagImage};
use crate::model::event::{Event, Timer};
use crate::model::ids::PodName;
use crate::model::outcome::{Outcome, PodOutcome};
use crate::model::pod::{Pod, PodId, ReplicaSet};
use crate::model::run::{DeploymentFailure, DeploymentRun, DeploymentStep, HookRecord, Phase, TrialPart};
use crate::model::time::Timestamp;
use crate::model::wanted::{Progress, Wanted};

mod controllers;
mod deployer;
mod messages;
mod wait;

use messages::{failed_message, hook_name, serves_on_message};

/// A step under way: the run as it becomes, and what it asks for.
struct Step {
    run: DeploymentRun,
    decided: Decided,
    now: Timestamp,
}

/// The first step of a new deployment, or of a new attempt at one.
pub fn begin(run: &DeploymentRun, now: Timestamp) -> (DeploymentRun, Decided) {
    let mut step = Step { run: run.clone(), decided: Decided::default(), now };
    step.run.step = DeploymentStep::Prepare;
    step.run.phase = Phase::New;
    step.decided.effects.push(Effect::Own { config: run.config.clone(), by: run.id.clone() });
    if run.led_by.is_none() {
        step.set_timer(Timer::Deadline, run.spec.strategy.active_deadline());
    }
    step.decided.actions.push(prepare(run));
    (step.run, step.decided)
}

/// What a deployment's first step asks for. It goes on once that is done.
pub(super) fn prepare(run: &DeploymentRun) -> Action {
    Action::Prepare { pod: Box::new(template_pod(run)), again: run.attempt > 1 }
}

/// What a deployment becomes when it receives `event`.
pub fn step(run: &DeploymentRun, event: &Event, now: Timestamp) -> (DeploymentRun, Decided) {
    let mut step = Step { run: run.clone(), decided: Decided::default(), now };
    if run.step != DeploymentStep::Done {
        step.take(event);
    }
    (step.run, step.decided)
}

impl Step {
    fn take(&mut self, event: &Event) {
        use DeploymentStep as At;
        let is_done = if self.run.led_by.is_some() { self.follow(event) } else { self.lead(event) };
        if is_done {
            return;
        }
        match (self.run.step, event) {
            (At::Prepare, Event::Prepared) => match self.run.spec.not_carried_out() {
                Some(what) => self.fail(Outcome::FAIL, what),
                None => self.go_on(),
            },
            (At::Prepare, Event::PrepareFailed { message }) => self.fail(Outcome::FAIL, message.clone()),
            (At::Prepare, Event::Delayed { message }) => message.clone_into(&mut self.run.problem),
            (At::Deployer, Event::PodStarted { pod }) => self.deployer_started(pod),
            (At::Deployer, Event::DeployerAsked { pod, asked, replicas }) => {
                self.deployer_asked(pod, *asked, *replicas);
            }
            (_, Event::Delayed { message }) if self.point().is_some() => message.clone_into(&mut self.run.problem),
            (_, Event::PodEnded { pod, outcome, .. }) if self.point().is_some() => self.hook_ended(pod, outcome),
            (_, Event::Timer { timer: Timer::Retry }) if self.point().is_some() => self.retry_hook(),
            (_, Event::Timer { timer: Timer::Delay }) => self.pause_is_over(),
            (_, Event::Paused { by }) => self.pause(by),
            (_, Event::Resumed { by }) => self.resume(by),
            (_, Event::Promoted { .. }) => self.promote(),
            (_, Event::Served { generation, progress, converged, problem, not_listening, brought })
                if self.hears_of_pods() && *generation == self.run.generation =>
            {
                let not_listening = if self.run.awaits_services() { not_listening.as_str() } else { "" };
                let paused = self.run.waits.paused_by.as_ref().map(|by| format!("paused by {by}")).unwrap_or_default();
                let in_the_way = [&paused, problem.as_str(), not_listening].into_iter().filter(|told| !told.is_empty());
                self.run.problem = in_the_way.collect::<Vec<_>>().join("; ");
                let stays = *converged && !brought;
                self.run.not_listening = if stays { not_listening.to_owned() } else { String::new() };
                self.served(*progress, *converged && not_listening.is_empty());
            }
            (At::Rollout, Event::Timer { timer: timer @ (Timer::Progress | Timer::Deadline) })
                if !self.run.not_listening.is_empty() && (*timer == Timer::Progress || self.all_followed()) =>
            {
                self.go_on_together(); // what served before would not be reached either
            }
            (At::Restore, Event::Timer { timer: Timer::Progress }) => self.end(),
            (At::Restore, Event::Cancel { .. } | Event::Timer { .. }) => {}
            (_, Event::Timer { timer: Timer::Progress | Timer::Deadline }) if self.run.waits.since.is_some() => {}
            (At::Deployer, Event::Timer { timer: Timer::Progress }) => self.deployer_stalls(),
            (At::Deployer, Event::Timer { timer: Timer::Start }) => self.deployer_is_late(),
            (_, Event::Timer { timer: Timer::Progress }) if self.run.step.exchanges() => self.stands_still(),
            (_, Event::Timer { timer: Timer::Deadline }) => {
                let deadline = policy::format_duration(self.run.spec.strategy.active_deadline());
                let message = self.because(format!("took longer than its deadline of {deadline}"));
                self.give_up(Outcome::FAIL, message);
            }
            (_, Event::Cancel { outcome, reason }) => self.give_up(*outcome, reason.clone()),
            (_, Event::Disowned { reason }) => self.disowned(reason),
            _ => {}
        }
    }

    /// Whether it wants something, and is to hear how far that is.
    fn hears_of_pods(&self) -> bool {
        self.run.step.exchanges() || self.run.step == DeploymentStep::Deployer
    }

    fn stands_still(&mut self) {
        let message = self.no_progress();
        self.fail(Outcome::FAIL, message);
    }

    fn no_progress(&self) -> String {
        let waited = policy::format_duration(self.run.timeout());
        let Progress { available, old, .. } = self.run.progress;
        let wanted = self.wanted_pods();
        let message =
            format!("no progress for {waited}: {available} of {wanted} new pods available, {old} old ones left");
        self.because(message)
    }

    /// How many pods of its version are to be there in its step.
    fn wanted_pods(&self) -> u32 {
        let DeploymentRun { replicas, version, spec, .. } = &self.run;
        let (targets, pace) = (strategy::targets(&self.run), strategy::pace(spec, *replicas));
        let counts = Wanted { replicas: *replicas, targets, pace, ..Wanted::default() }.counts();
        counts.get(version).copied().unwrap_or(*replicas)
    }

    /// A message with what is known to be in the way.
    fn because(&self, message: String) -> String {
        if self.run.problem.is_empty() { message } else { format!("{message}: {}", self.run.problem) }
    }

    /// The current step went well. What a person has stay where it is finds that out again once it is resumed.
    fn go_on(&mut self) {
        if self.run.waits.paused_by.is_some() {
            return;
        }
        self.run.problem.clear();
        let next = strategy::next_step(&self.run, self.run.step);
        self.enter(next);
    }

    fn enter(&mut self, step: DeploymentStep) {
        use DeploymentStep as At;
        self.run.step = step;
        match step {
            At::Prepare => {}
            At::Pre | At::Mid | At::Trial { part: TrialPart::Analysis, .. } => self.start_hook(),
            At::Trial { part: TrialPart::Weight, .. } => self.exchange(),
            At::Trial { step, part: TrialPart::Pause } => self.begin_pause(step),
            At::Deployer => {
                self.deploy();
                self.call_followers();
            }
            At::ScaleDown | At::FirstPod => self.exchange(),
            At::Rollout | At::Restore => {
                self.exchange();
                self.call_followers();
            }
            At::Post => {
                if self.hook().is_some() {
                    self.want(); // what was brought up is what serves now
                }
                self.start_hook();
            }
            At::Done => self.end(),
        }
    }

    /// Pods of one version take the place of another's, within the time that this may take without progress.
    fn exchange(&mut self) {
        self.run.progress = Progress::default();
        self.has_to_do();
        if self.run.phase == Phase::New {
            self.run.phase = Phase::Pending;
        }
        self.want();
        self.set_timer(Timer::Progress, self.run.timeout());
    }

    fn want(&mut self) {
        self.run.generation += 1;
        let run = &self.run;
        self.decided.effects.push(Effect::Want {
            config: run.config.clone(),
            by: run.id.clone(),
            generation: run.generation,
            targets: strategy::targets(run),
            fallback: strategy::fallback(run),
            pace: strategy::pace_of(run),
            stays: run.waits.paused_by.is_some(),
        });
    }

    fn served(&mut self, progress: Progress, converged: bool) {
        if self.run.step == DeploymentStep::Deployer {
            return self.deployer_served(progress, converged);
        }
        if progress != self.run.progress {
            self.run.progress = progress;
            match converged && self.waits_for_others() {
                true => self.clear_timer(Timer::Progress),
                false => self.set_timer(Timer::Progress, self.run.timeout()),
            }
        }
        if self.run.phase == Phase::Pending && progress.updated > 0 {
            self.run.phase = Phase::Running;
        }
        if converged && self.run.led_by.is_some() {
            self.has_followed();
        } else if converged {
            self.go_on_together();
        }
    }

    fn point(&self) -> Option<HookPoint> {
        strategy::hook_point(&self.run.spec.strategy, self.run.step)
    }

    fn hook(&self) -> Option<(HookPoint, LifecycleHook)> {
        let point = self.point()?;
        self.run.spec.strategy.hook(point).map(|hook| (point, hook.clone()))
    }

    fn start_hook(&mut self) {
        let Some((point, hook)) = self.hook() else { return self.go_on() };
        let attempt = 1 + self.run.hooks.iter().filter(|record| record.point == point).count();
        let Some(command) = &hook.exec_new_pod else { return self.tag_images(point, &hook, attempt) };
        let remaining = self.until_deadline().as_secs().max(1);
        let seconds = hook.timeout_seconds.map_or(remaining, |timeout| timeout.min(remaining));
        let pod = hook_pod(&self.run, point, (&hook, command), attempt, seconds);
        self.hook_started(point, pod.id.name.clone());
        self.decided.actions.push(Action::RunPod { pod: Box::new(pod) });
    }

    /// A hook that tags images needs no pod; what it comes to is told as if it had one.
    fn tag_images(&mut self, point: HookPoint, hook: &LifecycleHook, attempt: usize) {
        if hook.tag_images.is_empty() {
            return self.go_on();
        }
        let template = &self.run.spec.template.spec;
        let image = |name: &str| {
            let mut containers = template.init_containers.iter().chain(&template.containers);
            containers.find(|container| container.name == name).map(|container| container.image.clone())
        };
        let tag = |tag: &TagImage| (tag.to.name.clone(), image(&tag.container_name).unwrap_or_default());
        let (by, pod) = (self.run.id.clone(), pod_name(&self.run, point, attempt));
        let tags = hook.tag_images.iter().map(tag).collect();
        self.hook_started(point, pod.clone());
        self.decided.effects.push(Effect::TagImages { by, pod, tags });
    }

    fn hook_started(&mut self, point: HookPoint, pod: PodName) {
        let by = self.run.parent.clone();
        self.run.hooks.push(HookRecord { point, by, pod, started_at: self.now, ended_at: None, outcome: None });
    }

    fn hook_ended(&mut self, pod: &PodName, outcome: &PodOutcome) {
        let now = self.now;
        let Some(record) = self.run.hooks.last_mut().filter(|hook| &hook.pod == pod && hook.outcome.is_none()) else {
            return;
        };
        record.ended_at = Some(now);
        record.outcome = Some(outcome.clone());
        if self.run.failure.is_some() {
            return self.back_out();
        }
        self.judge_hook();
    }

    /// What follows from the end of the hook that ran last.
    fn judge_hook(&mut self) {
        let Some((record, outcome)) = self.run.hooks.last().and_then(|it| Some((it, it.outcome.as_ref()?))) else {
            return;
        };
        let point = record.point;
        let took = record.ended_at.unwrap_or(self.now).since(record.started_at);
        let told = format!("{} {}", hook_name(point), policy::describe(outcome, took));
        let told = if point == HookPoint::Deployer { with_reason(told, outcome) } else { told };
        let tries = self.run.hooks.iter().filter(|hook| hook.point == point).count();
        let (failure_policy, retries) =
            self.hook().map_or((FailurePolicy::Abort, None), |(_, hook)| (hook.failure_policy, hook.retries));
        match policy::consequence(failure_policy, outcome, u32::try_from(tries).unwrap_or(u32::MAX), retries) {
            Consequence::GoOn => self.go_on(),
            Consequence::TryAgain { after } => self.set_timer(Timer::Retry, after),
            Consequence::Fail => self.fail(Outcome::FAIL, told),
        }
    }

    fn retry_hook(&mut self) {
        let over = self.run.hooks.last().is_some_and(|hook| hook.outcome.is_some());
        if over && self.run.failure.is_none() && self.run.waits.paused_by.is_none() {
            self.start_hook();
        }
    }

    /// Ends early: a hook that runs is ended first, so that nothing of this version overlaps with what follows.
    fn give_up(&mut self, outcome: Outcome, message: String) {
        if self.run.failure.is_some() {
            return;
        }
        if self.hook_runs() {
            self.stop_hook(outcome, message);
        } else {
            self.fail(outcome, message);
        }
    }

    /// What should run is in other hands: nothing is left to this run but its own hook.
    fn disowned(&mut self, reason: &str) {
        let failed = self.run.failure.is_some();
        if self.hook_runs() {
            if !failed {
                self.stop_hook(Outcome::SUPERSEDED, reason.to_owned());
            }
            return;
        }
        let failure = self.run.failure.get_or_insert_with(|| DeploymentFailure {
            step: self.run.step,
            outcome: Outcome::SUPERSEDED,
            message: reason.to_owned(),
        });
        let (version, outcome) = (self.run.version, failure.outcome);
        let message = match failed {
            true => format!("version {version} failed: {}; {reason}", failure.message),
            false => format!("version {version} gave way: {reason}"),
        };
        self.close(Phase::Failed, outcome, message);
    }

    fn hook_runs(&self) -> bool {
        self.run.hooks.last().is_some_and(|hook| hook.outcome.is_none())
    }

    /// Ends the hook that runs; what follows from the failure follows once it is gone.
    fn stop_hook(&mut self, outcome: Outcome, message: String) {
        self.stop_waiting();
        self.run.failure = Some(DeploymentFailure { step: self.run.step, outcome, message });
        let name = self.run.hooks.last().map(|hook| hook.pod.clone());
        let pod = name.map(|name| PodId { namespace: self.run.destination.namespace.clone(), name });
        self.decided.actions.extend(pod.map(|pod| Action::StopPod { pod }));
    }

    fn fail(&mut self, outcome: Outcome, message: String) {
        self.stop_waiting();
        self.run.failure = Some(DeploymentFailure { step: self.run.step, outcome, message });
        self.back_out();
    }

    /// Before the rollout nothing has changed; after it began, the previous version takes over again, unless the new one
    /// serves and its project wants no rollback by itself. Once its pods are gone, it does so as a version of its own.
    fn back_out(&mut self) {
        self.clear_timer(Timer::Retry);
        match self.run.step {
            DeploymentStep::Prepare | DeploymentStep::Pre => self.end(),
            DeploymentStep::Post if self.run.serves_on() => self.end(),
            _ => {
                if strategy::has_replaced(&self.run) {
                    let (config, after) = (self.run.config.clone(), self.run.version);
                    self.decided.effects.push(Effect::Restore { config, after });
                }
                self.enter(DeploymentStep::Restore);
            }
        }
    }

    fn end(&mut self) {
        let run = &self.run;
        let (phase, outcome, message) = match &run.failure {
            None => {
                let took = policy::format_duration(self.now.since(run.created_at));
                let message = format!("version {} serves after {took}", run.version);
                match run.not_listening.as_str() {
                    "" => (Phase::Complete, Outcome::PASS, message),
                    why => (Phase::Complete, Outcome::FAIL, format!("{message} and is not reached: {why}")),
                }
            }
            Some(failure) if run.step == DeploymentStep::Post && run.serves_on() => {
                (Phase::Complete, failure.outcome, serves_on_message(run, failure))
            }
            Some(failure) => (Phase::Failed, failure.outcome, failed_message(run, failure)),
        };
        self.close(phase, outcome, message);
    }

    /// A version that is complete serves, although nobody may reach it: that is for whoever waits for it.
    fn close(&mut self, phase: Phase, outcome: Outcome, message: String) {
        let run = &mut self.run;
        run.step = DeploymentStep::Done;
        (run.waits.since, run.waits.paused_by) = (None, None);
        run.ended_at = Some(self.now);
        run.phase = phase;
        run.message = message.clone();
        let (config, by, version) = (run.config.clone(), run.id.clone(), run.version);
        let told = Event::DeploymentEnded { deployment: run.id.clone(), outcome, message, served_already: false };
        let parent = run.parent.clone();
        let outcome = if phase == Phase::Complete { Outcome::PASS } else { outcome };
        self.decided.effects.push(Effect::DeploymentEnded { config, by, version, outcome });
        self.end_controllers(outcome);
        if self.run.led_by.is_none() {
            self.decided.effects.push(Effect::Tell { run: parent, event: told });
        }
        if self.run.waits.until.is_some() {
            self.clear_timer(Timer::Delay);
        }
        for timer in [Timer::Deadline, Timer::Progress, Timer::Retry] {
            self.clear_timer(timer);
        }
        if self.run.spec.strategy.deployer().is_some() {
            self.clear_timer(Timer::Start);
        }
    }

    fn until_deadline(&self) -> Duration {
        let waited = Duration::from_millis(self.run.waits.waited_ms);
        (self.run.created_at + self.run.spec.strategy.active_deadline() + waited).since(self.now)
    }

    fn set_timer(&mut self, timer: Timer, after: Duration) {
        self.decided.actions.push(Action::SetTimer { timer, due: self.now + after });
    }

    fn clear_timer(&mut self, timer: Timer) {
        self.decided.actions.push(Action::ClearTimer { timer });
    }
}

/// A pod of the deployment's version, as its images are prepared by; it is not started.
fn template_pod(run: &DeploymentRun) -> Pod {
    replica_set(run, 0).pod(0)
}

/// So many pods of the deployment's version.
pub fn replica_set(run: &DeploymentRun, replicas: u32) -> ReplicaSet {
    let mut template = run.spec.template.clone();
    template.metadata.labels = run.object.pod_labels(run.version, template.metadata.labels);
    ReplicaSet {
        config: run.config.clone(),
        version: run.version,
        destination: run.destination.clone(),
        template,
        object: Some(Arc::clone(&run.object)),
        digest: template_digest(&run.object),
        repository: run.repository.clone(),
        commit: run.commit.clone(),
        replicas,
        min_ready_seconds: run.spec.min_ready_seconds,
    }
}
