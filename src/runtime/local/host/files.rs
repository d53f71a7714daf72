//! Files that are there whole or not at all, and locks that end with their process.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
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

/// Removes a file, if it is there.
pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes a folder with all it holds, if it is there.
pub(crate) fn remove_folder_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes all that a folder holds.
pub(crate) fn empty_folder(path: &Path) -> io::Result<()> {
    fs::read_dir(path)?.try_for_each(|entry| remove_folder_if_there(&entry?.path()))
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
mod tests {
    use super::*;

    #[test]
    fn a_written_file_is_private_and_leaves_no_draft() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pod.json");
        write_whole(&path, folder.path(), b"{}", Durability::Durable).unwrap();
        assert_eq!(read_bounded(&path, 2).unwrap().as_deref(), Some(&b"{}"[..]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_file_beyond_the_limit_is_refused_and_a_missing_one_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        assert!(read_bounded(&path, 2).unwrap().is_none());
        fs::write(&path, "abc").unwrap();
        assert!(read_bounded(&path, 2).is_err());
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
