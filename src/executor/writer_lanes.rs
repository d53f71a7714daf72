//! Who writes statuses: each writer of each repository has a lane of its own, is asked on its own, and woken when it
//! was.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::Notify;

use crate::model::action::{Action, Lane, REPORTS};
use crate::model::ids::{CommitId, RepositoryName, RunId, WriterName};
use crate::model::time::Timestamp;
use crate::store::Write;

/// One writer of one repository.
#[derive(Debug)]
pub struct WriterLane {
    /// The repository.
    pub repository: RepositoryName,
    /// The writer.
    pub writer: WriterName,
    wake: Notify,
    retry: AtomicBool,
}

impl WriterLane {
    /// Where its reports wait.
    pub fn lane(&self) -> Lane {
        Lane::Statuses { repository: self.repository.clone(), writer: self.writer.clone() }
    }

    /// Waits until there may be something to do.
    pub async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Whether what was refused is to be tried again; asked once, it is no longer.
    pub fn takes_retry(&self) -> bool {
        self.retry.swap(false, Ordering::SeqCst)
    }

    /// Whether somebody asked for that, and nobody has taken it up yet.
    pub fn wants_retry(&self) -> bool {
        self.retry.load(Ordering::SeqCst)
    }

    /// Has what was refused tried again: a person may have put right what was wrong.
    pub fn retry(&self) {
        self.retry.store(true, Ordering::SeqCst);
        self.wake.notify_one();
    }
}

/// The writers of all repositories.
#[derive(Debug, Default)]
pub struct WriterLanes(RwLock<BTreeMap<RepositoryName, Vec<Arc<WriterLane>>>>);

impl WriterLanes {
    /// From now on, reports about `repository` are asked for from this writer too.
    pub fn add(&self, repository: &RepositoryName, writer: WriterName) -> Arc<WriterLane> {
        let added = Arc::new(WriterLane {
            repository: repository.clone(),
            writer,
            wake: Notify::new(),
            retry: AtomicBool::new(false),
        });
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.entry(repository.clone()).or_default().push(added.clone());
        added
    }

    /// Has what was refused for a repository tried again.
    pub fn retry(&self, repository: &RepositoryName) {
        self.of(repository).iter().for_each(|lane| lane.retry());
    }

    /// What asks every writer for reports about some revisions.
    pub(super) fn ask(&self, revisions: &BTreeSet<(RepositoryName, CommitId)>, now: Timestamp) -> Vec<Write> {
        let report = |(repository, commit): &(RepositoryName, CommitId)| {
            let asked = |lane: &Arc<WriterLane>| {
                let action = Box::new(Action::report(repository, commit, &lane.writer));
                Write::Ask { run: RunId::new(REPORTS), action, due: now, at: now }
            };
            self.of(repository).iter().map(asked).collect::<Vec<_>>()
        };
        revisions.iter().flat_map(report).collect()
    }

    /// Asks every writer about older revisions of repositories of which a newer one was planned: what they still show as
    /// to come may have been overtaken.
    pub(super) fn ask_overtaken(&self, planned: &BTreeSet<RepositoryName>, at: Timestamp) -> Vec<Write> {
        let asked = |repository: &RepositoryName| {
            let ask = |lane: Arc<WriterLane>| {
                let (repository, writer) = (repository.clone(), lane.writer.clone());
                Write::AskOvertaken { repository, writer, at }
            };
            self.of(repository).into_iter().map(ask).collect::<Vec<_>>()
        };
        planned.iter().flat_map(asked).collect()
    }

    /// Wakes those who were asked.
    pub(super) fn wake(&self, revisions: &BTreeSet<(RepositoryName, CommitId)>) {
        let repositories: BTreeSet<&RepositoryName> = revisions.iter().map(|(repository, _)| repository).collect();
        for repository in repositories {
            self.of(repository).iter().for_each(|lane| lane.wake.notify_one());
        }
    }

    /// An environment is written about by who writes about its repository.
    fn of(&self, repository: &RepositoryName) -> Vec<Arc<WriterLane>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&repository.watched()).cloned().unwrap_or_default()
    }
}
