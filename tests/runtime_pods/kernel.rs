//! What a user has few of.

use std::process::Command;

use crate::world::{World, serving};

/// Nothing can be watched any more in there.
const WITHOUT_INOTIFY: &str = "echo 0 > /proc/sys/user/max_inotify_instances && exec \"$0\" \"$@\"";

#[test]
fn without_an_instance_of_inotify_pods_are_read_regularly() {
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", script]).arg(std::env::current_exe().unwrap());
        command
    };
    if !unshare("echo 0 > /proc/sys/user/max_inotify_instances").status().is_ok_and(|status| status.success()) {
        return; // this machine does not let users take that away from themselves
    }
    let output =
        unshare(WITHOUT_INOTIFY).args(["--exact", "kernel::stand_in", "--ignored", "--nocapture"]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
}

#[tokio::test]
#[ignore = "started by the test above, as a process of its own"]
async fn stand_in() {
    rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::CLOEXEC).unwrap_err();
    let world = World::new();
    let pod = serving("exec sleep 600");
    world.start(&pod).await;
    world.ready(&pod).await;
    world.stop(&pod).await;
}
