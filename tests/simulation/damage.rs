//! A record that cannot be read keeps nobody back but what it is about, and nothing is deleted because of it.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Duration;

use launchway::config::RetentionSettings;
use launchway::control::commands::by_hand;
use launchway::control::housekeeping::Housekeeping;
use launchway::engine::transition::Input;
use launchway::model::hold::HoldScope;
use launchway::model::ids::RepositoryName;
use launchway::model::object::{Kind, Location, Object, ObjectKey};
use launchway::model::shipyard::Shipyard;
use launchway::model::state::Versioned;
use launchway::runtime::Runtime;
use launchway::simulation::runtime::PretendedRuntime;
use launchway::simulation::world::World;
use launchway::store::{Listing, RunFilter, Write};
use launchway::testing::world::{config_key, deployment_config, hook, project};
use serde_json::{Value, json};
use tempfile::TempDir;

fn object(kind: Kind, name: &str, content: Value) -> Object {
    Object {
        key: ObjectKey { kind, name: name.to_owned() },
        service: name.into(),
        autoscaled_at: None,
        location: Location::default(),
        digest: launchway::manifest::digest::of(&content),
        content: content.into(),
    }
}

fn service(name: &str) -> Object {
    let spec = json!({"selector": {"app": name}, "ports": [{"port": 80}]});
    object(Kind::Service, name, json!({"metadata": {"name": name}, "spec": spec}))
}

/// `web` and `api`, each with a hook before it and a service.
fn shop() -> Vec<Object> {
    let strategy = json!({"strategy": {"type": "Recreate", "recreateParams": {"pre": hook("Abort")}}});
    let configs = ["web", "api"].map(|name| deployment_config(name, name, 1, strategy.clone()));
    let subsets = json!([{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]);
    let endpoints = object(Kind::Endpoints, "web", json!({"metadata": {"name": "web"}, "subsets": subsets}));
    configs.into_iter().chain([service("web"), service("api"), endpoints]).collect()
}

/// Both are deployed, unless `prepare` keeps them from it.
async fn deployed(prepare: impl FnOnce(&PretendedRuntime)) -> (TempDir, World) {
    let folder = crate::folder();
    let mut world = World::open(folder.path()).unwrap();
    prepare(&world.runtime);
    world.push(&project(Shipyard::implicit(), &shop())).await.unwrap();
    world.settle().await.unwrap();
    (folder, world)
}

/// Damages the records of a table of which a condition holds.
fn damage(folder: &TempDir, table: &str, condition: &str) {
    let file = rusqlite::Connection::open(folder.path().join("store.db")).unwrap();
    let sql = format!("UPDATE {table} SET record = '{{' WHERE {condition}");
    assert_eq!(file.execute(&sql, []).unwrap(), 1, "{sql}");
}

/// The next daemon: it has seen nothing of what was reported.
fn restarted(folder: &TempDir, world: World) -> World {
    let surroundings = world.surroundings.clone();
    drop(world);
    World::around(folder.path(), surroundings).unwrap()
}

fn living(world: &World) -> Vec<String> {
    let pods = world.runtime.pods();
    pods.iter().filter(|pod| pod.lives() && pod.version().is_some()).map(|pod| pod.id.name.to_string()).collect()
}

fn answering(world: &World) -> BTreeSet<String> {
    world.runtime.services().into_iter().map(|service| service.name).collect()
}

/// The pods of `api` die: others take their place, whatever cannot be read, and everything else is as it was.
async fn assert_goes_on(folder: &TempDir, world: World) {
    let world = restarted(folder, world);
    let (before, services) = (living(&world), answering(&world));
    let lost = world.runtime.pods().into_iter().find(|pod| pod.lives() && pod.id.name.as_str() == "api-1-0");
    world.runtime.lose(&lost.unwrap().id);
    world.settle().await.unwrap();
    world.pass(Duration::from_secs(600)).await.unwrap();
    let api = |names: &[String]| names.iter().filter(|name| name.starts_with("api-1-")).count();
    let web = |names: &[String]| names.iter().filter(|name| name.starts_with("web-1-")).count();
    let after = living(&world);
    assert_eq!((api(&after), web(&after)), (1, web(&before)), "{after:?}");
    assert_eq!(answering(&world), services);
}

#[tokio::test]
async fn a_damaged_run_that_ended_keeps_no_dead_pod_from_being_replaced() {
    let (folder, world) = deployed(|_| ()).await;
    damage(&folder, "runs", "id = 'shop/default/web-1'");
    assert_goes_on(&folder, world).await;
}

#[tokio::test]
async fn a_damaged_run_that_is_open_keeps_no_other_from_its_end() {
    for table in ["runs", "slots"] {
        let (folder, world) =
            deployed(|runtime| ["web", "api"].iter().for_each(|it| runtime.hold_image(it, true))).await;
        match table {
            "runs" => damage(&folder, "runs", "id = 'shop/default/web-1'"),
            _ => damage(&folder, "slots", "service = 'web'"),
        }
        let world = restarted(&folder, world);
        world.runtime.hold_image("api", false);
        world.pass(Duration::from_secs(60)).await.unwrap();
        let api = world.config("default", "api").await.unwrap();
        assert!(api.serving.is_some(), "{table}: {api:?}");
    }
}

#[tokio::test]
async fn a_damaged_deployment_config_keeps_its_pods_and_stops_no_other() {
    let (folder, world) = deployed(|_| ()).await;
    damage(&folder, "configs", "name = 'web'");
    assert_goes_on(&folder, world).await;
}

#[tokio::test]
async fn a_damaged_service_object_leaves_the_service_as_it_is_and_stops_no_other() {
    for kind in ["Service", "Endpoints"] {
        let (folder, world) = deployed(|_| ()).await;
        let before = world.runtime.services();
        damage(&folder, "objects", &format!("kind = '{kind}' AND name = 'web'"));
        world.runtime.remove_service(&"shop-default".into(), "api").await.unwrap();
        let world = restarted(&folder, world);
        world.settle().await.unwrap();
        assert_eq!(world.runtime.services(), before, "{kind}: one is there again, the other still");
        assert_goes_on(&folder, world).await;
    }
}

#[tokio::test]
async fn nobody_knows_whether_a_damaged_repository_is_down_so_its_services_stay() {
    let (folder, world) = deployed(|_| ()).await;
    damage(&folder, "repositories", "TRUE");
    assert_goes_on(&folder, world).await;
}

#[tokio::test]
async fn what_a_damaged_run_may_need_is_not_deleted() {
    let (folder, world) = deployed(|_| ()).await;
    damage(&folder, "runs", "id = 'shop/default/web-1'");
    world.pass(RetentionSettings::default().output * 2).await.unwrap();
    let (driver, runtime, policy) = (world.driver.clone(), world.runtime.clone(), RetentionSettings::default());
    let problem = Housekeeping { driver, runtime, policy }.clean(false).await.unwrap_err().one_line();
    assert!(problem.contains("`shop/default/web-1` cannot be read"), "{problem}");
    let hooks: Vec<_> = world.runtime.pods().into_iter().filter(|pod| pod.version().is_none()).collect();
    let names: Vec<&str> = hooks.iter().map(|pod| pod.id.name.as_str()).collect();
    assert_eq!(names, ["web-1-hook-pre"], "the other one is old");
}

#[tokio::test]
async fn a_copy_with_damaged_records_is_taken_over_and_nothing_is_deleted() {
    let (folder, world) = deployed(|_| ()).await;
    for (table, condition) in [("repositories", "TRUE"), ("configs", "name = 'web'"), ("objects", "name = 'api'")] {
        damage(&folder, table, condition);
    }
    let copy = crate::folder();
    world.driver.store.backup(&copy.path().join("store.db")).await.unwrap();
    let before = (living(&world), answering(&world));
    let world = restarted(&copy, world);
    world.settle().await.unwrap();
    world.pass(Duration::from_secs(600)).await.unwrap();
    assert_eq!((living(&world), answering(&world)), before);
}

/// One of several is damaged: the others are found, and whoever needs all of them hears which.
fn assert_names<T: Debug>(listing: Listing<T>, found: usize, damaged: &str) {
    let names: Vec<String> = listing.damaged.iter().map(|damaged| damaged.key.to_string()).collect();
    assert_eq!((listing.found.len(), names), (found, vec![damaged.to_owned()]), "{listing:?}");
    let problem = listing.whole().unwrap_err().one_line();
    assert!(problem.contains(&format!("`{damaged}` cannot be read")) && problem.contains("store restore"), "{problem}");
}

async fn with_others() -> (TempDir, World) {
    let (folder, world) = deployed(|_| ()).await;
    let mut other = world.driver.store.repository(&"repo".into()).await.unwrap().unwrap().value;
    other.name = RepositoryName::new("other");
    let write = Write::Repository(Versioned { version: 0, value: other }.shared());
    world.driver.commit(&[Input::Write(Box::new(write))]).await.unwrap();
    for project in ["shop", "bank"] {
        let scope = HoldScope { project: project.into(), stage: None, service: None, context: None };
        by_hand::place_hold(&world.driver, scope, "not now".into(), "ann").await.unwrap();
    }
    (folder, world)
}

#[tokio::test]
async fn a_list_names_what_is_damaged_and_one_read_of_it_fails() {
    let (folder, world) = with_others().await;
    let store = &*world.driver.store;
    damage(&folder, "runs", "id = 'shop/default/web-1'");
    assert_names(store.runs(&RunFilter::default()).await.unwrap(), 3, "shop/default/web-1");
    let problem = store.run(&"shop/default/web-1".into()).await.unwrap_err().one_line();
    assert!(problem.contains("`shop/default/web-1` cannot be read: a stored run record is damaged"), "{problem}");
    damage(&folder, "configs", "name = 'web'");
    assert_names(store.configs(None, None).await.unwrap(), 1, "shop/default/web");
    assert_eq!(store.config_keys().await.unwrap().len(), 2);
    store.config(&config_key("default", "web")).await.unwrap_err();
    damage(&folder, "objects", "kind = 'Service' AND name = 'web'");
    assert_names(store.objects(None, None, None).await.unwrap(), 2, "shop/default/Service/web");
    damage(&folder, "repositories", "name = 'other'");
    assert_names(store.repositories().await.unwrap(), 1, "other");
    damage(&folder, "holds", "project = 'bank'");
    assert_names(store.holds().await.unwrap(), 1, "holds of bank");
}

#[tokio::test]
async fn a_record_of_other_bytes_than_text_is_damaged_too() {
    let (folder, world) = with_others().await;
    let file = rusqlite::Connection::open(folder.path().join("store.db")).unwrap();
    file.execute("UPDATE repositories SET record = CAST(x'ff' AS TEXT) WHERE name = 'other'", []).unwrap();
    assert_names(world.driver.store.repositories().await.unwrap(), 1, "other");
    file.execute("UPDATE contents SET content = CAST(x'ff' AS TEXT)", []).unwrap();
    let runs = world.driver.store.runs(&RunFilter::default()).await.unwrap();
    assert_eq!((runs.found.len(), runs.damaged.len()), (0, 4), "what they refer to is damaged");
}

#[tokio::test]
async fn what_is_found_although_something_else_is_damaged_counts() {
    let (folder, world) = with_others().await;
    damage(&folder, "repositories", "name = 'other'");
    let find = async |name: &str| {
        let found = world.driver.store.repositories().await.unwrap().find(|state| state.value.name.as_str() == name);
        found.map(|found| found.is_some())
    };
    assert!(find("repo").await.unwrap());
    let problem = find("unheard").await.unwrap_err().one_line();
    assert!(problem.contains("`other` cannot be read"), "{problem}");
}
