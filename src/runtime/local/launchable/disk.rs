//! Writing to a disk that may be full, and folders that are sealed.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};

use super::limits::{Budget, Limits};
use crate::error::{Failure, Result};

/// What the kernel counts files' room in, in bytes.
const BLOCK: u64 = 512;

/// What went wrong while copying.
#[derive(Debug)]
pub(super) enum CopyError {
    /// The source.
    Read(io::Error),
    /// The target.
    Write(io::Error),
    /// There is more than allowed.
    Limit(Failure),
}

/// Copies all of a source. `seen` gets every piece.
pub(super) fn copy_bounded(
    from: &mut impl Read,
    to: &mut impl Write,
    budget: &mut Budget,
    mut seen: impl FnMut(&[u8]),
) -> Result<(), CopyError> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(CopyError::Read(error)),
        };
        let piece = buffer.get(..count).unwrap_or_default();
        budget.take_bytes(count as u64).map_err(CopyError::Limit)?;
        seen(piece);
        to.write_all(piece).map_err(CopyError::Write)?;
    }
}

/// Turns an error of the file system into a failure; a full disk is said to be one.
pub(super) fn on_disk(what: impl Fn() -> String) -> impl Fn(io::Error) -> Failure {
    move |error| {
        let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        let failure = Failure::transient(what()).because(error);
        if full {
            failure.hint("free space where launchway keeps its state; it tries again by itself")
        } else {
            failure
        }
    }
}

/// Checks a tree that somebody else wrote: its size, and that every link leads to something inside.
pub(super) fn inspect(tree: &Path, limits: Limits) -> Result<()> {
    let failed = || format!("cannot look through `{}`", tree.display());
    let top = fs::canonicalize(tree).map_err(on_disk(failed))?;
    let mut budget = Budget::new(limits);
    walk(&top, &mut |path, file| {
        let inside = path.strip_prefix(&top).unwrap_or(path);
        budget.take_entry(inside.components().count())?;
        if file.is_file() {
            budget.take_bytes(file.len())?;
        } else if file.is_symlink() && !fs::canonicalize(path).is_ok_and(|target| target.starts_with(&top)) {
            let link = inside.display().to_string();
            return Err(Failure::stalled(format!("the launchable's link `{}` leads out of it", link.escape_debug()))
                .hint("links may only lead to files of the launchable that exist"));
        } else if !file.is_dir() && !file.is_symlink() {
            return Err(Failure::stalled(format!("the launchable's `{}` is no file", inside.display())));
        }
        Ok(())
    })
    .map_err(|error| error.into_failure(failed))
}

/// Checks the size of a tree that a build has left, whose links may lead to programs of the machine.
pub(super) fn measure(tree: &Path, limits: Limits) -> Result<()> {
    let mut budget = Budget::new(limits);
    let visit = &mut |path: &Path, file: &fs::Metadata| {
        budget.take_entry(path.strip_prefix(tree).unwrap_or(path).components().count())?;
        if file.is_file() { budget.take_bytes(file.len()) } else { Ok(()) }
    };
    walk(tree, visit).map_err(|error| error.into_failure(|| format!("cannot look through `{}`", tree.display())))
}

/// What folders take of the disk, in bytes, while others write to them; once it is more than `most`, not all of it. A folder
/// that cannot be looked into counts as too much.
pub(super) fn usage(folders: &[&Path], most: u64) -> io::Result<u64> {
    let mut pending: Vec<PathBuf> = folders.iter().map(|folder| folder.to_path_buf()).collect();
    let mut found = 0;
    while let Some(folder) = pending.pop().filter(|_| found <= most) {
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(u64::MAX),
            entries => entries?,
        };
        for entry in entries {
            // It may have gone meanwhile.
            let Ok((entry, file)) = entry.and_then(|entry| entry.metadata().map(|file| (entry, file))) else {
                continue;
            };
            found += file.blocks() * BLOCK;
            if file.is_dir() {
                pending.push(entry.path());
            }
        }
    }
    Ok(found)
}

/// Makes a tree read-only for everybody, and durable.
pub(super) fn seal(tree: &Path) -> io::Result<()> {
    change(tree, &|path, file| {
        let mode = if file.is_dir() || file.permissions().mode() & 0o111 != 0 { 0o555 } else { 0o444 };
        fs::set_permissions(path, Permissions::from_mode(mode))
    })?;
    rustix::fs::syncfs(File::open(tree)?)?;
    Ok(())
}

/// Gives a tree to a user.
pub(super) fn give(tree: &Path, user: Option<u32>, group: Option<u32>) -> io::Result<()> {
    if user.is_none() && group.is_none() {
        return Ok(());
    }
    lchown(tree, user, group)?;
    walk(tree, &mut |path, _| lchown(path, user, group)).map_err(WalkError::into_io)
}

/// Applies a change to everything in a tree but links, the top last.
fn change(tree: &Path, to: &dyn Fn(&Path, &fs::Metadata) -> io::Result<()>) -> io::Result<()> {
    let apply = &mut |path: &Path, file: &fs::Metadata| if file.is_symlink() { Ok(()) } else { to(path, file) };
    walk(tree, apply).map_err(WalkError::into_io)?;
    to(tree, &fs::symlink_metadata(tree)?)
}

/// An error of the walk itself, or of the visitor.
enum WalkError<E> {
    Io(io::Error),
    Visit(E),
}

impl WalkError<io::Error> {
    fn into_io(self) -> io::Error {
        match self {
            Self::Io(error) | Self::Visit(error) => error,
        }
    }
}

impl WalkError<Failure> {
    fn into_failure(self, what: impl Fn() -> String) -> Failure {
        match self {
            Self::Io(error) => on_disk(what)(error),
            Self::Visit(failure) => failure,
        }
    }
}

/// Visits everything below a folder, a folder before what is in it. Links are not followed.
fn walk<E>(folder: &Path, visit: &mut dyn FnMut(&Path, &fs::Metadata) -> Result<(), E>) -> Result<(), WalkError<E>> {
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).map_err(WalkError::Io)? {
            let path = entry.map_err(WalkError::Io)?.path();
            let file = fs::symlink_metadata(&path).map_err(WalkError::Io)?;
            visit(&path, &file).map_err(WalkError::Visit)?;
            if file.is_dir() {
                pending.push(path);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Class;
    use crate::runtime::local::host::files::remove_folder_if_there;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_full_disk_is_said_to_be_full_and_tried_again() {
        let mut full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut budget = Budget::new(Limits::default());
        let result = copy_bounded(&mut &b"content"[..], &mut full, &mut budget, |_| ());
        let written = match result {
            Err(CopyError::Write(error)) => Err(error),
            _ => Ok(()),
        };
        let failure = on_disk(|| "cannot unpack `a`".to_owned())(written.unwrap_err());
        assert_eq!(failure.class(), Class::Transient);
        assert_eq!(
            failure.one_line(),
            "cannot unpack `a`: No space left on device (os error 28) (free space where launchway keeps its state; it \
             tries again by itself)"
        );
    }

    #[test]
    fn a_link_that_really_leads_out_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        fs::create_dir_all(tree.join("p/q")).unwrap();
        symlink("../..", tree.join("p/q/top")).unwrap();
        inspect(&tree, Limits::default()).unwrap();
        for target in ["p/q/top/..", "nothing", "/etc"] {
            symlink(target, tree.join("out")).unwrap();
            let failure = inspect(&tree, Limits::default()).unwrap_err();
            assert_eq!(failure.to_string(), "the launchable's link `out` leads out of it");
            fs::remove_file(tree.join("out")).unwrap();
        }
    }

    #[test]
    fn a_sealed_tree_has_no_right_to_write_and_can_be_removed() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        fs::create_dir_all(tree.join("bin")).unwrap();
        fs::write(tree.join("bin/launch"), "").unwrap();
        fs::write(tree.join("data"), "").unwrap();
        fs::set_permissions(tree.join("bin/launch"), Permissions::from_mode(0o6700)).unwrap();
        symlink("data", tree.join("link")).unwrap();
        seal(&tree).unwrap();
        for (path, expected) in [("", 0o555), ("bin", 0o555), ("bin/launch", 0o555), ("data", 0o444)] {
            assert_eq!(fs::metadata(tree.join(path)).unwrap().permissions().mode() & 0o7777, expected, "{path}");
        }
        remove_folder_if_there(&tree).unwrap();
        assert!(!tree.exists());
    }
}
