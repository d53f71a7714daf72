//! Brings what is written on commits up to date with what is remembered about them: a lane for each writer of each
//! repository, so that one that is slow, or refuses, holds up nothing but itself.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::control::report_lane::ReportLane;
use crate::error::Result;
use crate::executor::drive::Driver;
use crate::forge::StatusWriter;
use crate::model::commit_status::CommitStatus;
use crate::model::ids::{CommitId, RepositoryName};
use crate::model::run::Run;
use crate::model::state::RevisionResult;
use crate::model::time::Timestamp;
use crate::report::ledger::Rendering;
use crate::report::status::{self, Facts};
use crate::store::{ReadStore, RunFilter};

/// How many writers write at once. Writing Git notes blocks a thread of a pool that others need too.
const WRITES: usize = 128;

/// The lanes of all writers.
pub struct StatusReporter {
    driver: Driver,
    lanes: RwLock<Vec<Arc<ReportLane>>>,
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
        Self { driver, lanes: RwLock::default(), writes: Arc::new(Semaphore::new(WRITES)) }
    }

    /// From now on, statuses of `repository` go to these writers.
    pub fn write_to(&self, repository: &RepositoryName, writers: Vec<Arc<dyn StatusWriter>>) {
        let lane = |writer: Arc<dyn StatusWriter>| {
            let asked = self.driver.writers.add(repository, writer.name());
            Arc::new(ReportLane::new(self.driver.clone(), asked, writer, self.writes.clone()))
        };
        self.lanes.write().unwrap_or_else(PoisonError::into_inner).extend(writers.into_iter().map(lane));
    }

    /// Writes until told to stop; what is being written is finished first.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let lanes = self.lanes();
        futures::future::join_all(lanes.iter().map(|lane| lane.run(stop.clone()))).await;
    }

    /// Writes everything that is due now.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn settle(&self) -> Result<()> {
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
    let number = store.last_event().await?; // before all else: what is read then is at least as new
    let Some(revision) = store.revision(repository, commit.as_str()).await? else { return Ok(Rendering::default()) };
    let filter =
        RunFilter { repository: Some(repository.clone()), commit: Some(commit.clone()), ..RunFilter::default() };
    let runs: Vec<Run> = store.runs(&filter).await?.into_iter().map(|run| run.value).collect();
    let overtaken = match (&revision.result, status::not_started(&revision, &runs)) {
        (RevisionResult::Planned(plan), waiting) if !waiting.is_empty() => {
            store.overtaken(&plan.project, repository, commit, &waiting).await?
        }
        _ => status::Overtaken::new(),
    };
    let facts = Facts { revision: &revision, runs: &runs, overtaken: &overtaken, known };
    Ok(Rendering { number, statuses: status::render(&facts) })
}

#[cfg(test)]
mod tests;
