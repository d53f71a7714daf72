//! Errors as `application/problem+json` (RFC 9457).

use axum::Json;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// An answer that says what is wrong, and what to do where that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    status: StatusCode,
    detail: String,
}

impl Problem {
    /// A problem with a sentence for people.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into() }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or("Error");
        let body =
            json!({"type": "about:blank", "title": title, "status": self.status.as_u16(), "detail": self.detail});
        let mut response = (self.status, Json(body)).into_response();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response
    }
}
