//! The proxy as its shim sees it.

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use super::super::channel::{self, Message, Port};
use super::super::record::ServicesDir;

/// This very program, also after its file was replaced: a shim and its proxy are of one version.
pub(super) const THIS_PROGRAM: &str = "/proc/self/exe";
/// How long a proxy may take to let go of sockets.
const RELEASE: Duration = Duration::from_secs(2);

/// A living proxy.
pub(super) struct ProxyProcess {
    process: Child,
    channel: OwnedFd,
    since: Instant,
}

impl ProxyProcess {
    pub(super) fn start(dir: &ServicesDir) -> io::Result<Self> {
        let (channel, theirs) = channel::pair()?;
        channel::be_patient(&channel, RELEASE)?;
        let mut command = Command::new(THIS_PROGRAM);
        command.arg0("launchway").arg("proxy").arg(dir.path()).stdin(Stdio::from(theirs)).stdout(Stdio::null());
        Ok(Self { process: command.spawn()?, channel, since: Instant::now() })
    }

    /// Becomes readable when the proxy is gone.
    pub(super) fn channel(&self) -> &OwnedFd {
        &self.channel
    }

    pub(super) fn open<'a>(&self, sockets: impl IntoIterator<Item = (Port, &'a TcpListener)>) -> io::Result<()> {
        channel::send_sockets(&self.channel, sockets)
    }

    /// Returns when nothing listens on these ports any more.
    pub(super) fn close(&self, ports: Vec<Port>) -> io::Result<()> {
        channel::send(&self.channel, &Message::Close { ports })?;
        match channel::receive(&self.channel)? {
            Some((Message::Done, _)) => Ok(()),
            Some(_) => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "the proxy does not say that it has closed ports"))
            }
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Another one has the sockets: this one lets go of them, and ends when its last connection does.
    pub(super) fn relieve(self) {
        // One that is gone has nothing to let go of.
        channel::send(&self.channel, &Message::Relieved).ok();
    }

    /// Ends it at once.
    pub(super) fn kill(&mut self) {
        // Fails only if it is gone already.
        self.process.kill().ok();
    }

    /// How long it has lived.
    pub(super) fn lived(&self) -> Duration {
        self.since.elapsed()
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().ok().flatten()
    }

    /// Tells it to end, and waits until it has let go of its sockets. It finishes what is under way by itself.
    pub(super) fn release(self) {
        let Some(pid) = Pid::from_raw(i32::try_from(self.process.id()).unwrap_or_default()) else { return };
        if kill_process(pid, Signal::TERM).is_ok() {
            let patience = Timespec::try_from(RELEASE).ok();
            poll(&mut [PollFd::new(&self.channel, PollFlags::IN)], patience.as_ref()).ok();
        }
    }
}
