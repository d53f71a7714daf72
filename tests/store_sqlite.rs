//! The embedded store's file: crashes, other processes, copies, damage.

#![expect(clippy::unwrap_used, reason = "in a test, that is how it fails")]

use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use launchway::clock::{CountingIds, ManualClock};
use launchway::engine::transition::Input;
use launchway::error::Class;
use launchway::executor::drive::Driver;
use launchway::model::action::Lane;
use launchway::model::ids::RepositoryName;
use launchway::model::shipyard::Shipyard;
use launchway::model::time::Timestamp;
use launchway::simulation::world::World;
use launchway::store::sqlite::{SqliteReader, SqliteStore, restore};
use launchway::store::{ReadStore, Store, Transaction, Write};
use launchway::testing::world::{deployment_config, project};

const CHILD_STORE: &str = "LAUNCHWAY_TEST_CHILD_STORE";

fn open(path: &Path) -> launchway::error::Result<SqliteStore> {
    SqliteStore::open(path, Arc::new(ManualClock::new(Timestamp(0))))
}

fn shop() -> RepositoryName {
    "shop".into()
}

async fn deliver(store: &dyn Store, id: &str) {
    let delivery = Write::Delivery { repository: shop(), id: id.into(), at: Timestamp(0) };
    store.commit(Transaction::of(vec![delivery])).await.unwrap();
}

async fn was_delivered(store: &dyn ReadStore, id: &str) -> bool {
    store.was_delivered(&shop(), id).await.unwrap()
}

fn in_new_folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("launchway.db");
    (folder, path)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    path.with_file_name(format!("launchway.db{suffix}"))
}

/// Not a test of its own: the process that `kill_9_loses_nothing_acknowledged` kills. Prints each id once its commit has
/// been acknowledged, from many committers at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs as the child of another test"]
async fn child_that_writes_until_it_is_killed() {
    let path = PathBuf::from(std::env::var(CHILD_STORE).unwrap());
    let store = Arc::new(open(&path).unwrap());
    let committers = (0..16).map(|committer| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for number in 0.. {
                let id = format!("{committer}-{number}");
                deliver(&*store, &id).await;
                std::io::stdout().write_all(format!("acknowledged {id}\n").as_bytes()).unwrap();
            }
        })
    });
    for committer in committers.collect::<Vec<_>>() {
        committer.await.unwrap();
    }
}

#[tokio::test]
async fn kill_9_loses_nothing_acknowledged() {
    let (_folder, path) = in_new_folder();
    for round in 0..3 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_writes_until_it_is_killed", "--ignored", "--nocapture"])
            .env(CHILD_STORE, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let acknowledged = |line: String| line.split_once("acknowledged ").map(|(_, id)| id.to_owned());
        let mut ids: Vec<_> = lines.by_ref().map_while(Result::ok).filter_map(acknowledged).take(200).collect();
        child.kill().unwrap();
        // The last line may have been cut in the middle.
        ids.extend(lines.map_while(Result::ok).filter_map(acknowledged));
        child.wait().unwrap();
        ids.pop();
        assert!(ids.len() >= 199, "round {round}: the child ended by itself after {}", ids.len());

        let store = open(&path).unwrap();
        for id in &ids {
            assert!(was_delivered(&store, id).await, "round {round}: {id} was acknowledged and is lost");
        }
        let copy = beside(&path, &format!(".{round}"));
        store.backup(&copy).await.unwrap();
        drop(store);
        restore(&copy, &path).unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}

#[tokio::test]
async fn a_reader_reads_while_the_daemon_writes_and_after_it_stopped() {
    let (_folder, path) = in_new_folder();
    let problem = SqliteReader::open(&path).unwrap_err().one_line();
    assert!(problem.contains("there is no store") && problem.contains("--state"), "{problem}");

    let store = open(&path).unwrap();
    deliver(&store, "d1").await;
    let reader = SqliteReader::open(&path).unwrap();
    assert!(was_delivered(&reader, "d1").await);
    deliver(&store, "d2").await;
    assert!(was_delivered(&reader, "d2").await);

    drop((reader, store));
    assert!(!beside(&path, "-wal").exists(), "a clean stop folds the log into the file");
    let reader = SqliteReader::open(&path).unwrap();
    assert!(was_delivered(&reader, "d2").await);
    deliver(&open(&path).unwrap(), "d3").await;
    assert!(was_delivered(&reader, "d3").await, "a reader that was there first does not keep the daemon out");
}

#[tokio::test]
async fn the_file_is_readable_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, path) = in_new_folder();
    let store = open(&path).unwrap();
    let copy = beside(&path, ".copy");
    store.backup(&copy).await.unwrap();
    for file in [path.clone(), beside(&path, "-wal"), copy] {
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{}", file.display());
    }
}

#[tokio::test]
async fn a_backup_replaces_what_came_after_it() {
    let (_folder, path) = in_new_folder();
    let store = open(&path).unwrap();
    deliver(&store, "before").await;
    let copy = beside(&path, ".backup");
    store.backup(&copy).await.unwrap();
    deliver(&store, "after").await;
    drop(store);
    // As after a crash: the log holds what the file does not.
    let writer = open(&path).unwrap();
    deliver(&writer, "later").await;
    let wal = std::fs::read(beside(&path, "-wal")).unwrap();
    drop(writer);
    std::fs::write(beside(&path, "-wal"), wal).unwrap();

    restore(&copy, &path).unwrap();
    let store = open(&path).unwrap();
    assert!(was_delivered(&store, "before").await);
    assert!(!was_delivered(&store, "after").await);
    assert!(!was_delivered(&store, "later").await);
    deliver(&store, "new").await;
}

#[tokio::test]
async fn a_damaged_store_is_named_and_can_be_restored() {
    let (_folder, path) = in_new_folder();
    let store = open(&path).unwrap();
    deliver(&store, "d1").await;
    let copy = beside(&path, ".backup");
    store.backup(&copy).await.unwrap();
    drop(store);
    std::fs::write(&path, b"this is no database, but it is long enough to look like a file of one".repeat(100))
        .unwrap();
    for problem in [open(&path).unwrap_err(), SqliteReader::open(&path).unwrap_err()] {
        assert_eq!(problem.class(), Class::Stalled);
        let problem = problem.one_line();
        assert!(problem.contains("damaged") && problem.contains("store restore"), "{problem}");
    }
    restore(&copy, &path).unwrap();
    assert!(was_delivered(&open(&path).unwrap(), "d1").await);
}

#[tokio::test]
async fn what_is_no_backup_is_refused_and_the_store_stays() {
    let (_folder, path) = in_new_folder();
    deliver(&open(&path).unwrap(), "d1").await;
    let copy = beside(&path, ".backup");
    SqliteReader::open(&path).unwrap().backup(&copy).await.unwrap();
    let whole = std::fs::read(&copy).unwrap();
    let mut newer = whole.clone();
    // The header's `user_version`.
    newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
    let mut broken = whole.clone();
    broken.truncate(whole.len() / 2);
    let foreign = beside(&path, ".foreign");
    rusqlite::Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let cases = [
        (newer, "schema version 99"),
        (broken, "damaged"),
        (Vec::new(), "no store of launchway"),
        (b"text".to_vec(), "damaged"),
        (std::fs::read(foreign).unwrap(), "no store of launchway"),
    ];
    for (content, expected) in cases {
        std::fs::write(&copy, content).unwrap();
        let problem = restore(&copy, &path).unwrap_err().one_line();
        assert!(problem.contains(expected), "{problem}");
        assert!(was_delivered(&SqliteReader::open(&path).unwrap(), "d1").await);
    }
    let problem = restore(Path::new("/nowhere/backup.db"), &path).unwrap_err().one_line();
    assert!(problem.contains("there is no store at"), "{problem}");
}

#[tokio::test]
async fn a_place_that_cannot_be_written_says_what_to_do() {
    for place in ["/nowhere/launchway.db", "/proc/launchway.db"] {
        let problem = open(Path::new(place)).unwrap_err().one_line();
        assert!(problem.contains(place) && problem.contains("must exist and be writable"), "{problem}");
    }
    let (_folder, path) = in_new_folder();
    let problem = open(&path).unwrap().backup(Path::new("/nowhere/copy.db")).await.unwrap_err().one_line();
    assert!(problem.contains("/nowhere/copy.db"), "{problem}");
}

#[tokio::test]
async fn a_damaged_action_ends_its_run_with_what_is_wrong_and_holds_up_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::open(folder.path()).unwrap();
    let objects = ["web", "api"].map(|name| deployment_config(name, name, 1, serde_json::json!({})));
    world.runtime.hold_image("web", true);
    world.runtime.hold_image("api", true);
    world.push(&project(Shipyard::implicit(), &objects)).await.unwrap();
    world.settle().await.unwrap();
    let path = folder.path().join("store.db");
    let file = rusqlite::Connection::open(&path).unwrap();
    let sql = "UPDATE outbox SET record = '{' WHERE key = 'prepare' AND run = 'shop/default/web-1'";
    assert_eq!(file.execute(sql, []).unwrap(), 1);
    world.runtime.hold_image("api", false);
    world.pass(Duration::from_secs(3)).await.unwrap();
    let statuses = world.statuses(1).await.unwrap();
    let of = |service: &str| {
        let context = format!("launchway/default/{service}:");
        statuses.iter().find(|status| status.contains(&context)).unwrap().clone()
    };
    assert!(of("api").starts_with("success"), "{statuses:?}");
    assert!(of("web").starts_with("failure") && of("web").contains("record is damaged"), "{statuses:?}");
    let left = world.driver.store.outbox(Some(&"shop/default/web-1".into())).await.unwrap();
    let set_aside: Vec<_> = left.iter().map(|row| (row.key.as_str(), row.due, row.action.is_err())).collect();
    assert_eq!(set_aside, [("prepare", None, true)], "it is there for people to see");
}

#[tokio::test]
async fn a_process_that_lost_its_store_is_told_to_stop() {
    let (_folder, path) = in_new_folder();
    let clock = Arc::new(ManualClock::new(Timestamp(0)));
    let first = Driver::new(Arc::new(open(&path).unwrap()), clock, Arc::new(CountingIds::default()));
    let deliver =
        |id: &str| Input::Write(Box::new(Write::Delivery { repository: shop(), id: id.into(), at: Timestamp(0) }));
    first.commit(&[deliver("1")]).await.unwrap();
    assert!(!first.fenced().is_cancelled());
    let second = open(&path).unwrap();
    assert!(first.commit(&[deliver("2")]).await.unwrap_err().one_line().contains("another launchway process"));
    assert!(first.fenced().is_cancelled());
    assert!(!was_delivered(&second, "2").await);
}

#[tokio::test]
async fn whoever_only_waits_for_actions_learns_that_it_lost_its_store() {
    let (_folder, path) = in_new_folder();
    let clock = Arc::new(ManualClock::new(Timestamp(0)));
    let first = Driver::new(Arc::new(open(&path).unwrap()), clock, Arc::new(CountingIds::default()));
    let _second = open(&path).unwrap();
    first.claim(&Lane::Runs, 1).await.unwrap_err();
    assert!(first.fenced().is_cancelled());
}
