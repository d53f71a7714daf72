//! Sequences that other sequences start.

use super::orders::{task, web};
use crate::support::daemon::{World, eventually};

/// `dev` delivers and tests; then `report` mails, and lets production go on, or `alarm` rings.
const REPORTED: &str = "\
apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shop}
spec:
  stages:
  - name: dev
    sequences:
    - {name: delivery, tasks: [{name: deployment}, {name: test}]}
    - {name: report, triggeredOn: [{event: dev.delivery.finished}], tasks: [{name: mail}]}
    - name: alarm
      triggeredOn: [{event: dev.delivery.finished, selector: {match: {result: fail}}}]
      tasks: [{name: ring}]
  - name: production
    sequences:
    - {name: delivery, triggeredOn: [{event: dev.report.finished}], tasks: [{name: deployment}]}
";

/// A task that leaves a line when it runs, and ends as told.
fn noted(world: &World, name: &str, exit: u8) -> String {
    task(name, "host", &format!("echo {name} >> {}; exit {exit}", world.git.path("done").display()))
}

fn push(world: &World, version: &str, test: &str, mail: &str) -> String {
    let ring = noted(world, "ring", 0);
    let files = [("test.yaml", test), ("mail.yaml", mail), ("ring.yaml", &ring), ("web.yaml", &web(version))];
    world.git.push_files(&[&[("shipyard.yaml", REPORTED)], &files[..]].concat())
}

#[test]
fn the_end_of_a_sequence_starts_others_and_what_waits_for_them() {
    let world = World::new(&[]);
    world.start();
    let commit = push(&world, "1", &noted(&world, "test", 0), &noted(&world, "mail", 0));
    world.status(&commit, "launchway/production", "success");
    world.status(&commit, "launchway/dev/web/report.mail", "success");
    assert_eq!(world.lines("done"), ["test", "mail"]);

    let refused = push(&world, "2", &noted(&world, "test", 1), &noted(&world, "mail", 0));
    world.status(&refused, "launchway/dev/web/test", "failure");
    world.status(&refused, "launchway/dev/web/alarm.ring", "success");
    let why = world.status(&refused, "launchway/production", "skipped");
    assert!(why.contains("never reached"), "{why}");
    assert_eq!(world.lines("done"), ["test", "mail", "test", "ring"]);
    assert_eq!(world.json(&["get", "dc", "web", "-s", "production"])["items"][0]["serving"]["version"], 1);
}

#[test]
fn a_sequence_that_another_one_started_runs_once_although_the_daemon_dies() {
    let world = World::new(&[]);
    world.start();
    let done = world.git.path("done").display().to_string();
    let waits = format!("echo mail >> {done}; while [ ! -e {done}.go ]; do sleep 0.05; done");
    let commit = push(&world, "1", &noted(&world, "test", 0), &task("mail", "host", &waits));
    eventually("the report mails", || world.lines("done").contains(&"mail".to_owned()));
    world.kill();
    std::fs::write(format!("{done}.go"), "").unwrap();
    world.start();
    world.status(&commit, "launchway/production", "success");
    assert_eq!(world.lines("done"), ["test", "mail"]);
}
