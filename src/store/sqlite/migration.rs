//! How a file of an earlier version becomes one of this version.

mod priorities;

use std::ops::RangeInclusive;
use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::copy;
use super::failure::failed;
use super::schema::{self, Contents, FIRST};
use crate::error::{Class, Failure, Result};

/// The way from one version to the next.
struct Step {
    sql: &'static str,
    /// What SQL cannot do, once it has run.
    rust: Option<Rewrite>,
}

/// Reads and writes columns, and records as JSON: never today's types, which go on changing while a step must not.
type Rewrite = fn(&Connection) -> rusqlite::Result<()>;

/// The first makes a new file of version [`FIRST`]; each other brings a file to the next version. A step that was
/// released never changes: more of them are added.
const STEPS: [Step; 7] = [
    Step { sql: include_str!("schema/2.sql"), rust: None },
    Step { sql: include_str!("schema/3.sql"), rust: Some(priorities::fill_in) },
    Step { sql: include_str!("schema/4.sql"), rust: None },
    Step { sql: include_str!("schema/5.sql"), rust: None },
    Step { sql: include_str!("schema/6.sql"), rust: None },
    Step { sql: include_str!("schema/7.sql"), rust: None },
    Step { sql: include_str!("schema/8.sql"), rust: None },
];

/// The version that this program reads and writes (`PRAGMA user_version`).
pub(super) const VERSION: u32 = FIRST + STEPS.len() as u32 - 1;

/// Creates the tables in a new file, or brings those of an older one to this version, beside a copy of what it was. A
/// process that ends in the middle of it leaves the file as it was, and the next begins again.
///
/// # Errors
/// If the file is of a newer version, not ours, or cannot be copied or written.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<()> {
    // Nobody else writes from here on, so that the copy is what is migrated.
    let file = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let file = file.map_err(|error| failed(&doing(path), error))?;
    match schema::identify(&file, path)? {
        Contents::Empty => take_steps(file, FIRST..=VERSION, path),
        Contents::Version(version) if schema::understood(path, version)? == VERSION => Ok(()),
        Contents::Version(version) => {
            let copy = copy::of_version(path, version);
            tracing::info!(from = version, to = VERSION, copy = %copy.display(), "upgrading the store beside a copy");
            copy::before_upgrade(path, version)
                .and_then(|()| take_steps(file, version + 1..=VERSION, path))
                .map_err(|problem| unchanged(&problem))?;
            copy::forget_before(path, version);
            Ok(())
        }
    }
}

fn doing(path: &Path) -> String {
    format!("write `{}`", path.display())
}

fn take_steps(file: Transaction<'_>, versions: RangeInclusive<u32>, path: &Path) -> Result<()> {
    let taken = versions.into_iter().try_for_each(|version| take_step(&file, version));
    taken.and_then(|()| file.commit()).map_err(|error| failed(&doing(path), error))
}

fn take_step(connection: &Connection, version: u32) -> rusqlite::Result<()> {
    let Some(step) = STEPS.get((version - FIRST) as usize) else { return Ok(()) };
    connection.execute_batch(step.sql)?;
    step.rust.map_or(Ok(()), |rewrite| rewrite(connection))?;
    schema::mark(connection, version)
}

/// Why an upgrade did not come about.
fn unchanged(problem: &Failure) -> Failure {
    let message = format!("cannot upgrade the store: {problem:#}");
    let again = if problem.class() == Class::Transient { Failure::transient } else { Failure::stalled };
    again(message).hint(
        "nothing was changed. Put that right and start again (a copy takes as much room as the store, the upgrade for a \
         moment again as much), or run the launchway that ran before",
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::super::connection::{beside, open_for_writing};
    use super::*;

    /// Rows that a version can hold and the one before could not; a new step must bring some, or this does not compile.
    const SAMPLES: [&str; STEPS.len()] = [
        include_str!("schema/2.sample.sql"),
        include_str!("schema/3.sample.sql"),
        include_str!("schema/4.sample.sql"),
        include_str!("schema/5.sample.sql"),
        include_str!("schema/6.sample.sql"),
        include_str!("schema/7.sample.sql"),
        include_str!("schema/8.sample.sql"),
    ];

    /// A store of a version, with rows of all versions up to it.
    fn store(version: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let connection = open_for_writing(&path).unwrap();
        for (step, sample) in (FIRST..=version).zip(SAMPLES) {
            take_step(&connection, step).unwrap();
            connection.execute_batch(sample).unwrap();
        }
        (folder, path)
    }

    fn upgrade(path: &Path) -> Result<Connection> {
        let mut connection = open_for_writing(path)?;
        migrate(&mut connection, path).map(|()| connection)
    }

    fn texts(connection: &Connection, sql: &str) -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(rusqlite::Result::unwrap).collect()
    }

    fn tables(connection: &Connection) -> Vec<String> {
        texts(connection, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    }

    fn rows(connection: &Connection, table: &str) -> i64 {
        connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    }

    fn version(path: &Path) -> u32 {
        Connection::open(path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_file_of_every_version_is_migrated_with_its_rows() {
        for from in FIRST..=VERSION {
            let (_folder, path) = store(from);
            let before = Connection::open(&path).unwrap();
            let counts: Vec<(String, i64)> =
                tables(&before).into_iter().map(|table| (table.clone(), rows(&before, &table))).collect();
            assert!(counts.iter().all(|(_, rows)| *rows > 0), "version {from} has no sample of some table: {counts:?}");
            drop(before);
            let connection = upgrade(&path).unwrap();
            schema::check(&connection, &path).unwrap();
            schema::verify(&connection, &path).unwrap();
            for (table, count) in counts {
                assert_eq!(rows(&connection, &table), count, "version {from} lost rows of `{table}`");
            }
        }
    }

    #[test]
    fn a_migrated_file_has_the_shape_of_a_new_one() {
        let shape =
            |connection: &Connection| texts(connection, "SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY 1");
        let folder = tempfile::tempdir().unwrap();
        let new = upgrade(&folder.path().join("store.db")).unwrap();
        for from in FIRST..=VERSION {
            let (_folder, path) = store(from);
            assert_eq!(shape(&upgrade(&path).unwrap()), shape(&new), "from version {from}");
        }
    }

    #[test]
    fn what_it_was_stays_beside_it_once_and_is_readable_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let (folder, path) = store(FIRST);
        let (copy, older) = (copy::of_version(&path, FIRST), copy::of_version(&path, FIRST - 1));
        fs::write(&copy, "of an earlier try").unwrap();
        fs::write(beside(&copy, ".partial"), "of a killed one").unwrap();
        fs::write(&older, "of an earlier upgrade").unwrap();
        drop(upgrade(&path).unwrap());
        let kept = Connection::open(&copy).unwrap();
        assert_eq!((version(&copy), rows(&kept, "runs")), (FIRST, 1));
        drop(kept);
        assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
        let mut files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        assert_eq!(files, [path.clone(), copy.clone()]);
        let written = fs::read(&copy).unwrap();
        drop(upgrade(&path).unwrap());
        assert_eq!(fs::read(&copy).unwrap(), written, "there is nothing to copy any more");
    }

    #[test]
    fn a_new_file_leaves_no_copy() {
        let folder = tempfile::tempdir().unwrap();
        drop(upgrade(&folder.path().join("store.db")).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_copy_begins_another_life_and_the_store_goes_on_with_its_own() {
        let (_folder, path) = store(FIRST);
        let lives = |path: &Path| -> Option<String> {
            let read = |row: &rusqlite::Row<'_>| row.get(0);
            Connection::open(path).unwrap().query_row("SELECT incarnation FROM fence", [], read).unwrap()
        };
        let before = lives(&path);
        assert!(before.is_some());
        drop(upgrade(&path).unwrap());
        assert_eq!((lives(&path), lives(&copy::of_version(&path, FIRST))), (before, None));
    }

    #[test]
    fn what_cannot_be_copied_is_not_migrated() {
        let (_folder, path) = store(FIRST);
        let copy = copy::of_version(&path, FIRST);
        fs::create_dir_all(copy.join("in the way")).unwrap();
        let problem = upgrade(&path).unwrap_err().one_line();
        let told = problem.contains(copy.to_str().unwrap()) && problem.contains("nothing was changed");
        assert!(told, "{problem}");
        assert_eq!(version(&path), FIRST);
        assert!(!beside(&copy, ".partial").exists(), "it gives the room back");
    }

    #[test]
    fn a_migration_that_fails_leaves_the_file_as_it_was() {
        let (_folder, path) = store(FIRST);
        let mut connection = open_for_writing(&path).unwrap();
        let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        let fill = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 2000) \
                    INSERT INTO outbox (lane, run, key, asked_at, record) SELECT 'runs', 'r', n, 0, '{}' FROM n";
        connection.execute_batch(fill).unwrap();
        let full: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        assert!(full > pages);
        connection.pragma_update_and_check(None, "max_page_count", full, |_| Ok(())).unwrap();
        let problem = migrate(&mut connection, &path).unwrap_err().one_line();
        assert!(problem.contains("cannot upgrade the store") && problem.contains("the disk is full"), "{problem}");
        drop(connection);
        assert_eq!(version(&path), FIRST);
        let connection = upgrade(&path).unwrap();
        assert_eq!(rows(&connection, "outbox"), 2_001);
    }

    #[test]
    fn a_newer_file_is_refused_and_not_touched() {
        let (_folder, path) = store(VERSION);
        schema::mark(&Connection::open(&path).unwrap(), VERSION + 1).unwrap();
        let problem = upgrade(&path).unwrap_err().one_line();
        assert!(problem.contains("a newer one"), "{problem}");
        assert_eq!(version(&path), VERSION + 1);
        assert!(!copy::of_version(&path, VERSION + 1).exists());
    }

    #[test]
    fn a_file_that_no_release_wrote_is_refused_with_what_to_do() {
        let (_folder, path) = store(FIRST);
        schema::mark(&Connection::open(&path).unwrap(), FIRST - 1).unwrap();
        let problem = upgrade(&path).unwrap_err().one_line();
        assert!(problem.contains("launchway down"), "{problem}");
    }
}
