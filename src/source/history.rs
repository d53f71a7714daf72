//! Reading commits.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use git2::Oid;

use super::changes::{PathChange, changed_paths};
use super::git::{self, commit_id, existing, failed, oid};
use super::notes;
use super::tree::Tree;
use super::{Limits, ObjectId};
use crate::error::{Failure, Result};
use crate::model::ids::CommitId;
use crate::model::time::Timestamp;

/// Subjects are for one line of a table.
const MAX_SUBJECT_CHARS: usize = 200;

/// An open repository, to read from. Open one per task: opening costs 0.05 ms.
pub struct Repository {
    pub(super) git: git2::Repository,
    pub(super) limits: Limits,
    /// Keeps packs from being replaced while this is open.
    _lease: Option<Arc<()>>,
}

/// What a commit says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitInfo {
    /// The commit.
    pub id: CommitId,
    /// The first line of its message, cut to 200 characters.
    pub subject: String,
    /// The author's name.
    pub author: String,
    /// When it was committed.
    pub time: Timestamp,
    /// Its parents, first parent first.
    pub parents: Vec<CommitId>,
}

impl fmt::Debug for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Repository").field(&self.git.path()).finish()
    }
}

impl Repository {
    pub(super) fn of_mirror(git: git2::Repository, limits: Limits, lease: Arc<()>) -> Self {
        Self { git, limits, _lease: Some(lease) }
    }

    /// Opens a repository on this machine as it is, without a mirror: bare, or the one of a work tree.
    pub fn open_local(path: &Path, limits: Limits) -> Result<Self> {
        Ok(Self { git: git::open_local(path)?, limits, _lease: None })
    }

    /// Opens the repository that `path` is in, as [`Self::open_local`] does at its root.
    pub fn around(path: &Path, limits: Limits) -> Result<Self> {
        Ok(Self { git: git::discover(path)?, limits, _lease: None })
    }

    /// The root of its work tree, or, of a bare one, itself.
    pub fn root(&self) -> &Path {
        self.git.workdir().unwrap_or(self.git.path())
    }

    /// Whether it has no work tree, as those that are pushed to.
    pub fn is_bare(&self) -> bool {
        self.git.is_bare()
    }

    /// The folder that holds refs and hooks; of a linked work tree, that of its main repository.
    pub fn git_dir(&self) -> PathBuf {
        self.git.commondir().to_owned()
    }

    /// Where the remote named `origin` is, as the repository has it.
    pub fn origin(&self) -> Option<String> {
        self.git.find_remote("origin").ok()?.url().ok().map(str::to_owned)
    }

    /// Finds a commit by any of Git's names for it: `HEAD~1`, a branch, a tag, a short id.
    pub fn resolve(&self, revision: &str) -> Result<CommitId> {
        let unknown = || format!("`{revision}` names no commit here");
        let object = self.git.revparse_single(revision).map_err(failed(unknown))?;
        let commit = object.peel_to_commit().map_err(failed(unknown))?;
        Ok(commit_id(commit.id()))
    }

    /// Whether a commit is here.
    pub fn contains(&self, commit: &CommitId) -> Result<bool> {
        Ok(existing(self.git.find_commit(oid(commit.as_str())?)).map_err(failed(|| unreadable(commit)))?.is_some())
    }

    /// Whether `old` is `new` or one of its ancestors: whether a push from `old` to `new` only added commits. A commit
    /// that is not here is no ancestor, as long as all ancestors are.
    pub fn is_descendant(&self, new: &CommitId, old: &CommitId) -> Result<bool> {
        if new == old {
            return Ok(true);
        }
        let describe = || format!("cannot compare `{}` with `{}`", new.short(), old.short());
        if self.contains(old)? {
            return self.git.graph_descendant_of(oid(new.as_str())?, oid(old.as_str())?).map_err(failed(describe));
        }
        self.read_history(oid(new.as_str())?).map_err(failed(describe))?;
        Ok(false)
    }

    fn read_history(&self, commit: Oid) -> Result<(), git2::Error> {
        let mut walk = self.git.revwalk()?;
        walk.push(commit)?;
        walk.try_for_each(|commit| commit.map(drop))
    }

    /// What a commit says about itself.
    pub fn commit_info(&self, commit: &CommitId) -> Result<CommitInfo> {
        Ok(describe(&self.commit(commit)?))
    }

    /// All of a commit's message.
    pub fn message(&self, commit: &CommitId) -> Result<String> {
        Ok(String::from_utf8_lossy(self.commit(commit)?.message_bytes()).into_owned())
    }

    /// At most `limit` commits that lead from `from` (or the beginning) to `to`, newest first.
    pub fn log(&self, from: Option<&CommitId>, to: &CommitId, limit: usize) -> Result<Vec<CommitInfo>> {
        let describe_walk = || format!("cannot read the history of `{}`", to.short());
        let mut walk = self.git.revwalk().map_err(failed(describe_walk))?;
        walk.push(oid(to.as_str())?).map_err(failed(describe_walk))?;
        if let Some(from) = from {
            walk.hide(oid(from.as_str())?).map_err(failed(describe_walk))?;
        }
        let commit = |id: std::result::Result<Oid, git2::Error>| {
            id.and_then(|id| self.git.find_commit(id)).map(|commit| describe(&commit)).map_err(failed(describe_walk))
        };
        walk.take(limit).map(commit).collect()
    }

    /// The tree of a commit.
    pub fn tree(&self, commit: &CommitId) -> Result<Tree<'_>> {
        let tree = self.commit(commit)?.tree_id();
        Ok(Tree::new(self, ObjectId::from(tree)))
    }

    /// A tree by its own id.
    pub fn tree_by_id(&self, id: ObjectId) -> Tree<'_> {
        Tree::new(self, id)
    }

    /// The files that differ between two commits, sorted by path. Costs what the change costs, not what the trees do.
    pub fn changed_paths(&self, old: &CommitId, new: &CommitId) -> Result<Vec<PathChange>> {
        changed_paths(&self.tree(old)?, &self.tree(new)?)
    }

    /// The lines of launchway's note on a commit; empty without one.
    pub fn read_notes(&self, commit: &CommitId) -> Result<Vec<String>> {
        let text = notes::read(&self.git, oid(commit.as_str())?)?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// At most `limit` files of a work tree that differ from its head, untracked ones included; none if it is bare.
    pub fn uncommitted(&self, limit: usize) -> Result<Vec<String>> {
        if self.git.is_bare() {
            return Ok(Vec::new());
        }
        let mut options = git2::StatusOptions::new();
        options.include_untracked(true).include_ignored(false).exclude_submodules(true).no_refresh(true);
        let statuses = self.git.statuses(Some(&mut options));
        let statuses = statuses.map_err(failed(|| "cannot compare the work tree with its head".to_owned()))?;
        let path = |status: git2::StatusEntry<'_>| String::from_utf8_lossy(status.path_bytes()).into_owned();
        Ok(statuses.iter().take(limit).map(path).collect())
    }

    fn commit(&self, commit: &CommitId) -> Result<git2::Commit<'_>> {
        let found = existing(self.git.find_commit(oid(commit.as_str())?)).map_err(failed(|| unreadable(commit)))?;
        found.ok_or_else(|| Failure::stalled(format!("commit `{}` is not in this repository", commit.short())))
    }
}

fn unreadable(commit: &CommitId) -> String {
    format!("cannot read commit `{}`", commit.short())
}

fn describe(commit: &git2::Commit<'_>) -> CommitInfo {
    let message = String::from_utf8_lossy(commit.message_bytes());
    let author = commit.author();
    CommitInfo {
        id: commit_id(commit.id()),
        subject: one_line(message.trim_start().lines().next().unwrap_or_default()),
        author: one_line(&String::from_utf8_lossy(author.name_bytes())),
        time: Timestamp(commit.time().seconds().saturating_mul(1000)),
        parents: commit.parent_ids().map(commit_id).collect(),
    }
}

/// Text of strangers, safe to print: no control characters, bounded.
fn one_line(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(MAX_SUBJECT_CHARS).collect()
}

/// The commits of the history of `head` that nothing known leads to, newest first. What is known and not here, such as a commit that was
/// rewritten away, leads to nothing.
pub(super) fn commits_beyond(
    repository: &git2::Repository,
    head: Oid,
    known: impl IntoIterator<Item = Oid>,
) -> Result<Vec<Oid>, git2::Error> {
    let mut walk = repository.revwalk()?;
    walk.push(head)?;
    for known in known.into_iter().filter(|known| repository.find_commit(*known).is_ok()) {
        walk.hide(known)?;
    }
    walk.collect()
}
