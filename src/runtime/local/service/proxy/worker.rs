//! The threads that carry connections.
//!
//! Each waits for its own connections alone and shares none with another, so that nothing of a request passes from one
//! thread to another, and nobody has to be woken for it.

use std::io;
use std::sync::Arc;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio_util::task::TaskTracker;

use super::upstream::Upstreams;

/// The most of them.
const MOST: usize = 4;

/// One of them.
#[derive(Debug)]
pub(super) struct Worker {
    thread: Handle,
    /// What it carries.
    connections: TaskTracker,
    /// The connections to pods that it keeps.
    pub(super) upstreams: Arc<Upstreams>,
}

/// All of them, one for each processor as far as that helps.
#[derive(Clone, Debug)]
pub(super) struct Workers {
    first: Arc<Worker>,
    others: Arc<[Arc<Worker>]>,
}

impl Workers {
    pub(super) fn start() -> io::Result<Self> {
        let count = thread::available_parallelism().map_or(1, usize::from).min(MOST);
        let others = (1..count).map(|_| Worker::start()).collect::<io::Result<_>>()?;
        Ok(Self { first: Worker::start()?, others })
    }

    /// The one that carries the fewest connections.
    pub(super) fn least_busy(&self) -> &Arc<Worker> {
        self.others.iter().fold(&self.first, |least, other| if other.load() < least.load() { other } else { least })
    }

    /// Returns when the last connection has ended; no other may come.
    pub(super) async fn finish(&self) {
        for worker in self.others.iter().chain([&self.first]) {
            worker.connections.close();
            worker.connections.wait().await;
        }
    }
}

impl Worker {
    fn start() -> io::Result<Arc<Self>> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (thread, upstreams) = (runtime.handle().clone(), Arc::<Upstreams>::default());
        let kept = upstreams.clone();
        thread::Builder::new().name("worker".to_owned()).spawn(move || runtime.block_on(kept.sweep_forever()))?;
        Ok(Arc::new(Self { thread, connections: TaskTracker::new(), upstreams }))
    }

    fn load(&self) -> usize {
        self.connections.len()
    }

    /// Carries a connection, or what became of one, until its end.
    pub(super) fn carry(&self, connection: impl Future<Output = ()> + Send + 'static) {
        self.connections.spawn_on(connection, &self.thread);
    }
}
