//! The tables, and how a file of an earlier version becomes one of this version.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::failure::failed;
use crate::error::{Failure, Result};

/// Marks a file as ours (`PRAGMA application_id`): "lway".
const APPLICATION_ID: i64 = 0x6c77_6179;

/// The first entry makes a new file of version [`FIRST`]; each other brings a file to the next version. Entries are only
/// ever added.
const MIGRATIONS: [&str; 1] = [include_str!("schema/2.sql")];

/// The oldest version that is understood. No release wrote an older one.
const FIRST: u32 = 2;

/// The version that this program reads and writes (`PRAGMA user_version`).
const VERSION: u32 = FIRST + MIGRATIONS.len() as u32 - 1;

/// Creates the tables in a new file or migrates those of an older one; each step is one transaction.
///
/// # Errors
/// If the file is of a newer version, not ours, or cannot be written.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<()> {
    migrate_to(connection, path, VERSION)
}

fn migrate_to(connection: &mut Connection, path: &Path, target: u32) -> Result<()> {
    loop {
        let doing = "migrate the store";
        let step = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|error| failed(doing, error))?;
        let next = match identify(&step, path)? {
            Contents::Empty => FIRST,
            Contents::Version(version) => understood(path, version)? + 1,
        };
        let step_to = |version: u32| MIGRATIONS.get((version - FIRST) as usize);
        let Some(sql) = step_to(next).filter(|_| next <= target) else { return Ok(()) };
        step.execute_batch(sql)
            .and_then(|()| step.pragma_update(None, "application_id", APPLICATION_ID))
            .and_then(|()| step.pragma_update(None, "user_version", next))
            .and_then(|()| step.commit())
            .map_err(|error| failed(doing, error))?;
    }
}

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

/// Checks that a file is whole and of a version that [`migrate`] takes.
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

enum Contents {
    Empty,
    Version(u32),
}

fn identify(connection: &Connection, path: &Path) -> Result<Contents> {
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

/// The version, if this program can bring a file of it up to date.
fn understood(path: &Path, version: u32) -> Result<u32> {
    if (FIRST..=VERSION).contains(&version) {
        return Ok(version);
    }
    let message = format!(
        "`{}` has schema version {version}, this launchway knows versions {FIRST} to {VERSION}",
        path.display()
    );
    Err(Failure::stalled(message).hint(if version < FIRST {
        "no release wrote it: run `launchway down` with the program that did, then start with an empty state folder"
    } else {
        "run the launchway that wrote it, or a newer one, or restore a backup from before the upgrade"
    }))
}

fn foreign(path: &Path) -> Failure {
    Failure::stalled(format!("`{}` is no store of launchway", path.display()))
        .hint("choose another state folder or another file")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows as each version wrote them; a new migration must bring its own, or this does not compile.
    const SAMPLES: [&str; MIGRATIONS.len()] = [include_str!("schema/2.sample.sql")];

    fn path() -> &'static Path {
        Path::new("test.db")
    }

    #[test]
    fn a_file_of_every_version_is_migrated_with_its_rows() {
        for (version, sample) in (FIRST..).zip(SAMPLES) {
            let mut connection = Connection::open_in_memory().unwrap();
            migrate_to(&mut connection, path(), version).unwrap();
            connection.execute_batch(sample).unwrap();
            migrate(&mut connection, path()).unwrap();
            check(&connection, path()).unwrap();
            verify(&connection, path()).unwrap();
            for table in [
                "runs",
                "events",
                "outbox",
                "configs",
                "objects",
                "revisions",
                "plans",
                "plan_parts",
                "slots",
                "passed",
                "holds",
                "names",
                "contents",
                "content_users",
            ] {
                let sql = format!("SELECT count(*) FROM {table}");
                let rows: i64 = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
                assert!(rows > 0, "version {version} lost `{table}`");
            }
        }
    }

    #[test]
    fn migrating_twice_changes_nothing() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, path()).unwrap();
        migrate(&mut connection, path()).unwrap();
        check(&connection, path()).unwrap();
    }

    #[test]
    fn a_newer_file_is_refused_and_not_touched() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, path()).unwrap();
        connection.pragma_update(None, "user_version", VERSION + 1).unwrap();
        for refused in [migrate(&mut connection, path()), check(&connection, path()), verify(&connection, path())] {
            let problem = refused.unwrap_err().one_line();
            let version = format!("schema version {}", VERSION + 1);
            assert!(problem.contains(&version) && problem.contains("a newer one"), "{problem}");
        }
        let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(version, VERSION + 1);
    }

    #[test]
    fn a_file_that_no_release_wrote_is_refused_with_what_to_do() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, path()).unwrap();
        connection.pragma_update(None, "user_version", FIRST - 1).unwrap();
        for refused in [migrate(&mut connection, path()), check(&connection, path()), verify(&connection, path())] {
            let problem = refused.unwrap_err().one_line();
            assert!(problem.contains("schema version 1") && problem.contains("launchway down"), "{problem}");
        }
    }

    #[test]
    fn another_programs_database_is_refused() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE theirs (x)").unwrap();
        let problem = migrate(&mut connection, path()).unwrap_err();
        assert!(problem.to_string().contains("no store of launchway"), "{problem}");
    }

    #[test]
    fn an_empty_file_is_not_read_as_a_store() {
        let connection = Connection::open_in_memory().unwrap();
        assert!(check(&connection, path()).is_err());
        assert!(verify(&connection, path()).is_err());
    }
}
