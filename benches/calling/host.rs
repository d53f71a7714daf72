//! A host that keeps commit statuses as Gitea does, and when each came.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use launchway::clock::{Clock as _, SystemClock};
use launchway::model::time::Timestamp;
use serde_json::{Value, json};

/// A status that was written.
#[derive(Clone)]
pub(crate) struct Written {
    commit: String,
    status: Value,
    at: Timestamp,
}

type All = Arc<Mutex<Vec<Written>>>;

/// The host; it ends when dropped.
pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    written: All,
    _runtime: tokio::runtime::Runtime,
}

impl Host {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let (address, written) = (listener.local_addr().unwrap(), All::default());
        let routes = Router::new()
            .route("/api/v1/repos/acme/origin/statuses/{commit}", post(write))
            .route("/api/v1/repos/acme/origin/commits/{commit}/status", get(read))
            .with_state(written.clone());
        runtime.spawn(async move { axum::serve(listener, routes).await });
        Self { address, written, _runtime: runtime }
    }

    /// When a context of a commit was first seen in a state.
    pub(crate) fn seen(&self, commit: &str, context: &str, state: &str) -> Option<Timestamp> {
        let is_it =
            |it: &&Written| it.commit == commit && it.status["context"] == context && it.status["state"] == state;
        self.written.lock().unwrap().iter().find(is_it).map(|it| it.at)
    }
}

async fn write(
    State(all): State<All>,
    Path(commit): Path<String>,
    Json(status): Json<Value>,
) -> (StatusCode, Json<Value>) {
    let written = Written { commit, status: status.clone(), at: SystemClock.now() };
    all.lock().unwrap().push(written);
    (StatusCode::CREATED, Json(status))
}

async fn read(State(all): State<All>, Path(commit): Path<String>) -> Json<Value> {
    let all = all.lock().unwrap();
    let mut latest: Vec<Value> = Vec::new();
    for written in all.iter().filter(|it| it.commit == commit) {
        latest.retain(|status| status["context"] != written.status["context"]);
        latest.push(as_read(&written.status));
    }
    Json(json!({"sha": commit, "statuses": latest, "total_count": latest.len()}))
}

/// Gitea has another word for the state where it is read.
fn as_read(status: &Value) -> Value {
    let mut read = status.as_object().unwrap().clone();
    let state = read.remove("state").unwrap();
    read.insert("status".to_owned(), state);
    Value::Object(read)
}
