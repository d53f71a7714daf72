//! A client's connection from one request to the next.
//!
//! Most connections rest most of the time. When nothing is under way, hyper is taken off, and the bare stream is all
//! that is left; when the client sends something, hyper is put on again. So a connection that rests costs little and may
//! do so for long, and a head that has begun has its own, short time. A few that have just been busy keep hyper for a
//! moment, because their next request comes soon.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::server::conn::http1::{self, UpgradeableConnection};
use hyper::service::Service;
use hyper::{Request, Response};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use super::client::{Client, HeadTimer, Watch};
use super::http::{MAX_HEAD, ResponseBody};

/// How long a head may take from its first byte on. One that is sent at all comes at once; nobody may hold a place by a
/// byte now and then.
const HEAD: Duration = Duration::from_secs(10);
/// How long a client may keep its connection without a request. Long, because a client that sends its next request just
/// when the connection is closed would see it fail.
const IDLE: Duration = Duration::from_secs(3600);
/// How long a connection keeps hyper after a request; it may be twice as long.
const LINGER: Duration = Duration::from_secs(1);
/// How many connections without a request keep hyper. Each takes some 20 KB.
static LINGERING: Semaphore = Semaphore::const_new(64);
/// What a client hears whose request's head did not arrive.
const LATE: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 39\r\n\
    Connection: close\r\n\r\nthe head of the request came too slowly";

/// What answers requests.
pub(super) trait Requests:
    Service<Request<Incoming>, Response = Response<ResponseBody>, Error = Infallible, Future: Send> + Clone + Unpin + Send
{
}

impl<R> Requests for R where
    R: Service<Request<Incoming>, Response = Response<ResponseBody>, Error = Infallible, Future: Send>
        + Clone
        + Unpin
        + Send
{
}

/// Serves a client, which has sent something, until it or the service ends.
pub(super) async fn serve<R: Requests>(
    mut client: TcpStream,
    watch: Arc<Watch>,
    requests: R,
    ending: CancellationToken,
) {
    let mut ending = pin!(ending.cancelled());
    let mut limit = pin!(sleep(IDLE));
    // The connection is on the heap, so that nothing is left of its size while it rests.
    while let Some(rests) = Box::pin(Connection::new(client, &watch, &requests).until_rest(ending.as_mut())).await {
        let since = Instant::now();
        let has_more = tokio::select! {
            readable = rests.readable() => readable.is_ok(),
            () = ending.as_mut() => false,
            () = reached(limit.as_mut(), since + IDLE) => false,
        };
        if !has_more {
            return;
        }
        client = rests;
    }
}

/// Waits with a sleep that is set anew when it ends too early only: most are never needed.
async fn reached(mut sleep: Pin<&mut Sleep>, time: Instant) {
    while sleep.deadline() < time || !sleep.is_elapsed() {
        sleep.as_mut().await;
        if sleep.deadline() < time {
            sleep.as_mut().reset(time);
        }
    }
}

/// A connection while hyper serves it.
struct Connection<R: Requests> {
    hyper: UpgradeableConnection<Client, R>,
    watch: Arc<Watch>,
    /// When the head that has begun is late.
    limit: Option<Pin<Box<Sleep>>>,
    linger: Option<Linger>,
    is_ending: bool,
}

/// The right to keep hyper for the next request.
struct Linger {
    _place: SemaphorePermit<'static>,
    /// Whether there was a request since the sleep began, which therefore need not be set anew for each.
    was_used: bool,
    sleep: Pin<Box<Sleep>>,
}

/// What hyper stops for.
enum Stop {
    /// The connection is closed, or has another protocol.
    Ended,
    /// Nothing is under way, unless the next head was read with the last one.
    AtRest,
    /// The rest of a head did not come in time.
    Late,
}

impl<R: Requests> Connection<R> {
    fn new(client: TcpStream, watch: &Arc<Watch>, requests: &R) -> Self {
        Self::with(client, Bytes::new(), watch.clone(), requests.clone())
    }

    fn with(stream: TcpStream, ahead: Bytes, watch: Arc<Watch>, requests: R) -> Self {
        let mut builder = http1::Builder::new();
        // hyper takes 100 fields in a head, as others do; room for more would be allocated for each request.
        builder.preserve_header_case(true).max_buf_size(MAX_HEAD).half_close(true);
        // The timer alone decides; the time is only what makes hyper ask it.
        builder.auto_date_header(false).timer(HeadTimer(watch.clone())).header_read_timeout(HEAD);
        let client = Client::new(stream, ahead, watch.clone());
        let hyper = builder.serve_connection(client, requests).with_upgrades();
        Self { hyper, watch, limit: None, linger: None, is_ending: false }
    }

    /// Serves requests until there are none; `None` if the connection has ended.
    async fn until_rest(mut self, mut ending: Pin<&mut WaitForCancellationFuture<'_>>) -> Option<TcpStream> {
        loop {
            let stop = poll_fn(|cx| self.poll(cx, ending.as_mut())).await;
            if matches!(stop, Stop::Ended) {
                return None;
            }
            // Everything was written: what is left are the stream, and what was read of it.
            let parts = self.hyper.into_parts()?;
            let (stream, ahead) = parts.io.into_parts(parts.read_buf);
            match stop {
                _ if ahead.is_empty() => return Some(stream),
                Stop::Late => {
                    refuse(&stream);
                    return None;
                }
                _ => self = Self::with(stream, ahead, self.watch, parts.service),
            }
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>, ending: Pin<&mut WaitForCancellationFuture<'_>>) -> Poll<Stop> {
        if !self.is_ending && ending.poll(cx).is_ready() {
            self.is_ending = true;
            Pin::new(&mut self.hyper).graceful_shutdown();
        }
        // An error is a client that went away or broke the protocol; hyper has answered what can be answered.
        if Pin::new(&mut self.hyper).poll(cx).is_ready() {
            return Poll::Ready(Stop::Ended);
        }
        if !self.watch.awaits_head() {
            self.limit = None;
            self.linger.iter_mut().for_each(|linger| linger.was_used = true);
            return Poll::Pending;
        }
        match (self.watch.has_unwritten(), self.watch.has_begun()) {
            // How long that may take is the kernel's business.
            (true, _) => return Poll::Pending,
            (false, true) => {}
            (false, false) => return self.linger(cx).map(|()| Stop::AtRest),
        }
        ready!(self.limit.get_or_insert_with(|| Box::pin(sleep(HEAD))).as_mut().poll(cx));
        Poll::Ready(Stop::Late)
    }

    /// Waits for the next request, if there is a place.
    fn linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.linger.is_none() {
            let place = LINGERING.try_acquire().ok();
            self.linger = place.map(|place| Linger { _place: place, was_used: false, sleep: Box::pin(sleep(LINGER)) });
        }
        let Some(linger) = &mut self.linger else { return Poll::Ready(()) };
        while linger.sleep.as_mut().poll(cx).is_ready() {
            if !std::mem::take(&mut linger.was_used) {
                return Poll::Ready(());
            }
            linger.sleep.as_mut().reset(Instant::now() + LINGER);
        }
        Poll::Pending
    }
}

/// The stream has room for so little, since all before was taken.
fn refuse(client: &TcpStream) {
    client.try_write(LATE).ok();
}
