//! Connections to pods that are kept for the next request.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{Either, Empty};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::destination::Destination;
use super::expect::ClientBody;
use super::http::MAX_HEAD;
use super::pod::{Lease, Pod};

/// The most idle connections that are kept to one destination.
const MAX_IDLE: usize = 64;
/// How long one is kept without a request; shorter than most servers keep it.
const MAX_AGE: Duration = Duration::from_secs(4);
/// How often to go through the idle ones, so that a pod that leaves does not wait for them.
const SWEEP: Duration = Duration::from_millis(100);

/// The body of a request to a pod.
pub(super) type RequestBody = Either<ClientBody, Empty<Bytes>>;
/// A connection to a pod.
pub(super) type Sender = SendRequest<RequestBody>;

/// All idle connections.
#[derive(Debug, Default)]
pub(super) struct Upstreams {
    idle: Mutex<HashMap<Destination, Vec<Idle>>>,
    filled: Notify,
}

#[derive(Debug)]
struct Idle {
    sender: Sender,
    pod: Option<Arc<Pod>>,
    since: Instant,
}

impl Idle {
    fn is_good(&self) -> bool {
        !self.sender.is_closed() && self.since.elapsed() < MAX_AGE && self.pod.as_ref().is_none_or(|pod| pod.is_ready())
    }
}

impl Upstreams {
    /// An idle connection, if there is one that still looks alive.
    pub(super) fn take(&self, destination: &Destination) -> Option<Sender> {
        let mut idle = self.idle();
        let connections = idle.get_mut(destination)?;
        let ready = connections.iter().rposition(|idle| idle.sender.is_ready())?;
        Some(connections.swap_remove(ready).sender)
    }

    /// Opens a connection.
    pub(super) async fn connect(destination: &Destination) -> io::Result<Sender> {
        let stream = TokioIo::new(destination.connect().await?);
        let mut builder = http1::Builder::new();
        builder.preserve_header_case(true).max_buf_size(MAX_HEAD).ignore_invalid_headers_in_responses(true);
        let (sender, connection) = builder.handshake(stream).await.map_err(io::Error::other)?;
        // Its errors are those of the request on it, which are handled where the request is.
        tokio::spawn(async move { connection.with_upgrades().await.ok() });
        Ok(sender)
    }

    /// Keeps a connection whose response has ended. It may be ready for another request only in a moment; whether its pod
    /// leaves is asked when it gets one, and by the sweep.
    pub(super) fn keep(&self, sender: Sender, lease: &Lease) {
        let mut idle = self.idle();
        let connections = match idle.get_mut(&lease.destination) {
            Some(connections) => connections,
            None => idle.entry(lease.destination.clone()).or_default(),
        };
        if connections.len() < MAX_IDLE && !sender.is_closed() {
            connections.push(Idle { sender, pod: lease.pod().cloned(), since: Instant::now() });
            self.filled.notify_one();
        }
    }

    /// Closes idle connections that are too old, and those to pods that leave.
    pub(super) async fn sweep_forever(&self) {
        loop {
            self.filled.notified().await;
            while !self.sweep() {
                sleep(SWEEP).await;
            }
        }
    }

    /// Returns whether none is left.
    fn sweep(&self) -> bool {
        let mut idle = self.idle();
        idle.retain(|_, connections| {
            connections.retain(Idle::is_good);
            !connections.is_empty()
        });
        idle.is_empty()
    }

    fn idle(&self) -> MutexGuard<'_, HashMap<Destination, Vec<Idle>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
