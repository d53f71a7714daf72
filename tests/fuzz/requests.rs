//! The API: events that come in, and questions.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Request, Uri};
use launchway::server::origin::Origin;
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

use crate::message;
use crate::support;

/// The most bytes of an answer that are read.
const ANSWER: usize = 4 << 20;

/// The API of a shop that was pushed twice.
pub(crate) struct Server {
    runtime: Runtime,
    shop: support::Server,
}

impl Server {
    /// One that answers until it is dropped.
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let shop = runtime.block_on(support::shop());
        Self { runtime, shop }
    }

    /// What sending an event comes to.
    pub(crate) fn send_event(&self, input: &[u8]) -> String {
        let (headers, body) = message::parts(input);
        self.request(Method::POST, Uri::from_static("/api/v1/event"), headers, body.to_vec())
    }

    /// What a question comes to: the first line is path and query, and headers follow.
    pub(crate) fn ask(&self, input: &[u8]) -> String {
        let (line, rest) = input.split_at(input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len()));
        let Ok(uri) = Uri::try_from(line) else { return "no path".to_owned() };
        let (headers, _) = message::parts(rest.trim_ascii_start());
        self.request(Method::GET, uri, headers, Vec::new())
    }

    /// Whatever is asked, the fault is never ours.
    fn request(&self, method: Method, uri: Uri, mut headers: HeaderMap, body: Vec<u8>) -> String {
        headers.insert("host", HeaderValue::from_static("localhost"));
        let mut request = Request::builder().method(method).uri(uri).body(Body::from(body)).unwrap();
        *request.headers_mut() = headers;
        request.extensions_mut().insert(Origin::Commands { user: "fuzz".to_owned() });
        self.runtime.block_on(async {
            let response = self.shop.router.clone().oneshot(request).await.unwrap();
            let status = response.status();
            assert!(!status.is_server_error() || status.as_u16() == 503, "{status}");
            if status.is_success() {
                return status.to_string(); // some go on for ever
            }
            let body = axum::body::to_bytes(response.into_body(), ANSWER).await.unwrap();
            format!("{status} {}", String::from_utf8_lossy(&body))
        })
    }
}
