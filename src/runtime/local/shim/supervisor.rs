//! The shim's one loop: waits for something to happen, tells the machine, does what it asks for.

use std::collections::VecDeque;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, WaitOptions, wait};

use super::child::{Child, News};
use super::handlers::Handlers;
use super::machine::{Effect, Event, HandlerKey, Machine, Stage};
use super::remark::Remark;
use super::report::{Report, unstarted};
use super::unit::Exit;
use crate::clock::Clock;
use crate::error::Result;
use crate::model::outcome::{FailureReason, PodOutcome};
use crate::model::pod::PodPhase;
use crate::model::time::Timestamp;
use crate::runtime::local::host::cgroup::PodGroups;
use crate::runtime::local::host::files;
use crate::runtime::local::host::format;
use crate::runtime::local::host::process::{Belonging, exit_code, kill_all, sweep};
use crate::runtime::local::host::signals::SignalStream;
use crate::runtime::local::pod::journal::Journal;
use crate::runtime::local::pod::launch::{Launch, OWN_PROGRAM};
use crate::runtime::local::pod::logs::LogWriter;
use crate::runtime::local::pod::mask::Mask;
use crate::runtime::local::pod::paths::PodDir;
use crate::runtime::local::pod::record::PodRecord;
use crate::runtime::local::pod::result;
use crate::runtime::local::pod::status::{ContainerStatus, PodStatus};
use crate::runtime::local::shim::wake::Wake;

/// How often orphans that were adopted are waited for, if nothing else happens.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The pause between two tries while connections drain, the rest is swept, or the disk is full.
const SHORT_PAUSE: Duration = Duration::from_millis(20);
/// How long a container's leftovers may resist before the loop goes on.
const CLEAN_PATIENCE: Duration = Duration::from_secs(1);

/// A pod being supervised.
pub(super) struct Supervisor<'a> {
    dir: &'a PodDir,
    record: &'a PodRecord,
    clock: &'a dyn Clock,
    since: Instant,
    machine: Machine,
    slots: Vec<Slot>,
    handlers: Handlers,
    mask: Mask,
    remark: Remark,
    report: Report,
    wake: Wake,
    terminate: SignalStream,
    stop_seen: bool,
    unreported: bool,
    /// Whether what it has written of how it went is kept, if there is anything.
    result_kept: bool,
    ready_since: Option<Timestamp>,
    buffer: Vec<u8>,
}

/// What belongs to a container besides its state.
struct Slot {
    child: Option<Child>,
    log: LogWriter,
    status: ContainerStatus,
}

impl<'a> Supervisor<'a> {
    /// Supervises a pod of which nothing was started yet.
    pub(super) fn new(
        dir: &'a PodDir,
        record: &'a PodRecord,
        clock: &'a dyn Clock,
        report: Report,
    ) -> io::Result<Self> {
        let wake = Wake::listen(dir)?;
        let mask = Mask::of(record);
        let slot = |name: &String| {
            let log = LogWriter::new(dir.log(name), record.logs, &mask).with_journal(Journal::of(record, name)?);
            Ok(Slot { child: None, log, status: unstarted(name) })
        };
        Ok(Self {
            dir,
            record,
            clock,
            since: Instant::now(),
            machine: Machine::new(&record.pod),
            slots: record.containers().map(|container| slot(&container.name)).collect::<io::Result<_>>()?,
            handlers: Handlers::new(mask.clone()),
            mask,
            remark: Remark::default(),
            report,
            wake,
            terminate: SignalStream::terminate()?,
            stop_seen: false,
            unreported: false,
            result_kept: false,
            ready_since: None,
            buffer: Vec::new(),
        })
    }

    /// Until nothing of the pod is left, and that is written down.
    pub(super) fn run(mut self) {
        loop {
            let events = self.examine();
            self.dispatch(events);
            self.tell();
            if matches!(self.machine.stage(), Stage::Ended(_)) && (!self.unreported || self.report.is_deleted()) {
                return;
            }
            self.pause();
        }
    }

    fn now(&self) -> Duration {
        self.since.elapsed()
    }

    /// Sleeps until something happens or is due.
    fn pause(&mut self) {
        let busy = matches!(self.machine.stage(), Stage::Draining | Stage::Sweeping(_)) || self.unreported;
        let most = if busy { SHORT_PAUSE } else { LONGEST_PAUSE };
        let due =
            [self.machine.next_due(), self.handlers.next_due(), self.remark.next_due()].into_iter().flatten().min();
        let pause = due.map_or(most, |due| due.saturating_sub(self.now()).min(most));
        let timeout = Timespec::try_from(pause).ok();
        let mut fds = vec![PollFd::new(self.wake.source(), PollFlags::IN)];
        fds.push(PollFd::new(self.terminate.source(), PollFlags::IN));
        let children = self.slots.iter().filter_map(|slot| slot.child.as_ref());
        fds.extend(children.flat_map(Child::sources).map(|fd| PollFd::new(fd, PollFlags::IN)));
        self.handlers.sources(&mut fds);
        // Whatever woke it up, everything is examined; an interruption is no different.
        poll(&mut fds, timeout.as_ref()).ok();
    }

    /// Everything that happened since the last time.
    fn examine(&mut self) -> Vec<Event> {
        if self.wake.take() {
            self.restore_files();
        }
        let mut events: Vec<Event> = self.stop_requested().into_iter().collect();
        events.extend(self.terminate.take().then_some(Event::Interrupted));
        for (index, slot) in self.slots.iter_mut().enumerate() {
            let Some(child) = &mut slot.child else { continue };
            if child.news() == News::Started {
                events.push(Event::Started(index));
            }
            child.pump(&mut self.buffer, |output| slot.log.write(output, self.clock.now()));
        }
        self.reap(&mut events);
        let ended = self.handlers.advance(self.now(), &mut self.buffer);
        events.extend(ended.into_iter().map(|(key, result)| Event::Handled(key, result)));
        match self.machine.stage() {
            Stage::Draining if self.drained() => events.push(Event::Drained),
            Stage::Sweeping(_) if self.swept() => events.push(Event::Swept),
            _ => {}
        }
        events.push(Event::Tick);
        events
    }

    fn stop_requested(&mut self) -> Option<Event> {
        self.stop_seen = self.stop_seen || self.dir.stop().exists() || self.report.is_deleted();
        (self.stop_seen && *self.machine.stage() == Stage::Running).then_some(Event::StopRequested)
    }

    /// Whoever wakes this shim may do so because the pod's files are damaged or gone; it knows what they said.
    fn restore_files(&mut self) {
        let is_lost = match PodRecord::read(self.dir) {
            Ok(record) => record.is_none(),
            Err(failure) => format::is_damage(&failure),
        };
        if is_lost {
            // If the disk does not take it, whoever misses it asks again.
            self.record.write(self.dir).ok();
        }
        self.report.repeat();
    }

    /// Proxies share this lock while a request is in flight, and take it before they ask whether the pod is ready.
    fn drained(&self) -> bool {
        self.report.is_deleted() || !matches!(files::try_lock(&self.dir.connections()), Ok(None))
    }

    fn swept(&self) -> bool {
        self.groups().kill(None) + kill_all(&self.all_processes()) == 0
    }

    /// Waits for all processes that ended, adopted ones included.
    fn reap(&mut self, events: &mut Vec<Event>) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let (pid, code) = (pid.as_raw_nonzero().get(), exit_code(ExitStatus::from_raw(status.as_raw())));
            let slot = self.slots.iter_mut().position(|slot| slot.child.as_ref().is_some_and(|c| c.process.pid == pid));
            match slot {
                Some(index) => events.extend(self.container_exited(index, code)),
                None => {
                    let ended = self.handlers.exited(pid, code, &mut self.buffer);
                    events.extend(ended.into_iter().map(|(key, result)| Event::Handled(key, result)));
                }
            }
        }
    }

    fn container_exited(&mut self, index: usize, code: i32) -> Option<Event> {
        let slot = self.slots.get_mut(index)?;
        let mut child = slot.child.take()?;
        child.pump(&mut self.buffer, |output| slot.log.write(output, self.clock.now()));
        slot.log.end(self.clock.now());
        slot.status.process = None;
        slot.status.exit = Some(code);
        let exit = match child.problem() {
            Some(problem) => Exit { code: None, message: self.mask.text(&problem) },
            None => Exit { code: Some(code), message: slot.log.tail() },
        };
        Some(Event::Gone(index, exit))
    }

    /// Tells the machine, and does what it asks for until it asks for nothing more.
    fn dispatch(&mut self, events: impl IntoIterator<Item = Event>) {
        let mut queue: VecDeque<Event> = events.into_iter().collect();
        while let Some(event) = queue.pop_front() {
            for effect in self.machine.step(self.now(), event) {
                queue.extend(self.perform(effect));
            }
        }
    }

    fn perform(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Start(index) => self.start(index),
            Effect::Handle(key, limit) => self.handle(key, limit),
            Effect::Clean(index) => {
                self.handlers.abandon(index);
                self.clean(index);
                None
            }
            Effect::Terminate(index) => self.signal(index, Signal::TERM),
            Effect::Kill(index) => self.signal(index, Signal::KILL),
            Effect::Admit(admitted) => {
                self.ready_since = admitted.then(|| self.clock.now());
                self.unreported |= self.report.admit(admitted).is_err();
                None
            }
        }
    }

    /// Ends what a container that ended may have left behind: whatever is left of the pod, if no other container lives.
    fn clean(&self, index: usize) {
        let alone = self.slots.iter().all(|slot| slot.child.is_none());
        let container = self.slots.get(index).map(|slot| slot.status.name.as_str()).filter(|_| !alone);
        self.groups().sweep(container, CLEAN_PATIENCE);
        let rest = container.map_or_else(
            || self.all_processes(),
            |name| Belonging::of_own_container(&self.record.mark(), name, self.may_be_elsewhere()),
        );
        sweep(&rest, CLEAN_PATIENCE);
    }

    fn all_processes(&self) -> Vec<Belonging> {
        Belonging::of_own_pod(&self.record.mark(), self.may_be_elsewhere())
    }

    /// Whether processes of the pod may be no descendants of this one and in no group either: all of the machine are then
    /// searched.
    fn may_be_elsewhere(&self) -> bool {
        self.dir.entered().exists() && !self.groups().exist()
    }

    fn groups(&self) -> &PodGroups {
        &self.report.status().groups
    }

    fn start(&mut self, index: usize) -> Option<Event> {
        let restarts = self.machine.units().get(index)?.restarts;
        let slot = self.slots.get_mut(index)?;
        let (program, mark) = (OWN_PROGRAM.as_ref(), self.record.mark());
        let (dir, container) = (self.dir, slot.status.name.as_str());
        let launch = Launch { program, dir, mark: &mark, container, command: None, enters: false };
        match launch.spawn() {
            Ok(launched) => {
                slot.log.begin(restarts, self.clock.now());
                slot.status.process = Some(launched.process);
                slot.status.started_at = Some(self.clock.now());
                slot.child = Some(Child::new(launched));
                None
            }
            Err(error) => {
                let exit = Exit { code: None, message: format!("cannot start a process: {error}") };
                Some(Event::Gone(index, exit))
            }
        }
    }

    fn handle(&mut self, key: HandlerKey, limit: Duration) -> Option<Event> {
        let now = self.now();
        let begun = self.handlers.begin(self.record, self.dir, key, now, limit);
        begun.err().map(|problem| Event::Handled(key, Err(problem)))
    }

    fn signal(&self, index: usize, signal: Signal) -> Option<Event> {
        self.slots.get(index)?.child.as_ref()?.signal(signal);
        None
    }

    /// Reports what is so now; if the disk does not take it, again a little later.
    fn tell(&mut self) {
        let status = self.status();
        let admitted = self.report.admit(self.machine.admitted());
        let kept = self.keep_result(&status);
        let told = kept.and_then(|()| self.report.tell(status));
        self.unreported = admitted.and(told).is_err();
    }

    /// Before its end is told, what it has written of that is kept.
    fn keep_result(&mut self, status: &PodStatus) -> Result<()> {
        if status.ended() && !self.result_kept && !self.report.is_deleted() {
            result::keep(self.record, self.dir, &self.mask)?;
            self.result_kept = true;
        }
        Ok(())
    }

    fn status(&mut self) -> PodStatus {
        let now = self.now();
        let units = self.machine.units();
        let containers = units.iter().zip(&self.slots).map(|(unit, slot)| ContainerStatus {
            restarts: unit.restarts,
            ready: unit.ready(),
            ..slot.status.clone()
        });
        let phase = match (self.machine.stage(), self.ready_since) {
            (Stage::Running, Some(since)) => PodPhase::Ready { since },
            (Stage::Running, None) => PodPhase::Starting,
            (Stage::Draining | Stage::Stopping | Stage::Sweeping(_), _) => {
                PodPhase::Stopping { interrupted: self.machine.is_interrupted() }
            }
            (Stage::Ended(outcome), _) => PodPhase::Ended { outcome: outcome.clone() },
        };
        let message = match &phase {
            PodPhase::Ended { outcome } => outcome_message(outcome),
            _ => {
                let wrong: Vec<&str> = units.iter().filter_map(|unit| unit.problem.as_deref()).collect();
                self.remark.update(now, wrong.join("; ")).to_owned()
            }
        };
        let before = self.report.status().clone();
        let ended = matches!(phase, PodPhase::Ended { .. });
        let ended_at = before.ended_at.or_else(|| ended.then(|| self.clock.now()));
        PodStatus { phase, containers: containers.collect(), message, ended_at, ..before }
    }
}

/// How a pod ended, for people; empty if it ended well.
pub(super) fn outcome_message(outcome: &PodOutcome) -> String {
    match outcome {
        PodOutcome::Succeeded => String::new(),
        PodOutcome::Unknown { message, .. } => message.clone(),
        PodOutcome::Failed { reason: FailureReason::Error, code, message } if message.is_empty() => {
            format!("exit code {code}")
        }
        PodOutcome::Failed { message, .. } => message.clone(),
    }
}
