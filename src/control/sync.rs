//! One sync of a repository: what its branch says now, and what follows from it.
//!
//! Whatever asked for it, a sync is the same: the remote's head is compared with the one that was seen, and
//! a new head is applied, or refused with a status that says why. Nothing is taken from who asked.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::records::Records;
use crate::engine::sync::{self, Allowance, Head, Trigger};
use crate::engine::transition::Transition;
use crate::engine::{holds, unreadable};
use crate::error::{Class, Context, Failure, Result};
use crate::executor::applied::{Stages, surroundings};
use crate::executor::drive::{Driver, TRIES, keeps_changing};
use crate::manifest::{self, FileEntry, FileKind, Files, Problem};
use crate::model::hold::Release;
use crate::model::ids::{CommitId, ProjectName, RepositoryName, RunId};
use crate::model::project::Project;
use crate::model::run::SequenceRun;
use crate::model::state::{RepositoryState, RevisionResult, Versioned};
use crate::source::{self, Blob, Entry, EntryKind, Limits, Mirror, ObjectId, Remote};

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
    /// The branch that the remote's `HEAD` named when it was asked, if it was.
    default_branch: Mutex<Option<String>>,
    /// What was read last, so that a new revision costs what it changes.
    snapshot: Mutex<Option<(CommitId, manifest::Snapshot)>>,
    /// Whether a sync was begun since the daemon started.
    synced: AtomicBool,
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

/// A new head, read.
struct Read {
    head: Head,
    /// Problems that do not keep the head from being read.
    problems: Vec<Problem>,
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
        Self {
            name,
            remote,
            mirror,
            limits,
            options,
            rewrite_allowed,
            default_branch: Mutex::default(),
            snapshot: Mutex::default(),
            synced: AtomicBool::new(false),
        }
    }

    /// Syncs once.
    ///
    /// # Errors
    /// If the remote cannot be reached or read, or the store fails; then nothing was changed.
    pub async fn sync(self: &Arc<Self>, driver: &Driver) -> Result<Synced> {
        let first = !self.synced.swap(true, Ordering::SeqCst);
        for _ in 0..TRIES {
            if let Some(found) = self.try_sync(driver, first).await? {
                return Ok(found);
            }
        }
        Err(keeps_changing())
    }

    /// Nothing, if what was decided on has moved meanwhile.
    async fn try_sync(self: &Arc<Self>, driver: &Driver, first: bool) -> Result<Option<Synced>> {
        let stored = self.state(driver).await?;
        let watched = self.clone();
        let mut seen = stored.value.seen.clone();
        if first && self.was_broken(driver, seen.as_ref()).await? {
            seen = None;
        }
        let applied = stored.value.applied.clone();
        let read = tokio::task::spawn_blocking(move || watched.read(seen.as_ref(), applied.as_ref()));
        let Some(read) = read.await.or_transient(|| "reading the repository broke off".into())?? else {
            if !stored.value.status_problems.is_empty() {
                driver.writers.retry(&self.name); // the token may have been replaced meanwhile
            }
            return Ok(Some(Synced::Unchanged));
        };
        let mut records = Records::default();
        records.repositories.read(self.name.clone(), Some(stored).filter(|stored| stored.version > 0));
        let (head, applied) = self.surroundings(driver, read, &Release::default(), &mut records).await?;
        let known = driver.store.revision(&self.name, head.commit.as_str()).await?;
        let watched = self.as_declared();
        let decide = |transition: &mut Transition<'_>| {
            sync::decide(transition, &watched, &head, &applied, known.as_ref()).map(|_| ())
        };
        let committed = driver.try_decide(&mut records, decide).await?;
        Ok(committed.map(|()| Synced::Revision(head.commit.clone())))
    }

    /// Whether a head could not be read: this daemon may be allowed to read more than the one before.
    async fn was_broken(&self, driver: &Driver, head: Option<&CommitId>) -> Result<bool> {
        let Some(head) = head else { return Ok(false) };
        let known = driver.store.revision(&self.name, head.as_str()).await?;
        Ok(known.is_some_and(|known| matches!(known.result, RevisionResult::Broken { .. })))
    }

    /// Whether a rule refuses the head that was seen: what it broke may be put right elsewhere.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn is_refused(&self, driver: &Driver) -> Result<bool> {
        let Some(head) = self.state(driver).await?.value.seen else { return Ok(false) };
        let known = driver.store.revision(&self.name, head.as_str()).await?;
        Ok(known.is_some_and(|known| matches!(known.result, RevisionResult::Refused { .. })))
    }

    /// What its configuration says of it.
    fn as_declared(&self) -> sync::Watched {
        sync::Watched {
            name: self.name.clone(),
            url: self.remote.url.to_string(),
            branch: self.branch_or(""),
            rewrite_allowed: self.rewrite_allowed,
        }
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

    /// What a head is decided on beside its files: what is applied, and whether a broken file was applied before.
    async fn surroundings(
        &self,
        driver: &Driver,
        read: Read,
        release: &Release,
        records: &mut Records,
    ) -> Result<(Head, Stages)> {
        let Read { mut head, problems } = read;
        let Ok(project) = head.declared.clone() else { return Ok((head, Stages::default())) };
        let unreadable = self.unreadable_but_applied(driver, &project, &problems).await?;
        if !unreadable.is_empty() {
            head.declared = Err(unreadable);
            return Ok((head, Stages::default()));
        }
        let seen = surroundings(&*driver.store, &project, release, records).await?;
        let head = Head { declared: Ok(seen.project), lifted: seen.lifted, ..head };
        Ok((head, seen.stages))
    }

    /// Starts the delivery sequence of a stage with what the applied revision declares; hands back the runs.
    ///
    /// # Errors
    /// If nothing was applied yet or it cannot be read, and as [`sync::trigger`].
    pub async fn trigger(self: &Arc<Self>, driver: &Driver, asked: Trigger<'_>) -> Result<Vec<RunId>> {
        for _ in 0..TRIES {
            let stored = self.state(driver).await?;
            let nothing = || Failure::stalled(format!("nothing of `{}` was applied yet", self.name));
            let commit = stored.value.applied.clone().ok_or_else(nothing)?;
            let read = self.read_aside(commit).await?;
            let mut records = Records::default();
            // Another revision that is applied meanwhile is met by deciding again.
            records.repositories.read(self.name.clone(), Some(stored).filter(|stored| stored.version > 0));
            let (head, applied) = self.surroundings(driver, read, &Release::default(), &mut records).await?;
            let watched = self.as_declared();
            let decide =
                |transition: &mut Transition<'_>| sync::trigger(transition, &watched, &head, applied.clone(), asked);
            if let Some(runs) = driver.try_decide(&mut records, decide).await? {
                return Ok(runs);
            }
        }
        Err(keeps_changing())
    }

    /// What a revision declares; nothing, if its files are broken.
    ///
    /// # Errors
    /// If the repository cannot be read.
    pub async fn project_at(self: &Arc<Self>, commit: &CommitId) -> Result<Option<Arc<Project>>> {
        Ok(self.read_aside(commit.clone()).await?.head.declared.ok())
    }

    /// Reads a revision that was fetched, while other tasks go on.
    async fn read_aside(self: &Arc<Self>, commit: CommitId) -> Result<Read> {
        let watched = self.clone();
        let read = tokio::task::spawn_blocking(move || watched.read_at(commit, None));
        read.await.or_transient(|| "reading the repository broke off".into())?
    }

    /// What would start in a project if something were released; nothing is changed. In place of it, why nobody can
    /// tell: the revision that is applied cannot be read.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn starts_after(
        self: &Arc<Self>,
        driver: &Driver,
        project: &ProjectName,
        release: &Release,
    ) -> Result<Result<Vec<SequenceRun>>> {
        let Some(commit) = self.state(driver).await?.value.applied else { return Ok(Ok(Vec::new())) };
        let read = match self.read_aside(commit).await {
            Ok(read) => read,
            Err(unreadable) => return Ok(Err(unreadable)),
        };
        let mut records = Records::default();
        let (head, applied) = self.surroundings(driver, read, release, &mut records).await?;
        let slots = driver.store.open_slot_keys(Some(project)).await?;
        let watched = self.as_declared();
        let decide = |transition: &mut Transition<'_>| {
            holds::release(transition, project, release, None)?;
            slots.iter().for_each(|slot| transition.examine(slot.clone()));
            sync::decide(transition, &watched, &head, &applied, None).map(drop)
        };
        let (_, transaction, _) = driver.work_out(&mut records, decide).await?;
        let is_held = |run: &SequenceRun| {
            let seen = applied.get(&run.service.stage);
            seen.is_some_and(|seen| seen.holds.iter().any(|hold| run.is_held_by(hold)))
        };
        Ok(Ok(transaction.writes.into_iter().filter_map(sync::starting).filter(|run| !is_held(run)).collect()))
    }

    /// Makes it known as its configuration says now, before anything is read of it: people ask about what they watch.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn register(&self, driver: &Driver) -> Result<()> {
        driver
            .decide(|transition| {
                let (stored, fresh) = (transition.records.repositories.get(&self.name)?.cloned(), self.unknown());
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
    pub async fn remember(&self, driver: &Driver, problem: Option<String>, first: bool) -> Result<()> {
        let now = driver.clock.now();
        self.change(driver, |state| {
            let (url, branch) = (self.remote.url.to_string(), self.branch_or(&state.branch));
            let is_news = first || state.problem != problem || (&state.url, &state.branch) != (&url, &branch);
            if is_news {
                (state.url, state.branch) = (url, branch);
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
            allow.give(state);
            true
        })
        .await
    }

    /// Changes what is remembered of the repository; `change` says whether it changed anything.
    async fn change(&self, driver: &Driver, change: impl Fn(&mut RepositoryState) -> bool) -> Result<()> {
        driver
            .decide(|transition| {
                let stored = transition.records.repositories.get(&self.name)?.cloned();
                let mut state = stored.unwrap_or_else(|| self.unknown());
                if change(&mut state) {
                    transition.records.repositories.put(&self.name, Some(state))?;
                }
                Ok(())
            })
            .await
    }

    async fn state(&self, driver: &Driver) -> Result<Versioned<RepositoryState>> {
        let stored = driver.store.repository(&self.name).await?;
        Ok(stored.unwrap_or_else(|| Versioned { version: 0, value: self.unknown() }))
    }

    fn unknown(&self) -> RepositoryState {
        RepositoryState::new(self.name.clone(), self.remote.url.to_string(), self.branch_or(""))
    }

    /// Reads the head, unless it is the one that was seen and the mirror has it.
    fn read(&self, seen: Option<&CommitId>, applied: Option<&CommitId>) -> Result<Option<Read>> {
        let remote = self.remote_with_branch()?;
        let Some(head) = source::remote_head(&remote)? else {
            self.note_default_branch(None); // there may be another one the next time
            return Err(source::without_branch(&remote, seen.or(applied).is_some()));
        };
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

    /// Nothing is guessed as long as the remote cannot be asked which branch is its main one.
    fn remote_with_branch(&self) -> Result<Remote> {
        let branch = match self.branch() {
            Some(known) => known,
            None => {
                let asked = source::default_branch(&self.remote)?;
                self.note_default_branch(Some(asked.clone()));
                asked
            }
        };
        Ok(Remote { branch, ..self.remote.clone() })
    }

    fn note_default_branch(&self, branch: Option<String>) {
        *self.default_branch.lock().unwrap_or_else(PoisonError::into_inner) = branch;
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
        let info = repository.commit_info(&commit)?;
        let (declared, problems) = match self.snapshot_at(&repository, &commit) {
            Ok(snapshot) => {
                let outcome = snapshot.project().clone();
                *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = Some((commit.clone(), snapshot));
                let told = || outcome.problems.iter().map(ToString::to_string).collect();
                (outcome.project.ok_or_else(told), outcome.problems)
            }
            // Beyond what may be read of it: its commit says so.
            Err(failure) if failure.class() == Class::Stalled && !self.mirror.is_to_blame(&failure) => {
                (Err(vec![failure.one_line()]), Vec::new())
            }
            Err(failure) => return Err(failure),
        };
        let head = Head { commit, subject: info.subject, descends, declared, lifted: Vec::new() };
        Ok(Read { head, problems })
    }

    fn snapshot_at(&self, repository: &source::Repository, commit: &CommitId) -> Result<manifest::Snapshot> {
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

    /// A file that cannot be read is only a warning, unless something of it is applied: what it declared must not be
    /// taken for deleted.
    async fn unreadable_but_applied(
        &self,
        driver: &Driver,
        project: &Project,
        problems: &[Problem],
    ) -> Result<Vec<String>> {
        let suspects = unreadable::suspects(project, problems);
        if suspects.is_empty() {
            return Ok(Vec::new());
        }
        let configs = driver.store.configs(Some(&project.name), None).await?.whole()?;
        let objects = driver.store.objects(Some(&project.name), None, None).await?.whole()?;
        let of_configs = configs.into_iter().map(|config| config.value.object.location.file.clone());
        let of_objects = objects.into_iter().map(|object| object.value.object.location.file.clone());
        Ok(unreadable::breaking(&suspects, &of_configs.chain(of_objects).collect()))
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

    fn read(&self, entry: &FileEntry) -> Result<Vec<u8>> {
        let blob = self.tree.read_blob(ObjectId::parse(&entry.id)?, &entry.path, self.limit);
        match blob.map_err(|failure| match self.mirror {
            Some(mirror) => mirror.explained(failure),
            None => failure,
        })? {
            Blob::Content(content) => Ok(content),
            Blob::TooLarge(size) => Err(manifest::too_large(size, self.limit)),
        }
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
