//! What merging a commit would come to, without a work tree, and without a trace in the mirror.

use git2::{MergeOptions, Oid};

use super::Remote;
use super::git::{self, commit_id, existing, failed, oid};
use super::history::Repository;
use super::mirror::Mirror;
use crate::error::{Failure, Result};
use crate::model::ids::CommitId;

/// Where the heads of pull requests are kept in the mirror, by their numbers.
const PULLS: &str = "refs/launchway/pulls";
/// The most files in conflict that are named.
const MOST_CONFLICTS: usize = 100;
/// Asked before every other place of objects, and written to in place of them.
const FIRST: i32 = 1000;

/// What merging a commit comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// It is in there already.
    Contained,
    /// Both sides have changed these files differently.
    Conflicts(Vec<String>),
    /// A commit that only the repository which it was asked of has, as long as that is open.
    Commit(CommitId),
}

impl Repository {
    /// Merges `head` into `base` as `git merge` does. What it writes stays in memory: it is gone with this repository.
    ///
    /// # Errors
    /// If one of the commits cannot be read, or they have nothing in common.
    pub fn merged(&self, base: &CommitId, head: &CommitId) -> Result<Merged> {
        if self.is_descendant(base, head)? {
            return Ok(Merged::Contained);
        }
        let describe = || format!("cannot merge `{}` into `{}`", head.short(), base.short());
        let objects = self.git.odb().map_err(failed(describe))?;
        objects.add_new_mempack_backend(FIRST).map_err(failed(describe))?;
        let (ours, theirs) = (self.found(base)?, self.found(head)?);
        let mut options = MergeOptions::new();
        options.find_renames(true);
        let mut index = self.git.merge_commits(&ours, &theirs, Some(&options)).map_err(failed(describe))?;
        if index.has_conflicts() {
            return Ok(Merged::Conflicts(conflicts(&index).map_err(failed(describe))?));
        }
        let tree = index.write_tree_to(&self.git).map_err(failed(describe))?;
        let tree = self.git.find_tree(tree).map_err(failed(describe))?;
        let (author, message) = (theirs.committer(), format!("Merge {}\n", head.short()));
        let made = self.git.commit(None, &author, &author, &message, &tree, &[&ours, &theirs]);
        made.map(|made| Merged::Commit(commit_id(made))).map_err(failed(describe))
    }

    fn found(&self, commit: &CommitId) -> Result<git2::Commit<'_>> {
        let describe = || format!("cannot read commit `{}`", commit.short());
        self.git.find_commit(oid(commit.as_str())?).map_err(failed(describe))
    }
}

fn conflicts(index: &git2::Index) -> Result<Vec<String>, git2::Error> {
    let mut paths = Vec::new();
    for conflict in index.conflicts()?.take(MOST_CONFLICTS) {
        let conflict = conflict?;
        let side = conflict.our.or(conflict.their).or(conflict.ancestor);
        paths.extend(side.map(|side| String::from_utf8_lossy(&side.path).into_owned()));
    }
    paths.dedup();
    Ok(paths)
}

impl Mirror {
    /// Brings the head of a pull request here, which the remote has under the name `reference`, and keeps it. Gives what it
    /// is there, which may be another one than `expected`; nothing, if the remote has it no longer. Nothing is transferred if
    /// `expected`, an id or its first digits, is here, and no more than `most` bytes if it is not.
    ///
    /// # Errors
    /// As [`Mirror::fetch`].
    pub fn fetch_pull(
        &self,
        remote: &Remote,
        number: u64,
        reference: &str,
        expected: &CommitId,
        most: Option<u64>,
    ) -> Result<Option<CommitId>> {
        let kept = format!("{PULLS}/{number}");
        let describe = || format!("cannot record the head of pull request {number}");
        if !git::is_reference_name(reference) {
            return Err(Failure::stalled(format!("`{}` is no name of a reference", reference.escape_debug())));
        }
        let found = {
            let opened = self.open()?;
            let known = existing(opened.git.refname_to_id(&kept)).map_err(failed(describe))?;
            let known = known.filter(|known| opened.git.find_commit(*known).is_ok()).map(commit_id);
            if let Some(known) = known.filter(|known| known.is_named_by(Some(expected))) {
                return Ok(Some(known));
            }
            let found = self.bring(&opened.git, remote, reference, most)?;
            self.point(&opened.git, &kept, found).map_err(failed(describe))?;
            found
        };
        self.consolidate()?;
        Ok(found.map(commit_id))
    }

    fn bring(
        &self,
        mirror: &git2::Repository,
        remote: &Remote,
        reference: &str,
        most: Option<u64>,
    ) -> Result<Option<Oid>> {
        let Some(path) = remote.url.local_path() else { return self.download(mirror, remote, reference, most) };
        let source = git::open_local(path)?;
        let describe = || format!("cannot read the references of `{}`", path.display());
        let head = existing(source.refname_to_id(reference)).map_err(failed(describe))?;
        let most = self.most(most);
        head.map(|head| super::local::import(&source, mirror, (reference, head), most).map(|()| head)).transpose()
    }

    /// Lets go of the heads of all pull requests but some.
    ///
    /// # Errors
    /// If the mirror cannot be written.
    pub fn forget_pulls(&self, but: &[u64]) -> Result<()> {
        let describe = || "cannot forget the heads of pull requests".to_owned();
        let opened = self.open()?;
        let kept = |name: &str| {
            let number = name.rsplit('/').next().and_then(|number| number.parse().ok());
            number.is_some_and(|number: u64| but.contains(&number))
        };
        let mut gone = Vec::new();
        for reference in opened.git.references_glob(&format!("{PULLS}/*")).map_err(failed(describe))? {
            let reference = reference.map_err(failed(describe))?;
            gone.extend(reference.name().ok().filter(|name| !kept(name)).map(str::to_owned));
        }
        gone.iter().try_for_each(|name| self.point(&opened.git, name, None)).map_err(failed(describe))
    }
}
