//! Errors as `application/problem+json` (RFC 9457), with a `detail` that helps.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::control::commands::Refusal;
use crate::error::{Class, Failure};

/// Why a request was not answered as wished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Always `about:blank`: the status code says what kind of problem it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// The status code.
    pub status: u16,
    /// The status code in words.
    pub title: String,
    /// What is wrong.
    pub detail: String,
    /// What the reader can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The result of a request.
pub type Answer<T> = Result<T, Problem>;

impl Problem {
    /// A problem with this status code.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Error").to_owned();
        Self { kind: "about:blank".to_owned(), status: status.as_u16(), title, detail: detail.into(), hint: None }
    }

    /// What is asked for is not there.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// Adds what the reader can do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What stands in the way of something asked of a pod: what is wrong for good is wrong with what is asked, such as a
    /// container or a command that is not there.
    pub(super) fn of_pod(failure: &Failure) -> Self {
        let status = match failure.class() {
            Class::Stalled => StatusCode::UNPROCESSABLE_ENTITY,
            Class::Waiting => StatusCode::CONFLICT,
            Class::Transient => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::from_failure(status, failure)
    }

    /// What makes no sense is a bad request to Keptn's clients, whichever part of it is wrong.
    pub(super) fn into_bad_request(self) -> Self {
        match self.status {
            422 => Self { hint: self.hint, ..Self::new(StatusCode::BAD_REQUEST, self.detail) },
            _ => self,
        }
    }

    /// With the two members more by which Keptn's clients read errors.
    fn as_keptn_reads_it(&self) -> Value {
        let message = match &self.hint {
            Some(hint) => format!("{} ({hint})", self.detail),
            None => self.detail.clone(),
        };
        let mut body = json!(self);
        body["code"] = json!(self.status);
        body["message"] = json!(message);
        body
    }

    fn from_failure(status: StatusCode, failure: &Failure) -> Self {
        let hint = failure.hint_text().map(str::to_owned);
        Self { hint, ..Self::new(status, format!("{failure:#}")) }
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        let status = match failure.class() {
            Class::Transient | Class::Waiting => StatusCode::SERVICE_UNAVAILABLE,
            Class::Stalled => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::from_failure(status, &failure)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Unknown(failure) => Self::from_failure(StatusCode::NOT_FOUND, &failure),
            Refusal::Conflict(failure) => Self::from_failure(StatusCode::CONFLICT, &failure),
            Refusal::Invalid(failure) => Self::from_failure(StatusCode::UNPROCESSABLE_ENTITY, &failure),
            Refusal::Failed(failure) => failure.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, axum::Json(self.as_keptn_reads_it())).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response.extensions_mut().insert(self); // for those who say it in other words
        response
    }
}

/// Makes a problem of an error that comes from below handlers, where it is a bare status or a line of text.
pub(super) async fn worded(response: Response) -> Response {
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_error = status.is_client_error() || status.is_server_error();
    if !is_error || response.extensions().get::<Problem>().is_some() || kind.starts_with("text/html") {
        return response;
    }
    let detail = match status {
        StatusCode::GATEWAY_TIMEOUT => "it took too long, and was given up here; what it began may go on",
        StatusCode::PAYLOAD_TOO_LARGE => "the body is too long",
        StatusCode::INTERNAL_SERVER_ERROR => "a mistake in launchway: please report it, with the daemon's log",
        other => other.canonical_reason().unwrap_or("this cannot be answered"),
    };
    Problem::new(status, detail).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_keeps_its_words_and_its_hint() {
        let failure = || Failure::stalled("`web` is paused").hint("resume it first");
        let cases = [
            (Refusal::Unknown(failure()), 404),
            (Refusal::Conflict(failure()), 409),
            (Refusal::Invalid(failure()), 422),
            (Refusal::Failed(failure()), 500),
        ];
        for (refusal, status) in cases {
            let problem = Problem::from(refusal);
            assert_eq!((problem.status, problem.detail.as_str()), (status, "`web` is paused"));
            assert_eq!(problem.hint.as_deref(), Some("resume it first"));
        }
    }

    #[test]
    fn what_is_asked_of_a_pod_in_vain_is_no_mistake_of_the_server() {
        for (failure, status) in [
            (Failure::stalled("pod `web-1-0` has no container `x`"), 422),
            (Failure::waiting("pod `web-1-0` does not run yet"), 409),
            (Failure::transient("cannot read the logs"), 503),
        ] {
            assert_eq!(Problem::of_pod(&failure).status, status, "{failure:?}");
        }
    }

    #[tokio::test]
    async fn an_error_without_words_gets_some_and_others_keep_theirs() {
        let late = worded(StatusCode::GATEWAY_TIMEOUT.into_response()).await;
        assert_eq!(late.status(), StatusCode::GATEWAY_TIMEOUT);
        assert_eq!(late.headers()[header::CONTENT_TYPE], "application/problem+json");
        let body = axum::body::to_bytes(late.into_body(), 1 << 16).await.unwrap();
        let problem: Problem = serde_json::from_slice(&body).unwrap();
        assert_eq!((problem.status, problem.title.as_str()), (504, "Gateway Timeout"));

        let page = (StatusCode::NOT_FOUND, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], "<p>").into_response();
        assert_eq!(worded(page).await.headers()[header::CONTENT_TYPE], "text/html; charset=utf-8");
        let fine = worded("ok".into_response()).await;
        assert_eq!(fine.status(), StatusCode::OK);
    }
}
