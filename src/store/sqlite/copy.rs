//! Whole copies of the file: backup and restore, and what it was before an upgrade.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::connection::{beside, open_for_reading};
use super::failure::failed;
use super::schema;
use crate::error::{Context, Failure, Result};

/// How SQLite begins its files.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Writes a consistent copy of the store at `from`, also while a daemon writes to it. `to` appears when it is whole.
///
/// # Errors
/// If `to` exists or cannot be written.
pub(super) fn backup(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        return Err(Failure::stalled(format!("`{}` exists already", to.display())).hint("choose a new file's name"));
    }
    let source = open_for_reading(from)?;
    schema::check(&source, from)?;
    let copy = copy_beside(&source, to)?;
    put_in_place(&copy, to)
}

/// Whether a file is a store, by its first bytes.
///
/// # Errors
/// If it is no file that can be read.
pub fn is_store(file: &Path) -> Result<bool> {
    let unreadable = || format!("cannot read `{}`", file.display());
    let mut start = [0; MAGIC.len()];
    match File::open(file).and_then(|mut file| file.read_exact(&mut start)) {
        Ok(()) => Ok(&start == MAGIC),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error).or_stalled(unreadable),
    }
}

/// Puts a backup in the place of the store at `path`. No daemon may be running on it.
///
/// # Errors
/// If the backup is damaged, newer or no store at all, or if the place cannot be written; the store is then as before.
pub fn restore(from: &Path, path: &Path) -> Result<()> {
    let source = open_for_reading(from)?;
    schema::verify(&source, from)?;
    let copy = copy_beside(&source, path)?;
    drop_log(path)?;
    put_in_place(&copy, path)
}

/// Copies the store as it is into [`of_version`], in the place of what may be there. The caller keeps others from writing.
///
/// # Errors
/// If the copy cannot be written, as on a full disk: it takes as much room as the store.
pub(super) fn before_upgrade(path: &Path, version: u32) -> Result<()> {
    let to = of_version(path, version);
    let copy = copy_beside(&open_for_reading(path)?, &to)?;
    put_in_place(&copy, &to).inspect_err(|_| drop(remove(&copy)))
}

/// Where a store that was upgraded from `version` keeps what it was.
pub(super) fn of_version(path: &Path, version: u32) -> PathBuf {
    beside(path, &format!(".schema-{version}"))
}

/// Removes what the store was before earlier upgrades: one copy is kept.
pub(super) fn forget_before(path: &Path, version: u32) {
    for version in 0..version {
        let copy = of_version(path, version);
        for file in [beside(&copy, ".partial"), copy] {
            if let Err(error) = remove(&file) {
                tracing::warn!(file = %file.display(), %error, "an old copy of the store stays");
            }
        }
    }
}

/// A synced copy next to `to`, so that it can be renamed into its place.
fn copy_beside(source: &Connection, to: &Path) -> Result<PathBuf> {
    let copy = beside(to, ".partial");
    let doing = || format!("cannot write `{}`", copy.display());
    remove(&copy).or_stalled(doing)?;
    // Into a file that is there already, so that nobody else may read it from the beginning.
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&copy).or_stalled(doing)?;
    // What is left of it gives its room back.
    write_copy(source, &copy).inspect_err(|_| drop(remove(&copy)))?;
    Ok(copy)
}

fn write_copy(source: &Connection, copy: &Path) -> Result<()> {
    let text = copy.to_str().ok_or_else(|| Failure::stalled(format!("`{}` is no UTF-8", copy.display())))?;
    let failed = |error| failed(&format!("write `{text}`"), error);
    source.execute("VACUUM INTO ?", [text]).map_err(failed)?;
    begin_another_life(copy).map_err(failed)?;
    File::open(copy).and_then(|file| file.sync_all()).or_transient(|| format!("cannot write `{text}`"))
}

/// Whoever takes a copy over begins another life with it, also if it was put into its place by hand.
fn begin_another_life(copy: &Path) -> rusqlite::Result<()> {
    let connection = Connection::open(copy)?;
    // Whoever is killed meanwhile makes the copy anew, and a journal would be one more file to leave.
    connection.pragma_update_and_check(None, "journal_mode", "MEMORY", |_| Ok(()))?;
    connection.execute("UPDATE fence SET incarnation = NULL", [])?;
    connection.close().map_err(|(_, error)| error)
}

fn put_in_place(copy: &Path, to: &Path) -> Result<()> {
    let doing = || format!("cannot write `{}`", to.display());
    fs::rename(copy, to).or_stalled(doing)?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).or_transient(doing)
}

/// Folds the log of the file that is about to be replaced into it: a log that stayed would be taken for the new file's.
fn drop_log(path: &Path) -> Result<()> {
    if path.exists()
        && let Ok(connection) = Connection::open(path)
    {
        // A damaged file is why people restore: then the log goes with it, below.
        connection.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(())).ok();
    }
    for suffix in ["-wal", "-shm"] {
        let file = beside(path, suffix);
        remove(&file).or_stalled(|| format!("cannot remove `{}`", file.display()))?;
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
