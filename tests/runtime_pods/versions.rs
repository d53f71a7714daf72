//! Pods and shims of another version of the program.

use launchway::model::pod::PodOwner;
use launchway::runtime::Runtime;
use serde_json::{Value, json};

use crate::world::{World, lives, number_in, read, serving};

#[tokio::test]
async fn what_a_newer_launchway_wrote_is_left_alone_and_told() {
    let mut world = World::new();
    let pid = world.file("pid");
    let pod = serving(&format!("echo $$ >> {}; exec sleep 1000", pid.display()));
    world.start(&pod).await;
    world.ready(&pod).await;
    let process = number_in(&pid);
    for name in ["pod.json", "status.json"] {
        world.kill_daemon();
        let file = world.dir(&pod).join(name);
        let before = read(&file);
        let mut newer: Value = serde_json::from_str(&before).unwrap();
        newer["v"] = json!(9);
        std::fs::write(&file, newer.to_string()).unwrap();
        world.restart();
        assert_eq!(world.observe(&pod).await.unwrap().owner, PodOwner::Unknown, "{name}");
        let problem = world.runtime().start_pod(&pod, &Default::default()).await.unwrap_err().one_line();
        let told = problem.contains(name) && problem.contains("a newer launchway wrote it: it has version 9");
        assert!(told, "{problem}");
        assert!(lives(process), "{name}");
        world.kill_daemon();
        std::fs::write(&file, before).unwrap();
        world.restart();
        world.ready(&pod).await;
    }
    assert_eq!(read(&pid), format!("{process}\n"), "it was started once");
}
