//! Running a command beside the processes of a pod, and talking to it.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::launch::Launch;
use super::paths::PodDir;
use super::record::PodRecord;
use super::streams::{self, Streams};
use crate::error::{Context, Failure, Result};
use crate::runtime::exec::{ExecCommand, ExecInput, ExecOutput, ExecSession};
use crate::runtime::local::host::files;
use crate::runtime::local::host::process::exit_code;

/// How many pieces wait for whoever is to take them, in either direction.
const QUEUE: usize = 4;
/// What a pipe holds at most (`fs.pipe-max-size`): no more can be left of what a command has printed when it has ended.
const MOST_IN_A_PIPE: usize = 1 << 20;
/// How long a command may take to end after it was told to hang up.
const PATIENCE: Duration = Duration::from_secs(5);
/// What a terminal takes as the end of its input.
const END_OF_INPUT: &[u8] = b"\x04";

/// Starts a command in a container's environment.
pub(crate) fn start(
    program: &Path,
    dir: &PodDir,
    record: &PodRecord,
    container: &str,
    command: &ExecCommand,
) -> Result<ExecSession> {
    if command.words.is_empty() {
        return Err(Failure::stalled("there is no command to run"));
    }
    let mark = record.mark();
    // Before there is anything to be found when the pod ends.
    let entered = files::make_file(&dir.entered());
    entered.or_transient(|| format!("cannot write `{}`", dir.entered().display()))?;
    let (streams, theirs) = Streams::open(command).or_transient(|| "cannot make the command's streams".to_owned())?;
    let launch = Launch { program, dir, mark: &mark, container, command: Some(&command.words), enters: true };
    let mut starting = Command::from(launch.to_command());
    starting.envs(command.terminal.iter().map(|terminal| ("TERM", &terminal.kind)));
    starting.stdin(theirs.stdin).stdout(theirs.stdout).stderr(theirs.stderr).kill_on_drop(true);
    let child = starting.spawn().or_transient(|| "cannot start a process".to_owned())?;
    let ((input, told), (tell, output)) = (mpsc::channel(QUEUE), mpsc::channel(QUEUE));
    tokio::spawn(converse(child, streams, told, tell));
    Ok(ExecSession { input, output })
}

/// Passes on what is said on either side until the command ends, or nobody listens to it any more.
async fn converse(
    mut child: Child,
    streams: Streams,
    told: mpsc::Receiver<ExecInput>,
    tell: mpsc::Sender<Result<ExecOutput>>,
) {
    let Streams { stdin, terminal, stdout, stderr } = streams;
    let status = tokio::select! {
        status = listen(&mut child, stdout, stderr, &tell) => Some(status),
        never = feed(told, stdin, terminal) => match never {},
        () = tell.closed() => None,
    };
    match status {
        Some(status) => {
            let last = status.map(|status| ExecOutput::Ended(exit_code(status)));
            // Whoever has gone meanwhile need not know.
            tell.send(last.or_transient(|| "cannot wait for the command".to_owned())).await.ok();
        }
        None => hang_up(child).await,
    }
}

/// Passes on what the command says, until it has ended and all that it said is passed on.
async fn listen(
    child: &mut Child,
    stdout: Receiver,
    stderr: Option<Receiver>,
    tell: &mpsc::Sender<Result<ExecOutput>>,
) -> io::Result<ExitStatus> {
    let ended = CancellationToken::new();
    let wait = async {
        let status = child.wait().await;
        ended.cancel();
        status
    };
    let errors = async {
        if let Some(stderr) = stderr {
            pass_on(&stderr, &ended, tell, ExecOutput::Stderr).await;
        }
    };
    let (status, (), ()) = tokio::join!(wait, pass_on(&stdout, &ended, tell, ExecOutput::Stdout), errors);
    status
}

/// Passes on one of its outputs to its end. Others may have it open when the command has ended: what they write later is
/// not the command's.
async fn pass_on(
    end: &Receiver,
    ended: &CancellationToken,
    tell: &mpsc::Sender<Result<ExecOutput>>,
    output: impl Fn(Bytes) -> ExecOutput,
) {
    let mut left = MOST_IN_A_PIPE;
    while left > 0 {
        let came = match ended.run_until_cancelled(streams::next(end)).await {
            Some(came) => came,
            None => streams::rest(end).inspect(|came| left = left.saturating_sub(came.len())),
        };
        let Some(came) = came.ok().filter(|came| !came.is_empty()) else { return };
        if tell.send(Ok(output(came))).await.is_err() {
            return;
        }
    }
}

/// Passes on what the command is told.
async fn feed(mut told: mpsc::Receiver<ExecInput>, mut stdin: Option<Sender>, terminal: Option<OwnedFd>) -> Infallible {
    while let Some(input) = told.recv().await {
        match (input, &mut stdin, &terminal) {
            (ExecInput::Stdin(bytes), Some(end), _) => {
                // One that reads no more is told nothing more; how it ends says what that means.
                if end.write_all(&bytes).await.is_err() {
                    stdin = None;
                }
            }
            (ExecInput::EndOfInput, Some(end), Some(_)) => drop(end.write_all(END_OF_INPUT).await),
            (ExecInput::EndOfInput, ..) => stdin = None,
            // A terminal that has hung up needs no size.
            (ExecInput::Resize(size), _, Some(terminal)) => drop(streams::resize(terminal, size)),
            (ExecInput::Stdin(_) | ExecInput::Resize(_), ..) => {}
        }
    }
    pending().await
}

/// Ends a command to which nobody listens any more.
async fn hang_up(mut child: Child) {
    signal(&child, Signal::HUP);
    if tokio::time::timeout(PATIENCE, child.wait()).await.is_err() {
        signal(&child, Signal::KILL);
        if let Err(error) = child.wait().await {
            tracing::warn!(%error, "cannot wait for a command");
        }
    }
}

/// Sends a signal to its process group, which it leads as soon as it is the command. It was not waited for yet, so the
/// number is still its own.
fn signal(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // It may end at any moment; then there is nothing left to signal.
        kill_process_group(pid, signal).or_else(|_| kill_process(pid, signal)).ok();
    }
}
