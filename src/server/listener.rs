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
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use super::origin::Origin;
use super::problem::Problem;

/// Connections at once; more wait to be accepted.
const CONNECTION_LIMIT: usize = 1024;

/// Bytes of a request's headers.
const HEADER_LIMIT: usize = 64 * 1024;

/// When the process is out of file descriptors, trying again at once helps nobody.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long clients may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For the headers of a request; a slower client is cut off.
    pub headers: Duration,
    /// For the body of a call that anybody may make.
    pub body: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { headers: Duration::from_secs(10), body: Duration::from_secs(30) }
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
pub async fn serve<D: Door>(door: D, router: Router, timeouts: Timeouts, shutdown: CancellationToken) {
    let slots = Arc::new(Semaphore::new(CONNECTION_LIMIT));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(timeouts.headers).max_buf_size(HEADER_LIMIT);
    let connections = TaskTracker::new();
    while let Some(accepted) = shutdown.run_until_cancelled(accept(&door, &slots)).await {
        match accepted {
            Ok((stream, origin, slot)) => {
                let connection = serve_connection(http.clone(), stream, origin, router.clone(), shutdown.clone());
                connections.spawn(async move {
                    connection.await;
                    drop(slot);
                });
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

async fn accept<D: Door>(door: &D, slots: &Arc<Semaphore>) -> io::Result<(D::Stream, Origin, OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, origin) = door.accept().await?;
    Ok((stream, origin, slot))
}

async fn serve_connection(
    http: http1::Builder,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    origin: Origin,
    router: Router,
    shutdown: CancellationToken,
) {
    let client = origin.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (router, mut request) = (router.clone(), request.map(Body::new));
        request.extensions_mut().insert(client.clone());
        async move {
            match is_ambiguous(&request) {
                true => Ok(Problem::new(StatusCode::BAD_REQUEST, "a request has one `Host`").into_response()),
                false => router.oneshot(request).await,
            }
        }
    });
    let connection = http.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(?origin, %error, "a connection broke");
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
        let served = tokio::spawn(serve(listener, router, Timeouts::default(), shutdown.clone()));

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
}
