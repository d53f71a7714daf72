//! What keeps the processes of a pod or a build from what is not theirs: the daemon's state, its sockets, and the
//! processes of others.
//!
//! Two of the kernel's means do it, and each holds where the other is missing, as far as it reaches. In a mount namespace
//! hidden folders are empty but for what is the process' own, so that not even a socket in them is found. Landlock keeps
//! the process from looking into others (`/proc/<pid>/environ`, `/proc/<pid>/root`) and from undoing mounts; without a
//! namespace it also refuses the content of hidden folders. A process of root's gives up what would reach past both.
//!
//! What is hidden is known by its path. So nobody who is kept from it moves a folder above it: in the mount namespace each of
//! these is held in its place, and Landlock refuses it where there is none.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::beneath;
use super::mount::Space;
use super::powers;
use super::rights;

/// The most folders above what is hidden.
const MAX_ABOVE: usize = 1_000;

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
    pub(super) hidden: Vec<PathBuf>,
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
    /// Hides folders and files but for the process' home, which lies in one of them, and what else is its own. Fails if the home
    /// is found by its path, but lies somewhere else: then what is to be hidden does, too.
    pub(crate) fn new(hidden: Vec<PathBuf>, home: Own, mut own: Vec<Own>) -> Result<Self, String> {
        let path = home.path.display();
        let real = fs::read_link(beneath::path_of(&home.file)).map_err(|error| format!("`{path}`: {error}"))?;
        if !hidden.is_empty() && !hidden.iter().any(|folder| real.starts_with(folder)) {
            let real = real.display();
            return Err(format!("`{path}` is at `{real}`: a folder above launchway's state has been moved"));
        }
        own.push(home);
        Ok(Self { hidden, own })
    }

    /// Does so in a mount namespace, in which everything of its own was opened; what is not there any more is nothing to hide.
    /// Fails with what is wrong; then [`Self::confine`] refuses what it can.
    pub(crate) fn hide(&self, space: &Space<'_>) -> Result<(), String> {
        space.close_groups();
        let there: Vec<&PathBuf> = self.hidden.iter().filter(|path| path.exists()).collect();
        for path in &there {
            let hidden = if path.is_dir() { space.hide(path, &self.own) } else { space.hide_file(path) };
            hidden.map_err(|error| format!("cannot hide `{}`: {error}", path.display()))?;
        }
        // Only now: what is already open must show the covers, too, and each folder held shows what is mounted below it.
        above(&there)?.into_iter().try_for_each(|folder| {
            space.hold(folder).map_err(|error| format!("cannot hold `{}` in its place: {error}", folder.display()))
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

/// The folders above, outer ones first. The root is none: nothing can move it.
fn above<'a>(paths: &[&'a PathBuf]) -> Result<BTreeSet<&'a Path>, String> {
    let above = paths.iter().flat_map(|path| path.ancestors().skip(1)).filter(|folder| folder.parent().is_some());
    let above: BTreeSet<&Path> = above.collect();
    if above.len() > MAX_ABOVE {
        Err(format!("more than {MAX_ABOVE} folders are above what is hidden"))
    } else {
        Ok(above)
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

    #[test]
    fn folders_above_are_held_outer_ones_first_and_not_without_end() {
        let [state, token] = ["/var/lib/launchway", "/etc/launchway/token"].map(PathBuf::from);
        let held: Vec<&Path> = above(&[&state, &token]).unwrap().into_iter().collect();
        assert_eq!(held, ["/etc", "/etc/launchway", "/var", "/var/lib"].map(Path::new));
        above(&[&PathBuf::from("/x".repeat(MAX_ABOVE + 1))]).unwrap();
        above(&[&PathBuf::from("/x".repeat(MAX_ABOVE + 2))]).unwrap_err();
    }

    #[test]
    fn a_process_whose_home_is_found_by_its_path_but_lies_elsewhere_is_not_started() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (state, moved) = (root.join("above/state"), root.join("moved"));
        fs::create_dir_all(state.join("local/home")).unwrap();
        let home = || Own::at(state.join("local/home"), false).unwrap();
        let isolation = || Isolation::new(vec![state.clone()], home(), Vec::new());
        isolation().unwrap();
        fs::rename(root.join("above"), &moved).unwrap();
        fs::create_dir_all(&state).unwrap();
        std::os::unix::fs::symlink(moved.join("state/local"), state.join("local")).unwrap();
        assert!(isolation().unwrap_err().contains("has been moved"));
    }
}
