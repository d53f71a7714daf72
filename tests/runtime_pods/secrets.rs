//! What pods print of the Secrets that they use: nothing of it is kept or told.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use launchway::model::object::{Kind, ObjectKey};
use launchway::model::outcome::PodOutcome;
use launchway::model::pod::Pod;
use serde_json::{Value, json};

use crate::world::{World, once, pod, shell, with};

/// A password, and a key of several lines; what they look like in base64; and a value that is in other output by chance.
const SECRETS: [&str; 4] = ["correct-horse", "MIIEvQIBADANBgkq", "Y29ycmVjdC1ob3Jz", "TUlJRXZRSUJBREFO"];

fn login() -> BTreeMap<ObjectKey, Value> {
    let key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\n-----END KEY-----\n";
    let content = json!({"stringData": {"password": "correct-horse", "key": key, "port": "5432"}});
    BTreeMap::from([(ObjectKey { kind: Kind::Secret, name: "login".into() }, content)])
}

/// A container that has the Secret in variables and in files.
fn container(script: &str) -> Value {
    let mounts = json!([{"name": "login", "mountPath": "login"}]);
    with(shell(script), json!({"envFrom": [{"secretRef": {"name": "login"}}], "volumeMounts": mounts}))
}

fn using(containers: Value) -> Pod {
    pod(json!({"containers": containers, "volumes": [{"name": "login", "secret": {"secretName": "login"}}]}))
}

/// Every file of a pod that launchway writes, but for what it was asked for and what its processes find.
fn told_files(dir: &Path) -> Vec<PathBuf> {
    let logs = std::fs::read_dir(dir.join("logs")).into_iter().flatten().flatten().map(|entry| entry.path());
    logs.chain(["status.json", "shim.log", "ready"].map(|name| dir.join(name))).collect()
}

async fn assert_told(world: &World, pod: &Pod, expected: &str) {
    let observed = world.observe(pod).await.unwrap();
    let told = format!("{observed:?} {}", world.logs(pod).await);
    let files = told_files(&world.dir(pod)).into_iter().filter_map(|path| std::fs::read(path).ok()).flatten();
    let files: Vec<u8> = files.collect();
    let files = String::from_utf8_lossy(&files).into_owned();
    for secret in SECRETS {
        assert!(!told.contains(secret) && !files.contains(secret), "{secret} in {told} {files}");
    }
    assert!(told.contains(expected) && files.contains(expected), "no `{expected}` in {told} {files}");
}

#[tokio::test]
async fn a_command_that_fails_tells_nothing_of_its_secrets() {
    let world = World::new();
    let script = "echo cannot log in at 5432 as $password or $(printf %s $password | base64); cat login/key; \
                  base64 login/key; printf correct-; sleep 0.1; printf 'horse, really'; exit 3";
    let failing = Pod { run_once_seconds: Some(60), ..using(json!([container(script)])) };
    world.start_with(&failing, &login()).await;
    let PodOutcome::Failed { code: 3, message, .. } = world.ended(&failing).await else { panic!() };
    assert!(message.starts_with("cannot log in at 5432 as *** or ***\n***\n***\n***\n"), "{message}");
    assert!(message.ends_with("***, really"), "{message}");
    assert_told(&world, &failing, "cannot log in at 5432 as ***").await;
}

#[tokio::test]
async fn a_command_that_is_missing_and_probes_that_fail_tell_nothing_of_secrets() {
    let world = World::new();
    let missing = with(container(""), json!({"command": ["run-$(password)"]}));
    let missing = Pod { run_once_seconds: Some(60), ..using(json!([missing])) };
    world.start_with(&missing, &login()).await;
    let PodOutcome::Failed { code: 127, message, .. } = world.ended(&missing).await else { panic!() };
    assert!(message.contains("`run-***`"), "{message}");

    let probe = json!({"exec": {"command": ["sh", "-c", "echo not with $password; exit 1"]}, "periodSeconds": 1});
    let mut probed = using(json!([with(container("exec sleep 1000"), json!({"readinessProbe": probe}))]));
    probed.id.name = "web-2-a".into();
    world.start_with(&probed, &login()).await;
    world.until(&probed, "told what its probe says", |pod| pod.message.contains("not with")).await;
    assert_told(&world, &probed, "not with ***").await;
}

#[tokio::test]
async fn what_a_pod_prints_that_uses_no_secret_stays_as_it_is() {
    let world = World::new();
    let pod = once("printf 'correct-horse '; echo correct-horse");
    world.start(&pod).await;
    assert_eq!(world.ended(&pod).await, PodOutcome::Succeeded);
    assert_eq!(world.logs(&pod).await, "correct-horse correct-horse\n");
}
