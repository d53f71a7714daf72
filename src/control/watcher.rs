//! Watches one repository: waits for a request, syncs, and remembers what is wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::control::watched::{QUESTION, Watched};
use crate::error::{Failure, Result};
use crate::executor::drive::Driver;
use crate::executor::sync::Synced;
use crate::model::time::Timestamp;
use crate::secret::SecretSource;
use crate::telemetry::Metrics;
use crate::trigger::debounce::Debounce;
use crate::trigger::poll::next_sync;
use crate::trigger::schedule::Schedule;
use crate::trigger::watch::{RefWatch, RefWatches};

/// Longer than any interval: the pause when nothing is planned.
const UNPLANNED: Duration = Duration::from_secs(24 * 3600);

/// One repository and what asks for its syncs.
#[derive(Clone, Debug)]
pub struct Watcher {
    /// What is synced.
    pub watched: Arc<Watched>,
    /// Where everything asks for a sync.
    pub requests: Arc<Debounce>,
    /// What says that its files changed, if it is on this machine.
    pub events: RefWatches,
    /// Time between syncs that nobody asked for; zero: none.
    pub poll: Duration,
    /// Further times at which to sync.
    pub schedule: Option<Arc<Schedule>>,
    /// Whether it was synced since the daemon started, whatever came of it.
    pub synced: Arc<AtomicBool>,
    /// What signs its webhooks.
    pub webhook_secrets: Vec<SecretSource>,
    /// Counts syncs.
    pub metrics: Arc<Metrics>,
}

impl Watcher {
    /// Syncs at once, and then whenever that is requested, until told to stop.
    pub async fn run(self, driver: Driver, stop: CancellationToken) {
        let Some(_events) = stop.run_until_cancelled(self.listen()).await else { return };
        let mut failures = 0;
        self.requests.request();
        loop {
            let pause = self.pause(driver.clock.now(), failures);
            let sync = tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => self.requests.begin(),
                sync = self.requests.next() => sync,
            };
            // Whoever asks has reason to believe that it works now.
            let before = if sync.was_requested { 0 } else { failures };
            failures = match self.sync(&driver).await {
                Ok(_) => 0,
                Err(_) => before.saturating_add(1),
            };
        }
    }

    /// Hears of its files, if it is on this machine.
    async fn listen(&self) -> Option<RefWatch> {
        let (events, requests) = (self.events.clone(), self.requests.clone());
        let watch = move |watched: &Watched| {
            let path = watched.remote.url.local_path();
            Ok(path.and_then(|path| events.watch(path, move || requests.request())))
        };
        // That it does not answer, the sync that follows says.
        self.watched.ask(QUESTION, watch).await.ok().flatten()
    }

    /// How long to wait for somebody to ask.
    fn pause(&self, now: Timestamp, failures: u32) -> Duration {
        let random = u64::try_from(ulid::Ulid::generate().random() & u128::from(u64::MAX)).unwrap_or(0);
        let polled = next_sync(now, self.poll, failures, random);
        let scheduled = self.schedule.as_ref().and_then(|schedule| schedule.next_after(now));
        polled.into_iter().chain(scheduled).min().map_or(UNPLANNED, |at| at.since(now))
    }

    async fn sync(&self, driver: &Driver) -> Result<Synced> {
        self.metrics.sync(&self.watched.name);
        let synced = self.watched.sync(driver).await;
        match &synced {
            Ok(Synced::Revision(commit, _)) => {
                tracing::info!(repository = %self.watched.name, %commit, "a new revision");
            }
            Ok(Synced::Unchanged) => {}
            Err(failure) => {
                tracing::warn!(repository = %self.watched.name, problem = failure.one_line(), "cannot sync the repository");
            }
        }
        self.metrics.repository_healthy(&self.watched.name, synced.is_ok());
        let first = !self.synced.swap(true, Ordering::SeqCst);
        if let Err(failure) = self.watched.remember(driver, synced.as_ref().err().map(Failure::one_line), first).await {
            tracing::error!(repository = %self.watched.name, problem = failure.one_line(), "cannot remember what is wrong");
        }
        synced
    }
}
