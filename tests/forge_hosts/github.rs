//! GitHub. Source of its limits: its documentation of commit statuses and of secondary rate limits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header::RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use launchway::forge::address::{ForgeKind, RepositoryAddress};
use launchway::forge::{Refusal, github};
use launchway::model::commit_status::StatusState;
use serde_json::{Value, json};

use crate::host::{Fault, Host, Shared, paged};
use crate::{COMMIT, OTHER, TOKEN, Writer, clock, settings, status};

/// What may be written in a minute and in an hour.
const LIMITS: [(usize, i64); 2] = [(80, 60_000), (500, 3_600_000)];
/// So many statuses may be on a commit in one context.
const PER_CONTEXT: usize = 1_000;

pub(crate) async fn start() -> (Host, Writer) {
    let (clock, folder) = (clock(), tempfile::tempdir().unwrap());
    let host = Host::start(
        Arc::clone(&clock),
        concat!("Bearer ", "d8a1c2e3f4051627384950617283940516273849"),
        "authorization",
        routes,
    )
    .await;
    let address = RepositoryAddress::new(&format!("http://{}/acme/shop.git", host.address), None).unwrap();
    let writer = github::writer(settings(address, &folder), Arc::clone(&clock) as _).await.unwrap();
    (host, Writer { writer, clock, folder })
}

/// As GitHub Enterprise Server, which a test can have at any address.
fn routes(shared: Shared) -> Router {
    Router::new()
        .route("/api/v3/repos/acme/shop/statuses/{sha}", post(create))
        .route("/api/v3/repos/acme/shop/commits/{sha}/statuses", get(list))
        .fallback(async || (StatusCode::NOT_FOUND, Json(json!({"message": "Not Found"}))))
        .with_state(shared)
}

fn said(status: u16, body: Value) -> Response {
    (StatusCode::from_u16(status).unwrap(), Json(body)).into_response()
}

async fn create(State(shared): State<Shared>, Path(sha): Path<String>, Json(body): Json<Value>) -> Response {
    let now = shared.now();
    let mut world = shared.world();
    let fault = world.faults.pop_front();
    if let Some(Fault::Status(status)) = fault {
        return said(status, json!({"message": "as the test wants it"}));
    }
    let within = |span: i64| world.at.iter().filter(|at| **at > now - span).count();
    if LIMITS.iter().any(|(most, span)| within(*span) >= *most) {
        world.limits_broken += 1;
        let body = Json(json!({"message": "You have exceeded a secondary rate limit."}));
        return (StatusCode::FORBIDDEN, [(RETRY_AFTER, "60")], body).into_response();
    }
    world.at.push(now);
    if !world.commits.contains(&sha) {
        return said(422, json!({"message": format!("No commit found for SHA: {sha}")}));
    }
    let is_word = matches!(body["state"].as_str(), Some("error" | "failure" | "pending" | "success"));
    let fits = body["description"].as_str().is_none_or(|text| text.chars().count() <= 140);
    let is_link = body.get("target_url").is_none_or(|url| url.as_str().is_some_and(|url| url.starts_with("http")));
    if !is_word || !fits || !is_link {
        return said(422, json!({"message": "Validation Failed"}));
    }
    let same = |(commit, row): &&(String, Value)| *commit == sha && row["context"] == body["context"];
    if world.rows.iter().filter(same).count() >= PER_CONTEXT {
        let message = "This SHA and context has reached the maximum number of statuses.";
        return said(422, json!({"message": "Validation Failed", "errors": [{"message": message}]}));
    }
    world.rows.push((sha, body));
    match fault {
        Some(Fault::Lost) => said(502, json!({})),
        _ => said(201, json!({"id": 1})),
    }
}

async fn list(
    State(shared): State<Shared>,
    Path(sha): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let world = shared.world();
    if !world.commits.contains(&sha) {
        return said(422, json!({"message": format!("No commit found for SHA: {sha}")}));
    }
    let newest = world.rows.iter().rev().filter(|(commit, _)| *commit == sha).map(|(_, row)| row.clone());
    paged(ForgeKind::Github, world.most, &query, &newest.collect::<Vec<Value>>())
}

#[tokio::test]
async fn what_is_on_a_later_page_is_not_written_again() {
    let (host, Writer { writer, folder: _folder, .. }) = start().await;
    host.shared.world().most = 10;
    let many: Vec<_> = (0..25).map(|n| status(COMMIT, &format!("s{n}"), StatusState::Success, "it is done")).collect();
    for _ in 0..2 {
        writer.write(&many).await.unwrap();
        assert_eq!(host.shared.world().rows.len(), 25);
    }
}

#[tokio::test]
async fn statuses_are_written_once_in_githubs_words() {
    let (host, Writer { writer, folder: _folder, .. }) = start().await;
    let statuses = [
        status(COMMIT, "dev", StatusState::Running, "web version 2 is Running"),
        status(COMMIT, "production", StatusState::Skipped, "never reached: dev stopped it"),
        status(COMMIT, "test", StatusState::Unchanged, "nothing changed"),
        status(OTHER, "dev", StatusState::Cancelled, "superseded by 1111111"),
    ];
    for _ in 0..3 {
        writer.write(&statuses).await.unwrap();
    }
    let expected = [
        "pending launchway/dev web version 2 is Running",
        "failure launchway/production never reached: dev stopped it",
        "success launchway/test nothing changed",
    ];
    assert_eq!(host.rows(COMMIT, "context"), expected);
    assert_eq!(host.rows(OTHER, "context"), ["failure launchway/dev cancelled: superseded by 1111111"]);
    assert_eq!(host.shared.world().rows[0].1["target_url"], "https://deploy.example/runs/7");
}

#[tokio::test]
async fn an_answer_that_was_lost_writes_nothing_twice() {
    let (host, Writer { writer, folder: _folder, .. }) = start().await;
    host.fail_next([Fault::Lost]);
    let wanted = [status(COMMIT, "dev", StatusState::Success, "version 1 serves")];
    assert!(matches!(writer.write(&wanted).await, Err(Refusal::Busy(_))));
    writer.write(&wanted).await.unwrap();
    assert_eq!(host.rows(COMMIT, "context"), ["success launchway/dev version 1 serves"]);
}

#[tokio::test]
async fn a_commit_that_is_gone_does_not_keep_others_waiting() {
    let (host, Writer { writer, folder: _folder, .. }) = start().await;
    host.shared.world().commits.retain(|commit| commit != COMMIT);
    let wanted = [status(COMMIT, "dev", StatusState::Success, "a"), status(OTHER, "dev", StatusState::Success, "b")];
    let Err(Refusal::Commit(failure)) = writer.write(&wanted).await else { panic!("it is gone") };
    assert!(failure.one_line().contains("does not have the commit 1111111"), "{failure}");
    assert_eq!(host.rows(OTHER, "context"), ["success launchway/dev b"]);
}

#[tokio::test]
async fn the_last_status_that_a_context_takes_ends_it() {
    let (host, Writer { writer, folder: _folder, .. }) = start().await;
    let row = json!({"state": "pending", "context": "launchway/dev", "description": "old"});
    host.shared.world().rows = vec![(COMMIT.to_owned(), row); PER_CONTEXT];
    let written = writer.write(&[status(COMMIT, "dev", StatusState::Success, "new")]).await;
    let Err(Refusal::Commit(failure)) = written else { panic!("{written:?}") };
    assert!(failure.one_line().contains("takes no more statuses"), "{failure}");
}

#[tokio::test]
async fn a_token_that_is_not_accepted_needs_a_person() {
    let (host, Writer { writer, folder, .. }) = start().await;
    std::fs::write(folder.path().join("token"), "another").unwrap();
    let written = writer.write(&[status(COMMIT, "dev", StatusState::Success, "new")]).await;
    let Err(Refusal::All(failure)) = written else { panic!("{written:?}") };
    assert!(failure.one_line().contains("does not accept the token") && !failure.one_line().contains("another"));
    assert_eq!(host.shared.world().strangers, 1);
    std::fs::write(folder.path().join("token"), TOKEN).unwrap();
    writer.write(&[status(COMMIT, "dev", StatusState::Success, "new")]).await.unwrap();
}

#[tokio::test]
async fn failures_come_first_where_the_limit_is_near() {
    let (host, Writer { writer, clock, folder: _folder }) = start().await;
    let many = |from: usize, state| (from..from + 50).map(move |n| status(COMMIT, &format!("s{n}"), state, "it"));
    writer.write(&many(0, StatusState::Success).collect::<Vec<_>>()).await.unwrap();
    let mut next: Vec<_> = many(50, StatusState::Success).collect();
    next.push(status(COMMIT, "broken", StatusState::Failure, "exit code 3"));
    let Err(Refusal::Busy(failure)) = writer.write(&next).await else { panic!("the limit is near") };
    assert!(failure.one_line().contains("more follow from"), "{failure}");
    assert!(host.rows(COMMIT, "context").contains(&"failure launchway/broken exit code 3".to_owned()));
    while writer.write(&next).await.is_err() {
        clock.advance(Duration::from_secs(30));
    }
    assert_eq!(host.rows(COMMIT, "context").len(), 101);
    assert_eq!(host.shared.world().limits_broken, 0);
}
