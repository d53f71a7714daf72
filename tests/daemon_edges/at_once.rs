//! Several people, and a push, that want the same service at the same time.

use std::collections::BTreeSet;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::support::daemon::{BY_HAND, World, complaint, eventually, sleeper};

const ROUNDS: usize = 20;

/// Starts commands at the same time and waits for their ends.
fn at_once<const N: usize>(world: &World, commands: [&[&str]; N]) -> [Output; N] {
    let start = |arguments: &[&str]| {
        let mut command = world.launchway();
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    commands.map(start).map(|child| child.wait_with_output().unwrap())
}

fn runs(world: &World) -> Vec<Value> {
    let answer = world.json(&["get", "runs", "--limit", "1000"]);
    answer["items"].as_array().unwrap().clone()
}

fn no_run_is_open(world: &World) {
    eventually("the end of every run", || runs(world).iter().all(|run| run["endedAt"].is_string()));
}

/// Asserts that in no stage a rollout began before the one before it had ended.
fn assert_one_after_the_other(world: &World) {
    let all = runs(world);
    let stages: BTreeSet<&str> = all.iter().filter_map(|run| run["stage"].as_str()).collect();
    for stage in stages {
        assert_one_after_the_other_in(stage, &all);
    }
}

fn assert_one_after_the_other_in(stage: &str, all: &[Value]) {
    let chosen = |run: &&Value| run["kind"] == "deployment" && run["stage"] == stage;
    let mut deployments: Vec<&Value> = all.iter().filter(chosen).collect();
    let moment = |run: &Value, key: &str| run[key].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    deployments.sort_by_key(|run| moment(run, "createdAt"));
    for pair in deployments.windows(2) {
        assert!(moment(pair[0], "endedAt") <= moment(pair[1], "createdAt"), "{pair:#?}");
    }
}

fn serves(world: &World) -> (Value, Value) {
    let config = world.json(&["get", "deployments", "web"])["items"][0].clone();
    (config["serving"]["version"].clone(), config["latestVersion"].clone())
}

#[test]
fn of_two_rollouts_asked_for_at_once_one_is_refused_with_a_reason() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    let mut refused = 0;
    for round in 1..=ROUNDS {
        let before = runs(&world).len();
        let latest: &[&str] = &["rollout", "latest", "dc/web"];
        let answers = at_once(&world, [latest, latest]);
        no_run_is_open(&world);
        let taken = answers.iter().filter(|answer| answer.status.success()).count();
        assert!(taken > 0, "round {round}: {}", answers.each_ref().map(complaint).concat());
        for answer in answers.iter().filter(|answer| !answer.status.success()) {
            refused += 1;
            let told = complaint(answer);
            assert_eq!(answer.status.code(), Some(1), "{told}");
            assert!(told.contains("already in progress") && told.contains("rollout cancel"), "round {round}: {told}");
        }
        assert_eq!(runs(&world).len() - before, 2 * taken, "a sequence and a deployment for each that was taken");
        assert_one_after_the_other(&world);
        let (serving, latest) = serves(&world);
        assert_eq!(serving, latest, "round {round}");
    }
    assert!(refused > 0, "they never met in {ROUNDS} rounds");
}

#[test]
fn a_push_has_the_last_word_over_a_rollout_asked_for_at_the_same_time() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "0"))], "success");
    for round in 1..=ROUNDS {
        let commit = world.git.commit_files(&[("web.yaml", &sleeper("web", "type: Recreate", &round.to_string()))]);
        let mut latest = world.launchway();
        let mut latest = || {
            let command = latest.args(["rollout", "latest", "dc/web"]).stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().unwrap()
        };
        let answer = if round % 2 == 0 {
            let latest = latest();
            world.git.push();
            latest
        } else {
            world.git.push();
            latest()
        };
        let answer = answer.wait_with_output().unwrap();
        let told = complaint(&answer);
        assert!(
            answer.status.success() || told.contains("already in progress") || told.contains("comes first"),
            "{told}"
        );
        world.status(&commit, "launchway/default", "success");
        no_run_is_open(&world);
        assert_one_after_the_other(&world);
        let config = world.json(&["get", "deployments", "web"])["items"][0].clone();
        assert_eq!(config["serving"]["commit"], commit, "round {round}: {config:#}");
        assert_eq!(config["attempted"], Value::Null, "round {round}: {config:#}");
    }
}

#[test]
fn what_is_triggered_while_its_repository_goes_down_does_not_run_on() {
    let world = World::new(&[]);
    world.git.write("shipyard.yaml", BY_HAND);
    world.start();
    for round in 1..=ROUNDS / 2 {
        let commit = world.git.push_files(&[("web.yaml", &sleeper("web", "type: Recreate", &round.to_string()))]);
        world.status(&commit, "launchway/production", "success");
        let trigger: &[&str] = &["trigger", "delivery", "-s", "spare"];
        let down: &[&str] = &["down", "shop"];
        let [triggered, down] = match round % 2 {
            0 => at_once(&world, [trigger, down]),
            _ => {
                let [down, triggered] = at_once(&world, [down, trigger]);
                [triggered, down]
            }
        };
        assert!(down.status.success(), "round {round}: {}", complaint(&down));
        let told = complaint(&triggered);
        let refused = !triggered.status.success();
        assert!(!refused || told.contains("is down") && told.contains("--up"), "round {round}: {told}");
        no_run_is_open(&world);
        eventually("no process of a pod", || world.processes().is_empty());
        assert_one_after_the_other(&world);
        world.tell(&["sync", "shop", "--up"]);
        no_run_is_open(&world);
        let serving = |config: &Value| config["serving"].is_object();
        let configs = world.json(&["get", "deployments"]);
        let pods = configs["items"].as_array().unwrap().iter().filter(|config| serving(config)).count();
        assert!(pods >= 2, "round {round}: {configs:#}");
        eventually("what served serves again", || world.processes().len() == 2 * pods);
    }
}

#[test]
fn a_delivery_that_is_triggered_while_a_push_arrives_is_of_one_revision_or_the_other() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "0"))], "success");
    for round in 1..=ROUNDS {
        let commit = world.git.commit_files(&[("web.yaml", &sleeper("web", "type: Recreate", &round.to_string()))]);
        let mut trigger = world.launchway();
        trigger.args(["trigger", "delivery", "web"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        world.git.push();
        let answer = trigger.spawn().unwrap().wait_with_output().unwrap();
        let told = complaint(&answer);
        assert!(answer.status.success() || told.contains("under way already"), "round {round}: {told}");
        world.status(&commit, "launchway/default", "success");
        no_run_is_open(&world);
        assert_one_after_the_other(&world);
    }
}
