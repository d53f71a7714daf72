//! What every handler works with.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use tokio_util::sync::CancellationToken;

use super::access::{Access, Need};
use super::api::hooks::HookTurns;
use super::origin::Origin;
use super::page;
use super::problem::{Answer, Problem};
use super::query::Query;
use crate::control::commands::{Command, Commands, Done};
use crate::model::ids::RepositoryName;
use crate::model::time::Timestamp;

/// What every handler works with.
#[derive(Clone)]
pub struct ServerState {
    /// Where answers come from.
    pub query: Query,
    /// Who carries commands out; nobody where only the store is open.
    pub commands: Option<Arc<dyn Commands>>,
    /// Who may read and act.
    pub access: Arc<Access>,
    /// The repositories that this process watches; others may be remembered.
    pub watched: Vec<RepositoryName>,
    /// Since when this process serves.
    pub started_at: Timestamp,
    /// When hooks may have repositories synced.
    pub hook_turns: Arc<HookTurns>,
    /// How long the body of a request may take.
    pub body_patience: Duration,
    /// Ends answers that would not end by themselves.
    pub stop: CancellationToken,
}

impl std::fmt::Debug for ServerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerState").field("access", &self.access).finish_non_exhaustive()
    }
}

/// Who sent the request, for the record.
#[derive(Clone, Debug)]
pub struct Actor(pub String);

impl ServerState {
    /// What requests to some routes need.
    pub(super) fn needs(&self, need: Need) -> Guard {
        Guard { access: self.access.clone(), need }
    }

    /// Has a command carried out.
    ///
    /// # Errors
    /// The answer to give instead.
    pub async fn act(&self, command: Command, actor: &Actor) -> Answer<Done> {
        let commands = self.commands.as_ref().ok_or_else(|| {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no daemon runs that could do that")
                .hint("start it with `launchway up` or `launchway serve`")
        })?;
        Ok(commands.act(command, &actor.0).await?)
    }
}

/// What the requests to some routes need.
#[derive(Clone)]
pub(super) struct Guard {
    pub(super) access: Arc<Access>,
    pub(super) need: Need,
}

/// Lets a request through that may do what it needs.
pub(super) async fn guard(State(Guard { access, need }): State<Guard>, mut request: Request, next: Next) -> Response {
    let mut response = match admit(&access, request.extensions().get(), request.headers(), need) {
        Ok(name) => {
            request.extensions_mut().insert(Actor(name));
            next.run(request).await
        }
        Err(problem) => page::problem(problem, request.uri(), request.headers()),
    };
    if need.is_of_browsers() && response.status() == StatusCode::UNAUTHORIZED {
        // So that a browser asks its user.
        let challenge =
            HeaderValue::from_static("Basic realm=\"launchway: a token as the password\", charset=\"UTF-8\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Who asks, if they may; a request from nowhere may nothing.
pub(super) fn admit(access: &Access, origin: Option<&Origin>, headers: &HeaderMap, need: Need) -> Answer<String> {
    let nowhere = || Problem::new(StatusCode::FORBIDDEN, "it is not known where this request comes from");
    access.admit(origin.ok_or_else(nowhere)?, headers, need)
}
