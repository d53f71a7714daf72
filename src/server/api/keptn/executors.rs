//! The registration of executors, as Keptn's SDK wants it: it says which events it wants to hear of, and asks every few seconds
//! whether that still holds.
//!
//! Nothing is kept of it: the id of a registration carries what was registered, so it is good for ever, whichever daemon is asked.

use axum::Json;
use axum::http::{StatusCode, Uri};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::server::api::extract::Segments;
use crate::server::problem::{Answer, Problem};

/// The most bytes of what an executor registers.
const LARGEST: usize = 4096;

/// An executor. Source: `models.Integration` of Keptn's `go-utils`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Integration {
    /// Given when it is registered.
    pub id: String,
    /// What it calls itself.
    pub name: String,
    /// Whatever it says of itself.
    pub metadata: Map<String, Value>,
    /// What it wants to hear of.
    #[serde(deserialize_with = "or_none")]
    pub subscriptions: Vec<Subscription>,
}

/// What an executor wants to hear of.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Subscription {
    /// Unique in its registration.
    pub id: String,
    /// The type of events.
    pub event: String,
    /// Of which projects, stages and services; the executor itself sees to that.
    pub filter: Filter,
}

/// Of what events are heard; nothing means all.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Filter {
    /// Of these projects.
    #[serde(deserialize_with = "or_none")]
    pub projects: Vec<String>,
    /// In these stages.
    #[serde(deserialize_with = "or_none")]
    pub stages: Vec<String>,
    /// Of these services.
    #[serde(deserialize_with = "or_none")]
    pub services: Vec<String>,
}

/// The id of what was registered.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Registered {
    /// It.
    pub id: String,
}

/// Go writes an empty list as `null`.
fn or_none<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

pub(in crate::server) async fn register(Json(asked): Json<Integration>) -> Answer<Json<Registered>> {
    let kept = Integration { id: String::new(), metadata: Map::new(), ..asked };
    let text = serde_json::to_vec(&kept).unwrap_or_default();
    if text.len() > LARGEST {
        let detail = format!("a registration has at most {LARGEST} bytes, not {}", text.len());
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail).hint("subscribe to fewer events"));
    }
    Ok(Json(Registered { id: BASE64.encode(text) }))
}

pub(in crate::server) async fn ping(Segments(id): Segments<String>) -> Answer<Json<Integration>> {
    let unknown = || Problem::not_found("there is no such registration").hint("register again");
    let text = BASE64.decode(&id).ok().ok_or_else(unknown)?;
    let mut known: Integration = serde_json::from_slice(&text).ok().ok_or_else(unknown)?;
    for (place, subscription) in known.subscriptions.iter_mut().enumerate() {
        subscription.id = format!("{place}-{}", subscription.event);
    }
    Ok(Json(Integration { id, ..known }))
}

/// Nothing is kept, so nothing has to go.
pub(in crate::server) async fn forget() -> Json<Value> {
    Json(json!({}))
}

/// What executors log is theirs to keep.
pub(in crate::server) async fn log() -> Json<Value> {
    Json(json!({}))
}

/// Whoever gets here may act.
pub(in crate::server) async fn auth() -> Json<Value> {
    Json(json!({}))
}

pub(in crate::server) async fn metadata() -> Json<Value> {
    Json(json!({
        "automaticprovisioning": false,
        "bridgeversion": "",
        "keptnlabel": "launchway",
        "keptnversion": env!("CARGO_PKG_VERSION"),
        "namespace": "",
        "shipyardversion": "spec.keptn.sh/0.2.4",
    }))
}

/// What Keptn's clients change over its API is changed in Git here.
pub(in crate::server) async fn from_git(uri: Uri) -> Problem {
    let detail = format!("`{}` is not changed over the API: projects come from Git", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail).hint("push to the repository that declares the project")
}
