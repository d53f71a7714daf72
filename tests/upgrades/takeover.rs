//! Today's daemon on the state folder of the one before.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

use rusqlite::Connection;
use rustix::process::Signal;

use super::fixture;
use super::rollout::{
    answers, answers_in_the_end, begin_with, command, ended, let_go, nothing_to_do, processes, reboot, says,
    service_folder, services_shim, until_the_middle,
};
use crate::support::daemon::{World, answering, eventually};

/// The folder with the programs of before, built from the commit that `.ci/run` names.
pub(super) fn programs_of_before() -> PathBuf {
    std::env::var_os("LAUNCHWAY_BEFORE").map(PathBuf::from).unwrap_or_default()
}

#[test]
fn a_rollout_goes_on_under_the_next_program() {
    let world = World::new(&[]);
    let [_, commit] = fixture::load(&world);
    until_the_middle(&world);
    fixture::forget_versions(&world);
    die_in_the_upgrade(&world);
    let shim = services_shim(&world);
    take_over(&world, &commit, answers);
    assert_eq!(services_shim(&world), shim);
}

/// Today's daemon is killed while it copies the store: by the write that makes the copy half as long as that. What it prints
/// goes through a pipe, because the limit would hold for a file too.
fn die_in_the_upgrade(world: &World) {
    let half = fs::metadata(world.state().join("store.db")).unwrap().len() / 2;
    let mut limited = command(world, "prlimit");
    limited.arg(format!("--fsize={half}")).args(["--core=0", env!("CARGO_BIN_EXE_launchway"), "serve", "--config"]);
    let ended = limited.arg(world.config()).output().unwrap();
    assert_eq!(ended.status.signal(), Some(Signal::XFSZ.as_raw()), "{ended:?}");
    assert!(world.state().join("store.db.schema-2.partial").exists());
}

#[test]
#[ignore = "`.ci/run upgrade` builds the program of before"]
fn a_rollout_that_the_program_before_began_goes_on() {
    let world = World::new(&[]);
    let [_, commit] = begin_with(&world, &programs_of_before());
    if std::env::var_os("RECORD").is_some() {
        fixture::record(&world);
    }
    take_over(&world, &commit, answers_in_the_end);
    assert!(services_shim(&world).is_some());
    assert!(!service_folder(&world).join("shim.lock").exists(), "the service's own has ended");
}

fn take_over(world: &World, commit: &str, is_answered: fn(&World) -> bool) {
    let before = processes(world);
    assert!(before.iter().all(Option::is_some), "{before:?}");
    answering(
        || is_answered(world),
        || {
            world.start();
            eventually("what is there is known", || world.json(&["get", "pods"])["items"].as_array().is_some());
            assert_eq!(processes(world), before, "nothing restarts");
            let_go(world);
            world.status(commit, "launchway/default", "success");
            ended(world, "web", "Complete");
            ended(world, "worker", "Complete");
            nothing_to_do(world);
        },
    );
    assert_eq!(says(world).as_deref(), Some("two"));
    let hooks = world.pod_folders().into_keys().filter(|pod| pod.contains("worker-2-hook-pre")).count();
    assert_eq!(hooks, 1, "the hook ran once");
    assert_eq!(schema(world, "store.db"), 8);
    assert_eq!(schema(world, "store.db.schema-2"), 2);
}

/// The version of a store's file, which is whole.
fn schema(world: &World, file: &str) -> i64 {
    let file = Connection::open(world.state().join(file)).unwrap();
    let whole: String = file.query_row("PRAGMA quick_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
    file.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[test]
fn after_a_reboot_what_the_program_before_wrote_down_starts_again() {
    let world = World::new(&[]);
    let [_, commit] = fixture::load(&world);
    until_the_middle(&world);
    fixture::forget_versions(&world);
    reboot(&world);
    assert!(!answers(&world));
    world.start();
    eventually("what served answers again", || says(&world).as_deref() == Some("one"));
    let_go(&world);
    eventually("the rollout ends", || says(&world).as_deref() == Some("two"));
    // How the hook ended that ran when the machine did is unknown, and its policy says to abort.
    let told = world.status(&commit, "launchway/default/worker", "failure");
    assert!(told.contains("restarted"), "{told}");
}
