//! What a deployment config should run is in one run's hands at a time.

use launchway::control::commands::by_hand;
use launchway::engine::transition::Input;
use launchway::model::event::Event;
use launchway::model::ids::RunId;
use launchway::model::object::{Kind, Location, Object, ObjectKey};
use launchway::model::outcome::Outcome;
use launchway::model::run::{DeploymentRun, Phase, Run};
use launchway::model::state::{ConfigState, Versioned};
use launchway::model::wanted::{Portion, Target, Wanted};
use launchway::simulation::runtime::Behaviour;
use launchway::simulation::world::World;
use launchway::store::Write;
use launchway::testing::world::{config_key, deployment_config, project};
use serde_json::{Value, json};

/// Version 1 serves, and the rollout of version 2 hangs.
async fn rolling() -> (tempfile::TempDir, World) {
    let folder = crate::folder();
    let mut world = World::open(folder.path()).unwrap();
    let shop = |image: &str| {
        let shipyard = launchway::model::shipyard::Shipyard::implicit();
        project(shipyard, &[deployment_config("web", image, 2, json!({}))])
    };
    world.push(&shop("a")).await.unwrap();
    world.settle().await.unwrap();
    world.runtime.behave("web-2-", Behaviour::Hangs);
    world.push(&shop("b")).await.unwrap();
    world.settle().await.unwrap();
    (folder, world)
}

fn service(content: Value) -> Object {
    Object {
        key: ObjectKey { kind: Kind::Service, name: "web".into() },
        service: "web".into(),
        autoscaled_at: None,
        location: Location::default(),
        digest: launchway::manifest::digest::of(&content),
        content: content.into(),
    }
}

async fn change(world: &World, change: impl FnOnce(&mut ConfigState)) {
    let mut state: Versioned<ConfigState> =
        world.driver.store.config(&config_key("default", "web")).await.unwrap().unwrap();
    change(&mut state.value);
    world.driver.commit(&[Input::Write(Box::new(Write::Config(state.shared())))]).await.unwrap();
}

async fn second(world: &World) -> DeploymentRun {
    let run = world.driver.store.run(&config_key("default", "web").deployment(2)).await.unwrap();
    match run.unwrap().value {
        Run::Deployment(run) => *run,
        Run::Sequence(_) => panic!("a deployment is no sequence"),
    }
}

/// The rollout is cancelled, which brings version 1 back unless the run has lost the config.
async fn cancel(world: &World) -> DeploymentRun {
    let cancel = Event::Cancel { outcome: Outcome::ABORTED, reason: "cancelled by ann".to_owned() };
    world.driver.tell(&second(world).await.id, cancel).await.unwrap();
    world.settle().await.unwrap();
    second(world).await
}

#[tokio::test]
async fn a_run_restores_what_is_its_own() {
    let (_folder, world) = rolling().await;
    let run = cancel(&world).await;
    let wanted = world.config("default", "web").await.unwrap().wanted;
    assert_eq!((run.phase, wanted.version(), wanted.owner), (Phase::Failed, Some(1), None));
}

#[tokio::test]
async fn a_run_that_lost_the_config_to_another_ends_and_restores_nothing() {
    let (_folder, world) = rolling().await;
    let other = Wanted {
        generation: 9,
        owner: Some(RunId::new("another")),
        replicas: 1,
        targets: [(3, Target::ALL)].into(),
        ..Wanted::default()
    };
    change(&world, |state| state.wanted = other.clone()).await;
    let run = cancel(&world).await;
    assert_eq!((run.phase, run.failure.unwrap().outcome), (Phase::Failed, Outcome::ABORTED));
    assert!(run.message.ends_with("another has taken over"), "{}", run.message);
    assert_eq!(world.config("default", "web").await.unwrap().wanted, other);
}

#[tokio::test]
async fn a_run_whose_config_was_removed_ends_and_restores_nothing() {
    let (_folder, world) = rolling().await;
    change(&world, |state| {
        state.removed = true;
        state.wanted = state.wanted.nothing();
    })
    .await;
    let run = cancel(&world).await;
    assert!(run.message.ends_with("it is declared no longer"), "{}", run.message);
    let alive = world.runtime.pods().iter().filter(|pod| pod.lives()).count();
    assert_eq!(alive, 0, "nothing comes back");
}

#[tokio::test]
async fn shares_of_the_traffic_reach_the_runtime() {
    let folder = crate::folder();
    let mut world = World::open(folder.path()).unwrap();
    let content = json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    for image in ["a", "b"] {
        let shipyard = launchway::model::shipyard::Shipyard::implicit();
        let objects = [deployment_config("web", image, 2, json!({})), service(content.clone())];
        world.push(&project(shipyard, &objects)).await.unwrap();
        world.settle().await.unwrap();
    }
    let backends = || world.runtime.services().into_iter().map(|service| service.backends).collect::<Vec<_>>();
    assert_eq!(backends(), [vec![]], "every ready pod answers");
    change(&world, |state| {
        let target = |portion, share| Target { portion, ..Target::ALL.with_share(share) };
        state.wanted.targets = [(1, target(Portion::Rest, 80)), (2, target(Portion::AtMost(1), 20))].into();
    })
    .await;
    world.settle().await.unwrap();
    let weights: Vec<Vec<(u32, u32)>> =
        backends().into_iter().map(|all| all.iter().map(|one| (one.version, one.weight)).collect()).collect();
    assert_eq!(weights, [[(1, 800), (2, 200)]]);
}

#[tokio::test]
async fn a_scale_in_the_middle_of_a_rollout_leaves_it_to_its_owner() {
    let (_folder, world) = rolling().await;
    let before = world.config("default", "web").await.unwrap().wanted;
    by_hand::scale(&world.driver, &config_key("default", "web"), 4, "ann").await.unwrap();
    let after = world.config("default", "web").await.unwrap().wanted;
    assert_eq!(after, Wanted { replicas: 4, ..before });
}
