//! GitLab, with its state machine of a status and its pipelines. Source: its documentation of commit statuses.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use launchway::forge::address::{ForgeKind, RepositoryAddress};
use launchway::forge::{Refusal, gitlab};
use launchway::model::commit_status::StatusState;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::host::{Fault, Host, Shared};
use crate::{COMMIT, OTHER, TOKEN, Writer, clock, settings, status};

pub(crate) async fn start() -> (Host, Writer) {
    let (clock, folder) = (clock(), tempfile::tempdir().unwrap());
    let host = Host::start(Arc::clone(&clock), TOKEN, "private-token", routes).await;
    let url = format!("http://{}/acme/web/shop.git", host.address);
    let address = RepositoryAddress::on(ForgeKind::Gitlab, &url, None).unwrap();
    let writer = gitlab::writer(settings(address, &folder), Arc::clone(&clock) as _).await.unwrap();
    (host, Writer { writer, clock, folder })
}

fn routes(shared: Shared) -> Router {
    Router::new()
        .route("/api/v4/projects/{project}/statuses/{sha}", post(create_in))
        .route("/api/v4/projects/{project}/repository/commits/{sha}/statuses", get(list))
        .fallback(async || (StatusCode::NOT_FOUND, Json(json!({"message": "404 Project Not Found"}))))
        .with_state(shared)
}

fn said(status: u16, body: Value) -> Response {
    (StatusCode::from_u16(status).unwrap(), Json(body)).into_response()
}

async fn create_in(state: State<Shared>, Path((project, sha)): Path<(String, String)>, body: Json<Value>) -> Response {
    match project.as_str() {
        "acme/web/shop" => create(state, Path(sha), body).await,
        _ => said(404, json!({"message": "404 Project Not Found"})),
    }
}

/// A status that ended begins anew under the same name; an open one only goes on.
async fn create(State(shared): State<Shared>, Path(sha): Path<String>, Json(body): Json<Value>) -> Response {
    let now = shared.now();
    let mut world = shared.world();
    let fault = world.faults.pop_front();
    if let Some(Fault::Status(status)) = fault {
        return said(status, json!({"message": "as the test wants it"}));
    }
    if !world.commits.contains(&sha) {
        return said(404, json!({"message": "404 Commit Not Found"}));
    }
    let state = body["state"].as_str().unwrap_or_default().to_owned();
    let is_word = ["pending", "running", "success", "failed", "canceled"].contains(&state.as_str());
    let fits = body["description"].as_str().is_none_or(|text| text.chars().count() <= 255);
    if !is_word || !fits || body["ref"] != "main" {
        return said(400, json!({"message": "Validation failed"}));
    }
    let of_commit = || world.rows.iter().rev().filter(|(commit, _)| *commit == sha).map(|(_, row)| row);
    let before = of_commit().find(|row| row["name"] == body["name"]).map(|row| row["state"].clone());
    if before.is_some_and(|before| before == state.as_str()) {
        return said(400, json!({"message": format!("Cannot transition status via :x from :{state}")}));
    }
    // Who does not name a pipeline gets another one, beside which the first never ends.
    let known: Vec<Value> = of_commit().map(|row| row["pipeline_id"].clone()).collect();
    let pipeline = match body.get("pipeline_id") {
        Some(named) if known.contains(named) => named.clone(),
        Some(_) => return said(404, json!({"message": "404 Pipeline Not Found"})),
        None => json!(1 + world.rows.len()),
    };
    let mut row = body;
    row["pipeline_id"] = pipeline;
    world.rows.push((sha, row.clone()));
    world.at.push(now);
    match fault {
        Some(Fault::Lost) => said(502, json!({})),
        _ => said(201, row),
    }
}

#[derive(Deserialize)]
struct Page {
    per_page: usize,
    page: usize,
}

async fn list(
    State(shared): State<Shared>,
    Path((_, sha)): Path<(String, String)>,
    Query(page): Query<Page>,
) -> Response {
    let world = shared.world();
    let mut latest: Vec<Value> = Vec::new();
    for (_, row) in world.rows.iter().filter(|(commit, _)| *commit == sha) {
        latest.retain(|seen| seen["name"] != row["name"]);
        let mut seen = row.clone();
        seen["status"] = seen["state"].take();
        seen.as_object_mut().unwrap().remove("state");
        latest.push(seen);
    }
    Json(latest.into_iter().skip((page.page - 1) * page.per_page).take(page.per_page).collect::<Vec<_>>())
        .into_response()
}

#[tokio::test]
async fn statuses_stand_in_one_pipeline_of_a_project_in_groups() {
    let (host, Writer { writer, folder: _folder, .. }) = start().await;
    let one = status(COMMIT, "dev", StatusState::Running, "web version 2 is Running");
    writer.write(std::slice::from_ref(&one)).await.unwrap();
    let statuses = [one, status(COMMIT, "plan", StatusState::Success, "dev: 1 deploy")];
    for _ in 0..3 {
        writer.write(&statuses).await.unwrap();
    }
    let expected = ["running launchway/dev web version 2 is Running", "success launchway/plan dev: 1 deploy"];
    assert_eq!(host.rows(COMMIT, "name"), expected);
    let pipelines: Vec<Value> = host.shared.world().rows.iter().map(|(_, row)| row["pipeline_id"].clone()).collect();
    assert_eq!(pipelines, [json!(1), json!(1)]);
}

#[tokio::test]
async fn the_pipeline_is_found_again_after_a_restart() {
    let (host, Writer { writer, clock, folder }) = start().await;
    writer.write(&[status(COMMIT, "dev", StatusState::Running, "it runs")]).await.unwrap();
    let url = format!("http://{}/acme/web/shop.git", host.address);
    let address = RepositoryAddress::on(ForgeKind::Gitlab, &url, None).unwrap();
    let again = gitlab::writer(settings(address, &folder), Arc::clone(&clock) as _).await.unwrap();
    again.write(&[status(COMMIT, "plan", StatusState::Success, "done")]).await.unwrap();
    assert!(host.shared.world().rows.iter().all(|(_, row)| row["pipeline_id"] == 1));
}

#[tokio::test]
async fn a_state_that_is_there_already_is_no_failure() {
    let (host, Writer { writer, folder: _folder, .. }) = start().await;
    host.fail_next([Fault::Lost]);
    let wanted = [status(COMMIT, "dev", StatusState::Running, "it runs")];
    assert!(matches!(writer.write(&wanted).await, Err(Refusal::Busy(_))));
    writer.write(&wanted).await.unwrap();
    writer.write(&[status(COMMIT, "dev", StatusState::Running, "it runs on")]).await.unwrap();
    assert_eq!(host.rows(COMMIT, "name"), ["running launchway/dev it runs"]);
    writer.write(&[status(COMMIT, "dev", StatusState::Failure, "exit code 3")]).await.unwrap();
    writer.write(&[status(COMMIT, "dev", StatusState::Success, "version 2 serves")]).await.unwrap();
    assert_eq!(host.rows(COMMIT, "name").last().unwrap(), "success launchway/dev version 2 serves");
}

#[tokio::test]
async fn what_gitlab_does_not_have_is_told_apart() {
    let (host, Writer { writer, clock, folder }) = start().await;
    host.shared.world().commits.retain(|commit| commit != COMMIT);
    let wanted = [status(COMMIT, "dev", StatusState::Success, "a"), status(OTHER, "dev", StatusState::Success, "b")];
    assert!(matches!(writer.write(&wanted).await, Err(Refusal::Commit(_))));
    assert_eq!(host.rows(OTHER, "name"), ["success launchway/dev b"]);
    let other = format!("http://{}/acme/other.git", host.address);
    let address = RepositoryAddress::on(ForgeKind::Gitlab, &other, None).unwrap();
    let other = gitlab::writer(settings(address, &folder), Arc::clone(&clock) as _).await.unwrap();
    let Err(Refusal::All(failure)) = other.write(&wanted).await else { panic!("there is no such project") };
    assert!(failure.one_line().contains("does not know the repository"), "{failure}");
}
