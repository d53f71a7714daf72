//! A store of the program before that is brought to today's schema while the process dies, or where the disk is full.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use launchway::clock::SystemClock;
use launchway::store::sqlite::SqliteStore;
use launchway::store::{ReadStore, RunFilter};
use rusqlite::Connection;
use rustix::process::{Resource, Rlimit, Signal, setrlimit};

use super::fixture::{Filled, load_store};
use super::rollout::command;
use crate::support::daemon::{World, complaint};

/// The variables by which a child learns which store it takes over, and how large a file it may write.
const STORE: &str = "LAUNCHWAY_TEST_STORE";
const LIMIT: &str = "LAUNCHWAY_TEST_LIMIT";
/// So many actions wait, so that every part of the upgrade writes some pages.
const ACTIONS: i64 = 2_000;

/// A store of the program before, with many actions.
fn store_of_before(world: &World) -> PathBuf {
    load_store(&world.state(), &Filled::new(world));
    let path = world.state().join("store.db");
    let many = format!(
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {ACTIONS}) \
         INSERT INTO outbox (lane, run, key, due, asked_at, record) SELECT 'runs', n, 'timer/deadline', n, n, \
         '{{\"v\":1,\"record\":{{\"action\":\"setTimer\",\"timer\":\"deadline\",\"due\":1}}}}' FROM n"
    );
    Connection::open(&path).unwrap().execute_batch(&many).unwrap();
    path
}

/// The version of a store and its actions, as anybody finds them who opens the file. It is whole.
fn found(path: &Path) -> (i64, i64) {
    let file = Connection::open(path).unwrap();
    let whole: String = file.query_row("PRAGMA quick_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
    let version = file.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    let sql = format!("SELECT count(*) FROM outbox WHERE key = 'timer/deadline' AND due <= {ACTIONS}");
    (version, file.query_row(&sql, [], |row| row.get(0)).unwrap())
}

fn upgrade(path: &Path) -> SqliteStore {
    SqliteStore::open(path, Arc::new(SystemClock)).unwrap()
}

/// Not a test of its own: the process that dies where it writes beyond its limit.
#[test]
#[ignore = "runs as the child of another test"]
fn child_that_may_write_only_so_much() {
    let limit = std::env::var(LIMIT).unwrap().parse().unwrap();
    let limited = |most| Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(Resource::Core, limited(0)).unwrap();
    setrlimit(Resource::Fsize, limited(limit)).unwrap();
    drop(upgrade(Path::new(&std::env::var(STORE).unwrap())));
}

fn upgrade_within(path: &Path, limit: u64) -> Output {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "upgrades::migration::child_that_may_write_only_so_much", "--ignored", "--nocapture"]);
    child.env(STORE, path).env(LIMIT, limit.to_string()).output().unwrap()
}

#[test]
fn a_process_that_dies_at_any_write_leaves_the_store_as_it_was() {
    let world = World::new(&[]);
    let path = store_of_before(&world);
    // As a daemon leaves it that was killed: with a log, which here is longer than the copy, so that the migration comes to
    // its limits too.
    let log = Connection::open(&path).unwrap();
    let touch = "UPDATE outbox SET attempts = attempts + 1;";
    log.execute_batch(&format!("PRAGMA wal_autocheckpoint = 0; {touch} {touch}")).unwrap();
    let copy = world.state().join("store.db.schema-2");
    let incarnation = || -> Option<String> {
        let file = Connection::open(&path).unwrap();
        file.query_row("SELECT incarnation FROM fence", [], |row| row.get(0)).unwrap()
    };
    let life = incarnation();
    let (mut in_the_copy, mut after_the_copy, mut limit) = (0, 0, 0);
    loop {
        let output = upgrade_within(&path, limit);
        if output.status.success() {
            break;
        }
        assert_eq!(output.status.signal(), Some(Signal::XFSZ.as_raw()), "{}", complaint(&output));
        match (found(&path), copy.exists()) {
            ((2, ACTIONS), false) => in_the_copy += 1,
            ((2, ACTIONS), true) => after_the_copy += 1,
            // Later than the migration: when it took the store over.
            ((8, ACTIONS), true) => {}
            other => assert_eq!(other, ((2, ACTIONS), true), "after {limit} bytes"),
        }
        limit += 16 << 10;
    }
    assert!(in_the_copy > 3 && after_the_copy > 3, "{in_the_copy} {after_the_copy}");
    assert_eq!((found(&path), found(&copy)), ((8, ACTIONS), (2, ACTIONS)));
    assert!(life.is_some() && incarnation() == life, "an upgrade begins no other life");
    let urgent: i64 = Connection::open(&path)
        .unwrap()
        .query_row("SELECT count(*) FROM outbox WHERE priority = 0 AND key LIKE 'timer/%'", [], |row| row.get(0))
        .unwrap();
    assert!(urgent > ACTIONS, "{urgent}");
}

#[test]
fn a_store_that_was_upgraded_has_the_shape_of_a_new_one() {
    let world = World::new(&[]);
    let shape = |path: &Path| -> Vec<String> {
        drop(upgrade(path));
        let file = Connection::open(path).unwrap();
        let mut all = file.prepare("SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY 1").unwrap();
        all.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(shape(&store_of_before(&world)), shape(&world.git.path("new.db")));
}

#[tokio::test]
async fn everything_that_the_program_before_wrote_is_read() {
    let world = World::new(&[]);
    let path = store_of_before(&world);
    let store = upgrade(&path);
    let outbox = store.outbox(None).await.unwrap();
    assert!(outbox.iter().all(|row| row.action.is_ok()), "{outbox:?}");
    assert!(!store.runs(&RunFilter::default()).await.unwrap().whole().unwrap().is_empty());
    assert!(!store.configs(None, None).await.unwrap().whole().unwrap().is_empty());
    assert!(!store.objects(None, None, None).await.unwrap().whole().unwrap().is_empty());
    assert!(!store.events(None, 0, 1_000).await.unwrap().is_empty());
    assert!(!store.open_slots(None).await.unwrap().is_empty());
    assert!(!store.revisions(&"shop".into(), 10).await.unwrap().is_empty());
    store.backup(&world.git.path("backup.db")).await.unwrap();
}

/// Mounts a small file system over the state folder for what it starts alone, puts the store there, and brings back what
/// becomes of it.
const ON_A_SMALL_DISK: &str = "\
mount -t tmpfs -o size=$SIZE,mode=700 launchway-test \"$LAUNCHWAY_STATE\" && cp \"$STORE\" \"$LAUNCHWAY_STATE/store.db\" || exit 99
\"$@\"; code=$?; ls \"$LAUNCHWAY_STATE\" > \"$AFTER.files\"; cp \"$LAUNCHWAY_STATE/store.db\" \"$AFTER\"; exit $code";

#[test]
fn on_a_full_disk_the_daemon_says_so_and_the_store_stays_as_it_was() {
    let world = World::new(&[]);
    let path = store_of_before(&world);
    let size = fs::metadata(&path).unwrap().len();
    let (store, after) = (world.git.path("before.db"), world.git.path("after.db"));
    fs::rename(&path, &store).unwrap();
    // The first disk has no room for the copy, the second none for the migration beside it.
    for (room, doing) in [(size * 3 / 2, "store.db.schema-2.partial`"), (size * 5 / 2, "state/store.db`")] {
        let mut daemon = command(&world, "unshare");
        daemon.args(["--mount", "--map-root-user", "sh", "-c", ON_A_SMALL_DISK, "sh", env!("CARGO_BIN_EXE_launchway")]);
        daemon.args(["serve", "--config"]).arg(world.config());
        daemon.env("SIZE", room.to_string()).env("STORE", &store).env("AFTER", &after);
        let output = daemon.output().unwrap();
        let told = complaint(&output);
        assert_eq!(output.status.code(), Some(3), "{told}");
        assert!(
            told.contains("nothing was changed") && told.contains(doing) && told.contains("the disk is full"),
            "{told}"
        );
        assert_eq!(found(&after), (2, ACTIONS));
        let files = fs::read_to_string(after.with_extension("db.files")).unwrap();
        assert!(!files.contains(".partial"), "it gives its room back: {files}");
    }
}
