//! A pod's life as a state machine: what happened goes in, what to do comes out. Pure: time is passed in, counted
//! from the shim's start.

use std::time::Duration;

use super::unit::{Exit, Life, Purpose, StopStep, Unit};
use crate::model::outcome::{FailureReason, PodOutcome};
use crate::model::pod::{Pod, RestartPolicy};

/// Kubernetes' `terminationGracePeriodSeconds`, unless the pod says otherwise.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);
/// What a process gets after SIGTERM even if `preStop` used up the grace period (Kubernetes' own).
const LEAST_GRACE: Duration = Duration::from_secs(2);
/// The most that `postStart` may take.
const POST_START_LIMIT: Duration = Duration::from_secs(600);
/// The exit code of a process that SIGTERM ended.
const TERMINATED: i32 = 128 + 15;

/// What is known of a pod that ended because its shim was told to.
const INTERRUPTED: &str = "its shim was told to end, as when the machine shuts down";

/// A handler of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HandlerKey {
    /// The container's place.
    pub(crate) unit: usize,
    /// Which of its handlers.
    pub(crate) purpose: Purpose,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A container's command runs.
    Started(usize),
    /// A container's process is gone, or never came to be.
    Gone(usize, Exit),
    /// A handler ended.
    Handled(HandlerKey, Result<(), String>),
    /// The pod was asked to end.
    StopRequested,
    /// The shim was told to end, as everything is when the machine shuts down.
    Interrupted,
    /// No proxy has a request to the pod in flight.
    Drained,
    /// No process of the pod is left.
    Swept,
    /// Time has passed.
    Tick,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Start a container's command.
    Start(usize),
    /// Run a handler, at most so long.
    Handle(HandlerKey, Duration),
    /// End a container's handlers and whatever its command left behind.
    Clean(usize),
    /// Send SIGTERM to a container's processes.
    Terminate(usize),
    /// Send SIGKILL to a container's processes.
    Kill(usize),
    /// Let new connections in, or no more.
    Admit(bool),
}

/// Why a pod is being ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Asked,
    Deadline,
    Interrupted,
}

/// Where a pod is in its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its containers start and run.
    Running,
    /// It takes no new connections; those in flight end.
    Draining,
    /// Its containers are to end.
    Stopping,
    /// Its containers are gone; whatever they left behind is being killed.
    Sweeping(PodOutcome),
    /// Nothing is left.
    Ended(PodOutcome),
}

/// A pod.
#[derive(Debug)]
pub(crate) struct Machine {
    units: Vec<Unit>,
    stage: Stage,
    policy: RestartPolicy,
    runs_once: bool,
    grace: Duration,
    deadline: Option<Duration>,
    admitted: bool,
    stop: Option<(Cause, Duration)>,
}

impl Machine {
    /// A pod of which nothing was started yet.
    pub(crate) fn new(pod: &Pod) -> Self {
        let spec = &pod.template.spec;
        let init = spec.init_containers.iter().map(|container| Unit::new(container, true));
        let main = spec.containers.iter().map(|container| Unit::new(container, false));
        let deadline = [pod.run_once_seconds, spec.active_deadline_seconds].into_iter().flatten().min();
        Self {
            units: init.chain(main).collect(),
            stage: Stage::Running,
            policy: if pod.run_once_seconds.is_some() { RestartPolicy::Never } else { spec.restart_policy },
            runs_once: pod.run_once_seconds.is_some(),
            grace: spec.termination_grace_period_seconds.map_or(DEFAULT_GRACE, Duration::from_secs),
            deadline: deadline.map(Duration::from_secs),
            admitted: false,
            stop: None,
        }
    }

    /// Its containers, those that initialise first.
    pub(crate) fn units(&self) -> &[Unit] {
        &self.units
    }

    /// Where it is in its life.
    pub(crate) fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Whether it takes new connections.
    pub(crate) fn admitted(&self) -> bool {
        self.admitted
    }

    /// Whether it is to end because its shim was told to.
    pub(crate) fn is_interrupted(&self) -> bool {
        matches!(self.stop, Some((Cause::Interrupted, _)))
    }

    /// When it needs a [`Event::Tick`], if nothing happens before.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        let units = self.active().filter_map(|unit| self.units.get(unit)?.next_due());
        let pod = match self.stage {
            Stage::Running => self.deadline,
            Stage::Draining => Some(self.drain_end()),
            _ => None,
        };
        units.chain(pod).min()
    }

    /// Takes in what happened and says what to do.
    pub(crate) fn step(&mut self, now: Duration, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Started(unit) => self.started(now, unit, &mut effects),
            Event::Gone(unit, exit) => self.gone(now, unit, exit, &mut effects),
            Event::Handled(key, result) => self.handled(now, key, result, &mut effects),
            Event::StopRequested => self.begin_stop(now, Cause::Asked, &mut effects),
            Event::Interrupted => self.begin_stop(now, Cause::Interrupted, &mut effects),
            Event::Drained if self.stage == Stage::Draining => self.stop_units(now, &mut effects),
            Event::Swept => self.swept(),
            Event::Drained | Event::Tick => {}
        }
        self.advance(now, &mut effects);
        effects
    }

    /// Does what the state and the time call for, whatever led there.
    fn advance(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        if self.stage == Stage::Running && self.deadline.is_some_and(|deadline| now >= deadline) {
            self.begin_stop(now, Cause::Deadline, effects);
        }
        if self.stage == Stage::Draining && now >= self.drain_end() {
            self.stop_units(now, effects);
        }
        if self.stage == Stage::Running {
            self.start_units(now, effects);
            self.check_probes(now, effects);
            for unit in &mut self.units {
                unit.lose_patience(now);
                unit.forgive(now);
            }
        }
        self.kill_overdue(now, effects);
        self.finish(effects);
        self.admit(effects);
    }

    /// The containers whose turn it is: the first that initialises, or all others once those are done.
    fn active(&self) -> std::ops::Range<usize> {
        let initialising =
            self.units.iter().position(|unit| unit.init && !(unit.life == Life::Done && unit.succeeded()));
        match (&self.stage, initialising) {
            (Stage::Running, Some(unit)) => unit..unit + 1,
            (Stage::Running, None) => self.main_units(),
            _ => 0..self.units.len(),
        }
    }

    fn main_units(&self) -> std::ops::Range<usize> {
        self.units.iter().position(|unit| !unit.init).unwrap_or(self.units.len())..self.units.len()
    }

    fn start_units(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        for index in self.active() {
            let Some(unit) = self.units.get_mut(index) else { continue };
            if matches!(unit.life, Life::Waiting { at } if at <= now) {
                unit.starting(now);
                effects.push(Effect::Start(index));
            }
        }
    }

    fn check_probes(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        for (index, unit) in self.units.iter_mut().enumerate() {
            let due: Vec<Purpose> =
                unit.probes_due().filter(|(_, due)| *due <= now).map(|(purpose, _)| purpose).collect();
            for purpose in due {
                let Some(probe) = unit.probe(purpose) else { continue };
                probe.begin(now);
                effects.push(Effect::Handle(HandlerKey { unit: index, purpose }, probe.timeout()));
            }
        }
    }

    fn started(&mut self, now: Duration, index: usize, effects: &mut Vec<Effect>) {
        let Some(unit) = self.units.get_mut(index).filter(|unit| unit.life == Life::Starting) else { return };
        if unit.started(now) {
            effects.push(Effect::Handle(HandlerKey { unit: index, purpose: Purpose::PostStart }, POST_START_LIMIT));
        }
    }

    fn gone(&mut self, now: Duration, index: usize, exit: Exit, effects: &mut Vec<Effect>) {
        effects.push(Effect::Clean(index));
        let again = self.restarts(&exit);
        let Some(unit) = self.units.get_mut(index) else { return };
        let again = again && !(unit.init && exit.code == Some(0));
        if !(again && matches!(unit.life, Life::Stopping { .. }) && unit.problem.is_some()) {
            // What is to serve has no good end: a program that went on in the background leaves its container.
            unit.problem = (again || exit.code != Some(0)).then(|| describe(unit.name(), &exit));
        }
        unit.exit = Some(exit);
        if again {
            unit.restart_later(now);
        } else {
            unit.life = Life::Done;
        }
    }

    fn restarts(&self, exit: &Exit) -> bool {
        self.stage == Stage::Running
            && match self.policy {
                RestartPolicy::Always => true,
                RestartPolicy::OnFailure => exit.code != Some(0),
                RestartPolicy::Never => false,
            }
    }

    fn handled(&mut self, now: Duration, key: HandlerKey, result: Result<(), String>, effects: &mut Vec<Effect>) {
        let Some(unit) = self.units.get_mut(key.unit) else { return };
        if let Some(probe) = unit.probe(key.purpose) {
            probe.record(result.is_ok());
            let healthy = probe.healthy();
            return self.judge_probe(now, key, healthy, result.err(), effects);
        }
        match (key.purpose, result) {
            (Purpose::PreStop, _) => self.terminate(now, key.unit, effects),
            // Its command is gone: whether that is started again is decided, and what it was to be started with is over.
            _ if unit.life != Life::Running => {}
            (_, Ok(())) => unit.post_started(),
            (_, Err(problem)) => self.restart(now, key, &problem, effects),
        }
    }

    fn judge_probe(
        &mut self,
        now: Duration,
        key: HandlerKey,
        healthy: Option<bool>,
        problem: Option<String>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(unit) = self.units.get_mut(key.unit).filter(|unit| unit.life == Life::Running) else { return };
        match (problem, key.purpose) {
            (Some(problem), Purpose::Startup | Purpose::Liveness) if healthy == Some(false) => {
                self.restart(now, key, &problem, effects);
            }
            (Some(problem), _) if !unit.ready() => {
                unit.not_ready(format!("container `{}`: {}: {problem}", unit.name(), key.purpose.as_str()));
            }
            _ => {}
        }
    }

    /// Ends a container whose pod stays; its policy says whether it is started again.
    fn restart(&mut self, now: Duration, key: HandlerKey, problem: &str, effects: &mut Vec<Effect>) {
        let kill_at = now + self.grace;
        if let Some(unit) = self.units.get_mut(key.unit) {
            unit.problem = Some(format!("container `{}`: {} failed: {problem}", unit.name(), key.purpose.as_str()));
        }
        self.stop_unit(now, key.unit, kill_at, effects);
    }

    fn begin_stop(&mut self, now: Duration, cause: Cause, effects: &mut Vec<Effect>) {
        if self.stage == Stage::Running {
            self.stage = Stage::Draining;
            self.stop = Some((cause, now + self.grace));
            self.admit(effects);
        }
    }

    /// The last third of the grace period belongs to the processes: connections that never end must not cost them
    /// their orderly end.
    fn drain_end(&self) -> Duration {
        self.stop.map(|(_, end)| end.saturating_sub(self.grace / 3)).unwrap_or_default()
    }

    fn stop_units(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        self.stage = Stage::Stopping;
        let end = self.stop.map_or(now, |(_, end)| end);
        for index in 0..self.units.len() {
            self.stop_unit(now, index, end, effects);
        }
    }

    fn stop_unit(&mut self, now: Duration, index: usize, end: Duration, effects: &mut Vec<Effect>) {
        let Some(unit) = self.units.get_mut(index) else { return };
        match unit.life {
            Life::Waiting { .. } => unit.life = Life::Done,
            Life::Starting | Life::Running if unit.has_pre_stop() => {
                unit.life = Life::Stopping { kill_at: end, step: StopStep::PreStop };
                let key = HandlerKey { unit: index, purpose: Purpose::PreStop };
                effects.push(Effect::Handle(key, end.saturating_sub(now)));
            }
            Life::Starting | Life::Running => {
                unit.life = Life::Stopping { kill_at: end, step: StopStep::Terminated };
                effects.push(Effect::Terminate(index));
            }
            Life::Stopping { .. } | Life::Done => {}
        }
    }

    /// `preStop` is over: SIGTERM, and at least a little time to follow it.
    fn terminate(&mut self, now: Duration, index: usize, effects: &mut Vec<Effect>) {
        let Some(unit) = self.units.get_mut(index) else { return };
        if let Life::Stopping { kill_at, step: StopStep::PreStop } = unit.life {
            unit.life = Life::Stopping { kill_at: kill_at.max(now + LEAST_GRACE), step: StopStep::Terminated };
            effects.push(Effect::Terminate(index));
        }
    }

    fn kill_overdue(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        for index in 0..self.units.len() {
            let Some(unit) = self.units.get_mut(index) else { continue };
            match unit.life {
                Life::Stopping { kill_at, step: StopStep::PreStop } if now >= kill_at => {
                    self.terminate(now, index, effects);
                }
                Life::Stopping { kill_at, step: StopStep::Terminated } if now >= kill_at => {
                    unit.life = Life::Stopping { kill_at, step: StopStep::Killed };
                    effects.push(Effect::Kill(index));
                }
                _ => {}
            }
        }
    }

    /// Once no container lives or will live again, the outcome is known and the rest is swept.
    fn finish(&mut self, effects: &mut Vec<Effect>) {
        let outcome = match self.stage {
            Stage::Running => self.own_outcome(),
            Stage::Stopping => (!self.units.iter().any(Unit::lives)).then(|| self.stopped_outcome()),
            _ => None,
        };
        if let Some(outcome) = outcome {
            self.stage = Stage::Sweeping(outcome);
            self.admit(effects);
        }
    }

    /// The outcome of a pod that ended by itself.
    fn own_outcome(&self) -> Option<PodOutcome> {
        let failed_init = self.units.iter().find(|unit| unit.init && unit.life == Life::Done && !unit.succeeded());
        if let Some(unit) = failed_init {
            return Some(failure(unit));
        }
        let main = self.units.get(self.main_units()).unwrap_or_default();
        let done = main.iter().all(|unit| unit.life == Life::Done);
        let failed = main.iter().find(|unit| !unit.succeeded());
        done.then(|| failed.map_or(PodOutcome::Succeeded, failure))
    }

    /// The outcome of a pod that was ended.
    fn stopped_outcome(&self) -> PodOutcome {
        let code = self.units.iter().rev().find_map(|unit| unit.exit.as_ref()?.code).filter(|code| *code != 0);
        let code = code.unwrap_or(TERMINATED);
        let last = self.units.iter().rev().find_map(|unit| unit.exit.as_ref()).map(|exit| exit.message.as_str());
        match self.stop {
            Some((Cause::Deadline, _)) => {
                let limit = self.deadline.unwrap_or_default().as_secs();
                let message = format!("took longer than {limit} s and was ended\n{}", last.unwrap_or_default());
                PodOutcome::Failed {
                    code,
                    reason: FailureReason::DeadlineExceeded,
                    message: message.trim_end().to_owned(),
                }
            }
            Some((Cause::Interrupted, _)) => PodOutcome::interrupted(INTERRUPTED),
            _ if self.runs_once => {
                PodOutcome::Failed { code, reason: FailureReason::Cancelled, message: "was asked to end".to_owned() }
            }
            _ => PodOutcome::Succeeded,
        }
    }

    fn swept(&mut self) {
        if let Stage::Sweeping(outcome) = &self.stage {
            self.stage = Stage::Ended(outcome.clone());
        }
    }

    fn admit(&mut self, effects: &mut Vec<Effect>) {
        let main = self.units.get(self.main_units()).unwrap_or_default();
        let ready = self.stage == Stage::Running && !main.is_empty() && main.iter().all(Unit::ready);
        if ready != self.admitted {
            self.admitted = ready;
            effects.push(Effect::Admit(ready));
        }
    }
}

fn failure(unit: &Unit) -> PodOutcome {
    let message = unit.exit.as_ref().map(|exit| exit.message.clone()).unwrap_or_default();
    match unit.exit.as_ref().and_then(|exit| exit.code) {
        Some(code) => PodOutcome::Failed { code, reason: FailureReason::Error, message },
        None => PodOutcome::Failed { code: 127, reason: FailureReason::StartError, message },
    }
}

fn describe(name: &str, exit: &Exit) -> String {
    let last = exit.message.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("").trim();
    let last: String = last.chars().take(300).collect();
    match exit.code {
        None => format!("container `{name}` cannot start: {last}"),
        Some(code) if last.is_empty() => format!("container `{name}` exited with code {code}"),
        Some(code) => format!("container `{name}` exited with code {code}: {last}"),
    }
}

#[cfg(test)]
mod tests;
