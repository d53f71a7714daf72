//! A store that is lost, or replaced by a copy: what serves goes on serving.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::orders::{task, web};
use super::survival::{SERVICE, careful_server, says, service_address};
use crate::support::daemon::{World, answering, complaint, eventually, hook, sleeper};

/// A server whose `pre` hook counts.
fn counted(world: &World, version: &str) -> String {
    let count = hook("pre", "Abort", &format!("echo {version} >> {}", world.git.path("hooks").display()));
    let strategy = format!("type: Rolling, rollingParams: {{maxUnavailable: 0, maxSurge: 1, {count}}}");
    careful_server(world, &strategy, version)
}

fn deploy(world: &World, version: &str) -> String {
    world.deploy(&[("web.yaml", &counted(world, version)), ("service.yaml", SERVICE)], "success")
}

/// What serves, as the daemon tells it: the version and its status.
fn serving(world: &World) -> (Value, Value) {
    let all = world.json(&["get", "deployments"]);
    (all["items"][0]["serving"]["version"].clone(), all["items"][0]["status"].clone())
}

fn converged(world: &World, version: u32) {
    eventually("what is declared serves", || serving(world) == (version.into(), "Complete".into()));
    let plan = world.run(&["plan", "work", "--from", "applied", "--exit-code"]);
    assert_eq!(plan.status.code(), Some(0), "after convergence: {}", complaint(&plan));
}

fn lose_store(world: &World) {
    for file in ["store.db", "store.db-wal", "store.db-shm"] {
        let there = world.state().join(file);
        if there.exists() {
            fs::rename(there, world.git.path(file)).unwrap();
        }
    }
}

fn server_pid(world: &World, pod: &str) -> i64 {
    world.pod_in(&format!("shop-default/{pod}"), "ready")
}

#[test]
fn what_serves_is_taken_over_after_the_store_was_lost() {
    let world = World::new(&[]);
    fs::write(world.git.path("go"), "").unwrap();
    world.start();
    deploy(&world, "one");
    let commit = deploy(&world, "two");
    let (address, before) = (service_address(&world), server_pid(&world, "web-2-0"));
    eventually("version two answers", || says(&address, "two"));
    answering(
        || says(&address, "two"),
        || {
            world.stop();
            lose_store(&world);
            world.start();
            converged(&world, 1);
        },
    );
    assert_eq!(server_pid(&world, "web-2-0"), before, "the same process");
    assert_eq!(world.lines("hooks"), ["one", "two", "two"], "the hook of a version that was unknown ran");
    world.status(&commit, "launchway/default", "success");
    let listed = world.json(&["get", "pods"])["items"].clone();
    let serving = listed.as_array().unwrap().iter().find(|pod| pod["name"] == "web-2-0").cloned().unwrap();
    assert_eq!((&serving["version"], &serving["status"]), (&1.into(), &"Ready".into()));

    deploy(&world, "one");
    eventually("what was gone back to answers", || says(&address, "one"));
    converged(&world, 2);
    eventually("one pod, with its service", || world.processes().len() == 4);
}

#[test]
fn what_serves_is_taken_over_after_an_older_store_was_restored() {
    let world = World::new(&[]);
    fs::write(world.git.path("go"), "").unwrap();
    let copy = world.git.path("copy.db").display().to_string();
    world.start();
    deploy(&world, "one");
    world.tell(&["store", "backup", &copy]);
    deploy(&world, "two");
    let (address, before) = (service_address(&world), server_pid(&world, "web-2-0"));
    eventually("version two answers", || says(&address, "two"));
    answering(
        || says(&address, "two"),
        || {
            world.stop();
            world.tell(&["store", "restore", &copy]);
            world.start();
            converged(&world, 2);
        },
    );
    assert_eq!(server_pid(&world, "web-2-0"), before, "the same process");
    assert_eq!(world.lines("hooks"), ["one", "two", "two"]);

    world.tell(&["rollout", "undo", "dc/web"]);
    eventually("the version before answers", || says(&address, "one"));
    eventually("one pod, with its service", || world.processes().len() == 4);
}

/// `production` follows once `dev` was tested.
const TESTED: &str = "\
apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shop}
spec:
  stages:
  - {name: dev, sequences: [{name: delivery, tasks: [{name: deployment}, {name: test}]}]}
  - name: production
    sequences: [{name: delivery, triggeredOn: [{event: dev.delivery.finished}], tasks: [{name: deployment}]}]
";

fn push(world: &World, test: &str, web: &str) -> String {
    world.git.push_files(&[("shipyard.yaml", TESTED), ("test.yaml", test), ("web.yaml", web)])
}

#[test]
fn what_serves_serves_on_where_an_older_store_delivers_it_again_in_vain() {
    let world = World::new(&[]);
    let once = |version: &str| {
        let count = world.git.path(&format!("migrated-{version}")).display().to_string();
        let script = format!("echo >> {count}; test $(wc -l < {count}) -le 2"); // once in each stage
        sleeper("web", &format!("type: Rolling, rollingParams: {{{}}}", hook("pre", "Abort", &script)), version)
    };
    let test = task("test", "host", "exit 0");
    let copy = world.git.path("copy.db").display().to_string();
    world.start();
    world.status(&push(&world, &test, &once("1")), "launchway/production", "success");
    world.tell(&["store", "backup", &copy]);
    let commit = push(&world, &test, &once("2"));
    world.status(&commit, "launchway/production", "success");
    let before = (world.pod_in("shop-dev/web-2-0", "ready"), world.pod_in("shop-production/web-2-0", "ready"));
    world.stop();
    world.tell(&["store", "restore", &copy]);
    world.start();
    world.status(&commit, "launchway/dev/web/pre", "failure"); // it migrated once already
    eventually("it is judged", || world.log().contains("another life of the store has left serves on"));
    world.stop();
    world.start(); // everything is reconciled with slots that are free
    eventually("it is judged again", || world.log().matches("has left serves on").count() > 2);
    let after = (world.pod_in("shop-dev/web-2-0", "ready"), world.pod_in("shop-production/web-2-0", "ready"));
    assert_eq!(before, after, "the same processes");
}

#[test]
fn a_later_stage_serves_on_until_the_stage_before_has_passed_again_what_an_older_store_does_not_know() {
    let world = World::new(&[]);
    let passes = world.git.path("passes");
    fs::write(&passes, "").unwrap();
    let test = task("test", "host", &format!("test -e {}", passes.display()));
    let push = |version| push(&world, &test, &web(version));
    let copy = world.git.path("copy.db").display().to_string();
    world.start();
    world.status(&push("1"), "launchway/production", "success");
    world.tell(&["store", "backup", &copy]);
    let commit = push("2");
    world.status(&commit, "launchway/production", "success");
    let before = world.pod_in("shop-production/web-2-0", "ready");

    world.stop();
    world.tell(&["store", "restore", &copy]);
    fs::remove_file(&passes).unwrap();
    world.start();
    world.status(&commit, "launchway/dev/web/test", "failure");
    eventually("production is judged", || world.log().contains("another life of the store has left serves on"));
    world.stop();
    world.start(); // everything is reconciled with a slot that is free
    world.status(&commit, "launchway/production", "skipped");
    eventually("it is judged again", || world.log().matches("has left serves on").count() > 1);
    assert_eq!(world.pod_in("shop-production/web-2-0", "ready"), before, "the same process");

    fs::write(&passes, "").unwrap();
    world.tell(&["trigger", "delivery", "web", "-s", "dev"]);
    world.status(&commit, "launchway/production", "success");
    assert_eq!(world.pod_in("shop-production/web-2-0", "ready"), before, "taken over as it is");
    converged(&world, 2);
}

#[test]
fn a_first_deployment_that_fails_after_a_loss_does_not_deny_what_serves() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &web("1")), ("service.yaml", SERVICE)], "success");
    let before = world.pod_in("shop-default/web-1-0", "ready");
    let fails = format!("type: Rolling, rollingParams: {{{}}}", hook("pre", "Abort", "exit 3"));
    // The service that leads to it is declared no longer by what takes its place.
    world.deploy(&[("web.yaml", &sleeper("web", &fails, "2")), ("service.yaml", "# none\n")], "failure");
    let services = || world.json(&["get", "services"])["items"].as_array().map(Vec::len);
    assert_eq!(services(), Some(1), "kept");
    world.stop();
    lose_store(&world);
    world.start();
    let why = || String::from_utf8(world.run(&["why", "dc/web"]).stdout).unwrap();
    let expected = "version 1 of web failed, what served before the store was lost serves on";
    eventually("it has failed again", || why().contains(expected));
    assert_eq!(world.pod_in("shop-default/web-1-0", "ready"), before, "the same process");
    let told = world.json(&["status"])["statuses"].to_string();
    assert!(told.contains("there is no version to go back to"), "{told}");
    world.stop();
    world.start(); // everything is reconciled, and nothing is under way
    eventually("the daemon answers", || services().is_some());
    assert_eq!(services(), Some(1), "it leads on to what serves");
    world.deploy(&[("web.yaml", &web("3"))], "success");
    eventually("nothing is there any more that it leads to", || services() == Some(0));
}

#[test]
fn what_no_record_names_any_more_ends_before_down_says_so() {
    for has_daemon in [true, false] {
        let world = World::new(&[]);
        let passes = world.git.path("passes");
        fs::write(&passes, "").unwrap();
        let test = task("test", "host", &format!("test -e {}", passes.display()));
        let files =
            [("shipyard.yaml", TESTED), ("test.yaml", &*test), ("web.yaml", &web("1")), ("service.yaml", SERVICE)];
        let commit = world.git.push_files(&files);
        world.start();
        world.status(&commit, "launchway/production", "success");
        let server = Path::new("/proc").join(world.pod_in("shop-production/web-1-0", "ready").to_string());

        world.stop();
        lose_store(&world);
        fs::remove_file(&passes).unwrap();
        world.start();
        world.status(&commit, "launchway/production", "skipped");
        assert!(server.exists(), "production serves on");
        let pods = world.json(&["get", "pods", "-s", "production"]);
        assert_eq!(pods["items"][0]["name"], "web-1-0", "what serves is listed: {pods}");
        if !has_daemon {
            world.stop();
        }
        world.tell(&["down"]);
        assert!(!server.exists(), "it has ended, with a daemon: {has_daemon}");
    }
}

#[test]
fn a_service_leads_where_it_led_until_its_stage_is_delivered_to_again() {
    let world = World::new(&[]);
    let passes = world.git.path("passes");
    fs::write(&passes, "").unwrap();
    let (test, web) = (task("test", "host", &format!("test -e {}", passes.display())), web("1"));
    let push = |port: u16| {
        let service = SERVICE.replace("port: 80,", &format!("port: {port},"));
        let files = [("shipyard.yaml", TESTED), ("test.yaml", &*test), ("web.yaml", &web), ("service.yaml", &service)];
        world.git.push_files(&files)
    };
    let ports = || {
        let of = |stage| world.json(&["get", "services", "-s", stage])["items"][0]["ports"][0].clone();
        (of("dev"), of("production"))
    };
    let copy = world.git.path("copy.db").display().to_string();
    world.start();
    world.status(&push(80), "launchway/production", "success");
    world.tell(&["store", "backup", &copy]);
    let commit = push(8080);
    world.status(&commit, "launchway/production", "success");
    eventually("the new port", || ports() == (8080.into(), 8080.into()));

    world.stop();
    world.tell(&["store", "restore", &copy]);
    fs::remove_file(&passes).unwrap();
    world.start();
    world.status(&commit, "launchway/dev/web/test", "failure");
    world.stop();
    world.start(); // everything is reconciled with slots that are free
    world.status(&commit, "launchway/production", "skipped");
    assert_eq!(ports(), (8080.into(), 8080.into()));
    fs::write(&passes, "").unwrap();
    world.tell(&["trigger", "delivery", "web", "-s", "dev"]);
    world.status(&commit, "launchway/production", "success");
    assert_eq!(ports(), (8080.into(), 8080.into()));
    let _next = push(8081);
    eventually("what is declared now", || ports() == (8081.into(), 8081.into()));
}

#[test]
fn what_a_copy_had_under_way_gives_way_to_the_head_at_once() {
    let world = World::new(&[]);
    world.start();
    deploy(&world, "one");
    let copy = world.git.path("copy.db").display().to_string();
    let two = world.git.push_files(&[("web.yaml", &counted(&world, "two"))]);
    eventually("a pod that is not ready", || world.pod_folders().contains_key("shop-default/web-2-0"));
    world.tell(&["store", "backup", &copy]);
    fs::write(world.git.path("go"), "").unwrap();
    world.status(&two, "launchway/default", "success");
    deploy(&world, "three");
    let (address, before) = (service_address(&world), server_pid(&world, "web-3-0"));
    eventually("version three answers", || says(&address, "three"));
    world.stop();
    world.tell(&["store", "restore", &copy]);
    answering(
        || says(&address, "three"),
        || {
            world.start();
            converged(&world, 3); // long before the deployment that was under way has had its time
        },
    );
    assert_eq!(server_pid(&world, "web-3-0"), before, "taken over as it is");
}

#[test]
fn endpoints_that_are_delivered_after_a_restore_lead_at_once() {
    let world = World::new(&[]);
    let push = |port: u16| {
        let service = "apiVersion: v1\nkind: Service\nmetadata: {name: db}\nspec: {ports: [{port: 5432}]}\n";
        let subsets = format!("subsets: [{{addresses: [{{ip: 127.0.0.1}}], ports: [{{port: {port}}}]}}]");
        let endpoints = format!("apiVersion: v1\nkind: Endpoints\nmetadata: {{name: db}}\n{subsets}\n");
        world.deploy(&[("service.yaml", service), ("endpoints.yaml", &endpoints)], "success")
    };
    let leads_to = |port: u16| {
        let service = find(&world.state().join("local"), "service.json");
        service.is_some_and(|file| fs::read_to_string(file).unwrap().contains(&port.to_string()))
    };
    let copy = world.git.path("copy.db").display().to_string();
    world.start();
    push(19001);
    eventually("the first", || leads_to(19001));
    world.tell(&["store", "backup", &copy]);
    world.stop();
    world.tell(&["store", "restore", &copy]);
    world.start();
    push(19002);
    eventually("the next", || leads_to(19002));
}

/// The first file of a name in a folder, or below it.
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    entries.into_iter().find_map(|path| match path.is_dir() {
        true => find(&path, name),
        false => path.ends_with(name).then_some(path),
    })
}
