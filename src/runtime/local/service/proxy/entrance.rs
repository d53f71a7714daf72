//! A port of a service, at which clients come in.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::super::record::ServiceId;
use super::worker::{Worker, Workers};
use super::{Session, Shared, Stay, connection};
use crate::shares::Share;

/// The pause after an accept that failed for want of resources.
const RETRY: Duration = Duration::from_millis(100);
/// How long requests under way may take after their port was closed.
pub(super) const LAST_REQUESTS: Duration = Duration::from_secs(10);

/// One of them. The socket stays here as well, so that it can be given away.
pub(super) struct Entrance {
    socket: Arc<TcpListener>,
    task: JoinHandle<()>,
    port: ServedPort,
}

/// A port as the connections know it that were accepted there. They live on when another proxy accepts.
#[derive(Clone)]
pub(super) struct ServedPort {
    shared: Arc<Shared>,
    number: u16,
    closing: Closing,
}

/// What tells connections that their port is closed.
#[derive(Clone, Debug, Default)]
struct Closing {
    /// Who is idle may go.
    ending: CancellationToken,
    /// Whoever has not ended by now is cut off.
    cut_off: CancellationToken,
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
        let port = ServedPort { shared, number: port, closing: Closing::default() };
        let task = tokio::spawn(Accepting { port: port.clone(), workers }.accept_from(socket.clone()));
        Ok(Self { socket, task, port })
    }

    pub(super) fn socket(&self) -> &Arc<TcpListener> {
        &self.socket
    }

    /// Returns when the socket is closed, and all that was accepted there is among the connections.
    pub(super) async fn close(self) -> ServedPort {
        self.task.abort();
        // That it was aborted is no news.
        self.task.await.ok();
        self.port
    }
}

impl ServedPort {
    /// Whether the service still has this port.
    pub(super) fn is_wanted(&self) -> bool {
        !self.shared.backends.is_closed(self.number)
    }

    /// Tells its connections that it is closed. Requests under way are answered.
    pub(super) fn end(self) {
        self.closing.ending.cancel();
        tokio::spawn(async move {
            sleep(LAST_REQUESTS).await;
            self.closing.cut_off.cancel();
        });
    }
}

struct Accepting {
    port: ServedPort,
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
        let place = self.port.shared.places.try_take(&self.port.shared.service, 1);
        // Most have it at once, and nobody need wait until the worker says so.
        let is_placed = place.is_some();
        let worker = self.workers.least_busy();
        let arrival = Arrival { port: self.port.clone(), worker: worker.clone(), client };
        worker.carry(arrival.carry(place, placed));
        if !is_placed {
            has_place.await.ok();
        }
    }
}

/// A client that came in.
struct Arrival {
    port: ServedPort,
    worker: Arc<Worker>,
    client: std::net::TcpStream,
}

impl Arrival {
    /// Carries its connection once it has its place, and tells when that is.
    async fn carry(self, place: Option<Share<ServiceId>>, placed: oneshot::Sender<()>) {
        let Self { port: ServedPort { shared, number: port, closing }, worker, client } = self;
        // Of its own, so that workers do not meet at one lock whenever something happens on any connection.
        let (ending, cut_off) = (closing.ending.child_token(), closing.cut_off.child_token());
        let carried = async {
            let place = match place {
                Some(place) => place,
                None => shared.places.take(&shared.service, 1).await,
            };
            placed.send(()).ok();
            let stay = Stay { _place: Arc::new(place), ending, cut_off: cut_off.clone() };
            if let Ok(client) = TcpStream::from_std(client) {
                connection::serve(Session { shared, port, worker, stay }, client).await;
            }
        };
        // The connection is in this future once, while `run_until_cancelled` would have it twice.
        tokio::select! {
            biased;
            () = carried => {}
            () = cut_off.cancelled() => {}
        }
    }
}
