//! What a deployer of the user's own asks of its deployment: over a socket that its pod alone sees, by a token that is good as
//! long as it is at work.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::broadcast;
use tokio::time::Instant;

use super::extract::{Body, Parameters};
use crate::control::commands::Command;
use crate::engine::deployment::deployer::Ask;
use crate::executor::deployer_tokens::DeployerTokens;
use crate::model::duration;
use crate::model::ids::{PodName, RunId};
use crate::model::run::{DeploymentRun, Run};
use crate::runtime::RuntimeChange;
use crate::server::access::presented;
use crate::server::problem::{Answer, Problem};
use crate::server::state::{Actor, ServerState};
use crate::server::view::DeployerView;

/// The longest that an answer waits for what is asked for.
const LONGEST_WAIT: Duration = Duration::from_secs(50);
/// How often it looks again although nothing is announced.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What the requests of deployers are judged by.
#[derive(Clone)]
pub(in crate::server) struct Guard {
    pub(in crate::server) state: ServerState,
    pub(in crate::server) tokens: DeployerTokens,
}

/// Which deployer asks.
#[derive(Clone, Debug)]
pub(in crate::server) struct Asking {
    run: RunId,
    pod: PodName,
}

/// How long the answer may wait.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WaitParameters {
    /// Until what was asked for is there, or makes no progress: so long at most, such as `30s`.
    pub wait: Option<String>,
}

/// How many pods versions are to have, at once. What is left out stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeployerScale {
    /// Of which replication controller of the deployment; of its own pods, if absent.
    pub controller: Option<String>,
    /// The new version.
    pub new: Option<u32>,
    /// The version that served before.
    pub old: Option<u32>,
}

/// How far the strategy's own exchange is to go.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeployerRollout {
    /// Until so much of the replicas are the new version's: `"50%"`, or `50`.
    pub until: Value,
}

/// Lets the deployer of a deployment through.
pub(in crate::server) async fn guard(
    State(Guard { state, tokens }): State<Guard>,
    mut request: Request,
    next: Next,
) -> Response {
    let asking = match presented(request.headers()) {
        Some(token) => admit(&state, &tokens, token).await,
        None => Err(unauthorized()),
    };
    match asking {
        Ok(asking) => {
            request.extensions_mut().insert(asking);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

async fn admit(state: &ServerState, tokens: &DeployerTokens, token: &str) -> Answer<Asking> {
    let claimed = DeployerTokens::claimed(token).ok_or_else(unauthorized)?;
    let Some(Run::Deployment(run)) = state.query.store.run(&claimed).await?.map(|run| run.value) else {
        return Err(unauthorized());
    };
    let pod = tokens.deployer(token, &run).ok_or_else(unauthorized)?.clone();
    Ok(Asking { run: claimed, pod })
}

fn unauthorized() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "the token of a deployer that is at work is needed")
        .hint("send LAUNCHWAY_API_TOKEN as `Authorization: Bearer …`; it is good until the deployer has ended")
}

/// The record of the deployment; on request once what was asked for is there, or will not be.
pub(in crate::server) async fn record(
    State(state): State<ServerState>,
    Extension(asking): Extension<Asking>,
    Parameters(WaitParameters { wait }): Parameters<WaitParameters>,
) -> Answer<Json<DeployerView>> {
    let invalid = || Problem::new(StatusCode::BAD_REQUEST, "`wait` is a duration such as 30s");
    let wait = wait.map(|wait| duration::parse(&wait).ok_or_else(invalid)).transpose()?;
    let until = Instant::now() + wait.unwrap_or_default().min(LONGEST_WAIT);
    let runtime = state.query.runtime()?;
    loop {
        let mut changes = runtime.changes();
        let view = seen(&state, &asking).await?;
        if view.is_decided() || Instant::now() >= until {
            return Ok(Json(view));
        }
        let again = until.min(Instant::now() + LOOK_AGAIN);
        tokio::select! {
            () = state.stop.cancelled() => return Ok(Json(view)),
            () = tokio::time::sleep_until(again) => {}
            () = changed(&mut changes) => {}
        }
    }
}

async fn changed(changes: &mut broadcast::Receiver<RuntimeChange>) {
    if let Err(broadcast::error::RecvError::Closed) = changes.recv().await {
        std::future::pending::<()>().await;
    }
}

async fn seen(state: &ServerState, asking: &Asking) -> Answer<DeployerView> {
    let over = || Problem::new(StatusCode::GONE, "this deployment is not in the hands of its deployer any more");
    let Some(Run::Deployment(run)) = state.query.store.run(&asking.run).await?.map(|run| run.value) else {
        return Err(over());
    };
    let run: &DeploymentRun = &run;
    state.query.deployment_of(run).await?.ok_or_else(over)
}

pub(in crate::server) async fn scale(
    State(state): State<ServerState>,
    Extension(asking): Extension<Asking>,
    Body(DeployerScale { controller, new, old }): Body<DeployerScale>,
) -> Answer<Json<DeployerView>> {
    if new.is_none() && old.is_none() {
        let detail = "say how many pods the `new` version is to have, or the `old` one";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
    }
    asks(&state, &asking, Ask::Scale { controller, new, old }).await
}

pub(in crate::server) async fn rollout(
    State(state): State<ServerState>,
    Extension(asking): Extension<Asking>,
    Body(DeployerRollout { until }): Body<DeployerRollout>,
) -> Answer<Json<DeployerView>> {
    let number = match &until {
        Value::String(text) => text.trim_end_matches('%').parse().ok(),
        number => number.as_u64().and_then(|number| u32::try_from(number).ok()),
    };
    let invalid = || Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "`until` is a part such as \"50%\"");
    asks(&state, &asking, Ask::Until { percent: number.ok_or_else(invalid)? }).await
}

async fn asks(state: &ServerState, asking: &Asking, ask: Ask) -> Answer<Json<DeployerView>> {
    let Asking { run, pod } = asking.clone();
    let actor = Actor(format!("deployer {pod}"));
    state.act(Command::Deploy { run, pod, ask }, &actor).await?;
    seen(state, asking).await.map(Json)
}
