//! Which pod gets the next request.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::super::record::{Endpoint, ServiceDir, ServiceRecord};
use super::cached_file::CachedFile;
use super::destination::Destination;
use super::folders::Folders;
use super::pod::{Lease, Pod};

/// How long a request waits for a pod that takes it. Bridges the moment between the end of an only pod and the
/// readiness of its successor, and is short enough that a client hears of an outage before it gives up by itself.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// A prime beyond all sums of weights, near the golden section of the numbers that it stands among.
const STEP: u64 = 2_654_435_761;
/// How often a waiting request tries again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What is behind a service, as its files say at this moment.
#[derive(Debug)]
pub(super) struct Backends {
    folders: Arc<Folders>,
    record: Mutex<CachedFile<ServiceRecord>>,
    pods: Mutex<Pods>,
    turn: AtomicUsize,
}

#[derive(Debug)]
struct Pods {
    file: CachedFile<Vec<Endpoint>>,
    endpoints: Arc<Vec<Endpoint>>,
    /// One for each endpoint, in their order.
    known: Arc<[Arc<Pod>]>,
}

impl Backends {
    pub(super) fn new(dir: &ServiceDir, folders: Arc<Folders>) -> Self {
        let file = CachedFile::new(dir.endpoints(), folders.clone());
        let pods = Mutex::new(Pods { file, endpoints: Arc::default(), known: Arc::default() });
        let record = Mutex::new(CachedFile::new(dir.record(), folders.clone()));
        Self { folders, record, pods, turn: AtomicUsize::new(0) }
    }

    /// A place for a request to a port of the service, at the latest at `deadline`; `None` if there is none until
    /// then, and at once if the service does not have that port. Destinations in `tried` come only after all others and a pause.
    pub(super) async fn lease(&self, port: u16, tried: &mut Vec<Destination>, deadline: Instant) -> Option<Lease> {
        loop {
            if let Some(lease) = self.try_lease(port, tried) {
                return Some(lease);
            }
            if Instant::now() >= deadline || self.is_closed(port) {
                return None;
            }
            tried.clear();
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Whether the service is gone, or does not have this port any more. A record that cannot be read says neither.
    pub(super) fn is_closed(&self, port: u16) -> bool {
        self.folders.catch_up();
        let mut file = self.record_file();
        file.read().map_or_else(|| file.is_missing(), |record| !record.spec.port_numbers().contains(&port))
    }

    /// The service's name, for messages.
    pub(super) fn service(&self) -> String {
        self.record().map(|record| record.spec.name.clone()).unwrap_or_default()
    }

    fn try_lease(&self, port: u16, tried: &[Destination]) -> Option<Lease> {
        self.folders.catch_up();
        let record = self.record()?;
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        if record.spec.selector.is_empty() && !record.spec.external.is_empty() {
            return outside(&record, port, turn, tried);
        }
        let (endpoints, pods) = self.pods();
        let load: Vec<usize> = pods.iter().map(|pod| pod.in_flight()).collect();
        let order = by_weight(&endpoints, preference(&load, turn), turn);
        let candidates = order.into_iter().filter_map(|index| pods.get(index).zip(endpoints.get(index)));
        let untried = candidates.filter(|(pod, _)| !tried.iter().any(|it| it.pod.as_deref() == Some(pod.dir())));
        untried.into_iter().find_map(|(pod, endpoint)| pod.lease(record.target_port(endpoint, port)?))
    }

    fn record(&self) -> Option<Arc<ServiceRecord>> {
        self.record_file().read()
    }

    fn record_file(&self) -> MutexGuard<'_, CachedFile<ServiceRecord>> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pods(&self) -> (Arc<Vec<Endpoint>>, Arc<[Arc<Pod>]>) {
        let mut pods = self.pods.lock().unwrap_or_else(PoisonError::into_inner);
        let endpoints = pods.file.read().unwrap_or_default();
        if endpoints != pods.endpoints {
            pods.follow(endpoints, &self.folders);
        }
        (pods.endpoints.clone(), pods.known.clone())
    }
}

impl Pods {
    /// Takes another list. Pods that stay keep their counts.
    fn follow(&mut self, endpoints: Arc<Vec<Endpoint>>, folders: &Arc<Folders>) {
        let known = |dir: &Path| self.known.iter().find(|pod| pod.dir() == dir).cloned();
        let dirs = endpoints.iter().map(Endpoint::dir);
        self.known = dirs.map(|dir| known(dir).unwrap_or_else(|| Pod::new(dir, folders.clone()))).collect();
        self.endpoints = endpoints;
    }
}

/// The order in which pods are asked: the least busy first, and in turn among equals.
fn preference(load: &[usize], turn: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..load.len()).collect();
    order.rotate_left(turn.checked_rem(load.len()).unwrap_or(0));
    order.sort_by_key(|index| load.get(*index).copied());
    order
}

/// The same pods in the same order, but those of the version whose turn it is first. Over as many turns as the weights
/// add up to, each version has as many as its weight.
fn by_weight(endpoints: &[Endpoint], mut order: Vec<usize>, turn: usize) -> Vec<usize> {
    let mut versions: BTreeMap<&str, u32> = BTreeMap::new();
    for endpoint in endpoints {
        versions.extend(endpoint.share());
    }
    let total: u64 = versions.values().map(|weight| u64::from(*weight)).sum();
    // Steps of a large prime go through all places, far from each other: versions take turns, and not in blocks.
    let place = (turn as u64).wrapping_mul(STEP).checked_rem(total);
    let mut left = place;
    let chosen = versions.into_iter().find_map(|(version, weight)| {
        let before = left?;
        left = before.checked_sub(weight.into());
        left.is_none().then_some(version)
    });
    let is_chosen = |endpoint: Option<&Endpoint>| match endpoint.and_then(Endpoint::share) {
        Some((version, _)) => Some(version) == chosen,
        None => true,
    };
    order.sort_by_key(|index| !is_chosen(endpoints.get(*index)));
    order
}

fn outside(record: &ServiceRecord, port: u16, turn: usize, tried: &[Destination]) -> Option<Lease> {
    let all = record.spec.external.iter().map(|endpoint| Destination {
        pod: None,
        host: endpoint.host.as_str().into(),
        port: endpoint.port.unwrap_or(port),
    });
    let untried: Vec<Destination> = all.filter(|destination| !tried.contains(destination)).collect();
    untried.get(turn.checked_rem(untried.len())?).cloned().map(Lease::outside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weighed(dir: &str, version: &str, weight: u32) -> Endpoint {
        Endpoint::Weighed { dir: dir.into(), version: version.into(), weight }
    }

    #[test]
    fn versions_have_their_turns_by_weight_and_in_between_each_other() {
        let endpoints = [weighed("a", "web-1", 3), weighed("b", "web-1", 3), weighed("c", "web-2", 1)];
        let first = |turn| by_weight(&endpoints, preference(&[0, 0, 0], turn), turn)[0];
        let turns: Vec<usize> = (0..400).map(first).collect();
        assert_eq!(turns.iter().filter(|index| **index == 2).count(), 100);
        assert!(turns.windows(8).all(|some| some.contains(&2)), "{turns:?}");
        assert_eq!(
            by_weight(&endpoints, vec![0, 1, 2], 0).len(),
            3,
            "others stand in where none of a version is ready"
        );
    }

    #[test]
    fn without_weights_nothing_changes() {
        let endpoints = [Endpoint::Equal("a".into()), Endpoint::Equal("b".into())];
        assert_eq!(by_weight(&endpoints, vec![1, 0], 7), [1, 0]);
    }

    #[test]
    fn the_least_busy_comes_first_and_equals_take_turns() {
        assert_eq!(preference(&[0, 0, 0], 0), [0, 1, 2]);
        assert_eq!(preference(&[0, 0, 0], 4), [1, 2, 0]);
        assert_eq!(preference(&[2, 0, 1], 7), [1, 2, 0]);
        assert!(preference(&[], 3).is_empty());
    }
}
