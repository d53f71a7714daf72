//! Starting shims: they must not end with whom starts them.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;

use crate::error::{Context, Failure, Result};
use crate::runtime::local::host::process::ProcessId;
use crate::runtime::local::host::program::Program;
use crate::runtime::local::pod::paths::PodDir;

/// Starts a shim for a pod. If another one owns the pod, this one ends at once.
pub(crate) fn spawn(program: &Program, dir: &PodDir) -> Result<ProcessId> {
    let wrong = || format!("cannot start a shim for `{}`", dir.path().display());
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(dir.shim_log()).or_transient(wrong)?;
    let mut command = program.command();
    command.arg("shim").arg(dir.path()).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let child = command.spawn().or_transient(wrong)?;
    let pid = i32::try_from(child.id()).or_transient(wrong)?;
    ProcessId::of(pid).ok_or_else(|| Failure::transient(wrong()))
}
