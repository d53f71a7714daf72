//! From a push to its notes, and down and up again.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::Value;

use super::orders::{task, web};
use super::verbs::assert_refused;
use crate::support::daemon::{World, complaint, config, eventually, hook, repository, sleeper};

const SHIPYARD: &str = "\
apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shop}
spec:
  stages:
  - {name: dev, sequences: [{name: delivery, tasks: [{name: deployment}]}]}
  - name: production
    sequences:
    - {name: delivery, triggeredOn: [{event: dev.delivery.finished}], tasks: [{name: deployment}]}
";

/// A service in two stages with hooks that count.
fn two_stages(world: &World, version: &str) -> String {
    let count = |point: &str| {
        let file = world.git.path("hooks").display().to_string();
        hook(point, "Abort", &format!("echo {point} >> {file}; echo this is {point}"))
    };
    sleeper("web", &format!("type: Recreate, recreateParams: {{{}, {}}}", count("pre"), count("post")), version)
}

/// What the questions about a delivery are answered, with or without a daemon.
fn answers(world: &World, commit: &str) {
    assert_eq!(world.json(&["status", commit])["commit"], commit);
    assert_eq!(world.json(&["history", "web", "-s", "production"])["items"][0]["status"], "Complete");
    assert_eq!(world.json(&["get", "deployments"])["items"][1]["serving"]["version"], 1);
    assert_eq!(world.json(&["get", "repositories"])["items"][0]["applied"], commit);
    assert!(world.tell(&["why", "web", "-s", "dev"]).contains("waits for nothing"));
    let plan = world.run(&["plan", "work", "--from", "applied", "--exit-code"]);
    assert_eq!(plan.status.code(), Some(0), "after convergence: {}", complaint(&plan));
}

#[test]
fn a_push_runs_through_its_stages_and_is_told_on_the_commit() {
    let world = World::new(&[]);
    world.start();
    let commit = world.git.push_files(&[("shipyard.yaml", SHIPYARD), ("web.yaml", &two_stages(&world, "1"))]);
    world.status(&commit, "launchway/production", "success");
    for step in ["dev/web/pre", "dev/web/post", "production/web/pre", "production/web/post"] {
        world.status(&commit, &format!("launchway/{step}"), "success");
    }
    assert_eq!(world.lines("hooks"), ["pre", "post", "pre", "post"]);
    assert!(world.tell(&["logs", "dc/web", "-s", "dev"]).contains("this is pre"));
    answers(&world, &commit);
    world.stop();
    answers(&world, &commit);
}

#[test]
fn what_is_down_stays_down_until_up() {
    let world = World::new(&[]);
    world.configure(&repository("origin", &world.git.bare().display().to_string(), &[]));
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    world.tell(&["down"]);
    eventually("no process of a pod", || world.processes().is_empty());
    world.stop();
    world.start();
    world.tell(&["sync"]);
    assert!(world.processes().is_empty(), "nothing comes back by itself");
    world.stop();
    let up = world.run(&["up", "origin.git", "--once"]);
    assert_eq!(up.status.code(), Some(0), "{}", complaint(&up));
    eventually("a shim and its process", || world.processes().len() == 2);
    let told = world.notes(&world.git.head());
    assert_eq!(
        told["launchway/plan"].1, "default: 1 create",
        "looking again finds nothing to do, and takes nothing back"
    );
}

/// A service that takes a second to end.
fn lingering(name: &str) -> String {
    let script = r#"trap "sleep 1; exit" TERM; while sleep 0.1; do :; done"#;
    config(name, "type: Recreate", &format!("{{name: main, image: host, command: [sh, -c, '{script}']}}"))
}

#[test]
fn down_waits_for_the_end_also_if_the_daemon_ends_before() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &lingering("web"))], "success");
    let down = world.launchway().arg("down").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    world.pod_in("shop-default/web-1-0", "stopping");
    world.kill();
    let down = down.wait_with_output().unwrap();
    assert!(down.status.success(), "{}", complaint(&down));
    assert!(world.processes().is_empty(), "nothing is left");
}

#[test]
fn a_repository_goes_down_without_a_daemon_and_comes_up_again() {
    let world = World::new(&[]);
    world.git.push_files(&[("web.yaml", &lingering("web"))]);
    let up = world.run(&["up", "origin.git", "--once"]);
    assert_eq!(up.status.code(), Some(0), "{}", complaint(&up));
    let first = world.pod_in("origin-default/web-1-0", "ready");
    world.tell(&["down"]);
    assert!(world.processes().is_empty(), "down waits for the end of everything");
    assert_eq!(world.run(&["up", "origin.git", "--once"]).status.code(), Some(0));
    eventually("a shim and its process", || world.processes().len() == 2);
    assert!(!world.processes().contains(&i32::try_from(first).unwrap()));
}

#[test]
fn under_a_daemon_a_repository_that_is_down_takes_nothing_until_sync_brings_it_back() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    assert!(world.tell(&["down"]).contains("launchway sync shop --up"));
    eventually("no process of a pod", || world.processes().is_empty());
    let asked: [&[&str]; 5] = [
        &["rollout", "latest", "dc/web"],
        &["rollout", "retry", "dc/web"],
        &["rollout", "undo", "dc/web"],
        &["scale", "dc/web", "--replicas", "2"],
        &["trigger", "delivery", "-s", "default"],
    ];
    for arguments in asked {
        let refused = world.run(arguments);
        let told = complaint(&refused);
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}: {told}");
        assert!(told.contains("`shop` is down") && told.contains("launchway sync shop --up"), "{arguments:?}: {told}");
    }
    let commit = world.git.push_files(&[("web.yaml", &sleeper("web", "type: Recreate", "2"))]);
    let synced = world.tell(&["sync"]);
    assert!(synced.contains("down") && synced.contains(&commit[..7]) && synced.contains("--up"), "{synced}");
    assert!(world.tell(&["why", "web"]).contains("launchway sync shop --up"));
    // The Git that writes what the commit says of this ends; a pod would not.
    eventually("nothing comes back by itself", || world.processes().is_empty());
    assert_eq!(world.json(&["get", "pods"])["items"], serde_json::json!([]));
    assert!(world.tell(&["sync", "shop", "--up"]).contains("up again"));
    world.status(&commit, "launchway/default", "success");
    eventually("a shim and its process", || world.processes().len() == 2);
    assert_eq!(world.json(&["get", "deployments"])["items"][0]["serving"]["commit"], commit);
}

#[test]
fn any_repository_of_the_state_folder_can_be_taken_down() {
    let world = World::new(&[]);
    world.git.push_files(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))]);
    world.git.git_in(world.git.root(), &["clone", "--quiet", "--bare", "origin.git", "other.git"]);
    let (one, other) = (world.git.bare().display().to_string(), world.git.path("other.git").display().to_string());
    let watched = |name: &str, url: &str| repository(name, url, &[]);
    world.configure(&(watched("shop", &one) + &watched("other", &other)));
    world.start();
    eventually("a pod of each", || world.processes().len() == 4);
    world.stop();
    world.configure(&watched("shop", &one));
    world.start();
    let unclear = world.run(&["down"]);
    assert_eq!(unclear.status.code(), Some(2), "{}", complaint(&unclear));
    assert!(world.tell(&["down", "other"]).contains("launchway up"));
    assert_eq!(world.json(&["get", "pods"])["items"].as_array().map(Vec::len), Some(1), "only its own is left");
    // The Git that writes what a commit says ends; a pod would not.
    eventually("only its own", || world.processes().len() == 2);
    let unknown = world.run(&["down", "nowhere"]);
    assert_eq!(unknown.status.code(), Some(1), "{}", complaint(&unknown));
    let unwatched = world.run(&["sync", "other", "--up"]);
    assert!(complaint(&unwatched).contains("watched: shop"), "{}", complaint(&unwatched));
    world.stop();
    world.tell(&["down", "shop"]);
    assert!(world.processes().is_empty());
}

#[test]
fn up_once_says_how_the_head_ended() {
    let world = World::new(&[]);
    let failing = format!("type: Recreate, recreateParams: {{{}}}", hook("pre", "Abort", "echo no room; exit 3"));
    let commit = world.git.push_files(&[("web.yaml", &sleeper("web", &failing, "1"))]);
    let up = world.run(&["up", "origin.git", "--once"]);
    assert_eq!(up.status.code(), Some(1), "{}", complaint(&up));
    let told = world.status(&commit, "launchway/default/web/pre", "failure");
    assert!(told.contains('3'), "{told}");
    assert_eq!(world.json(&["get", "deployments"])["items"][0]["serving"], Value::Null);
    let missing = world.run(&["up", "nowhere.git", "--once"]);
    assert!(matches!(missing.status.code(), Some(2 | 3)), "{}", complaint(&missing));
}

#[test]
fn up_once_waits_for_the_head_that_it_was_started_on() {
    let world = World::new(&[]);
    let failing = format!("type: Recreate, recreateParams: {{{}}}", hook("pre", "Abort", "exit 3"));
    for (round, (strategy, code)) in
        [("type: Recreate", 0), (&failing, 1), ("type: Recreate", 0)].into_iter().enumerate()
    {
        let commit = world.git.push_files(&[("web.yaml", &sleeper("web", strategy, &round.to_string()))]);
        let up = world.run(&["up", "origin.git", "--once"]);
        let told = complaint(&up);
        assert_eq!(up.status.code(), Some(code), "{told}");
        assert!(told.contains(&commit[..7]), "{told}");
        let config = world.json(&["get", "deployments"])["items"][0].clone();
        assert_eq!(config["status"], if code == 0 { "Complete" } else { "Failed" }, "{config:#}");
        let statuses = world.notes(&commit);
        assert_eq!(statuses["launchway/default"].0, if code == 0 { "success" } else { "failure" }, "{statuses:#?}");
    }
}

#[test]
fn output_is_followed_while_it_comes_and_until_its_pods_end() {
    let world = World::new(&[]);
    world.start();
    let script = "n=0; while :; do n=$((n + 1)); echo line $n; sleep 0.02; done";
    let container = format!("{{name: main, image: host, command: [sh, -c, '{script}']}}");
    world.deploy(&[("web.yaml", &config("web", "type: Recreate", &container))], "success");
    let follow = world.launchway().args(["logs", "-f", "dc/web", "--bytes", "20"]).stdout(Stdio::piped()).spawn();
    let mut follow = follow.unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines().map(Result::unwrap);
    let number = |line: &str| line.strip_prefix("line ").and_then(|number| number.parse::<u32>().ok());
    let first = lines.find_map(|line| number(&line)).unwrap();
    let next: Vec<u32> = lines.by_ref().take(50).map(|line| number(&line).unwrap()).collect();
    assert_eq!(next, (first + 1..=first + 50).collect::<Vec<_>>());
    world.tell(&["scale", "dc/web", "--replicas", "0"]);
    assert!(lines.count() < 1000);
    assert!(follow.wait().unwrap().success());
}

#[test]
fn output_is_that_of_the_version_that_serves_or_is_attempted_unless_others_are_asked_for() {
    let world = World::new(&[]);
    world.start();
    let web = |script: &str| {
        let container = format!("{{name: main, image: host, command: [sh, -c, '{script}']}}");
        config("web", "type: Recreate", &container)
    };
    // What it prints is shown as it is, with its colours.
    for script in ["echo first; exec sleep 1000", r#"printf "\033[1msecond\033[0m\n"; echo last; exec sleep 1000"#] {
        world.deploy(&[("web.yaml", &web(script))], "success");
    }
    eventually("all output", || world.tell(&["logs", "dc/web"]) == "\x1b[1msecond\x1b[0m\nlast\n");
    assert_eq!(world.tell(&["logs", "dc/web", "--tail", "1"]), "last\n");
    assert_eq!(world.tell(&["logs", "dc/web", "--previous"]), "first\n");
    let all = world.tell(&["logs", "dc/web", "--all"]);
    assert_eq!(all, "[web-1-0] first\n[web-2-0] \x1b[1msecond\x1b[0m\n[web-2-0] last\n");
    assert_eq!(world.tell(&["logs", "dc/web", "--since", "1h"]), "\x1b[1msecond\x1b[0m\nlast\n");
    assert_eq!(world.tell(&["logs", "dc/web", "--since-time", "2100-01-01T00:00:00Z"]), "");
    let timed = world.tell(&["logs", "pod/web-2-0", "--timestamps", "--tail", "1"]);
    let (time, line) = timed.split_once(' ').unwrap();
    assert!(time.parse::<jiff::Timestamp>().is_ok() && line == "last\n", "{timed}");
    assert_refused(&world, &["logs", "pod/web-2-0", "--previous"], 2, &["was started again"]);
    assert_refused(&world, &["logs", "dc/web", "--since", "yesterday"], 2, &["30s, 5m or 2h"]);
    let fails = format!("type: Recreate, recreateParams: {{{}}}", hook("pre", "Abort", "echo third; exit 1"));
    world.deploy(&[("web.yaml", &sleeper("web", &fails, "3"))], "failure");
    let shown = world.tell(&["logs", "dc/web"]);
    assert!(shown.contains("second") && shown.contains("third\n") && !shown.contains("first"), "{shown}");
    assert_eq!(world.tell(&["logs", "dc/web", "--previous"]), "first\n");
}

#[test]
fn a_status_can_be_waited_for_before_the_push() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    let commit = world.git.commit_files(&[("web.yaml", &sleeper("web", "type: Recreate", "2"))]);
    let late = world.run(&["status", &commit, "--wait", "--timeout", "0"]);
    assert_eq!(late.status.code(), Some(1));
    assert!(complaint(&late).contains("is it pushed"), "{}", complaint(&late));
    let wait = world.launchway().args(["status", &commit, "--wait", "-o", "json"]).stdout(Stdio::piped()).spawn();
    world.git.push();
    let told = wait.unwrap().wait_with_output().unwrap();
    assert!(told.status.success());
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert!(told["statuses"].as_array().unwrap().iter().all(|status| status["state"] == "success"), "{told:#}");
}

#[test]
fn whoever_waits_for_a_push_waits_for_the_earlier_one_that_brings_what_it_declares() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    let may_end = world.git.path("may-end");
    let script = format!("until [ -e {} ]; do sleep 0.05; done; echo no room; exit 3", may_end.display());
    let failing = format!("type: Recreate, recreateParams: {{{}}}", hook("pre", "Abort", &script));
    let brings = world.git.push_files(&[("web.yaml", &sleeper("web", &failing, "2"))]);
    world.status(&brings, "launchway/default/web/pre", "running");
    let unrelated = world.git.push_files(&[("README.md", "Nothing that is deployed.\n")]);
    let told = world.status(&unrelated, "launchway/plan", "success");
    assert_eq!(told, format!("nothing to deploy that {} does not bring", &brings[..7]));
    let carried = || {
        let revision = world.json(&["status", &unrelated]);
        let carried = revision["statuses"].as_array().unwrap().iter().find(|status| status["commit"] == *brings);
        carried.map_or(Value::Null, |status| status["state"].clone())
    };
    assert_eq!(carried(), "running");
    let why = world.json(&["why", "dc/web"]);
    assert_eq!(why["waiting"], true, "{why:#}");
    let wait = world.launchway().args(["status", &unrelated, "--wait"]).stdout(Stdio::piped()).spawn().unwrap();
    std::fs::write(&may_end, "").unwrap();
    let told = wait.wait_with_output().unwrap();
    assert_eq!((told.status.code(), carried()), (Some(1), "failure".into()));
    let (told, place) = (String::from_utf8(told.stdout).unwrap(), format!("launchway/default ({})", &brings[..7]));
    assert!(told.lines().any(|line| line.starts_with("failure") && line.contains(&place)), "{told}");
}

/// The stages with a test in `dev`, which the shell script is.
fn tested(script: &str) -> [(&'static str, String); 2] {
    let shipyard = SHIPYARD.replacen("[{name: deployment}]", "[{name: deployment}, {name: test}]", 1);
    [("shipyard.yaml", shipyard), ("test.yaml", task("test", "host", script))]
}

fn pushed(world: &World, files: &[(&str, String)]) -> String {
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, &**text)).collect();
    world.git.push_files(&files)
}

#[test]
fn what_a_person_has_delivered_on_a_push_counts_instead_of_what_failed_before_it() {
    let world = World::new(&[]);
    world.start();
    let (may_end, passes) = (world.git.path("may-end"), world.git.path("passes"));
    let waits = format!("until [ -e {} ]; do sleep 0.05; done; test -e {}", may_end.display(), passes.display());
    let brings = pushed(&world, &[&tested(&waits)[..], &[("web.yaml", web("1"))]].concat());
    world.status(&brings, "launchway/dev/web/test", "running");
    let unrelated = pushed(&world, &[("README.md", "Nothing that is deployed.\n".to_owned())]);
    world.status(&unrelated, "launchway/plan", "success");
    std::fs::write(&may_end, "").unwrap();
    let wait = || world.run(&["status", &unrelated, "--wait", "--timeout", "60"]).status.code();
    assert_eq!(wait(), Some(1), "the test of the earlier one fails");
    std::fs::write(&passes, "").unwrap();
    world.tell(&["trigger", "delivery", "web", "-s", "dev"]);
    world.status(&unrelated, "launchway/production", "success");
    assert_eq!(wait(), Some(0));
}

#[test]
fn a_later_stage_is_not_taken_back_from_a_newer_push_by_an_earlier_one() {
    let world = World::new(&[]);
    world.start();
    let go = world.git.path("go");
    std::fs::write(&go, "").unwrap();
    let waits = tested(&format!("until [ -e {} ]; do sleep 0.05; done", go.display()));
    let first = pushed(&world, &[&waits[..], &[("web.yaml", web("1"))]].concat());
    world.status(&first, "launchway/production", "success");
    std::fs::remove_file(&go).unwrap();
    let second = pushed(&world, &[("web.yaml", web("2"))]);
    world.status(&second, "launchway/dev/web/test", "running");
    let renamed = SHIPYARD.replace("name: dev", "name: qa").replace("dev.delivery", "qa.delivery");
    let third = pushed(&world, &[("shipyard.yaml", renamed), ("web.yaml", web("3"))]);
    world.status(&third, "launchway/plan", "failure");
    world.tell(&["sync", "--allow-prune", &third]);
    world.status(&third, "launchway/production", "success");
    std::fs::write(&go, "").unwrap();
    world.status(&second, "launchway/dev", "success");
    assert!(world.status(&second, "launchway/production", "skipped").contains("superseded by"));
    let serves = || world.json(&["get", "deployments", "-s", "production"])["items"][0]["serving"]["commit"].clone();
    assert_eq!(serves(), *third);
    eventually("nothing is left to be done", || {
        world.run(&["plan", "work", "--from", "applied", "--exit-code"]).status.code() == Some(0)
    });
    assert_eq!(serves(), *third);
}
