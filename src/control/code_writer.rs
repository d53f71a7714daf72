//! Statuses on the commits of code, where code and configuration live in two repositories.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use crate::control::watched::{READING, Watched};
use crate::error::Result;
use crate::forge::{Refusal, StatusWriter};
use crate::model::commit_status::CommitStatus;
use crate::model::ids::{CommitId, WriterName};
use crate::model::state::RevisionResult;
use crate::report::code::{CodeRepository, CodeRevision, on_code, revisions};
use crate::store::ReadStore;

/// Among so many revisions of configuration the newest one speaks that deploys a revision of code.
const MOST_REVISIONS: u32 = 50;
/// Of so many revisions of configuration is remembered what they deploy.
const MOST_KNOWN: usize = 200;

/// Writes what is written on a revision of configuration on the revisions of code that it deploys as well.
pub(super) struct CodeWriter {
    repository: CodeRepository,
    configuration: Arc<Watched>,
    store: Arc<dyn ReadStore>,
    host: Arc<dyn StatusWriter>,
    /// What revisions of configuration deploy, which never changes.
    known: Mutex<BTreeMap<CommitId, BTreeSet<CodeRevision>>>,
}

impl std::fmt::Debug for CodeWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeWriter").field("repository", &self.repository).finish_non_exhaustive()
    }
}

impl CodeWriter {
    /// Writes by `host`, which is that of the code.
    pub(super) fn new(
        repository: CodeRepository,
        configuration: Arc<Watched>,
        store: Arc<dyn ReadStore>,
        host: Arc<dyn StatusWriter>,
    ) -> Self {
        Self { repository, configuration, store, host, known: Mutex::default() }
    }

    /// The revisions of code for which a revision of configuration speaks: no newer one deploys them as well.
    async fn spoken_for(&self, commit: &CommitId) -> Result<BTreeSet<CodeRevision>> {
        let mut named = self.named_by(commit).await?;
        if named.is_empty() {
            return Ok(named);
        }
        let seen = self.store.outlines(&self.configuration.name, MOST_REVISIONS).await?;
        if seen.iter().any(|revision| revision.commit == *commit) {
            let newer = seen.iter().take_while(|revision| revision.commit != *commit);
            for newer in newer.filter(|revision| matches!(revision.result, RevisionResult::Planned(_))) {
                let newer = self.named_by(&newer.commit).await?;
                named.retain(|revision| !newer.contains(revision));
            }
        }
        Ok(named)
    }

    /// The revisions of code that a revision of configuration names; none, if it is gone.
    async fn named_by(&self, commit: &CommitId) -> Result<BTreeSet<CodeRevision>> {
        if let Some(known) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(commit) {
            return Ok(known.clone());
        }
        let of = commit.clone();
        let message = self.configuration.ask(READING, move |watched| {
            let repository = watched.mirror.open()?;
            if repository.contains(&of)? { repository.message(&of).map(Some) } else { Ok(None) }
        });
        let Some(message) = message.await? else { return Ok(BTreeSet::new()) };
        let project = self.configuration.project_at(commit).await?;
        let named = revisions(&self.repository, &message, project.as_deref());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(commit.clone(), named.clone());
        Ok(named)
    }
}

#[async_trait]
impl StatusWriter for CodeWriter {
    fn name(&self) -> WriterName {
        WriterName::new(format!("code {}", self.repository.name))
    }

    async fn write(&self, statuses: &[CommitStatus]) -> Result<(), Refusal> {
        let mut of_commits: BTreeMap<&CommitId, BTreeSet<CodeRevision>> = BTreeMap::new();
        let mut written = Vec::new();
        for status in statuses {
            let revisions = match of_commits.entry(&status.commit) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(self.spoken_for(&status.commit).await?),
            };
            written.extend(on_code(status, revisions));
        }
        for batch in written.chunks(self.host.batch()) {
            self.host.write(batch).await?;
        }
        Ok(())
    }

    fn batch(&self) -> usize {
        self.host.batch()
    }

    fn shows_details(&self) -> bool {
        self.host.shows_details()
    }
}
