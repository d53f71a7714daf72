//! A small Gitea: pull requests, comments, statuses, and what people may do.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch, post};
use axum::{Json, Router};
use serde_json::{Value, json};

/// What the host has.
#[derive(Default)]
pub(crate) struct Hosted {
    pub(crate) pulls: Vec<Value>,
    /// With their numbers.
    pub(crate) comments: Vec<(u64, Value)>,
    /// Commits with what was written on them.
    statuses: Vec<(String, Value)>,
    pub(crate) writes: usize,
    /// Whether it says nothing of comments.
    pub(crate) is_mute: bool,
    /// What it answers in place of what people may do.
    pub(crate) tells_no_rights: Option<u16>,
    /// How often it was asked for that.
    pub(crate) asked: usize,
}

type Shared = Arc<Mutex<Hosted>>;

/// A Gitea with pull requests; it ends when dropped.
pub(crate) struct Gitea {
    pub(crate) address: SocketAddr,
    hosted: Shared,
    _runtime: tokio::runtime::Runtime,
}

impl Gitea {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let (address, hosted) = (listener.local_addr().unwrap(), Shared::default());
        let repository = Router::new()
            .route("/pulls", get(async |State(hosted): State<Shared>| Json(hosted.lock().unwrap().pulls.clone())))
            .route("/issues/{number}/comments", get(comments).post(comment))
            .route("/issues/comments/{id}", patch(edit))
            .route("/collaborators/{login}/permission", get(permission))
            .route("/commits/{commit}/status", get(async || Json(json!({"statuses": []}))))
            .route("/statuses/{commit}", post(status));
        let app = Router::new()
            .route("/api/v1/version", get(async || Json(json!({"version": "1.26.4"}))))
            .nest("/api/v1/repos/moody/origin", repository)
            .with_state(Arc::clone(&hosted));
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self { address, hosted, _runtime: runtime }
    }

    pub(crate) fn hosted(&self) -> MutexGuard<'_, Hosted> {
        self.hosted.lock().unwrap()
    }

    /// The only comment on a pull request.
    pub(crate) fn comment(&self, number: u64) -> String {
        let hosted = self.hosted();
        let mut found = hosted.comments.iter().filter(|(on, _)| *on == number);
        let text = found.next().map(|(_, comment)| comment["body"].as_str().unwrap().to_owned());
        assert!(found.next().is_none(), "two comments: {:?}", hosted.comments);
        text.unwrap_or_default()
    }

    /// State and description of the last status `launchway/plan` of a commit.
    pub(crate) fn plan_status(&self, commit: &str) -> String {
        let hosted = self.hosted();
        let of = |row: &&(String, Value)| row.0 == commit && row.1["context"] == "launchway/plan";
        let found = hosted.statuses.iter().rev().find(of);
        let text = |field: &str| found.map(|(_, row)| row[field].as_str().unwrap().to_owned()).unwrap_or_default();
        format!("{} {}", text("state"), text("description"))
    }
}

async fn comments(State(hosted): State<Shared>, Path(number): Path<u64>) -> Response {
    let hosted = hosted.lock().unwrap();
    if hosted.is_mute {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let found = hosted.comments.iter().filter(|(on, _)| *on == number);
    Json(found.map(|(_, comment)| comment.clone()).collect::<Value>()).into_response()
}

/// `ann` may write, `ben` read.
async fn permission(State(hosted): State<Shared>, Path(login): Path<String>) -> Response {
    let mut hosted = hosted.lock().unwrap();
    hosted.asked += 1;
    if let Some(status) = hosted.tells_no_rights {
        return StatusCode::from_u16(status).unwrap().into_response();
    }
    let (id, permission) = match &*login {
        "ann" => (3, "write"),
        "ben" => (4, "read"),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    Json(json!({"permission": permission, "role_name": permission, "user": {"id": id, "login": login}})).into_response()
}

async fn comment(State(hosted): State<Shared>, Path(number): Path<u64>, Json(body): Json<Value>) -> Response {
    let mut hosted = hosted.lock().unwrap();
    hosted.writes += 1;
    let comment = json!({"id": 100 + hosted.comments.len(), "body": body["body"]});
    hosted.comments.push((number, comment.clone()));
    (StatusCode::CREATED, Json(comment)).into_response()
}

async fn edit(State(hosted): State<Shared>, Path(id): Path<u64>, Json(body): Json<Value>) -> Response {
    let mut hosted = hosted.lock().unwrap();
    hosted.writes += 1;
    let Some((_, comment)) = hosted.comments.iter_mut().find(|(_, comment)| comment["id"] == id) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    comment["body"] = body["body"].clone();
    Json(comment.clone()).into_response()
}

async fn status(State(hosted): State<Shared>, Path(commit): Path<String>, Json(body): Json<Value>) -> Response {
    let mut hosted = hosted.lock().unwrap();
    hosted.writes += usize::from(body["context"] == "launchway/plan");
    hosted.statuses.push((commit, body));
    (StatusCode::CREATED, Json(json!({}))).into_response()
}
