//! Each thing that can be wrong has a clear error that says what to do, and nothing is lost by it.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::daemon::{World, complaint, config, eventually, hook, repository, sleeper};

fn problem(world: &World) -> String {
    world.json(&["get", "repositories"])["items"][0]["problem"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_repository_that_cannot_be_read_says_why() {
    let cases = [
        ("http://127.0.0.1:9/shop.git", "127.0.0.1:9"),
        ("/nowhere/shop.git", "/nowhere/shop.git"),
        ("EMPTY", "no commits yet"),
    ];
    for (url, expected) in cases {
        let world = World::new(&[]);
        let bare = world.git.bare().display().to_string();
        world.configure(&repository("shop", if url == "EMPTY" { &bare } else { url }, &[]));
        world.start();
        eventually(&format!("a problem with {url}"), || !problem(&world).is_empty());
        let told = problem(&world);
        assert!(told.contains(expected), "{url}: {told}");
        let sync = world.run(&["sync"]);
        assert!(!sync.status.success() && complaint(&sync).contains(expected), "{}", complaint(&sync));
    }
}

#[test]
fn what_cannot_be_started_fails_with_its_reason_and_the_old_version_serves() {
    let archive = "file:///nowhere/app.tar.gz@sha256:".to_owned() + &"0".repeat(64);
    let container = |image: &str, command: &str| format!("{{name: main, image: '{image}', command: [{command}]}}");
    let cases = [
        ("missing launchable", container("git:nowhere", "sleep, '1000'"), "nowhere"),
        ("missing archive", container(&archive, "sleep, '1000'"), "/nowhere/app.tar.gz"),
        ("does not build", container("git:app", "sleep, '1000'"), "bin/build"),
        ("no such command", container("host", "no-such-command"), "no-such-command"),
    ];
    for (name, container, expected) in cases {
        let world = World::new(&[]);
        world.start();
        world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
        world.git.write("app/bin/build", "#!/bin/sh\necho no compiler here >&2\nexit 4\n");
        std::fs::set_permissions(world.git.work().join("app/bin/build"), PermissionsExt::from_mode(0o755)).unwrap();
        let strategy = "type: Recreate, recreateParams: {timeoutSeconds: 3}";
        let commit = world.git.push_files(&[("web.yaml", &config("web", strategy, &container))]);
        eventually(&format!("{name} is told"), || {
            let notes = world.notes(&commit);
            notes.values().any(|(state, _)| state == "failure" || state == "error")
        });
        let notes = world.notes(&commit);
        assert!(notes.values().any(|(_, why)| why.contains(expected)), "{name}: {notes:#?}");
        eventually(&format!("version 1 serves after {name}"), || {
            let pods = world.json(&["get", "pods"])["items"].as_array().cloned().unwrap_or_default();
            pods.iter().any(|pod| pod["version"] == 1 && pod["status"] == "Ready")
        });
    }
}

#[test]
fn a_hook_that_hangs_is_ended_and_one_that_floods_is_bounded() {
    let world = World::new(&[]);
    world.start();
    let hang = hook("pre", "Abort", "sleep 1000").replace("failurePolicy", "timeoutSeconds: 1, failurePolicy");
    let strategy = format!("type: Recreate, recreateParams: {{{hang}}}");
    let commit = world.deploy(&[("web.yaml", &sleeper("web", &strategy, "1"))], "failure");
    world.status(&commit, "launchway/default/web/pre", "failure");
    eventually("the hook's processes ended", || world.processes().is_empty());

    let flood = hook("pre", "Abort", "head -c 100000000 /dev/zero | tr '\\0' x; exit 5");
    let strategy = format!("type: Recreate, recreateParams: {{{flood}}}");
    let commit = world.deploy(&[("web.yaml", &sleeper("web", &strategy, "2"))], "failure");
    world.status(&commit, "launchway/default/web/pre", "failure");
    let used = Command::new("du").args(["-s", "-B1"]).arg(world.state()).output().unwrap();
    let used = String::from_utf8(used.stdout).unwrap();
    let bytes: u64 = used.split_whitespace().next().unwrap().parse().unwrap();
    assert!(bytes < 64 << 20, "the state folder holds {bytes} bytes");
}

#[test]
fn a_second_daemon_on_the_same_state_is_refused() {
    let world = World::new(&[]);
    world.start();
    let config = world.config().display().to_string();
    let second = world.run(&["serve", "--config", &config]);
    let told = complaint(&second);
    assert_eq!(second.status.code(), Some(3), "{told}");
    assert!(told.contains("another daemon uses state folder") && told.contains("--state"), "{told}");
    assert!(world.daemon_lives());
}

#[test]
fn an_address_in_use_is_told() {
    let world = World::new(&[]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let text = std::fs::read_to_string(world.config()).unwrap().replace("127.0.0.1:0", &listen);
    std::fs::write(world.config(), text).unwrap();
    let refused = world.run(&["serve", "--config", &world.config().display().to_string()]);
    let told = complaint(&refused);
    assert_eq!(refused.status.code(), Some(3), "{told}");
    assert!(told.contains(&listen) && told.contains("listen"), "{told}");
}

#[test]
fn a_state_folder_that_cannot_be_written_is_told() {
    let world = World::new(&[]);
    // A file in the folder's place refuses root too, whom permissions do not stop.
    std::fs::write(world.git.path("file"), "").unwrap();
    let state = world.git.path("file/state").display().to_string();
    let refused = world.run(&["serve", "--config", &world.config().display().to_string(), "--state", &state]);
    let told = complaint(&refused);
    assert_eq!(refused.status.code(), Some(3), "{told}");
    assert!(told.contains("cannot use state folder") && told.contains(&state), "{told}");
}

#[test]
fn a_full_disk_loses_nothing() {
    let world = World::new(&[]);
    world.git.push_files(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))]);
    world.start();
    let head = world.git.head();
    world.status(&head, "launchway/default", "success");
    let pod = world.pod_in("shop-default/web-1-0", "ready");
    world.stop();
    // No file may grow: what a full disk is to whoever writes, without a file system of its own.
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
