//! What an event costs does not depend on what else there is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use launchway::error::Failure;
use launchway::model::project::{Project, StatusDetail};
use launchway::model::shipyard::Shipyard;
use launchway::store::sqlite::SqliteStore;
use launchway::testing::guarded_store::{Guard, GuardedStore};
use launchway::testing::world::{Surroundings, World, deployment_config, project};
use serde_json::json;

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

/// What follows from the death of one pod.
#[derive(Debug, PartialEq, Eq)]
struct Cost {
    /// How often the reconciler was woken.
    woken: usize,
    /// Reads and transactions.
    calls: usize,
    /// Records that were read by calls that answer with several.
    records: usize,
}

async fn a_pod_dies_among(services: u32) -> Cost {
    let surroundings = Surroundings::default();
    let folder = crate::folder();
    let store = Arc::new(SqliteStore::open(&folder.path().join("store.db"), surroundings.clock()).unwrap());
    let store = Arc::new(GuardedStore { guard: Count::default(), store });
    let mut world = World::over(store.clone(), surroundings);
    let configs: Vec<_> =
        (0..services).map(|number| deployment_config(&format!("app-{number}"), "host", 1, json!({}))).collect();
    let project = Project { statuses: StatusDetail::Stages, ..project(Shipyard::implicit(), &configs) };
    world.push(&project).await.unwrap();
    world.settle().await.unwrap();
    let pod = world.runtime.pods().into_iter().find(|pod| pod.id.name.as_str().starts_with("app-5-")).unwrap();
    assert!(pod.lives());
    let started = world.runtime.started().len();
    let count = &store.guard;
    let before = (count.calls.load(Ordering::SeqCst), count.records.load(Ordering::SeqCst));
    let woken = world.hears(|runtime| runtime.lose(&pod.id)).await.unwrap();
    assert_eq!(world.runtime.started().len(), started + 1, "another has taken its place");
    let since = |counted: &AtomicUsize, before: usize| counted.load(Ordering::SeqCst) - before;
    Cost { woken, calls: since(&count.calls, before.0), records: since(&count.records, before.1) }
}

#[tokio::test]
async fn the_death_of_a_pod_costs_the_same_among_ten_services_and_a_thousand() {
    let few = a_pod_dies_among(10).await;
    assert!(few.woken > 0 && few.calls > 0, "{few:?}");
    assert_eq!(few, a_pod_dies_among(1_000).await);
}
