//! A port of a service, at which clients come in.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::super::record::ServiceId;
use super::worker::{Worker, Workers};
use super::{Session, Shared, Stay, connection};
use crate::shares::Share;

/// The pause after an accept that failed for want of resources.
const RETRY: Duration = Duration::from_millis(100);

/// One of them. The socket stays here as well, so that it can be given away.
pub(super) struct Entrance {
    socket: Arc<TcpListener>,
    task: JoinHandle<()>,
}

impl Entrance {
    /// Accepts connections, which workers carry from then on.
    pub(super) fn open(
        shared: Arc<Shared>,
        port: u16,
        socket: std::net::TcpListener,
        workers: Workers,
    ) -> io::Result<Self> {
        let socket = Arc::new(TcpListener::from_std(socket)?);
        let task = tokio::spawn(Accepting { shared, port, workers }.accept_from(socket.clone()));
        Ok(Self { socket, task })
    }

    pub(super) fn socket(&self) -> &Arc<TcpListener> {
        &self.socket
    }

    /// Returns when the socket is closed, and all that was accepted there is among the connections.
    pub(super) async fn close(self) {
        self.task.abort();
        // That it was aborted is no news.
        self.task.await.ok();
    }
}

struct Accepting {
    shared: Arc<Shared>,
    port: u16,
    workers: Workers,
}

impl Accepting {
    async fn accept_from(self, socket: Arc<TcpListener>) {
        loop {
            // What a worker carries it must wait for by itself.
            match socket.accept().await.and_then(|(client, _)| client.into_std()) {
                Ok(client) => self.let_in(client).await,
                // The client went away before it was accepted, or descriptors ran out.
                Err(_) => sleep(RETRY).await,
            }
        }
    }

    /// Gives a client to a worker, and returns when it has its place: as long as it has none, the next ones stay in the
    /// queue.
    async fn let_in(&self, client: std::net::TcpStream) {
        let (placed, has_place) = oneshot::channel();
        let place = self.shared.places.try_take(&self.shared.service, 1);
        // Most have it at once, and nobody need wait until the worker says so.
        let is_placed = place.is_some();
        let worker = self.workers.least_busy();
        let arrival = Arrival { shared: self.shared.clone(), port: self.port, worker: worker.clone(), client };
        worker.carry(arrival.carry(place, placed));
        if !is_placed {
            has_place.await.ok();
        }
    }
}

/// A client that came in.
struct Arrival {
    shared: Arc<Shared>,
    port: u16,
    worker: Arc<Worker>,
    client: std::net::TcpStream,
}

impl Arrival {
    /// Carries its connection once it has its place, and tells when that is.
    async fn carry(self, place: Option<Share<ServiceId>>, placed: oneshot::Sender<()>) {
        let Self { shared, port, worker, client } = self;
        // Of its own, so that workers do not meet at one lock whenever something happens on any connection.
        let (ending, cut_off) = (shared.ending.child_token(), shared.cut_off.child_token());
        let carried = async {
            let place = match place {
                Some(place) => place,
                None => shared.places.take(&shared.service, 1).await,
            };
            placed.send(()).ok();
            let stay = Stay { _place: Arc::new(place), ending };
            if let Ok(client) = TcpStream::from_std(client) {
                connection::serve(Session { shared, port, worker, stay }, client).await;
            }
        };
        cut_off.run_until_cancelled(carried).await;
    }
}
