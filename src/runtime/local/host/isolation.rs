//! What keeps the processes of a pod or a build from what is not theirs: the daemon's state, its sockets, and the
//! processes of others.
//!
//! Two of the kernel's means do it, and each holds where the other is missing, as far as it reaches. In a mount namespace
//! hidden folders are empty but for what is the process' own, so that not even a socket in them is found. Landlock keeps
//! the process from looking into others (`/proc/<pid>/environ`, `/proc/<pid>/root`) and from undoing mounts; without a
//! namespace it also refuses the content of hidden folders. A process of root's gives up what would reach past both.

use std::path::{Path, PathBuf};

use super::mount::Space;
use super::powers;
use super::rights;

/// Something in a hidden folder that is the process' own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Own {
    /// A file or folder, with all below it.
    pub(crate) path: PathBuf,
    /// Whether writing to it is refused.
    pub(crate) read_only: bool,
}

/// What a process is kept from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Isolation {
    /// The folders that are hidden; with none, nothing is kept from the process, whose daemon was an older one.
    pub(crate) hidden: Vec<PathBuf>,
    /// What in them is its own, outer folders first.
    pub(crate) own: Vec<Own>,
    /// An empty folder in one of them, in which mounts are put together.
    pub(crate) scratch: PathBuf,
}

/// How hidden folders are kept from a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hiding {
    /// They are covered in its mount namespace.
    Covered,
    /// They are as the machine has them.
    Visible,
}

impl Isolation {
    /// Enters a mount namespace in which the folders are hidden. The process must have one thread. Fails with what is
    /// wrong; then [`Self::confine`] refuses what it can.
    pub(crate) fn enter(&self) -> Result<Space<'_>, String> {
        let space = Space::enter(&self.scratch)?;
        for folder in &self.hidden {
            let hidden = space.hide(folder, &self.own);
            hidden.map_err(|error| format!("cannot hide `{}`: {error}", folder.display()))?;
        }
        Ok(space)
    }

    /// The last step before the process becomes something else, after which nothing can be mounted. Fails with what is
    /// wrong.
    pub(crate) fn confine(&self, hiding: Hiding) -> Result<(), String> {
        if self.hidden.is_empty() {
            return Ok(());
        }
        powers::give_up().map_err(|error| format!("root's capabilities cannot be given up: {error}"))?;
        let hidden: &[PathBuf] = if hiding == Hiding::Covered { &[] } else { &self.hidden };
        let confined = rights::give_up(hidden, &self.own).map_err(|error| error.to_string());
        match (confined, hiding) {
            // Without Landlock, what is covered stays out of reach.
            (Ok(None), Hiding::Covered) | (Ok(Some(_)), _) => Ok(()),
            (Ok(None), Hiding::Visible) => Err("this kernel has no Landlock".to_owned()),
            (Err(problem), _) => Err(format!("Landlock: {problem}")),
        }
    }
}

/// The folders among these that lie in no other one, as they are without links; what is not there hides nothing.
pub(crate) fn outermost(folders: &[&Path]) -> Vec<PathBuf> {
    let mut real: Vec<PathBuf> = folders.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
    real.sort();
    real.dedup_by(|later, earlier| later.starts_with(earlier));
    real
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_in_a_hidden_one_is_hidden_with_it_and_one_behind_a_link_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (state, other) = (root.join("state"), root.join("other"));
        std::fs::create_dir_all(state.join("local")).unwrap();
        std::fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(&other, state.join("linked")).unwrap();
        assert_eq!(outermost(&[&state.join("local"), &state]), std::slice::from_ref(&state));
        assert_eq!(outermost(&[&state, &state.join("none")]), std::slice::from_ref(&state));
        assert_eq!(outermost(&[&state, &state.join("linked")]), [other, state]);
    }
}
