//! One container's life as its shim sees it. Pure: time is passed in, counted from the shim's start.

use std::time::Duration;

use crate::model::pod::Container;
use crate::runtime::local::shim::probe::schedule::Schedule;

/// The pause before the first restart; it doubles with every further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between restarts (Kubernetes' own).
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// How long a container may take to become ready before what its probes say is told: most answer soon.
const PATIENCE: Duration = Duration::from_secs(3);
/// A container that ran this long starts over with the first pause (Kubernetes' own).
const RECOVERED_AFTER: Duration = Duration::from_secs(600);
/// The most by which a container has to outlive its run before, so that how that one ended is told no more.
const LONGEST_PROBATION: Duration = Duration::from_secs(60);

/// Which handler of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// `lifecycle.postStart`.
    PostStart,
    /// `lifecycle.preStop`.
    PreStop,
    /// `startupProbe`.
    Startup,
    /// `livenessProbe`.
    Liveness,
    /// `readinessProbe`.
    Readiness,
}

impl Purpose {
    /// What people call it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Purpose::PostStart => "postStart",
            Purpose::PreStop => "preStop",
            Purpose::Startup => "startup probe",
            Purpose::Liveness => "liveness probe",
            Purpose::Readiness => "readiness probe",
        }
    }
}

/// Where a container is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// Not started yet, or between two starts.
    Waiting {
        /// When it may start.
        at: Duration,
    },
    /// Its process exists, its command does not run yet.
    Starting,
    /// Its command runs.
    Running,
    /// It is to end.
    Stopping {
        /// When it is killed.
        kill_at: Duration,
        /// How far that is.
        step: StopStep,
    },
    /// It ended and is not started again.
    Done,
}

/// How far the end of a container is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopStep {
    /// `preStop` runs.
    PreStop,
    /// SIGTERM was sent.
    Terminated,
    /// SIGKILL was sent.
    Killed,
}

/// How a container's last process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exit {
    /// The exit code, or 128 + the signal's number; none if the command could not be started.
    pub(crate) code: Option<i32>,
    /// Its last lines of output, or why it could not start.
    pub(crate) message: String,
}

/// A container.
#[derive(Debug)]
pub(crate) struct Unit {
    container: Container,
    /// Whether it runs to its end before the others start.
    pub(crate) init: bool,
    /// Where it is in its life.
    pub(crate) life: Life,
    /// How its last process ended.
    pub(crate) exit: Option<Exit>,
    /// How often it was started again.
    pub(crate) restarts: u32,
    /// What is wrong with it, for people.
    pub(crate) problem: Option<String>,
    /// What its probes said before it had the time to become ready.
    early: Option<String>,
    started: Duration,
    /// How long it has to run until what was wrong with the run before is told no more.
    probation: Duration,
    pause: Duration,
    post_start_done: bool,
    startup: Option<Schedule>,
    liveness: Option<Schedule>,
    readiness: Option<Schedule>,
}

impl Unit {
    /// A container that was not started yet.
    pub(crate) fn new(container: &Container, init: bool) -> Self {
        Self {
            container: container.clone(),
            init,
            life: Life::Waiting { at: Duration::ZERO },
            exit: None,
            restarts: 0,
            problem: None,
            early: None,
            started: Duration::ZERO,
            probation: Duration::ZERO,
            pause: FIRST_PAUSE,
            post_start_done: false,
            startup: None,
            liveness: None,
            readiness: None,
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.container.name
    }

    /// Whether it has a process.
    pub(crate) fn lives(&self) -> bool {
        matches!(self.life, Life::Starting | Life::Running | Life::Stopping { .. })
    }

    /// Whether it may get new connections.
    pub(crate) fn ready(&self) -> bool {
        let healthy = |probe: &Option<Schedule>| probe.as_ref().is_none_or(|probe| probe.healthy() == Some(true));
        self.life == Life::Running && self.post_start_done && healthy(&self.startup) && healthy(&self.readiness)
    }

    /// Whether it ended well.
    pub(crate) fn succeeded(&self) -> bool {
        self.exit.as_ref().is_some_and(|exit| exit.code == Some(0))
    }

    /// Its process is being made.
    pub(crate) fn starting(&mut self, now: Duration) {
        self.life = Life::Starting;
        self.started = now;
    }

    /// Its command runs: probes count from now. Whether `postStart` has to run.
    pub(crate) fn started(&mut self, now: Duration) -> bool {
        let schedule = |probe: &Option<_>| probe.clone().map(|probe| Schedule::new(probe, now));
        self.life = Life::Running;
        self.started = now;
        self.startup = schedule(&self.container.startup_probe);
        self.liveness = schedule(&self.container.liveness_probe);
        self.readiness = schedule(&self.container.readiness_probe);
        let post_start = self.container.lifecycle.post_start.is_some();
        self.post_start_done = !post_start;
        post_start
    }

    /// `postStart` ended well.
    pub(crate) fn post_started(&mut self) {
        self.post_start_done = true;
    }

    /// Once it is ready, what its probes said is over. What was wrong with the run before is told until it has outlived that:
    /// many are ready at once, and end again. One that initialises has to end well.
    pub(crate) fn forgive(&mut self, now: Duration) {
        if !self.ready() || self.init {
            return;
        }
        self.early = None;
        if now >= self.started + self.probation {
            self.problem = None;
        }
    }

    /// A probe failed while it is not ready.
    pub(crate) fn not_ready(&mut self, problem: String) {
        self.early = Some(problem);
    }

    /// What its probes say is a problem once it had the time to become ready.
    pub(crate) fn lose_patience(&mut self, now: Duration) {
        if self.early.is_some() && now >= self.started + PATIENCE {
            self.problem = self.early.take();
        }
    }

    /// Whether `preStop` has to run before it is asked to end.
    pub(crate) fn has_pre_stop(&self) -> bool {
        self.life == Life::Running && self.container.lifecycle.pre_stop.is_some()
    }

    /// Its process is gone and is to be started again after a pause, which grows.
    pub(crate) fn restart_later(&mut self, now: Duration) {
        let lived = now.saturating_sub(self.started);
        self.probation = if lived >= RECOVERED_AFTER {
            self.pause = FIRST_PAUSE;
            LONGEST_PROBATION
        } else {
            lived + lived.clamp(PATIENCE, LONGEST_PROBATION)
        };
        self.early = None;
        self.life = Life::Waiting { at: now + self.pause };
        self.restarts = self.restarts.saturating_add(1);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// The probe for a purpose.
    pub(crate) fn probe(&mut self, purpose: Purpose) -> Option<&mut Schedule> {
        match purpose {
            Purpose::Startup => self.startup.as_mut(),
            Purpose::Liveness => self.liveness.as_mut(),
            Purpose::Readiness => self.readiness.as_mut(),
            Purpose::PostStart | Purpose::PreStop => None,
        }
    }

    /// The probes that may check now, with when they are due. The startup probe holds the others back.
    pub(crate) fn probes_due(&self) -> impl Iterator<Item = (Purpose, Duration)> {
        let starting = self.startup.as_ref().filter(|probe| probe.healthy() != Some(true));
        let probes = match starting {
            Some(probe) => [Some((Purpose::Startup, probe)), None],
            None => [
                self.liveness.as_ref().map(|probe| (Purpose::Liveness, probe)),
                self.readiness.as_ref().map(|probe| (Purpose::Readiness, probe)),
            ],
        };
        let active = self.life == Life::Running && self.post_start_done;
        let due = probes.into_iter().flatten().filter_map(|(purpose, probe)| Some((purpose, probe.due()?)));
        due.filter(move |_| active)
    }

    /// When it needs attention next.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        match self.life {
            Life::Waiting { at } => Some(at),
            Life::Stopping { step: StopStep::Killed, .. } => None,
            Life::Stopping { kill_at, .. } => Some(kill_at),
            Life::Running => {
                let told = self.early.is_some().then(|| self.started + PATIENCE);
                let forgiven = (self.problem.is_some() && self.ready()).then(|| self.started + self.probation);
                self.probes_due().map(|(_, due)| due).chain(told).chain(forgiven).min()
            }
            Life::Starting | Life::Done => None,
        }
    }
}
