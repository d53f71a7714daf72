//! What another life of the store has started.

use std::collections::BTreeMap;

use launchway::error::Class;
use launchway::model::ids::ConfigKey;
use launchway::model::outcome::PodOutcome;
use launchway::model::pod::{Origin, Pod, PodOwner};
use launchway::model::time::Timestamp;
use launchway::runtime::Runtime;

use crate::world::{World, once, read, serving};

fn another_life(world: &mut World, life: &str) {
    world.life = life.into();
    world.restart();
}

fn replica(version: u32) -> Pod {
    let config = ConfigKey { project: "shop".into(), stage: "dev".into(), name: "web".into() };
    Pod { owner: PodOwner::Version { config, version, template: "t".into() }, ..serving("exec sleep 600") }
}

#[tokio::test]
async fn a_pod_that_serves_is_a_stranger_until_it_is_adopted() {
    let mut world = World::new();
    let pod = replica(3);
    world.start(&pod).await;
    let shim = {
        world.ready(&pod).await;
        world.shim_pid(&pod)
    };
    another_life(&mut world, "second");
    assert_eq!(world.observe(&pod).await.unwrap().origin, Origin::Stranger);
    world.runtime().adopt(&pod.id, 1).await.unwrap();
    for restarted in [false, true] {
        if restarted {
            world.restart();
        }
        let seen = world.ready(&pod).await;
        assert_eq!((seen.origin, seen.version().unwrap().1), (Origin::Adopted, 1), "restarted: {restarted}");
    }
    assert_eq!(world.shim_pid(&pod), shim, "it runs on as it is");
    another_life(&mut world, "third");
    assert_eq!(world.observe(&pod).await.unwrap().origin, Origin::Stranger, "nobody has adopted it in this one");
    another_life(&mut world, "first");
    assert_eq!(world.observe(&pod).await.unwrap().origin, Origin::Own);
}

#[tokio::test]
async fn a_command_that_another_life_ran_or_runs_is_ended_and_run_again() {
    let mut world = World::new();
    let (runs, go) = (world.file("runs"), world.file("go"));
    let script = format!("echo run >> {}; until [ -e {} ]; do sleep 0.02; done", runs.display(), go.display());
    let pod = once(&script);
    world.start(&pod).await;
    crate::world::eventually("the first run", || read(&runs) == "run\n");
    another_life(&mut world, "second");
    let failure = world.runtime().start_pod(&pod, &BTreeMap::new()).await.unwrap_err();
    assert_eq!(failure.class(), Class::Waiting, "{failure}");
    assert!(matches!(world.ended(&pod).await, PodOutcome::Failed { .. }));
    std::fs::write(&go, "").unwrap();
    world.start(&pod).await;
    assert_eq!(world.ended(&pod).await, PodOutcome::Succeeded);
    assert_eq!(world.observe(&pod).await.unwrap().origin, Origin::Own);
    another_life(&mut world, "third");
    world.start(&pod).await;
    assert_eq!(world.ended(&pod).await, PodOutcome::Succeeded);
    assert_eq!(read(&runs), "run\n".repeat(3), "what had ended well is no answer either");
}

/// A deployment config that comes back after all of it was forgotten counts its versions from 1 again.
#[tokio::test]
async fn a_command_of_an_earlier_run_with_the_same_name_is_no_answer() {
    let mut world = World::new();
    let (runs, go) = (world.file("runs"), world.file("go"));
    let script = format!("echo run >> {}; until [ -e {} ]; do sleep 0.02; done", runs.display(), go.display());
    let asked_at = |at: i64| {
        let mut pod = once(&script);
        if let PodOwner::Run { since, .. } = &mut pod.owner {
            *since = Timestamp(at);
        }
        pod
    };
    world.start(&asked_at(0)).await; // by an earlier version of the program, which does not say when
    crate::world::eventually("the first run", || read(&runs) == "run\n");
    world.start(&asked_at(1)).await;
    assert_eq!(read(&runs), "run\n", "it is the same, as far as anybody knows");
    world.restart();
    std::fs::write(&go, "").unwrap();
    assert_eq!(world.ended(&asked_at(1)).await, PodOutcome::Succeeded);
    world.start(&asked_at(1)).await;
    std::fs::remove_file(&go).unwrap();
    world.forget(&asked_at(1)).await;
    world.start(&asked_at(1)).await;
    crate::world::eventually("the second run", || read(&runs) == "run\n".repeat(2));
    let failure = world.runtime().start_pod(&asked_at(2), &BTreeMap::new()).await.unwrap_err();
    assert_eq!(failure.class(), Class::Waiting, "{failure}");
    assert!(matches!(world.ended(&asked_at(1)).await, PodOutcome::Failed { .. }), "it was ended");
    let earlier = world.observe(&asked_at(1)).await.unwrap();
    std::fs::write(&go, "").unwrap();
    world.start(&asked_at(2)).await;
    assert_eq!(world.ended(&asked_at(2)).await, PodOutcome::Succeeded);
    assert_eq!(read(&runs), "run\n".repeat(3));
    world.runtime().remove_pod(&earlier).await.unwrap();
    assert!(world.observe(&asked_at(2)).await.is_some(), "whoever still means the earlier one does not forget it");
}
