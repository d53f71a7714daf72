//! Files in the state folder, and records in the store, that are damaged.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::survival::{SERVICE, answers, server, service_address};
use crate::support::daemon::{World, eventually, hook, repository, send, sleeper};
use crate::support::git::GitFixture;

const PODS: [&str; 2] = ["shop-default/web-1-0", "shop-default/web-1-1"];

fn two(variable: &str) -> String {
    sleeper("web", "type: Rolling", variable).replace("replicas: 1", "replicas: 2")
}

fn ready(world: &World) -> Value {
    world.json(&["get", "dc"])["items"][0]["ready"].clone()
}

#[test]
fn a_pod_whose_files_are_damaged_runs_on() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &two("1"))], "success");
    for pod in PODS {
        world.pod_in(pod, "ready");
    }
    let mut before = world.processes();
    world.kill();
    fs::write(world.pod_folders()[PODS[0]].join("status.json"), "").unwrap();
    fs::write(world.pod_folders()[PODS[1]].join("pod.json"), "").unwrap();
    world.start();
    eventually("both are ready", || ready(&world) == json!(2));
    let mut after = world.processes();
    before.sort_unstable();
    after.sort_unstable();
    assert_eq!(before, after, "the same processes");
    assert_eq!(world.pod_folders().len(), 2);
    world.deploy(&[("web.yaml", &two("2"))], "success");
    world.tell(&["down"]);
    assert_eq!(world.processes(), Vec::<i32>::new());
}

#[test]
fn a_pod_that_lost_its_files_and_its_shim_is_replaced() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &two("1"))], "success");
    for pod in PODS {
        world.pod_in(pod, "ready");
    }
    let shim = world.pod(PODS[0])["shim"]["pid"].as_i64().unwrap();
    let process = i32::try_from(world.pod_in(PODS[0], "ready")).unwrap();
    world.kill();
    for file in ["status.json", "pod.json"] {
        fs::write(world.pod_folders()[PODS[0]].join(file), "{").unwrap();
    }
    send(i32::try_from(shim).unwrap(), Signal::KILL);
    world.start();
    eventually("both are ready", || ready(&world) == json!(2));
    assert!(!world.processes().contains(&process));
    world.deploy(&[("web.yaml", &two("2"))], "success");
    world.tell(&["down"]);
    assert_eq!(world.processes(), Vec::<i32>::new());
}

#[test]
fn a_service_whose_record_is_damaged_answers_at_the_same_address() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &server()), ("service.yaml", SERVICE)], "success");
    let address = service_address(&world);
    eventually("the service answers", || answers(&address));
    let before = world.processes();
    let record = world.state().join("local/services/shop-default/web/service.json");
    world.kill();
    fs::write(&record, "{").unwrap();
    world.start();
    eventually("the record is whole", || {
        fs::read(&record).is_ok_and(|text| serde_json::from_slice::<Value>(&text).is_ok())
    });
    eventually("the service answers", || answers(&address));
    assert_eq!(service_address(&world), address);
    let mut after = world.processes();
    after.retain(|pid| !before.contains(pid));
    assert_eq!(after, Vec::<i32>::new(), "nothing was started anew");
    fs::write(&record, "").unwrap();
    world.tell(&["down"]);
    assert_eq!(world.processes(), Vec::<i32>::new(), "down ends it too");
}

/// Damages the records of a table of which a condition holds.
fn damage(world: &World, table: &str, condition: &str) {
    let file = rusqlite::Connection::open(world.state().join("store.db")).unwrap();
    let sql = format!("UPDATE {table} SET record = '{{' WHERE {condition}");
    assert_eq!(file.execute(&sql, []).unwrap(), 1, "{sql}");
}

#[test]
fn a_dead_pod_is_replaced_whatever_record_of_another_is_damaged() {
    let world = World::new(&[]);
    world.start();
    let hooked = format!("type: Recreate, recreateParams: {{{}}}", hook("pre", "Abort", "true"));
    let (web, hooked) = (sleeper("web", "type: Recreate", "1"), sleeper("hooked", &hooked, "1"));
    world.deploy(&[("web.yaml", &web), ("hooked.yaml", &hooked), ("service.yaml", SERVICE)], "success");
    world.stop();
    damage(&world, "runs", "id = 'shop/default/hooked-1'");
    damage(&world, "objects", "kind = 'Service'");
    world.start();
    let process = i32::try_from(world.pod_in("shop-default/web-1-0", "ready")).unwrap();
    let shim = world.pod("shop-default/web-1-0")["shim"]["pid"].clone();
    send(i32::try_from(shim.as_i64().unwrap()).unwrap(), Signal::KILL);
    send(process, Signal::KILL);
    eventually("another one is ready", || {
        let pods = world.pod_folders().into_keys().filter(|pod| pod.starts_with("shop-default/web-1-"));
        pods.map(|pod| world.pod(&pod)).any(|pod| pod["phase"] == "ready" && pod["shim"]["pid"] != shim)
    });
    assert!(!service_address(&world).is_empty(), "the service whose object is damaged stays");
    let problem = "`shop/default/hooked-1` cannot be read";
    let listed = world.json(&["get", "runs"]);
    assert!(listed["damaged"][0]["problem"].as_str().unwrap().contains(problem), "{listed:#}");
    assert!(listed["items"].as_array().unwrap().len() > 1, "{listed:#}");
    assert_eq!(world.log().matches(problem).count(), 1, "it is said once: {}", world.log());
}

#[test]
fn a_damaged_repository_stops_no_other() {
    let (world, bank) = (World::new(&[]), GitFixture::new());
    let bare = |git: &GitFixture| git.bare().display().to_string();
    world.configure(&(repository("shop", &bare(&world.git), &[]) + &repository("bank", &bare(&bank), &[])));
    bank.push_files(&[("app.yaml", &sleeper("app", "type: Recreate", "1"))]);
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    let serving = || world.json(&["get", "dc", "-r", "bank"])["items"][0]["serving"]["version"].clone();
    eventually("bank is deployed", || serving() == 1);
    world.stop();
    damage(&world, "repositories", "name = 'bank'");
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "2"))], "success");
    let listed = world.json(&["get", "repositories"]);
    let told: Vec<_> = listed["items"].as_array().unwrap().iter().map(|it| (&it["name"], &it["status"])).collect();
    assert_eq!(told, [(&json!("bank"), &json!("Failed")), (&json!("shop"), &json!("Ready"))]);
    let problem = listed["items"][0]["problem"].as_str().unwrap();
    assert!(problem.contains("`bank` cannot be read") && problem.contains("store restore"), "{problem}");
    world.pod_in("bank-default/app-1-0", "ready");
}
