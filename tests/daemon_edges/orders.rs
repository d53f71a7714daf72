//! What people ask for while something else is under way.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::support::daemon::{BY_HAND, World, complaint, eventually, hook, sleeper};

/// A delivery that ends with a test.
const TESTED: &str = "\
apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shop}
spec:
  stages:
  - {name: default, sequences: [{name: delivery, tasks: [{name: deployment}, {name: test}]}]}
";

pub(super) fn web(version: &str) -> String {
    sleeper("web", "type: Rolling", version)
}

/// A test that runs a shell script, out of the machine's own programs or of a folder of the revision.
fn test_task(image: &str, script: &str) -> String {
    task("test", image, script)
}

/// A task that runs a shell script.
pub(super) fn task(name: &str, image: &str, script: &str) -> String {
    format!(
        "apiVersion: launchway.dev/v1\nkind: Task\nmetadata: {{name: {name}}}\n\
         spec: {{image: '{image}', command: [sh, -c, '{script}']}}\n"
    )
}

fn only_config(world: &World) -> Value {
    world.json(&["get", "deployments", "web"])["items"][0].clone()
}

/// On the commit it is said only until the head is planned again, which then waits.
fn superseded_by_a_rollback(world: &World, commit: &str) {
    eventually("a rollback has superseded the delivery", || {
        let runs = world.json(&["get", "runs"]);
        let superseded = |run: &&Value| run["commit"] == commit && run["status"] == "superseded";
        let mut superseded = runs["items"].as_array().unwrap().iter().filter(superseded);
        superseded.any(|run| run["message"].as_str().unwrap_or_default().contains("rollback to version 1"))
    });
}

#[test]
fn a_rollback_waits_for_no_test() {
    let world = World::new(&[]);
    world.start();
    let passes = test_task("host", "exit 0");
    world.deploy(&[("shipyard.yaml", TESTED), ("test.yaml", &passes), ("web.yaml", &web("1"))], "success");
    let hangs = test_task("host", HANGS);
    let commit = world.git.push_files(&[("test.yaml", &hangs), ("web.yaml", &web("2"))]);
    world.status(&commit, "launchway/default/web/test", "running");
    world.tell(&["rollout", "undo", "dc/web"]);
    superseded_by_a_rollback(&world, &commit);
    eventually("the version of before serves", || only_config(&world)["serving"]["version"] == 3);
    let status = world.tell(&["rollout", "history", "dc/web"]);
    assert!(status.contains("rollback to version 1 by"), "{status}");
}

/// A delivery that begins with a check.
const CHECKED: &str = "\
apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shop}
spec:
  stages:
  - {name: default, sequences: [{name: delivery, tasks: [{name: check}, {name: deployment}]}]}
";

const HANGS: &str = "while :; do sleep 0.05; done";

#[test]
fn a_task_that_hangs_is_cancelled_and_the_fix_has_its_turn() {
    let world = World::new(&[]);
    world.start();
    let (hangs, passes) = (test_task("host", HANGS), test_task("host", "exit 0"));
    let hanging = world.git.push_files(&[("shipyard.yaml", TESTED), ("test.yaml", &hangs), ("web.yaml", &web("1"))]);
    world.status(&hanging, "launchway/default/web/test", "running");
    let fix = world.git.push_files(&[("test.yaml", &passes), ("web.yaml", &web("2"))]);
    let waits = world.status(&fix, "launchway/default/web", "pending");
    assert!(waits.contains(&hanging[..7]), "{waits}");
    let way_out = "`launchway rollout cancel dc/web -s default` ends it";
    let why = world.tell(&["why", "dc/web"]);
    assert!(why.contains("rollout cancel dc/web -s default` ends it"), "{why}");
    for verb in [["rollout", "retry", "dc/web"], ["rollout", "latest", "dc/web"], ["trigger", "delivery", "web"]] {
        let told = complaint(&world.run(&verb));
        assert!(told.contains(way_out) && !told.contains("ended badly"), "{verb:?}: {told}");
    }
    let told = world.tell(&["rollout", "cancel", "dc/web"]);
    assert!(told.contains(&format!("delivery of {} at `test`", &hanging[..7])), "{told}");
    let why = world.status(&hanging, "launchway/default/web", "cancelled");
    assert!(why.contains("cancelled by"), "{why}");
    world.status(&fix, "launchway/default/web", "success");
    assert!(world.tell(&["why", "dc/web"]).contains("waits for nothing"));
}

#[test]
fn a_task_before_the_first_deployment_is_cancelled_too() {
    let world = World::new(&[]);
    world.start();
    let (hangs, passes) = (task("check", "host", HANGS), task("check", "host", "exit 0"));
    let hanging = world.git.push_files(&[("shipyard.yaml", CHECKED), ("check.yaml", &hangs), ("web.yaml", &web("1"))]);
    world.status(&hanging, "launchway/default/web/check", "running");
    let fix = world.git.push_files(&[("check.yaml", &passes), ("web.yaml", &web("2"))]);
    world.status(&fix, "launchway/default/web", "pending");
    let why = world.tell(&["why", "dc/web"]);
    assert!(why.contains("rollout cancel dc/web -s default` ends it"), "{why}");
    assert!(world.tell(&["rollout", "cancel", "dc/web"]).contains("at `check`"));
    world.status(&hanging, "launchway/default/web", "cancelled");
    world.status(&fix, "launchway/default/web", "success");
    assert_eq!(world.run(&["rollout", "cancel", "dc/cart"]).status.code(), Some(1), "nothing is known of it");
}

#[test]
fn a_rollback_takes_the_place_of_a_rollout() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &web("1"))], "success");
    let hangs = hook("post", "Abort", "while :; do sleep 0.05; done");
    let strategy = format!("type: Rolling, rollingParams: {{{hangs}}}");
    let commit = world.git.push_files(&[("web.yaml", &sleeper("web", &strategy, "2"))]);
    eventually("the hook runs", || world.pod_folders().contains_key("shop-default/web-2-hook-post"));
    world.tell(&["rollout", "undo", "dc/web"]);
    superseded_by_a_rollback(&world, &commit);
    let told = world.tell(&["rollout", "history", "dc/web"]);
    assert!(told.contains("rollback to version 1 by"), "{told}");
}

#[test]
fn only_a_persons_hold_stops_a_scale_and_its_author_is_on_record() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &web("1"))], "success");
    world.deploy(&[("web.yaml", &web("2"))], "success");
    world.tell(&["rollout", "undo", "dc/web"]);
    assert_eq!(world.json(&["get", "holds"])["items"][0]["kind"], "rollback");
    world.tell(&["rollout", "status", "dc/web"]);
    world.tell(&["scale", "dc/web", "--replicas", "3"]);
    eventually("three pods", || only_config(&world)["ready"] == 3);

    let author = only_config(&world)["scaledBy"].as_str().unwrap().to_owned();
    let said = format!("scaled from 1 to 3 by {author}");
    for arguments in [["history", "dc/web"], ["events", "dc/web"]] {
        let told = world.tell(&arguments);
        assert!(told.contains(&said), "{arguments:?}: {told}");
    }
    assert!(world.tell(&["describe", "dc/web"]).contains(&format!("scaled by {author}")));
    let row = world.json(&["history", "dc/web"])["items"][2].clone();
    assert_eq!((&row["version"], &row["scalings"][0]["to"]), (&3.into(), &3.into()), "{row:#}");

    world.tell(&["hold", "dc/web", "--reason", "sale until monday"]);
    let refused = world.run(&["scale", "dc/web", "--replicas", "1"]);
    let told = complaint(&refused);
    assert_eq!(refused.status.code(), Some(1), "{told}");
    assert!(told.contains("sale until monday") && told.contains("launchway release"), "{told}");
    assert_eq!(only_config(&world)["desired"], 3);
}

#[test]
fn who_triggered_a_delivery_is_in_its_events_and_in_the_history() {
    let world = World::new(&[]);
    world.start();
    let commit = world.git.push_files(&[("shipyard.yaml", BY_HAND), ("web.yaml", &web("1"))]);
    world.status(&commit, "launchway/production", "success");
    world.tell(&["trigger", "delivery", "web", "-s", "spare"]);
    let history = || world.tell(&["rollout", "history", "dc/web", "-s", "spare"]);
    eventually("a version", || world.json(&["get", "dc", "web", "-s", "spare"])["items"][0]["serving"]["version"] == 1);
    assert!(history().contains("first deployment, triggered by "), "{}", history());
    let events = world.tell(&["events"]);
    assert!(events.contains("queued: push") && events.contains("queued: triggered by "), "{events}");
}

#[test]
fn a_plan_shows_what_is_held_and_a_release_says_first_what_it_lets_start() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &web("1"))], "success");
    let second = world.deploy(&[("web.yaml", &web("2"))], "success");
    world.tell(&["rollout", "undo", "dc/web"]);
    world.tell(&["rollout", "status", "dc/web"]);
    let id = world.json(&["get", "holds"])["items"][0]["id"].as_str().unwrap().to_owned();
    let work = world.git.work().display().to_string();
    let plan = world.json(&["plan", &work, "--from", "applied"]);
    let change = &plan["changes"][0];
    assert_eq!(change["decision"], "wait", "{plan:#}");
    assert!(change["cause"].as_str().unwrap().contains(&id), "{plan:#}");

    let starts = format!("default/web: deploy DeploymentConfig/web (config change) of {}", &second[..7]);
    let foretold = world.tell(&["release", "dc/web", "--dry-run"]);
    assert!(foretold.contains(&starts) && !foretold.contains("released"), "{foretold}");
    assert_eq!(only_config(&world)["serving"]["version"], 3, "nothing was done");
    let told = world.tell(&["release", &id[..id.len() - 1].to_lowercase()]);
    let (first, last) = (told.find(&starts), told.find("released"));
    assert!(first.is_some() && first < last, "{told}");
    eventually("what Git says serves", || only_config(&world)["serving"]["version"] == 4);
    assert!(world.json(&["get", "holds"])["items"].as_array().unwrap().is_empty());

    world.tell(&["hold", "-s", "default", "--reason", "audit"]);
    let third = world.git.push_files(&[("web.yaml", &web("3"))]);
    let plan = world.status(&third, "launchway/plan", "success");
    assert!(plan.contains("1 wait"), "{plan}");
    let shown = world.run(&["plan", &work, "--from", "applied", "--exit-code", "-o", "json"]);
    assert_eq!(shown.status.code(), Some(10), "its delivery waits: nothing of it is under way");
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let hold = world.json(&["get", "holds"])["items"][0]["id"].as_str().unwrap().to_owned();
    let change = &shown["changes"][0];
    assert!(change["decision"] == "wait" && change["cause"].as_str().unwrap().contains(&hold), "{shown:#}");
    let foretold = world.tell(&["release", "default", "--dry-run"]);
    assert!(foretold.contains(&format!("of {}", &third[..7])), "{foretold}");
    world.tell(&["release", "-s", "default"]);
    world.status(&third, "launchway/default", "success");
}

#[test]
fn what_a_file_pauses_goes_on_once_it_is_released_until_a_revision_says_otherwise() {
    let world = World::new(&[]);
    world.start();
    let paused = |version: &str| web(version).replace("replicas: 1", "replicas: 1\n  paused: true");
    let first = world.git.push_files(&[("web.yaml", &paused("1"))]);
    world.status(&first, "launchway/default", "pending");
    let told = world.tell(&["release", "dc/web"]);
    assert!(told.contains("default/web: create DeploymentConfig/web") && told.contains("goes on until"), "{told}");
    world.status(&first, "launchway/default", "success");
    assert!(world.json(&["get", "holds"])["items"].as_array().unwrap().is_empty());
    world.deploy(&[("web.yaml", &paused("2"))], "success");
    world.tell(&["rollout", "latest", "dc/web"]);
    eventually("a version by hand", || only_config(&world)["serving"]["version"] == 3);

    let unpaused = world.git.push_files(&[("web.yaml", &web("2"))]);
    world.status(&unpaused, "launchway/plan", "success");
    let again = world.git.push_files(&[("web.yaml", &paused("3"))]);
    let why = world.status(&again, "launchway/default", "pending");
    assert!(why.contains("paused"), "{why}");
    assert_eq!(world.json(&["get", "holds"])["items"][0]["kind"], "paused");
}

#[test]
fn a_test_whose_pod_does_not_start_in_time_ends_as_timed_out() {
    let world = World::new(&[]);
    let config = fs::read_to_string(world.config()).unwrap();
    fs::write(world.config(), config + "sequences: {taskStartTimeout: 1s}\n").unwrap();
    world.start();
    world.git.write_program(&world.git.work().join("slow/bin/build"), "#!/bin/sh\nwhile :; do sleep 0.05; done\n");
    let task = test_task("git:slow", "exit 0");
    let commit = world.git.push_files(&[("shipyard.yaml", TESTED), ("test.yaml", &task), ("web.yaml", &web("1"))]);
    let why = world.status(&commit, "launchway/default/web/test", "error");
    assert!(why.contains("timed out: it did not start within 1.0s") && why.contains("never started"), "{why}");
    let pods = world.pod_folders();
    assert!(!pods.keys().any(|pod| pod.contains("test")), "{pods:?}");
}

#[test]
fn a_test_that_runs_for_too_long_is_ended() {
    let world = World::new(&[]);
    let config = fs::read_to_string(world.config()).unwrap();
    fs::write(world.config(), config + "sequences: {taskTimeout: 1s}\n").unwrap();
    world.start();
    let task = test_task("host", "while :; do sleep 0.05; done");
    let commit = world.git.push_files(&[("shipyard.yaml", TESTED), ("test.yaml", &task), ("web.yaml", &web("1"))]);
    let why = world.status(&commit, "launchway/default/web/test", "failure");
    assert!(why.contains("took too long and was ended"), "{why}");
}

#[test]
fn a_revision_that_declares_nothing_deletes_nothing_until_a_person_allows_it() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &web("1"))], "success");
    let pod = world.pod_in("shop-default/web-1-0", "ready");
    fs::remove_file(world.git.work().join("web.yaml")).unwrap();
    let emptied = world.git.push_files(&[("README.md", "empty\n")]);
    let why = world.status(&emptied, "launchway/plan", "failure");
    assert!(why.contains("declares nothing") && why.contains("--allow-prune"), "{why}");
    assert_eq!(world.pod_in("shop-default/web-1-0", "ready"), pod);
    world.tell(&["sync", "--allow-prune", &emptied]);
    eventually("no process of a pod", || world.processes().is_empty());
}

/// The hook takes its time to end, so that everything is up again before it has.
#[test]
fn what_is_brought_up_while_it_is_taken_down_is_deployed_anew() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &web("1"))], "success");
    let go = world.git.path("go").display().to_string();
    let script = format!("trap : TERM; while [ ! -e {go} ]; do sleep 0.05; done");
    let strategy = format!("type: Rolling, rollingParams: {{{}}}", hook("pre", "Abort", &script));
    let commit = world.git.push_files(&[("web.yaml", &sleeper("web", &strategy, "2"))]);
    world.status(&commit, "launchway/default/web/pre", "running");
    let mut down =
        world.launchway().args(["down", "shop"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let is_down = || world.json(&["get", "repositories"])["items"][0]["status"] == "Down";
    eventually("the repository is down", is_down);
    world.tell(&["sync", "shop", "--up"]);
    fs::write(go, "").unwrap();
    world.status(&commit, "launchway/default", "success");
    down.kill().unwrap();
    down.wait().unwrap();
    eventually("what was pushed serves", || only_config(&world)["serving"]["commit"] == commit.as_str());
}
