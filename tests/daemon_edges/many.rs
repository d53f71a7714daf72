//! Many services, and pushes that come faster than they can be deployed.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::daemon::{World, complaint, eventually, sleeper};

const SERVICES: usize = 60;
const PUSHES: usize = 60;

fn file(service: usize) -> String {
    format!("s{service:02}.yaml")
}

fn config(service: usize, content: usize) -> String {
    sleeper(&format!("s{service:02}"), "type: Recreate", &content.to_string())
}

fn items(world: &World, arguments: &[&str]) -> Vec<Value> {
    let answer = world.json(&[arguments, &["--limit", "1000"]].concat());
    answer["items"].as_array().unwrap().clone()
}

/// The value of `V` in the processes that run, by deployment config.
fn contents(world: &World) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pid in world.processes() {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let environment = String::from_utf8_lossy(&environment).into_owned();
        let variable = |name: &str| {
            environment.split('\0').find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
        };
        if let (Some(pod), Some(value)) = (variable("POD_NAME"), variable("V")) {
            let config = pod.split('-').next().unwrap_or_default().to_owned();
            found.entry(config).or_default().push(value);
        }
    }
    found
}

#[test]
fn sixty_services_and_sixty_quick_pushes_all_end_at_what_the_head_declares() {
    let world = World::new(&[]);
    let mut declared: Vec<usize> = vec![0; SERVICES];
    for service in 0..SERVICES {
        world.git.write(&file(service), &config(service, 0));
    }
    world.git.commit("All services");
    world.git.push();
    world.start();
    for push in 1..=PUSHES {
        // Some services change again and again while they are deployed, others once.
        for service in [push - 1, push % 7] {
            declared[service] = push;
            world.git.write(&file(service), &config(service, push));
        }
        world.git.commit(&format!("Push {push}"));
        world.git.push();
    }
    let head = world.git.head();
    world.status(&head, "launchway/default", "success");

    let open: Vec<Value> = items(&world, &["get", "runs"]).into_iter().filter(|run| run["endedAt"].is_null()).collect();
    assert!(open.is_empty(), "{open:#?}");
    for deployment in items(&world, &["get", "deployments"]) {
        assert_eq!(
            (&deployment["status"], &deployment["attempted"]),
            (&Value::from("Complete"), &Value::Null),
            "{deployment:#}"
        );
    }
    let expected: BTreeMap<String, Vec<String>> = declared
        .iter()
        .enumerate()
        .map(|(service, content)| (format!("s{service:02}"), vec![content.to_string()]))
        .collect();
    eventually("every service runs what the head declares", || contents(&world) == expected);
    let status = world.json(&["status", &head]);
    let pending = |status: &&Value| matches!(status["state"].as_str(), Some("pending" | "running"));
    let statuses = status["statuses"].as_array().unwrap();
    assert!(!statuses.is_empty() && !statuses.iter().any(|status| pending(&status)), "{status:#}");
    let plan = world.run(&["plan", "work", "--from", "applied", "--exit-code"]);
    assert_eq!(plan.status.code(), Some(0), "after convergence: {}", complaint(&plan));
}
