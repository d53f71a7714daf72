//! The daemon's end of the channel to the services' shim, which it starts and renews.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::backoff::Backoff;
use super::channel::{self, Message, Port, Status};
use super::ports::Ports;
use super::record::{ServiceId, ServicesDir};
use super::shim::{Start, spawn};
use super::watched_channel::WatchedChannel;
use crate::runtime::local::host::files;
use crate::runtime::local::host::program::{BUILD, Program};

/// How long a shim may take to answer, its start included; it takes a few milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause before another try to reach a shim that starts or ends.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Speaks to the shim.
#[derive(Debug)]
pub(super) struct ShimClient {
    dir: ServicesDir,
    program: Arc<Program>,
    /// For the thread that notices its end.
    myself: Weak<Self>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    channel: Option<WatchedChannel>,
    backoff: Backoff,
    /// Shims that this process started, to be reaped when they end.
    started: Vec<Child>,
    /// Until when one that lives and does not answer, as it is stopped, is not asked again: many ask, one after the other.
    silent_until: Option<Instant>,
    /// Whether a shim of another program was asked to make room; one that does not is left alone.
    has_renewed: bool,
}

impl ShimClient {
    pub(super) fn new(dir: ServicesDir, program: Arc<Program>) -> Arc<Self> {
        let new = |myself: &Weak<Self>| Self { dir, program, myself: myself.clone(), state: Mutex::default() };
        Arc::new_cyclic(new)
    }

    /// Has the shim make true what a service's record says, with the sockets that its address was claimed by; what came of it.
    pub(super) fn follow(&self, service: &ServiceId, claimed: Ports) -> io::Result<Status> {
        self.exchange(|channel| {
            let port = |number: &u16| Port { service: service.clone(), number: *number };
            channel::send_sockets(channel, claimed.iter().map(|(number, socket)| (port(number), socket)))?;
            status_of(channel, service)
        })
    }

    /// What became of a service, whose record is followed if it was not; `None` if no shim lives.
    pub(super) fn ask(&self, service: &ServiceId) -> io::Result<Option<Status>> {
        if files::is_locked(&self.dir.lock())? { self.follow(service, Ports::new()).map(Some) } else { Ok(None) }
    }

    /// Starts a shim if none lives.
    pub(super) fn keep(&self) -> io::Result<()> {
        let mut state = self.state();
        if state.channel.as_ref().is_some_and(|channel| is_open(channel.end())) || state.is_silent() {
            return Ok(());
        }
        let channel = self.connect(&mut state, Instant::now() + PATIENCE)?;
        state.channel = Some(channel);
        Ok(())
    }

    /// After a channel was closed: starts a shim if the one that was there has died. Its proxy may do the same, if that
    /// lives; one that was told to end, or had nothing to do, stays away until somebody needs it.
    fn bring_back(&self, lived: Duration) {
        let pause = self.state().backoff.after(lived);
        thread::sleep(pause);
        if self.dir.pid().exists()
            && let Err(error) = self.keep()
        {
            tracing::warn!(%error, "cannot bring the services' shim back");
        }
    }

    fn exchange<T>(&self, talk: impl Fn(&OwnedFd) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.state();
        if state.is_silent() {
            return Err(silence());
        }
        let answer = self.talk(&mut state, talk);
        let is_silent = answer.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        state.silent_until = is_silent.then(|| Instant::now() + PATIENCE);
        if is_silent { Err(silence()) } else { answer }
    }

    fn talk<T>(&self, state: &mut State, talk: impl Fn(&OwnedFd) -> io::Result<T>) -> io::Result<T> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let channel = match state.channel.take().filter(|channel| is_open(channel.end())) {
                Some(channel) => channel,
                None => self.connect(state, deadline)?,
            };
            match talk(channel.end()) {
                Ok(answer) => {
                    state.channel = Some(channel);
                    return Ok(answer);
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidData || Instant::now() >= deadline => {
                    return Err(error);
                }
                // It has ended: as idle, or for a successor.
                Err(_) => {}
            }
        }
    }

    /// A channel to a shim of this program, which is started or renewed if need be.
    fn connect(&self, state: &mut State, deadline: Instant) -> io::Result<WatchedChannel> {
        state.reap();
        loop {
            let channel = channel::connect(&self.dir, PATIENCE);
            match channel.and_then(|channel| Ok((build_of(&channel)?, channel))) {
                Ok((build, channel)) if build == BUILD || state.has_renewed => return self.watch(channel),
                Ok((_, channel)) => self.renew(state, &channel, deadline)?,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(error),
                Err(error) if Instant::now() >= deadline => return Err(error),
                // It starts, or ends.
                Err(_) if files::is_locked(&self.dir.lock())? || state.is_starting() => thread::sleep(LOOK_AGAIN),
                Err(_) => self.start(state, Start::Alone)?,
            }
        }
    }

    fn watch(&self, channel: OwnedFd) -> io::Result<WatchedChannel> {
        let myself = self.myself.clone();
        WatchedChannel::new(channel, move |lived| {
            myself.upgrade().iter().for_each(|client| client.bring_back(lived));
        })
    }

    /// Has a shim of this program take the place of one of another; returns when that has ended, or nobody takes its place.
    fn renew(&self, state: &mut State, old: &OwnedFd, deadline: Instant) -> io::Result<()> {
        state.has_renewed = true;
        self.start(state, Start::Succeeding)?;
        while is_open(old) && state.is_starting() && Instant::now() < deadline {
            thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    fn start(&self, state: &mut State, start: Start) -> io::Result<()> {
        state.started.push(spawn(self.program.path(), &self.dir, start)?);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_silent(&self) -> bool {
        self.silent_until.is_some_and(|until| Instant::now() < until)
    }

    /// Whether the last one that was started lives.
    fn is_starting(&mut self) -> bool {
        self.started.last_mut().is_some_and(|shim| matches!(shim.try_wait(), Ok(None)))
    }

    fn reap(&mut self) {
        self.started.retain_mut(|shim| matches!(shim.try_wait(), Ok(None)));
    }
}

fn silence() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("it has said nothing for {} s; is it stopped?", PATIENCE.as_secs()))
}

/// Nothing is said without being asked for, so that only the other end's closing makes it readable.
fn is_open(channel: &OwnedFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut [PollFd::new(channel, PollFlags::IN)], Some(&at_once)), Ok(0))
}

fn build_of(channel: &OwnedFd) -> io::Result<String> {
    channel::send(channel, &Message::Who)?;
    match answer(channel)? {
        Message::Shim { build } => Ok(build),
        other => Err(unexpected(&other)),
    }
}

fn status_of(channel: &OwnedFd, service: &ServiceId) -> io::Result<Status> {
    channel::send(channel, &Message::Follow { service: service.clone() })?;
    match answer(channel)? {
        Message::Status(status) => Ok(status),
        other => Err(unexpected(&other)),
    }
}

fn answer(channel: &OwnedFd) -> io::Result<Message> {
    let received = channel::receive(channel)?;
    received.map(|(message, _)| message).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

fn unexpected(message: &Message) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the services' shim said {message:?}"))
}
