//! A commit without a work tree, and a branch of our own that it is pushed to.

use git2::{FileMode, Oid};

use super::git::{self, commit_id, existing, failed, oid};
use super::history::Repository;
use super::mirror::Mirror;
use super::notes::Signature;
use super::push::{Pushed, Update, means_moved, push};
use super::{ObjectId, Remote, remote_head};
use crate::error::{Failure, Result};
use crate::model::ids::CommitId;

/// What becomes of one path of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// A folder becomes what has this id; the root, for the empty path.
    Folder {
        /// Its path.
        path: String,
        /// What it becomes.
        id: ObjectId,
    },
    /// A file is written. It may be run if that was so before.
    File {
        /// Its path.
        path: String,
        /// What is in it.
        content: Vec<u8>,
    },
}

/// What became of a push to a branch of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchPush {
    /// The branch is at the commit.
    Done,
    /// Somebody else has pushed to it: it is left as it is.
    Taken,
}

impl Repository {
    /// The tree of a commit with some paths changed. Folders come first.
    ///
    /// # Errors
    /// If the commit cannot be read, or the tree cannot be written.
    pub fn edited(&self, commit: &CommitId, edits: &[Edit]) -> Result<ObjectId> {
        let describe = || "cannot write the changed files".to_owned();
        let mut tree = self.tree(commit)?.id().oid()?;
        for folders in [true, false] {
            let mut update = git2::build::TreeUpdateBuilder::new();
            let mut any = false;
            for edit in edits.iter().filter(|edit| matches!(edit, Edit::Folder { .. }) == folders) {
                match edit {
                    Edit::Folder { path, id } if path.is_empty() => tree = id.oid()?,
                    Edit::Folder { path, id } => {
                        update.upsert(path.as_str(), id.oid()?, FileMode::Tree);
                        any = true;
                    }
                    Edit::File { path, content } => {
                        let blob = self.git.blob(content).map_err(failed(describe))?;
                        update.upsert(path.as_str(), blob, self.mode(tree, path)?);
                        any = true;
                    }
                }
            }
            if any {
                let before = self.git.find_tree(tree).map_err(failed(describe))?;
                tree = update.create_updated(&self.git, &before).map_err(failed(describe))?;
            }
        }
        Ok(ObjectId::from(tree))
    }

    /// How some files differ between two commits, in Git's words, cut to `most` bytes. Little is shown around what differs: it
    /// may belong to something that nobody asked about.
    ///
    /// # Errors
    /// If one of the commits cannot be read.
    pub fn patch(&self, old: &CommitId, new: &CommitId, files: &[&str], most: usize) -> Result<String> {
        let describe = || format!("cannot compare `{}` with `{}`", old.short(), new.short());
        let tree = |commit: &CommitId| self.git.find_tree(self.tree(commit)?.id().oid()?).map_err(failed(describe));
        let mut options = git2::DiffOptions::new();
        options.context_lines(1).disable_pathspec_match(true);
        for file in files {
            options.pathspec(*file);
        }
        if files.is_empty() {
            return Ok(String::new());
        }
        let (old, new) = (tree(old)?, tree(new)?);
        let diff = self.git.diff_tree_to_tree(Some(&old), Some(&new), Some(&mut options)).map_err(failed(describe))?;
        let mut patch = String::new();
        let print = |_: git2::DiffDelta<'_>, _: Option<git2::DiffHunk<'_>>, line: git2::DiffLine<'_>| {
            if matches!(line.origin(), '+' | '-' | ' ') {
                patch.push(line.origin());
            }
            patch.push_str(&String::from_utf8_lossy(line.content()));
            patch.len() <= most
        };
        match diff.print(git2::DiffFormat::Patch, print) {
            Err(error) if error.code() != git2::ErrorCode::User => Err(failed(describe)(error)),
            Ok(()) | Err(_) => Ok(patch),
        }
    }

    fn mode(&self, tree: Oid, path: &str) -> Result<FileMode> {
        let describe = || format!("cannot read what is at `{path}`");
        let tree = self.git.find_tree(tree).map_err(failed(describe))?;
        let entry = existing(tree.get_path(path.as_ref())).map_err(failed(describe))?;
        let may_run = entry.is_some_and(|entry| entry.filemode() == i32::from(FileMode::BlobExecutable));
        Ok(if may_run { FileMode::BlobExecutable } else { FileMode::Blob })
    }

    /// Makes a commit of a tree on top of another commit; the same one for the same values. No reference moves.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn commit_tree(
        &self,
        tree: ObjectId,
        parent: &CommitId,
        message: &str,
        author: &Signature,
    ) -> Result<CommitId> {
        let describe = || "cannot write the commit".to_owned();
        let parent = self.git.find_commit(oid(parent.as_str())?).map_err(failed(describe))?;
        let tree = self.git.find_tree(tree.oid()?).map_err(failed(describe))?;
        let at = git2::Time::new(author.at.0.div_euclid(1000), 0);
        let signature = git2::Signature::new(&author.name, &author.email, &at).map_err(failed(describe))?;
        let made = self.git.commit(None, &signature, &signature, message, &tree, &[&parent]);
        made.map(commit_id).map_err(failed(describe))
    }
}

impl Mirror {
    /// Has a branch of the remote be at a commit that is here. Where it is at another one, that has to be ours: it is
    /// `known`, or was made in the name of `author`.
    ///
    /// # Errors
    /// `Transient` if the remote cannot be reached or somebody is faster, `Stalled` if it refuses to be written to.
    pub fn push_branch(
        &self,
        remote: &Remote,
        commit: &CommitId,
        known: Option<&CommitId>,
        author: &Signature,
    ) -> Result<BranchPush> {
        let branch = remote.branch_ref()?;
        let there = remote_head(remote)?;
        if there.as_ref() == Some(commit) {
            return Ok(BranchPush::Done);
        }
        let opened = self.open()?;
        if let Some(there) = there.as_ref().filter(|there| Some(*there) != known)
            && !self.is_ours(&opened, remote, there, author)?
        {
            return Ok(BranchPush::Taken);
        }
        let old = there.as_ref().map(|there| oid(there.as_str())).transpose()?;
        let moved =
            || Failure::transient(format!("branch `{}` of `{}` was moved meanwhile", remote.branch, remote.url));
        match push(&opened.git, remote, Update { reference: &branch, old, new: Some(oid(commit.as_str())?) })? {
            Pushed::Taken => Ok(BranchPush::Done),
            Pushed::Moved => Err(moved()),
            // Where it is as it was, the server has a rule, such as against other histories.
            Pushed::Refused(reason) if means_moved(&reason) && remote_head(remote)? != there => {
                Err(moved().because(reason))
            }
            Pushed::Refused(reason) => Err(not_taken(remote, reason)),
        }
    }

    /// Deletes a branch of the remote that is at a commit which we have pushed there; at any other, it is left as it is.
    ///
    /// # Errors
    /// As [`Mirror::push_branch`].
    pub fn delete_branch(&self, remote: &Remote, commit: &CommitId) -> Result<BranchPush> {
        match self.branch_is_at(remote, commit)? {
            Some(true) => {}
            Some(false) => return Ok(BranchPush::Taken),
            None => return Ok(BranchPush::Done),
        }
        let opened = self.open()?;
        let (branch, old) = (remote.branch_ref()?, Some(oid(commit.as_str())?));
        match push(&opened.git, remote, Update { reference: &branch, old, new: None })? {
            Pushed::Taken => Ok(BranchPush::Done),
            Pushed::Moved => Ok(BranchPush::Taken),
            Pushed::Refused(reason) => match self.branch_is_at(remote, commit)? {
                Some(true) => Err(not_deleted(remote, reason)),
                Some(false) => Ok(BranchPush::Taken),
                None => Ok(BranchPush::Done),
            },
        }
    }

    /// Whether a branch of the remote is at a commit; nothing, if there is none.
    ///
    /// # Errors
    /// `Transient` if the remote cannot be reached.
    pub fn branch_is_at(&self, remote: &Remote, commit: &CommitId) -> Result<Option<bool>> {
        Ok(remote_head(remote)?.map(|there| &there == commit))
    }

    fn is_ours(&self, opened: &Repository, remote: &Remote, there: &CommitId, author: &Signature) -> Result<bool> {
        let describe = || format!("cannot read the branch `{}`", remote.branch);
        let id = oid(there.as_str())?;
        if !opened.contains(there)? {
            match remote.url.local_path() {
                Some(path) => {
                    let (source, most) = (git::open_local(path)?, self.most(None));
                    super::local::import(&source, &opened.git, (&remote.branch_ref()?, id), most)?;
                }
                None => drop(self.download(&opened.git, remote, &remote.branch_ref()?, None)?),
            }
        }
        let commit = existing(opened.git.find_commit(id)).map_err(failed(describe))?;
        Ok(commit.is_some_and(|commit| commit.committer().email_bytes() == author.email.as_bytes()))
    }
}

fn not_deleted(remote: &Remote, words: String) -> Failure {
    let message = format!("`{}` does not let the branch `{}` be deleted", remote.url, remote.branch);
    Failure::stalled(message).hint("delete it by hand").because(words)
}

fn not_taken(remote: &Remote, words: String) -> Failure {
    let message = format!("`{}` does not take the branch `{}`", remote.url, remote.branch);
    Failure::stalled(message)
        .hint("allow branches below `launchway/` to be pushed, and to be replaced, with these credentials")
        .because(words)
}
