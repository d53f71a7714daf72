//! What the program answers to what does not fit.

use std::fs;
use std::process::Stdio;

use crate::daemon_edges::access::me;
use crate::daemon_edges::verbs::{assert_refused, deployed, web};
use crate::support::daemon::{World, complaint, config, eventually, http};

#[test]
fn a_second_daemon_is_told_who_has_the_folder() {
    let world = World::new(&[]);
    world.start();
    let config = world.config().display().to_string();
    let (process, address) = (format!("process {} ", world.pid()), world.address());
    let said = ["another daemon uses state folder", &process, &address, "since 20"];
    assert_refused(&world, &["serve", "--config", &config], 3, &said);
}

#[test]
fn whoever_takes_down_what_another_brings_up_again_is_told_at_once() {
    let world = World::new(&[]);
    world.start();
    let script = "trap \"\" TERM; echo up; while :; do sleep 0.1; done";
    let stubborn = format!("{{name: main, image: host, command: [sh, -c, '{script}']}}");
    let stubborn = config("web", "type: Recreate", &stubborn).replace("PeriodSeconds: 5", "PeriodSeconds: 60");
    world.deploy(&[("web.yaml", &stubborn)], "success");
    eventually("the pod ignores what asks it to end", || world.tell(&["logs", "dc/web"]).contains("up"));
    let down = world.launchway().args(["down"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("it is down", || world.json(&["get", "repositories"])["items"][0]["status"] == "Down");
    assert_eq!(world.json(&["get", "deployments"])["items"][0]["status"], "Down");
    world.tell(&["sync", "--up"]);
    let told = down.wait_with_output().unwrap();
    assert_eq!(told.status.code(), Some(1), "{}", complaint(&told));
    let by = format!("shop was brought up again by {}", me());
    assert!(complaint(&told).contains(&by), "{}", complaint(&told));
    assert_eq!(world.json(&["get", "deployments"])["items"][0]["status"], "Complete");
}

#[test]
fn nobody_gets_more_replicas_than_a_machine_can_have() {
    let world = deployed();
    assert_refused(&world, &["scale", "dc/web", "--replicas", "1001"], 2, &["1001", "1000"]);
    assert_eq!(world.json(&["get", "deployments"])["items"][0]["desired"], 1);
    let commit = world.git.push_files(&[("web.yaml", &web("1").replace("replicas: 1", "replicas: 1001"))]);
    let told = world.status(&commit, "launchway/plan", "error");
    assert!(told.contains("web.yaml:5:13") && told.contains("between 0 and 1000, not 1001"), "{told}");
}

#[test]
fn what_is_named_in_short_is_told_how_it_is_named() {
    let world = deployed();
    assert_refused(&world, &["logs", "web-1-0"], 1, &["deployment config `web-1-0`", "launchway logs pod/web-1-0"]);
    assert_refused(&world, &["logs", "pod/web-9-0"], 1, &["no pod `web-9-0`", "launchway get pods"]);
    assert_refused(&world, &["describe", "run/web-1"], 1, &["no run `web-1`", "launchway get runs"]);
    assert_refused(&world, &["trigger", "delivery", "web", "-s", "live"], 1, &["no stage `live`"]);
    assert!(world.tell(&["trigger", "delivery", "web"]).contains("started 1"), "of one stage, nobody names it");
}

#[test]
fn a_file_that_is_too_large_is_named_with_what_may_be_set() {
    let world = World::new(&["limits: {manifest: 2KiB}"]);
    world.start();
    let large = format!("{}# {}\n", web("1"), "x".repeat(4096));
    let commit = world.git.push_files(&[("web.yaml", &large)]);
    let told = world.status(&commit, "launchway/plan", "error");
    let size = large.len().to_string();
    let said = ["web.yaml:1:1", &size, "2048", "limits: {manifest"];
    assert!(said.iter().all(|words| told.contains(words)), "{told}");
}

#[test]
fn only_a_copy_of_a_store_is_restored() {
    let world = World::new(&[]);
    fs::create_dir(world.git.path("folder")).unwrap();
    fs::write(world.git.path("text"), "not a store, and longer than its first bytes").unwrap();
    fs::write(world.git.path("empty"), "").unwrap();
    for file in ["folder", "text", "empty", "nothing"] {
        let path = world.git.path(file).display().to_string();
        assert_refused(&world, &["store", "restore", &path], 2, &[&path, "launchway store backup"]);
    }
    assert!(!world.state().exists(), "nothing was made for what is not restored");
}

#[test]
fn whoever_has_read_enough_may_close_the_pipe() {
    let world = deployed();
    let mut child =
        world.launchway().args(["get", "dc"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let told = child.wait_with_output().unwrap();
    assert_eq!((told.status.code(), complaint(&told)), (Some(0), String::new()));
}

#[test]
fn the_usage_names_what_is_required_and_nothing_else() {
    let world = World::new(&[]);
    assert_refused(&world, &["describe"], 2, &["Usage: launchway describe <TARGET>"]);
}

#[test]
fn a_browser_that_is_lost_is_shown_a_page() {
    let world = World::new(&[]);
    world.start();
    let ask = |path: &str, accept: &str| http(&world.address(), "GET", path, &[("accept", accept)], b"");
    let (status, page) = ask("/nowhere", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8");
    assert!(status == 404 && page.starts_with("<!doctype html>") && page.contains("nowhere"), "{status} {page}");
    for (path, accept) in [("/nowhere", "*/*"), ("/api/v1/nowhere", "text/html")] {
        let (status, problem) = ask(path, accept);
        assert!(status == 404 && problem.starts_with(r#"{"type":"about:blank""#), "{path}: {problem}");
    }
}
