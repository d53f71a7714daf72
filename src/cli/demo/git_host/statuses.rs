//! Statuses of commits, as Gitea keeps them: all that were posted, and the last of each context.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::{Host, missing};

pub(super) async fn create(
    State(host): State<Arc<Host>>,
    Path(sha): Path<String>,
    Json(mut status): Json<Value>,
) -> Response {
    if !host.has(&sha).await {
        return missing();
    }
    if let Some(status) = status.as_object_mut() {
        // Named otherwise in what is read.
        let state = status.remove("state").unwrap_or_default();
        status.insert("status".to_owned(), state);
    }
    host.kept().statuses.push((sha, status.clone()));
    (StatusCode::CREATED, Json(status)).into_response()
}

/// All of them are on the first page.
pub(super) async fn combined(State(host): State<Arc<Host>>, Path(sha): Path<String>) -> Response {
    if !host.has(&sha).await {
        return missing();
    }
    let mut latest: Vec<Value> = Vec::new();
    for (_, status) in host.kept().statuses.iter().filter(|(commit, _)| *commit == sha) {
        latest.retain(|known| known["context"] != status["context"]);
        latest.push(status.clone());
    }
    Json(json!({"sha": sha, "statuses": latest})).into_response()
}

impl Host {
    async fn has(&self, sha: &str) -> bool {
        self.run(&["cat-file", "-e", &format!("{sha}^{{commit}}")]).await.is_ok()
    }
}
