//! One sync of a repository: what its branch says now, and what follows from it.
//!
//! Whatever asked for it, a sync is the same: the remote's head is compared with the one that was seen, and
//! a new head is applied, or refused with a status that says why. Nothing is taken from who asked.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::control::deliver;
use crate::error::{Context, Failure, Result};
use crate::executor::drive::{Driver, TRIES, keeps_changing};
use crate::executor::transition::Input;
use crate::manifest::{self, FileEntry, FileKind, Files, Problem};
use crate::model::ids::{CommitId, RepositoryName};
use crate::model::project::Project;
use crate::model::state::{RepositoryState, RevisionResult, RevisionState, Versioned};
use crate::plan::build::{self, Revision};
use crate::source::{self, CommitInfo, Entry, EntryKind, Limits, Mirror, ObjectId, Remote};
use crate::store::Write;

/// A repository that is watched.
pub struct Watched {
    /// Its name.
    pub name: RepositoryName,
    /// Where it is.
    pub remote: Remote,
    /// Its objects on this machine.
    pub mirror: Arc<Mirror>,
    /// How much of it is read.
    pub limits: Limits,
    /// How its files are read.
    pub options: manifest::Options,
    /// Whether a head that does not descend from the applied one is taken.
    pub rewrite_allowed: bool,
    /// What was read last, so that a new revision costs what it changes.
    snapshot: Mutex<Option<(CommitId, manifest::Snapshot)>>,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What a sync found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Synced {
    /// The head that was seen before.
    Unchanged,
    /// A new head, now planned or refused.
    Revision(CommitId),
}

/// What a person allows for one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// It may replace history.
    pub rewrite: Option<CommitId>,
    /// It may delete more than the rule lets go by itself.
    pub prune: Option<CommitId>,
}

/// A new head, read.
struct Head {
    commit: CommitId,
    info: CommitInfo,
    descends: bool,
    outcome: manifest::Outcome,
}

impl Watched {
    /// A repository that nothing is known of yet.
    pub fn new(
        name: RepositoryName,
        remote: Remote,
        mirror: Arc<Mirror>,
        limits: Limits,
        options: manifest::Options,
        rewrite_allowed: bool,
    ) -> Self {
        Self { name, remote, mirror, limits, options, rewrite_allowed, snapshot: Mutex::default() }
    }

    /// Syncs once.
    ///
    /// # Errors
    /// If the remote cannot be reached or read, or the store fails; then nothing was changed.
    pub async fn sync(self: &Arc<Self>, driver: &Driver) -> Result<Synced> {
        for _ in 0..TRIES {
            if let Some(found) = self.try_sync(driver).await? {
                return Ok(found);
            }
        }
        Err(keeps_changing())
    }

    /// Nothing, if what was decided on has moved meanwhile.
    async fn try_sync(self: &Arc<Self>, driver: &Driver) -> Result<Option<Synced>> {
        let stored = self.state(driver).await?;
        let watched = self.clone();
        let (seen, applied) = (stored.value.seen.clone(), stored.value.applied.clone());
        let read = tokio::task::spawn_blocking(move || watched.read(seen.as_ref(), applied.as_ref()));
        let Some(head) = read.await.or_transient(|| "reading the repository broke off".into())?? else {
            if !stored.value.status_problems.is_empty() {
                driver.writers.retry(&self.name); // the token may have been replaced meanwhile
            }
            return Ok(Some(Synced::Unchanged));
        };
        let commit = head.commit.clone();
        let inputs = self.decide(driver, stored, head).await?;
        Ok(driver.try_commit(&inputs).await?.then_some(Synced::Revision(commit)))
    }

    /// What the applied revision would do now, without doing it.
    ///
    /// # Errors
    /// If nothing was applied yet, or it cannot be read.
    pub async fn plan_now(self: &Arc<Self>, driver: &Driver) -> Result<RevisionState> {
        let state = self.state(driver).await?.value;
        let nothing = || Failure::stalled(format!("nothing of `{}` was applied yet", self.name));
        let commit = state.applied.clone().ok_or_else(nothing)?;
        let watched = self.clone();
        let read = tokio::task::spawn_blocking(move || watched.read_at(commit, None));
        let head = read.await.or_transient(|| "reading the repository broke off".into())??;
        let result = match self.judge(driver, &state, &head).await? {
            Ok((_, plan)) => RevisionResult::Planned(Box::new(plan)),
            Err(refused) => refused,
        };
        Ok(self.revision(driver, &head, result))
    }

    /// Remembers what is wrong with the repository, or that nothing is. Writes nothing if that is known, unless it is
    /// the first sync since the daemon started: whoever waits for it reads its time.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn remember(&self, driver: &Driver, problem: Option<String>, first: bool) -> Result<()> {
        let now = driver.clock.now();
        self.change(driver, |state| {
            let is_news = first || state.problem != problem;
            if is_news {
                state.problem.clone_from(&problem);
                state.synced_at = Some(now);
            }
            is_news
        })
        .await
    }

    /// Makes the next sync plan the head anew, although it was seen before, with what a person allows for it.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn allow(&self, driver: &Driver, allow: &Allowance) -> Result<()> {
        self.change(driver, |state| {
            state.seen = None;
            state.accepted_rewrite = allow.rewrite.clone().or(state.accepted_rewrite.take());
            state.allowed_prune = allow.prune.clone().or(state.allowed_prune.take());
            true
        })
        .await
    }

    /// Changes what is remembered of the repository; `change` says whether it changed anything.
    async fn change(&self, driver: &Driver, change: impl Fn(&mut RepositoryState) -> bool) -> Result<()> {
        for _ in 0..TRIES {
            let mut stored = self.state(driver).await?;
            if !change(&mut stored.value)
                || driver.try_commit(&[Input::Write(Box::new(Write::Repository(Box::new(stored))))]).await?
            {
                return Ok(());
            }
        }
        Err(keeps_changing())
    }

    async fn state(&self, driver: &Driver) -> Result<Versioned<RepositoryState>> {
        let fresh = || RepositoryState::new(self.name.clone(), self.remote.url.to_string(), &self.remote.branch);
        let stored = driver.store.repository(&self.name).await?;
        Ok(stored.unwrap_or_else(|| Versioned { version: 0, value: fresh() }))
    }

    /// Reads the head, unless it is the one that was seen.
    fn read(&self, seen: Option<&CommitId>, applied: Option<&CommitId>) -> Result<Option<Head>> {
        let head = source::remote_head(&self.remote)?.ok_or_else(|| {
            let message = format!("branch `{}` of {} does not exist", self.remote.branch, self.remote.url);
            Failure::stalled(message).hint("push it, or watch another branch; what runs keeps running")
        })?;
        if Some(&head) == seen {
            return Ok(None);
        }
        let commit = self.mirror.fetch(&self.remote, &head)?;
        self.read_at(commit, applied).map(Some)
    }

    fn read_at(&self, commit: CommitId, applied: Option<&CommitId>) -> Result<Head> {
        let repository = self.mirror.open()?;
        let descends = match applied {
            Some(applied) if applied != &commit => repository.is_descendant(&commit, applied)?,
            _ => true,
        };
        let info = repository.commit_info(&commit)?;
        let snapshot = self.snapshot_at(&repository, &commit)?;
        let outcome = snapshot.project().clone();
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = Some((commit.clone(), snapshot));
        Ok(Head { commit, info, descends, outcome })
    }

    fn snapshot_at(&self, repository: &source::Repository, commit: &CommitId) -> Result<manifest::Snapshot> {
        let files = TreeFiles { tree: repository.tree(commit)?, limit: self.limits.manifest };
        let known = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some((known, snapshot)) if &known == commit => Ok(snapshot),
            Some((known, snapshot)) => {
                let changed = repository.changed_paths(&known, commit)?;
                let changed: Vec<_> =
                    changed.into_iter().map(|change| (change.path, change.new.map(file_entry))).collect();
                snapshot.update(&changed, &files, &self.options)
            }
            None => manifest::Snapshot::read(&files, &self.options),
        }
    }

    /// What follows from a new head.
    async fn decide(&self, driver: &Driver, stored: Versioned<RepositoryState>, head: Head) -> Result<Vec<Input>> {
        let mut state = stored.value.clone();
        let (result, mut inputs) = match self.judge(driver, &state, &head).await? {
            Err(refused) => (refused, Vec::new()),
            Ok((project, plan)) => {
                state.project = Some(project.name.clone());
                state.applied = Some(head.commit.clone());
                let inputs = if state.down { Vec::new() } else { deliver::starts(driver, &plan).await? };
                (RevisionResult::Planned(Box::new(plan)), inputs)
            }
        };
        state.seen = Some(head.commit.clone());
        state.synced_at = Some(driver.clock.now());
        state.problem = None;
        let revision = self.revision(driver, &head, result);
        let revision = told_before(driver, &revision).await?.unwrap_or(revision);
        let repository = Versioned { version: stored.version, value: state };
        let writes = [Write::Repository(Box::new(repository)), Write::Revision(Box::new(revision))];
        inputs.splice(0..0, writes.map(|write| Input::Write(Box::new(write))));
        inputs.push(Input::Report(self.name.clone(), head.commit));
        Ok(inputs)
    }

    fn revision(&self, driver: &Driver, head: &Head, result: RevisionResult) -> RevisionState {
        RevisionState {
            repository: self.name.clone(),
            commit: head.commit.clone(),
            subject: head.info.subject.clone(),
            at: driver.clock.now(),
            result,
        }
    }

    /// The plan of a head, or why there is none.
    async fn judge(
        &self,
        driver: &Driver,
        state: &RepositoryState,
        head: &Head,
    ) -> Result<Result<(Arc<Project>, crate::model::plan::Plan), RevisionResult>> {
        if !head.descends && !self.rewrite_allowed && !names(state.accepted_rewrite.as_ref(), &head.commit) {
            return Ok(Err(RevisionResult::Refused { reason: rewrite_reason(state, &head.commit) }));
        }
        let Some(project) = head.outcome.project.clone() else {
            let problems = head.outcome.problems.iter().map(ToString::to_string).collect();
            return Ok(Err(RevisionResult::Broken { problems }));
        };
        let unreadable = self.unreadable_but_applied(driver, &project, &head.outcome.problems).await?;
        if !unreadable.is_empty() {
            return Ok(Err(RevisionResult::Broken { problems: unreadable }));
        }
        if let Some(other) = self.same_project(driver, &project).await? {
            let reason = format!(
                "repository `{other}` declares project `{}` already; rename one in launchway.yaml",
                project.name
            );
            return Ok(Err(RevisionResult::Refused { reason }));
        }
        let revision = Revision {
            repository: self.name.clone(),
            commit: head.commit.clone(),
            subject: head.info.subject.clone(),
            at: driver.clock.now(),
            prune_allowed: names(state.allowed_prune.as_ref(), &head.commit),
        };
        let applied = deliver::applied(&*driver.store, &project).await?;
        Ok(match build::build(&project, &revision, &applied) {
            Ok(plan) => Ok((project, plan)),
            Err(refusal) => Err(RevisionResult::Refused { reason: refusal.reason }),
        })
    }

    /// A file that cannot be read is only a warning, unless something of it is applied: what it declared must not be
    /// taken for deleted.
    async fn unreadable_but_applied(
        &self,
        driver: &Driver,
        project: &Project,
        problems: &[Problem],
    ) -> Result<Vec<String>> {
        let declares = |file: &str| {
            let mut objects = project.stages.iter().flat_map(|stage| stage.objects.iter());
            objects.any(|object| object.location.file == file)
        };
        let suspects: Vec<&Problem> = problems.iter().filter(|problem| !declares(&problem.file)).collect();
        if suspects.is_empty() {
            return Ok(Vec::new());
        }
        let configs = driver.store.configs(Some(&project.name), None).await?;
        let objects = driver.store.objects(Some(&project.name), None, None).await?;
        let of_configs = configs.into_iter().map(|config| config.value.object.location.file.clone());
        let of_objects = objects.into_iter().map(|object| object.value.object.location.file.clone());
        let applied: BTreeSet<String> = of_configs.chain(of_objects).collect();
        let gone = |problem: &&&Problem| applied.contains(&problem.file);
        Ok(suspects.iter().filter(gone).map(ToString::to_string).collect())
    }

    async fn same_project(&self, driver: &Driver, project: &Project) -> Result<Option<RepositoryName>> {
        let others = driver.store.repositories().await?;
        let same = |state: &RepositoryState| state.name != self.name && state.project.as_ref() == Some(&project.name);
        Ok(others.into_iter().map(|state| state.value).find(same).map(|state| state.name))
    }
}

/// What stays on a commit that is looked at again and finds nothing more to do: it did what its first plan says.
async fn told_before(driver: &Driver, revision: &RevisionState) -> Result<Option<RevisionState>> {
    let does_nothing = |state: &RevisionState| match &state.result {
        RevisionResult::Planned(plan) => Some(plan.does_nothing()),
        _ => None,
    };
    if does_nothing(revision) != Some(true) {
        return Ok(None);
    }
    let known = driver.store.revision(&revision.repository, revision.commit.as_str()).await?;
    Ok(known.filter(|known| does_nothing(known) == Some(false)))
}

/// Whether a person's word for a commit, of at least four digits, means this one.
fn names(word: Option<&CommitId>, commit: &CommitId) -> bool {
    word.is_some_and(|word| word.as_str().len() >= 4 && commit.as_str().starts_with(word.as_str()))
}

fn rewrite_reason(state: &RepositoryState, head: &CommitId) -> String {
    let applied = state.applied.as_ref().map(|applied| applied.short().to_owned()).unwrap_or_default();
    let head = head.short();
    format!(
        "history was rewritten: {head} does not descend from {applied}; `launchway sync --accept-rewrite {head}` accepts it"
    )
}

/// A commit's tree as the files that `manifest` reads.
pub struct TreeFiles<'a> {
    /// The tree.
    pub tree: source::Tree<'a>,
    /// The most bytes of one file.
    pub limit: u64,
}

impl std::fmt::Debug for TreeFiles<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TreeFiles").finish_non_exhaustive()
    }
}

impl Files for TreeFiles<'_> {
    fn entries(&self) -> Result<Vec<FileEntry>> {
        Ok(self.tree.entries()?.into_iter().map(file_entry).collect())
    }

    fn read(&self, entry: &FileEntry) -> Result<Vec<u8>> {
        self.tree.read_blob(ObjectId::parse(&entry.id)?, self.limit)
    }

    fn tree_id(&self, path: &str) -> Result<Option<String>> {
        Ok(self.tree.folder(path)?.map(|folder| folder.id().to_string()))
    }
}

fn file_entry(entry: Entry) -> FileEntry {
    let kind = match entry.kind {
        EntryKind::File => FileKind::File { executable: false },
        EntryKind::Executable => FileKind::File { executable: true },
        EntryKind::Symlink => FileKind::Symlink,
        EntryKind::Submodule => FileKind::Submodule,
        EntryKind::Refused(why) => FileKind::Refused(why),
    };
    FileEntry { path: entry.path, kind, id: entry.id.to_string() }
}
