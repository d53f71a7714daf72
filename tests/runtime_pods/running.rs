//! Pods that serve: probes, readiness, restarts.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use launchway::model::pod::{ObservedPod, PodPhase};
use launchway::runtime::{Runtime, RuntimeChange};
use serde_json::{Value, json};

use crate::world::{SERVER, World, eventually, lives, number_in, pod, read, serving, shell, with};

fn get(port: u64) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", u16::try_from(port).unwrap())).unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test]
async fn a_server_becomes_ready_by_http_and_is_reached_at_its_port() {
    let world = World::new();
    let mut changes = world.runtime().changes();
    let container = with(
        shell(SERVER),
        json!({"ports": [{"name": "http", "containerPort": 8080}],
               "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1}}),
    );
    let pod = pod(json!({"containers": [container], "terminationGracePeriodSeconds": 5}));
    world.start(&pod).await;
    world.ready(&pod).await;
    let marker: Value = serde_json::from_str(&read(world.dir(&pod).join("ready"))).unwrap();
    assert_eq!(marker["address"], "127.0.0.1");
    assert_eq!(marker["ports"]["http"], marker["ports"]["8080"]);
    assert!(get(marker["ports"]["8080"].as_u64().unwrap()).starts_with("HTTP/1.0 200"));
    assert_eq!(changes.recv().await.unwrap(), RuntimeChange::Pod(pod.id.clone(), pod.owner.clone()));
    assert!(world.services.told.lock().unwrap().contains(&BTreeSet::from(["web-1-a".to_owned()])));
    world.stop(&pod).await;
    assert!(!world.dir(&pod).join("ready").exists());
    assert_eq!(world.services.told.lock().unwrap().last(), Some(&BTreeSet::new()));
}

#[tokio::test]
async fn a_pod_that_binds_its_own_address_keeps_its_ports() {
    let world = World::new();
    let script = "exec python3 -u -m http.server --bind \"$POD_IP\" 8080";
    let container = with(
        shell(script),
        json!({"ports": [{"containerPort": 8080}], "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1}}),
    );
    let mut pod = pod(json!({"containers": [container], "terminationGracePeriodSeconds": 1}));
    pod.template.metadata.annotations.insert("launchway.dev/listen".into(), "pod-ip".into());
    world.start(&pod).await;
    world.ready(&pod).await;
    let marker: Value = serde_json::from_str(&read(world.dir(&pod).join("ready"))).unwrap();
    assert_eq!(marker["ports"]["8080"], 8080);
    assert!(marker["address"].as_str().unwrap().starts_with("127."));
    assert_ne!(marker["address"], "127.0.0.1");
}

#[tokio::test]
async fn a_server_that_does_not_listen_says_so() {
    let world = World::new();
    let container = with(
        shell("exec sleep 1000"),
        json!({"ports": [{"containerPort": 8080}], "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1}}),
    );
    let pod = pod(json!({"containers": [container]}));
    world.start(&pod).await;
    let says = |message: &str| message.contains("readiness probe") && message.contains("nothing listens on 127.0.0.1:");
    world.until(&pod, "told what is wrong", |observed| says(&observed.message)).await;
}

#[tokio::test]
async fn readiness_that_flaps_lets_connections_in_and_out() {
    let world = World::new();
    let good = world.file("good");
    let probe = json!({"exec": {"command": ["test", "-f", good]}, "periodSeconds": 1, "failureThreshold": 1});
    let pod = pod(json!({"containers": [with(shell("exec sleep 1000"), json!({"readinessProbe": probe}))]}));
    let marker = world.dir(&pod).join("ready");
    world.start(&pod).await;
    for _ in 0..2 {
        std::fs::write(&good, "").unwrap();
        world.ready(&pod).await;
        eventually("admitted", || marker.exists());
        std::fs::remove_file(&good).unwrap();
        world.until(&pod, "unready", |observed| observed.phase == PodPhase::Starting).await;
        assert!(!marker.exists());
    }
    assert_eq!(world.observe(&pod).await.unwrap().restarts, 0);
}

#[tokio::test]
async fn a_container_that_is_not_alive_is_started_again() {
    let world = World::new();
    let (sick, up) = (world.file("sick"), world.file("up"));
    let probe = json!({"exec": {"command": ["test", "!", "-f", sick]}, "periodSeconds": 1, "failureThreshold": 1});
    let script = format!("rm -f {}; touch {}; exec sleep 1000", sick.display(), up.display());
    let pod = pod(json!({"containers": [with(shell(&script), json!({"livenessProbe": probe}))]}));
    world.start(&pod).await;
    world.ready(&pod).await;
    eventually("up", || up.exists());
    std::fs::write(&sick, "").unwrap();
    world.until(&pod, "restarted", |observed| observed.restarts == 1).await;
    world.ready(&pod).await;
}

#[tokio::test]
async fn a_startup_probe_holds_the_others_back() {
    let world = World::new();
    let up = world.file("up");
    let liveness = json!({"exec": {"command": ["test", "-f", up]}, "periodSeconds": 1, "failureThreshold": 1});
    let startup = json!({"exec": {"command": ["test", "-f", up]}, "periodSeconds": 1, "failureThreshold": 600});
    let container = with(shell("exec sleep 1000"), json!({"livenessProbe": liveness, "startupProbe": startup}));
    let pod = pod(json!({"containers": [container]}));
    world.start(&pod).await;
    world.until(&pod, "held back", |observed| observed.message.contains("startup probe")).await;
    std::fs::write(&up, "").unwrap();
    assert_eq!(world.ready(&pod).await.restarts, 0);
}

#[tokio::test]
async fn a_crash_is_followed_by_a_restart_on_the_same_port() {
    let world = World::new();
    let ports = world.file("ports");
    let script = format!("echo $PORT >> {0}; [ $(wc -l < {0}) -ge 3 ] || exit 7; exec sleep 1000", ports.display());
    let container = with(shell(&script), json!({"ports": [{"containerPort": 8080}]}));
    let pod = pod(json!({"containers": [container]}));
    world.start(&pod).await;
    world.until(&pod, "told of the crash", |observed| observed.message.contains("exited with code 7")).await;
    world.until(&pod, "restarted", |observed| observed.restarts == 2).await;
    eventually("running for the third time", || read(&ports).lines().count() == 3);
    let is_well = |pod: &ObservedPod| matches!(pod.phase, PodPhase::Ready { .. }) && pod.message.is_empty();
    world.until(&pod, "well again", is_well).await;
    let ports: Vec<String> = read(&ports).lines().map(str::to_owned).collect();
    assert!(ports.iter().all(|port| *port == ports[0]), "{ports:?}");
}

#[tokio::test]
async fn why_a_pod_crashes_is_told_from_one_crash_to_the_next() {
    let world = World::new();
    let pod = serving("sleep 0.3; echo no database; exit 7");
    world.start(&pod).await;
    let told = |pod: &ObservedPod| pod.message.ends_with("exited with code 7: no database");
    world.until(&pod, "told of the crash", told).await;
    let (mut restarts, mut was_ready) = (0, false);
    while restarts < 3 {
        let observed = world.observe(&pod).await.unwrap();
        assert!(told(&observed), "after {restarts} restarts: {observed:?}");
        was_ready |= matches!(observed.phase, PodPhase::Ready { .. });
        restarts = observed.restarts;
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(was_ready);
}

#[tokio::test]
async fn a_program_whose_interpreter_is_missing_says_which() {
    let world = World::new();
    let program = world.image("app/bin/launch");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::write(&program, "#!/usr/bin/no-such-python -u\n").unwrap();
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let pod = pod(json!({"containers": [{"name": "web", "image": "app"}]}));
    world.start(&pod).await;
    let told = "container `web` cannot start: cannot run `bin/launch`: its interpreter `/usr/bin/no-such-python` is missing \
                on this machine";
    world.until(&pod, "told", |observed| observed.message == told).await;
}

#[tokio::test]
async fn a_crash_takes_the_children_with_it() {
    let world = World::new();
    let (child, again) = (world.file("child"), world.file("again"));
    let script = format!(
        "[ -f {1} ] && exec sleep 1000; touch {1}; setsid sleep 1000 & echo $! > {0}; exit 1",
        child.display(),
        again.display()
    );
    let pod = serving(&script);
    world.start(&pod).await;
    world.until(&pod, "restarted", |observed| observed.restarts == 1).await;
    eventually("swept", || !lives(number_in(&child)));
}

#[tokio::test]
async fn post_start_runs_before_a_container_is_ready() {
    let world = World::new();
    let (go, ran) = (world.file("go"), world.file("ran"));
    let wait = format!("while [ ! -f {} ]; do sleep 0.05; done; touch {}", go.display(), ran.display());
    let lifecycle = json!({"postStart": {"exec": {"command": ["sh", "-c", wait]}}});
    let pod = pod(json!({"containers": [with(shell("exec sleep 1000"), json!({"lifecycle": lifecycle}))]}));
    world.start(&pod).await;
    world.until(&pod, "starting", |observed| observed.phase == PodPhase::Starting).await;
    assert!(!world.dir(&pod).join("ready").exists());
    std::fs::write(&go, "").unwrap();
    world.ready(&pod).await;
    assert!(ran.exists());
}

#[tokio::test]
async fn a_command_runs_beside_a_pod_in_its_environment() {
    let world = World::new();
    let container = with(shell("exec sleep 1000"), json!({"env": [{"name": "COLOUR", "value": "blue"}]}));
    let pod = pod(json!({"containers": [container]}));
    world.start(&pod).await;
    world.ready(&pod).await;
    let run = async |words: &[&str]| world.exec(&pod, words).await;
    let told = run(&["sh", "-c", "echo $COLOUR; echo oops >&2; exit 5"]).await.unwrap();
    assert_eq!(told, (5, b"blue\n".to_vec(), b"oops\n".to_vec()));
    let (code, flood, _) = run(&["head", "-c", "3000000", "/dev/zero"]).await.unwrap();
    assert_eq!((code, flood.len()), (0, 3_000_000));
    let (code, _, missing) = run(&["no-such-command"]).await.unwrap();
    let missing = String::from_utf8(missing).unwrap();
    assert!(code == 127 && missing.contains("command not found"), "{code} {missing}");
    world.stop(&pod).await;
    assert!(run(&["true"]).await.unwrap_err().one_line().contains("has ended"));
}

#[tokio::test]
async fn a_shim_needs_no_instance_of_inotify() {
    let world = World::new();
    let pod = serving("exec sleep 600");
    world.start(&pod).await;
    world.ready(&pod).await;
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", world.shim_pid(&pod))).unwrap();
    let targets: Vec<_> = descriptors.map(|entry| std::fs::read_link(entry.unwrap().path()).unwrap()).collect();
    assert!(!targets.is_empty());
    assert!(!targets.iter().any(|target| target.to_string_lossy().contains("inotify")), "{targets:?}");
}

#[tokio::test]
async fn a_shim_is_small() {
    let world = World::new();
    let pod = serving("exec sleep 1000");
    world.start(&pod).await;
    world.ready(&pod).await;
    let status = read(format!("/proc/{}/status", world.shim_pid(&pod)));
    let kibibytes = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    // Its own; the pages of the program's file are shared by all shims, and many more in a build for debugging.
    assert!(kibibytes("RssAnon:") < 1 << 10, "{status}");
    assert!(cfg!(debug_assertions) || kibibytes("VmRSS:") < 5 << 10, "{status}");
}

#[tokio::test]
async fn a_container_whose_post_start_fails_as_it_ends_is_started_again() {
    let world = World::new();
    let lifecycle = json!({"postStart": {"exec": {"command": ["false"]}}});
    for number in 0..6 {
        let mut pod = pod(json!({"containers": [with(shell("exit 1"), json!({"lifecycle": lifecycle}))]}));
        pod.id.name = format!("web-1-{number}").as_str().into();
        world.start(&pod).await;
        world.until(&pod, "started again", |observed| observed.restarts > 0).await;
    }
}
