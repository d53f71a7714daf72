//! Watching a build: it ends by itself, or because it takes more than it may.

use std::io;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::disk;
use super::folder::Folder;
use super::limits::BuildLimits;
use crate::runtime::local::host::process::descendants;

/// The pause between two looks at what it takes.
const PAUSE: Duration = Duration::from_millis(250);
/// A look that takes long is followed by a pause so many times as long.
const SHARE: u32 = 20;

/// Waits for the end of a build, and ends it when it takes too much. The inner error says why that is no success.
pub(super) fn wait(mut child: Child, folder: &Folder, limits: &BuildLimits) -> io::Result<Result<(), String>> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    let (begun, mut pause) = (Instant::now(), PAUSE);
    let excess = loop {
        let rest = limits.time.saturating_sub(begun.elapsed());
        if rest.is_zero() {
            break Some(format!("took longer than {} s: its `limits.build.time`", limits.time.as_secs()));
        }
        let timeout = Timespec::try_from(rest.min(pause)).map_err(io::Error::other)?;
        if rustix::io::retry_on_intr(|| poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&timeout)))? > 0 {
            break None;
        }
        let looked = Instant::now();
        if let Some(excess) = excess(folder, limits)? {
            break Some(excess);
        }
        pause = PAUSE.max(looked.elapsed() * SHARE);
    };
    // The group is gone already if the build left nothing running.
    kill_process_group(pid, Signal::KILL).ok();
    let status = child.wait()?;
    Ok(excess.map_or_else(|| super::build::judge(status, limits), Err))
}

/// What of all that it takes is too much now.
fn excess(folder: &Folder, limits: &BuildLimits) -> io::Result<Option<String>> {
    let processes = descendants(rustix::process::getpid().as_raw_nonzero().get()).len() as u64;
    if processes > limits.processes {
        return Ok(Some(format!("had more than {} processes at once: its `limits.build.processes`", limits.processes)));
    }
    if disk::usage(&[&folder.tree(), &folder.home()], limits.disk)? > limits.disk {
        return Ok(Some(format!("filled more than {} bytes of the disk: its `limits.build.disk`", limits.disk)));
    }
    Ok(None)
}
