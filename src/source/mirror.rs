//! Our own copy of a watched branch: a bare repository with its full history.
//!
//! Full, because a shallow one cannot say whether a push only added commits. The branch and launchway's notes are all
//! that is taken over.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use git2::{AutotagOption, FetchOptions, Oid, RemoteCallbacks};

use super::git::{self, commit_id, existing, failed, oid};
use super::history::Repository;
use super::notes::NOTES_REF;
use super::transport::{Deadline, smart::Lent};
use super::{Limits, Remote, local, packs};
use crate::error::{Failure, Result};
use crate::model::ids::CommitId;

/// A repository whose packs are larger than this is not fetched.
const MAX_FETCH_BYTES: usize = 32 << 30;

/// A mirror. Clones are the same mirror; have one per path, as its packs may only be replaced while nobody reads.
#[derive(Clone, Debug)]
pub struct Mirror {
    path: PathBuf,
    limits: Limits,
    readers: Arc<Mutex<Arc<()>>>,
}

impl Mirror {
    /// Opens the mirror at `path`, or makes an empty one.
    pub fn open_or_create(path: &Path, limits: Limits) -> Result<Self> {
        git::open_or_create_bare(path)?;
        Ok(Self { path: path.to_owned(), limits, readers: Arc::default() })
    }

    /// A handle to read from. It keeps packs from being consolidated: hold it for one task, not for ever.
    pub fn open(&self) -> Result<Repository> {
        let lease = Arc::clone(&self.readers.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Repository::of_mirror(git::open_or_create_bare(&self.path)?, self.limits, lease))
    }

    /// Brings the remote's branch and its notes here and gives the branch's head, which may be newer than `expected`.
    /// Nothing is transferred if `expected` is here already. Fails as [`super::remote_head`] does.
    pub fn fetch(&self, remote: &Remote, expected: &CommitId) -> Result<CommitId> {
        let head = self.fetch_head(&self.open()?.git, remote, oid(expected.as_str())?)?;
        self.consolidate()?;
        Ok(commit_id(head))
    }

    fn fetch_head(&self, mirror: &git2::Repository, remote: &Remote, expected: Oid) -> Result<Oid> {
        let branch = remote.branch_ref()?;
        let describe = || format!("cannot record the head of `{}`", remote.branch);
        let head = match remote.url.local_path() {
            _ if is_reached(mirror, expected).map_err(failed(describe))? => expected,
            Some(path) => fetch_local(mirror, path, &branch)?,
            None => fetch_remote(mirror, remote, &branch)?,
        };
        mirror.reference(&branch, head, true, "fetch").map_err(failed(describe))?;
        Ok(head)
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

/// Whether a reference here reaches a commit. Only then is it here with all that it needs: a reference is written
/// after everything else, and objects alone may be left from something that was cut short.
fn is_reached(mirror: &git2::Repository, commit: Oid) -> Result<bool, git2::Error> {
    if existing(mirror.find_commit(commit))?.is_none() {
        return Ok(false);
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

fn fetch_local(mirror: &git2::Repository, path: &Path, branch: &str) -> Result<Oid> {
    let source = git::open_local(path)?;
    let describe = || format!("cannot read the references of `{}`", path.display());
    let head = existing(source.refname_to_id(branch)).map_err(failed(describe))?;
    let head = head.ok_or_else(|| vanished(branch, &path.display().to_string()))?;
    local::import(&source, mirror, head)?;
    let notes = existing(source.refname_to_id(NOTES_REF)).map_err(failed(describe))?;
    if let Some(notes) = notes {
        local::import(&source, mirror, notes)?;
    }
    record_notes(mirror, notes)?;
    Ok(head)
}

/// Keeps what the remote's notes are now. The mirror's own reference is never anything else.
pub(super) fn record_notes(mirror: &git2::Repository, notes: Option<Oid>) -> Result<()> {
    let describe = || "cannot record the remote's notes".to_owned();
    match notes {
        Some(id) => mirror.reference(NOTES_REF, id, true, "fetch").map(drop).map_err(failed(describe)),
        None => match existing(mirror.find_reference(NOTES_REF)).map_err(failed(describe))? {
            Some(mut reference) => reference.delete().map_err(failed(describe)),
            None => Ok(()),
        },
    }
}

fn vanished(branch: &str, repository: &str) -> Failure {
    let branch = branch.trim_start_matches("refs/heads/");
    Failure::waiting(format!("`{repository}` has no branch `{branch}` any more"))
}

fn fetch_remote(mirror: &git2::Repository, remote: &Remote, branch: &str) -> Result<Oid> {
    let incoming = "refs/launchway/incoming";
    let refspecs = [format!("+{branch}:{incoming}"), format!("+{NOTES_REF}:{NOTES_REF}")];
    let heads = fetch_refs(mirror, remote, &refspecs)?;
    let find = |name: &str| heads.iter().find(|(found, _)| found == name).map(|(_, id)| *id);
    if find(NOTES_REF).is_none() {
        record_notes(mirror, None)?;
    }
    find(branch).ok_or_else(|| vanished(branch, &remote.url.to_string()))
}

/// Fetches references over a network and gives all that the remote has.
pub(super) fn fetch_refs(
    mirror: &git2::Repository,
    remote: &Remote,
    refspecs: &[String],
) -> Result<Vec<(String, Oid)>> {
    let deadline = Deadline::after(remote.time.transfer, remote.time.idle);
    let lent = Lent::new(remote, deadline);
    let explain = |error| lent.explain("fetching from", error);
    let mut connection = mirror.remote_anonymous(&lent.url()).map_err(explain)?;
    let mut callbacks = RemoteCallbacks::new();
    callbacks.transfer_progress(|progress| !deadline.has_passed() && progress.received_bytes() < MAX_FETCH_BYTES);
    let mut options = FetchOptions::new();
    options.remote_callbacks(callbacks).download_tags(AutotagOption::None).update_fetchhead(false);
    connection.fetch(refspecs, Some(&mut options), None).map_err(explain)?;
    let heads = connection.list().map_err(explain)?;
    Ok(heads.iter().map(|head| (head.name().to_owned(), head.oid())).collect())
}
