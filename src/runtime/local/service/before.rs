//! The shims of before, of which each service had one with a proxy of its own.
//!
//! They end when a daemon opens the folder, before the one shim of all services takes their ports.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::Deserialize;

use super::record::{self, ServiceDir, ServicesDir};
use crate::runtime::local::host::files;
use crate::runtime::local::host::wait::wait_until;

/// How long all of them may take to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often to check.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// What they leave behind, the lock last: it says that they were there.
const LEFT: [&str; 4] = ["stop", "shim.json", "service.log", "shim.lock"];

/// What one of them has written down of itself.
#[derive(Deserialize)]
struct ShimStatus {
    pid: i32,
}

/// Ends all that live. Their proxies answer what is under way, and end too.
pub(super) fn end_all(dir: &ServicesDir) -> io::Result<()> {
    let folders = dir.services()?.into_iter().map(|service| dir.of(&service));
    let theirs: Vec<ServiceDir> = folders.filter(|folder| lock(folder).exists()).collect();
    for folder in &theirs {
        // A proxy without a shim looks for it before it starts another one.
        std::fs::write(folder.path().join("stop"), "")?;
        terminate(folder)?;
    }
    let is_ended = |folder: &ServiceDir| !files::is_locked(&lock(folder)).unwrap_or(false);
    if !wait_until(PATIENCE, LOOK_AGAIN, || theirs.iter().all(is_ended)) {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "they do not end"));
    }
    let left = theirs.iter().flat_map(|folder| LEFT.map(|name| folder.path().join(name)));
    left.map(|file| files::remove_if_there(&file)).fold(Ok(()), io::Result::and)
}

fn lock(folder: &ServiceDir) -> PathBuf {
    folder.path().join("shim.lock")
}

/// One that cannot be told by a signal sees within a second that it is to stop.
fn terminate(folder: &ServiceDir) -> io::Result<()> {
    let status = record::read_whole::<ShimStatus>(&folder.path().join("shim.json"))?;
    let Some(pid) = status.and_then(|status| Pid::from_raw(status.pid)) else { return Ok(()) };
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(()) };
    // Still alive now: so the descriptor is of the shim, and not of a later process with its number.
    if files::is_locked(&lock(folder))? {
        // It may have ended in between.
        pidfd_send_signal(process, Signal::TERM).ok();
    }
    Ok(())
}
