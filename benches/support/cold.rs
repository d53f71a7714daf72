//! A command that knows nothing yet.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::daemon::PROGRAM;

/// Runs a command of the program in `folder` to its good end: how long that took, and its peak memory in KiB.
pub(crate) fn run(folder: &Path, arguments: &[&str]) -> (Duration, u64) {
    let begin = Instant::now();
    let mut command = Command::new(PROGRAM);
    command.current_dir(folder).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // The peak is read as long as there is a process to ask.
    let mut peak = 0;
    let status = format!("/proc/{}/status", child.id());
    let ended = loop {
        let told = std::fs::read_to_string(&status).unwrap_or_default();
        let line = told.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(peak).max(peak);
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    assert!(ended.success(), "{arguments:?}");
    (begin.elapsed(), peak)
}
