//! `Expect: 100-continue`: a client keeps its body back until the pod has said that it wants it (RFC 9110, 10.1.1).
//!
//! hyper tells a client to go on when its body is asked for. So it is asked for only when the pod has said so.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{EXPECT, HeaderMap};
use tokio::sync::Notify;
use tokio::time::timeout;

/// How long a pod may take to say what it wants. Some only wait for the body, which their clients then send unasked.
const PATIENCE: Duration = Duration::from_secs(1);

/// A client's body.
pub(super) struct ClientBody {
    body: Incoming,
    /// Ends when the pod wants it; `None` if it does already.
    wanted: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// What the pod says by 100, if the client keeps the body back until then.
pub(super) fn expected(headers: &HeaderMap) -> Option<Arc<Notify>> {
    let expected = headers.get(EXPECT)?.as_bytes().eq_ignore_ascii_case(b"100-continue");
    expected.then(Arc::default)
}

impl ClientBody {
    /// A body, which is kept back until the pod has said that.
    pub(super) fn new(body: Incoming, expected: Option<Arc<Notify>>) -> Self {
        let wanted = expected.map(|expected| -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(async move { drop(timeout(PATIENCE, expected.notified()).await) })
        });
        Self { body, wanted }
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(wanted) = &mut self.wanted {
            ready!(wanted.as_mut().poll(cx));
            self.wanted = None;
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
