//! What keeps a rollout from getting on stands on the commit while it runs, where people look first.

use std::net::{SocketAddr, TcpListener, TcpStream};

use crate::support::daemon::{World, config, eventually, sleeper};

/// Waits until a commit says so of `web` while it is under way.
fn told_while_it_runs(world: &World, commit: &str, what: &str) {
    for context in ["launchway/default", "launchway/default/web"] {
        eventually(&format!("{context} tells `{what}`"), || {
            world.notes(commit).get(context).is_some_and(|(state, told)| state == "running" && told.contains(what))
        });
    }
    let shown = String::from_utf8(world.run(&["status", commit]).stdout).unwrap();
    assert!(shown.contains(what), "{shown}");
}

/// A deployment config whose pod runs a script and is ready when another one says so.
fn probed(script: &str, probe: &str) -> String {
    let probe = format!("{{exec: {{command: [sh, -c, '{probe}']}}, periodSeconds: 1}}");
    let container = format!("{{name: main, image: host, command: [sh, -c, '{script}'], readinessProbe: {probe}}}");
    config("web", "type: Recreate", &container)
}

#[test]
fn a_commit_tells_what_is_in_the_way_while_the_rollout_runs() {
    let world = World::new(&[]);
    world.start();
    let crashing = world.git.push_files(&[("web.yaml", &probed("echo no database; exit 3", "exit 1"))]);
    told_while_it_runs(&world, &crashing, "container `main` exited with code 3: no database");

    let unready = world.git.push_files(&[("web.yaml", &probed("exec sleep 1000", "echo warming up; exit 1"))]);
    told_while_it_runs(&world, &unready, "readiness probe: exit code 1: warming up");

    let lacking = sleeper("web", "type: Recreate", "1")
        .replace("command:", "envFrom: [{configMapRef: {name: colors}}], command:");
    let lacking = world.git.push_files(&[("web.yaml", &lacking)]);
    told_while_it_runs(&world, &lacking, "configmap \"colors\" not found");

    let fixed = world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "2"))], "success");
    let told = &world.notes(&fixed)["launchway/default/web"];
    assert!(told.1.contains("serves after") && !told.1.contains("warming"), "{told:?}");
}

/// A `Service` that leads to `web`, and is delivered under its own name.
fn service(name: &str, ports: &[u16]) -> String {
    let port = |port: &u16| format!("{{name: p{port}, port: {port}, targetPort: 8080}}");
    let ports = ports.iter().map(port).collect::<Vec<_>>().join(", ");
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}, labels: {{launchway.dev/service: {name}}}}}\n\
         spec: {{selector: {{app: web}}, ports: [{ports}]}}\n"
    )
}

/// What is said of a service that cannot listen, by `get services`; nothing, if it can.
fn not_listening(world: &World, name: &str) -> String {
    let services = world.json(&["get", "services"]);
    let named = services["items"].as_array().into_iter().flatten().find(|service| service["name"] == name);
    named.and_then(|service| service["problem"].as_str()).unwrap_or_default().to_owned()
}

#[test]
fn a_service_whose_port_is_taken_is_no_success_until_it_is_free() {
    let world = World::new(&[]);
    world.start();
    let taken = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let told = format!("service `web`: port {port} of ");
    let web = sleeper("web", "type: Recreate", "1");
    let commit = world.git.push_files(&[("web.yaml", &web), ("service.yaml", &service("web", &[port]))]);
    told_while_it_runs(&world, &commit, &told);
    assert!(not_listening(&world, "web").contains("is in use by another process"));
    let why = |told: &str| {
        let why = String::from_utf8(world.run(&["why", "dc/web"]).stdout).unwrap();
        assert_eq!(why.matches(told).count(), 1, "{why}");
    };
    why(&told);

    // A delivery that brings nothing but a service waits for this one as well.
    let front = world.git.push_files(&[("front.yaml", &service("front", &[port]))]);
    eventually("the delivery of `front` tells", || {
        let notes = world.notes(&front);
        let told = format!("service `front`: port {port} of ");
        notes.get("launchway/default/front").is_some_and(|(state, it)| state == "running" && it.contains(&told))
    });
    why("service `front`: port"); // it leads to the same pods

    drop(taken);
    let complete = world.status(&commit, "launchway/default/web", "success");
    assert!(complete.contains("serves after") && !complete.contains("in use"), "{complete}");
    world.status(&front, "launchway/default/front", "success");
    assert_eq!((not_listening(&world, "web"), not_listening(&world, "front")), (String::new(), String::new()));
}

#[test]
fn a_service_that_cannot_listen_in_time_fails_and_what_served_serves_on() {
    let world = World::new(&[]);
    world.start();
    let free = |address: &str| TcpListener::bind(address).unwrap();
    let port = free("0.0.0.0:0").local_addr().unwrap().port();
    let strategy = "type: Rolling, rollingParams: {timeoutSeconds: 3}";
    let first = [("web.yaml", sleeper("web", strategy, "1")), ("service.yaml", service("web", &[port]))];
    world.deploy(&first.each_ref().map(|(path, text)| (*path, text.as_str())), "success");
    let address = world.json(&["get", "services"])["items"][0]["address"].as_str().unwrap().to_owned();
    let taken = free(&format!("{address}:0"));
    let more = taken.local_addr().unwrap().port();
    let files = [("web.yaml", sleeper("web", strategy, "2")), ("service.yaml", service("web", &[port, more]))];
    let commit = world.deploy(&files.each_ref().map(|(path, text)| (*path, text.as_str())), "failure");
    let told = &world.notes(&commit)["launchway/default/web"].1;
    assert!(
        told.contains("no progress for 3.0s") && told.contains(&format!("port {more} of {address} is in use")),
        "{told}"
    );
    assert!(told.contains("version 1 serves"), "{told}");
    let listens = |port: u16| TcpStream::connect(SocketAddr::new(address.parse().unwrap(), port)).is_ok();
    assert!(listens(port), "its other port is listened on");

    drop(taken);
    world.tell(&["rollout", "retry", "dc/web"]);
    world.status(&commit, "launchway/default", "success");
    assert!(listens(more));
}

#[test]
fn a_service_that_could_not_listen_before_the_push_undoes_nothing() {
    let world = World::new(&[]);
    world.start();
    let strategy = "type: Rolling, rollingParams: {timeoutSeconds: 3}";
    let push = |version: &str, service: &str| {
        world.git.push_files(&[("web.yaml", &sleeper("web", strategy, version)), ("service.yaml", service)])
    };
    let free = |address: &str| TcpListener::bind(address).unwrap();
    let port = free("0.0.0.0:0").local_addr().unwrap().port();
    let first = push("1", &service("web", &[port]));
    world.status(&first, "launchway/default", "success");
    let address = world.json(&["get", "services"])["items"][0]["address"].as_str().unwrap().to_owned();
    let taken = free(&format!("{address}:0"));
    let more = taken.local_addr().unwrap().port();
    let told = format!("service `web`: port {more} of {address} is in use");
    let only_service = push("1", &service("web", &[port, more]));
    told_while_it_runs(&world, &only_service, &told);

    let second = push("2", &service("web", &[port, more]));
    let failed = world.status(&second, "launchway/default/web", "failure");
    assert!(failed.contains("version 2 serves after") && failed.contains("is not reached"), "{failed}");
    assert!(failed.contains(&told), "{failed}");
    let serves = || world.json(&["get", "dc"])["items"][0]["serving"]["version"].clone();
    assert_eq!(serves(), 2, "going back would make nothing better");

    drop(taken);
    eventually("the service listens", || not_listening(&world, "web").is_empty());
    world.tell(&["trigger", "delivery", "web", "-s", "default"]);
    world.status(&second, "launchway/default", "success");
    assert_eq!(serves(), 2);
}
