//! Events and sequences in Keptn's shapes, so that its clients and executors work as they are.

pub mod executors;
pub mod projects;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::extract::{Body, Parameters, Segments};
use crate::clock::{Clock, Ids, SystemClock, Ulids};
use crate::control::commands::{Command, Done, SequenceCommand};
use crate::engine::sequence::incoming::LOGGED;
use crate::model::cloud_event::{CloudEvent, Meaning, SPEC_VERSION};
use crate::model::ids::{RunId, ServiceKey};
use crate::server::problem::{Answer, Problem};
use crate::server::query::{EventSelection, SequenceSelection};
use crate::server::state::{Actor, ServerState};
use crate::server::view::{EventPage, SequencePage};

/// What `content-type` says of a whole event.
const STRUCTURED: &str = "application/cloudevents+json";

/// What became of an event.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventAnswer {
    /// What it has in common with all that follows from it.
    pub keptn_context: String,
    /// Why it has no effect; absent if it has one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ignored: String,
    /// Which deliveries it asks for and nobody starts, with why, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// The runs that it starts, or that hear of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<String>,
}

/// What a person says of what waits for approval.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRequest {
    /// Of which project.
    pub project: String,
    /// In which stage.
    pub stage: String,
    /// Of which service.
    pub service: String,
    /// Whether it goes on.
    pub approve: bool,
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// The run that is meant, where more than one waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The id of the event that asked, `awaitsApproval` of a run: whatever else it asks about by now is left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// The beginning of the revision that is meant: whatever else waits is left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

/// What is to end.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AbortRequest {
    /// Of which project.
    pub project: String,
    /// In which stage.
    pub stage: String,
    /// Of which service.
    pub service: String,
}

/// What is to begin no further task, or may again.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseRequest {
    /// Of which project.
    pub project: String,
    /// In which stage something of it is under way: its delivery is meant, in all stages.
    pub stage: String,
    /// Of which service; if none is named, all that is in the stage, or comes to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Whether it is paused.
    pub paused: bool,
}

/// What is run again.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RerunRequest {
    /// The run.
    pub run: String,
    /// From its beginning, in place of the task that failed.
    #[serde(default)]
    pub from_start: bool,
}

/// What is to become of a context.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ControlRequest {
    /// `abort`, `pause` or `resume`.
    pub state: String,
    /// Only in this stage.
    #[serde(default)]
    pub stage: Option<String>,
}

/// Takes an event. Keptn gives every event an id of its own; where one has an id here, sending it again does no harm.
pub(in crate::server) async fn tell(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer<Json<EventAnswer>> {
    let mut event = event(&headers, &body)?;
    // It need not even say of which project it is.
    if event.meaning() == Meaning::Log {
        let ignored = LOGGED.to_owned();
        let keptn_context = event.shkeptncontext.unwrap_or_default();
        return Ok(Json(EventAnswer { keptn_context, ignored, refused: Vec::new(), runs: Vec::new() }));
    }
    if event.id.is_empty() {
        event.id = Ulids::default().next(SystemClock.now());
    }
    tell_event(&state, &actor, event).await
}

async fn tell_event(state: &ServerState, actor: &Actor, event: CloudEvent) -> Answer<Json<EventAnswer>> {
    let told = Command::Sequence(SequenceCommand::Tell(Box::new(event)));
    let done = state.act(told, actor).await.map_err(Problem::into_bad_request)?;
    let runs = done.runs.iter().map(ToString::to_string).collect();
    Ok(Json(EventAnswer { keptn_context: done.context, ignored: done.ignored, refused: done.refused, runs }))
}

/// An event: whole in the body, or with its attributes in headers. Source: the HTTP binding of CloudEvents 1.0.
fn event(headers: &HeaderMap, body: &[u8]) -> Answer<CloudEvent> {
    let wrong = |error: serde_json::Error| {
        Problem::new(StatusCode::BAD_REQUEST, format!("the body is no event: {error}"))
            .hint("send a CloudEvent 1.0 as JSON, or its data with the rest in `ce-…` headers")
    };
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let content = text(header::CONTENT_TYPE.as_str()).unwrap_or_default();
    let event = match text("ce-type") {
        Some(kind) if !content.starts_with(STRUCTURED) => {
            let data: Value = serde_json::from_slice(body).map_err(wrong)?;
            let id = text("ce-id").unwrap_or_default();
            CloudEvent {
                source: text("ce-source").unwrap_or_default(),
                specversion: text("ce-specversion").unwrap_or_default(),
                time: text("ce-time"),
                shkeptncontext: text("ce-shkeptncontext"),
                triggeredid: text("ce-triggeredid"),
                gitcommitid: text("ce-gitcommitid"),
                ..CloudEvent::of(kind, id, data)
            }
        }
        _ => serde_json::from_slice(body).map_err(wrong)?,
    };
    if event.specversion != SPEC_VERSION {
        let detail = format!("`{}` is no version of CloudEvents that is read here", event.specversion);
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail).hint("`specversion` is `1.0`"));
    }
    Ok(event)
}

pub(in crate::server) async fn events(
    State(state): State<ServerState>,
    Parameters(selection): Parameters<EventSelection>,
) -> Answer<Json<EventPage>> {
    state.query.cloud_events(&selection).await.map(Json)
}

pub(in crate::server) async fn open_tasks(
    State(state): State<ServerState>,
    Segments(kind): Segments<String>,
    Parameters(selection): Parameters<EventSelection>,
) -> Answer<Json<EventPage>> {
    state.query.open_tasks(&kind, &selection).await.map(Json)
}

pub(in crate::server) async fn sequences(
    State(state): State<ServerState>,
    Segments(project): Segments<String>,
    Parameters(selection): Parameters<SequenceSelection>,
) -> Answer<Json<SequencePage>> {
    state.query.sequences(&project, &selection).await.map(Json)
}

pub(in crate::server) async fn control(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    Segments((project, context)): Segments<(String, String)>,
    request: Answer<Body<ControlRequest>>,
) -> Answer<Json<Done>> {
    let Body(request) = request.map_err(Problem::into_bad_request)?;
    let paused = match request.state.as_str() {
        "abort" => None,
        "pause" => Some(true),
        "resume" => Some(false),
        other => {
            let detail = format!("`{other}` cannot be done to a sequence");
            return Err(Problem::new(StatusCode::BAD_REQUEST, detail).hint("`abort`, `pause` and `resume` can"));
        }
    };
    let stage = request.stage.filter(|stage| !stage.is_empty());
    let runs = state.query.open_runs_of(&project, &context, stage.as_deref()).await?;
    if let Some(stage) = stage.as_deref().filter(|_| runs.is_empty()) {
        state.query.keptn_project(&project).await?.into_stage(stage)?;
    }
    let told = match paused {
        None => SequenceCommand::AbortRuns { runs },
        Some(paused) => {
            let (project, stage) = (project.as_str().into(), stage.as_deref().map(Into::into));
            SequenceCommand::Pause { project, context, stage, runs, paused }
        }
    };
    state.act(Command::Sequence(told), &actor).await.map(Json)
}

pub(in crate::server) async fn pause(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    Body(request): Body<PauseRequest>,
) -> Answer<Json<Done>> {
    let PauseRequest { project, stage, service, paused } = request;
    let Some(service) = service else {
        let (project, stage) = (project.as_str().into(), stage.as_str().into());
        let told = SequenceCommand::PauseStage { project, stage, paused };
        return state.act(Command::Sequence(told), &actor).await.map(Json);
    };
    let context = state.query.open_context_of(&key(&project, &stage, &service)).await?;
    let runs = state.query.open_runs_of(&project, &context, None).await?;
    let told = SequenceCommand::Pause { project: project.as_str().into(), context, stage: None, runs, paused };
    state.act(Command::Sequence(told), &actor).await.map(Json)
}

pub(in crate::server) async fn decide(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    Body(request): Body<ApprovalRequest>,
) -> Answer<Json<Done>> {
    let ApprovalRequest { project, stage, service, approve, reason, run, asked, revision } = request;
    let (service, run) = (key(&project, &stage, &service), run.map(RunId::new));
    let told = SequenceCommand::Decide { service, approve, reason, run, asked, revision };
    state.act(Command::Sequence(told), &actor).await.map(Json)
}

pub(in crate::server) async fn abort(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    Body(request): Body<AbortRequest>,
) -> Answer<Json<Done>> {
    let AbortRequest { project, stage, service } = request;
    let service = key(&project, &stage, &service);
    state.act(Command::Sequence(SequenceCommand::Abort { service }), &actor).await.map(Json)
}

pub(in crate::server) async fn rerun(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    Body(request): Body<RerunRequest>,
) -> Answer<Json<Done>> {
    let told = SequenceCommand::Rerun { run: RunId::new(request.run), from_start: request.from_start };
    state.act(Command::Sequence(told), &actor).await.map(Json)
}

fn key(project: &str, stage: &str, service: &str) -> ServiceKey {
    ServiceKey { project: project.into(), stage: stage.into(), service: service.into() }
}
