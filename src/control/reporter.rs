//! Brings what is written on a commit up to date with what is remembered about it.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;

use crate::error::{Class, Result};
use crate::executor::perform::Reporter;
use crate::forge::StatusWriter;
use crate::model::commit_status::CommitStatus;
use crate::model::ids::{CommitId, RepositoryName};
use crate::model::run::Run;
use crate::report::{ledger, status};
use crate::store::{ReadStore, RunFilter, Store, Write};

/// Renders statuses and writes what is news to the writers of each repository.
pub struct StatusReporter {
    store: Arc<dyn Store>,
    writers: RwLock<BTreeMap<RepositoryName, Vec<Arc<dyn StatusWriter>>>>,
}

impl std::fmt::Debug for StatusReporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StatusReporter").finish_non_exhaustive()
    }
}

impl StatusReporter {
    /// A reporter that knows no writers yet.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, writers: RwLock::default() }
    }

    /// From now on, statuses of `repository` go to these writers.
    pub fn write_to(&self, repository: RepositoryName, writers: Vec<Arc<dyn StatusWriter>>) {
        self.writers.write().unwrap_or_else(PoisonError::into_inner).insert(repository, writers);
    }

    fn writers(&self, repository: &RepositoryName) -> Vec<Arc<dyn StatusWriter>> {
        self.writers.read().unwrap_or_else(PoisonError::into_inner).get(repository).cloned().unwrap_or_default()
    }
}

#[async_trait]
impl Reporter for StatusReporter {
    async fn report(&self, repository: &RepositoryName, commit: &CommitId) -> Result<Vec<Write>> {
        let posted = self.store.posted(repository, commit).await?;
        let news = ledger::news(&posted, statuses(&*self.store, repository, commit).await?);
        for writer in self.writers(repository) {
            for batch in news.chunks(writer.batch().max(1)) {
                match writer.write(batch).await {
                    // A forge that refuses for good must not stop deliveries, nor be asked again and again.
                    Err(failure) if failure.class() == Class::Stalled => {
                        tracing::error!(%repository, %commit, problem = failure.one_line(), "cannot write statuses");
                    }
                    written => written?,
                }
            }
        }
        let entry = |status| Write::Posted { repository: repository.clone(), status: Box::new(status) };
        Ok(news.into_iter().map(entry).collect())
    }
}

/// All statuses of a revision as they are now.
///
/// # Errors
/// If the store cannot be read.
pub async fn statuses(
    store: &dyn ReadStore,
    repository: &RepositoryName,
    commit: &CommitId,
) -> Result<Vec<CommitStatus>> {
    let Some(revision) = store.revision(repository, commit.as_str()).await? else { return Ok(Vec::new()) };
    let (repository, commit) = (Some(repository.clone()), Some(commit.clone()));
    let runs = store.runs(&RunFilter { repository, commit, ..RunFilter::default() }).await?;
    let runs: Vec<Run> = runs.into_iter().map(|run| run.value).collect();
    Ok(status::render(&revision, &runs))
}
