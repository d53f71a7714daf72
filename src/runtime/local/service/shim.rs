//! `launchway service-shim`: holds the listening sockets of all services and keeps a proxy behind them.
//!
//! It does so little that there is next to nothing in it to fail: connections that arrive while a proxy is being replaced
//! wait in the sockets' queues. It needs neither an asynchronous runtime nor the daemon. Whoever has sockets gives them to
//! it, and it hands them over to its successor, a shim of another program.

mod callers;
mod proxy_process;
mod spawn;

use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::callers::{Caller, Callers, Heard};
use self::proxy_process::ProxyProcess;
pub(super) use self::spawn::{SUCCEED, Start, complain, spawn, spawn_again};
use super::backoff::Backoff;
use super::channel::{self, Message};
use super::given::Given;
use super::listening::Listening;
use super::ports::Ports;
use super::record::{ServiceId, ServicesDir};
use crate::runtime::local::host::files;
use crate::runtime::local::host::open_files;
use crate::runtime::local::host::program::BUILD;
use crate::runtime::local::host::signals::SignalStream;

/// How often ports that are not free yet are tried again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long a shim without services stays: who has started it may not have said yet which there are.
const IDLE: Duration = Duration::from_secs(1);
/// How long a shim may take to hand over and to end, and the next one to take over.
const HAND_OVER: Duration = Duration::from_secs(5);

/// Runs until no service is left.
pub(super) fn run(dir: ServicesDir, start: Start) -> ExitCode {
    // Lists of processes show it, where they would show `exe` or a number: how the program was found to start it.
    rustix::thread::set_name(c"launchway-shim").ok();
    // Fails only for the leader of a group, who is out of the daemon's group already.
    rustix::process::setsid().ok();
    open_files::raise();
    let shim = match start {
        Start::Alone => Shim::alone(dir),
        Start::Succeeding => Shim::succeeding(dir),
    };
    match shim {
        Ok(Some(shim)) => shim.supervise(),
        Ok(None) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("cannot start: {error}"));
            ExitCode::FAILURE
        }
    }
}

struct Shim {
    dir: ServicesDir,
    lock: File,
    terminate: SignalStream,
    callers: Callers,
    kept: Kept,
    begun: Instant,
    tried_again: Instant,
}

/// What a shim is there for: the sockets, and the proxy that has them too.
struct Kept {
    dir: ServicesDir,
    listening: Listening,
    proxy: Option<ProxyProcess>,
    /// Those before it that have not ended.
    leaving: Vec<ProxyProcess>,
    backoff: Backoff,
    restart_at: Instant,
}

impl Shim {
    /// `None` if another shim lives.
    fn alone(dir: ServicesDir) -> io::Result<Option<Self>> {
        let Some(lock) = files::take_lock(&dir.lock())? else { return Ok(None) };
        let mut shim = Self::new(dir.clone(), lock, Kept::new(dir))?;
        shim.kept.follow_all(Given::default())?;
        Ok(Some(shim))
    }

    /// Takes the place of the shim that lives, whose sockets are never closed. `None` if others were faster.
    fn succeeding(dir: ServicesDir) -> io::Result<Option<Self>> {
        let Ok(predecessor) = channel::connect(&dir, HAND_OVER) else { return Self::alone(dir) };
        channel::send(&predecessor, &Message::HandOver)?;
        let mut kept = Kept::new(dir.clone());
        kept.follow_all(Given::receive(&predecessor)?)?;
        kept.keep_proxy();
        channel::send(&predecessor, &Message::Relieved)?;
        // It closes its end when it ends.
        while channel::receive(&predecessor)?.is_some() {}
        let Some(lock) = files::take_lock(&dir.lock())? else { return Ok(None) };
        Self::new(dir, lock, kept).map(Some)
    }

    fn new(dir: ServicesDir, lock: File, kept: Kept) -> io::Result<Self> {
        let terminate = SignalStream::terminate()?;
        let pid = rustix::process::getpid().as_raw_nonzero().to_string();
        files::write_whole(&dir.pid(), dir.path(), pid.as_bytes(), files::Durability::Plain)?;
        let callers = Callers::new(channel::listen(&dir)?);
        let now = Instant::now();
        Ok(Self { dir, lock, terminate, callers, kept, begun: now, tried_again: now })
    }

    fn supervise(mut self) -> ExitCode {
        loop {
            if self.terminate.take() || self.is_idle() {
                // That of one which died stays: nobody has told it to end.
                files::remove_if_there(&self.dir.pid()).ok();
                self.kept.end();
                return ExitCode::SUCCESS;
            }
            self.try_again();
            self.kept.bury_proxies();
            self.kept.keep_proxy();
            if self.kept.proxy.is_some() {
                self.callers.relieve();
            }
            for (caller, message, sockets) in self.wait() {
                match self.hear(caller, message, sockets) {
                    Ok(Next::Supervise) => {}
                    Ok(Next::Succeeded) => {
                        self.kept.relieve();
                        return ExitCode::SUCCESS;
                    }
                    Err(error) => complain(&format!("a caller does not listen: {error}")),
                }
            }
        }
    }

    /// Whether there is nothing to do: no service is left, or the state folder is gone, whatever has its name now.
    fn is_idle(&self) -> bool {
        let is_spare = self.kept.listening.is_empty() && self.begun.elapsed() >= IDLE;
        is_spare || files::is_deleted(&self.lock) || !self.dir.lock().exists()
    }

    /// Tries the ports again that were not free.
    fn try_again(&mut self) {
        if self.tried_again.elapsed() >= LOOK_AGAIN {
            self.tried_again = Instant::now();
            for service in self.kept.listening.troubled() {
                self.kept.follow(&service, Ports::new());
            }
        }
    }

    /// Waits for a signal, a caller, the proxy's death, or the time at which something is due.
    fn wait(&mut self) -> Vec<Heard> {
        let restart = self.kept.restart_at.saturating_duration_since(Instant::now());
        let pause = if self.kept.proxy.is_none() { restart.min(LOOK_AGAIN) } else { LOOK_AGAIN };
        let mut sources = vec![PollFd::new(self.terminate.source(), PollFlags::IN)];
        sources.extend(self.callers.sources().map(|source| PollFd::new(source, PollFlags::IN)));
        let callers = sources.len();
        sources.extend(self.kept.proxy.iter().map(|proxy| PollFd::new(proxy.channel(), PollFlags::IN)));
        // An interrupted poll is a reason to examine everything, as any other.
        poll(&mut sources, Timespec::try_from(pause).ok().as_ref()).ok();
        let ready: Vec<bool> = sources.iter().map(|source| !source.revents().is_empty()).collect();
        if ready.get(callers) == Some(&true) {
            self.kept.lose_proxy();
        }
        self.callers.hear(ready.get(1..callers).unwrap_or_default())
    }

    /// Does what a caller says.
    fn hear(&mut self, mut caller: Caller, message: Message, sockets: Vec<TcpListener>) -> io::Result<Next> {
        match message {
            Message::Who => caller.answer(&Message::Shim { build: BUILD.to_owned() })?,
            Message::Follow { service } => {
                self.kept.follow(&service, Ports::new());
                caller.answer(&Message::Status(self.kept.listening.status(&service)))?;
            }
            Message::Open { ports } => self.kept.take_over(Given::of(ports, sockets)),
            Message::Done => caller.has_given = true,
            Message::HandOver => return self.hand_over(&caller),
            // Nobody says this to a shim.
            Message::Close { .. } | Message::Shim { .. } | Message::Status(_) | Message::Relieved => {
                return Ok(Next::Supervise);
            }
        }
        self.callers.keep(caller);
        Ok(Next::Supervise)
    }

    /// Gives all sockets to the one that takes its place, and hears nobody else until that has them: what others gave now
    /// would be lost. They find out that this one has ended, and turn to the next.
    fn hand_over(&self, successor: &Caller) -> io::Result<Next> {
        channel::be_patient(successor.channel(), HAND_OVER)?;
        channel::send_sockets(successor.channel(), self.kept.listening.sockets())?;
        successor.answer(&Message::Done)?;
        match channel::receive(successor.channel())? {
            Some((Message::Relieved, _)) => Ok(Next::Succeeded),
            // It has died.
            _ => Ok(Next::Supervise),
        }
    }
}

/// What a shim does after it has heard a caller.
enum Next {
    Supervise,
    /// Another one has its place.
    Succeeded,
}

impl Kept {
    fn new(dir: ServicesDir) -> Self {
        let (listening, now) = (Listening::new(dir.clone()), Instant::now());
        Self { dir, listening, proxy: None, leaving: Vec::new(), backoff: Backoff::default(), restart_at: now }
    }

    /// Follows the records of all services, with the sockets that are given.
    fn follow_all(&mut self, mut given: Given) -> io::Result<()> {
        for service in self.dir.services()? {
            let given = given.take(&service);
            self.follow(&service, given);
        }
        Ok(())
    }

    /// Takes the sockets that are given, where a service lacks them.
    fn take_over(&mut self, mut given: Given) {
        for service in given.services() {
            let given = given.take(&service);
            self.follow(&service, given);
        }
    }

    /// Listens as a service's record says, and has the proxy do the same.
    fn follow(&mut self, service: &ServiceId, given: Ports) {
        let change = self.listening.follow(service, given);
        let Some(proxy) = &self.proxy else { return };
        let opened = self.listening.of(service).filter(|(port, _)| change.opened.contains(port));
        let passed = proxy.open(opened).and_then(|()| match change.closed.is_empty() {
            true => Ok(()),
            false => proxy.close(change.closed),
        });
        if let Err(error) = passed {
            complain(&format!("cannot tell the proxy what has changed: {error}"));
            if let Some(proxy) = &mut self.proxy {
                proxy.kill();
            }
            self.lose_proxy();
        }
    }

    /// Starts a proxy if there is none and the pause after the last one's death is over.
    fn keep_proxy(&mut self) {
        if self.proxy.is_some() || Instant::now() < self.restart_at {
            return;
        }
        match ProxyProcess::start(&self.dir).and_then(|proxy| proxy.open(self.listening.sockets()).map(|()| proxy)) {
            Ok(proxy) => self.proxy = Some(proxy),
            Err(error) => {
                complain(&format!("cannot start a proxy: {error}"));
                self.restart_at = Instant::now() + self.backoff.after(Duration::ZERO).max(LOOK_AGAIN);
            }
        }
    }

    /// Its channel is closed: it is dead, or was told to end and answers what is under way.
    fn lose_proxy(&mut self) {
        let Some(proxy) = self.proxy.take() else { return };
        let pause = self.backoff.after(proxy.lived());
        complain(&format!("the proxy has gone; another one starts in {} ms", pause.as_millis()));
        self.restart_at = Instant::now() + pause;
        self.leaving.push(proxy);
    }

    /// Says how those ended that have gone.
    fn bury_proxies(&mut self) {
        self.leaving.retain_mut(|proxy| {
            let ended = proxy.ended();
            ended.iter().for_each(|code| complain(&format!("a proxy has ended: {code}")));
            ended.is_none()
        });
    }

    /// Leaves the sockets to another shim.
    fn relieve(self) {
        if let Some(proxy) = self.proxy {
            proxy.relieve();
        }
    }

    /// Stops listening.
    fn end(self) {
        drop(self.listening);
        if let Some(proxy) = self.proxy {
            proxy.release();
        }
    }
}
