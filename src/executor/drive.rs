//! Commits transitions, again if something moved meanwhile, and wakes who has to look.

use std::sync::Arc;

use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Ids};
use crate::error::{Failure, Result};
use crate::executor::transition::{Input, Touched, work_out};
use crate::executor::writer_lanes::WriterLanes;
use crate::model::action::Lane;
use crate::model::event::Event;
use crate::model::ids::RunId;
use crate::store::{CommitError, OutboxId, OutboxRow, Store};
use crate::telemetry::Metrics;

/// How often something is decided anew before giving up; conflicts come from a handful of tasks of one process.
pub const TRIES: u32 = 100;
/// How many announcements a slow listener may miss before it has to look at everything.
const ANNOUNCEMENTS: usize = 1024;

/// Tells runs facts and commits what follows.
#[derive(Clone)]
pub struct Driver {
    /// What is remembered.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// New identities.
    pub ids: Arc<dyn Ids>,
    /// Counts commits and actions.
    pub metrics: Arc<Metrics>,
    /// Who is asked for reports when a revision has news.
    pub writers: Arc<WriterLanes>,
    fenced: CancellationToken,
    touched: broadcast::Sender<Touched>,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

impl Driver {
    /// A driver over a store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        let (metrics, touched) = (Arc::new(Metrics::new()), broadcast::channel(ANNOUNCEMENTS).0);
        let (writers, fenced) = (Arc::default(), CancellationToken::new());
        Self { store, clock, ids, metrics, writers, fenced, touched }
    }

    /// Cancelled once another process has taken the store over: nothing that this one decides counts any more, so that
    /// it has to stop.
    pub fn fenced(&self) -> &CancellationToken {
        &self.fenced
    }

    /// Takes rows of a lane that are due now; see [`Store::claim`].
    ///
    /// # Errors
    /// If the store fails, or another process has taken it over.
    pub async fn claim(&self, lane: &Lane, limit: u32) -> Result<Vec<OutboxRow>> {
        let claimed = self.store.claim(lane, self.clock.now(), limit).await;
        claimed.map_err(|error| self.judged(error))
    }

    /// Gives a claimed row back as it is.
    ///
    /// # Errors
    /// As [`Driver::claim`].
    pub async fn give_back(&self, row: OutboxId) -> Result<()> {
        self.store.give_back(row).await.map_err(|error| self.judged(error))
    }

    /// What became of a commit, after everybody was told to stop if nothing more will ever be committed.
    fn judged(&self, error: CommitError) -> Failure {
        if matches!(error, CommitError::Fenced) {
            self.fenced.cancel();
        }
        error.into()
    }

    /// Announcements of what changed, from now on.
    pub fn changes(&self) -> broadcast::Receiver<Touched> {
        self.touched.subscribe()
    }

    /// Tells a run one fact.
    ///
    /// # Errors
    /// As [`Driver::commit`].
    pub async fn tell(&self, run: &RunId, event: Event) -> Result<()> {
        self.commit(&[Input::Tell(run.clone(), event)]).await
    }

    /// Makes everything that follows from some inputs durable, in one transaction.
    ///
    /// # Errors
    /// If the store fails, or another process has taken it over.
    pub async fn commit(&self, inputs: &[Input]) -> Result<()> {
        for _ in 0..TRIES {
            if self.try_commit(inputs).await? {
                return Ok(());
            }
        }
        Err(keeps_changing())
    }

    /// As [`Driver::commit`], but once: false if what was decided on has moved meanwhile, and nothing was committed. For
    /// inputs that were themselves decided on what was read before.
    ///
    /// # Errors
    /// If the store fails, or another process has taken it over.
    pub async fn try_commit(&self, inputs: &[Input]) -> Result<bool> {
        let now = self.clock.now();
        let (mut transaction, touched) = work_out(&*self.store, now, inputs).await?;
        transaction.writes.extend(self.writers.ask(&touched.reports, now));
        if transaction.writes.is_empty() {
            return Ok(true);
        }
        let committed = self.store.commit(transaction).await;
        self.metrics.commit(&committed);
        match committed {
            Ok(()) => {
                self.count(&touched);
                self.writers.wake(&touched.reports);
                // Nobody listening is fine: whoever starts later looks at everything first.
                drop(self.touched.send(touched));
                Ok(true)
            }
            Err(CommitError::Conflict { what }) => {
                tracing::debug!(what, "decided on old values, deciding again");
                Ok(false)
            }
            Err(error) => Err(self.judged(error)),
        }
    }

    fn count(&self, touched: &Touched) {
        touched.begun.iter().for_each(|kind| self.metrics.run_started(*kind));
        touched.ended.iter().for_each(|(kind, verdict)| self.metrics.run_ended(*kind, *verdict));
    }
}

/// What there is to say after [`TRIES`].
pub fn keeps_changing() -> Failure {
    Failure::transient("what was decided on kept changing")
}
