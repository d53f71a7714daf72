//! A small Gitea over real HTTP: it keeps statuses as the real one does, and fails as it is told to.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, Request, State};
use axum::http::header::{AUTHORIZATION, LOCATION, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use futures::stream;
use launchway::server::listener::{Bounds, serve};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// What goes wrong with one request.
pub(crate) enum Fault {
    /// It is answered so, and nothing happens.
    Status(u16),
    /// As before, with `Retry-After`.
    Busy(u16, &'static str),
    /// It leads elsewhere.
    Redirect(String),
    /// It is done, but the answer breaks off.
    LostAnswer,
}

/// What the server knows.
#[derive(Default)]
pub(crate) struct World {
    /// Every status that was posted: the commit and the body, oldest first.
    pub(crate) rows: Vec<(String, Value)>,
    /// The tokens that came with requests, in order.
    pub(crate) tokens: Vec<String>,
    /// What happens to the next requests that write.
    pub(crate) faults: VecDeque<Fault>,
    /// The most that a page has, where somebody has configured less than Gitea does by itself.
    pub(crate) most: Option<usize>,
    /// Whether it does not say how many there are, as old ones do not.
    pub(crate) counts_nothing: bool,
    /// The commits that are unknown.
    pub(crate) gone: Vec<String>,
}

pub(crate) struct FakeGitea {
    pub(crate) address: SocketAddr,
    world: Arc<Mutex<World>>,
    _running: DropGuard,
}

impl FakeGitea {
    pub(crate) async fn start() -> Self {
        let world = Arc::new(Mutex::new(World::default()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        tokio::spawn(serve(listener, routes(&world), Bounds::default(), shutdown.clone()));
        Self { address, world, _running: shutdown.drop_guard() }
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// The statuses of a commit as a row each: state, context and description.
    pub(crate) fn rows(&self, commit: &str) -> Vec<String> {
        let text = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
        let of_commit = |(sha, row): &(String, Value)| {
            (sha == commit).then(|| [text(row, "state"), text(row, "context"), text(row, "description")].join(" "))
        };
        self.world().rows.iter().filter_map(of_commit).collect()
    }
}

fn routes(world: &Arc<Mutex<World>>) -> Router {
    Router::new()
        .route("/api/v1/version", get(async || Json(json!({"version": "1.26.4"}))))
        .route("/api/v1/repos/acme/shop/statuses/{sha}", post(create))
        .route("/api/v1/repos/acme/shop/commits/{sha}/status", get(combined))
        .route("/api/v1/repos/acme/renamed/{*rest}", any(renamed))
        .fallback(async || StatusCode::NOT_FOUND)
        .layer(from_fn_with_state(Arc::clone(world), record_token))
        .with_state(Arc::clone(world))
}

async fn record_token(
    State(world): State<Arc<Mutex<World>>>,
    headers: HeaderMap,
    request: Request,
    next: Next,
) -> Response {
    let token = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    world.lock().unwrap().tokens.push(token.to_owned());
    next.run(request).await
}

/// A repository that was renamed leads to what it is called now.
async fn renamed(uri: Uri) -> Response {
    let target = uri.to_string().replace("/acme/renamed/", "/acme/shop/");
    (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, target)]).into_response()
}

async fn create(State(world): State<Arc<Mutex<World>>>, Path(sha): Path<String>, Json(body): Json<Value>) -> Response {
    let mut world = world.lock().unwrap();
    let fault = world.faults.pop_front();
    match fault {
        Some(Fault::Status(status)) => StatusCode::from_u16(status).unwrap().into_response(),
        Some(Fault::Busy(status, wait)) => {
            (StatusCode::from_u16(status).unwrap(), [(RETRY_AFTER, wait)]).into_response()
        }
        Some(Fault::Redirect(to)) => (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, to)]).into_response(),
        Some(Fault::LostAnswer) => {
            world.rows.push((sha, body));
            let broken = stream::once(async { Err::<Bytes, _>(std::io::Error::other("the line is cut")) });
            (StatusCode::CREATED, Body::from_stream(broken)).into_response()
        }
        None if world.gone.contains(&sha) => {
            let message = format!("GetCommit[{sha}]: object does not exist [id: {sha}, rel_path: ]");
            (StatusCode::INTERNAL_SERVER_ERROR, Json(json!({"message": message}))).into_response()
        }
        None => {
            world.rows.push((sha, body));
            (StatusCode::CREATED, Json(json!({}))).into_response()
        }
    }
}

#[derive(Deserialize)]
struct Asked {
    page: usize,
    limit: usize,
}

async fn combined(
    State(world): State<Arc<Mutex<World>>>,
    Path(sha): Path<String>,
    Query(Asked { page, limit }): Query<Asked>,
) -> Response {
    let world = world.lock().unwrap();
    if world.gone.contains(&sha) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let mut latest: Vec<Value> = Vec::new();
    for (_, row) in world.rows.iter().filter(|(commit, _)| *commit == sha) {
        latest.retain(|seen| seen["context"] != row["context"]);
        let mut seen = row.clone();
        seen["status"] = seen["state"].take();
        seen.as_object_mut().unwrap().remove("state");
        latest.push(seen);
    }
    let limit = limit.min(world.most.unwrap_or(50));
    let count = (!world.counts_nothing).then(|| ("x-total-count", latest.len().to_string()));
    let page: Vec<Value> = latest.into_iter().skip((page - 1) * limit).take(limit).collect();
    // An empty page is `null`.
    let statuses = if page.is_empty() { Value::Null } else { Value::Array(page) };
    (AppendHeaders(count), Json(json!({"state": "pending", "statuses": statuses}))).into_response()
}
