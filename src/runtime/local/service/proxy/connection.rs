//! One client's connection: what it speaks decides who serves it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use super::backends::PATIENCE;
use super::http;
use super::pod::Lease;
use super::relay::relay;
use super::sniff::{self, Protocol};
use super::{Shared, Stay};

/// How often a connection on which nobody has spoken asks whether its pod leaves.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Serves a client until its end.
pub(super) async fn serve(shared: Arc<Shared>, port: u16, client: TcpStream, stay: Stay) {
    // Errors are those of the two sides, who see them as well.
    if client.set_nodelay(true).is_ok() {
        decide(shared, port, client, stay).await.ok();
    }
}

/// What most connections do not need is on the heap, so that those that rest are small.
async fn decide(shared: Arc<Shared>, port: u16, client: TcpStream, stay: Stay) -> io::Result<()> {
    let mut protocol = Box::pin(sniff::detect(&client)).await?;
    let mut waiting = None;
    if protocol == Protocol::Silent {
        let word = Box::pin(wait_for_word(&shared, port, &client));
        let Some(word) = stay.ending.run_until_cancelled(word).await else { return Ok(()) };
        (protocol, waiting) = word?;
    }
    if protocol == Protocol::Http1 {
        drop(waiting);
        http::serve(shared, port, client, stay).await;
        return Ok(());
    }
    let connected = match waiting {
        Some(connected) => Some(connected),
        None => Box::pin(connect(&shared, port)).await,
    };
    let Some((pod, _lease)) = connected else { return Ok(()) };
    Box::pin(relay(client, pod, stay)).await
}

/// Connects a silent client to a pod, as far as either speaks. As long as nobody has, the connection is worth
/// nothing, so it moves to another pod when its own one leaves, and a late HTTP request is still one.
async fn wait_for_word(
    shared: &Shared,
    port: u16,
    client: &TcpStream,
) -> io::Result<(Protocol, Option<(TcpStream, Lease)>)> {
    loop {
        let connected = tokio::select! {
            spoken = client.readable() => return Ok((spoken.and(sniff::detect(client).await)?, None)),
            connected = connect(shared, port) => connected,
        };
        let Some((pod, lease)) = connected else { continue };
        loop {
            tokio::select! {
                spoken = client.readable() => {
                    spoken?;
                    return Ok((sniff::detect(client).await?, Some((pod, lease))));
                }
                spoken = pod.readable() => {
                    spoken?;
                    return Ok((Protocol::Raw, Some((pod, lease))));
                }
                () = sleep(LOOK_AGAIN) => if !lease.is_ready() { break },
            }
        }
    }
}

/// Connects to a pod, to another one if that fails; `None` if none could be reached for some time.
async fn connect(shared: &Shared, port: u16) -> Option<(TcpStream, Lease)> {
    let (deadline, mut tried) = (Instant::now() + PATIENCE, Vec::new());
    loop {
        let lease = shared.backends.lease(port, &mut tried, deadline).await?;
        if let Ok(stream) = lease.destination.connect().await {
            return Some((stream, lease));
        }
        tried.push(lease.destination.clone());
    }
}
