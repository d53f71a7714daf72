//! Accepts connections, with the bounds that an open port needs.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

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

/// Serves `router` until `shutdown`, then closes the listener and waits for the requests that are under way. Handlers
/// find the client's address as `ConnectInfo<SocketAddr>`.
pub async fn serve(listener: TcpListener, router: Router, timeouts: Timeouts, shutdown: CancellationToken) {
    let slots = Arc::new(Semaphore::new(CONNECTION_LIMIT));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(timeouts.headers).max_buf_size(HEADER_LIMIT);
    let connections = TaskTracker::new();
    while let Some(accepted) = shutdown.run_until_cancelled(accept(&listener, &slots)).await {
        match accepted {
            Ok((stream, client, slot)) => {
                let connection = serve_connection(http.clone(), stream, client, router.clone(), shutdown.clone());
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
    drop(listener);
    connections.close();
    connections.wait().await;
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, client) = listener.accept().await?;
    Ok((stream, client, slot))
}

async fn serve_connection(
    http: http1::Builder,
    stream: TcpStream,
    client: SocketAddr,
    router: Router,
    shutdown: CancellationToken,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(client));
        router.clone().oneshot(request)
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
        tracing::debug!(%client, %error, "a connection broke");
    }
}

#[cfg(test)]
mod tests {
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
        let handler = move |ConnectInfo(client): ConnectInfo<SocketAddr>| async move {
            started.send(()).await.unwrap();
            slow.cancelled().await;
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
