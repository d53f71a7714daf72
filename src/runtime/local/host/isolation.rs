//! What keeps the processes of a pod or a build from what is not theirs: the daemon's state, its sockets, and the
//! processes of others.
//!
//! Two of the kernel's means do it, and each holds where the other is missing, as far as it reaches. In a mount namespace
//! hidden folders are empty but for what is the process' own, so that not even a socket in them is found. Landlock keeps
//! the process from looking into others (`/proc/<pid>/environ`, `/proc/<pid>/root`) and from undoing mounts; without a
//! namespace it also refuses the content of hidden folders. A process of root's gives up what would reach past both.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::beneath;
use super::mount::Space;
use super::powers;
use super::rights;

/// Something in a hidden folder that is the process' own.
#[derive(Debug)]
pub(crate) struct Own {
    /// Where the process finds it.
    pub(crate) path: PathBuf,
    /// The file or folder, with all below it; held open, so that nothing else can take its place.
    pub(crate) file: OwnedFd,
    /// Whether writing to it is refused.
    pub(crate) read_only: bool,
}

impl Own {
    /// What is at a path, which only the daemon's user changes.
    pub(crate) fn at(path: PathBuf, read_only: bool) -> Result<Self, String> {
        let file = beneath::open_place(&path).map_err(|error| format!("cannot open `{}`: {error}", path.display()))?;
        Ok(Self { path, file, read_only })
    }
}

/// What a process is kept from.
#[derive(Debug, Default)]
pub(crate) struct Isolation {
    /// The folders and files that are hidden, without links in their paths; with none, nothing is kept from the process, whose daemon
    /// was an older one.
    pub(crate) hidden: Vec<PathBuf>,
    /// What in them is its own.
    pub(crate) own: Vec<Own>,
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
    /// Hides the folders and files in a mount namespace, in which everything of its own was opened; what is not there any
    /// more is nothing to hide. Fails with what is wrong; then [`Self::confine`] refuses what it can.
    pub(crate) fn hide(&self, space: &Space<'_>) -> Result<(), String> {
        space.close_groups();
        self.hidden.iter().filter(|path| path.exists()).try_for_each(|path| {
            let hidden = if path.is_dir() { space.hide(path, &self.own) } else { space.hide_file(path) };
            hidden.map_err(|error| format!("cannot hide `{}`: {error}", path.display()))
        })
    }

    /// The last step before the process becomes something else, after which nothing can be mounted. The version of
    /// Landlock that holds from now on, if one does. Fails with what is wrong.
    pub(crate) fn confine(&self, hiding: Hiding) -> Result<Option<i32>, String> {
        if self.hidden.is_empty() {
            return Ok(None);
        }
        let weakened = powers::give_up();
        let hidden: &[PathBuf] = if hiding == Hiding::Covered { &[] } else { &self.hidden };
        let held = match rights::give_up(hidden, &self.own) {
            Ok(None) if hiding == Hiding::Visible => Err("this kernel has no Landlock".to_owned()),
            held => held.map_err(|error| format!("Landlock: {error}")),
        }?;
        weakened.map_err(|error| format!("root's capabilities cannot be given up: {error}"))?;
        Ok(held)
    }
}

/// What of these lies in no other one, as it is without links; what is not there is nothing to hide.
pub(crate) fn outermost<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<PathBuf> {
    let mut real: Vec<PathBuf> = paths.into_iter().filter_map(|path| path.canonicalize().ok()).collect();
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
        let outermost = |paths: &[&std::path::Path]| outermost(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(outermost(&[&state.join("local"), &state]), std::slice::from_ref(&state));
        assert_eq!(outermost(&[&state, &state.join("none")]), std::slice::from_ref(&state));
        assert_eq!(outermost(&[&state, &state.join("linked")]), [other, state]);
    }
}
