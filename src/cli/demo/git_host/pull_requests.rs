//! Pull requests with their comments and labels, and what their button does.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Host, REPOSITORY, broken, missing};
use crate::error::{Failure, Result};

/// A pull request of two branches of the repository.
#[derive(Clone, Debug)]
pub(super) struct PullRequest {
    head: String,
    base: String,
    /// Where `head` was last.
    sha: String,
    title: String,
    body: String,
    is_open: bool,
    is_merged: bool,
    labels: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Comment {
    pull_request: usize,
    body: String,
}

/// What is asked for; absent is left as it is.
#[derive(Debug, Deserialize)]
pub(super) struct Wanted {
    head: Option<String>,
    base: Option<String>,
    title: Option<String>,
    body: Option<String>,
    state: Option<String>,
}

type Shared = State<Arc<Host>>;

pub(super) async fn list(State(host): Shared, Query(query): Query<BTreeMap<String, String>>) -> Json<Value> {
    let wants_open = query.get("state").is_some_and(|state| state == "open");
    let is_first = query.get("page").is_none_or(|page| page == "1");
    let kept = host.kept();
    let numbered = kept.pull_requests.iter().enumerate().filter(|(_, pull)| is_first && (pull.is_open || !wants_open));
    Json(numbered.map(|(place, pull)| host.shown(place + 1, pull)).collect())
}

pub(super) async fn create(State(host): Shared, Json(wanted): Json<Wanted>) -> Response {
    let (head, base) = (wanted.head.unwrap_or_default(), wanted.base.unwrap_or_default());
    let Ok(sha) = host.run(&["rev-parse", "--verify", &format!("refs/heads/{head}")]).await else { return missing() };
    let number = {
        let mut kept = host.kept();
        if kept.pull_requests.iter().any(|pull| pull.is_open && pull.head == head && pull.base == base) {
            let message = "pull request already exists for these targets";
            return (StatusCode::CONFLICT, Json(json!({"message": message}))).into_response();
        }
        let (title, body) = (wanted.title.unwrap_or_default(), wanted.body.unwrap_or_default());
        let (sha, labels) = (sha.clone(), Vec::new());
        kept.pull_requests.push(PullRequest { head, base, sha, title, body, is_open: true, is_merged: false, labels });
        kept.pull_requests.len()
    };
    match host.run(&["update-ref", &format!("refs/pull/{number}/head"), &sha]).await {
        Ok(_) => (StatusCode::CREATED, host.show(number)).into_response(),
        Err(failure) => broken(&failure),
    }
}

pub(super) async fn read(State(host): Shared, Path(number): Path<usize>) -> Response {
    host.show(number)
}

pub(super) async fn update(State(host): Shared, Path(number): Path<usize>, Json(wanted): Json<Wanted>) -> Response {
    host.change(number, |pull| {
        pull.title = wanted.title.unwrap_or_else(|| pull.title.clone());
        pull.body = wanted.body.unwrap_or_else(|| pull.body.clone());
        pull.is_open = wanted.state.map_or(pull.is_open, |state| state == "open");
    });
    host.show(number)
}

/// What the button does: a commit of both branches, without a work tree.
pub(super) async fn merge(State(host): Shared, Path(number): Path<usize>) -> Response {
    let Some(pull) = host.kept().pull_request(number).filter(|pull| pull.is_open).cloned() else { return missing() };
    let before = host.branches().await.unwrap_or_default();
    if let Err(failure) = host.join(number, &pull).await {
        return broken(&failure);
    }
    host.change(number, |pull| (pull.is_open, pull.is_merged) = (false, true));
    host.moved(&before).await;
    StatusCode::OK.into_response()
}

pub(super) async fn comments(State(host): Shared, Path(number): Path<usize>) -> Json<Value> {
    let kept = host.kept();
    let of_it = kept.comments.iter().enumerate().filter(|(_, comment)| comment.pull_request == number);
    Json(of_it.map(|(place, comment)| json!({"id": place + 1, "body": comment.body})).collect())
}

pub(super) async fn comment(State(host): Shared, Path(number): Path<usize>, Json(wanted): Json<Wanted>) -> Response {
    let mut kept = host.kept();
    let body = wanted.body.unwrap_or_default();
    kept.comments.push(Comment { pull_request: number, body: body.clone() });
    (StatusCode::CREATED, Json(json!({"id": kept.comments.len(), "body": body}))).into_response()
}

pub(super) async fn edit_comment(State(host): Shared, Path(id): Path<usize>, Json(wanted): Json<Wanted>) -> Response {
    let mut kept = host.kept();
    let Some(comment) = id.checked_sub(1).and_then(|place| kept.comments.get_mut(place)) else { return missing() };
    comment.body = wanted.body.unwrap_or_default();
    Json(json!({"id": id, "body": comment.body})).into_response()
}

pub(super) async fn labels(State(host): Shared) -> Json<Value> {
    let kept = host.kept();
    Json(kept.labels.iter().enumerate().map(|(place, name)| json!({"id": place + 1, "name": name})).collect())
}

pub(super) async fn create_label(State(host): Shared, Json(wanted): Json<Value>) -> Response {
    let mut kept = host.kept();
    let name = wanted["name"].as_str().unwrap_or_default().to_owned();
    kept.labels.push(name.clone());
    (StatusCode::CREATED, Json(json!({"id": kept.labels.len(), "name": name}))).into_response()
}

pub(super) async fn label(State(host): Shared, Path(number): Path<usize>, Json(wanted): Json<Value>) -> Response {
    let ids = wanted["labels"].as_array().into_iter().flatten().filter_map(Value::as_u64);
    let places: Vec<usize> = ids.filter_map(|id| usize::try_from(id).ok()?.checked_sub(1)).collect();
    let names: Vec<String> = {
        let kept = host.kept();
        places.into_iter().filter_map(|place| kept.labels.get(place).cloned()).collect()
    };
    host.change(number, |pull| pull.labels.clone_from(&names));
    Json(names.into_iter().map(|name| json!({"name": name})).collect::<Value>()).into_response()
}

impl super::Kept {
    fn pull_request(&mut self, number: usize) -> Option<&mut PullRequest> {
        self.pull_requests.get_mut(number.checked_sub(1)?)
    }
}

impl Host {
    fn change(&self, number: usize, change: impl FnOnce(&mut PullRequest)) {
        self.kept().pull_request(number).map(change);
    }

    fn show(&self, number: usize) -> Response {
        let pull = self.kept().pull_request(number).cloned();
        pull.map_or_else(missing, |pull| Json(self.shown(number, &pull)).into_response())
    }

    /// As Gitea shows it.
    fn shown(&self, number: usize, pull: &PullRequest) -> Value {
        let url = format!("http://{}/{REPOSITORY}/pulls/{number}", self.address);
        let state = if pull.is_open { "open" } else { "closed" };
        json!({
            "number": number, "html_url": url, "state": state, "merged": pull.is_merged, "title": pull.title,
            "body": pull.body, "head": {"ref": pull.head, "repo_id": 1, "sha": pull.sha},
            "base": {"ref": pull.base, "repo_id": 1},
            "labels": pull.labels.iter().map(|name| json!({"name": name})).collect::<Value>(),
        })
    }

    /// A branch has moved: what brings it brings what is there now.
    pub(super) async fn follow(&self, reference: &str, sha: &str) {
        let mut numbers = Vec::new();
        for (place, pull) in self.kept().pull_requests.iter_mut().enumerate() {
            if pull.is_open && reference.strip_prefix("refs/heads/") == Some(&pull.head) {
                sha.clone_into(&mut pull.sha);
                numbers.push(place + 1);
            }
        }
        for number in numbers {
            // Whoever asks for it sees the old one, as on a host that is behind.
            drop(self.run(&["update-ref", &format!("refs/pull/{number}/head"), sha]).await);
        }
    }

    /// Has the base contain what a pull request brings.
    async fn join(&self, number: usize, pull: &PullRequest) -> Result<()> {
        let base = format!("refs/heads/{}", pull.base);
        let before = self.run(&["rev-parse", &base]).await?;
        let printed = self.run(&["merge-tree", "--write-tree", &before, &pull.sha]).await?;
        let tree = printed.lines().next().ok_or_else(|| Failure::stalled("there is no tree of both"))?;
        let message = format!("Merge pull request '{}' (#{number})", pull.title);
        let joined = self.run(&["commit-tree", tree, "-p", &before, "-p", &pull.sha, "-m", &message]).await?;
        self.run(&["update-ref", &base, &joined, &before]).await.map(|_| ())
    }
}
