//! One client's connection: what it speaks decides who serves it.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use super::Session;
use super::backends::PATIENCE;
use super::http;
use super::patience;
use super::pod::Lease;
use super::relay::relay;
use super::sniff::{self, Protocol};

/// How often a connection on which nobody has spoken asks whether its pod leaves.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Serves a client until its end.
pub(super) async fn serve(session: Session, client: TcpStream) {
    // Errors are those of the two sides, who see them as well.
    if client.set_nodelay(true).is_ok() {
        decide(session, client).await.ok();
    }
}

/// What most connections do not need is on the heap, so that those that rest are small.
async fn decide(session: Session, client: TcpStream) -> io::Result<()> {
    let mut protocol = Box::pin(sniff::detect(&client)).await?;
    let mut waiting = None;
    if protocol == Protocol::Silent {
        let word = Box::pin(wait_for_word(&session, &client));
        let Some(word) = session.stay.ending.run_until_cancelled(word).await else { return Ok(()) };
        (protocol, waiting) = word?;
    }
    if protocol == Protocol::Http1 {
        drop(waiting);
        patience::limit(&client, patience::FOR_A_RESPONSE)?;
        http::serve(session, client).await;
        return Ok(());
    }
    let connected = match waiting {
        Some(connected) => Some(connected),
        None => Box::pin(connect(&session)).await,
    };
    let Some((pod, _lease)) = connected else { return Ok(()) };
    patience::limit(&client, patience::FOR_A_STREAM)?;
    Box::pin(relay(client, pod, session.stay)).await
}

/// Connects a silent client to a pod, as far as either speaks. As long as nobody has, the connection is worth
/// nothing, so it moves to another pod when its own one leaves, and a late HTTP request is still one.
async fn wait_for_word(session: &Session, client: &TcpStream) -> io::Result<(Protocol, Option<(TcpStream, Lease)>)> {
    loop {
        let connected = tokio::select! {
            spoken = client.readable() => return Ok((spoken.and(sniff::detect(client).await)?, None)),
            connected = connect(session) => connected,
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
async fn connect(session: &Session) -> Option<(TcpStream, Lease)> {
    let (deadline, mut tried) = (Instant::now() + PATIENCE, Vec::new());
    loop {
        let lease = session.shared.backends.lease(session.port, &mut tried, deadline).await?;
        if let Ok(stream) = lease.destination.connect().await {
            return Some((stream, lease));
        }
        tried.push(lease.destination.clone());
    }
}
