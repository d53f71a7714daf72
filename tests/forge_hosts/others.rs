//! Bitbucket Cloud, Bitbucket Data Center and Azure DevOps: a status of the same key takes the place of what was there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use launchway::forge::address::{ForgeKind, RepositoryAddress};
use launchway::forge::{Refusal, azure, bitbucket};
use launchway::model::commit_status::{CommitStatus, StatusState};
use serde_json::{Value, json};

use crate::host::{Fault, Host, Shared, paged};
use crate::{COMMIT, OTHER, TOKEN, Writer, clock, settings, status};

const BEARER: &str = concat!("Bearer ", "d8a1c2e3f4051627384950617283940516273849");
/// The base64 of a colon and the token.
const BASIC: &str = "Basic OmQ4YTFjMmUzZjQwNTE2MjczODQ5NTA2MTcyODM5NDA1MTYyNzM4NDk=";

async fn start(kind: ForgeKind) -> (Host, Writer) {
    let (clock, folder) = (clock(), tempfile::tempdir().unwrap());
    let (token, path, routes): (_, _, fn(Shared) -> Router) = match kind {
        ForgeKind::Azure => (BASIC, "acme/web/_git/shop", azure_routes),
        ForgeKind::BitbucketDataCenter => (BEARER, "scm/ACME/shop.git", data_center_routes),
        _ => (BEARER, "acme/shop.git", cloud_routes),
    };
    let host = Host::start(Arc::clone(&clock), token, "authorization", routes).await;
    let address = RepositoryAddress::on(kind, &format!("http://{}/{path}", host.address), None).unwrap();
    let (settings, time) = (settings(address, &folder), Arc::clone(&clock) as _);
    let writer = match kind {
        ForgeKind::Azure => azure::writer(settings, time).await,
        ForgeKind::BitbucketDataCenter => bitbucket::data_center(settings, time).await,
        _ => bitbucket::cloud(settings, time).await,
    };
    (host, Writer { writer: writer.unwrap(), clock, folder })
}

fn cloud_routes(shared: Shared) -> Router {
    Router::new()
        .route("/2.0/repositories/acme/shop/commit/{sha}/statuses/build", post(create))
        .route("/2.0/repositories/acme/shop/commit/{sha}/statuses", get(values))
        .with_state(shared)
}

fn data_center_routes(shared: Shared) -> Router {
    Router::new()
        .route("/rest/api/latest/projects/ACME/repos/shop/commits/{sha}/builds", post(create))
        .route("/rest/build-status/1.0/commits/{sha}", get(values))
        .with_state(shared)
}

fn azure_routes(shared: Shared) -> Router {
    Router::new()
        .route("/acme/web/_apis/git/repositories/shop/commits/{sha}/statuses", post(create).get(value))
        .with_state(shared)
}

/// The key of a status in either's words.
fn key(row: &Value) -> Value {
    if row["key"].is_null() { row["context"].clone() } else { row["key"].clone() }
}

fn is_good(body: &Value) -> bool {
    let length = |field: &str| body[field].as_str().map_or(0, str::len);
    let is_bitbucket =
        (1..=40).contains(&length("key")) && body["url"].as_str().is_some_and(|url| url.starts_with("http"));
    let is_azure = body["context"]["genre"] == "launchway" && body["context"]["name"].is_string();
    (is_bitbucket || is_azure) && length("description") <= 255
}

async fn create(State(shared): State<Shared>, Path(sha): Path<String>, Json(body): Json<Value>) -> Response {
    let mut world = shared.world();
    let fault = world.faults.pop_front();
    let gone = json!({
        "error": {"message": "Commit not found"},
        "errors": [{"exceptionName": "com.atlassian.bitbucket.commit.NoSuchCommitException"}],
        "message": "TF401175: The version descriptor could not be resolved",
    });
    match fault {
        Some(Fault::Status(status)) => StatusCode::from_u16(status).unwrap().into_response(),
        _ if !world.commits.contains(&sha) => (StatusCode::NOT_FOUND, Json(gone)).into_response(),
        _ if !is_good(&body) => StatusCode::BAD_REQUEST.into_response(),
        fault => {
            world.rows.push((sha, body));
            let lost = matches!(fault, Some(Fault::Lost));
            if lost {
                StatusCode::BAD_GATEWAY.into_response()
            } else {
                (StatusCode::CREATED, Json(json!({}))).into_response()
            }
        }
    }
}

fn latest(shared: &Shared, sha: &str) -> Vec<Value> {
    let mut latest: Vec<Value> = Vec::new();
    for (_, row) in shared.world().rows.iter().filter(|(commit, _)| commit == sha) {
        latest.retain(|seen| key(seen) != key(row));
        latest.push(row.clone());
    }
    latest
}

async fn values(
    State(shared): State<Shared>,
    Path(sha): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let is_cloud = query.contains_key("pagelen");
    let kind = if is_cloud { ForgeKind::Bitbucket } else { ForgeKind::BitbucketDataCenter };
    let most = shared.world().most;
    paged(kind, most, &query, &latest(&shared, &sha))
}

async fn value(State(shared): State<Shared>, Path(sha): Path<String>) -> Json<Value> {
    Json(json!({"value": latest(&shared, &sha)}))
}

const KINDS: [ForgeKind; 3] = [ForgeKind::Bitbucket, ForgeKind::BitbucketDataCenter, ForgeKind::Azure];

fn many() -> Vec<CommitStatus> {
    let stage = |number: usize| format!("a-stage-with-quite-a-long-name/service-{number}/migrate");
    (0..120).map(|number| status(COMMIT, &stage(number), StatusState::Success, "it is done")).collect()
}

#[tokio::test]
async fn each_context_is_written_once() {
    for (kind, most) in KINDS.into_iter().flat_map(|kind| [(kind, 100), (kind, 25)]) {
        let (host, Writer { writer, folder: _folder, .. }) = start(kind).await;
        host.shared.world().most = most;
        for _ in 0..2 {
            writer.write(&many()).await.unwrap();
        }
        let world = host.shared.world();
        let keys: BTreeSet<String> = world.rows.iter().map(|(_, row)| key(row).to_string()).collect();
        assert_eq!((world.rows.len(), keys.len()), (120, 120), "{kind:?}");
    }
}

#[tokio::test]
async fn failures_of_the_host_are_borne() {
    for kind in KINDS {
        let (host, Writer { writer, folder, .. }) = start(kind).await;
        let wanted = [status(COMMIT, "dev", StatusState::Failure, "exit code 3")];
        host.fail_next([Fault::Lost, Fault::Status(503)]);
        assert!(matches!(writer.write(&wanted).await, Err(Refusal::Busy(_))), "{kind:?}");
        writer.write(&wanted).await.unwrap();
        assert_eq!(host.shared.world().rows.len(), 1, "{kind:?}");
        host.shared.world().faults.clear();
        host.shared.world().commits.retain(|commit| commit != COMMIT);
        let both =
            [status(COMMIT, "prod", StatusState::Success, "a"), status(OTHER, "prod", StatusState::Success, "b")];
        assert!(matches!(writer.write(&both).await, Err(Refusal::Commit(_))), "{kind:?}");
        assert_eq!(host.shared.world().rows.len(), 2, "{kind:?}");
        std::fs::write(folder.path().join("token"), "another").unwrap();
        let Err(Refusal::All(failure)) = writer.write(&wanted).await else { panic!("{kind:?}") };
        assert!(!failure.one_line().contains(TOKEN) && !failure.one_line().contains("another"));
    }
}
