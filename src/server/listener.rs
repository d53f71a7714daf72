//! Accepts connections, with the bounds that an open port needs.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use axum::response::IntoResponse;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_io_timeout::TimeoutWriter;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tower::ServiceExt;

use super::origin::{Client, Origin, PARTS};
use super::problem::Problem;
use crate::error::root_cause;
use crate::shares::{Share, Shares};

/// For each connection that is served, so many more may wait.
const WAITING: usize = 2;

/// Bytes of a request's headers.
const HEADER_LIMIT: usize = 64 * 1024;

/// When the process is out of file descriptors, trying again at once helps nobody.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The place that a connection takes. Whoever goes on with an upgraded one keeps it, and is waited for.
#[derive(Clone, Debug)]
pub struct Slot(#[expect(dead_code, reason = "it is there to be dropped")] Arc<(Share<Client>, TaskTrackerToken)>);

/// How much clients may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Connections that are served at once, of which one client gets a fifth at most.
    pub connections: usize,
    /// How long the headers of a request may take; a slower client is cut off.
    pub headers: Duration,
    /// How long the body of a request may take.
    pub body: Duration,
    /// How long a client may take nothing of what it is sent.
    pub answer: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 2048,
            headers: Duration::from_secs(10),
            body: Duration::from_secs(30),
            answer: Duration::from_secs(30),
        }
    }
}

/// Where clients come in.
pub trait Door: Send + Sync + 'static {
    /// A connection with one of them.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next one.
    fn accept(&self) -> impl Future<Output = io::Result<(Self::Stream, Origin)>> + Send;
}

impl Door for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<(TcpStream, Origin)> {
        let (stream, client) = Self::accept(self).await?;
        Ok((stream, Origin::Network { client }))
    }
}

/// Serves `router` until `shutdown`, then closes the door and waits for the requests that are under way. Each request has
/// its [`Origin`] with it.
pub async fn serve<D: Door>(door: D, router: Router, bounds: Bounds, shutdown: CancellationToken) {
    let (places, queue) = (Shares::new(bounds.connections, PARTS), Shares::new(WAITING * bounds.connections, PARTS));
    let connections = TaskTracker::new();
    while let Some(accepted) = shutdown.run_until_cancelled(door.accept()).await {
        match accepted {
            Ok((stream, origin)) => {
                let Some(waiting) = queue.try_take(&origin.client(), 1) else {
                    tracing::debug!(?origin, "closed a connection of a client that has too many");
                    continue;
                };
                let connection = Connection { stream, origin, bounds, shutdown: shutdown.clone() };
                let token = connections.token();
                connections.spawn(connection.serve_in_turn(places.clone(), waiting, token, router.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(door);
    connections.close();
    connections.wait().await;
}

struct Connection<S> {
    stream: S,
    origin: Origin,
    bounds: Bounds,
    shutdown: CancellationToken,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Connection<S> {
    /// Waits for a place, as long as headers may take, and is served there.
    async fn serve_in_turn(
        self,
        places: Arc<Shares<Client>>,
        waiting: Share<Client>,
        token: TaskTrackerToken,
        router: Router,
    ) {
        let client = self.origin.client();
        let turn = tokio::time::timeout(self.bounds.headers, places.take(&client, 1));
        let Some(Ok(place)) = self.shutdown.clone().run_until_cancelled_owned(turn).await else { return };
        drop(waiting);
        self.serve(router, Slot(Arc::new((place, token)))).await;
    }

    async fn serve(self, router: Router, slot: Slot) {
        let Self { stream, origin, bounds, shutdown } = self;
        let client = origin.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let (router, mut request) = (router.clone(), request.map(Body::new));
            request.extensions_mut().insert(client.clone());
            request.extensions_mut().insert(slot.clone());
            async move {
                match is_ambiguous(&request) {
                    true => Ok(Problem::new(StatusCode::BAD_REQUEST, "a request has one `Host`").into_response()),
                    false => router.oneshot(request).await,
                }
            }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(bounds.headers).max_buf_size(HEADER_LIMIT);
        let mut stream = TimeoutWriter::new(stream);
        stream.set_timeout(Some(bounds.answer));
        let connection = http.serve_connection(TokioIo::new(Box::pin(stream)), service).with_upgrades();
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = &mut connection => ended,
            () = shutdown.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(?origin, error = %root_cause(&error), "a connection broke");
        }
    }
}

/// Whether whoever stands before this server may have understood another host than we would.
fn is_ambiguous<B>(request: &Request<B>) -> bool {
    request.headers().get_all(header::HOST).iter().nth(1).is_some()
}

#[cfg(test)]
mod tests {
    use axum::Extension;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_request_that_is_under_way_ends_before_the_listener_does() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (started, mut is_started) = mpsc::channel::<()>(1);
        let finish = CancellationToken::new();
        let slow = finish.clone();
        let handler = move |Extension(origin): Extension<Origin>| async move {
            started.send(()).await.unwrap();
            slow.cancelled().await;
            let Origin::Network { client } = origin else { return "from somewhere else".to_owned() };
            format!("done for {}", client.ip())
        };
        let shutdown = CancellationToken::new();
        let router = Router::new().route("/", get(handler));
        let served = tokio::spawn(serve(listener, router, Bounds::default(), shutdown.clone()));

        let mut idle = TcpStream::connect(address).await.unwrap();
        let mut busy = TcpStream::connect(address).await.unwrap();
        busy.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        is_started.recv().await.unwrap();
        shutdown.cancel();
        let mut rest = Vec::new();
        idle.read_to_end(&mut rest).await.unwrap();
        assert!(rest.is_empty() && !served.is_finished());
        finish.cancel();
        busy.read_to_end(&mut rest).await.unwrap();
        assert!(String::from_utf8_lossy(&rest).ends_with("done for 127.0.0.1"));
        served.await.unwrap();
        assert!(TcpStream::connect(address).await.is_err());
    }

    /// A socket by which two users come: mallory, from an address of their own, and ann.
    struct TwoUsers(TcpListener);

    impl Door for TwoUsers {
        type Stream = TcpStream;

        async fn accept(&self) -> io::Result<(TcpStream, Origin)> {
            let (stream, client) = self.0.accept().await?;
            let user = if client.ip().to_string() == "127.0.0.2" { "mallory" } else { "ann" };
            Ok((stream, Origin::Commands { user: user.to_owned() }))
        }
    }

    #[tokio::test]
    async fn a_user_that_takes_all_connections_leaves_some_to_others() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let router = Router::new().route("/", get(async || "here"));
        let bounds = Bounds { connections: 20, ..Bounds::default() };
        let served = tokio::spawn(serve(TwoUsers(listener), router, bounds, shutdown.clone()));
        let mut taken = Vec::new();
        for _ in 0..100 {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
            taken.push(socket.connect(address).await.unwrap());
        }
        let mut other = TcpStream::connect(address).await.unwrap();
        other.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        other.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("here"), "{answer:?}");
        shutdown.cancel();
        served.await.unwrap();
    }
}
