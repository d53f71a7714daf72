//! What a file says it is: a store of ours, and of which version.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use super::copy;
use super::failure::failed;
use super::migration::VERSION;
use crate::error::{Failure, Result};

/// Marks a file as ours (`PRAGMA application_id`): "lway".
const APPLICATION_ID: i64 = 0x6c77_6179;

/// The oldest version that is understood (`PRAGMA user_version`). No release wrote an older one.
pub(super) const FIRST: u32 = 2;

/// Checks that a file can be read as it is.
///
/// # Errors
/// If it is of another version or not ours.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<()> {
    match identify(connection, path)? {
        Contents::Version(version) if understood(path, version)? == VERSION => Ok(()),
        Contents::Version(_) | Contents::Empty => {
            Err(Failure::stalled(format!("`{}` was written by an older launchway", path.display()))
                .hint("start the daemon once: it brings the file up to date"))
        }
    }
}

/// Checks that a file is whole and of a version that [`super::migration::migrate`] takes.
///
/// # Errors
/// If it is of a newer version, not ours, or damaged.
pub(super) fn verify(connection: &Connection, path: &Path) -> Result<()> {
    match identify(connection, path)? {
        Contents::Version(version) => drop(understood(path, version)?),
        Contents::Empty => return Err(foreign(path)),
    }
    let answer: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|error| failed("check the file", error))?;
    match answer.as_str() {
        "ok" => Ok(()),
        problem => Err(Failure::stalled(format!("`{}` is damaged: {problem}", path.display()))),
    }
}

/// What is in a file.
pub(super) enum Contents {
    /// Nothing: it is new.
    Empty,
    /// A store of this version, which may be one that is not understood.
    Version(u32),
}

/// Says what is in a file.
///
/// # Errors
/// If it is not ours, or damaged.
pub(super) fn identify(connection: &Connection, path: &Path) -> Result<Contents> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let read = || -> rusqlite::Result<_> {
        let tables = connection.query_row("SELECT 1 FROM sqlite_schema LIMIT 1", [], |_| Ok(())).optional()?;
        Ok((tables.is_some(), number("application_id")?, number("user_version")?))
    };
    match read().map_err(|error| failed(&format!("read `{}`", path.display()), error))? {
        (false, 0, 0) => Ok(Contents::Empty),
        (_, APPLICATION_ID, version) => Ok(Contents::Version(u32::try_from(version).unwrap_or(u32::MAX))),
        _ => Err(foreign(path)),
    }
}

/// Says what a file is from now on, if the transaction is committed.
pub(super) fn mark(connection: &Connection, version: u32) -> rusqlite::Result<()> {
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", version)
}

/// The version, if this program can bring a file of it up to date.
///
/// # Errors
/// Says what to do with it.
pub(super) fn understood(path: &Path, version: u32) -> Result<u32> {
    if (FIRST..=VERSION).contains(&version) {
        return Ok(version);
    }
    let message = format!(
        "`{}` has schema version {version}, this launchway knows versions {FIRST} to {VERSION}",
        path.display()
    );
    Err(Failure::stalled(message).hint(if version < FIRST {
        "no release wrote it: run `launchway down` with the program that did, then start with an empty state folder"
            .to_owned()
    } else {
        format!("run the launchway that wrote it, or a newer one, or {}", way_back(path))
    }))
}

/// How to go back to what this program wrote last.
fn way_back(path: &Path) -> String {
    let copy = copy::of_version(path, VERSION);
    if copy.exists() {
        format!("go back to before the upgrade: `launchway store restore {}`", copy.display())
    } else {
        "restore a backup from before the upgrade".to_owned()
    }
}

fn foreign(path: &Path) -> Failure {
    Failure::stalled(format!("`{}` is no store of launchway", path.display()))
        .hint("choose another state folder or another file")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path() -> &'static Path {
        Path::new("test.db")
    }

    fn of_version(version: u32) -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE t (x)").unwrap();
        mark(&connection, version).unwrap();
        connection
    }

    #[test]
    fn a_file_of_another_version_is_refused_with_what_to_do() {
        for (version, todo) in [(FIRST - 1, "launchway down"), (VERSION + 1, "a newer one")] {
            let connection = of_version(version);
            for refused in [check(&connection, path()), verify(&connection, path())] {
                let problem = refused.unwrap_err().one_line();
                let known = problem.contains(&format!("schema version {version}")) && problem.contains(todo);
                assert!(known, "{problem}");
            }
        }
    }

    #[test]
    fn a_newer_file_beside_which_our_copy_lies_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let copy = copy::of_version(&path, VERSION);
        let problem = || check(&of_version(VERSION + 1), &path).unwrap_err().one_line();
        assert!(problem().contains("restore a backup"), "{}", problem());
        std::fs::write(&copy, "").unwrap();
        assert!(problem().contains(&format!("launchway store restore {}", copy.display())), "{}", problem());
    }

    #[test]
    fn an_older_file_is_whole_but_not_read_as_it_is() {
        let connection = of_version(FIRST);
        verify(&connection, path()).unwrap();
        let problem = check(&connection, path()).unwrap_err().one_line();
        assert!(problem.contains("start the daemon once"), "{problem}");
    }

    #[test]
    fn what_is_no_store_is_refused() {
        let connection = Connection::open_in_memory().unwrap();
        assert!(check(&connection, path()).is_err() && verify(&connection, path()).is_err(), "it is empty");
        connection.execute_batch("CREATE TABLE theirs (x)").unwrap();
        for refused in [check(&connection, path()), verify(&connection, path())] {
            let problem = refused.unwrap_err().one_line();
            assert!(problem.contains("no store of launchway"), "{problem}");
        }
    }
}
