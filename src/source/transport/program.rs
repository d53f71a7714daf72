//! A program of this machine that speaks for a Git server, or is one.

use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::Deadline;
use super::stream::{Stream, spawn, wait};
use crate::error::{Context as _, Failure, Result};

/// What is kept of the program's complaints: enough for a server's greeting and the reason after it.
const MAX_COMPLAINT_BYTES: usize = 8 * 1024;
/// How long a program that closed its output may take to exit.
const EXIT_LIMIT: Duration = Duration::from_secs(2);

/// The most bytes of an answer.
const MAX_ANSWER_BYTES: u64 = 64 * 1024;

/// Whether a program is content with an input, and what it answers; it is killed where that takes longer than `limit`.
pub(in crate::source) fn answer(
    mut command: Command,
    input: Vec<u8>,
    limit: Duration,
) -> std::io::Result<(bool, String)> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    wait(limit, async move {
        let mut child = command.spawn()?;
        let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(std::io::ErrorKind::NotConnected.into());
        };
        let mut answer = Vec::new();
        let mut stdout = stdout.take(MAX_ANSWER_BYTES);
        let feed = async move { stdin.write_all(&input).await };
        // It need not read to the end to have made up its mind.
        let (_fed, read) = tokio::join!(feed, stdout.read_to_end(&mut answer));
        read?;
        Ok((child.wait().await?.success(), String::from_utf8_lossy(&answer).into_owned()))
    })
}

/// What it means that a program ended so: whom it spoke for, its last words, and its exit code if it has one.
pub(super) type Explain = fn(peer: &str, complaint: &str, code: Option<i32>) -> Failure;

/// The running program. It ends, with everything that it started, when this is dropped.
#[derive(Debug)]
pub(super) struct Program {
    running: Option<Running>,
    group: Option<Pid>,
    complaint: Arc<Mutex<Vec<u8>>>,
    explain: Explain,
}

#[derive(Debug)]
struct Running {
    child: Child,
    /// Ends when the program's error output does.
    collecting: JoinHandle<()>,
}

impl Drop for Program {
    fn drop(&mut self) {
        if let (Some(group), Some(_unreaped)) = (self.group, &self.running) {
            // It may be gone already.
            let _outcome = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Program {
    /// Starts a program; its input and output are the connection. `missing` is what to do if it is not there.
    pub(super) fn start(
        mut command: Command,
        deadline: Deadline,
        peer: String,
        explain: Explain,
        missing: &str,
    ) -> Result<Stream> {
        let name = command.as_std().get_program().display().to_string();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
        let mut child = wait(deadline.step(), async move { command.spawn() })
            .or_stalled(|| format!("cannot run the program `{name}`"))
            .map_err(|failure| failure.hint(missing))?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Failure::transient(format!("the program `{name}` has no input or output")));
        };
        let complaint = Arc::default();
        let collecting = collect(stderr, Arc::clone(&complaint))?;
        let program = Self { running: Some(Running { child, collecting }), group, complaint, explain };
        Ok(Stream::new(Box::new(stdout), Some(Box::new(stdin)), deadline, peer).with_program(program))
    }

    /// Why it ended, if it ended badly. Waits a moment for it to end.
    pub(super) fn explain(&mut self, peer: &str) -> Option<Failure> {
        let mut running = self.running.take()?;
        let (status, running) = wait(EXIT_LIMIT * 2, async move {
            let status = tokio::time::timeout(EXIT_LIMIT, running.end()).await;
            Ok((status.ok().flatten(), running))
        })
        .ok()?;
        if status.is_none() {
            self.running = Some(running);
        }
        let complaint = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        let complaint = String::from_utf8_lossy(&complaint);
        match status {
            Some(status) if status.success() && complaint.trim().is_empty() => None,
            _ => Some((self.explain)(peer, &complaint, status.and_then(|status| status.code()))),
        }
    }
}

impl Drop for Running {
    /// Something that it has started may keep its standard error open for ever.
    fn drop(&mut self) {
        self.collecting.abort();
    }
}

impl Running {
    /// Waits until it has ended and all that it said is collected.
    async fn end(&mut self) -> Option<ExitStatus> {
        let status = self.child.wait().await.ok();
        drop((&mut self.collecting).await);
        status
    }
}

/// Keeps the last bytes of what the program complains about, and lets it complain without end.
fn collect(mut stderr: impl AsyncRead + Send + Unpin + 'static, kept: Arc<Mutex<Vec<u8>>>) -> Result<JoinHandle<()>> {
    spawn(async move {
        let mut chunk = [0; 1024];
        while let Ok(length @ 1..) = stderr.read(&mut chunk).await {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(chunk.get(..length).unwrap_or_default());
            let excess = kept.len().saturating_sub(MAX_COMPLAINT_BYTES);
            kept.drain(..excess);
        }
    })
    .or_transient(|| "cannot read the output of a program".to_owned())
}

/// The last lines that say something, in one.
pub(super) fn last_lines(complaint: &str) -> Option<String> {
    let lines: Vec<&str> = complaint.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(3)..)?;
    let text: String = last.join("; ").chars().filter(|character| !character.is_control()).collect();
    (!text.is_empty()).then_some(text)
}
