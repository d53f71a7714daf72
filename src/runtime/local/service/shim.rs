//! `launchway service-shim`: holds a service's listening sockets and keeps a proxy behind them.
//!
//! It does so little that there is nothing in it to fail or to upgrade: connections that arrive while a proxy is
//! being replaced wait in the sockets' queues. It needs neither an asynchronous runtime nor the daemon.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use super::backoff::Backoff;
use super::ports::follow_ports;
use super::record::{self, ServiceDir, ServiceRecord, ShimStatus};
use super::sockets::{self, Sockets};
use crate::runtime::local::host::files::{self, Durability};
use crate::runtime::local::host::signals::SignalStream;

/// This very program, also after its file was replaced: a shim and its proxy are of one version.
const THIS_PROGRAM: &str = "/proc/self/exe";
/// How often the files, and the ports that are not free yet, are examined although nothing was announced.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The log's size from which on the next shim starts it anew.
const MAX_LOG: u64 = 1 << 20;
/// How long the shim before this one may take to end.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
/// How long a proxy may take to let go of its sockets.
const RELEASE_PATIENCE: Duration = Duration::from_secs(2);

/// Runs until the service is stopped. `adopt`: the sockets come from the daemon that claimed the address, or from a proxy
/// whose shim died.
pub(super) fn run(dir: ServiceDir, adopt: bool) -> ExitCode {
    match Shim::start(dir, adopt) {
        Ok(Some(shim)) => shim.supervise(),
        Ok(None) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("cannot start: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Starts `launchway service-shim` as a process of its own.
pub(super) fn spawn(program: &std::path::Path, dir: &ServiceDir, adopt: Option<OwnedFd>) -> io::Result<Child> {
    let log = open_log(dir)?;
    let mut command = Command::new(program);
    command.arg0("launchway").arg("service-shim").arg(dir.path()).args(adopt.is_some().then_some("--adopt"));
    command.env_clear().current_dir("/").stdout(Stdio::null()).stderr(log);
    command.stdin(adopt.map_or_else(Stdio::null, Stdio::from)).spawn()
}

/// The service's log, started anew when it has grown.
fn open_log(dir: &ServiceDir) -> io::Result<File> {
    let path = dir.log();
    let grown = std::fs::metadata(&path).is_ok_and(|file| file.len() > MAX_LOG);
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600);
    if grown { options.write(true).truncate(true) } else { options.append(true) }.open(path)
}

/// The program to start when a proxy brings its shim back.
pub(super) fn this_program() -> &'static std::path::Path {
    std::path::Path::new(THIS_PROGRAM)
}

/// Writes a line to the service's log.
pub(super) fn complain(text: &str) {
    // There is nobody left to tell if the log cannot be written.
    writeln!(io::stderr(), "{text}").ok();
}

struct Shim {
    dir: ServiceDir,
    _lock: File,
    terminate: SignalStream,
    reload: SignalStream,
    /// Who sockets were adopted from; a proxy waits for an answer.
    adopted_from: Option<OwnedFd>,
    sockets: Sockets,
    status: ShimStatus,
    proxy: Option<Proxy>,
    backoff: Backoff,
    restart_at: Instant,
}

impl Shim {
    /// `None` if another shim lives.
    fn start(dir: ServiceDir, adopt: bool) -> io::Result<Option<Self>> {
        // Fails only for the leader of a group, who is out of the daemon's group already.
        rustix::process::setsid().ok();
        let (terminate, reload) = (SignalStream::terminate()?, SignalStream::reload()?);
        let Some(lock) = lock(&dir, adopt)? else { return Ok(None) };
        // It names the process before this one.
        files::remove_if_there(&dir.status())?;
        let (adopted_from, sockets) = if adopt { adopt_sockets()? } else { (None, Sockets::new()) };
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let status = ShimStatus::of(pid);
        let (backoff, restart_at) = (Backoff::default(), Instant::now());
        Ok(Some(Self {
            dir,
            _lock: lock,
            terminate,
            reload,
            adopted_from,
            sockets,
            status,
            proxy: None,
            backoff,
            restart_at,
        }))
    }

    fn supervise(mut self) -> ExitCode {
        loop {
            if self.terminate.take() || self.dir.is_stopped() {
                return self.end();
            }
            if let Err(error) = self.follow_record() {
                complain(&format!("cannot follow service.json: {error}"));
            }
            self.keep_proxy();
            self.wait();
        }
    }

    /// Listens on the ports that are wanted now. Sockets of ports that stay are never closed.
    fn follow_record(&mut self) -> io::Result<()> {
        let Some(record) = record::read::<ServiceRecord>(&self.dir.record())? else { return Ok(()) };
        if record.generation == self.status.generation && self.status.problems.is_empty() {
            return Ok(());
        }
        let before: Vec<u16> = self.sockets.keys().copied().collect();
        let problems = follow_ports(&mut self.sockets, &record);
        if !self.sockets.keys().eq(before.iter()) {
            self.pass_sockets();
        }
        let (generation, address) = (record.generation, Some(record.address));
        let status = ShimStatus { generation, address, problems, ..self.status.clone() };
        if status != self.status {
            self.dir.write(&self.dir.status(), &status, Durability::Plain)?;
            self.status = status;
        }
        Ok(())
    }

    fn pass_sockets(&mut self) {
        let Some(proxy) = &self.proxy else { return };
        if let Err(error) = sockets::send(&proxy.channel, &self.sockets) {
            complain(&format!("cannot pass sockets to the proxy: {error}"));
            self.bury_proxy();
        }
    }

    /// Starts a proxy if there is none and the pause after the last one's death is over.
    fn keep_proxy(&mut self) {
        if self.proxy.is_some() || Instant::now() < self.restart_at {
            return;
        }
        match Proxy::start(&self.dir) {
            Ok(proxy) => self.proxy = Some(proxy),
            Err(error) => {
                complain(&format!("cannot start a proxy: {error}"));
                self.restart_at = Instant::now() + self.backoff.after(Duration::ZERO).max(LOOK_AGAIN);
                return;
            }
        }
        self.pass_sockets();
        self.relieve();
    }

    /// Tells the proxy that the sockets came from that another one has them now. Whoever is gone need not be told.
    fn relieve(&mut self) {
        let Some(predecessor) = self.adopted_from.take() else { return };
        if let Err(error) = sockets::send(&predecessor, &Sockets::new())
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            complain(&format!("cannot relieve the proxy before this one: {error}"));
        }
    }

    /// Waits for a signal, the proxy's death, or the time at which something is due.
    fn wait(&mut self) {
        let now = Instant::now();
        let pause = if self.proxy.is_none() { self.restart_at.saturating_duration_since(now) } else { LOOK_AGAIN };
        let channel = self.proxy.as_ref().map(|proxy| &proxy.channel);
        let mut sources = vec![PollFd::new(self.terminate.source(), PollFlags::IN)];
        sources.push(PollFd::new(self.reload.source(), PollFlags::IN));
        sources.extend(channel.map(|channel| PollFd::new(channel, PollFlags::IN)));
        // An interrupted poll is a reason to examine everything, as any other.
        poll(&mut sources, Timespec::try_from(pause.min(LOOK_AGAIN)).ok().as_ref()).ok();
        let died = sources.get(2).is_some_and(|source| !source.revents().is_empty());
        self.reload.take();
        if died {
            self.bury_proxy();
        }
    }

    fn bury_proxy(&mut self) {
        let Some(mut proxy) = self.proxy.take() else { return };
        // It closed its end, so it is dead or no good; both calls fail only if it is gone already.
        proxy.process.kill().ok();
        let code = proxy.process.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        let pause = self.backoff.after(proxy.since.elapsed());
        complain(&format!("the proxy ended ({code}); another one starts in {} ms", pause.as_millis()));
        self.restart_at = Instant::now() + pause;
    }

    /// Stops listening. The proxy finishes what is under way by itself.
    fn end(mut self) -> ExitCode {
        self.sockets.clear();
        if let Some(proxy) = self.proxy.take() {
            proxy.release();
        }
        ExitCode::SUCCESS
    }
}

/// Takes the lock that makes a shim the only one; `None` if another one lives.
fn lock(dir: &ServiceDir, wait: bool) -> io::Result<Option<File>> {
    let deadline = Instant::now() + LOCK_PATIENCE;
    loop {
        if let Some(lock) = files::take_lock(&dir.lock())? {
            return Ok(Some(lock));
        }
        if !wait || Instant::now() > deadline {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Receives the sockets that the daemon or a proxy without a shim has sent.
fn adopt_sockets() -> io::Result<(Option<OwnedFd>, Sockets)> {
    let channel = sockets::inherited()?;
    let received = sockets::receive(&channel)?.unwrap_or_default();
    // The channel must not live on as standard input: its closing tells the proxy that it is relieved.
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok((Some(channel), received))
}

struct Proxy {
    process: Child,
    channel: OwnedFd,
    since: Instant,
}

impl Proxy {
    fn start(dir: &ServiceDir) -> io::Result<Self> {
        let (channel, theirs) = sockets::channel()?;
        let mut command = Command::new(THIS_PROGRAM);
        command.arg0("launchway").arg("proxy").arg(dir.path()).stdin(Stdio::from(theirs)).stdout(Stdio::null());
        Ok(Self { process: command.spawn()?, channel, since: Instant::now() })
    }

    /// Tells it to end, and waits until it has let go of its sockets.
    fn release(self) {
        let Some(pid) = Pid::from_raw(i32::try_from(self.process.id()).unwrap_or_default()) else { return };
        if kill_process(pid, Signal::TERM).is_ok() {
            let patience = Timespec::try_from(RELEASE_PATIENCE).ok();
            poll(&mut [PollFd::new(&self.channel, PollFlags::IN)], patience.as_ref()).ok();
        }
    }
}
