//! A Git server over HTTP: `git http-backend` behind axum, with the failures of real hosts chosen by the path.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};
use base64::Engine as _;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::watch;

/// What the server saw of one request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) authorization: Option<String>,
    /// The compressions that the client takes.
    pub(crate) encodings: Option<String>,
}

/// A running server; it ends when dropped.
pub(crate) struct GitHttp {
    address: SocketAddr,
    shared: Arc<Shared>,
    _runtime: tokio::runtime::Runtime,
}

struct Shared {
    root: PathBuf,
    config: PathBuf,
    seen: Mutex<Vec<Seen>>,
    redirect: Mutex<String>,
    failing: Mutex<VecDeque<u16>>,
    silent: watch::Sender<bool>,
}

impl GitHttp {
    /// Serves the repositories in `root`:
    /// `/<repository>` as they are, `/auth/<repository>` for `bot` with the password `secret`,
    /// `/v0/<repository>` without newer protocols, `/redirect/<repository>` elsewhere, `/status/<code>/…` with that
    /// status, `/hang/…` never, `/page/…` with a web page, `/compressed/<repository>` as compressed, `/damaged/<repository>` with packs that do not add up, `/moody/<repository>` as it was told last.
    pub(crate) fn start(root: &Path) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("runtime");
        let config = root.join("gitconfig");
        let shared = Arc::new(Shared {
            root: root.to_owned(),
            config,
            seen: Mutex::default(),
            redirect: Mutex::default(),
            failing: Mutex::default(),
            silent: watch::Sender::new(false),
        });
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address");
        let app = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self { address, shared, _runtime: runtime }
    }

    /// The address of `path`.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// Where `/redirect/<rest>` leads: to `<base><rest>`.
    pub(crate) fn redirect_to(&self, base: &str) {
        *self.shared.redirect.lock().expect("lock") = base.to_owned();
    }

    /// The next request for `/moody/…` is answered with this status alone.
    pub(crate) fn fail_next(&self, status: u16) {
        self.shared.failing.lock().expect("lock").push_back(status);
    }

    /// Whether requests for `/moody/…` wait until that changes.
    pub(crate) fn set_silent(&self, silent: bool) {
        self.shared.silent.send_replace(silent);
    }

    /// The requests since the last call.
    pub(crate) fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.shared.seen.lock().expect("lock"))
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let authorization = header(&parts.headers, "authorization");
    let path = parts.uri.path().to_owned();
    shared.seen.lock().expect("lock").push(Seen {
        method: parts.method.to_string(),
        path: path.clone(),
        authorization: authorization.clone(),
        encodings: header(&parts.headers, "accept-encoding"),
    });
    let (first, rest) = path.trim_start_matches('/').split_once('/').unwrap_or_default();
    let query = parts.uri.query().unwrap_or_default();
    if first == "moody" {
        drop(shared.silent.subscribe().wait_for(|silent| !silent).await);
        let failing = shared.failing.lock().expect("lock").pop_front();
        if let Some(status) = failing {
            return simple(status, "not now");
        }
    }
    match first {
        "hang" => std::future::pending().await,
        "status" => simple(rest.split('/').next().and_then(|code| code.parse().ok()).expect("a status"), "no"),
        "page" => simple(200, "<html>a page</html>"),
        "redirect" => {
            let target = format!("{}{rest}?{query}", shared.redirect.lock().expect("lock"));
            Response::builder().status(301).header("location", target).body(Body::empty()).expect("a response")
        }
        "auth" if authorization.as_deref() != Some(&basic("bot", "secret")) => {
            let challenge = "Basic realm=\"test\"";
            Response::builder()
                .status(401)
                .header("www-authenticate", challenge)
                .body(Body::empty())
                .expect("a response")
        }
        _ => {
            let inner = if matches!(first, "auth" | "v0" | "moody" | "compressed" | "damaged") {
                format!("/{rest}")
            } else {
                path.clone()
            };
            let protocol = header(&parts.headers, "git-protocol").filter(|_| first != "v0");
            let body = axum::body::to_bytes(body, usize::MAX).await.expect("a body");
            let kind = header(&parts.headers, "content-type").unwrap_or_default();
            let mut answer = backend(&shared, parts.method.as_str(), &inner, query, &kind, protocol, body).await;
            if first == "compressed" {
                answer.headers_mut().insert("content-encoding", HeaderValue::from_static("gzip"));
            }
            if first == "damaged" { damaged(answer).await } else { answer }
        }
    }
}

/// The same with another end of its pack, if there is one in it: the pack does not have the checksum any more that it claims.
async fn damaged(answer: Response<Body>) -> Response<Body> {
    let (parts, body) = answer.into_parts();
    let mut bytes = axum::body::to_bytes(body, usize::MAX).await.expect("a body").to_vec();
    if let Some(last) = last_of_pack(&bytes) {
        bytes[last] ^= 1;
    }
    Response::from_parts(parts, Body::from(bytes))
}

/// Where the last byte of an answer's pack is: in the last packet of side band 1. What Git tells of its progress may follow.
fn last_of_pack(answer: &[u8]) -> Option<usize> {
    let (mut at, mut last) = (0, None);
    while let Some(length) = answer.get(at..at + 4) {
        let length = std::str::from_utf8(length).ok().and_then(|digits| usize::from_str_radix(digits, 16).ok())?;
        if length > 5 && answer.get(at + 4) == Some(&1) {
            last = Some(at + length - 1);
        }
        at += length.max(4); // those without anything say less than they take
    }
    last
}

async fn backend(
    shared: &Shared,
    method: &str,
    path: &str,
    query: &str,
    kind: &str,
    protocol: Option<String>,
    body: Bytes,
) -> Response<Body> {
    let mut command = tokio::process::Command::new("git");
    command.arg("http-backend").env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("GIT_CONFIG_GLOBAL", &shared.config).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", &shared.root);
    command.env("GIT_PROJECT_ROOT", &shared.root).env("GIT_HTTP_EXPORT_ALL", "1").env("REMOTE_USER", "bot");
    command.env("PATH_INFO", path).env("QUERY_STRING", query).env("REQUEST_METHOD", method);
    command.env("CONTENT_TYPE", kind).env("CONTENT_LENGTH", body.len().to_string());
    if let Some(protocol) = protocol {
        command.env("GIT_PROTOCOL", protocol);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().expect("git http-backend");
    let mut stdin = child.stdin.take().expect("stdin");
    let writer = tokio::spawn(async move { stdin.write_all(&body).await });
    let output = child.wait_with_output().await.expect("output");
    drop(writer.await);
    to_response(&output.stdout)
}

/// Turns CGI's output into a response.
fn to_response(output: &[u8]) -> Response<Body> {
    let end = output.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("headers");
    let mut response = Response::builder();
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        let (name, value) = line.split_once(": ").expect("a header");
        response = match name {
            "Status" => response.status(value[..3].parse::<u16>().expect("a status")),
            _ => response.header(name, value),
        };
    }
    response.body(Body::from(output[end + 4..].to_vec())).expect("a response")
}

fn simple(status: u16, body: &'static str) -> Response<Body> {
    let status = StatusCode::from_u16(status).expect("a status");
    Response::builder().status(status).header("content-type", "text/html").body(Body::from(body)).expect("a response")
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// The header that `user` sends.
pub(crate) fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}")))
}
