//! Brings what is written on a commit up to date with what is remembered about it.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;

use crate::error::{Class, Result};
use crate::executor::perform::Reporter;
use crate::executor::transition::Input;
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
    /// A forge that refuses for good must not stop deliveries: the refusal is remembered with the repository, and what
    /// was not written is news again at the next report.
    async fn report(&self, repository: &RepositoryName, commit: &CommitId) -> Result<Vec<Input>> {
        let posted = self.store.posted(repository, commit).await?;
        let news = ledger::news(&posted, statuses(&*self.store, repository, commit).await?);
        if news.is_empty() {
            return Ok(Vec::new());
        }
        let refused = match self.write(repository, &news).await {
            Err(failure) if failure.class() == Class::Stalled => Some(failure.one_line()),
            written => written.map(|()| None)?,
        };
        let mut inputs = Vec::new();
        if refused.is_none() {
            let entry = |status| Write::Posted { repository: repository.clone(), status: Box::new(status) };
            inputs.extend(news.into_iter().map(|status| Input::Write(Box::new(entry(status)))));
        }
        self.tell(repository, refused.as_ref()).await?;
        inputs.push(Input::StatusProblem(repository.clone(), refused));
        Ok(inputs)
    }
}

impl StatusReporter {
    /// Writes to every writer, whatever becomes of the others; the first failure comes back.
    async fn write(&self, repository: &RepositoryName, news: &[CommitStatus]) -> Result<()> {
        let mut outcome = Ok(());
        for writer in self.writers(repository) {
            for batch in news.chunks(writer.batch().max(1)) {
                let written = writer.write(batch).await;
                let failed = written.is_err();
                outcome = outcome.and(written);
                if failed {
                    break;
                }
            }
        }
        outcome
    }

    /// Logs what is news about the way to the forge.
    async fn tell(&self, repository: &RepositoryName, refused: Option<&String>) -> Result<()> {
        let Some(known) = self.store.repository(repository).await? else { return Ok(()) };
        match (known.value.status_problem.as_ref(), refused) {
            (known, refused) if known == refused => {}
            (_, Some(problem)) => tracing::error!(%repository, problem, "cannot write statuses"),
            (_, None) => tracing::info!(%repository, "statuses are written again"),
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::clock::ManualClock;
    use crate::error::Failure;
    use crate::executor::transition::work_out;
    use crate::model::state::{RepositoryState, RevisionResult, RevisionState, Versioned};
    use crate::model::time::Timestamp;
    use crate::store::Transaction;
    use crate::store::sqlite::SqliteStore;

    /// A forge that refuses until it is told otherwise.
    #[derive(Default)]
    struct Forge(AtomicBool);

    #[async_trait]
    impl StatusWriter for Forge {
        async fn write(&self, _: &[CommitStatus]) -> Result<()> {
            if self.0.load(Ordering::SeqCst) { Ok(()) } else { Err(Failure::stalled("no such token")) }
        }

        fn batch(&self) -> usize {
            1
        }
    }

    fn shop() -> RepositoryState {
        let state = RepositoryState::new("shop".into(), "https://git.example/shop.git", "main");
        RepositoryState { seen: Some("c0ffee".into()), ..state }
    }

    fn broken() -> RevisionState {
        RevisionState {
            repository: "shop".into(),
            commit: "c0ffee".into(),
            subject: "typo".into(),
            at: Timestamp::default(),
            result: RevisionResult::Broken { problems: vec!["app.yaml:1:1: error".into()] },
        }
    }

    async fn commit(store: &dyn Store, writes: Vec<Write>) {
        store.commit(Transaction { writes }).await.expect("committed");
    }

    #[tokio::test]
    async fn a_refusal_is_remembered_until_the_same_statuses_get_through() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("store.db"), Arc::new(ManualClock::default()));
        let store: Arc<dyn Store> = Arc::new(store.expect("a store"));
        let state = Write::Repository(Box::new(Versioned { version: 0, value: shop() }));
        commit(&*store, vec![state, Write::Revision(Box::new(broken()))]).await;
        let (reporter, forge) = (StatusReporter::new(store.clone()), Arc::new(Forge::default()));
        reporter.write_to("shop".into(), vec![forge.clone()]);
        let (name, head) = (RepositoryName::from("shop"), CommitId::from("c0ffee"));
        for (works, problem, posted) in
            [(false, Some("no such token"), 0), (false, Some("no such token"), 0), (true, None, 1)]
        {
            forge.0.store(works, Ordering::SeqCst);
            let inputs = reporter.report(&name, &head).await.expect("never in the way");
            let transaction = work_out(&*store, Timestamp::default(), &inputs).await.expect("worked out").0;
            store.commit(transaction).await.expect("committed");
            let state = store.repository(&name).await.expect("read").expect("there").value;
            assert_eq!(state.status_problem.as_deref(), problem);
            assert_eq!(store.posted(&name, &head).await.expect("read").len(), posted);
        }
    }
}
