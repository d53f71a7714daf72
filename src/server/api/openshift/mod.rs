//! OpenShift's API of deployment configs: what `oc`, or a program that was written for it, asks and sends.
//!
//! What is declared stays Git's to say. So of what upstream lets clients change two things are left: a new version is asked
//! for (`instantiate`), and one that was generated, by a rollback or by the triggers, is put as it was generated. Both are
//! commands that there are anyhow. Sources: `apps.openshift.io/v1`, and OpenShift's proposal "Deployments".

mod request;
mod status;

use axum::extract::State;
use axum::http::header::WARNING;
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};

pub use request::{DeploymentConfigRollback, DeploymentRequest};
pub(in crate::server) use status::as_status;

use super::extract::{Body, Parameters, Segments};
use crate::control::commands::Command;
use crate::control::commands::generate::{Candidate, GenerateCommand, Generator};
use crate::engine::by_hand::{Generated, Images};
use crate::model::ids::Digest;
use crate::server::problem::{Answer, Problem};
use crate::server::state::{Actor, ServerState};
use crate::server::view::openshift::{Described, ROLLBACK, RollbackSpec, differences, listed};
use status::{GROUP, invalid};

/// Where OpenShift's clients ask: now, and before there were groups.
pub(in crate::server) const ROOTS: [&str; 2] = ["/apis/apps.openshift.io/v1", "/oapi/v1"];

const KIND: &str = "DeploymentConfig";
/// The most fields that a refusal names.
const MOST_FIELDS: usize = 5;

type Named = Segments<(String, String)>;

/// In which namespace something is searched for whose path names none.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct InNamespace {
    /// It; all, if absent.
    pub namespace: Option<String>,
}

/// The version of the API that was asked.
fn api_version(uri: &Uri) -> &'static str {
    if uri.path().starts_with("/apis/") { "apps.openshift.io/v1" } else { "v1" }
}

pub(in crate::server) async fn list(
    State(state): State<ServerState>,
    uri: Uri,
    Segments(namespace): Segments<String>,
) -> Answer<Response> {
    let (configs, damaged) = state.query.in_namespace(&namespace).await?;
    let mut response = Json(listed(api_version(&uri), &configs)).into_response();
    for damaged in damaged {
        let told: String = damaged.failure().one_line().chars().filter(|it| it.is_ascii() && *it != '"').collect();
        if let Ok(warning) = HeaderValue::from_str(&format!("299 - \"{told}\"")) {
            response.headers_mut().append(WARNING, warning);
        }
    }
    Ok(response)
}

pub(in crate::server) async fn get(
    State(state): State<ServerState>,
    uri: Uri,
    Segments((namespace, name)): Named,
) -> Answer<Json<Value>> {
    Ok(Json(state.query.named_in(Some(&namespace), &name).await?.shown(api_version(&uri))))
}

/// The proposal's path, which names no namespace.
pub(in crate::server) async fn get_by_id(
    State(state): State<ServerState>,
    uri: Uri,
    Segments(id): Segments<String>,
    Parameters(InNamespace { namespace }): Parameters<InNamespace>,
) -> Answer<Json<Value>> {
    Ok(Json(state.query.named_in(namespace.as_deref(), &id).await?.shown(api_version(&uri))))
}

pub(in crate::server) async fn generate(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    uri: Uri,
    Segments((namespace, name)): Named,
) -> Answer<Json<Value>> {
    let config = state.query.named_in(Some(&namespace), &name).await?;
    by_triggers(&state, &actor, &config, api_version(&uri)).await.map(Json)
}

/// The proposal's path, which names no namespace.
pub(in crate::server) async fn generate_by_id(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    uri: Uri,
    Segments(id): Segments<String>,
    Parameters(InNamespace { namespace }): Parameters<InNamespace>,
) -> Answer<Json<Value>> {
    let config = state.query.named_in(namespace.as_deref(), &id).await?;
    by_triggers(&state, &actor, &config, api_version(&uri)).await.map(Json)
}

async fn by_triggers(state: &ServerState, actor: &Actor, config: &Described, api_version: &str) -> Answer<Value> {
    let Generated { object, version, .. } = declared(state, actor, config, Images::Newest).await?;
    Ok(config.generated(api_version, &object, version, None))
}

/// What a deployment config would be with some images. That a tag leads to none is the only thing in the way of that.
async fn declared(state: &ServerState, actor: &Actor, config: &Described, images: Images) -> Answer<Generated> {
    let generated = candidate(state, actor, config, Generator::Declared(images)).await;
    let unresolved = |problem: Problem| match problem.status {
        409 => {
            let name = &config.state.key.name;
            let message = format!("cannot trigger a deployment for \"{name}\" because it contains unresolved images");
            let problem = Problem { hint: None, ..problem };
            Problem::new(StatusCode::BAD_REQUEST, message).hint(problem.detail)
        }
        _ => problem,
    };
    generated.map(|candidate| candidate.generated).map_err(unresolved)
}

async fn candidate(state: &ServerState, actor: &Actor, config: &Described, from: Generator) -> Answer<Candidate> {
    let asked = GenerateCommand { config: config.state.key.clone(), from, carry_out: None };
    let done = state.act(Command::Generate(Box::new(asked)), actor).await?;
    let nothing = || Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "nothing was generated");
    done.candidate.map(|candidate| *candidate).ok_or_else(nothing)
}

pub(in crate::server) async fn instantiate(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    uri: Uri,
    Segments((namespace, name)): Named,
    Body(request): Body<DeploymentRequest>,
) -> Answer<(StatusCode, Json<Value>)> {
    let images = request.images(&name)?;
    let config = state.query.named_in(Some(&namespace), &name).await?;
    let generated = declared(&state, &actor, &config, images).await?;
    if generated.is_paused {
        return Err(DeploymentRequest::paused(&name));
    }
    if !request.force && !generated.is_new {
        let message = format!("deployment config \"{name}\" cannot be instantiated");
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "message": message, "code": 204});
        return Ok((StatusCode::CREATED, Json(status)));
    }
    let latest = Command::Latest { config: config.state.key.clone(), images, dry_run: false };
    state.act(latest, &actor).await?;
    Ok((StatusCode::CREATED, Json(state.query.named_in(Some(&namespace), &name).await?.shown(api_version(&uri)))))
}

pub(in crate::server) async fn roll_back(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    uri: Uri,
    Segments((namespace, name)): Named,
    Body(request): Body<DeploymentConfigRollback>,
) -> Answer<(StatusCode, Json<Value>)> {
    let spec = request.spec(&name)?;
    goes_back(&state, &actor, (&namespace, &name), spec, api_version(&uri)).await
}

/// The older call, whose path names no deployment config.
pub(in crate::server) async fn roll_back_named(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    uri: Uri,
    Segments(namespace): Segments<String>,
    Body(request): Body<DeploymentConfigRollback>,
) -> Answer<(StatusCode, Json<Value>)> {
    let name = request.subject()?;
    let spec = request.spec(name)?;
    goes_back(&state, &actor, (&namespace, name), spec, api_version(&uri)).await
}

/// A deployment config as it would be once it went back. Nothing changes until it is put.
async fn goes_back(
    state: &ServerState,
    actor: &Actor,
    (namespace, name): (&str, &str),
    spec: &RollbackSpec,
    api_version: &str,
) -> Answer<(StatusCode, Json<Value>)> {
    let config = state.query.named_in(Some(namespace), name).await?;
    let rollback = spec.read(config.state.key.clone())?;
    let Candidate { generated, back_to } = candidate(state, actor, &config, Generator::Rollback(rollback))
        .await
        .map_err(|refused| in_vain(refused, name))?;
    let spec = back_to.map(|version| spec.to(version));
    let shown = config.generated(api_version, &generated.object, generated.version, spec.as_ref());
    Ok((StatusCode::CREATED, Json(shown)))
}

/// Upstream has one kind of answer to a rollback that cannot be.
fn in_vain(refused: Problem, name: &str) -> Problem {
    match refused.status {
        409 => Problem { hint: refused.hint, ..DeploymentConfigRollback::refused(name, &refused.detail) },
        _ => refused,
    }
}

pub(in crate::server) async fn put(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    uri: Uri,
    Segments((namespace, name)): Named,
    Body(wished): Body<Value>,
) -> Answer<Json<Value>> {
    replace(&state, &actor, (Some(&namespace), &name), &wished, api_version(&uri)).await
}

/// The proposal's path, which names no namespace.
pub(in crate::server) async fn put_by_id(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    uri: Uri,
    Segments(id): Segments<String>,
    Parameters(InNamespace { namespace }): Parameters<InNamespace>,
    Body(wished): Body<Value>,
) -> Answer<Json<Value>> {
    replace(&state, &actor, (namespace.as_deref(), &id), &wished, api_version(&uri)).await
}

/// Deploys what was generated, if just that is put; what is as it is stays so.
async fn replace(
    state: &ServerState,
    actor: &Actor,
    (namespace, name): (Option<&str>, &str),
    wished: &Value,
    api_version: &str,
) -> Answer<Json<Value>> {
    let config = state.query.named_in(namespace, name).await?;
    is_meant_for(&config, wished)?;
    let (from, carry_out) = match rolled_back(wished)? {
        Some(spec) => {
            let from = Generator::Rollback(spec.read(config.state.key.clone())?);
            let refused = |refused| in_vain(refused, name);
            let Candidate { generated, .. } = candidate(state, actor, &config, from.clone()).await.map_err(refused)?;
            let expected = config.generated(api_version, &generated.object, generated.version, Some(&spec));
            (from, is_same(name, &expected, wished, &generated.object.digest)?)
        }
        None => {
            let latest = wished.pointer("/status/latestVersion").and_then(Value::as_u64).unwrap_or_default();
            if latest <= u64::from(config.state.latest_version) {
                let shown = config.shown(api_version);
                is_same(name, &shown, wished, &config.state.object.digest)?;
                return Ok(Json(shown));
            }
            let Generated { object, version, .. } = declared(state, actor, &config, Images::Newest).await?;
            let expected = config.generated(api_version, &object, version, None);
            (Generator::Declared(Images::Newest), is_same(name, &expected, wished, &object.digest)?)
        }
    };
    let asked = GenerateCommand { config: config.state.key.clone(), from, carry_out: Some(carry_out) };
    state.act(Command::Generate(Box::new(asked)), actor).await?;
    Ok(Json(state.query.named_in(namespace, name).await?.shown(api_version)))
}

/// Refuses what is put in the place of something else, or of what has moved since it was read.
fn is_meant_for(config: &Described, wished: &Value) -> Answer<()> {
    let (name, namespace) = (&config.state.key.name, config.state.destination.namespace.as_str());
    let text = |pointer: &str| wished.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let bad = |message: String| Err(Problem::new(StatusCode::BAD_REQUEST, message));
    for (what, said, expected) in [
        ("kind", text("/kind"), KIND),
        ("name", text("/metadata/name"), name),
        ("namespace", text("/metadata/namespace"), namespace),
    ] {
        if !said.is_empty() && said != expected {
            return bad(format!("the {what} of the object ({said}) does not match what is at this URL ({expected})"));
        }
    }
    if !wished.get("spec").is_some_and(Value::is_object) {
        return bad(format!("this takes a {KIND} with its `spec`"));
    }
    let read_at = text("/metadata/resourceVersion");
    if read_at.is_empty() || read_at == config.record.to_string() {
        return Ok(());
    }
    let message = format!(
        "Operation cannot be fulfilled on deploymentconfigs.{GROUP} \"{name}\": the object has been modified; please apply \
         your changes to the latest version and try again"
    );
    Err(Problem::new(StatusCode::CONFLICT, message))
}

/// The rollback that something was generated by.
fn rolled_back(wished: &Value) -> Answer<Option<RollbackSpec>> {
    let annotations = wished.pointer("/metadata/annotations");
    let Some(said) = annotations.and_then(|annotations| annotations.get(ROLLBACK)) else { return Ok(None) };
    let spec = said.as_str().and_then(|said| serde_json::from_str(said).ok());
    let broken =
        || Problem::new(StatusCode::BAD_REQUEST, format!("the annotation `{ROLLBACK}` is not as it was generated"));
    spec.map(Some).ok_or_else(broken)
}

/// The digest of what was generated, if that is what is put.
fn is_same(name: &str, expected: &Value, wished: &Value, digest: &Digest) -> Answer<Digest> {
    let differ = differences(expected, wished);
    if differ.is_empty() {
        return Ok(digest.clone());
    }
    let (shown, more) = differ.split_at(differ.len().min(MOST_FIELDS));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    let why = "Forbidden: Git says what this is: change it there, and push";
    let hint = "only what was generated by a rollback or by `generatedeploymentconfigs` can be put, unchanged";
    Err(invalid(KIND, name, &format!("{}{more}", shown.join(", ")), why).hint(hint))
}

/// What Git does instead.
pub(in crate::server) async fn from_git(method: Method) -> Problem {
    let message =
        format!("the server does not allow {method} on deployment configs: Git says which there are and what they are");
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, message).hint("change their files, and push")
}
