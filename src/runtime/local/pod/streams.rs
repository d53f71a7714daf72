//! The standard streams of a command that is talked to: pipes, or a terminal.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;

use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::io::{Errno, read};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::net::unix::pipe::{Receiver, Sender};

use super::launch::set_nonblocking;
use crate::runtime::exec::{ExecCommand, TerminalSize};

/// The most that is read at once.
const CHUNK: usize = 32 << 10;

/// The ends on our side.
#[derive(Debug)]
pub(super) struct Streams {
    /// Where its standard input is written to, if it has one.
    pub(super) stdin: Option<Sender>,
    /// Its terminal, if it has one.
    pub(super) terminal: Option<OwnedFd>,
    /// What it prints, or what its terminal shows.
    pub(super) stdout: Receiver,
    /// What it complains about, where that is kept apart.
    pub(super) stderr: Option<Receiver>,
}

/// The ends on the command's side.
#[derive(Debug)]
pub(super) struct Theirs {
    pub(super) stdin: Stdio,
    pub(super) stdout: Stdio,
    pub(super) stderr: Stdio,
}

impl Streams {
    /// The streams that a command is to have.
    pub(super) fn open(command: &ExecCommand) -> io::Result<(Self, Theirs)> {
        match &command.terminal {
            Some(terminal) => Self::terminal(terminal.size, command.stdin),
            None => Self::pipes(command.stdin),
        }
    }

    fn terminal(size: TerminalSize, has_stdin: bool) -> io::Result<(Self, Theirs)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let terminal = openpt(flags)?;
        unlockpt(&terminal)?;
        let slave = ioctl_tiocgptpeer(&terminal, flags)?;
        resize(&terminal, size)?;
        set_nonblocking(&terminal)?;
        // A terminal is read and written like a pipe; the check that it is one is all that is left out.
        let stdin = has_stdin.then(|| Sender::from_owned_fd_unchecked(terminal.try_clone()?)).transpose()?;
        let stdout = Receiver::from_owned_fd_unchecked(terminal.try_clone()?)?;
        let theirs =
            Theirs { stdin: slave.try_clone()?.into(), stdout: slave.try_clone()?.into(), stderr: slave.into() };
        Ok((Self { stdin, terminal: Some(terminal), stdout, stderr: None }, theirs))
    }

    fn pipes(has_stdin: bool) -> io::Result<(Self, Theirs)> {
        let (their_stdin, stdin) = match has_stdin {
            true => {
                let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
                (Stdio::from(reader), Some(Sender::from_owned_fd(writer)?))
            }
            false => (Stdio::null(), None),
        };
        let (stdout, their_stdout) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, their_stderr) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stdout, stderr) = (Receiver::from_owned_fd(stdout)?, Some(Receiver::from_owned_fd(stderr)?));
        let theirs = Theirs { stdin: their_stdin, stdout: their_stdout.into(), stderr: their_stderr.into() };
        Ok((Self { stdin, terminal: None, stdout, stderr }, theirs))
    }
}

/// What comes next; nothing at its end.
pub(super) async fn next(end: &Receiver) -> io::Result<Bytes> {
    let mut came = Vec::with_capacity(CHUNK);
    loop {
        end.readable().await?;
        match end.try_read_buf(&mut came) {
            Ok(_) => return Ok(came.into()),
            Err(error) if has_hung_up(&error) => return Ok(Bytes::new()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// What has come; fails if that is nothing, whoever could still write. It asks the kernel itself, of which `next` may not
/// have heard yet.
pub(super) fn rest(end: &Receiver) -> io::Result<Bytes> {
    let mut came = Vec::with_capacity(CHUNK);
    read(end.as_fd(), spare_capacity(&mut came))?;
    Ok(came.into())
}

/// Tells whoever is on a terminal how large it is.
pub(super) fn resize(terminal: &OwnedFd, size: TerminalSize) -> io::Result<()> {
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(terminal, size)?)
}

/// Whether nobody is on a terminal any more.
fn has_hung_up(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::IO.raw_os_error())
}
