//! The Git host of the story: one repository over HTTP, with as much of Gitea's API as is asked for here. It takes pushes,
//! keeps statuses, pull requests and comments, merges, and calls a webhook; nothing of it knows launchway.

mod backend;
mod pull_requests;
mod statuses;
mod webhook;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, patch, post};
use axum::{Json, Router};
use base64::Engine as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::git::Program;
use crate::error::{Context, Result};
use crate::secret::Secret;
use crate::server::listener::{Bounds, serve};
use pull_requests::{Comment, PullRequest};
use webhook::Webhook;

/// Whose repository it is, and its name.
const REPOSITORY: &str = "ada/carts";

/// A host that runs until it is dropped.
#[derive(Debug)]
pub(super) struct GitHost {
    host: Arc<Host>,
    _running: DropGuard,
}

#[derive(Debug)]
struct Host {
    address: SocketAddr,
    git: Program,
    /// What the API and Git take.
    token: Secret,
    client: reqwest::Client,
    kept: Mutex<Kept>,
}

/// What it has been told.
#[derive(Debug, Default)]
struct Kept {
    /// Each with its commit, oldest first.
    statuses: Vec<(String, Value)>,
    /// Number one is the first.
    pull_requests: Vec<PullRequest>,
    comments: Vec<Comment>,
    labels: Vec<String>,
    webhook: Option<Webhook>,
}

impl GitHost {
    /// Serves an empty repository that lies in `folder`.
    ///
    /// # Errors
    /// If there is no `git`, or the folder cannot be written.
    pub(super) async fn start(folder: &Path, token: Secret) -> Result<Self> {
        std::fs::create_dir_all(folder).or_stalled(|| format!("cannot make `{}`", folder.display()))?;
        let git = Program::at_home(folder)?;
        let listener = TcpListener::bind("127.0.0.1:0").await.or_transient(|| "there is no free port".to_owned())?;
        let address = listener.local_addr().or_transient(|| "there is no free port".to_owned())?;
        let host = Arc::new(Host { address, git, token, client: client()?, kept: Mutex::default() });
        host.git.init(&host.bare()).await?;
        let shutdown = CancellationToken::new();
        tokio::spawn(serve(listener, routes(&host), Bounds::default(), shutdown.clone()));
        Ok(Self { host, _running: shutdown.drop_guard() })
    }

    /// Where Git finds the repository.
    pub(super) fn url(&self) -> String {
        format!("http://{}/{REPOSITORY}.git", self.host.address)
    }

    /// The same for a person, who has a password.
    pub(super) fn url_with_password(&self) -> String {
        format!("http://ada:{}@{}/{REPOSITORY}.git", self.host.token.reveal(), self.host.address)
    }

    /// An address of its API about the repository.
    pub(super) fn api(&self, rest: &str) -> String {
        format!("http://{}/api/v1/repos/{REPOSITORY}/{rest}", self.host.address)
    }

    /// Has pushes told to an address from now on, as its page of settings would.
    pub(super) fn call_at(&self, url: String, secret: Secret) {
        self.host.kept().webhook = Some(Webhook::new(url, secret));
    }

    /// What the webhook has answered, oldest first.
    pub(super) fn answers(&self) -> Vec<String> {
        self.host.kept().webhook.as_ref().map(Webhook::answers).unwrap_or_default()
    }
}

impl Host {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bare(&self) -> PathBuf {
        self.git.home().join(format!("{REPOSITORY}.git"))
    }

    /// What `git` prints in the repository.
    async fn run(&self, arguments: &[&str]) -> Result<String> {
        self.git.run_in(&self.bare(), arguments).await.map(|printed| printed.trim().to_owned())
    }

    /// Whether a request is that of somebody who may write: by the token itself, or with it as a password.
    fn lets_in(&self, headers: &HeaderMap) -> bool {
        let shown = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let password = |pair: &str| {
            let pair = base64::engine::general_purpose::STANDARD.decode(pair).ok()?;
            String::from_utf8(pair).ok()?.split_once(':').map(|(_, password)| password.to_owned())
        };
        let token = match shown.split_once(' ') {
            Some(("Basic", pair)) => password(pair),
            Some(("token" | "Bearer", token)) => Some(token.to_owned()),
            _ => None,
        };
        token.is_some_and(|token| token == self.token.reveal())
    }
}

/// Who asks on this machine, whatever proxy leads out of it.
///
/// # Errors
/// If the platform has no TLS.
pub(super) fn client() -> Result<reqwest::Client> {
    reqwest::Client::builder().no_proxy().build().or_transient(|| "cannot ask over HTTP".to_owned())
}

fn routes(host: &Arc<Host>) -> Router {
    let about = |rest: &str| format!("/api/v1/repos/{REPOSITORY}/{rest}");
    Router::new()
        .route("/api/v1/version", get(async || Json(json!({"version": "1.26.4"}))))
        .route(&about("statuses/{sha}"), post(statuses::create))
        .route(&about("commits/{sha}/status"), get(statuses::combined))
        .route(&about("pulls"), get(pull_requests::list).post(pull_requests::create))
        .route(&about("pulls/{number}"), get(pull_requests::read).patch(pull_requests::update))
        .route(&about("pulls/{number}/merge"), post(pull_requests::merge))
        .route(&about("issues/{number}/comments"), get(pull_requests::comments).post(pull_requests::comment))
        .route(&about("issues/comments/{id}"), patch(pull_requests::edit_comment))
        .route(&about("issues/{number}/labels"), post(pull_requests::label))
        .route(&about("labels"), get(pull_requests::labels).post(pull_requests::create_label))
        .route(&format!("/{REPOSITORY}.git/{{*rest}}"), any(backend::answer))
        .fallback(async || StatusCode::NOT_FOUND)
        .layer(from_fn_with_state(Arc::clone(host), only_known))
        .with_state(Arc::clone(host))
}

async fn only_known(State(host): State<Arc<Host>>, request: Request, next: Next) -> Response {
    if host.lets_in(request.headers()) {
        return next.run(request).await;
    }
    (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Basic realm=\"git\"")]).into_response()
}

/// What went wrong inside of the host.
fn broken(failure: &crate::error::Failure) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, Json(json!({"message": failure.one_line()}))).into_response()
}

/// What is not there.
fn missing() -> Response {
    (StatusCode::NOT_FOUND, Json(json!({"message": "it is not here"}))).into_response()
}
