//! How a process of a pod is started: by way of `launchway container`, which puts everything in place for the command
//! and then becomes it. So the process that starts it needs neither `unsafe` nor to be anything but itself.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::paths::PodDir;
use crate::runtime::local::host::process::{POD_MARK, ProcessId};

/// The program that is running, also after its file was replaced by a newer one.
pub(crate) const OWN_PROGRAM: &str = "/proc/self/exe";

/// A command in a container of a pod.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch<'a> {
    /// The launchway program.
    pub(crate) program: &'a Path,
    /// The pod.
    pub(crate) dir: &'a PodDir,
    /// The pod's mark.
    pub(crate) mark: &'a str,
    /// The container.
    pub(crate) container: &'a str,
    /// What to run instead of the container's own command.
    pub(crate) command: Option<&'a [String]>,
    /// Whether it comes from outside: then its standard streams are the command's own from the start, and it is in a session
    /// of its own. Else it is the shim's, and dies with it.
    pub(crate) enters: bool,
}

/// A process that was started, and what is heard of it.
#[derive(Debug)]
pub(crate) struct Launched {
    /// The process, which leads a process group.
    pub(crate) process: ProcessId,
    /// Becomes readable when the process ends.
    pub(crate) exit: OwnedFd,
    /// Why the command could not be started; ends without a word when it runs.
    pub(crate) failure: OwnedFd,
    /// What the command prints.
    pub(crate) output: OwnedFd,
}

impl Launch<'_> {
    /// The command line of `launchway container`. The standard input of one that does not enter has to be
    /// [`failure_pipe`]'s end for writing.
    pub(crate) fn to_command(self) -> Command {
        let parent = if self.enters { 0 } else { std::process::id() };
        let mut command = Command::new(self.program);
        command.arg0("launchway").arg("container").arg(self.dir.path()).arg(self.container).arg(parent.to_string());
        command.args(self.command.unwrap_or_default());
        // Marked from its first moment, so that a sweep finds it before it is the command.
        command.env_clear().env(POD_MARK, self.mark).current_dir("/");
        command
    }

    /// Starts it with both its outputs in one pipe.
    pub(crate) fn spawn(self) -> io::Result<Launched> {
        let (failure, failure_writer) = failure_pipe()?;
        let (output, output_writer) = pipe_with(PipeFlags::CLOEXEC)?;
        set_nonblocking(&output)?;
        let mut command = self.to_command();
        command.process_group(0).stdin(failure_writer).stdout(output_writer.try_clone()?).stderr(output_writer);
        let child = command.spawn()?;
        let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
        let exit = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        let process = ProcessId::of(pid).unwrap_or(ProcessId { pid, start_time: 0 });
        Ok(Launched { process, exit, failure, output })
    }
}

/// A pipe through which a starting process says why it could not start: its ends for reading and for writing.
pub(crate) fn failure_pipe() -> io::Result<(OwnedFd, Stdio)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    set_nonblocking(&reader)?;
    Ok((reader, Stdio::from(writer)))
}

/// Makes reading and writing fail where it would have to wait.
pub(crate) fn set_nonblocking(pipe: &OwnedFd) -> io::Result<()> {
    Ok(fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?)
}
