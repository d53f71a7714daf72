//! A rollback of 15 deployment configs of which one fails: whichever that is, and whenever the daemon dies, all of them serve
//! in the end what they served before, and each hook has run as often as it should.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use launchway::control::commands::by_hand;
use launchway::model::project::Project;
use launchway::model::rollback::{Rollback, RollbackParts, RollbackTo};
use launchway::model::run::Run;
use launchway::model::shipyard::Shipyard;
use launchway::simulation::runtime::{Behaviour, Deed};
use launchway::simulation::world::{Surroundings, World};
use launchway::store::sqlite::SqliteStore;
use launchway::testing::world::{config_key, deployment_config, hook, project};
use serde_json::json;

use crate::mortal::{Death, MortalStore, Mortality};

/// How many go back together.
const MEMBERS: usize = 15;
/// Every how many of them fails in a rollback of its own: a release build, which `.ci/run simulation` plays, is ten times as fast.
const EVERY: usize = if cfg!(debug_assertions) { 5 } else { 1 };
/// More lives than a rollback that gets on can have.
const TOO_MANY: usize = 2_000;

fn name(member: usize) -> String {
    format!("s{member:02}")
}

/// All of them with an image, each with a hook after its rollout.
fn shop(image: &str) -> Project {
    let params = json!({"maxSurge": 1, "maxUnavailable": 0, "post": hook("Abort")});
    let spec = json!({"strategy": {"type": "Rolling", "rollingParams": params}});
    let config = |member| deployment_config(&name(member), image, 1, spec.clone());
    project(Shipyard::implicit(), &(0..MEMBERS).map(config).collect::<Vec<_>>())
}

fn asked() -> Vec<Rollback> {
    let rollback = |member| {
        let (config, to, notes) = (config_key("default", &name(member)), RollbackTo::LastComplete, String::new());
        Rollback { config, to, parts: RollbackParts::ALL, notes, may_be_absent: false }
    };
    (0..MEMBERS).map(rollback).collect()
}

/// A daemon that may die.
struct Life {
    world: World,
    store: Arc<MortalStore>,
}

impl Life {
    fn begin(folder: &std::path::Path, surroundings: Surroundings, death: Option<Death>, seed: u64) -> Self {
        let inner = SqliteStore::open(&folder.join("store.db"), surroundings.clock()).unwrap();
        let store = Arc::new(MortalStore { guard: Mortality::new(death, seed), store: Arc::new(inner) });
        Self { world: World::over(store.clone(), surroundings), store }
    }
}

/// The whole rollback, whose `failing` part fails, in daemons that die after so many commits.
async fn roll_back(failing: usize, death: Option<Death>) {
    let (folder, surroundings) = (crate::folder(), Surroundings::default());
    let seed = 7 + failing as u64;
    let mut life = Life::begin(folder.path(), surroundings.clone(), None, seed);
    for image in ["a", "b"] {
        life.world.push(&shop(image)).await.unwrap();
        life.world.pass(Duration::from_secs(5)).await.unwrap();
    }
    let runtime = life.world.runtime.clone();
    let bad = name(failing);
    runtime.behave(&format!("shop-default/{bad}-3-hook-post"), Behaviour::fails(3));
    let before = runtime.deeds().len();
    let mut lives = 0;
    loop {
        drop(life);
        life = Life::begin(folder.path(), surroundings.clone(), death, seed + lives as u64);
        match go_back(&life.world).await {
            Ok(()) => break,
            Err(failure) => assert!(life.store.guard.is_dead() && lives < TOO_MANY, "{lives}: {failure:#}"),
        }
        lives += 1;
    }
    drop(life);
    let last = Life::begin(folder.path(), surroundings, None, seed);
    assert_all_serve_as_before(&last.world, failing).await;
    let started = |deed: &Deed| match deed {
        Deed::Started(pod) if pod.to_string().contains("-hook-") => Some(pod.to_string()),
        _ => None,
    };
    let mut hooks: BTreeMap<String, usize> = BTreeMap::new();
    runtime.deeds()[before..].iter().filter_map(started).for_each(|pod| *hooks.entry(pod).or_default() += 1);
    assert!(hooks.values().all(|times| *times == 1), "no hook runs twice: {hooks:?}");
}

/// Asks for it, unless that was taken already, and lets everything come to its end.
async fn go_back(world: &World) -> launchway::error::Result<()> {
    if world.driver.store.holds().await?.whole()?.is_empty() {
        by_hand::roll_back(&world.driver, &asked(), false, "ann").await?;
    }
    world.pass(Duration::from_secs(5)).await
}

async fn assert_all_serve_as_before(world: &World, failing: usize) {
    let before = shop("b");
    for member in 0..MEMBERS {
        let state = world.config("default", &name(member)).await.unwrap();
        let serving = state.serving.as_ref().unwrap();
        let declared = before.stages[0].objects.get(&state.object.key).unwrap();
        assert_eq!(serving.object.digest, declared.digest, "{member} of {failing} serves {}", serving.number);
        assert_eq!(state.wanted.counts(), BTreeMap::from([(serving.number, 1)]), "{member} of {failing}");
        assert!(state.open_attempt().is_none(), "{member} of {failing}");
        assert!(member == failing || serving.number <= 4, "{member} of {failing}: versions only as needed");
    }
    let holds = world.driver.store.holds().await.unwrap().whole().unwrap();
    assert_eq!(holds.len(), MEMBERS, "nothing goes on by itself");
    let runs = world.runs().await.unwrap();
    assert!(runs.iter().all(Run::is_ended), "nothing is left to do");
    let brought_back: Vec<&str> = runs.iter().filter_map(Run::sequence).map(|run| &*run.cause).collect();
    let because = format!("because the rollback of {} failed", name(failing));
    let told = brought_back.iter().filter(|cause| cause.starts_with("back to version 2, ")).count();
    assert_eq!(told, brought_back.iter().filter(|cause| cause.contains(&because)).count());
}

#[tokio::test(flavor = "multi_thread")]
async fn whichever_part_fails_all_serve_what_they_served_before() {
    let mut rollbacks = tokio::task::JoinSet::new();
    (0..MEMBERS).step_by(EVERY).for_each(|failing| drop(rollbacks.spawn(roll_back(failing, None))));
    rollbacks.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_dies_at_any_commit_of_it_loses_nothing() {
    let mut rollbacks = tokio::task::JoinSet::new();
    let deaths = [(1, true), (2, false), (3, true), (5, false)].map(|(at, durable)| Death { at, durable });
    let ways = [0, 7, 14].into_iter().flat_map(|failing| deaths.map(|death| (failing, death)));
    for (failing, death) in ways.step_by(EVERY) {
        rollbacks.spawn(roll_back(failing, Some(death)));
    }
    rollbacks.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_failure_all_go_back() {
    let folder = crate::folder();
    let mut life = Life::begin(folder.path(), Surroundings::default(), None, 1);
    for image in ["a", "b"] {
        life.world.push(&shop(image)).await.unwrap();
        life.world.pass(Duration::from_secs(5)).await.unwrap();
    }
    go_back(&life.world).await.unwrap();
    let earlier = shop("a");
    for member in 0..MEMBERS {
        let state = life.world.config("default", &name(member)).await.unwrap();
        let serving = state.serving.unwrap();
        let declared = earlier.stages[0].objects.get(&state.object.key).unwrap();
        assert_eq!((serving.number, &serving.object.digest), (3, &declared.digest));
    }
}
