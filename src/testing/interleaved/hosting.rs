//! Where repositories live: their heads, what each commit declares, and what is written on commits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::watch;

use crate::error::{Failure, Result};
use crate::executor::declarations::Declarations;
use crate::forge::{Refusal, StatusWriter};
use crate::model::commit_status::{CommitStatus, StatusState};
use crate::model::ids::{CommitId, ConfigKey, ProjectName, RepositoryName, WriterName};
use crate::model::object::{Kind, Object};
use crate::model::project::Project;
use crate::model::state::RepositoryState;
use crate::simulation::memory_store::MemoryDisk;
use crate::testing::interleaved::fault::{Fault, Made};
use crate::testing::interleaved::scheduler::turn;

/// A commit and what its files declare.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Its id.
    pub id: CommitId,
    /// What its files read as; of one whose files cannot be read, what those of the one before did.
    pub project: Arc<Project>,
    /// Whether its files cannot be read.
    pub is_broken: bool,
    /// How often history was rewritten up to it.
    rewrites: u32,
    /// Whether a person allows that it does not descend from what is applied.
    accepted: bool,
}

/// What is pushed.
#[derive(Clone, Debug)]
pub(super) enum Pushed {
    /// A commit on top of the head.
    OnTop(Arc<Project>),
    /// A commit that takes the place of the whole history.
    Instead(Arc<Project>),
    /// A commit on top of the head whose files cannot be read.
    Broken,
    /// The commit before the head, which is the head again.
    Back,
}

/// All repositories; they go on when the daemon dies.
#[derive(Clone, Debug, Default)]
pub struct Hosting(Arc<Mutex<BTreeMap<RepositoryName, Repository>>>, pub(super) Made);

#[derive(Debug, Default)]
struct Repository {
    commits: Vec<Commit>,
    requests: watch::Sender<u64>,
    statuses: BTreeMap<(CommitId, String), CommitStatus>,
    refuses: Option<Refuses>,
}

/// How statuses are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refuses {
    /// The host is out of reach for a while.
    Busy,
    /// The token has no rights.
    Rights,
}

impl Commit {
    /// Whether it may be that nothing comes of it by itself.
    pub(super) fn is_refused(&self) -> bool {
        self.is_broken || self.rewrites > 0 && !self.accepted
    }
}

impl Hosting {
    /// No repository yet; where a mistake is made, it is this one.
    pub(super) fn new(made: Made) -> Self {
        Self(Arc::default(), made)
    }

    /// A new head. What cannot be read takes the place of something that could.
    pub(super) fn push(&self, repository: &RepositoryName, pushed: Pushed) {
        let mut all = self.all();
        let which = all.keys().position(|name| name == repository).unwrap_or(all.len());
        let repository = all.entry(repository.clone()).or_default();
        let mut id = CommitId::new(format!("{:07x}{which:033x}", repository.commits.len() + 1));
        let before = repository.commits.last();
        let rewrites = before.map_or(0, |before| before.rewrites);
        let (project, is_broken, rewrites) = match (pushed, before) {
            (Pushed::OnTop(project), _) => (project, false, rewrites),
            (Pushed::Instead(project), _) => (project, false, rewrites + 1),
            (Pushed::Broken, Some(before)) => (before.project.clone(), true, rewrites),
            (Pushed::Broken | Pushed::Back, None) => return,
            (Pushed::Back, Some(last)) => {
                let again = repository.commits.iter().rev().find(|known| known.id != last.id).cloned();
                let Some(Commit { id: before, project, is_broken, .. }) = again else { return };
                id = before;
                (project, is_broken, rewrites + 1)
            }
        };
        repository.commits.push(Commit { id, project, is_broken, rewrites, accepted: false });
        if !self.1.is(Fault::LosesPushes) {
            repository.requests.send_modify(|count| *count += 1);
        }
    }

    /// A person allows that the head does not descend from what is applied; says which commit that is.
    pub(super) fn accept_rewrite(&self, repository: &RepositoryName) -> Option<CommitId> {
        let mut all = self.all();
        let head = all.get_mut(repository)?.commits.last_mut()?;
        head.accepted = true;
        Some(head.id.clone())
    }

    /// Whether a commit descends from another one, or there is no other.
    pub(super) fn descends(&self, repository: &RepositoryName, commit: &Commit, from: Option<&CommitId>) -> bool {
        let known = self.commits(repository);
        let from = known.iter().rfind(|known| Some(&known.id) == from);
        from.is_none_or(|from| from.rewrites == commit.rewrites)
    }

    /// Says that a repository is to be synced although nothing was pushed.
    pub fn request_sync(&self, repository: &RepositoryName) {
        self.all().entry(repository.clone()).or_default().requests.send_modify(|count| *count += 1);
    }

    /// Changes with every push, and when a sync is asked for.
    pub(super) fn requests(&self, repository: &RepositoryName) -> watch::Receiver<u64> {
        self.all().entry(repository.clone()).or_default().requests.subscribe()
    }

    /// The newest commit.
    pub fn head(&self, repository: &RepositoryName) -> Option<Commit> {
        self.all().get(repository)?.commits.last().cloned()
    }

    /// The newest commit as a daemon reads it: with the files of the one before, where that mistake is made.
    pub(super) fn head_as_read(&self, repository: &RepositoryName) -> Option<Commit> {
        let mut newest = self.commits(repository).into_iter().rev();
        let head = newest.next()?;
        match newest.next().filter(|_| self.1.is(Fault::ReadsTheLast)) {
            Some(before) => Some(Commit { project: before.project, ..head }),
            None => Some(head),
        }
    }

    /// Whether the head of a repository that is not down declares a deployment config, or nobody can tell yet what it does.
    pub fn declares(&self, config: &ConfigKey, repositories: &[RepositoryState]) -> bool {
        self.repositories().iter().any(|name| self.declares_in(name, config, repositories))
    }

    /// The same of one repository.
    pub(super) fn declares_in(
        &self,
        name: &RepositoryName,
        config: &ConfigKey,
        repositories: &[RepositoryState],
    ) -> bool {
        let is_it = |object: &Object| object.key.kind == Kind::DeploymentConfig && object.key.name == config.name;
        let (Some(head), known) = (self.head(name), repositories.iter().find(|known| &known.name == name)) else {
            return false;
        };
        if head.project.name != config.project || known.is_some_and(|known| known.down) {
            return false;
        }
        if head.is_refused() && known.is_none_or(|known| known.applied.as_ref() != Some(&head.id)) {
            return true;
        }
        let mut stages = head.project.stages.iter().filter(|stage| stage.name == config.stage);
        stages.any(|stage| stage.objects.iter().any(|object| is_it(object)))
    }

    /// Whether the head of a repository declares no object: then nothing ends before a person allows it.
    pub fn declares_nothing(&self, project: &ProjectName) -> bool {
        let heads = self.repositories().into_iter().filter_map(|repository| self.head(&repository));
        let is_empty = |head: &Commit| head.project.stages.iter().all(|stage| stage.objects.iter().next().is_none());
        heads.filter(|head| &head.project.name == project).any(|head| is_empty(&head))
    }

    /// How many commits there are in all repositories.
    pub fn pushes(&self) -> usize {
        self.all().values().map(|repository| repository.commits.len()).sum()
    }

    /// Every commit, oldest first.
    pub fn commits(&self, repository: &RepositoryName) -> Vec<Commit> {
        self.all().get(repository).map(|repository| repository.commits.clone()).unwrap_or_default()
    }

    /// What stands on a commit now, by context.
    pub fn statuses(&self, repository: &RepositoryName, commit: &CommitId) -> Vec<CommitStatus> {
        let all = self.all();
        let written = all.get(repository).into_iter().flat_map(|repository| &repository.statuses);
        written.filter(|((on, _), _)| on == commit).map(|(_, status)| status.clone()).collect()
    }

    /// From now on statuses are refused, or taken again.
    pub(super) fn refuse(&self, repository: &RepositoryName, how: Option<Refuses>) {
        self.all().entry(repository.clone()).or_default().refuses = how;
    }

    /// All repositories.
    pub fn repositories(&self) -> Vec<RepositoryName> {
        self.all().keys().cloned().collect()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<RepositoryName, Repository>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Declarations for Hosting {
    async fn project(&self, repository: &RepositoryName, commit: &CommitId) -> Result<Option<Arc<Project>>> {
        turn().await;
        Ok(self.commits(repository).into_iter().find(|read| &read.id == commit).map(|read| read.project))
    }
}

/// Writes statuses of one repository, until the process that it belongs to is shut out: the state folder's lock sees to
/// it that this has ended by then.
#[derive(Debug)]
pub(super) struct HostingWriter {
    pub(super) hosting: Hosting,
    pub(super) repository: RepositoryName,
    pub(super) disk: MemoryDisk,
    pub(super) fence: u64,
}

#[async_trait]
impl StatusWriter for HostingWriter {
    fn name(&self) -> WriterName {
        "notes".into()
    }

    async fn write(&self, statuses: &[CommitStatus]) -> Result<(), Refusal> {
        turn().await;
        if self.disk.fence() != self.fence {
            return Err(Refusal::Busy(Failure::transient("the process has ended")));
        }
        let mut all = self.hosting.all();
        let repository = all.entry(self.repository.clone()).or_default();
        match repository.refuses {
            Some(Refuses::Busy) => return Err(Refusal::Busy(Failure::transient("out of reach"))),
            Some(Refuses::Rights) => return Err(Refusal::All(Failure::stalled("the token has no rights"))),
            None => {}
        }
        let hides = self.hosting.1.is(Fault::HidesFailures);
        let is_hidden = |status: &&CommitStatus| hides && status.state == StatusState::Failure;
        for status in statuses.iter().filter(|status| !is_hidden(status)) {
            repository.statuses.insert((status.commit.clone(), status.context.clone()), status.clone());
        }
        Ok(())
    }

    fn batch(&self) -> usize {
        usize::MAX
    }
}
