//! Events that come in over HTTP, and executors that do tasks.

use std::process::Output;

use serde_json::{Value, json};

use super::orders::{task, web};
use crate::support::daemon::{World, complaint, eventually, http};

/// Everything is done by executors but what a person decides; production follows with the same revision.
const SHIPYARD: &str = "\
apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shop}
spec:
  stages:
  - name: dev
    sequences:
    - name: delivery
      tasks:
      - {name: deployment, properties: {deploymentstrategy: direct}}
      - {name: test, properties: {teststrategy: functional}}
      - {name: approval, properties: {pass: automatic, warning: manual}}
    - name: rollback
      triggeredOn: [{event: dev.delivery.finished, selector: {match: {result: fail}}}]
      tasks: [{name: rollback}]
    - name: remediation
      triggeredOn: [{event: dev.problem.open, selector: {match: {problem.kind: slow}}}]
      tasks: [{name: get-action}]
  - name: production
    sequences:
    - {name: delivery, triggeredOn: [{event: dev.delivery.finished}], tasks: [{name: release}]}
";

/// A daemon that has seen the shipyard, and nothing else.
pub(super) struct Shop {
    pub(super) world: World,
    commit: String,
}

impl Shop {
    fn new() -> Self {
        Self::of(SHIPYARD)
    }

    /// A daemon that has seen another one.
    pub(super) fn of(shipyard: &str) -> Self {
        let world = World::new(&[]);
        world.start();
        let commit = world.git.push_files(&[("shipyard.yaml", shipyard)]);
        world.status(&commit, "launchway/plan", "success");
        Self { world, commit }
    }

    pub(super) fn call(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let token = std::fs::read_to_string(self.world.state().join("operator-token")).unwrap();
        let headers = [("content-type", "application/json"), ("x-token", token.trim())];
        let (code, text) = http(&self.world.address(), method, path, &headers, body.to_string().as_bytes());
        (code, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    fn send(&self, id: &str, kind: &str, more: &Value) -> (u16, Value) {
        let mut event = json!({
            "specversion": "1.0", "id": id, "source": "ci", "type": format!("sh.keptn.event.{kind}"),
            "data": {"project": "shop", "stage": "dev", "service": "cart"},
        });
        for (key, value) in more.as_object().unwrap() {
            event[key] = value.clone();
        }
        self.call("POST", "/api/v1/event", &event)
    }

    /// What executors may take of a task, once there is something.
    fn offered(&self, task: &str) -> Value {
        let path = format!("/api/controlPlane/v1/event/triggered/sh.keptn.event.{task}.triggered");
        let events = || self.call("GET", &path, &Value::Null).1["events"].clone();
        eventually(&format!("`{task}` is offered"), || events().as_array().is_some_and(|it| !it.is_empty()));
        events()[0].clone()
    }

    /// An executor does a task.
    fn execute(&self, task: &str, result: &str) {
        let offered = self.offered(task);
        let id = offered["id"].as_str().unwrap();
        let scope = |more: Value| {
            let mut data = json!({"project": "shop", "stage": offered["data"]["stage"], "service": "cart"});
            more.as_object().unwrap().iter().for_each(|(key, value)| data[key] = value.clone());
            json!({"triggeredid": id, "data": data})
        };
        let (code, _) = self.send(&format!("{id}-s"), &format!("{task}.started"), &scope(json!({})));
        assert_eq!(code, 200);
        let done = json!({"result": result, "status": "succeeded", task: {"by": "us"}});
        let (code, answer) = self.send(&format!("{id}-f"), &format!("{task}.finished"), &scope(done));
        assert_eq!((code, &answer["keptnContext"]), (200, &offered["shkeptncontext"]));
    }

    pub(super) fn states(&self) -> Value {
        self.call("GET", "/api/controlPlane/v1/sequence/shop", &Value::Null).1["states"].clone()
    }
}

#[test]
fn keptns_api_tells_what_there_is_and_makes_up_nothing() {
    let shop = Shop::new();
    let call =
        |method: &str, path: &str, body: &Value| shop.call(method, &format!("/api/controlPlane/v1/{path}"), body);
    let get = |path: &str| call("GET", path, &Value::Null);
    assert_eq!(get("project/shop").1["shipyardVersion"], "spec.keptn.sh/0.2.3");
    assert_eq!((get("sequence/shop").0, shop.states()), (200, json!([])));
    for path in ["project/nope", "sequence/nope"] {
        let (code, problem) = get(path);
        assert_eq!((code, &problem["detail"]), (404, &json!("no repository declares project `nope`")), "{path}");
    }

    let (code, answer) = shop.send("e1", "dev.evaluation.triggered", &json!({"shkeptncontext": "c1"}));
    assert_eq!(code, 200, "{answer}");
    shop.offered("evaluation");
    assert_eq!(call("POST", "sequence/shop/c1/control", &json!({"state": "abort"})).0, 200);
    eventually("it is aborted", || shop.states()[0]["state"] == "aborted");
    let stage = &shop.states()[0]["stages"][0];
    assert_eq!((&stage["state"], &stage["latestEvaluation"]), (&json!("aborted"), &Value::Null), "{stage}");
}

#[test]
fn executors_deliver_a_service_through_all_stages_although_the_daemon_dies_between_any_two_events() {
    let shop = Shop::new();
    let again = || {
        shop.world.kill();
        shop.world.start();
    };
    let (code, answer) = shop.send("e1", "dev.delivery.triggered", &json!({"shkeptncontext": "c1"}));
    assert_eq!((code, &answer["keptnContext"]), (200, &json!("c1")));
    again();
    shop.execute("deployment", "pass");
    assert_eq!(shop.offered("test")["data"]["deployment"], json!({"deploymentstrategy": "direct", "by": "us"}));
    again();
    shop.execute("test", "warning");
    again();
    shop.world.status(&shop.commit, "launchway/dev/cart/delivery.approval", "running");
    let other: Output = shop.world.run(&["approve", "cart", "-s", "dev", "--revision", "abcdef0"]);
    let refused = complaint(&other);
    assert!(other.status.code() == Some(1) && refused.contains("waits for approval, and not abcdef0"), "{refused}");
    let told = shop.world.tell(&["approve", "cart", "-s", "dev", "--reason", "looks good"]);
    assert!(told.contains("shop/dev/cart approved: "), "{told}");
    shop.execute("release", "pass");
    shop.world.status(&shop.commit, "launchway/production/cart", "success");
    let told = shop.world.status(&shop.commit, "launchway/dev/cart/delivery.approval", "success");
    assert!(told.contains("looks good"), "{told}");
    let states = shop.states();
    assert_eq!(states.as_array().unwrap().len(), 1, "{states:#}");
    assert_eq!((&states[0]["state"], &states[0]["shkeptncontext"]), (&json!("finished"), &json!("c1")));
    let (_, events) = shop.call("GET", "/api/v1/event?keptnContext=c1&pageSize=100", &Value::Null);
    let kinds: Vec<&str> =
        events["events"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds.iter().filter(|kind| kind.ends_with(".release.finished")).count(), 1, "{kinds:?}");
    assert_eq!(kinds.first(), Some(&"sh.keptn.event.production.delivery.finished"));
    let place = |kind: &str| kinds.iter().position(|it| it.strip_prefix("sh.keptn.event.") == Some(kind));
    let (next, before) = (place("production.delivery.triggered"), place("dev.delivery.finished"));
    assert_eq!(next.map(|next| next < before.unwrap()), Some(true), "newest first, also at once: {kinds:?}");
}

#[test]
fn an_empty_parameter_is_no_filter_and_a_state_that_is_none_is_refused() {
    let shop = Shop::new();
    shop.send("e1", "dev.delivery.triggered", &json!({"shkeptncontext": "c1"}));
    shop.offered("deployment");
    let get = |path: &str| shop.call("GET", path, &Value::Null);
    let open = "/api/controlPlane/v1/event/triggered/sh.keptn.event.deployment.triggered";
    for (path, empty, none) in [
        ("/api/v1/event", "project=&stage=&service=&type=&source=&keptnContext=&eventID=&fromTime=", "project=bank"),
        (open, "service=&project=&pageSize=", "service=web"),
        ("/api/controlPlane/v1/sequence/shop", "state=&name&keptnContext=&beforeTime=", "state=finished"),
    ] {
        let all = get(path);
        assert!(all.1["totalCount"].as_u64().is_some_and(|count| count > 0), "{path}: {}", all.1);
        assert_eq!(get(&format!("{path}?{empty}")), all);
        let filtered = get(&format!("{path}?{empty}&pageSize=1&{none}")).1;
        assert_eq!(filtered["totalCount"], 0, "{path} {none}");
    }
    let started = get("/api/controlPlane/v1/sequence/shop?name=delivery&state=started").1;
    assert_eq!(started["states"][0]["shkeptncontext"], "c1", "{started}");
    let (code, problem) = get("/api/controlPlane/v1/sequence/shop?state=bogus");
    assert_eq!(code, 400, "{problem}");
    for path in ["/api/v1/event", open, "/api/controlPlane/v1/sequence/shop"] {
        assert_eq!(get(&format!("{path}?nextPageKey=0")).0, 200, "{path}");
        let (code, problem) = get(&format!("{path}?nextPageKey=abc"));
        assert!(code == 400 && problem["detail"] == "`abc` is no key of a page", "{path}: {code} {problem}");
    }
    for body in [json!({}), json!({"state": 5}), json!({"state": "stop"})] {
        let (code, problem) = shop.call("POST", "/api/controlPlane/v1/sequence/shop/c1/control", &body);
        assert_eq!(code, 400, "{body}: {problem}");
    }
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("`bogus`") && detail.contains("`started`, `paused`, `waitingForApproval`"), "{detail}");
}

#[test]
fn an_event_has_its_effect_once_and_one_that_comes_late_or_is_about_nothing_has_none_and_says_why() {
    let shop = Shop::new();
    let first = shop.send("e1", "dev.delivery.triggered", &json!({}));
    let second = shop.send("e1", "dev.delivery.triggered", &json!({}));
    assert_eq!((second.0, &second.1["keptnContext"]), (200, &first.1["keptnContext"]));
    assert_eq!(second.1["ignored"], "event `e1` of ci was told before");
    assert_eq!(shop.states().as_array().unwrap().len(), 1);
    let offered = shop.offered("deployment");
    shop.execute("deployment", "pass");
    let ignored = |id: &str, kind: &str, more: Value| shop.send(id, kind, &more).1["ignored"].clone();
    let late = json!({"triggeredid": offered["id"]});
    assert!(ignored("e2", "deployment.finished", late).as_str().unwrap().starts_with("`deployment` has ended"));
    let unknown = json!({"triggeredid": "nobody.0.1"});
    assert_eq!(ignored("e3", "test.started", unknown), "no task was triggered as `nobody.0.1`");
    assert_eq!(ignored("e4", "weather.changed", json!({})), "no sequence of `shop` is triggered on it");
    for (kind, more, code, says) in [
        ("test.started", json!({}), 400, "names the `.triggered` event"),
        ("test.triggered", json!({}), 400, "is told by launchway alone"),
        ("dev.nothing.triggered", json!({}), 404, "stage `dev` has no sequence `nothing`"),
        ("dev.delivery.triggered", json!({"data": {"project": "shop"}}), 400, "does not contain a service"),
        ("dev.delivery.triggered", json!({"data": {"project": "bank", "service": "a"}}), 404, "no repository declares"),
        ("dev.delivery.triggered", json!({"specversion": "0.3"}), 400, "is no version of CloudEvents"),
    ] {
        let (answered, answer) = shop.send("bad", kind, &more);
        assert_eq!(answered, code, "{kind} {more}: {answer}");
        assert!(answer["detail"].as_str().unwrap_or_default().contains(says), "{kind} {more}: {answer}");
    }
}

#[test]
fn a_failure_and_what_happens_elsewhere_start_what_is_triggered_on_them() {
    let shop = Shop::new();
    shop.send("e1", "dev.delivery.triggered", &json!({}));
    shop.execute("deployment", "fail");
    shop.execute("rollback", "pass");
    let problem =
        |kind: &str| json!({"data": {"project": "shop", "stage": "dev", "service": "cart", "problem": {"kind": kind}}});
    let (_, answer) = shop.send("e2", "problem.open", &problem("loud"));
    assert_eq!(answer["ignored"], "no sequence of `shop` is triggered on it");
    shop.send("e3", "problem.open", &problem("slow"));
    assert_eq!(shop.offered("get-action")["data"]["problem"], json!({"kind": "slow"}));
}

#[test]
fn a_command_without_a_stage_names_those_that_there_are() {
    let shop = Shop::new();
    let complains = |arguments: &[&str], code: i32, of: &str| {
        let output = shop.world.run(arguments);
        let told = complaint(&output);
        assert!(output.status.code() == Some(code) && told.contains(of), "{arguments:?}: {told}");
    };
    let trigger = ["trigger", "sequence", "delivery", "cart"];
    let start = |stage: &str| shop.world.tell(&[&trigger[..], &["-s", stage]].concat());
    complains(&trigger, 2, "--stage dev\n  --stage production");
    complains(&["why", "cart"], 1, "there is no deployment config `cart`");
    start("production");
    shop.offered("release");
    shop.world.tell(&["abort", "cart"]);
    eventually("nothing is under way", || {
        complaint(&shop.world.run(&["why", "cart"])).contains("nothing of `cart` is under way")
    });
    start("production");
    shop.offered("release");
    start("dev");
    shop.offered("deployment");
    complains(&["why", "cart"], 2, "choose one: --stage dev, --stage production");
}

#[test]
fn what_is_under_way_is_aborted_and_frees_its_slot() {
    let shop = Shop::new();
    shop.world.tell(&["trigger", "sequence", "delivery", "cart", "-s", "dev", "--data", "a.b=c", "--data", "a.c=true"]);
    assert_eq!(shop.offered("deployment")["data"]["a"], json!({"b": "c", "c": true}));
    let why = shop.world.tell(&["why", "cart"]);
    assert!(why.contains("waits for an executor to start it"), "{why}");
    shop.world.tell(&["abort", "cart"]);
    shop.world.status(&shop.commit, "launchway/dev/cart", "cancelled");
    shop.execute("rollback", "pass"); // an abort is a failure like any other
    let output: Output = shop.world.run(&["approve", "cart", "-s", "dev"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(complaint(&output).contains("nothing of shop/dev/cart waits for approval"), "{}", complaint(&output));
    let told = || shop.world.tell(&["why", "cart", "-s", "dev"]);
    eventually("what ended last is told", || told().contains("nothing is under way; rollback of"));
    shop.world.tell(&["rerun", "cart", "-s", "dev", "--sequence", "delivery"]);
    assert_eq!(shop.offered("deployment")["data"]["a"], json!({"b": "c", "c": true}));
    let unknown = complaint(&shop.world.run(&["why", "carts", "-s", "dev"]));
    assert!(unknown.contains("nothing is known about service `shop/dev/carts`"), "{unknown}");
}

#[test]
fn what_is_paused_begins_no_further_task_until_it_is_resumed() {
    let shop = Shop::new();
    shop.send("e1", "dev.delivery.triggered", &json!({"shkeptncontext": "c1"}));
    shop.offered("deployment");
    shop.world.tell(&["pause", "cart"]);
    assert_eq!(shop.states()[0]["state"], "paused");
    shop.execute("deployment", "pass");
    let why = shop.world.tell(&["why", "cart", "-s", "dev"]);
    assert!(why.contains("waits to go on with `test`: paused by"), "{why}");
    assert_eq!(shop.world.json(&["get", "holds"])["items"][0]["scope"], "shop context c1");
    assert!(shop.world.tell(&["pause", "cart"]).contains("already paused"));
    shop.world.kill();
    shop.world.start();
    assert_eq!(shop.states()[0]["state"], "paused");
    shop.world.tell(&["resume", "cart"]);
    shop.execute("test", "pass");
    shop.execute("release", "pass");
    assert_eq!(shop.world.json(&["get", "holds"])["items"], json!([]));
    let output = shop.world.run(&["pause", "cart", "-s", "dev"]);
    assert!(complaint(&output).contains("nothing of shop/dev/cart is under way"), "{}", complaint(&output));
}

#[test]
fn a_stage_that_is_paused_begins_nothing_until_it_is_resumed() {
    let shop = Shop::new();
    shop.send("e1", "dev.delivery.triggered", &json!({"shkeptncontext": "c1"}));
    shop.offered("deployment");
    assert!(shop.world.tell(&["pause", "-s", "dev"]).contains("shop/dev paused"));
    assert!(shop.world.tell(&["pause", "-s", "dev"]).contains("already paused"));
    shop.execute("deployment", "pass");
    let tea = json!({"project": "shop", "stage": "dev", "service": "tea"});
    shop.send("e2", "dev.delivery.triggered", &json!({"shkeptncontext": "c2", "data": tea}));
    let told = || shop.world.tell(&["why", "tea", "-s", "dev"]);
    eventually("what comes waits too", || told().contains("delivery of") && told().contains("paused by"));
    let why = shop.world.tell(&["why", "cart", "-s", "dev"]);
    assert!(why.contains("waits to go on with `test`: paused by"), "{why}");
    assert_eq!(shop.world.json(&["get", "holds"])["items"][0]["scope"], "shop/dev");
    shop.world.kill();
    shop.world.start();
    let unknown = shop.world.run(&["pause", "-s", "devel"]);
    assert!(complaint(&unknown).contains("has no stage `devel`"), "{}", complaint(&unknown));
    let neither = shop.world.run(&["pause"]);
    assert_eq!(neither.status.code(), Some(2), "{}", complaint(&neither));
    shop.world.tell(&["resume", "-s", "dev"]);
    shop.execute("test", "pass");
    shop.execute("release", "pass");
    assert_eq!(shop.world.json(&["get", "holds"])["items"], json!([]));
}

#[test]
fn a_sequence_that_failed_runs_again_from_the_task_that_failed() {
    let shop = Shop::new();
    shop.send("e1", "dev.delivery.triggered", &json!({}));
    shop.execute("deployment", "pass");
    shop.execute("test", "fail");
    shop.execute("rollback", "pass");
    shop.world.status(&shop.commit, "launchway/dev/cart", "failure");
    shop.world.tell(&["rerun", "cart", "-s", "dev", "--sequence", "delivery"]);
    assert_eq!(shop.offered("test")["data"]["deployment"]["by"], "us", "what has passed has left what it left");
    shop.execute("test", "pass");
    shop.execute("release", "pass");
    shop.world.status(&shop.commit, "launchway/dev/cart", "success");
    shop.world.status(&shop.commit, "launchway/production/cart", "success");
    let output = shop.world.run(&["rerun", "cart", "-s", "dev", "--sequence", "delivery"]);
    assert!(complaint(&output).contains("has passed"), "{}", complaint(&output));
}

#[test]
fn what_is_declared_is_delivered_again_by_an_event_once() {
    let world = World::new(&[]);
    world.start();
    let shipyard = "\
apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shop}
spec:
  stages: [{name: dev, sequences: [{name: delivery, tasks: [{name: deployment}]}]}]
";
    let commit = world.git.push_files(&[("shipyard.yaml", shipyard), ("web.yaml", &web("1"))]);
    world.status(&commit, "launchway/dev/web", "success");
    let shop = Shop { world, commit };
    let again = json!({"data": {"project": "shop", "stage": "dev", "service": "web"}, "shkeptncontext": "again"});
    let (code, first) = shop.send("e1", "dev.delivery.triggered", &again);
    assert_eq!((code, first["runs"].as_array().map(Vec::len)), (200, Some(1)), "{first}");
    let (_, second) = shop.send("e1", "dev.delivery.triggered", &again);
    assert_eq!(second["ignored"], "event `e1` of ci was told before");
    let run = format!("/api/v1/runs/{}", first["runs"][0].as_str().unwrap());
    eventually("it has ended", || shop.call("GET", &run, &Value::Null).1["status"] == "success");
}

#[test]
fn a_delivery_that_an_event_asks_for_and_nobody_starts_is_told_to_the_sender_and_by_why() {
    let world = World::new(&[]);
    world.start();
    let shipyard = "\
apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shop}
spec:
  stages:
  - name: dev
    sequences: [{name: delivery, tasks: [{name: deployment}, {name: test}]}]
  - name: production
    sequences:
    - {name: delivery, triggeredOn: [{event: release.wanted}], tasks: [{name: deployment}]}
    - {name: announce, triggeredOn: [{event: release.wanted}], tasks: [{name: mail}]}
";
    let fails = task("test", "host", "exit 1");
    let commit = world.git.push_files(&[("shipyard.yaml", shipyard), ("web.yaml", &web("1")), ("test.yaml", &fails)]);
    world.status(&commit, "launchway/dev/web", "failure");
    let shop = Shop { world, commit };
    let data = json!({"data": {"project": "shop", "stage": "production", "service": "web"}});
    let refused = "stage `dev` has not passed what `web` declares";
    let (code, answer) = shop.send("e1", "production.delivery.triggered", &data);
    assert_eq!((code, &answer["detail"]), (409, &json!(refused)), "{answer}");
    let (code, answer) = shop.send("e2", "release.wanted", &data);
    assert_eq!((code, &answer["refused"]), (200, &json!([format!("production: {refused}")])), "{answer}");
    assert_eq!(answer["runs"].as_array().map(Vec::len), Some(1), "the other sequence runs: {answer}");
    let told = "`release.wanted` (operator) asked for a delivery at ";
    let why = || shop.world.tell(&["why", "dc/web", "-s", "production"]);
    assert!(why().contains(told) && why().contains(&format!("which was not started: {refused}")), "{}", why());
    let events = shop.world.tell(&["events", "-s", "production"]);
    assert!(events.contains("nothing is delivered on `release.wanted` (operator): stage `dev`"), "{events}");
    shop.world.tell(&["abort", "web", "-s", "production"]); // the other sequence has the slot, and nobody mails
    let forced = ["trigger", "delivery", "web", "-s", "production", "--force", "it is urgent"];
    shop.world.tell(&forced);
    eventually("it is delivered", || {
        shop.world.json(&["get", "dc", "-s", "production"])["items"][0]["serving"]["version"] == 1
    });
    assert!(!why().contains(told), "{}", why());
}

#[test]
fn who_has_begun_and_is_heard_of_no_more_is_named_and_ends_the_task() {
    let world = World::new(&[]);
    world.start();
    let shipyard = "\
apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shop}
spec:
  stages: [{name: dev, sequences: [{name: check, tasks: [{name: scan}, {name: test, heartbeat: 1s}]}]}]
";
    let commit = world.git.push_files(&[("shipyard.yaml", shipyard)]);
    world.status(&commit, "launchway/plan", "success");
    let shop = Shop { world, commit };
    shop.send("e1", "dev.check.triggered", &json!({}));
    shop.offered("scan");
    let message = || shop.world.json(&["get", "runs"])["items"][0]["message"].clone();
    assert_eq!(message(), "scan: waits for an executor to start it");
    shop.execute("scan", "pass");
    let test = json!({"triggeredid": shop.offered("test")["id"]});
    let (code, _) = shop.send("e2", "test.started", &test);
    assert_eq!(code, 200);
    eventually("its silence is noticed", || {
        message().as_str().is_some_and(|told| told.contains("nothing was heard of ci for"))
    });
    let (_, late) = shop.send("e3", "test.status.changed", &test);
    assert!(late["ignored"].as_str().unwrap().contains("`test` has ended: nothing was heard of ci for 1"), "{late}");
    let told = shop.world.status(&shop.commit, "launchway/dev/cart/check.test", "error");
    assert!(told.contains("nothing was heard of ci"), "{told}");
}
