//! The API's description, at `/api/v1/openapi.json`.

use std::sync::LazyLock;

use axum::Json;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::act::{
    DeliveryRequest, HoldRequest, LatestRequest, PruneRequest, ReleaseRequest, ScaleRequest, SyncRequest, UndoRequest,
};
use super::exec::ExecRequest;
use super::keptn::{AbortRequest, ApprovalRequest, EventAnswer, PauseRequest, RerunRequest};
use super::openshift::{DeploymentConfigRollback, DeploymentRequest};
use super::rollback::RollbacksRequest;
use crate::control::commands::Done;
use crate::server::problem::Problem;
use crate::server::view::{
    ConfigDetail, ConfigView, EventPage, EventView, Explanation, HistoryRow, HoldView, ImageTagView, List, PlanView,
    PodView, RepositoryView, RevisionView, RunDetail, RunView, ServiceView, SinkView, VersionDetail, WebhookCallView,
};

/// A schema by its type.
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// One thing that the API answers.
struct Operation {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    request: Option<SchemaOf>,
    answer: SchemaOf,
}

impl Operation {
    /// Whether it is in the shape of another API, with paths, answers and errors of that one.
    fn is_of_openshift(&self) -> bool {
        self.path.starts_with("/apis/")
    }
}

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

const fn get(path: &'static str, summary: &'static str, answer: SchemaOf) -> Operation {
    Operation { method: "get", path, summary, request: None, answer }
}

const fn post(path: &'static str, summary: &'static str, request: Option<SchemaOf>, answer: SchemaOf) -> Operation {
    Operation { method: "post", path, summary, request, answer }
}

/// Where OpenShift's clients ask.
macro_rules! of_openshift {
    ($path:literal) => {
        concat!("/apis/apps.openshift.io/v1/namespaces/{namespace}", $path)
    };
}

const OPERATIONS: [Operation; 51] = [
    get("/repositories", "The watched repositories", schema::<List<RepositoryView>>),
    get("/repositories/{name}", "A watched repository", schema::<RepositoryView>),
    get("/repositories/{name}/deliveries", "Its last webhooks, newest first", schema::<List<WebhookCallView>>),
    get("/sinks", "Who is told what happens, and whether they take it", schema::<List<SinkView>>),
    get("/revisions", "Revisions, newest first", schema::<List<RevisionView>>),
    get("/revisions/{repository}/{commit}", "A revision with what is written on it", schema::<RevisionView>),
    get("/plans/{id}", "A plan", schema::<PlanView>),
    get("/deployments", "Deployment configs", schema::<List<ConfigView>>),
    get("/deployments/{project}/{stage}/{name}", "A deployment config", schema::<ConfigDetail>),
    get("/deployments/{project}/{stage}/{name}/history", "Its versions, oldest first", schema::<List<HistoryRow>>),
    get(
        "/deployments/{project}/{stage}/{name}/history/{version}",
        "A version, with what its pods look like",
        schema::<VersionDetail>,
    ),
    get("/runs", "Runs, newest first", schema::<List<RunView>>),
    get("/runs/{id}", "A run with its steps", schema::<RunDetail>),
    get("/events", "What happened to runs, oldest first", schema::<List<EventView>>),
    get("/watch", "The same as server-sent events, as they happen", schema::<EventView>),
    get("/event", "CloudEvents that were sent and received, newest first", schema::<EventPage>),
    post("/event", "Take a CloudEvent", Some(schema::<serde_json::Value>), schema::<EventAnswer>),
    post(
        "/approvals",
        "Let a sequence go on that waits for approval, or end it",
        Some(schema::<ApprovalRequest>),
        schema::<Done>,
    ),
    post("/reruns", "Run a sequence again that has failed", Some(schema::<RerunRequest>), schema::<Done>),
    post("/pauses", "Have a delivery begin no further task, or let it", Some(schema::<PauseRequest>), schema::<Done>),
    post("/aborts", "End what is under way for a service", Some(schema::<AbortRequest>), schema::<Done>),
    get("/holds", "Why something may not change", schema::<List<HoldView>>),
    get("/imagestreams", "Tags of image streams, and what they lead to", schema::<List<ImageTagView>>),
    get("/services", "Services with their addresses", schema::<List<ServiceView>>),
    get("/services/{project}/{stage}/{service}/why", "Why a service is not what was pushed", schema::<Explanation>),
    get("/pods", "Pods", schema::<List<PodView>>),
    get("/logs", "What pods printed, as text; with `follow=true` also what they print from now on", schema::<String>),
    get("/openapi.json", "This description", schema::<Value>),
    post("/sync", "Sync a repository now", Some(schema::<SyncRequest>), schema::<Done>),
    post("/prune", "Delete what nothing needs any more", Some(schema::<PruneRequest>), schema::<Done>),
    post("/repositories/{name}/down", "Stop what a repository runs", None, schema::<Done>),
    post(
        "/deployments/{project}/{stage}/{name}/latest",
        "Deploy what is declared now, or say what that would do",
        Some(schema::<LatestRequest>),
        schema::<Done>,
    ),
    post("/deployments/{project}/{stage}/{name}/cancel", "End the deployment under way", None, schema::<Done>),
    post("/deployments/{project}/{stage}/{name}/retry", "Attempt the failed version again", None, schema::<Done>),
    post("/deployments/{project}/{stage}/{name}/pause", "Let nothing new start until resumed", None, schema::<Done>),
    post("/deployments/{project}/{stage}/{name}/resume", "Let go on what waits or is paused", None, schema::<Done>),
    post("/deployments/{project}/{stage}/{name}/promote", "Give a version everything", None, schema::<Done>),
    post(
        "/deployments/{project}/{stage}/{name}/undo",
        "Deploy what an earlier version was, or say what that would do",
        Some(schema::<UndoRequest>),
        schema::<Done>,
    ),
    post(
        "/deployments/{project}/{stage}/{name}/scale",
        "Change the number of pods",
        Some(schema::<ScaleRequest>),
        schema::<Done>,
    ),
    post(
        "/deployments/{project}/{stage}/{name}/exec",
        "Run a command beside the processes of a pod; the connection is upgraded to `launchway-exec.v1`",
        Some(schema::<ExecRequest>),
        schema::<Value>,
    ),
    post(
        "/rollbacks",
        "Deploy what deployment configs were before, all or none of them, or say what that would do",
        Some(schema::<RollbacksRequest>),
        schema::<Done>,
    ),
    post("/deliveries", "Start a stage's delivery sequence", Some(schema::<DeliveryRequest>), schema::<Done>),
    post("/holds", "Let nothing change until released", Some(schema::<HoldRequest>), schema::<Done>),
    post("/releases", "End holds, or say what that would start", Some(schema::<ReleaseRequest>), schema::<Done>),
    Operation { method: "delete", path: "/holds/{id}", summary: "End a hold", request: None, answer: schema::<Done> },
    get(of_openshift!("/deploymentconfigs"), "Deployment configs in OpenShift's shape", schema::<Value>),
    get(of_openshift!("/deploymentconfigs/{name}"), "A deployment config in OpenShift's shape", schema::<Value>),
    get(
        of_openshift!("/generatedeploymentconfigs/{name}"),
        "What its triggers would bring: a deployment config to put",
        schema::<Value>,
    ),
    Operation {
        method: "put",
        path: of_openshift!("/deploymentconfigs/{name}"),
        summary: "Deploy what was generated, as it was generated",
        request: Some(schema::<Value>),
        answer: schema::<Value>,
    },
    post(
        of_openshift!("/deploymentconfigs/{name}/instantiate"),
        "Ask for a new version",
        Some(schema::<DeploymentRequest>),
        schema::<Value>,
    ),
    post(
        of_openshift!("/deploymentconfigs/{name}/rollback"),
        "What it would be once it went back: a deployment config to put",
        Some(schema::<DeploymentConfigRollback>),
        schema::<Value>,
    ),
];

static DOCUMENT: LazyLock<Value> = LazyLock::new(build);

/// The description, in OpenAPI 3.0.
pub(in crate::server) async fn document() -> Json<&'static Value> {
    Json(&DOCUMENT)
}

fn build() -> Value {
    let mut generator = SchemaSettings::openapi3().into_generator();
    let problem = generator.subschema_for::<Problem>();
    let mut paths: Map<String, Value> = Map::new();
    for operation in &OPERATIONS {
        let path =
            if operation.is_of_openshift() { operation.path.to_owned() } else { format!("/api/v1{}", operation.path) };
        let path = paths.entry(path).or_insert_with(|| json!({}));
        path[operation.method] = describe(operation, &problem, &mut generator);
    }
    json!({
        "openapi": "3.0.4",
        "info": {"title": "launchway", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    })
}

fn describe(operation: &Operation, problem: &Schema, generator: &mut SchemaGenerator) -> Value {
    let content = |schema: Schema| json!({"application/json": {"schema": schema}});
    let (done, wrong) = match operation.is_of_openshift() {
        true if operation.method == "post" => ("201", json!({"application/json": {"schema": {"title": "Status"}}})),
        true => ("200", json!({"application/json": {"schema": {"title": "Status"}}})),
        false => ("200", json!({"application/problem+json": {"schema": problem}})),
    };
    let mut described = json!({
        "summary": operation.summary,
        "parameters": parameters(operation.path),
        "responses": {
            done: {"description": operation.summary, "content": content((operation.answer)(generator))},
            "default": {"description": "What is wrong, and what to do", "content": wrong},
        },
    });
    if let Some(request) = operation.request {
        described["requestBody"] = json!({"required": true, "content": content(request(generator))});
    }
    described
}

/// The names between braces of a path.
fn parameters(path: &str) -> Vec<Value> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names.map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_leads_somewhere() {
        let text = build().to_string();
        let names = text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next());
        let document = build();
        for name in names {
            assert!(document["components"]["schemas"].get(name).is_some(), "{name}");
        }
    }

    #[test]
    fn every_operation_is_described_once() {
        let document = build();
        let paths = document["paths"].as_object().expect("paths");
        let described: usize = paths.values().filter_map(Value::as_object).map(Map::len).sum();
        assert_eq!(described, OPERATIONS.len());
    }
}
