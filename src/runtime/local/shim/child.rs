//! A process that the shim started and listens to.

use std::os::fd::OwnedFd;

use rustix::io::{Errno, read};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::runtime::local::host::process::ProcessId;
use crate::runtime::local::pod::launch::Launched;

/// How much is read at once.
const CHUNK: usize = 64 << 10;
/// How many chunks are read before others get their turn.
const CHUNKS_IN_TURN: usize = 32;
/// The longest reason for a command that could not be started.
const MAX_PROBLEM: usize = 4096;

/// What is heard of a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// The command is being prepared.
    None,
    /// The command runs.
    Started,
}

/// A process that was started.
#[derive(Debug)]
pub(super) struct Child {
    /// Which.
    pub(super) process: ProcessId,
    exit: OwnedFd,
    failure: Option<OwnedFd>,
    problem: Vec<u8>,
    output: Option<OwnedFd>,
}

impl Child {
    /// Listens to a process.
    pub(super) fn new(launched: Launched) -> Self {
        let Launched { process, exit, failure, output } = launched;
        Self { process, exit, failure: Some(failure), problem: Vec::new(), output: Some(output) }
    }

    /// What to poll while it lives.
    pub(super) fn sources(&self) -> impl Iterator<Item = &OwnedFd> {
        std::iter::once(&self.exit).chain(&self.failure).chain(&self.output)
    }

    /// Whether its command began to run since it was last asked.
    pub(super) fn news(&mut self) -> News {
        let Some(pipe) = &self.failure else { return News::None };
        let mut buffer = [0; 512];
        match read(pipe, &mut buffer) {
            Err(Errno::AGAIN | Errno::INTR) => News::None,
            Ok(count) if count > 0 => {
                let room = MAX_PROBLEM.saturating_sub(self.problem.len());
                self.problem.extend(buffer.iter().take(count.min(room)));
                News::None
            }
            Ok(_) | Err(_) => {
                self.failure = None;
                if self.problem.is_empty() { News::Started } else { News::None }
            }
        }
    }

    /// Why the command could not be started, once its process is gone.
    pub(super) fn problem(&mut self) -> Option<String> {
        for _ in 0..=MAX_PROBLEM / 512 {
            self.news();
        }
        (!self.problem.is_empty()).then(|| String::from_utf8_lossy(&self.problem).into_owned())
    }

    /// Passes on what it printed since it was last asked; bounded, so that a flood does not hold up the others.
    pub(super) fn pump(&mut self, buffer: &mut Vec<u8>, mut sink: impl FnMut(&[u8])) {
        buffer.resize(CHUNK, 0);
        for _ in 0..CHUNKS_IN_TURN {
            let Some(pipe) = &self.output else { return };
            match read(pipe, buffer.as_mut_slice()) {
                Ok(count) if count > 0 => sink(buffer.get(..count).unwrap_or_default()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Ok(_) | Err(_) => self.output = None,
            }
        }
    }

    /// Sends a signal to its process group. Only for a process that was not waited for yet: its id is still its own.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.process.pid) {
            // It may be gone already; its end is noticed elsewhere.
            kill_process_group(pid, signal).ok();
        }
    }
}
