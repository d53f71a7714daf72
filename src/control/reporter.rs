//! Brings what is written on commits up to date with what is remembered about them: a lane for each writer of each
//! repository, so that one that is slow, or refuses, holds up nothing but itself.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::control::addresses::Addresses;
use crate::control::report_lane::ReportLane;
use crate::engine::transition::Input;
use crate::error::Result;
use crate::executor::drive::Driver;
use crate::executor::renderings::Renderings;
use crate::forge::StatusWriter;
use crate::model::commit_status::CommitStatus;
use crate::model::ids::{CommitId, RepositoryName, WriterName};
use crate::model::time::Timestamp;
use crate::report::ledger::Rendering;
use crate::runtime::Runtime;
use crate::store::ReadStore;

/// How many writers write at once. Writing Git notes blocks a thread of a pool that others need too.
const WRITES: usize = 128;

/// The lanes of all writers.
pub struct StatusReporter {
    driver: Driver,
    lanes: RwLock<Vec<Arc<ReportLane>>>,
    addresses: Addresses,
    writes: Arc<Semaphore>,
}

impl std::fmt::Debug for StatusReporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StatusReporter").finish_non_exhaustive()
    }
}

impl StatusReporter {
    /// A reporter that knows no writers yet.
    pub fn new(driver: Driver) -> Self {
        let writes = Arc::new(Semaphore::new(WRITES));
        Self { driver, lanes: RwLock::default(), addresses: Addresses::default(), writes }
    }

    /// The same; what shows environments leads to where stages answer on a runtime.
    #[must_use]
    pub fn on(self, runtime: Arc<dyn Runtime>) -> Self {
        Self { addresses: Addresses(Some(runtime)), ..self }
    }

    /// From now on, statuses of `repository` go to these writers.
    pub fn write_to(&self, repository: &RepositoryName, writers: Vec<Arc<dyn StatusWriter>>) {
        self.write_with_pulls(repository, writers, None);
    }

    /// The same; on what pull requests bring writes `of_pulls`, in place of the one of its name.
    pub fn write_with_pulls(
        &self,
        repository: &RepositoryName,
        writers: Vec<Arc<dyn StatusWriter>>,
        of_pulls: Option<Arc<dyn StatusWriter>>,
    ) {
        let lane = |writer: Arc<dyn StatusWriter>| {
            let asked = self.driver.writers.add(repository, writer.name());
            let lane = ReportLane::new(self.driver.clone(), asked, writer, self.writes.clone());
            Arc::new(lane.with_pulls(of_pulls.as_ref()).with_addresses(self.addresses.clone()))
        };
        self.lanes.write().unwrap_or_else(PoisonError::into_inner).extend(writers.into_iter().map(lane));
    }

    /// Writes until told to stop; what is being written is finished first.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let lanes = self.lanes();
        if let Err(failure) = self.forget_writers(&lanes).await {
            tracing::error!(problem = failure.one_line(), "cannot tell whose problems are over");
        }
        futures::future::join_all(lanes.iter().map(|lane| lane.run(stop.clone()))).await;
    }

    /// What a writer could not write that is configured no longer is nobody's problem any more.
    async fn forget_writers(&self, lanes: &[Arc<ReportLane>]) -> Result<()> {
        let mut over = Vec::new();
        for repository in self.driver.store.repositories().await?.found {
            let (name, problems) = (&repository.value.name, &repository.value.status_problems);
            let is_there = |writer: &&WriterName| {
                lanes.iter().any(|lane| lane.asked.repository == *name && lane.asked.writer == **writer)
            };
            let gone = problems.keys().filter(|writer| !is_there(writer));
            over.extend(gone.map(|writer| Input::StatusProblem(name.clone(), writer.clone(), None)));
        }
        if over.is_empty() { Ok(()) } else { self.driver.commit(&over).await }
    }

    /// Writes everything that is due now.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn drain(&self) -> Result<()> {
        for lane in self.lanes() {
            lane.work().await?;
        }
        Ok(())
    }

    /// When something comes due that is not due now.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn next_due(&self) -> Result<Option<Timestamp>> {
        let mut next = None;
        for lane in self.lanes() {
            next = next.into_iter().chain(lane.next_due().await?).min();
        }
        Ok(next)
    }

    /// The lanes of all writers.
    pub(crate) fn lanes(&self) -> Vec<Arc<ReportLane>> {
        self.lanes.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// All statuses of a revision as they are now, for whoever has read none of it.
///
/// # Errors
/// If the store cannot be read.
pub async fn statuses(
    store: &dyn ReadStore,
    repository: &RepositoryName,
    commit: &CommitId,
) -> Result<Vec<CommitStatus>> {
    Ok(rendering(store, repository, commit, &BTreeSet::new()).await?.statuses)
}

/// The statuses of a revision as they are now, for whoever knows some contexts.
///
/// # Errors
/// If the store cannot be read.
pub async fn rendering(
    store: &dyn ReadStore,
    repository: &RepositoryName,
    commit: &CommitId,
    known: &BTreeSet<String>,
) -> Result<Rendering> {
    Renderings::default().render(store, repository, commit, known).await
}

#[cfg(test)]
mod tests;
