//! A pod as the proxy sees it: whether it may get requests, and how many it has.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::record::ReadyMarker;
use super::cached_file::CachedFile;
use super::destination::Destination;
use super::folders::Folders;
use crate::model::pod::Scalar;

/// A pod behind the service.
#[derive(Debug)]
pub(super) struct Pod {
    dir: Arc<Path>,
    folders: Arc<Folders>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    in_flight: usize,
    /// The shared lock on `connections`, held while anything is in flight.
    lock: Option<File>,
    marker: CachedFile<ReadyMarker>,
}

impl Pod {
    pub(super) fn new(dir: &Path, folders: Arc<Folders>) -> Arc<Self> {
        let marker = CachedFile::new(dir.join("ready"), folders.clone());
        Arc::new(Self { dir: dir.into(), folders, state: Mutex::new(State { in_flight: 0, lock: None, marker }) })
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// How many requests and connections it has from this proxy.
    pub(super) fn in_flight(&self) -> usize {
        self.state().in_flight
    }

    /// Whether it takes new requests at this moment.
    pub(super) fn is_ready(&self) -> bool {
        self.dir.join("ready").exists()
    }

    /// Reserves a place for one request, unless the pod is not ready or does not have that port. Folders were caught up
    /// when the request came.
    ///
    /// The lock is taken before the marker is read: whoever removes the marker and then gets the lock for itself
    /// knows that no request is or will be on its way.
    pub(super) fn lease(self: &Arc<Self>, target: &Scalar) -> Option<Lease> {
        let mut state = self.state();
        if state.lock.is_none() {
            state.lock = shared_lock(&self.dir.join("connections"));
            self.folders.catch_up();
        }
        let destination = match &state.lock {
            Some(_) => state.marker.read().and_then(|marker| self.destination(&marker, target)),
            None => None,
        };
        match destination {
            Some(destination) => {
                state.in_flight += 1;
                Some(Lease { destination, pod: Some(self.clone()) })
            }
            None => {
                state.unlock_if_idle();
                None
            }
        }
    }

    fn destination(&self, marker: &ReadyMarker, target: &Scalar) -> Option<Destination> {
        let port = marker.resolve(target)?;
        Some(Destination { pod: Some(self.dir.clone()), host: marker.address.clone(), port })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn unlock_if_idle(&mut self) {
        if self.in_flight == 0 {
            self.lock = None;
        }
    }
}

/// `None` if the pod is gone, or is ending and has the lock for itself.
fn shared_lock(path: &Path) -> Option<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).ok()?;
    file.try_lock_shared().ok()?;
    Some(file)
}

/// The right to have one request or connection in flight. A pod does not end before it is dropped.
#[derive(Debug)]
pub(super) struct Lease {
    /// Where to connect.
    pub(super) destination: Destination,
    pod: Option<Arc<Pod>>,
}

impl Lease {
    /// A place outside, where nobody counts.
    pub(super) fn outside(destination: Destination) -> Self {
        Self { destination, pod: None }
    }

    /// The pod behind it, unless it leads outside.
    pub(super) fn pod(&self) -> Option<&Arc<Pod>> {
        self.pod.as_ref()
    }

    /// Whether new requests may still go there.
    pub(super) fn is_ready(&self) -> bool {
        self.pod.as_ref().is_none_or(|pod| pod.is_ready())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(pod) = &self.pod else { return };
        let mut state = pod.state();
        state.in_flight -= 1;
        state.unlock_if_idle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::local::host::files;
    use std::fs;

    fn pod_folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ready"), r#"{"address":"127.0.0.1","ports":{"8080":4000}}"#).unwrap();
        folder
    }

    #[test]
    fn a_lease_holds_the_shared_lock_until_the_last_one_is_dropped() {
        let folder = pod_folder();
        let pod = Pod::new(folder.path(), Folders::new());
        let exclusively = || files::try_lock(&folder.path().join("connections")).unwrap();
        let (first, second) = (pod.lease(&Scalar::Number(8080)).unwrap(), pod.lease(&Scalar::Number(8080)).unwrap());
        assert_eq!((first.destination.port, pod.in_flight()), (4000, 2));
        drop(first);
        assert!(exclusively().is_none());
        drop(second);
        assert!(exclusively().is_some());
    }

    #[test]
    fn a_pod_that_is_not_ready_gets_nothing_and_is_not_held_up() {
        let folder = pod_folder();
        let pod = Pod::new(folder.path(), Folders::new());
        fs::remove_file(folder.path().join("ready")).unwrap();
        assert!(pod.lease(&Scalar::Number(8080)).is_none());
        assert!(files::try_lock(&folder.path().join("connections")).unwrap().is_some());
    }

    #[test]
    fn a_pod_that_drains_gets_nothing_although_its_marker_is_there() {
        let folder = pod_folder();
        let _draining = files::try_lock(&folder.path().join("connections")).unwrap().unwrap();
        assert!(Pod::new(folder.path(), Folders::new()).lease(&Scalar::Number(8080)).is_none());
    }

    #[test]
    fn a_pod_that_is_gone_gets_nothing() {
        assert!(Pod::new(Path::new("/nowhere/pod"), Folders::new()).lease(&Scalar::Number(8080)).is_none());
    }
}
