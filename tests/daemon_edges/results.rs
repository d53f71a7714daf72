//! What the pods of tasks write of how they went.

use serde_json::Value;

use super::orders::task;
use crate::support::daemon::{World, eventually};

/// A test, what reads of it, and what starts by its score.
const SHIPYARD: &str = "\
apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shop}
spec:
  stages:
  - name: dev
    sequences:
    - {name: check, tasks: [{name: test}, {name: release}]}
  - name: production
    sequences:
    - name: praise
      triggeredOn: [{event: dev.test.finished, selector: {match: {result: warning, test.score: '97.5'}}}]
      tasks: [{name: mail}]
";

/// A daemon with a test that runs a script.
fn shop(world: &World, script: &str) -> String {
    world.start();
    let files = [("shipyard.yaml", SHIPYARD), ("test.yaml", &task("test", "host", script)), ("mail.yaml", MAIL)];
    let commit = world.git.push_files(&files);
    world.status(&commit, "launchway/plan", "success");
    commit
}

const MAIL: &str = "\
apiVersion: launchway.dev/v1
kind: Task
metadata: {name: mail}
spec: {image: host, command: ['true']}
";

fn check(world: &World) {
    world.tell(&["trigger", "sequence", "check", "cart", "-s", "dev"]);
}

/// The events that were told, newest first.
fn events(world: &World, kind: &str) -> Vec<Value> {
    let path = format!("/api/v1/event?type=sh.keptn.event.{kind}&pageSize=100");
    let told = crate::support::daemon::http(&world.address(), "GET", &path, &[], b"").1;
    let told: Value = serde_json::from_str(&told).unwrap();
    told["events"].as_array().unwrap().clone()
}

#[test]
fn a_result_reaches_commit_events_tasks_and_selectors_although_the_daemon_dies_meanwhile() {
    let world = World::new(&[]);
    let (began, go) = (world.git.path("began"), world.git.path("go"));
    let script = format!(
        "echo > {}; while [ ! -f {} ]; do sleep 0.05; done; \
         echo \"{{\\\"result\\\": \\\"warning\\\", \\\"message\\\": \\\"slow\\\", \\\"test\\\": {{\\\"score\\\": 97.5}}}}\" \
         > $LAUNCHWAY_RESULT",
        began.display(),
        go.display()
    );
    let commit = shop(&world, &script);
    check(&world);
    eventually("the test has begun", || began.exists());
    world.kill();
    std::fs::write(&go, "").unwrap();
    eventually("the test has ended", || {
        world.pod_folders().values().any(|dir| {
            let status = std::fs::read_to_string(dir.join("status.json")).unwrap_or_default();
            serde_json::from_str::<Value>(&status).is_ok_and(|status| status["phase"] == "ended")
        })
    });
    world.start();
    assert_eq!(world.status(&commit, "launchway/dev/cart/check.test", "success"), "slow");
    world.status(&commit, "launchway/production/cart/praise.mail", "success");
    eventually("the next task is offered", || !events(&world, "release.triggered").is_empty());
    let offered = &events(&world, "release.triggered")[0]["data"];
    assert_eq!((&offered["test"]["score"], &offered["result"]), (&97.5.into(), &"warning".into()));
    let finished = events(&world, "test.finished");
    assert_eq!(finished.len(), 1, "{finished:#?}");
    assert_eq!((&finished[0]["data"]["message"], &finished[0]["source"]), (&"slow".into(), &"launchway".into()));
}

#[test]
fn what_cannot_be_used_fails_the_task_and_says_what_to_do() {
    let world = World::new(&[]);
    let commit = shop(&world, "echo passed > $LAUNCHWAY_RESULT");
    check(&world);
    let told = world.status(&commit, "launchway/dev/cart/check.test", "error");
    assert!(told.contains("LAUNCHWAY_RESULT") && told.contains("is no JSON"), "{told}");
    let finished = &events(&world, "test.finished")[0]["data"];
    assert_eq!((&finished["status"], &finished["result"]), (&"errored".into(), &"fail".into()));
}
