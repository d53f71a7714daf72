//! Files in the state folder that are damaged.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::survival::{SERVICE, answers, server, service_address};
use crate::support::daemon::{World, eventually, send, sleeper};

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
