//! The whole of what the server answers, on one screen.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::Response;
use axum::routing::{delete, get, post, put};
use axum::{Extension, Router};
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::timeout::TimeoutLayer;

use super::access::Need;
use super::api::keptn::{executors, projects};
use super::api::{act, deployer, exec, keptn, openapi, openshift, output, read, rollback};
use super::events;
use super::origin::Origin;
use super::page;
use super::problem::{Answer, Problem, worded};
use super::state::{ServerState, admit, guard};
use crate::executor::deployer_tokens::DeployerTokens;
use crate::telemetry::METRICS_CONTENT_TYPE;

/// The most bytes that a request of the API may have.
const LARGEST_BODY: usize = 1 << 20;
/// How long an answer may take to begin.
const LONGEST_REQUEST: Duration = Duration::from_secs(60);
/// Pages are plain: nothing is loaded from elsewhere, nothing runs in the browser.
const CONTENT_POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// How Keptn's clients have a service evaluated.
const EVALUATION: &str = "/api/controlPlane/v1/project/{project}/stage/{stage}/service/{service}/evaluation";

/// Everything but webhooks and metrics.
pub fn router(state: ServerState) -> Router {
    let reading = reading().route_layer(from_fn_with_state(state.needs(Need::Read), guard));
    let acting = acting().route_layer(from_fn_with_state(state.needs(Need::Operate), guard));
    let approvals = post(page::decide).route_layer(from_fn_with_state(state.needs(Need::Submit), guard));
    let follow = get(read::revision).route_layer(from_fn_with_state(state.needs(Need::Follow), guard));
    let sync = post(act::sync).route_layer(from_fn_with_state(state.needs(Need::Sync), guard));
    let all = reading
        .merge(acting)
        .merge(of_openshift(&state))
        .route("/api/v1/revisions/{repository}/{commit}", follow)
        .route("/api/v1/sync", sync)
        .route("/approvals", approvals)
        .route("/style.css", get(page::style))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .fallback(nowhere)
        .method_not_allowed_fallback(wrong_method);
    bounded(all).with_state(state)
}

/// What deployers of the users' own may ask, each of its deployment alone, and nothing else.
pub fn deployers(state: ServerState, tokens: DeployerTokens) -> Router {
    let guard = deployer::Guard { state: state.clone(), tokens };
    let all = Router::new()
        .route("/api/v1/deployment", get(deployer::record))
        .route("/api/v1/deployment/scale", post(deployer::scale))
        .route("/api/v1/deployment/rollout", post(deployer::rollout))
        .route_layer(from_fn_with_state(guard, deployer::guard))
        .fallback(nowhere)
        .method_not_allowed_fallback(wrong_method);
    bounded(all).with_state(state)
}

fn reading() -> Router<ServerState> {
    Router::new()
        .route("/", get(page::overview))
        .route("/runs/{*id}", get(page::run))
        .route("/revisions/{repository}/{commit}", get(page::revision))
        .route("/api/v1/repositories", get(read::repositories))
        .route("/api/v1/repositories/{name}", get(read::repository))
        .route("/api/v1/repositories/{name}/deliveries", get(read::deliveries))
        .route("/api/v1/sinks", get(read::sinks))
        .route("/api/v1/revisions", get(read::revisions))
        .route("/api/v1/plans/{id}", get(read::plan))
        .route("/api/v1/deployments", get(read::deployments))
        .route("/api/v1/deployments/{project}/{stage}/{name}", get(read::deployment))
        .route("/api/v1/deployments/{project}/{stage}/{name}/history", get(read::history))
        .route("/api/v1/deployments/{project}/{stage}/{name}/history/{version}", get(read::version))
        .route("/api/v1/runs", get(read::runs))
        .route("/api/v1/runs/{*id}", get(read::run))
        .route("/api/v1/events", get(read::events))
        .route("/api/v1/holds", get(read::holds))
        .route("/api/v1/imagestreams", get(read::image_streams))
        .route("/api/v1/services", get(read::services))
        .route("/api/v1/services/{project}/{stage}/{service}/why", get(read::why))
        .route("/api/v1/pods", get(read::pods))
        .route("/api/v1/logs", get(output::logs))
        .route("/api/v1/watch", get(events::watch))
        .route("/api/v1/event", get(keptn::events))
        .route("/api/mongodb-datastore/event", get(keptn::events))
        .route("/api/controlPlane/v1/event/triggered/{kind}", get(keptn::open_tasks))
        .route("/api/controlPlane/v1/sequence/{project}", get(keptn::sequences))
        .route("/api/controlPlane/v1/project", get(projects::projects))
        .route("/api/controlPlane/v1/project/{project}", get(projects::project))
        .route("/api/controlPlane/v1/project/{project}/stage", get(projects::stages))
        .route("/api/controlPlane/v1/project/{project}/stage/{stage}", get(projects::stage))
        .route("/api/controlPlane/v1/project/{project}/stage/{stage}/service", get(projects::services))
        .route("/api/controlPlane/v1/project/{project}/stage/{stage}/service/{service}", get(projects::service))
        .route("/api/v1/metadata", get(executors::metadata))
        .route("/api/v1/openapi.json", get(openapi::document))
}

fn acting() -> Router<ServerState> {
    Router::new()
        .route("/api/v1/repositories/{name}/down", post(act::down))
        .route("/api/v1/prune", post(act::prune))
        .route("/api/v1/deployments/{project}/{stage}/{name}/latest", post(act::latest))
        .route("/api/v1/deployments/{project}/{stage}/{name}/cancel", post(act::cancel))
        .route("/api/v1/deployments/{project}/{stage}/{name}/retry", post(act::retry))
        .route("/api/v1/deployments/{project}/{stage}/{name}/pause", post(act::pause))
        .route("/api/v1/deployments/{project}/{stage}/{name}/resume", post(act::resume))
        .route("/api/v1/deployments/{project}/{stage}/{name}/promote", post(act::promote))
        .route("/api/v1/deployments/{project}/{stage}/{name}/undo", post(act::undo))
        .route("/api/v1/deployments/{project}/{stage}/{name}/scale", post(act::scale))
        .route("/api/v1/deployments/{project}/{stage}/{name}/exec", post(exec::exec))
        .route("/api/v1/rollbacks", post(rollback::roll_back))
        .route("/api/v1/deliveries", post(act::deliver))
        .route("/api/v1/event", post(keptn::tell))
        .route("/api/v1/approvals", post(keptn::decide))
        .route("/api/v1/aborts", post(keptn::abort))
        .route("/api/v1/pauses", post(keptn::pause))
        .route("/api/v1/reruns", post(keptn::rerun))
        .route("/api/controlPlane/v1/sequence/{project}/{context}/control", post(keptn::control))
        .route(EVALUATION, post(projects::evaluate))
        .route("/api/controlPlane/v1/uniform/registration", post(executors::register))
        .route("/api/controlPlane/v1/uniform/registration/{id}", delete(executors::forget))
        .route("/api/controlPlane/v1/uniform/registration/{id}/ping", put(executors::ping))
        .route("/api/controlPlane/v1/log", post(executors::log))
        .route("/api/controlPlane/v1/project", post(executors::from_git).put(executors::from_git))
        .route("/api/controlPlane/v1/project/{project}", delete(executors::from_git))
        .route("/api/controlPlane/v1/project/{project}/service", post(executors::from_git))
        .route("/api/controlPlane/v1/project/{project}/service/{service}", delete(executors::from_git))
        .route("/api/v1/auth", post(executors::auth))
        .route("/api/v1/holds", post(act::hold))
        .route("/api/v1/holds/{id}", delete(act::release))
        .route("/api/v1/releases", post(act::release_all))
}

/// OpenShift's clients read errors as `Status` objects.
fn of_openshift(state: &ServerState) -> Router<ServerState> {
    let (mut reading, mut acting) = (Router::new(), Router::new());
    for root in openshift::ROOTS {
        let configs = format!("{root}/namespaces/{{namespace}}/deploymentconfigs");
        let config = format!("{configs}/{{name}}");
        let generated = format!("{root}/namespaces/{{namespace}}/generatedeploymentconfigs/{{name}}");
        let rollbacks = format!("{root}/namespaces/{{namespace}}/deploymentconfigrollbacks");
        reading = reading
            .route(&configs, get(openshift::list))
            .route(&config, get(openshift::get))
            .route(&generated, get(openshift::generate));
        acting = acting
            .route(&configs, post(openshift::from_git).delete(openshift::from_git))
            .route(&config, put(openshift::put).patch(openshift::from_git).delete(openshift::from_git))
            .route(&format!("{config}/instantiate"), post(openshift::instantiate))
            .route(&format!("{config}/rollback"), post(openshift::roll_back))
            .route(&rollbacks, post(openshift::roll_back_named));
    }
    // The paths of the proposal.
    let reading = reading
        .route("/deploymentConfigs/{id}", get(openshift::get_by_id))
        .route("/generateDeploymentConfigs/{id}", get(openshift::generate_by_id));
    let acting = acting.route("/deploymentConfigs/{id}", put(openshift::put_by_id));
    reading
        .route_layer(from_fn_with_state(state.needs(Need::Read), guard))
        .merge(acting.route_layer(from_fn_with_state(state.needs(Need::Operate), guard)))
        .layer(map_response(openshift::as_status))
}

/// What holds for every request and its answer.
fn bounded(router: Router<ServerState>) -> Router<ServerState> {
    let layers = ServiceBuilder::new()
        .layer(CatchPanicLayer::new())
        .layer(TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, LONGEST_REQUEST))
        .layer(RequestBodyLimitLayer::new(LARGEST_BODY))
        .layer(always(header::CONTENT_SECURITY_POLICY, CONTENT_POLICY))
        .layer(always(header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        // With `no-referrer`, a browser would not say either that a form is of this server.
        .layer(always(header::REFERRER_POLICY, "same-origin"))
        .layer(always(header::CACHE_CONTROL, "no-store"));
    router.layer(layers).layer(map_response(worded))
}

/// Counters, as `encode` writes them, for whoever may read.
pub fn metrics(state: ServerState, encode: impl Fn() -> String + Clone + Send + Sync + 'static) -> Router {
    let answer = move || async move { ([(header::CONTENT_TYPE, METRICS_CONTENT_TYPE)], encode()) };
    Router::new().route("/metrics", get(answer)).route_layer(from_fn_with_state(state.needs(Need::Read), guard))
}

/// A header that every answer gets, unless it has one of its own.
fn always(name: HeaderName, value: &'static str) -> SetResponseHeaderLayer<HeaderValue> {
    SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value))
}

/// Anybody may ask; only who may read is told which repository it waits for, and why.
async fn readyz(
    State(state): State<ServerState>,
    origin: Option<Extension<Origin>>,
    headers: HeaderMap,
) -> Answer<&'static str> {
    let origin = origin.map(|Extension(origin)| origin);
    let may_read = admit(&state.access, origin.as_ref(), &headers, Need::Read).is_ok();
    every_repository_was_synced(&state).await.map_err(|problem| match may_read {
        true => problem,
        false => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "a repository has not been synced yet"),
    })?;
    Ok("ready\n")
}

/// Whether every repository has been synced since the start, also when one of them is broken.
async fn every_repository_was_synced(state: &ServerState) -> Answer<()> {
    for name in &state.watched {
        let known = state.query.store.repository(name).await?;
        let was_synced = known
            .is_some_and(|repository| repository.value.down || repository.value.synced_at >= Some(state.started_at));
        if !was_synced {
            let detail = format!("`{name}` has not been synced yet");
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail));
        }
    }
    Ok(())
}

async fn nowhere(uri: Uri, headers: HeaderMap) -> Response {
    page::problem(Problem::not_found(format!("there is nothing at `{}`", uri.path())), &uri, &headers)
}

async fn wrong_method(method: Method, uri: Uri) -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, format!("`{}` takes no {method}", uri.path()))
}
