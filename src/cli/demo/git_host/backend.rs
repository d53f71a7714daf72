//! Git over HTTP, by Git's own program for servers, and what follows from a push.

use std::process::Stdio;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};
use axum::response::IntoResponse;
use tokio::io::AsyncWriteExt as _;

use super::{Host, broken};
use crate::error::{Context, Failure, Result};

pub(super) async fn answer(
    State(host): State<Arc<Host>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let is_push = method == Method::POST && uri.path().ends_with("/git-receive-pack");
    let before = if is_push { host.branches().await.unwrap_or_default() } else { Vec::new() };
    let answer = host.backend(&method, &uri, &headers, body).await;
    if is_push {
        host.moved(&before).await;
    }
    answer.unwrap_or_else(|failure| broken(&failure))
}

impl Host {
    /// Runs `git http-backend` on a request.
    async fn backend(&self, method: &Method, uri: &Uri, headers: &HeaderMap, body: Bytes) -> Result<Response<Body>> {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut command = self.git.command();
        command.arg("http-backend").env("GIT_PROJECT_ROOT", self.git.home()).env("GIT_HTTP_EXPORT_ALL", "1");
        command.env("PATH_INFO", uri.path()).env("QUERY_STRING", uri.query().unwrap_or_default());
        command.env("REQUEST_METHOD", method.as_str()).env("REMOTE_USER", "ada").env("REMOTE_ADDR", "127.0.0.1");
        command.env("CONTENT_TYPE", header("content-type")).env("CONTENT_LENGTH", body.len().to_string());
        command.env("HTTP_CONTENT_ENCODING", header("content-encoding"));
        command.env("GIT_PROTOCOL", header("git-protocol"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let failed = || "cannot run `git http-backend`".to_owned();
        let mut child = command.spawn().or_transient(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that has read enough closes it; what it makes of the request is in its answer.
            tokio::spawn(async move { drop(stdin.write_all(&body).await) });
        }
        let output = child.wait_with_output().await.or_transient(failed)?;
        response(&output.stdout).ok_or_else(|| Failure::transient("`git http-backend` says nothing that is HTTP"))
    }
}

/// What a CGI program has printed, as a response.
fn response(printed: &[u8]) -> Option<Response<Body>> {
    const END: &[u8] = b"\r\n\r\n";
    let end = printed.windows(END.len()).position(|bytes| bytes == END)?;
    let mut response = Response::builder();
    for line in std::str::from_utf8(&printed[..end]).ok()?.lines() {
        let (name, value) = line.split_once(": ")?;
        response = match name {
            "Status" => response.status(value.get(..3)?.parse::<StatusCode>().ok()?),
            _ => response.header(name, value),
        };
    }
    response.body(Body::from(printed[end + END.len()..].to_vec())).ok().map(IntoResponse::into_response)
}
