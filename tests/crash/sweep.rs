//! Every record, before and after: a delivery that dies there and is taken up again.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use launchway::config::Settings;
use launchway::control::app::App;
use launchway::store::ReadStore;
use launchway::store::sqlite::SqliteReader;
use serde_json::Value;

use crate::VERB;
use crate::crash::deadly_store::{DeadlyStore, Moment};
use crate::support::daemon::{World, eventually, hook, sleeper};

/// Deliveries at the same time: they wait for the disk and for each other's processes more than they compute.
const SIDE_BY_SIDE: usize = 4;
/// A delivery of one service has fewer records; more would mean that something never ends.
const MOST_RECORDS: u32 = 200;

/// The daemon that dies at a record.
pub(crate) fn daemon(config: &str, state: &str, record: &str, moment: &str) {
    let settings = Settings::load(Path::new(config)).unwrap();
    let record = record.parse().unwrap();
    let moment = if moment == "before" { Moment::Before } else { Moment::After };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let deadly = |inner| -> Arc<dyn launchway::store::Store> {
            Arc::new(DeadlyStore { inner, record, moment, seen: AtomicU32::new(0) })
        };
        let _app = App::start_over(&settings, Path::new(state), deadly).await.unwrap();
        std::future::pending::<()>().await;
    });
}

/// Tries every record until a delivery gets through without dying.
pub(crate) fn run() {
    for moment in ["before", "after"] {
        let (next, deaths, through) = (AtomicU32::new(1), AtomicU32::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            for _ in 0..SIDE_BY_SIDE {
                scope.spawn(|| {
                    while !through.load(Ordering::SeqCst) {
                        let record = next.fetch_add(1, Ordering::SeqCst);
                        assert!(record < MOST_RECORDS, "a delivery has no end of records");
                        match dies_and_goes_on(record, moment) {
                            true => deaths.fetch_add(1, Ordering::SeqCst),
                            false => u32::from(through.swap(true, Ordering::SeqCst)),
                        };
                    }
                });
            }
        });
        let deaths = deaths.load(Ordering::SeqCst);
        assert!(deaths >= 10, "a delivery has more than {deaths} records");
        println!("killed {moment} each of {deaths} records");
    }
}

/// A delivery during which the daemon dies at a record, if there are so many; says whether it did.
fn dies_and_goes_on(record: u32, moment: &str) -> bool {
    let world = World::new(&[]);
    let count = |point: &str| hook(point, "Abort", &format!("echo {point} >> {}", world.git.path("hooks").display()));
    let strategy = format!("type: Recreate, recreateParams: {{{}, {}}}", count("pre"), count("post"));
    let commit = world.git.push_files(&[("web.yaml", &sleeper("web", &strategy, "1"))]);

    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([VERB.as_ref(), world.config().as_os_str(), world.state().as_os_str()]);
    world.spawn(command.args([&record.to_string(), moment]).envs(world.git.environment()));
    eventually("the daemon's death or the delivery's end", || !world.daemon_lives() || is_whole(&world, &commit));
    let died = !world.daemon_lives();
    world.kill();

    world.start();
    let place = format!("killed {moment} record {record}");
    for context in ["launchway/plan", "launchway/default", "launchway/default/web/pre", "launchway/default/web/post"] {
        world.status(&commit, context, "success");
    }
    eventually(&format!("one pod, {place}"), || pods(&world, "Ready") == ["web-1-0"]);
    assert_eq!(pods(&world, "Succeeded"), ["web-1-hook-post", "web-1-hook-pre"], "{place}");
    assert_eq!(world.lines("hooks"), ["pre", "post"], "{place}");
    let config = &world.json(&["get", "deployments"])["items"][0];
    let serving = (&config["serving"]["version"], &config["attempted"], &config["status"]);
    assert_eq!(serving, (&Value::from(1), &Value::Null, &Value::from("Complete")), "{place}: {config}");
    assert_eq!(world.processes().len(), 2, "a shim and its process, {place}");
    died
}

/// Whether everything is told, and no action waits to be performed.
fn is_whole(world: &World, commit: &str) -> bool {
    let notes = world.notes(commit);
    let told = |context: &&str| notes.get(*context).is_some_and(|(state, _)| state == "success");
    ["launchway/plan", "launchway/default", "launchway/default/web/post"].iter().all(told)
        && outbox_is_empty(&world.state().join("store.db"))
}

fn outbox_is_empty(store: &Path) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let rows = |reader: SqliteReader| runtime.block_on(async move { reader.outbox(None).await });
    SqliteReader::open(store).and_then(rows).is_ok_and(|rows| rows.is_empty())
}

/// The names of the pods with a status, sorted.
fn pods(world: &World, status: &str) -> Vec<String> {
    let pods = world.json(&["get", "pods"])["items"].as_array().cloned().unwrap_or_default();
    let chosen = pods.iter().filter(|pod| pod["status"] == status);
    let mut names: Vec<String> = chosen.filter_map(|pod| pod["name"].as_str().map(str::to_owned)).collect();
    names.sort();
    names
}
