//! When a probe checks, and what its results add up to. Pure: time is passed in.

use std::time::Duration;

use crate::model::pod::Probe;

/// A probe of one running container. Times count from the shim's start.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    probe: Probe,
    next: Duration,
    running: bool,
    successes: u32,
    failures: u32,
    healthy: Option<bool>,
}

impl Schedule {
    /// The probe of a container that started at `started`.
    pub(crate) fn new(probe: Probe, started: Duration) -> Self {
        let next = started + seconds(probe.initial_delay_seconds);
        Self { probe, next, running: false, successes: 0, failures: 0, healthy: None }
    }

    /// How long one check may take.
    pub(crate) fn timeout(&self) -> Duration {
        seconds(self.probe.timeout_seconds.max(1))
    }

    /// When the next check is due; `None` while one runs.
    pub(crate) fn due(&self) -> Option<Duration> {
        (!self.running).then_some(self.next)
    }

    /// A check begins. The next one follows a period after it, however long it takes.
    pub(crate) fn begin(&mut self, now: Duration) {
        self.running = true;
        self.next = now + seconds(self.probe.period_seconds.max(1));
    }

    /// A check ended.
    pub(crate) fn record(&mut self, passed: bool) {
        self.running = false;
        let (grown, cleared, threshold) = if passed {
            (&mut self.successes, &mut self.failures, self.probe.success_threshold)
        } else {
            (&mut self.failures, &mut self.successes, self.probe.failure_threshold)
        };
        *cleared = 0;
        *grown = grown.saturating_add(1);
        if *grown >= threshold.max(1) {
            self.healthy = Some(passed);
        }
    }

    /// Whether it passed or failed often enough in a row; `None` as long as neither is so.
    pub(crate) fn healthy(&self) -> Option<bool> {
        self.healthy
    }
}

fn seconds(count: u32) -> Duration {
    Duration::from_secs(count.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(success_threshold: u32, failure_threshold: u32) -> Schedule {
        let probe = Probe { initial_delay_seconds: 3, success_threshold, failure_threshold, ..Probe::default() };
        Schedule::new(probe, seconds(1))
    }

    #[test]
    fn checks_are_a_period_apart_and_never_overlap() {
        let mut probe = schedule(1, 3);
        assert_eq!(probe.due(), Some(seconds(4)));
        probe.begin(seconds(4));
        assert_eq!(probe.due(), None);
        probe.record(true);
        assert_eq!(probe.due(), Some(seconds(14)));
    }

    #[test]
    fn thresholds_count_results_in_a_row() {
        let cases: [(&[bool], Option<bool>); 6] = [
            (&[true], None),
            (&[true, true], Some(true)),
            (&[true, false, true], None),
            (&[false, false, true, false], None),
            (&[false, false, false], Some(false)),
            (&[true, true, false, false, true, false], Some(true)),
        ];
        for (results, expected) in cases {
            let mut probe = schedule(2, 3);
            results.iter().for_each(|passed| probe.record(*passed));
            assert_eq!(probe.healthy(), expected, "{results:?}");
        }
    }
}
