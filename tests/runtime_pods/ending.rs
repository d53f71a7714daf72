//! How pods end.

use launchway::model::outcome::PodOutcome;
use launchway::model::pod::PodPhase;
use launchway::runtime::Runtime;
use rustix::fs::{FlockOperation, flock};
use serde_json::json;

use crate::world::{World, eventually, lives, number_in, pod, read, serving, shell, terminate, with};

#[tokio::test]
async fn a_pod_leaves_its_services_and_drains_before_it_is_told_to_end() {
    let world = World::new();
    let (pid, trace) = (world.file("pid"), world.file("trace"));
    let script = format!(
        "trap 'echo term >> {1}; exit 0' TERM; echo $$ > {0}; while :; do sleep 0.05; done",
        pid.display(),
        trace.display()
    );
    let pre_stop = format!(
        "test ! -e {}/ready && echo left >> {}",
        world.root().join("pods/shop-dev/web-1-a").display(),
        trace.display()
    );
    let lifecycle = json!({"preStop": {"exec": {"command": ["sh", "-c", pre_stop]}}});
    let container = with(shell(&script), json!({"lifecycle": lifecycle}));
    let pod = pod(json!({"containers": [container], "terminationGracePeriodSeconds": 120}));
    world.start(&pod).await;
    world.ready(&pod).await;
    let pid = number_in(&pid);
    let in_flight =
        std::fs::OpenOptions::new().read(true).write(true).open(world.dir(&pod).join("connections")).unwrap();
    flock(&in_flight, FlockOperation::LockShared).unwrap();
    world.runtime().stop_pod(&pod.id).await.unwrap();
    eventually("out of its services", || !world.dir(&pod).join("ready").exists());
    world.until(&pod, "stopping", |observed| observed.phase == PodPhase::Stopping { interrupted: false }).await;
    assert!(lives(pid) && read(&trace).is_empty());
    drop(in_flight);
    assert_eq!(world.ended(&pod).await, PodOutcome::Succeeded);
    assert_eq!(read(&trace), "left\nterm\n");
}

#[tokio::test]
async fn a_machine_that_shuts_down_ends_its_pods_in_order() {
    let world = World::new();
    let trace = world.file("trace");
    let script = format!("trap 'echo term >> {}; exit 0' TERM; while :; do sleep 0.05; done", trace.display());
    let said = format!("echo left >> {}", trace.display());
    let lifecycle = json!({"preStop": {"exec": {"command": ["sh", "-c", said]}}});
    let pod = pod(json!({"containers": [with(shell(&script), json!({"lifecycle": lifecycle}))]}));
    world.start(&pod).await;
    world.ready(&pod).await;
    terminate(world.shim_pid(&pod));
    let outcome = world.ended(&pod).await;
    assert!(matches!(outcome, PodOutcome::Unknown { interrupted: true, .. }), "{outcome:?}");
    assert_eq!(read(&trace), "left\nterm\n");
    assert!(!world.dir(&pod).join("ready").exists());
}

#[tokio::test]
async fn what_runs_before_a_shutdown_ends_pods_in_order_whose_programs_take_no_notice() {
    let world = World::new();
    let trace = world.file("trace");
    let said = format!("sleep 0.3; echo $POD_NAME left >> {}", trace.display());
    let lifecycle = json!({"preStop": {"exec": {"command": ["sh", "-c", said]}}});
    let pods = ["web-1-a", "web-1-b"].map(|name| {
        let mut pod = pod(json!({"containers": [with(shell("exec sleep 1000"), json!({"lifecycle": lifecycle}))]}));
        pod.id.name = name.into();
        pod
    });
    for pod in &pods {
        world.start(pod).await;
        world.ready(pod).await;
    }
    let program = env!("CARGO_BIN_EXE_launchway-shim");
    let ended = std::process::Command::new(program).arg("end-pods").arg(world.root()).status().unwrap();
    assert!(ended.success());
    let mut left: Vec<String> = read(&trace).lines().map(str::to_owned).collect();
    left.sort();
    assert_eq!(left, ["web-1-a left", "web-1-b left"], "it returns once all have ended");
    for pod in &pods {
        assert!(matches!(world.ended(pod).await, PodOutcome::Unknown { interrupted: true, .. }));
    }
}

#[tokio::test]
async fn connections_that_never_end_are_not_waited_for_longer_than_the_grace_period() {
    let world = World::new();
    let pod = pod(json!({"containers": [shell("exec sleep 1000")], "terminationGracePeriodSeconds": 1}));
    world.start(&pod).await;
    world.ready(&pod).await;
    let in_flight =
        std::fs::OpenOptions::new().read(true).write(true).open(world.dir(&pod).join("connections")).unwrap();
    flock(&in_flight, FlockOperation::LockShared).unwrap();
    assert_eq!(world.stop(&pod).await, PodOutcome::Succeeded);
}

#[tokio::test]
async fn what_ignores_sigterm_is_killed() {
    let world = World::new();
    let pid = world.file("pid");
    let script = format!("trap '' TERM; echo $$ > {}; while :; do sleep 0.05; done", pid.display());
    let pod = pod(json!({"containers": [shell(&script)], "terminationGracePeriodSeconds": 1}));
    world.start(&pod).await;
    let pid = number_in(&pid);
    world.stop(&pod).await;
    assert!(!lives(pid));
}

#[tokio::test]
async fn no_process_survives_its_pod_whatever_it_did() {
    let world = World::new();
    let names = ["session", "clean", "daemon"].map(|name| world.file(name));
    let script = format!(
        "setsid sleep 1000 & echo $! > {}
         env -i sleep 1000 & echo $! > {}
         (setsid sh -c 'env -i sleep 1000 & echo $! > {}' &)
         exec sleep 1000",
        names[0].display(),
        names[1].display(),
        names[2].display()
    );
    let pod = serving(&script);
    world.start(&pod).await;
    let pids = names.map(|name| number_in(&name));
    world.stop(&pod).await;
    assert_eq!(pids.map(lives), [false; 3]);
}

#[tokio::test]
async fn a_pod_that_is_asked_to_end_before_it_runs_never_runs() {
    let world = World::new();
    let ran = world.file("ran");
    let init = with(shell("exec sleep 1000"), json!({"name": "init"}));
    let pod = pod(json!({"initContainers": [init], "containers": [shell(&format!("touch {}", ran.display()))]}));
    world.start(&pod).await;
    world.stop(&pod).await;
    assert!(!ran.exists());
}
