//! A disk that is full, or becomes so while something is being deployed: it is told, and nothing is lost.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use crate::support::daemon::{World, complaint, config, eventually, sleeper};

/// Mounts a small file system over the state folder, for the daemon and what it starts alone, and becomes the daemon.
const ON_A_SMALL_DISK: &str = "mount -t tmpfs -o size=12m,mode=700 launchway-test \"$LAUNCHWAY_STATE\" && exec \"$@\"";

/// A daemon whose state is on a disk of 12 MiB.
fn on_a_small_disk() -> World {
    let may = Command::new("unshare").args(["--mount", "--map-root-user", "true"]).output().unwrap();
    assert!(may.status.success(), "this machine lets nobody mount, not even in a namespace: {}", complaint(&may));
    let world = World::new(&["poll: 100ms"]);
    fs::create_dir(world.state()).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", ON_A_SMALL_DISK, "sh"]);
    command.args([env!("CARGO_BIN_EXE_launchway"), "serve", "--config"]).arg(world.config());
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).envs(world.git.environment());
    world.spawn(command.env("LAUNCHWAY_STATE", world.state()));
    eventually("a daemon that serves", || {
        assert!(world.daemon_lives(), "the daemon ended: {}", world.log());
        world.output().contains("serving http")
    });
    world
}

/// The state folder as the daemon sees it.
fn state(world: &World) -> PathBuf {
    PathBuf::from(format!("/proc/{}/root{}", world.pid(), world.state().display()))
}

/// What a verb tells of this daemon.
fn told(world: &World, arguments: &[&str]) -> String {
    let told = world.launchway().args(arguments).env("LAUNCHWAY_STATE", state(world)).output().unwrap();
    String::from_utf8(told.stdout).unwrap()
}

/// Writes until nothing more fits.
fn fill(world: &World) -> PathBuf {
    let path = state(world).join("filling");
    let mut file = File::create(&path).unwrap();
    for size in [1 << 20, 4096, 1] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }
    path
}

fn ready(world: &World) -> i64 {
    let text = fs::read(state(world).join("local/pods/shop-default/web-1-0/status.json")).unwrap_or_default();
    let status: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    status["containers"][0]["process"]["pid"].as_i64().filter(|_| status["phase"] == "ready").unwrap_or_default()
}

#[test]
fn a_disk_that_is_full_when_something_is_pushed_delays_it_and_loses_nothing() {
    let world = on_a_small_disk();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    eventually("a pod", || ready(&world) != 0);
    let pod = ready(&world);
    let filling = fill(&world);
    let commit = world.git.push_files(&[("web.yaml", &sleeper("web", "type: Recreate", "2"))]);
    eventually("the full disk is told", || {
        world.log().contains("disk is full") || world.log().contains("No space left")
    });
    for verb in [["repository", "list"], ["why", "dc/web"]] {
        eventually(&format!("{verb:?} says so"), || {
            let told = told(&world, &verb);
            told.contains("disk is full") || told.contains("No space left")
        });
    }
    assert!(told(&world, &["repository", "list"]).contains(" Failed "));
    assert!(world.daemon_lives() && world.notes(&commit).get("launchway/default").is_none_or(|it| it.0 != "success"));
    assert_eq!(ready(&world), pod, "what runs keeps running");
    fs::remove_file(filling).unwrap();
    world.status(&commit, "launchway/default", "success");
    eventually("nothing is wrong", || told(&world, &["repository", "list"]).contains(" Ready "));
}

#[test]
fn code_that_does_not_fit_waits_and_says_so_while_the_old_version_serves() {
    let world = on_a_small_disk();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    eventually("a pod", || ready(&world) != 0);
    let pod = ready(&world);
    // Compressed it fits into the mirror; installed it does not.
    world.git.write("app/large", &"0".repeat(64 << 20));
    let container = "{name: main, image: 'git:app', command: [sleep, '1000']}";
    let large = config("web", "type: Recreate", container);
    let commit = world.git.push_files(&[("web.yaml", &large)]);
    let told = || world.notes(&commit).get("launchway/default").cloned().unwrap_or_default();
    eventually("the reason on the commit", || told().1.contains("No space left"));
    assert_eq!(told().0, "running");
    assert_eq!(ready(&world), pod, "version 1 serves");
    world.git.write("app/large", "small\n");
    world.deploy(&[("web.yaml", &large)], "success");
}

#[test]
fn a_disk_that_takes_nothing_ends_the_daemon_with_a_reason() {
    let world = World::new(&[]);
    world.git.push_files(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))]);
    world.start();
    let head = world.git.head();
    world.status(&head, "launchway/default", "success");
    let pod = world.pod_in("shop-default/web-1-0", "ready");
    world.stop();
    // No file may grow: what a full disk is to whoever writes.
    let script = "ulimit -f 0; trap '' XFSZ; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_launchway"), "serve", "--config"]).arg(world.config());
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).envs(world.git.environment());
    command.env("LAUNCHWAY_STATE", world.state());
    let full = command.output().unwrap();
    let told = complaint(&full);
    assert!(!full.status.success(), "{told}");
    assert!(told.contains("error:"), "{told}");
    world.start();
    assert_eq!(world.pod_in("shop-default/web-1-0", "ready"), pod, "what runs keeps running");
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "2"))], "success");
}
