//! Control groups, where this user may make them: what a pod may take, and that it ends as a whole.

use std::path::PathBuf;

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

/// A pod that serves with a stray beside it, and its groups; nothing where a pod has none: root has some everywhere, others
/// where they were delegated.
async fn pod_with_stray(world: &World) -> Option<(Pod, i32, Vec<PathBuf>)> {
    let pod = serving("exec sleep 1000");
    world.start(&pod).await;
    world.ready(&pod).await;
    let folders = world.status(&pod)["groups"]["folders"].clone();
    let groups: Vec<PathBuf> = serde_json::from_value(folders).unwrap();
    assert!(!groups.is_empty() || !rustix::process::getuid().is_root());
    groups.iter().for_each(|group| assert!(group.is_dir(), "{}", group.display()));
    let stray = if groups.is_empty() { return None } else { stray(world, &pod).await };
    Some((pod, stray, groups))
}

#[tokio::test]
async fn a_pod_ends_with_what_nobody_else_would_find() {
    let world = World::new();
    let Some((pod, stray, groups)) = pod_with_stray(&world).await else { return };
    world.stop(&pod).await;
    world.ended(&pod).await;
    assert!(!lives(stray));
    eventually("groups are removed", || groups.iter().all(|group| !group.exists()));
}

#[tokio::test]
async fn a_pod_whose_shim_was_killed_ends_as_a_whole_too() {
    let world = World::new();
    let Some((pod, stray, _)) = pod_with_stray(&world).await else { return };
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

#[tokio::test]
async fn nothing_leaves_its_groups() {
    let world = World::new();
    let script = "for group in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs; do \
                  [ -f $group ] && echo $$ > $group && echo left; done 2> /dev/null; echo tried";
    let pod = Pod { run_once_seconds: Some(60), ..pod(json!({"containers": [shell(script)]})) };
    world.start(&pod).await;
    world.ended(&pod).await;
    let logs = world.logs(&pod).await;
    assert!(logs.contains("tried") && !logs.contains("left"), "{logs}");
}
