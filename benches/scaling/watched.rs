//! A daemon as its counters and the kernel see it.

use std::path::Path;
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
        let files = std::fs::read_dir(format!("/proc/{}/fd", self.process.id())).unwrap();
        let targets: Vec<_> = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok()).collect();
        let inotify = targets.iter().filter(|target| target.as_path() == Path::new("anon_inode:inotify"));
        (targets.len(), inotify.count())
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
