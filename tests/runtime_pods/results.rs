//! What run-once pods write of how they went.

use std::collections::BTreeMap;

use launchway::model::object::{Kind, ObjectKey};
use launchway::model::outcome::PodOutcome;
use launchway::model::pod::{Pod, PodResult};
use launchway::runtime::Runtime;
use serde_json::{Value, json};

use crate::world::{World, eventually, kill, once, pod, shell, with};

/// A pod that may say more than its exit code.
fn telling(script: &str) -> Pod {
    Pod { tells_result: true, ..once(script) }
}

async fn written(world: &World, pod: &Pod) -> Option<PodResult> {
    world.runtime().result(&pod.id).await.unwrap()
}

#[tokio::test]
async fn what_a_pod_writes_is_known_once_it_has_ended_whatever_its_exit_code() {
    let world = World::new();
    let pod = telling(r#"printf '{"result": "warning", "test": {"score": 97.5}}' > "$LAUNCHWAY_RESULT"; exit 4"#);
    world.start(&pod).await;
    assert!(matches!(world.ended(&pod).await, PodOutcome::Failed { code: 4, .. }));
    let expected = json!({"result": "warning", "test": {"score": 97.5}});
    assert_eq!(written(&world, &pod).await, Some(PodResult::Written(expected)));
}

#[tokio::test]
async fn a_pod_that_is_not_asked_has_no_place_to_write_to_and_one_that_writes_nothing_has_said_nothing() {
    let world = World::new();
    let silent = once("[ -z \"$LAUNCHWAY_RESULT\" ] && echo '{}' > \"$HOME/.launchway-result.json\"");
    world.start(&silent).await;
    assert_eq!(world.ended(&silent).await, PodOutcome::Succeeded);
    assert_eq!(written(&world, &silent).await, None);
    let mut brief = telling("[ -n \"$LAUNCHWAY_RESULT\" ]");
    brief.id.name = "web-1-b".into();
    world.start(&brief).await;
    assert_eq!(world.ended(&brief).await, PodOutcome::Succeeded);
    assert_eq!(written(&world, &brief).await, None);
}

#[tokio::test]
async fn what_ends_and_writes_while_there_is_no_daemon_is_known_afterwards() {
    let mut world = World::new();
    let go = world.file("go");
    let script = "while [ ! -f GO ]; do sleep 0.05; done; echo '{\"message\": \"late\"}' > \"$LAUNCHWAY_RESULT\"";
    let pod = telling(&script.replace("GO", &go.display().to_string()));
    world.start(&pod).await;
    eventually("started", || world.dir(&pod).join("status.json").exists());
    world.kill_daemon();
    std::fs::write(&go, "").unwrap();
    eventually("ended", || world.status(&pod)["phase"] == "ended");
    world.restart();
    assert_eq!(world.ended(&pod).await, PodOutcome::Succeeded);
    assert_eq!(written(&world, &pod).await, Some(PodResult::Written(json!({"message": "late"}))));
}

#[tokio::test]
async fn what_was_written_before_its_shim_was_killed_is_no_answer() {
    let world = World::new();
    let said = world.file("said");
    let script = format!("echo '{{}}' > \"$LAUNCHWAY_RESULT\"; echo > {}; exec sleep 1000", said.display());
    let pod = telling(&script);
    world.start(&pod).await;
    eventually("it has written", || said.exists());
    kill(world.shim_pid(&pod));
    assert!(matches!(world.ended(&pod).await, PodOutcome::Unknown { .. }));
    assert_eq!(written(&world, &pod).await, None);
}

#[tokio::test]
async fn nothing_of_its_secrets_is_kept() {
    let world = World::new();
    let secret = json!({"stringData": {"password": "correct-\"horse\""}});
    let objects = BTreeMap::from([(ObjectKey { kind: Kind::Secret, name: "login".into() }, secret)]);
    let script = r#"printf '{"message": "as correct-\\"horse\\"", "test": {"in": ["Y29ycmVjdC0iaG9yc2Ui"]}}' > "$LAUNCHWAY_RESULT""#;
    let container = with(shell(script), json!({"envFrom": [{"secretRef": {"name": "login"}}]}));
    let pod = Pod { tells_result: true, run_once_seconds: Some(60), ..pod(json!({ "containers": [container] })) };
    world.start_with(&pod, &objects).await;
    assert_eq!(world.ended(&pod).await, PodOutcome::Succeeded);
    let expected = json!({"message": "as ***", "test": {"in": ["***"]}});
    assert_eq!(written(&world, &pod).await, Some(PodResult::Written(expected)));
    let kept: Value = serde_json::from_str(&crate::world::read(world.dir(&pod).join("result.json"))).unwrap();
    assert_eq!(kept["result"]["written"]["message"], "as ***");
}

#[tokio::test]
async fn what_is_too_large_or_no_file_says_so() {
    let world = World::new();
    for (name, script, expected) in [
        ("web-1-a", "head -c 70000 /dev/zero > \"$LAUNCHWAY_RESULT\"", "has more than 65536 bytes"),
        ("web-1-b", "ln -s /etc/hostname \"$LAUNCHWAY_RESULT\"", "is a link"),
        ("web-1-c", "mkfifo \"$LAUNCHWAY_RESULT\"", "is no file"),
        ("web-1-d", "echo pass > \"$LAUNCHWAY_RESULT\"", "is no JSON: expected value at line 1 column 1"),
    ] {
        let mut pod = telling(script);
        pod.id.name = name.into();
        world.start(&pod).await;
        assert_eq!(world.ended(&pod).await, PodOutcome::Succeeded, "{script}");
        let Some(PodResult::Unusable(wrong)) = written(&world, &pod).await else { panic!("{script}") };
        assert!(wrong.starts_with(expected), "{wrong}");
    }
}
