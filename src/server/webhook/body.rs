//! Reads bodies of callers that nobody knows yet: within a size, a time and a share of the memory.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, StatusCode};
use futures::StreamExt;

use crate::error::root_cause;
use crate::server::origin::{Client, PARTS};
use crate::server::problem::Problem;
use crate::shares::{Share, Shares};

/// Bodies of so many bytes, as nearly all are, wait for nobody's: there is memory for one on each connection.
const SMALL: usize = 64 * 1024;

/// Bytes of larger bodies at once: anybody may send one, and it is held before its signature can be checked.
const MEMORY: usize = 256 * 1024 * 1024;

/// Reads bodies.
#[derive(Debug)]
pub(super) struct BodyReader {
    timeout: Duration,
    memory: Arc<Shares<Client>>,
}

/// A whole body; holds its share of the memory until it is dropped.
#[derive(Debug, Default)]
pub(super) struct ReceivedBody {
    bytes: Vec<u8>,
    share: Option<Share<Client>>,
}

impl Deref for ReceivedBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl BodyReader {
    /// A reader for which each body must be there within `timeout`.
    pub(super) fn new(timeout: Duration) -> Self {
        Self { timeout, memory: Shares::new(MEMORY, PARTS) }
    }

    /// Reads a client's body of at most `limit` bytes: 413 if it is longer, 408 if it takes too long, 400 if it breaks
    /// off. One that announces its length is refused before anything of it is read.
    pub(super) async fn read(
        &self,
        client: &Client,
        headers: &HeaderMap,
        body: Body,
        limit: usize,
    ) -> Result<ReceivedBody, Problem> {
        let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        let length = announced.map_or(limit, |length| usize::try_from(length).unwrap_or(usize::MAX));
        if length > limit {
            return Err(too_long(limit));
        }
        let slow = |_| Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time");
        tokio::time::timeout(self.timeout, self.collect(client, body, length)).await.map_err(slow)?
    }

    /// A body that proves to be large gets the memory for all of it at once: none waits for more while it holds some.
    async fn collect(&self, client: &Client, body: Body, limit: usize) -> Result<ReceivedBody, Problem> {
        let mut received = ReceivedBody::default();
        let mut chunks = body.into_data_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(broken_off)?;
            let length = received.bytes.len() + chunk.len();
            if length > limit {
                return Err(too_long(limit));
            }
            if length > SMALL && received.share.is_none() {
                received.share = Some(self.memory.take(client, limit).await);
                received.bytes.reserve_exact(limit - received.bytes.len());
            }
            received.bytes.extend_from_slice(&chunk);
        }
        Ok(received)
    }
}

fn broken_off(error: axum::Error) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, format!("the body broke off: {}", root_cause(&error)))
}

fn too_long(limit: usize) -> Problem {
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is longer than {limit} bytes"))
}
