//! A daemon as its counters and the kernel see it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::daemon::{Daemon, wait};
use crate::support::kernel::kernel_says;
use crate::support::processor;

/// How often a daemon that works is asked, so that it is not measured by that.
const ASKED_EVERY: Duration = Duration::from_millis(100);

impl Daemon {
    /// A counter of its metrics, as `name{labels}`; zero if it counted nothing.
    pub(crate) fn counted(&self, counter: &str) -> u64 {
        let told = self.get("/metrics").unwrap_or_default();
        let line = told.lines().find_map(|line| line.strip_prefix(counter));
        line.map_or(0, |value| value.trim().parse::<f64>().unwrap() as u64)
    }

    /// How many sequences were queued so far.
    pub(crate) fn queued(&self) -> u64 {
        self.counted("launchway_runs_started_total{kind=\"sequence\"}")
    }

    /// How many of them ended well.
    pub(crate) fn delivered(&self) -> u64 {
        self.counted("launchway_runs_ended_total{kind=\"sequence\",outcome=\"success\"}")
    }

    /// The processor time that it took so far.
    pub(crate) fn processor_time(&self) -> Duration {
        processor::processor_time(self.process.id())
    }

    /// A field of its `/proc/<pid>/status`, in KiB.
    pub(crate) fn memory(&self, field: &str) -> u64 {
        kernel_says(&self.process.id().to_string(), "status", field)
    }

    /// How many files it has open, and how many of them are inotify instances.
    pub(crate) fn open_files(&self) -> (usize, usize) {
        open_files(Path::new(&format!("/proc/{}", self.process.id())))
    }

    /// How many shims of its pods there are, and how many files and inotify instances these have open together.
    pub(crate) fn shims(&self) -> (usize, usize, usize) {
        let is_shim = |process: &PathBuf| {
            let command = std::fs::read(process.join("cmdline")).unwrap_or_default();
            let own = self.folder.join("state/local/pods");
            let mut words = command.split(|byte| *byte == 0);
            words.nth(1) == Some(b"shim")
                && words.next().is_some_and(|dir| Path::new(OsStr::from_bytes(dir)).starts_with(&own))
        };
        let processes = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
        let open: Vec<_> = processes.filter(is_shim).map(|shim| open_files(&shim)).collect();
        (open.len(), open.iter().map(|(files, _)| files).sum(), open.iter().map(|(_, inotify)| inotify).sum())
    }

    /// Waits until so many sequences were queued.
    pub(crate) fn wait_for_runs(&self, sequences: u64) {
        wait("the runs are queued", ASKED_EVERY, || self.queued() >= sequences);
    }

    /// Waits until nothing is under way any more.
    pub(crate) fn wait_for_rest(&self, deliveries: u64) {
        wait("everything is delivered", ASKED_EVERY, || self.delivered() >= deliveries);
    }
}

/// How many files a process has open, and how many of them are inotify instances.
fn open_files(process: &Path) -> (usize, usize) {
    let files = std::fs::read_dir(process.join("fd")).into_iter().flatten();
    let targets: Vec<_> = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok()).collect();
    let inotify = targets.iter().filter(|target| target.as_path() == Path::new("anon_inode:inotify"));
    (targets.len(), inotify.count())
}
