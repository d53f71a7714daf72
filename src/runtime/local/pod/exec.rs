//! Running a command beside the processes of a pod.

use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

use super::launch::{Launch, failure_pipe};
use super::paths::PodDir;
use super::record::PodRecord;
use crate::error::{Context, Failure, Result};
use crate::runtime::ExecOutput;

/// The most that is kept of either output.
const MAX_OUTPUT: u64 = 1 << 20;
/// The longest that a command may take.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs a command in a container's environment, until it ends or has taken too long.
pub(crate) async fn run(
    program: &Path,
    dir: &PodDir,
    record: &PodRecord,
    container: &str,
    command: &[String],
) -> Result<ExecOutput> {
    if command.is_empty() {
        return Err(Failure::stalled("there is no command to run"));
    }
    let mark = record.mark();
    // Before there is anything to be looked for when the pod ends.
    let entered = std::fs::File::create(dir.entered());
    entered.or_transient(|| format!("cannot write `{}`", dir.entered().display()))?;
    let launch = Launch { program, dir, mark: &mark, container, command: Some(command), dies_with_parent: false };
    let (failure, failure_writer) = failure_pipe().or_transient(|| "cannot make a pipe".to_owned())?;
    let mut starting = Command::from(launch.to_command());
    starting.stdin(failure_writer).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let child = starting.spawn().or_transient(|| "cannot start a process".to_owned())?;
    drop(starting);
    let output = tokio::time::timeout(LIMIT, collect(child)).await;
    let output = output.or_transient(|| format!("the command took longer than {} s", LIMIT.as_secs()))??;
    let mut problem = String::new();
    // The process is gone, so this is all there will be; nothing at all if the command ran.
    std::fs::File::from(failure).read_to_string(&mut problem).ok();
    if problem.is_empty() { Ok(output) } else { Err(Failure::stalled(problem)) }
}

async fn collect(mut child: Child) -> Result<ExecOutput> {
    let wrong = || "cannot read the command's output".to_owned();
    let (stdout, stderr) =
        tokio::try_join!(beginning(child.stdout.take()), beginning(child.stderr.take())).or_transient(wrong)?;
    let status = child.wait().await.or_transient(wrong)?;
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    let code = status.code().or(signal.map(|signal| 128 + signal)).unwrap_or(-1);
    Ok(ExecOutput { code, stdout, stderr })
}

/// The first part of an output. The rest is read too, so that the command is not held up.
async fn beginning(output: Option<impl AsyncRead + Unpin>) -> std::io::Result<String> {
    let Some(mut output) = output else { return Ok(String::new()) };
    let mut kept = Vec::new();
    (&mut output).take(MAX_OUTPUT).read_to_end(&mut kept).await?;
    tokio::io::copy(&mut output, &mut tokio::io::sink()).await?;
    Ok(String::from_utf8_lossy(&kept).into_owned())
}
