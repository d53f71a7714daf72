//! So many pods of a version: which start and end is the runtime's to choose.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use launchway::model::ids::{ConfigKey, Destination};
use launchway::model::pod::{ObservedPod, PodPhase, ReplicaSet};
use launchway::runtime::Runtime;
use serde_json::{Value, json};

use crate::world::{PATIENCE, World, pod, shell, terminate};

fn set(spec: Value, replicas: u32) -> ReplicaSet {
    let pod = pod(spec);
    ReplicaSet {
        config: ConfigKey { project: "shop".into(), stage: "dev".into(), name: "web".into() },
        version: 1,
        destination: Destination::local(pod.id.namespace),
        template: pod.template,
        object: None,
        digest: "t".into(),
        repository: pod.repository,
        commit: pod.commit,
        replicas,
        min_ready_seconds: 0,
    }
}

/// The pods of the namespace, once they are as expected.
async fn until(world: &World, set: &ReplicaSet, expected: impl Fn(&[ObservedPod]) -> bool) -> Vec<ObservedPod> {
    let since = Instant::now();
    loop {
        let pods = world.runtime().observe(&set.destination.namespace).await.unwrap();
        if expected(&pods) {
            return pods;
        }
        assert!(since.elapsed() < PATIENCE, "not as expected: {pods:#?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn ready(pods: &[ObservedPod]) -> usize {
    pods.iter().filter(|pod| matches!(pod.phase, PodPhase::Ready { .. })).count()
}

#[tokio::test]
async fn a_version_has_as_many_pods_as_it_is_told() {
    let world = World::new();
    let set = |replicas| {
        let spec = json!({"containers": [shell("exec sleep 600")], "terminationGracePeriodSeconds": 1});
        set(spec, replicas)
    };
    let scale = async |living, replicas| world.runtime().scale(&set(replicas), living, &BTreeMap::new()).await.unwrap();
    assert_eq!(scale(0, 3).await, None);
    until(&world, &set(3), |pods| ready(pods) == 3).await;
    assert_eq!(scale(3, 3).await, None, "saying it again changes nothing");
    assert!(scale(0, 1).await.is_some(), "it was decided on what was there before");
    assert_eq!(ready(&until(&world, &set(3), |_| true).await), 3);
    scale(3, 1).await;
    let pods = until(&world, &set(1), |pods| pods.iter().filter(|pod| pod.ended_at.is_some()).count() == 2).await;
    let left: Vec<u32> = pods.iter().filter(|pod| pod.lives()).map(ObservedPod::number).collect();
    assert_eq!((ready(&pods), left), (1, vec![0]), "the youngest go");
    scale(1, 0).await;
    until(&world, &set(0), |pods| pods.iter().all(|pod| pod.ended_at.is_some())).await;
}

#[tokio::test]
async fn many_pods_are_not_started_in_one_go() {
    let world = World::new();
    let set =
        |replicas| set(json!({"containers": [shell("exec sleep 600")], "terminationGracePeriodSeconds": 1}), replicas);
    let again = world.runtime().scale(&set(600), 0, &BTreeMap::new()).await.unwrap();
    assert!(again.is_some(), "the rest is to be asked for again");
    let started = world.runtime().observe(&set(0).destination.namespace).await.unwrap().len();
    assert!(started < 20, "{started} were started at once");
    world.runtime().scale(&set(0), u32::try_from(started).unwrap(), &BTreeMap::new()).await.unwrap();
    until(&world, &set(0), |pods| pods.iter().all(|pod| pod.ended_at.is_some())).await;
}

#[tokio::test]
async fn a_pod_whose_shim_was_told_to_end_is_not_replaced_while_it_ends() {
    let world = World::new();
    let go = world.file("go");
    let script = format!(
        "trap 'while [ ! -e {} ]; do sleep 0.02; done; exit 0' TERM; while :; do sleep 0.02; done",
        go.display()
    );
    let set = set(json!({"containers": [shell(&script)], "terminationGracePeriodSeconds": 600}), 1);
    world.runtime().scale(&set, 0, &BTreeMap::new()).await.unwrap();
    let pods = until(&world, &set, |pods| ready(pods) == 1).await;
    let dir = world.root().join("pods/shop-dev").join(pods[0].id.name.as_str());
    let status: Value = serde_json::from_slice(&std::fs::read(dir.join("status.json")).unwrap()).unwrap();
    terminate(i32::try_from(status["shim"]["pid"].as_i64().unwrap()).unwrap());
    let ends = |pods: &[ObservedPod]| matches!(pods[0].phase, PodPhase::Stopping { interrupted: true });
    until(&world, &set, ends).await;
    for _ in 0..3 {
        assert!(world.runtime().scale(&set, 0, &BTreeMap::new()).await.unwrap().is_some(), "it is to be asked again");
        let pods = until(&world, &set, |_| true).await;
        assert!(pods.len() == 1 && ends(&pods), "{pods:?}");
    }
    std::fs::write(go, "").unwrap();
    let pods = until(&world, &set, |pods| pods[0].ended_at.is_some()).await;
    let again = world.runtime().scale(&set, 0, &BTreeMap::new()).await.unwrap();
    assert_eq!(again, pods[0].ended_at.map(|ended| ended + Duration::from_secs(10)));
}

#[tokio::test]
async fn a_pod_that_cannot_start_is_tried_again_after_a_pause() {
    let world = World::new();
    let spec = json!({
        "containers": [shell("true")],
        "volumes": [{"name": "v", "hostPath": {"path": "/etc"}}],
    });
    let set = set(spec, 1);
    for ended in 1..=2 {
        world.runtime().scale(&set, 0, &BTreeMap::new()).await.unwrap();
        until(&world, &set, |pods| pods.iter().filter(|pod| pod.ended_at.is_some()).count() == ended).await;
    }
    let again = world.runtime().scale(&set, 0, &BTreeMap::new()).await.unwrap().unwrap();
    let pods = world.runtime().observe(&set.destination.namespace).await.unwrap();
    let last = pods.iter().filter_map(|pod| pod.ended_at).max().unwrap();
    assert_eq!((pods.len(), again), (2, last + Duration::from_secs(10)));
}
