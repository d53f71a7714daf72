//! Bytes passed both ways, whatever they mean.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_util::io::InspectReader;

use super::Stay;

/// How long nothing passes before a connection counts as idle. Nobody can tell where a message ends, so that one which was
/// begun has this time to go on.
const QUIET: Duration = Duration::from_millis(500);

/// Passes bytes until both sides have ended; the end of one is passed on, and the other may go on. If the service ends, it
/// ends as soon as it is idle.
pub(super) async fn relay<P>(client: TcpStream, pod: P, stay: Stay) -> io::Result<()>
where
    P: AsyncRead + AsyncWrite + Unpin,
{
    let passed = AtomicU64::new(0);
    let count = |bytes: &[u8]| {
        passed.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    };
    let (mut client, mut pod) = (InspectReader::new(client, count), InspectReader::new(pod, count));
    tokio::select! {
        ended = copy_bidirectional(&mut client, &mut pod) => ended.map(drop),
        () = idle_at_the_end(&passed, &stay) => Ok(()),
    }
}

async fn idle_at_the_end(passed: &AtomicU64, stay: &Stay) {
    stay.ending.cancelled().await;
    let mut before = passed.load(Ordering::Relaxed);
    loop {
        sleep(QUIET).await;
        match passed.load(Ordering::Relaxed) {
            now if now == before => return,
            now => before = now,
        }
    }
}
