//! A client's stream as hyper sees it, which tells what hyper does not: whether a connection rests.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use hyper::rt::{Read, ReadBufCursor, Sleep, Timer, Write};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::interim::Interim;
use super::target;

/// As much as is read at once of the beginning of a head.
const BEGINNING: usize = 4 << 10;

/// What is known of a connection while hyper serves it.
#[derive(Debug, Default)]
pub(super) struct Watch {
    awaits_head: AtomicBool,
    has_begun: AtomicBool,
    has_unwritten: AtomicBool,
    /// What is to be written around hyper.
    pub(super) interim: Interim,
}

impl Watch {
    /// hyper is put on, because something of a head has come.
    pub(super) fn begin(&self) {
        self.awaits_head.store(false, Ordering::Relaxed);
        self.has_begun.store(true, Ordering::Relaxed);
        self.has_unwritten.store(false, Ordering::Relaxed);
    }

    /// The head of the final response is there. Where the last response is still on its way to the client, hyper puts this
    /// one right behind it, and there is no place for others in between.
    pub(super) fn end_interim(&self) {
        if self.has_unwritten() {
            self.interim.forget();
        }
    }

    /// Whether a request's head is all that the connection waits for: no other request is under way.
    pub(super) fn awaits_head(&self) -> bool {
        self.awaits_head.load(Ordering::Relaxed)
    }

    /// Whether that head is known to have begun.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Whether something of a response is still to be written.
    pub(super) fn has_unwritten(&self) -> bool {
        self.has_unwritten.load(Ordering::Relaxed)
    }

    fn wait_for_head(self: &Arc<Self>) -> Pin<Box<dyn Sleep>> {
        self.awaits_head.store(true, Ordering::Relaxed);
        Box::pin(HeadWait(self.clone()))
    }
}

/// The stream, and what was read of it before.
#[derive(Debug)]
pub(super) struct Client {
    stream: TokioIo<TcpStream>,
    ahead: Bytes,
    /// Whether nothing was read yet.
    is_fresh: bool,
    /// What of interim responses is being written.
    interim: Bytes,
    watch: Arc<Watch>,
}

impl Read for Client {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, mut buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() {
            if self.is_fresh || (self.watch.awaits_head() && !self.watch.has_begun()) {
                ready!(self.poll_beginning(cx, &mut buf))?;
                self.is_fresh = false;
                self.watch.has_begun.store(true, Ordering::Relaxed);
            } else {
                return Pin::new(&mut self.stream).poll_read(cx, buf);
            }
        }
        let count = self.ahead.len().min(buf.remaining());
        buf.put_slice(&self.ahead.split_to(count));
        Poll::Ready(Ok(()))
    }
}

impl Client {
    /// A stream of which something was read before.
    pub(super) fn new(stream: TcpStream, ahead: Bytes, watch: Arc<Watch>) -> Self {
        watch.begin();
        let (is_fresh, interim) = (ahead.is_empty(), Bytes::new());
        Self { stream: TokioIo::new(stream), ahead, is_fresh, interim, watch }
    }

    /// Reads the beginning of a head; nothing if the client has closed its side.
    fn poll_beginning(&mut self, cx: &mut Context<'_>, buf: &mut ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let mut room = [MaybeUninit::uninit(); BEGINNING];
        let mut read = ReadBuf::uninit(&mut room);
        ready!(Pin::new(self.stream.inner_mut()).poll_read(cx, &mut read))?;
        let read = read.filled();
        if let Some(written) = target::as_uri(read) {
            self.ahead = written.into();
        } else {
            let (now, later) = read.split_at(read.len().min(buf.remaining()));
            buf.put_slice(now);
            self.ahead = Bytes::copy_from_slice(later);
        }
        Poll::Ready(Ok(()))
    }

    /// Writes interim responses where hyper has written what it had to write.
    fn poll_interim(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.interim.is_empty() && !self.watch.has_unwritten() {
            self.interim = self.watch.interim.take();
        }
        while !self.interim.is_empty() {
            let written = ready!(Pin::new(self.stream.inner_mut()).poll_write(cx, &self.interim))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.interim.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    /// The same before hyper writes something of its own.
    fn poll_interim_first(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = self.poll_interim(cx);
        self.watch.has_unwritten.store(true, Ordering::Relaxed);
        written
    }

    /// The stream, and what was read of it beyond what hyper took for its own; `read` is what hyper still had.
    pub(super) fn into_parts(self, read: Bytes) -> (TcpStream, Bytes) {
        let ahead = if self.ahead.is_empty() { read } else { [read, self.ahead].concat().into() };
        (self.stream.into_inner(), ahead)
    }
}

/// hyper flushes when it has nothing more to write, so that between a write and a flush it has.
impl Write for Client {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_interim_first(cx))?;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_interim_first(cx))?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.watch.has_unwritten.store(false, Ordering::Relaxed);
        let written = self.poll_interim(cx)?;
        self.watch.has_unwritten.store(written.is_pending(), Ordering::Relaxed);
        ready!(written);
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// hyper asks its timer for a sleep when it begins to wait for a head, and drops that when the head is complete. This
/// timer only takes note: how long a head may take depends on whether it has begun, which hyper does not distinguish.
#[derive(Debug)]
pub(super) struct HeadTimer(pub(super) Arc<Watch>);

impl Timer for HeadTimer {
    fn sleep(&self, _: Duration) -> Pin<Box<dyn Sleep>> {
        self.0.wait_for_head()
    }

    fn sleep_until(&self, _: Instant) -> Pin<Box<dyn Sleep>> {
        self.0.wait_for_head()
    }
}

/// A head that is waited for. It never ends by itself.
#[derive(Debug)]
struct HeadWait(Arc<Watch>);

impl Future for HeadWait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

impl Sleep for HeadWait {}

impl Drop for HeadWait {
    fn drop(&mut self) {
        self.0.awaits_head.store(false, Ordering::Relaxed);
        self.0.has_begun.store(false, Ordering::Relaxed);
    }
}
