//! Projects, stages and services in Keptn's shapes.

use axum::extract::State;
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{EventAnswer, tell_event};
use crate::clock::{Clock, Ids, SystemClock, Ulids};
use crate::model::cloud_event::{CloudEvent, PREFIX};
use crate::server::api::extract::{Body, Segments};
use crate::server::problem::Answer;
use crate::server::state::{Actor, ServerState};
use crate::server::view::{ProjectPage, ProjectView, ServicePage, StagePage};

/// The source of events that come by calls in place of events.
const SOURCE: &str = "keptn-api";

/// What an evaluation is about.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EvaluationRequest {
    /// From when.
    pub start: String,
    /// Until when.
    pub end: String,
    /// How long, where one of these is left out.
    pub timeframe: String,
    /// Labels.
    pub labels: Value,
    /// On which revision.
    pub gitcommitid: String,
}

pub(in crate::server) async fn projects(State(state): State<ServerState>) -> Answer<Json<ProjectPage>> {
    state.query.keptn_projects().await.map(Json)
}

pub(in crate::server) async fn project(
    State(state): State<ServerState>,
    Segments(project): Segments<String>,
) -> Answer<Json<ProjectView>> {
    state.query.keptn_project(&project).await.map(Json)
}

pub(in crate::server) async fn stages(
    State(state): State<ServerState>,
    Segments(project): Segments<String>,
) -> Answer<Json<StagePage>> {
    Ok(Json(StagePage::of(state.query.keptn_project(&project).await?.stages)))
}

pub(in crate::server) async fn stage(
    State(state): State<ServerState>,
    Segments((project, stage)): Segments<(String, String)>,
) -> Answer<Json<Value>> {
    let stage = state.query.keptn_project(&project).await?.into_stage(&stage)?;
    Ok(Json(json!(stage)))
}

pub(in crate::server) async fn services(
    State(state): State<ServerState>,
    Segments((project, stage)): Segments<(String, String)>,
) -> Answer<Json<ServicePage>> {
    Ok(Json(ServicePage::of(state.query.keptn_project(&project).await?.into_stage(&stage)?.services)))
}

pub(in crate::server) async fn service(
    State(state): State<ServerState>,
    Segments((project, stage, service)): Segments<(String, String, String)>,
) -> Answer<Json<Value>> {
    let stage = state.query.keptn_project(&project).await?.into_stage(&stage)?;
    Ok(Json(json!(stage.into_service(&service)?)))
}

pub(in crate::server) async fn evaluate(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    Segments((project, stage, service)): Segments<(String, String, String)>,
    Body(request): Body<EvaluationRequest>,
) -> Answer<Json<EventAnswer>> {
    let EvaluationRequest { start, end, timeframe, labels, gitcommitid } = request;
    let mut evaluation = json!({});
    for (key, value) in [("start", start), ("end", end), ("timeframe", timeframe)] {
        if !value.is_empty() {
            evaluation[key] = Value::String(value);
        }
    }
    let mut data = json!({ "project": project, "stage": stage, "service": service, "evaluation": evaluation });
    if labels.is_object() {
        data["labels"] = labels;
    }
    let id = Ulids::default().next(SystemClock.now());
    let event = CloudEvent::of(format!("{PREFIX}{stage}.evaluation.triggered"), id, data);
    let gitcommitid = Some(gitcommitid).filter(|commit| !commit.is_empty());
    tell_event(&state, &actor, CloudEvent { source: SOURCE.to_owned(), gitcommitid, ..event }).await
}
