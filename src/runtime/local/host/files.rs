//! Files that are there whole or not at all, and locks that end with their process.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

/// How long those who ask may hold an owner up; each holds a lock for microseconds.
const ASKING: Duration = Duration::from_millis(500);
/// How much of a file is asked for at first, in bytes.
const PAGE: usize = 4096;

/// Whether a written file must survive a loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// It must.
    Durable,
    /// A process' death does not harm it; the machine's may.
    Plain,
}

/// Puts a file of mode 0600 in place by a rename. The draft lies in `drafts`, which is on the same file system.
pub(crate) fn write_whole(path: &Path, drafts: &Path, content: &[u8], durability: Durability) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = drafts.join(format!(".{name}.draft"));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(content)?;
    if durability == Durability::Durable {
        file.sync_all()?;
    }
    fs::rename(&draft, path)?;
    match path.parent() {
        Some(folder) if durability == Durability::Durable => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// Reads a file of at most `limit` bytes; `None` if there is none.
pub(crate) fn read_bounded(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // Most fit: an empty buffer would ask the kernel for 32 bytes first, then for as many again, and so on.
    let mut content = Vec::with_capacity(usize::try_from(limit + 1).unwrap_or(PAGE).min(PAGE));
    file.take(limit + 1).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {limit} bytes")));
    }
    Ok(Some(content))
}

/// Makes a folder, if it is not there, and gives it its mode, whatever the umask is.
pub(crate) fn make_folder(path: &Path, mode: u32) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Makes an empty file of mode 0600, or empties it.
pub(crate) fn make_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// The folders in a folder, by name; none if it is not there.
pub(crate) fn folders(parent: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(parent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut folders = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.push(entry.path());
        }
    }
    folders.sort();
    Ok(folders)
}

/// Removes a file, if it is there.
pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes a folder with all it holds, if it is there, also what its owner may not write.
pub(crate) fn remove_folder_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            make_writable(path)?;
            fs::remove_dir_all(path)
        }
        removed => removed,
    }
}

/// Gives the owner of a folder, and of those in it, the right to write, without which their entries cannot be removed.
fn make_writable(folder: &Path) -> io::Result<()> {
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            // Links are not followed.
            pending.extend(entry.file_type()?.is_dir().then(|| entry.path()));
        }
    }
    Ok(())
}

/// Removes all that a folder holds. What cannot be removed keeps nothing else; the first problem is told.
pub(crate) fn empty_folder(path: &Path) -> io::Result<()> {
    let removed = fs::read_dir(path)?.map(|entry| remove_folder_if_there(&entry?.path()));
    removed.fold(Ok(()), io::Result::and)
}

/// Takes the lock by which a process owns something, for as long as the file is open; `None` if another one owns it.
/// Whoever asks by [`is_locked`] at the same instant is waited for.
pub(crate) fn take_lock(path: &Path) -> io::Result<Option<File>> {
    let deadline = Instant::now() + ASKING;
    loop {
        match try_lock(path)? {
            None if Instant::now() < deadline => thread::sleep(Duration::from_millis(1)),
            taken => return Ok(taken),
        }
    }
}

/// Whether somebody deleted an open file, whatever has its name now. On a disk that is away for a moment files keep their
/// names.
pub(crate) fn is_deleted(file: &File) -> bool {
    file.metadata().is_ok_and(|file| file.nlink() == 0)
}

/// Whether a living process owns what a lock stands for.
pub(crate) fn is_locked(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        file => file?,
    };
    // Shared, so that two who ask at once do not take each other for the owner.
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(false),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Takes a lock that nobody shares, without waiting; `None` if somebody else has one. It ends with the file.
pub(crate) fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn a_written_file_is_private_and_leaves_no_draft() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pod.json");
        write_whole(&path, folder.path(), b"{}", Durability::Durable).unwrap();
        assert_eq!(read_bounded(&path, 2).unwrap().as_deref(), Some(&b"{}"[..]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_beyond_the_limit_is_refused_and_a_missing_one_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        assert!(read_bounded(&path, 2).unwrap().is_none());
        fs::write(&path, "abc").unwrap();
        assert!(read_bounded(&path, 2).is_err());
    }

    /// Does something as a user who is not root.
    pub(crate) fn as_nobody<T: Send>(work: impl FnOnce() -> T + Send) -> T {
        let nobody = || {
            if rustix::process::getuid().is_root() {
                rustix::thread::set_thread_gid(rustix::process::Gid::from_raw(65534)).unwrap();
                rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65534)).unwrap();
            }
            work()
        };
        thread::scope(|scope| scope.spawn(nobody).join().unwrap())
    }

    #[test]
    fn what_its_owner_may_not_write_is_removed_too_and_keeps_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        let (trash, foreign) = (folder.path().join("trash"), folder.path().join("foreign"));
        fs::create_dir_all(foreign.join("kept")).unwrap();
        as_nobody(|| {
            for pod in ["a", "b", "c"] {
                fs::create_dir_all(trash.join(pod).join("volumes/data/sealed")).unwrap();
                fs::write(trash.join(pod).join("volumes/data/sealed/file"), "").unwrap();
                std::os::unix::fs::symlink(&foreign, trash.join(pod).join("volumes/data/link")).unwrap();
                for sealed in ["volumes/data/sealed", "volumes/data"] {
                    fs::set_permissions(trash.join(pod).join(sealed), Permissions::from_mode(0o500)).unwrap();
                }
            }
            assert!(fs::remove_dir_all(trash.join("a")).is_err(), "as it is, it cannot be removed");
            empty_folder(&trash).unwrap();
            fs::create_dir_all(trash.join("d")).unwrap();
            fs::write(trash.join("no folder"), "").unwrap();
            fs::create_dir_all(trash.join("z")).unwrap();
            assert!(empty_folder(&trash).is_err());
        });
        assert_eq!(fs::read_dir(&trash).unwrap().count(), 1, "what cannot be removed keeps nothing else");
        assert!(foreign.join("kept").exists(), "links are not followed");
        remove_folder_if_there(&folder.path().join("nothing")).unwrap();
    }

    #[test]
    fn a_lock_is_taken_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = try_lock(&path).unwrap();
        assert!(first.is_some());
        assert!(try_lock(&path).unwrap().is_none());
        drop(first);
        assert!(try_lock(&path).unwrap().is_some());
    }

    #[test]
    fn asking_who_owns_a_lock_keeps_nobody_from_taking_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        assert!(!is_locked(&path).unwrap() && !path.exists());
        let ends = std::sync::atomic::AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !ends.load(std::sync::atomic::Ordering::Relaxed) {
                        is_locked(&path).unwrap();
                    }
                });
            }
            for _ in 0..200 {
                let owner = take_lock(&path).unwrap();
                assert!(owner.is_some() && is_locked(&path).unwrap());
                drop(owner);
                assert!(!is_locked(&path).unwrap());
            }
            ends.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}
