//! Control groups, where this user may make them: what a pod may take, and that it ends as a whole.

use launchway::model::outcome::PodOutcome;
use launchway::model::pod::Pod;
use serde_json::json;

use crate::world::{World, eventually, kill, lives, number_in, pod, serving, shell, with};

/// Runs what leaves the family of whoever asks, forgets by what a pod's processes are known, and stays; its process id.
async fn stray(world: &World, pod: &Pod) -> i32 {
    let pid = world.file("stray");
    let script = format!("setsid env -i sh -c 'echo $$ > {}; exec sleep 1000' > /dev/null 2>&1 &", pid.display());
    assert_eq!(world.exec(pod, &["sh", "-c", &script]).await.unwrap().0, 0);
    number_in(&pid)
}

/// Whether a pod has groups: root has some everywhere, others where they were delegated.
fn has_groups(world: &World, pod: &Pod) -> bool {
    let folders = world.status(pod)["groups"]["folders"].as_array().unwrap().clone();
    assert!(!folders.is_empty() || !rustix::process::getuid().is_root());
    folders.iter().for_each(|folder| assert!(std::path::Path::new(folder.as_str().unwrap()).is_dir(), "{folder}"));
    !folders.is_empty()
}

#[tokio::test]
async fn a_pod_ends_with_what_nobody_else_would_find() {
    let world = World::new();
    let pod = serving("exec sleep 1000");
    world.start(&pod).await;
    world.ready(&pod).await;
    if !has_groups(&world, &pod) {
        return;
    }
    let stray = stray(&world, &pod).await;
    let folders = world.status(&pod)["groups"]["folders"].clone();
    world.stop(&pod).await;
    world.ended(&pod).await;
    assert!(!lives(stray));
    let is_gone = |folder: &serde_json::Value| !std::path::Path::new(folder.as_str().unwrap()).exists();
    eventually("groups are removed", || folders.as_array().unwrap().iter().all(is_gone));
}

#[tokio::test]
async fn a_pod_whose_shim_was_killed_ends_as_a_whole_too() {
    let world = World::new();
    let pod = serving("exec sleep 1000");
    world.start(&pod).await;
    world.ready(&pod).await;
    if !has_groups(&world, &pod) {
        return;
    }
    let stray = stray(&world, &pod).await;
    kill(world.shim_pid(&pod));
    assert!(matches!(world.ended(&pod).await, PodOutcome::Unknown { .. }));
    assert!(!lives(stray));
}

#[tokio::test]
async fn memory_is_limited_where_the_machine_lets_it() {
    let world = World::new();
    let script = "exec python3 -c 'print(len(bytearray(200 << 20)))'";
    let container = with(shell(script), json!({"resources": {"limits": {"memory": "50Mi", "cpu": "500m"}}}));
    let pod = Pod { run_once_seconds: Some(60), ..pod(json!({"containers": [container]})) };
    world.start(&pod).await;
    let outcome = world.ended(&pod).await;
    let logs = world.logs(&pod).await;
    let enforced = matches!(outcome, PodOutcome::Failed { code: 137, .. });
    assert!(enforced || logs.contains("resource limits are not enforced"), "{outcome:?} {logs}");
}
