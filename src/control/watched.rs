//! A repository that is watched: what its configuration says of it, and what its branch says now, read from a mirror.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::control::aside::Aside;
use crate::engine::sync::{self as decision, Head};
use crate::error::{Class, Context, Result};
use crate::executor::drive::Driver;
use crate::executor::git_events::ReadTags;
use crate::executor::sync::{self, Read, Revisions, Synced};
use crate::manifest::{self, Content, FileEntry, FileKind, Files, LARGEST, Problem};
use crate::model::ids::{CommitId, RepositoryName};
use crate::model::project::Project;
use crate::model::state::{RepositoryState, RevisionResult};
use crate::model::tag::Tags;
use crate::model::time::Timestamp;
use crate::source::{self, Blob, Entry, EntryKind, Limits, Mirror, ObjectId, Remote};
use async_trait::async_trait;

/// How long a repository on this machine may take to say what its branch is, which is a matter of milliseconds, and how long
/// to be read, which is one of minutes where it is large. Other machines have times of their own, in `source`.
pub(super) const QUESTION: Duration = Duration::from_secs(10);
pub(super) const READING: Duration = Duration::from_secs(3600);

/// The most warnings that are kept with a revision.
const MAX_WARNINGS: usize = 20;

/// A repository that is watched.
pub struct Watched {
    /// Its name.
    pub name: RepositoryName,
    /// Where it is; without a branch, the one is watched that its `HEAD` names.
    pub remote: Remote,
    /// Its objects on this machine.
    pub mirror: Arc<Mirror>,
    /// How much of it is read.
    pub limits: Limits,
    /// How its files are read.
    pub options: manifest::Options,
    /// Whether a head that does not descend from the applied one is taken.
    pub rewrite_allowed: bool,
    /// Where what may not answer is waited for.
    aside: Aside,
    /// The branch that the remote's `HEAD` named when it was asked, perhaps before the daemon started.
    default_branch: Mutex<Option<String>>,
    /// What was read last, so that a new revision costs what it changes.
    snapshot: Mutex<Option<(CommitId, manifest::Snapshot)>>,
    /// Whether a sync was begun since the daemon started.
    synced: AtomicBool,
    /// When the last sync came to its end that found out what the head is; 0 before the first.
    polled_at: AtomicI64,
    /// What is wrong with it, as long as that cannot be written down.
    unwritten: Mutex<Option<String>>,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").field("name", &self.name).finish_non_exhaustive()
    }
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
        aside: Aside,
    ) -> Self {
        Self {
            name,
            remote,
            mirror,
            limits,
            options,
            rewrite_allowed,
            aside,
            default_branch: Mutex::default(),
            snapshot: Mutex::default(),
            synced: AtomicBool::new(false),
            polled_at: AtomicI64::new(0),
            unwritten: Mutex::default(),
        }
    }

    /// Syncs once.
    ///
    /// # Errors
    /// If the remote cannot be reached or read, or the store fails; then nothing was changed.
    pub async fn sync(self: &Arc<Self>, driver: &Driver) -> Result<Synced> {
        let first = !self.synced.swap(true, Ordering::SeqCst);
        let synced = sync::sync(driver, self, first).await?;
        self.polled_at.store(driver.clock.now().0, Ordering::Relaxed);
        Ok(synced)
    }

    /// When it was last found out what its head is, also where that was no news and nothing was written down.
    pub fn polled_at(&self) -> Option<Timestamp> {
        Some(self.polled_at.load(Ordering::Relaxed)).filter(|at| *at != 0).map(Timestamp)
    }

    /// Whether a rule refuses the head that was seen: what it broke may be put right elsewhere.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn is_refused(self: &Arc<Self>, driver: &Driver) -> Result<bool> {
        let Some(head) = sync::state(driver, self).await?.value.seen else { return Ok(false) };
        let known = driver.store.revision(&self.name, head.as_str()).await?;
        Ok(known.is_some_and(|known| matches!(known.result, RevisionResult::Refused { .. })))
    }

    /// The branch that is watched, as far as it is known.
    pub fn branch(&self) -> Option<String> {
        match self.remote.branch.as_str() {
            "" => self.default_branch.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            named => Some(named.to_owned()),
        }
    }

    /// The same; as long as it is not known, the one that was watched before.
    fn branch_or(&self, before: &str) -> String {
        self.branch().unwrap_or_else(|| before.to_owned())
    }

    /// What a revision declares; nothing, if its files are broken.
    ///
    /// # Errors
    /// If the repository cannot be read.
    pub async fn project_at(self: &Arc<Self>, commit: &CommitId) -> Result<Option<Arc<Project>>> {
        Ok(self.at(commit).await?.head.declared.ok())
    }

    /// Makes it known as its configuration says now, before anything is read of it: people ask about what they watch.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn register(self: &Arc<Self>, driver: &Driver) -> Result<()> {
        // The main branch is what it was, until the remote can be asked.
        let before = sync::state(driver, self).await?.value.branch;
        if self.remote.branch.is_empty() && !before.is_empty() {
            self.note_default_branch(before);
        }
        driver
            .decide(|transition| {
                let (stored, fresh) = (transition.records.repositories.get(&self.name)?.cloned(), sync::unknown(self));
                let declared = match stored.clone() {
                    Some(stored) => {
                        RepositoryState { url: fresh.url, branch: self.branch_or(&stored.branch), ..stored }
                    }
                    None => fresh,
                };
                match stored.as_ref() == Some(&declared) {
                    true => Ok(()),
                    false => transition.records.repositories.put(&self.name, Some(declared)),
                }
            })
            .await
    }

    /// Remembers what is wrong with the repository, or that nothing is. Writes nothing if that is known, unless it is
    /// the first sync since the daemon started: whoever waits for it reads its time.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn remember(self: &Arc<Self>, driver: &Driver, problem: Option<String>, first: bool) -> Result<()> {
        let now = driver.clock.now();
        let written = self.change(driver, |state| {
            let (url, branch) = (self.remote.url.to_string(), self.branch_or(&state.branch));
            let is_news = first || state.problem != problem || (&state.url, &state.branch) != (&url, &branch);
            if is_news {
                (state.url, state.branch) = (url, branch);
                state.problem.clone_from(&problem);
                state.synced_at = Some(now);
            }
            is_news
        });
        let written = written.await;
        // A full disk takes this as little as what is wrong.
        let unwritten = written.as_ref().err().map(|failure| problem.unwrap_or_else(|| failure.one_line()));
        *self.unwritten.lock().unwrap_or_else(PoisonError::into_inner) = unwritten;
        written
    }

    /// What is wrong with it, given what is written down of it.
    pub fn problem(&self, state: &RepositoryState) -> Option<String> {
        let unwritten = self.unwritten.lock().unwrap_or_else(PoisonError::into_inner);
        unwritten.clone().or_else(|| state.problem.clone())
    }

    /// Remembers up to which commit was read what commits say of what waits for approval; nothing where that does not count.
    pub(super) async fn note_approvals_read(self: &Arc<Self>, driver: &Driver, head: Option<&CommitId>) -> Result<()> {
        self.change(driver, |state| {
            let is_news = state.approvals_read.as_ref() != head;
            state.approvals_read = head.cloned();
            is_news
        })
        .await
    }

    /// Changes what is remembered of the repository; `change` says whether it changed anything.
    async fn change(
        self: &Arc<Self>,
        driver: &Driver,
        change: impl Fn(&mut RepositoryState) -> bool + Sync,
    ) -> Result<()> {
        driver
            .decide(|transition| {
                let stored = transition.records.repositories.get(&self.name)?.cloned();
                let mut state = stored.unwrap_or_else(|| sync::unknown(self));
                if change(&mut state) {
                    transition.records.repositories.put(&self.name, Some(state))?;
                }
                Ok(())
            })
            .await
    }

    /// Does what may not answer, if that is on this machine for `patience` at most.
    ///
    /// # Errors
    /// Those of the work, or if it takes too long.
    pub(super) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        patience: Duration,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let watched = self.clone();
        let patience = if self.remote.url.local_path().is_some() { patience } else { Duration::MAX };
        self.aside.work(patience, move || work(&watched)).await
    }

    /// Reads the head, unless it is the one that was seen and the mirror has it.
    fn read(
        &self,
        (remote, head): (Remote, CommitId),
        seen: Option<&CommitId>,
        applied: Option<&CommitId>,
    ) -> Result<Option<Read>> {
        if Some(&head) == seen && self.mirror.is_at(&remote, &head)? {
            return Ok(None);
        }
        let commit = self.mirror.fetch(&remote, &head)?;
        if Some(&commit) == seen {
            return Ok(None); // the mirror alone had lost it
        }
        let read = match self.read_at(commit, applied) {
            Err(_) if self.mirror.is_damaged() => self.read_at(self.mirror.fetch(&remote, &head)?, applied),
            read => read,
        };
        read.map(Some)
    }

    /// Where the branch is that is watched, and its head. Where none is configured, that is the remote's main one: which
    /// that is, is asked as long as nobody knows it, and again when it is gone.
    fn look(&self) -> Result<(Remote, Option<CommitId>)> {
        let known = self.branch();
        if let Some(branch) = known.clone() {
            let remote = self.remote_at(branch);
            let head = source::remote_head(&remote)?;
            if head.is_some() || !self.remote.branch.is_empty() {
                return Ok((remote, head));
            }
        }
        let branch = match known {
            Some(known) => source::named_by_head(&self.remote)?.unwrap_or(known),
            None => source::default_branch(&self.remote)?,
        };
        self.note_default_branch(branch.clone());
        let remote = self.remote_at(branch);
        let head = source::remote_head(&remote)?;
        Ok((remote, head))
    }

    /// Another branch of the same repository.
    pub(super) fn remote_at(&self, branch: String) -> Remote {
        Remote { branch, ..self.remote.clone() }
    }

    fn note_default_branch(&self, branch: String) {
        *self.default_branch.lock().unwrap_or_else(PoisonError::into_inner) = Some(branch);
    }

    fn read_at(&self, commit: CommitId, applied: Option<&CommitId>) -> Result<Read> {
        self.read_from_mirror(commit, applied).map_err(|failure| self.mirror.explained(failure))
    }

    fn read_from_mirror(&self, commit: CommitId, applied: Option<&CommitId>) -> Result<Read> {
        let repository = self.mirror.open()?;
        let descends = match applied {
            Some(applied) if applied != &commit => repository.is_descendant(&commit, applied)?,
            _ => true,
        };
        let snapshot = self.snapshot_at(&repository, &commit);
        let (read, snapshot) = self.read_in(&repository, commit, descends, snapshot)?;
        if let Some(snapshot) = snapshot {
            let commit = read.head.commit.clone();
            *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = Some((commit, snapshot));
        }
        Ok(read)
    }

    /// What a `snapshot` says of a revision, also of one that a repository has in memory alone; with the snapshot, which makes
    /// the next one cheaper.
    pub(super) fn read_in(
        &self,
        repository: &source::Repository,
        commit: CommitId,
        descends: bool,
        snapshot: Result<manifest::Snapshot>,
    ) -> Result<(Read, Option<manifest::Snapshot>)> {
        let info = repository.commit_info(&commit)?;
        let (declared, problems, snapshot) = match snapshot {
            Ok(snapshot) => {
                let outcome = snapshot.project().clone();
                (outcome.project.ok_or_else(|| errors(&outcome.problems)), outcome.problems, Some(snapshot))
            }
            // Beyond what may be read of it: its commit says so.
            Err(failure) if failure.class() == Class::Stalled && !self.mirror.is_to_blame(&failure) => {
                (Err(vec![failure.one_line()]), Vec::new(), None)
            }
            Err(failure) => return Err(failure),
        };
        let (lifted, warnings) = (Vec::new(), warnings(&problems));
        let head = Head { commit, subject: info.subject, descends, declared, lifted, warnings };
        Ok((Read { head, problems }, snapshot))
    }

    pub(super) fn snapshot_at(&self, repository: &source::Repository, commit: &CommitId) -> Result<manifest::Snapshot> {
        let mirror = Some(&*self.mirror);
        let files = TreeFiles { tree: repository.tree(commit)?, limit: self.limits.manifest, mirror };
        let known = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some((known, snapshot)) if &known == commit => Ok(snapshot),
            // A mirror that was made anew does not have what the remote has no longer.
            Some((known, snapshot)) if repository.contains(&known)? => {
                let changed = repository.changed_paths(&known, commit)?;
                let changed: Vec<_> =
                    changed.into_iter().map(|change| (change.path, change.new.map(file_entry))).collect();
                snapshot.update(&changed, &files, &self.options)
            }
            _ => manifest::Snapshot::read(&files, &self.options),
        }
    }
}

#[async_trait]
impl Revisions for Arc<Watched> {
    fn watched(&self) -> decision::Watched {
        decision::Watched {
            name: self.name.clone(),
            url: self.remote.url.to_string(),
            branch: self.branch_or(""),
            rewrite_allowed: self.rewrite_allowed,
        }
    }

    async fn head(&self, seen: Option<&CommitId>, applied: Option<&CommitId>) -> Result<Option<Read>> {
        let (seen, applied) = (seen.cloned(), applied.cloned());
        let was_there = seen.is_some() || applied.is_some();
        let found = self.ask(QUESTION, move |watched| {
            let (remote, head) = watched.look()?;
            let head = head.ok_or_else(|| source::without_branch(&remote, was_there))?;
            Ok((remote, head))
        });
        let found = found.await?;
        self.ask(READING, move |watched| watched.read(found, seen.as_ref(), applied.as_ref())).await
    }

    async fn at(&self, commit: &CommitId) -> Result<Read> {
        let (watched, commit) = (self.clone(), commit.clone());
        let read = tokio::task::spawn_blocking(move || watched.read_at(commit, None)).await;
        read.or_transient(|| "reading the repository broke off".into())?
    }
}

#[async_trait]
impl ReadTags for Arc<Watched> {
    async fn tags(&self) -> Result<Tags> {
        self.ask(QUESTION, |watched| source::remote_tags(&watched.remote)).await
    }
}

/// A commit's tree as the files that `manifest` reads.
pub struct TreeFiles<'a> {
    /// The tree.
    pub tree: source::Tree<'a>,
    /// The most bytes of one file.
    pub limit: u64,
    /// Where it is, if that is a mirror: the file is not to blame for what is damaged there.
    pub mirror: Option<&'a Mirror>,
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

    fn read(&self, entry: &FileEntry) -> Result<Content> {
        let blob = self.tree.read_blob(ObjectId::parse(&entry.id)?, &entry.path, LARGEST);
        match blob.map_err(|failure| match self.mirror {
            Some(mirror) => mirror.explained(failure),
            None => failure,
        })? {
            Blob::Content(content) => Ok(Content::Whole(content)),
            Blob::TooLarge(size) => Ok(Content::TooLarge(size)),
        }
    }

    fn limit(&self) -> u64 {
        self.limit
    }

    fn tree_id(&self, path: &str) -> Result<Option<String>> {
        Ok(self.tree.folder(path)?.map(|folder| folder.id().to_string()))
    }

    fn kind(&self, path: &str) -> Result<Option<FileKind>> {
        Ok(self.tree.entry(path)?.map(|entry| file_entry(entry).kind))
    }

    fn link_target(&self, path: &str) -> Result<Option<String>> {
        let link = self.tree.entry(path)?.map(file_entry).filter(|entry| entry.kind == FileKind::Symlink);
        Ok(match link.map(|link| self.read(&link)).transpose()? {
            Some(Content::Whole(target)) => String::from_utf8(target).ok(),
            Some(Content::TooLarge(_)) | None => None,
        })
    }
}

/// What is wrong, each on a line.
fn errors(problems: &[Problem]) -> Vec<String> {
    problems.iter().filter(|problem| problem.is_error()).map(ToString::to_string).collect()
}

/// What may not be meant so, each on a line; how much more there is, if that is more than a person reads.
fn warnings(problems: &[Problem]) -> Vec<String> {
    let all = problems.iter().filter(|problem| !problem.is_error());
    let mut told: Vec<String> = all.clone().take(MAX_WARNINGS).map(ToString::to_string).collect();
    let more = all.count() - told.len();
    if more > 0 {
        told.push(format!("{more} more, which `launchway validate` shows"));
    }
    told
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
