//! A service that several deployment configs stand behind, of which one has versions that share its traffic.

use std::collections::BTreeMap;

use launchway::model::object::{Kind, Location, Object, ObjectKey};
use launchway::model::project::Project;
use launchway::model::shipyard::Shipyard;
use launchway::simulation::runtime::Behaviour;
use launchway::simulation::world::World;
use launchway::testing::world::{deployment_config, project};
use serde_json::{Value, json};

/// Two deployment configs behind the service `front`: `web`, if it is there, as an A/B test.
fn shop(web: Option<&str>, api: &str) -> Project {
    let template = |name: &str, image: &str| {
        let labels = json!({"app": name, "tier": "front"});
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": name, "image": image}]}})
    };
    let config = |name: &str, image: &str, strategy: Value| {
        let spec = json!({"template": template(name, image), "strategy": strategy});
        deployment_config(name, image, 2, spec)
    };
    let rolling = json!({"type": "Rolling", "rollingParams": {"maxSurge": 1, "maxUnavailable": 0}});
    let mut objects = vec![config("api", api, rolling), front()];
    objects.extend(web.map(|web| config("web", web, json!({"type": "AB", "abParams": {"weight": 20}}))));
    project(Shipyard::implicit(), &objects)
}

fn front() -> Object {
    let spec = json!({"selector": {"tier": "front"}, "ports": [{"port": 80}]});
    let content = json!({"metadata": {"name": "front"}, "spec": spec});
    Object {
        key: ObjectKey { kind: Kind::Service, name: "front".into() },
        service: "front".into(),
        location: Location::default(),
        autoscaled_at: None,
        digest: launchway::manifest::digest::of(&content),
        content: content.into(),
    }
}

/// What `front` gives each version.
fn weights(world: &World) -> BTreeMap<(String, u32), u32> {
    let services = world.runtime.services().into_iter().flat_map(|service| service.backends);
    services.map(|backend| ((backend.config.name, backend.version), backend.weight)).collect()
}

#[tokio::test]
async fn what_is_rolled_beside_an_ab_test_has_its_part_of_the_traffic_at_each_step() {
    let folder = crate::folder();
    let mut world = World::open(folder.path()).unwrap();
    for web in ["a", "b"] {
        world.push(&shop(Some(web), "a")).await.unwrap();
        world.settle().await.unwrap();
    }
    let part = |name: &str, version, weight| ((name.to_owned(), version), weight);
    let web = [part("web", 1, 800), part("web", 2, 200)];
    assert_eq!(weights(&world), web.clone().into_iter().chain([part("api", 1, 1000)]).collect());
    world.runtime.behave("api-2-1", Behaviour::Hangs);
    world.push(&shop(Some("b"), "b")).await.unwrap();
    world.settle().await.unwrap();
    let of_api = |weights: BTreeMap<(String, u32), u32>| -> Vec<u32> {
        weights.into_iter().filter(|((name, _), _)| name == "api").map(|((_, version), _)| version).collect()
    };
    assert_eq!(of_api(weights(&world)), [1, 2], "half way, both versions answer");
    world.push(&shop(None, "b")).await.unwrap();
    world.settle().await.unwrap();
    assert_eq!(weights(&world), BTreeMap::new(), "nobody shares it any more: every ready pod answers");
}
