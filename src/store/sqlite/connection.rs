//! Opening the file: once for writing, often for reading.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::failure::failed;
use crate::error::{Context, Failure, Result};

/// How long one process waits for another's lock: a daemon that is being replaced holds it for one commit.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Prepared statements that a connection keeps; about as many as there are different ones.
const CACHED_STATEMENTS: usize = 64;
/// What a connection that reads keeps of the file, in KiB if negated: there are several of them, and the kernel keeps it all.
const READERS_CACHE: i32 = -512;

/// Opens the file for writing and creates it if it is missing, readable for its owner alone: it holds the content of
/// declared secrets.
pub(super) fn open_for_writing(path: &Path) -> Result<Connection> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .or_stalled(|| format!("cannot open the store `{}`", path.display()))
        .map_err(|failure| {
            failure.hint("the state folder must exist and be writable for the user who runs the daemon")
        })?;
    let connection = open(path.as_os_str().as_bytes(), OpenFlags::SQLITE_OPEN_READ_WRITE, path)?;
    let mode =
        configure(&connection).map_err(|error| failed(&format!("open the store `{}`", path.display()), error))?;
    if mode != "wal" {
        return Err(Failure::stalled(format!("`{}` does not support a write-ahead log", path.display()))
            .hint("put the state folder on a local file system, not on a network share"));
    }
    Ok(connection)
}

fn configure(connection: &Connection) -> rusqlite::Result<String> {
    let mode = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(mode)
}

/// Opens the file for reading, whether a daemon runs or not.
pub(super) fn open_for_reading(path: &Path) -> Result<Connection> {
    if !path.exists() {
        return Err(Failure::stalled(format!("there is no store at `{}`", path.display()))
            .hint("start the daemon, or choose the state folder with `--state`"));
    }
    let connection = open(path.as_os_str().as_bytes(), OpenFlags::SQLITE_OPEN_READ_ONLY, path)?;
    connection.pragma_update(None, "cache_size", READERS_CACHE).map_err(|error| failed("bound a cache", error))?;
    if can_read(&connection) || beside(path, "-wal").exists() {
        return Ok(connection);
    }
    // In a folder that this user may not write, SQLite cannot make the files it shares with writers. Without a
    // write-ahead log there is no writer, and the file alone is the whole truth.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    open(immutable_uri(path).as_bytes(), flags, path)
}

fn can_read(connection: &Connection) -> bool {
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).is_ok()
}

fn open(name: &[u8], flags: OpenFlags, path: &Path) -> Result<Connection> {
    let name = Path::new(std::ffi::OsStr::from_bytes(name));
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(name, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // A statement is planned once, not again for every value that it is given.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
        Ok(connection)
    };
    open().map_err(|error| failed(&format!("open the store `{}`", path.display()), error))
}

/// The path of a file that SQLite keeps beside the database.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn immutable_uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => uri.push(char::from(byte)),
            // Writing to a string cannot fail.
            other => write!(uri, "%{other:02X}").unwrap_or_default(),
        }
    }
    uri.push_str("?immutable=1");
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odd_path_survives_in_a_uri() {
        assert_eq!(immutable_uri(Path::new("/a b/ü?#%.db")), "file:/a%20b/%C3%BC%3F%23%25.db?immutable=1");
    }

    #[test]
    fn a_file_without_its_log_is_read_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("odd ?#%.db");
        open_for_writing(&path).unwrap().execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (7)").unwrap();
        assert!(!beside(&path, "-wal").exists());
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        for connection in
            [open_for_reading(&path).unwrap(), open(immutable_uri(&path).as_bytes(), flags, &path).unwrap()]
        {
            let x: i64 = connection.query_row("SELECT x FROM t", [], |row| row.get(0)).unwrap();
            assert_eq!(x, 7);
            assert!(connection.execute("INSERT INTO t VALUES (8)", []).is_err());
        }
    }
}
