//! Our own copy of a watched branch: a bare repository with its full history.
//!
//! Full, because a shallow one cannot say whether a push only added commits. The branch is all that a fetch takes over:
//! whoever writes notes takes over those that are there, so that no push waits for them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use git2::{AutotagOption, ErrorCode, FetchOptions, Oid, RemoteCallbacks};

use super::git::{self, commit_id, existing, failed, oid};
use super::history::Repository;
use super::notes::NOTES_REF;
use super::transport::{Deadline, smart::Lent};
use super::{Limits, Remote, damage, local, packs};
use crate::error::{Class, Context as _, Failure, Result};
use crate::model::ids::CommitId;

/// A mirror. Clones are the same mirror; have one per path, as its packs may only be replaced while nobody reads.
#[derive(Clone, Debug)]
pub struct Mirror {
    path: PathBuf,
    limits: Limits,
    readers: Arc<Mutex<Arc<()>>>,
    /// Whoever moves a reference: a second one at the same time would be refused by Git's lock on it.
    writer: Arc<Mutex<()>>,
    /// Whether damage was found that the next fetch has to put right.
    damaged: Arc<AtomicBool>,
}

impl Mirror {
    /// Opens the mirror at `path`, or makes an empty one. Looks through its loose objects, so do it once.
    pub fn open_or_create(path: &Path, limits: Limits) -> Result<Self> {
        git::open_or_create_bare(path)?;
        let object = damage::cut_short(path);
        if let Some(object) = &object {
            tracing::warn!(object, "the mirror is damaged and will be made anew");
        }
        let (path, damaged) = (path.to_owned(), Arc::new(object.is_some().into()));
        Ok(Self { path, limits, readers: Arc::default(), writer: Arc::default(), damaged })
    }

    /// A handle to read from. It keeps packs from being consolidated: hold it for one task, not for ever.
    pub fn open(&self) -> Result<Repository> {
        let lease = self.lease();
        Ok(Repository::of_mirror(git::open_or_create_bare(&self.path)?, self.limits, lease))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn lease(&self) -> Arc<()> {
        Arc::clone(&self.readers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the remote's branch is known here to be at `head`, and nothing here is known to be damaged.
    pub fn is_at(&self, remote: &Remote, head: &CommitId) -> Result<bool> {
        let (branch, head) = (remote.branch_ref()?, oid(head.as_str())?);
        Ok(!self.is_damaged() && self.open().is_ok_and(|mirror| points_at(&mirror.git, &branch, head)))
    }

    /// Brings the remote's branch here and gives the branch's head, which may be newer than `expected`.
    /// Nothing is transferred if `expected` is here already. A damaged mirror is made anew, once. Fails as
    /// [`super::remote_head`] does.
    pub fn fetch(&self, remote: &Remote, expected: &CommitId) -> Result<CommitId> {
        let is_new = self.make_anew_if_damaged()?;
        let fetch = || self.fetch_head(&self.open()?.git, remote, oid(expected.as_str())?);
        let head = match fetch() {
            // Where a new one fails too, the remote is to blame, and the next sync tries again.
            Err(failure) if !is_new && self.is_to_blame(&failure) => {
                self.make_anew_if_damaged()?;
                fetch()
            }
            done => done,
        }?;
        self.consolidate()?;
        Ok(commit_id(head))
    }

    /// Whether damage was found that the next fetch puts right.
    pub fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::SeqCst)
    }

    /// Whether a failure to read or write here comes from damage, which the next fetch then puts right. What it costs
    /// depends on what is here, so ask after a failure only.
    pub fn is_to_blame(&self, failure: &Failure) -> bool {
        if self.is_damaged() {
            return true;
        }
        let _lease = self.lease(); // packs that are replaced meanwhile would look like damage
        let Some(damage) = damage::find(&self.path, self.limits.launchable) else { return false };
        let (mirror, problem) = (self.path.display(), failure.one_line());
        tracing::warn!(%mirror, damage, problem, "the mirror is damaged and will be made anew");
        self.damaged.store(true, Ordering::SeqCst);
        true
    }

    /// The same for a caller that leaves it at that: what needed a person passes by itself if damage caused it.
    pub fn explained(&self, failure: Failure) -> Failure {
        match self.is_to_blame(&failure) && failure.class() == Class::Stalled {
            true => Failure::transient("the mirror is damaged; the next sync makes it anew")
                .hint("if that does not help, what it was made from is damaged: ask `git fsck` there")
                .because(failure),
            false => failure,
        }
    }

    /// Replaces the mirror by an empty one if damage was found; says whether it did.
    fn make_anew_if_damaged(&self) -> Result<bool> {
        if !self.is_damaged() {
            return Ok(false);
        }
        let readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::strong_count(&readers) > 1 {
            return Err(Failure::transient("the mirror is damaged, and somebody still reads from it"));
        }
        // Nobody must find half of it, so it goes away whole before its files do.
        let aside = self.path.with_extension("damaged");
        let describe = || format!("cannot remove the damaged mirror `{}`", self.path.display());
        remove_folder(&aside).or_transient(describe)?;
        absent_is_fine(fs::rename(&self.path, &aside)).or_transient(describe)?;
        git::open_or_create_bare(&self.path)?;
        self.damaged.store(false, Ordering::SeqCst);
        remove_folder(&aside).or_transient(describe)?;
        Ok(true)
    }

    fn fetch_head(&self, mirror: &git2::Repository, remote: &Remote, expected: Oid) -> Result<Oid> {
        let branch = remote.branch_ref()?;
        let describe = || format!("cannot record the head of `{}`", remote.branch);
        if is_reached(mirror, expected).map_err(failed(describe))? {
            self.point(mirror, &branch, Some(expected)).map_err(failed(describe))?;
            return Ok(expected);
        }
        let head = match remote.url.local_path() {
            Some(path) => fetch_local(mirror, path, &branch, self.most(None))?,
            None => self.download(mirror, remote, &branch, None)?,
        };
        let head = head.ok_or_else(|| vanished(remote))?;
        self.point(mirror, &branch, Some(head)).map_err(failed(describe))?;
        Ok(head)
    }

    /// Keeps what the remote's notes are, as far as was heard: others may write there meanwhile.
    pub(super) fn record_notes(&self, mirror: &git2::Repository, notes: Option<Oid>) -> Result<()> {
        self.point(mirror, NOTES_REF, notes).map_err(failed(|| "cannot record the remote's notes".to_owned()))
    }

    /// Fetches what a reference leads to over a network, and gives its target; nothing, if the remote does not have it. None
    /// is moved here.
    pub(super) fn download(
        &self,
        mirror: &git2::Repository,
        remote: &Remote,
        name: &str,
        most: Option<u64>,
    ) -> Result<Option<Oid>> {
        let deadline = Deadline::after(remote.time.transfer, remote.time.idle);
        let lent = Lent::new(remote, deadline, self.most(most));
        let explain = |error| lent.explain(error);
        let mut connection = mirror.remote_anonymous(&lent.url()).map_err(explain)?;
        let mut callbacks = RemoteCallbacks::new();
        callbacks.transfer_progress(|_| !deadline.has_passed());
        let mut options = FetchOptions::new();
        options.remote_callbacks(callbacks).download_tags(AutotagOption::None);
        connection.download(&[name], Some(&mut options)).map_err(explain)?;
        let heads = connection.list().map_err(explain)?;
        Ok(heads.iter().find(|head| head.name() == name).map(git2::RemoteHead::oid))
    }

    /// How many bytes one fetch may bring, if that is bounded further.
    pub(super) fn most(&self, most: Option<u64>) -> u64 {
        most.map_or(self.limits.fetch, |most| most.min(self.limits.fetch))
    }

    /// Has a reference of the mirror point at a commit, or removes it.
    pub(super) fn point(&self, mirror: &git2::Repository, name: &str, at: Option<Oid>) -> Result<(), git2::Error> {
        let _one = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        match point(mirror, name, at) {
            // Nobody else writes here: a daemon was killed while it held Git's lock, which nobody would ever remove.
            Err(error) if error.code() == ErrorCode::Locked => {
                drop(fs::remove_file(mirror.path().join(format!("{name}.lock")))); // then it stays refused
                point(mirror, name, at)
            }
            done => done,
        }
    }

    /// Consolidates packs unless someone reads; then the next fetch or write does.
    pub(super) fn consolidate(&self) -> Result<()> {
        let readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::strong_count(&readers) > 1 {
            return Ok(());
        }
        packs::consolidate(&git::open_or_create_bare(&self.path)?)
    }
}

fn remove_folder(folder: &Path) -> io::Result<()> {
    absent_is_fine(fs::remove_dir_all(folder))
}

fn absent_is_fine(done: io::Result<()>) -> io::Result<()> {
    done.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

fn points_at(mirror: &git2::Repository, branch: &str, head: Oid) -> bool {
    mirror.refname_to_id(branch).is_ok_and(|id| id == head) && mirror.find_commit(head).is_ok()
}

fn point(mirror: &git2::Repository, name: &str, at: Option<Oid>) -> Result<(), git2::Error> {
    match at {
        Some(id) => mirror.reference(name, id, true, "launchway").map(drop),
        None => existing(mirror.find_reference(name))?.map_or(Ok(()), |mut reference| reference.delete()),
    }
}

/// Whether a reference here reaches a commit. Only then is it here with all that it needs: a reference is written
/// after everything else, and objects alone may be left from something that was cut short.
fn is_reached(mirror: &git2::Repository, commit: Oid) -> Result<bool, git2::Error> {
    if mirror.find_commit(commit).is_err() {
        return Ok(false); // nor is one that cannot be read
    }
    for reference in mirror.references()? {
        let tip = reference?.target().filter(|tip| mirror.find_commit(*tip).is_ok());
        if let Some(tip) = tip
            && (tip == commit || mirror.graph_descendant_of(tip, commit)?)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn fetch_local(mirror: &git2::Repository, path: &Path, branch: &str, most: u64) -> Result<Option<Oid>> {
    let source = git::open_local(path)?;
    let describe = || format!("cannot read the references of `{}`", path.display());
    let head = existing(source.refname_to_id(branch)).map_err(failed(describe))?;
    head.map(|head| local::import(&source, mirror, (branch, head), most).map(|()| head)).transpose()
}

/// It was there when its head was asked for.
fn vanished(remote: &Remote) -> Failure {
    Failure::waiting(format!("branch `{}` of `{}` was deleted", remote.branch, remote.url))
        .hint("push it again, or watch another branch; what runs keeps running")
}
