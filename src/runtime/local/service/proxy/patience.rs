//! How long a client may take nothing of what is sent to it, which costs buffers here and at the pod for as long.
//!
//! The kernel counts, by what the client acknowledges: whoever takes little goes on, and so does whoever has nothing to take,
//! because a pod is silent or nobody speaks at all. What is written to a socket would not tell: of its large buffer a slow
//! client makes no room for minutes.

use std::io;
use std::time::Duration;

use rustix::net::sockopt::set_tcp_user_timeout;
use tokio::net::TcpStream;

/// Between requests and in the middle of a response.
pub(super) const FOR_A_RESPONSE: Duration = Duration::from_secs(60);
/// Where nobody here knows what is passed on: there a person may look at the first page of a long answer.
pub(super) const FOR_A_STREAM: Duration = Duration::from_secs(3600);

/// Has a client's connection break off when its patience is over.
pub(super) fn limit(client: &TcpStream, patience: Duration) -> io::Result<()> {
    Ok(set_tcp_user_timeout(client, u32::try_from(patience.as_millis()).unwrap_or(u32::MAX))?)
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::{Instant, sleep, timeout};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(1);

    /// The two ends of a connection; the patience with the first one is limited.
    async fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (client, accepted) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        let (accepted, client) = (accepted.unwrap().0, client.unwrap());
        limit(&accepted, PATIENCE).unwrap();
        (accepted, client)
    }

    /// Sends so much, and says how that ended.
    async fn send(mut to: TcpStream, bytes: usize) -> io::Result<()> {
        to.write_all(&vec![b'x'; bytes]).await?;
        // What is in the kernel's hands may be lost as well.
        to.shutdown().await?;
        to.read(&mut [0]).await.map(drop)
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_given_up() {
        let (accepted, _client) = connection().await;
        let begun = Instant::now();
        let ended = timeout(PATIENCE * 20, send(accepted, 64 << 20)).await.expect("it ends");
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() >= PATIENCE);
    }

    #[tokio::test]
    async fn a_client_that_takes_a_little_now_and_then_gets_all() {
        let (accepted, mut client) = connection().await;
        let takes = async {
            // Most of that is in the kernel's buffers at once, so that nothing can be written for longer than the patience.
            let (mut taken, mut part) = (0, vec![0; 256 << 10]);
            while taken < 8 << 20 {
                taken += client.read_exact(&mut part).await.unwrap();
                sleep(PATIENCE / 4).await;
            }
            drop(client);
        };
        let (sent, ()) = tokio::join!(send(accepted, 8 << 20), takes);
        sent.unwrap();
    }

    #[tokio::test]
    async fn a_client_for_which_there_is_nothing_stays() {
        let (mut accepted, mut client) = connection().await;
        accepted.write_all(b"a").await.unwrap();
        assert_eq!(client.read(&mut [0]).await.unwrap(), 1);
        let silence = async { timeout(PATIENCE * 3, pending::<()>()).await };
        assert!(silence.await.is_err());
        client.write_all(b"b").await.unwrap();
        assert_eq!(accepted.read(&mut [0]).await.unwrap(), 1);
    }
}
