//! Probes and lifecycle handlers under way.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;

use super::child::Child;
use super::machine::HandlerKey;
use super::unit::Purpose;
use crate::model::pod::{Container, Handler, Scalar};
use crate::runtime::local::pod::launch::{Launch, OWN_PROGRAM};
use crate::runtime::local::pod::mask::{Mask, Masked};
use crate::runtime::local::pod::paths::PodDir;
use crate::runtime::local::pod::record::{PodRecord, port_number};
use crate::runtime::local::shim::probe::connection::{Connection, host_address, request};

/// How much of a handler's output is kept for messages.
const TAIL_BYTES: usize = 1024;

/// How a handler ended.
pub(super) type Ended = (HandlerKey, Result<(), String>);

/// All handlers of a pod that are under way.
#[derive(Debug)]
pub(super) struct Handlers {
    running: Vec<Running>,
    mask: Mask,
}

#[derive(Debug)]
struct Running {
    key: HandlerKey,
    until: Duration,
    limit: Duration,
    work: Work,
}

#[derive(Debug)]
enum Work {
    Connection(Connection),
    Command { child: Box<Child>, output: Output },
    Pause,
}

/// What a command printed: the end of it, without secrets.
#[derive(Debug)]
struct Output {
    masked: Masked,
    tail: Vec<u8>,
}

/// Which handler of a container a purpose means.
fn wanted(container: &Container, purpose: Purpose) -> Option<&Handler> {
    let probe = match purpose {
        Purpose::PostStart => return container.lifecycle.post_start.as_ref(),
        Purpose::PreStop => return container.lifecycle.pre_stop.as_ref(),
        Purpose::Startup => &container.startup_probe,
        Purpose::Liveness => &container.liveness_probe,
        Purpose::Readiness => &container.readiness_probe,
    };
    probe.as_ref().map(|probe| &probe.handler)
}

impl Handlers {
    /// None yet; what they say is told without the secrets in it.
    pub(super) fn new(mask: Mask) -> Self {
        Self { running: Vec::new(), mask }
    }

    /// Begins a handler. Fails if it cannot even begin.
    pub(super) fn begin(
        &mut self,
        record: &PodRecord,
        dir: &PodDir,
        key: HandlerKey,
        now: Duration,
        limit: Duration,
    ) -> Result<(), String> {
        let container = record.containers().nth(key.unit).ok_or("there is no such container")?;
        let handler = wanted(container, key.purpose).ok_or("there is no such handler")?;
        let pause = handler.sleep.map(|sleep| Duration::from_secs(sleep.seconds));
        let work = begin_work(record, dir, container, handler, &self.mask)?;
        self.running.push(Running { key, until: now + pause.unwrap_or(limit).min(limit), limit, work });
        Ok(())
    }

    /// What to poll.
    pub(super) fn sources<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        for running in &self.running {
            match &running.work {
                Work::Connection(connection) => {
                    fds.push(PollFd::from_borrowed_fd(connection.as_fd(), connection.interest()));
                }
                Work::Command { child, .. } => fds.extend(child.sources().map(|fd| PollFd::new(fd, PollFlags::IN))),
                Work::Pause => {}
            }
        }
    }

    /// When the first of them is over, whatever happens.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.running.iter().map(|running| running.until).min()
    }

    /// Goes on with all; those that ended.
    pub(super) fn advance(&mut self, now: Duration, buffer: &mut Vec<u8>) -> Vec<Ended> {
        self.take_ended(|running| match running.progress(buffer) {
            None if now >= running.until => Some(running.overdue()),
            result => result,
        })
    }

    /// Takes note of the end of a process; the handler whose it was.
    pub(super) fn exited(&mut self, pid: i32, code: i32, buffer: &mut Vec<u8>) -> Vec<Ended> {
        let mask = self.mask.clone();
        self.take_ended(|running| match &mut running.work {
            Work::Command { child, output } if child.process.pid == pid => {
                child.pump(buffer, |printed| output.take(printed));
                let problem = child.problem().map(|problem| mask.text(&problem));
                Some(judge(problem, code, output.end()))
            }
            _ => None,
        })
    }

    /// Ends all handlers of a container, without a result.
    pub(super) fn abandon(&mut self, unit: usize) {
        self.running.iter().filter(|running| running.key.unit == unit).for_each(Running::end);
        self.running.retain(|running| running.key.unit != unit);
    }

    fn take_ended(&mut self, mut end: impl FnMut(&mut Running) -> Option<Result<(), String>>) -> Vec<Ended> {
        let mut ended = Vec::new();
        self.running.retain_mut(|running| match end(running) {
            Some(result) => {
                ended.push((running.key, result));
                false
            }
            None => true,
        });
        ended
    }
}

impl Running {
    fn progress(&mut self, buffer: &mut Vec<u8>) -> Option<Result<(), String>> {
        match &mut self.work {
            Work::Connection(connection) => connection.advance(),
            Work::Command { child, output } => {
                child.news();
                child.pump(buffer, |printed| output.take(printed));
                None
            }
            Work::Pause => None,
        }
    }

    fn overdue(&self) -> Result<(), String> {
        self.end();
        match self.work {
            Work::Pause => Ok(()),
            _ => Err(format!("no answer within {} s", self.limit.as_secs())),
        }
    }

    fn end(&self) {
        if let Work::Command { child, .. } = &self.work {
            child.signal(Signal::KILL);
        }
    }
}

impl Output {
    fn take(&mut self, printed: &[u8]) {
        self.masked.push(printed, |clean| keep_end(&mut self.tail, clean));
    }

    /// Nothing more comes; the last of it.
    fn end(&mut self) -> &[u8] {
        self.masked.end(|clean| keep_end(&mut self.tail, clean));
        &self.tail
    }
}

fn begin_work(
    record: &PodRecord,
    dir: &PodDir,
    container: &Container,
    handler: &Handler,
    mask: &Mask,
) -> Result<Work, String> {
    if let Some(exec) = &handler.exec {
        let (program, mark) = (OWN_PROGRAM.as_ref(), record.mark());
        let (name, command) = (&container.name, Some(exec.command.as_slice()));
        let launch = Launch { program, dir, mark: &mark, container: name, command, enters: false };
        let child = launch.spawn().map_err(|error| format!("cannot start a process: {error}"))?;
        let output = Output { masked: mask.stream(), tail: Vec::new() };
        return Ok(Work::Command { child: Box::new(Child::new(child)), output });
    }
    if let Some(get) = &handler.http_get {
        let target = target(record, container, get.host.as_deref(), &get.port)?;
        // Certificates are not checked by Kubernetes either; here a connection has to be enough.
        let encrypted = get.scheme.as_deref().is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
        let request = if encrypted { None } else { Some(request(get, target)?) };
        return Connection::open(target, request).map(Work::Connection);
    }
    match &handler.tcp_socket {
        Some(socket) => {
            let target = target(record, container, socket.host.as_deref(), &socket.port)?;
            Connection::open(target, None).map(Work::Connection)
        }
        None => Ok(Work::Pause),
    }
}

/// The real port on the pod; on another host the port is meant as it stands.
fn target(record: &PodRecord, container: &Container, host: Option<&str>, port: &Scalar) -> Result<SocketAddr, String> {
    let own = IpAddr::from(record.reachable_at());
    let real = record.real_port(&container.name, port)?;
    match host.filter(|host| !host.is_empty()).map(host_address).transpose()? {
        Some(other) if !other.is_loopback() => {
            let declared = match port {
                Scalar::Number(number) => port_number(*number)?,
                Scalar::Text(_) => real,
            };
            Ok(SocketAddr::new(other, declared))
        }
        _ => Ok(SocketAddr::new(own, real)),
    }
}

fn keep_end(tail: &mut Vec<u8>, output: &[u8]) {
    tail.extend_from_slice(output);
    let surplus = tail.len().saturating_sub(TAIL_BYTES);
    tail.drain(..surplus);
}

fn judge(problem: Option<String>, code: i32, tail: &[u8]) -> Result<(), String> {
    let said = String::from_utf8_lossy(tail);
    match (problem, code) {
        (Some(problem), _) => Err(problem),
        (None, 0) => Ok(()),
        (None, code) if said.trim().is_empty() => Err(format!("exit code {code}")),
        (None, code) => Err(format!("exit code {code}: {}", said.trim())),
    }
}
