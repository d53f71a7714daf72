//! Many pushes: the disk stays flat, and what a rollback may want stays.

use std::path::Path;
use std::time::Duration;

use launchway::config::RetentionSettings;
use launchway::control::commands::by_hand;
use launchway::control::housekeeping::Housekeeping;
use launchway::model::project::Project;
use launchway::model::run::Run;
use launchway::model::shipyard::{Sequence, Shipyard, Stage, Task};
use launchway::simulation::runtime::Behaviour;
use launchway::simulation::world::World;
use launchway::testing::world::{config_key, deployment_config, hook, project};
use serde_json::json;

/// How many pushes there are, unless `PUSHES` says otherwise: a multiple of six, so that the last one is cleaned up after.
/// Each is ten minutes after the one before.
const PUSHES: u32 = 162;
/// A push in so many fails in its `pre` hook.
const FAILING: u32 = 7;
/// How long and how many of each kind stay: so few that a quarter of the pushes fills what is kept.
const POLICY: RetentionSettings =
    RetentionSettings { age: Duration::from_secs(6 * 3600), most: 20, output: Duration::from_secs(3 * 3600) };

fn pushes() -> u32 {
    std::env::var("PUSHES").map_or(PUSHES, |pushes| pushes.parse().unwrap())
}

fn shipyard() -> Shipyard {
    let task = |name: &str| Task::named(name);
    let stage = |name: &str| Stage {
        name: name.into(),
        sequences: vec![Sequence { name: "delivery".into(), tasks: vec![task("deployment")], ..Sequence::default() }],
    };
    Shipyard { name: "shop".into(), stages: vec![stage("dev"), stage("production")], ..Shipyard::default() }
}

fn pushed(number: u32) -> Project {
    let params = || json!({"pre": hook("Abort")});
    let web = json!({"revisionHistoryLimit": 3, "strategy": {"type": "Rolling", "rollingParams": params()}});
    let other = json!({"strategy": {"type": "Recreate", "recreateParams": params()}});
    let image = |of: u32| format!("image-{}", number / of);
    let objects = [
        deployment_config("web", &image(1), 2, web),
        deployment_config("other", &image(3), 1, other),
        deployment_config(&format!("preview-{}", number / 5), "a", 1, json!({})),
    ];
    project(shipyard(), &objects)
}

fn size(folder: &Path) -> u64 {
    folder.join("store.db").metadata().unwrap().len()
}

#[tokio::test]
async fn the_disk_stays_flat_over_many_pushes() {
    let folder = crate::folder();
    let mut world = World::open(folder.path()).unwrap();
    let housekeeping = Housekeeping { driver: world.driver.clone(), runtime: world.runtime.clone(), policy: POLICY };
    let (mut quarter, mut pods) = (0, 0);
    for number in 1..=pushes() {
        if number % FAILING == 0 {
            world.runtime.behave(&format!("web-{number}-hook-pre"), Behaviour::fails(1));
        }
        world.push(&pushed(number)).await.unwrap();
        world.settle().await.unwrap();
        world.pass(Duration::from_secs(600)).await.unwrap();
        if number % 6 == 0 {
            housekeeping.clean(false).await.unwrap();
        }
        if number == pushes() / 4 {
            (quarter, pods) = (size(folder.path()), world.runtime.pods().len());
        }
    }
    let (full, pods_left) = (size(folder.path()), world.runtime.pods().len());
    assert!(full * 4 <= quarter * 5, "{quarter} bytes after a quarter of the pushes, {full} after all");
    assert!(pods_left <= pods + 8, "{pods} pods after a quarter of the pushes, {pods_left} after all");
    assert!(world.runs().await.unwrap().len() < 200, "{} runs", world.runs().await.unwrap().len());
    assert!(world.plan_again(&pushed(pushes())).await.unwrap().does_nothing());
    roll_back_to_the_oldest(&world).await;
}

/// The oldest complete version that is kept is deployed again.
async fn roll_back_to_the_oldest(world: &World) {
    let key = config_key("dev", "web");
    let versions = world.runs().await.unwrap().into_iter().filter_map(|run| match run {
        Run::Deployment(run) if run.config == key => Some((run.phase.as_str() == "Complete", run.version)),
        _ => None,
    });
    let mut versions: Vec<(bool, u32)> = versions.collect();
    versions.sort_by_key(|(_, version)| *version);
    assert!((4..=5).contains(&versions.len()), "three old ones, the newest, and what serves: {versions:?}");
    let (_, oldest) = *versions.iter().find(|(complete, _)| *complete).unwrap();
    by_hand::undo(&world.driver, &key, Some(oldest), false, "ann").await.unwrap();
    world.settle().await.unwrap();
    let serving = world.config("dev", "web").await.unwrap().serving.unwrap();
    assert!(serving.number > versions.last().unwrap().1, "{serving:?}");
}
