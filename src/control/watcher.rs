//! Watches one repository: waits for a reason to look, looks, and remembers what is wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::control::look::{Found, Watched};
use crate::error::{Failure, Result};
use crate::executor::drive::Driver;
use crate::model::time::Timestamp;
use crate::secret::SecretSource;
use crate::telemetry::Metrics;
use crate::trigger::coalesce::Bell;
use crate::trigger::poll::next_look;
use crate::trigger::schedule::Schedule;
use crate::trigger::watch::RefWatch;

/// Longer than any interval: the pause when nothing is planned.
const UNPLANNED: Duration = Duration::from_secs(24 * 3600);

/// One repository and the reasons to look at it.
#[derive(Clone, Debug)]
pub struct Watcher {
    /// What is looked at.
    pub watched: Arc<Watched>,
    /// Rung by everything that wants a look.
    pub bell: Arc<Bell>,
    /// Time between looks that nobody asked for; zero: none.
    pub poll: Duration,
    /// Further times at which to look.
    pub schedule: Option<Arc<Schedule>>,
    /// Whether it was looked at since the daemon started, whatever came of it.
    pub looked: Arc<AtomicBool>,
    /// What signs its webhooks.
    pub webhook_secrets: Vec<SecretSource>,
    /// Counts looks.
    pub metrics: Arc<Metrics>,
}

impl Watcher {
    /// Looks at once, and then whenever there is a reason, until told to stop.
    pub async fn run(self, driver: Driver, stop: CancellationToken) {
        let bell = self.bell.clone();
        let path = self.watched.remote.url.local_path().map(ToOwned::to_owned);
        let _events = path.and_then(|path| RefWatch::start(&path, move || bell.ring()));
        let mut failures = 0;
        self.bell.ring();
        loop {
            let pause = self.pause(driver.clock.now(), failures);
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => self.bell.ring(),
                look = self.bell.next() => {
                    failures = match self.look(&driver).await {
                        Ok(_) => 0,
                        Err(_) => failures.saturating_add(1),
                    };
                    drop(look);
                }
            }
        }
    }

    /// How long to wait for somebody to ring.
    fn pause(&self, now: Timestamp, failures: u32) -> Duration {
        let random = u64::try_from(ulid::Ulid::generate().random() & u128::from(u64::MAX)).unwrap_or(0);
        let polled = next_look(now, self.poll, failures, random);
        let scheduled = self.schedule.as_ref().and_then(|schedule| schedule.next_after(now));
        polled.into_iter().chain(scheduled).min().map_or(UNPLANNED, |at| at.since(now))
    }

    async fn look(&self, driver: &Driver) -> Result<Found> {
        self.metrics.look(&self.watched.name);
        let looked = self.watched.look(driver).await;
        match &looked {
            Ok(Found::Revision(commit)) => tracing::info!(repository = %self.watched.name, %commit, "a new revision"),
            Ok(Found::Nothing) => {}
            Err(failure) => {
                tracing::warn!(repository = %self.watched.name, problem = failure.one_line(), "cannot look at the repository");
            }
        }
        self.metrics.repository_healthy(&self.watched.name, looked.is_ok());
        let first = !self.looked.swap(true, Ordering::SeqCst);
        if let Err(failure) = self.watched.remember(driver, looked.as_ref().err().map(Failure::one_line), first).await {
            tracing::error!(repository = %self.watched.name, problem = failure.one_line(), "cannot remember what is wrong");
        }
        looked
    }
}
