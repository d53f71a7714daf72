//! Responses before the final one, such as 103 (RFC 9110, 15.2). A proxy has to pass them on. hyper reads them, and writes
//! none but 100, so they are written around it, where nothing of its own is half written.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::task::AtomicWaker;
use hyper::ext::on_informational;
use hyper::header::{CONTENT_LENGTH, HeaderMap};
use hyper::{Request, StatusCode};
use tokio::sync::Notify;

use super::client::Watch;
use super::headers::remove_per_connection;
use super::http::MAX_HEAD;

/// Those that a client's connection has not written yet.
#[derive(Debug, Default)]
pub(super) struct Interim {
    waiting: Mutex<Vec<u8>>,
    carrier: AtomicWaker,
}

/// Has the interim responses to a request written on its client's connection. 100 is for whoever keeps the body back: hyper
/// writes it when the body is asked for, and nobody else waits for it.
pub(super) fn pass_on<B>(request: &mut Request<B>, watch: &Arc<Watch>, wanted: Option<Arc<Notify>>) {
    let watch = watch.clone();
    on_informational(request, move |response| match (response.status(), &wanted) {
        (StatusCode::CONTINUE, Some(wanted)) => wanted.notify_one(),
        (StatusCode::CONTINUE, None) => {}
        (status, _) => watch.interim.add(status, response.headers()),
    });
}

impl Interim {
    /// For the next request, whose interim responses the task that polls this one writes.
    pub(super) async fn begin(&self) {
        self.forget();
        std::future::poll_fn(|cx| {
            self.carrier.register(cx.waker());
            std::task::Poll::Ready(())
        })
        .await;
    }

    /// What is to be written now.
    pub(super) fn take(&self) -> Bytes {
        let mut waiting = self.waiting();
        // Most requests have none.
        if waiting.is_empty() { Bytes::new() } else { std::mem::take(&mut *waiting).into() }
    }

    /// Nobody needs them any more.
    pub(super) fn forget(&self) {
        self.waiting().clear();
    }

    fn add(&self, status: StatusCode, headers: &HeaderMap) {
        let mut waiting = self.waiting();
        let head = head(status, headers.clone());
        // A client that takes nothing of them misses some.
        if waiting.len() + head.len() <= MAX_HEAD {
            waiting.extend_from_slice(&head);
        }
        drop(waiting);
        self.carrier.wake();
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<u8>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn head(status: StatusCode, mut headers: HeaderMap) -> Vec<u8> {
    remove_per_connection(&mut headers);
    headers.remove(CONTENT_LENGTH);
    let reason = status.canonical_reason().unwrap_or_default();
    let mut head = format!("HTTP/1.1 {} {reason}\r\n", status.as_str()).into_bytes();
    for (name, value) in &headers {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

#[cfg(test)]
mod tests {
    use hyper::header::{CONNECTION, HeaderValue, LINK, TRANSFER_ENCODING};

    use super::*;

    #[test]
    fn a_head_says_what_the_pod_said_except_what_concerns_one_connection() {
        let mut headers = HeaderMap::new();
        headers.append(LINK, HeaderValue::from_static("</a.css>; rel=preload"));
        headers.append(LINK, HeaderValue::from_static("</b.js>; rel=preload"));
        for (name, value) in [(CONNECTION, "close"), (TRANSFER_ENCODING, "chunked"), (CONTENT_LENGTH, "3")] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let expected = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\nlink: </b.js>; rel=preload\r\n\r\n";
        assert_eq!(head(StatusCode::EARLY_HINTS, headers), expected.as_bytes());
        assert_eq!(head(StatusCode::from_u16(199).unwrap(), HeaderMap::new()), b"HTTP/1.1 199 \r\n\r\n");
    }

    #[test]
    fn what_waits_is_bounded() {
        let interim = Interim::default();
        let mut headers = HeaderMap::new();
        headers.insert(LINK, HeaderValue::from_bytes(&[b'x'; 8 << 10]).unwrap());
        (0..100).for_each(|_| interim.add(StatusCode::EARLY_HINTS, &headers));
        assert!((MAX_HEAD / 2..=MAX_HEAD).contains(&interim.take().len()));
        assert!(interim.take().is_empty());
    }
}
