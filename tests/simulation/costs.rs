//! What an event costs does not depend on what else there is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use launchway::control::commands::by_hand;
use launchway::error::Failure;
use launchway::model::cloud_event::{CloudEvent, PREFIX};
use launchway::model::hold::HoldScope;
use launchway::model::object::{Kind, Location, Object, ObjectKey};
use launchway::model::project::{Project, StatusDetail};
use launchway::model::shipyard::{Sequence, Shipyard, Stage, Task};
use launchway::simulation::runtime::Behaviour;
use launchway::simulation::world::{Surroundings, World};
use launchway::store::sqlite::SqliteStore;
use launchway::testing::guarded_store::{Guard, GuardedStore};
use launchway::testing::world::{Heard, deployment_config, project};
use serde_json::{Value, json};

/// So many services come to rest within seconds.
const MANY: u32 = if cfg!(debug_assertions) { 200 } else { 1_000 };

/// Counts what is asked of a store.
#[derive(Default)]
struct Count {
    calls: AtomicUsize,
    records: AtomicUsize,
}

impl Guard for Count {
    async fn pass(&self) -> Result<(), Failure> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn answered(&self, records: usize) {
        self.records.fetch_add(records, Ordering::SeqCst);
    }
}

/// What follows from something.
#[derive(Debug, PartialEq, Eq)]
struct Cost {
    /// How often the reconciler was woken.
    woken: usize,
    /// Reads and transactions.
    calls: usize,
    /// Records that were read by calls that answer with several.
    records: usize,
    /// How often the runtime was asked to apply, end or list services.
    services: usize,
}

/// A simulated world whose costs are counted.
struct Counted {
    world: World,
    store: Arc<GuardedStore<Count>>,
    _folder: tempfile::TempDir,
}

impl Counted {
    /// A world at rest to which these objects were pushed.
    async fn with(objects: &[Object]) -> Self {
        let mut counted = Self::around(Surroundings::default());
        counted.push(objects).await;
        counted.world.settle().await.unwrap();
        counted
    }

    /// A world to which nothing was pushed yet.
    fn around(surroundings: Surroundings) -> Self {
        let folder = crate::folder();
        let store = Arc::new(SqliteStore::open(&folder.path().join("store.db"), surroundings.clock()).unwrap());
        let store = Arc::new(GuardedStore { guard: Count::default(), store });
        Self { world: World::over(store.clone(), surroundings), store, _folder: folder }
    }

    /// How often the store is asked while an event is taken.
    async fn calls_of(&self, event: &CloudEvent) -> usize {
        let calls = || self.store.guard.calls.load(Ordering::SeqCst);
        let before = calls();
        assert_eq!(self.world.tell(event, "ci").await.unwrap().ignored, "");
        calls() - before
    }

    async fn push(&mut self, objects: &[Object]) {
        let project = Project { statuses: StatusDetail::Stages, ..project(Shipyard::implicit(), objects) };
        self.world.push(&project).await.unwrap();
    }

    /// What follows from what was announced.
    async fn cost_of(&self, heard: Heard) -> Cost {
        let before = self.so_far();
        let woken = self.world.follow(heard).await.unwrap();
        self.since(&before, woken)
    }

    /// A push, and all that follows from it.
    async fn cost_of_push(&mut self, objects: &[Object]) -> Cost {
        let (before, heard) = (self.so_far(), self.world.listen());
        self.push(objects).await;
        let woken = self.world.follow(heard).await.unwrap();
        let cost = self.since(&before, woken);
        let open = self.world.runs().await.unwrap().into_iter().filter(|run| !run.is_ended()).count();
        assert_eq!(open, 0, "it has come to its end");
        cost
    }

    /// Reads and transactions, records, and what was asked of services.
    fn so_far(&self) -> [usize; 3] {
        let count = &self.store.guard;
        let [calls, records] = [&count.calls, &count.records].map(|counted| counted.load(Ordering::SeqCst));
        [calls, records, self.world.runtime.asked_of_services()]
    }

    fn since(&self, before: &[usize; 3], woken: usize) -> Cost {
        let [calls, records, services] = self.so_far();
        Cost { woken, calls: calls - before[0], records: records - before[1], services: services - before[2] }
    }
}

fn configs(count: u32) -> Vec<Object> {
    (0..count).map(|number| deployment_config(&format!("app-{number}"), "host", 1, json!({}))).collect()
}

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

fn services(count: u32) -> Vec<Object> {
    let service = |name: String| {
        let spec = json!({"selector": {"app": &name}, "ports": [{"port": 80}]});
        object(Kind::Service, &name, json!({"metadata": {"name": &name}, "spec": spec}))
    };
    (0..count).map(|number| service(format!("app-{number}"))).collect()
}

async fn a_pod_dies_among(count: u32) -> Cost {
    let counted = Counted::with(&configs(count)).await;
    let runtime = &counted.world.runtime;
    let pod = runtime.pods().into_iter().find(|pod| pod.id.name.as_str().starts_with("app-5-")).unwrap();
    assert!(pod.lives());
    let (started, heard) = (runtime.started().len(), counted.world.listen());
    runtime.lose(&pod.id);
    let cost = counted.cost_of(heard).await;
    assert_eq!(runtime.started().len(), started + 1, "another has taken its place");
    cost
}

#[tokio::test]
async fn the_death_of_a_pod_costs_the_same_among_ten_services_and_among_many() {
    let few = a_pod_dies_among(10).await;
    assert!(few.woken > 0 && few.calls > 0, "{few:?}");
    assert_eq!(few, a_pod_dies_among(MANY).await);
}

/// A service of each name, and configs of which the fifth has two versions that share the traffic for good.
async fn a_pod_dies_that_shares_the_traffic_among(count: u32) -> Cost {
    let objects = |image: &str| {
        let ab = json!({"replicas": 2, "strategy": {"type": "AB", "abParams": {"weight": 20}}});
        let config = |number| match number {
            5 => deployment_config("app-5", image, 2, ab.clone()),
            _ => deployment_config(&format!("app-{number}"), "host", 1, json!({})),
        };
        services(count).into_iter().chain((0..count).map(config)).collect::<Vec<_>>()
    };
    let mut counted = Counted::with(&objects("a")).await;
    counted.push(&objects("b")).await;
    counted.world.settle().await.unwrap();
    let runtime = &counted.world.runtime;
    let divided = runtime.services().into_iter().filter(|service| !service.backends.is_empty());
    assert_eq!(divided.map(|service| service.name).collect::<Vec<_>>(), ["app-5"]);
    let pod = runtime.pods().into_iter().find(|pod| pod.id.name.as_str().starts_with("app-5-2-")).unwrap();
    let heard = counted.world.listen();
    runtime.lose(&pod.id);
    counted.cost_of(heard).await
}

#[tokio::test]
async fn the_death_of_a_pod_concerns_the_services_alone_that_lead_to_its_versions() {
    let few = a_pod_dies_that_shares_the_traffic_among(10).await;
    assert!(few.services > 0 && few.services <= 2 * few.woken, "{few:?}");
    assert_eq!(few, a_pod_dies_that_shares_the_traffic_among(MANY / 2).await);
}

/// All services are under way; then one of them changes, which a hold keeps from being written.
#[tokio::test]
async fn a_push_of_one_service_is_not_decided_on_the_deliveries_of_others() {
    let folder = crate::folder();
    let mut world = World::open(folder.path()).unwrap();
    let shop = |image: &str| {
        let configs = [deployment_config("web", image, 1, json!({})), deployment_config("api", "a", 1, json!({}))];
        project(Shipyard::implicit(), &configs)
    };
    world.runtime.behave("", Behaviour::Hangs);
    world.push(&shop("a")).await.unwrap();
    world.settle().await.unwrap();
    let scope = HoldScope { project: "shop".into(), stage: None, service: Some("web".into()), context: None };
    by_hand::place_hold(&world.driver, scope, "sale".to_owned(), "ann").await.unwrap();
    let (_, transaction) = world.pushed_again(&shop("b")).await.unwrap();
    let read: Vec<String> = transaction.reads.iter().map(|read| read.key.to_string()).collect();
    let of = |service: &str| read.iter().filter(|key| key.contains(service)).count();
    assert!(of("web") > 0, "{read:?}");
    assert_eq!(of("api"), 0, "{read:?}");
}

/// One of so many services is pushed, after it was so many times before.
async fn one_is_pushed(services: u32, before: u32) -> Cost {
    let mut objects = configs(services);
    let mut counted = Counted::with(&objects).await;
    let mut cost = None;
    for push in 0..=before {
        objects[5] = deployment_config("app-5", &format!("image-{push}"), 1, json!({}));
        cost = Some(counted.cost_of_push(&objects).await);
    }
    cost.unwrap()
}

#[tokio::test]
async fn a_push_costs_what_it_changes_however_much_there_is_and_was() {
    let (few, later) = (one_is_pushed(10, 20).await, one_is_pushed(10, 60).await);
    assert_eq!(few, later, "after more pushes");
    let many = one_is_pushed(MANY, 20).await;
    let beside_digests = |cost: Cost, services: u32| Cost { records: cost.records - services as usize, ..cost };
    assert_eq!(beside_digests(few, 10), beside_digests(many, MANY), "beside the digest of each, which is compared");
}

/// The objects without one of them are pushed.
async fn goes_from(objects: &[Object], gone: &ObjectKey) -> (Cost, Counted) {
    let mut counted = Counted::with(objects).await;
    let left: Vec<Object> = objects.iter().filter(|object| object.key != *gone).cloned().collect();
    let heard = counted.world.listen();
    counted.push(&left).await;
    let cost = counted.cost_of(heard).await;
    (cost, counted)
}

#[tokio::test]
async fn a_removed_object_concerns_no_service_that_it_is_not() {
    let with_map = |count| {
        let map = object(Kind::ConfigMap, "colors", json!({"metadata": {"name": "colors"}, "data": {"a": "b"}}));
        let objects: Vec<Object> = services(count).into_iter().chain([map.clone()]).collect();
        async move { goes_from(&objects, &map.key).await.0 }
    };
    let few = with_map(10).await;
    assert_eq!(few.services, 0, "{few:?}");
    assert_eq!(few, with_map(200).await);
}

#[tokio::test]
async fn a_removed_service_ends_and_no_other_is_asked_for() {
    let without_one = |count| async move {
        let services = services(count);
        let (cost, counted) = goes_from(&services, &services[5].key).await;
        let left: Vec<String> = counted.world.runtime.services().into_iter().map(|service| service.name).collect();
        assert!(left.len() + 1 == services.len() && !left.contains(&"app-5".to_owned()), "{left:?}");
        cost
    };
    let few = without_one(10).await;
    assert_eq!(few.services, 1, "{few:?}");
    assert_eq!(few, without_one(200).await);
}

/// How often the store is asked for each event of a sequence of two tasks, after one before it: `triggered`, then `started` and
/// `finished` of each task.
async fn events_of_a_sequence(surroundings: Surroundings) -> Vec<usize> {
    let mut counted = Counted::around(surroundings);
    let tasks = ["build", "verify"];
    let check = Sequence { name: "check".into(), tasks: tasks.map(Task::named).into(), ..Sequence::default() };
    let stages = vec![Stage { name: "dev".into(), sequences: vec![check] }];
    let shop = project(Shipyard { name: "shop".into(), stages, ..Shipyard::default() }, &[]);
    counted.world.push(&shop).await.unwrap();
    let event = |kind: &str, id: String, triggered: Option<String>| {
        let data =
            json!({"project": "shop", "stage": "dev", "service": "web", "status": "succeeded", "result": "pass"});
        CloudEvent {
            source: "ci".into(),
            triggeredid: triggered,
            ..CloudEvent::of(format!("{PREFIX}{kind}"), id, data)
        }
    };
    let mut calls = Vec::new();
    for turn in 0..2 {
        calls.clear();
        calls.push(counted.calls_of(&event("dev.check.triggered", format!("e{turn}"), None)).await);
        let run = counted.world.runs().await.unwrap().pop().unwrap();
        for (place, task) in tasks.iter().enumerate() {
            let asked = format!("{}.{place}.1", run.id());
            for phase in ["started", "finished"] {
                let told = event(&format!("{task}.{phase}"), format!("{asked}-{phase}"), Some(asked.clone()));
                calls.push(counted.calls_of(&told).await);
            }
        }
    }
    calls
}

#[tokio::test]
async fn what_an_executor_tells_is_decided_on_what_was_written_before() {
    let remembered = events_of_a_sequence(Surroundings::default()).await;
    let asked = events_of_a_sequence(Surroundings::default().forgetful()).await;
    assert_eq!(remembered, [2, 1, 1, 1, 1], "a transaction each, and which attempt it is");
    assert!(remembered.iter().zip(&asked).all(|(few, many)| few < many), "{remembered:?}, not {asked:?}");
}
