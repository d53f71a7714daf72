//! What every handler works with.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use tokio_util::sync::CancellationToken;

use super::access::Access;
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

/// Lets a request through that may read.
pub(super) async fn require_reader(State(state): State<ServerState>, request: Request, next: Next) -> Response {
    let actor = state.access.reader(request.headers());
    let mut response = go_on(actor, request, next).await;
    if response.status() == StatusCode::UNAUTHORIZED {
        // So that a browser asks its user.
        let challenge =
            HeaderValue::from_static("Basic realm=\"launchway: a token as the password\", charset=\"UTF-8\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Lets a request through that may act.
pub(super) async fn require_operator(State(state): State<ServerState>, request: Request, next: Next) -> Response {
    let actor = state.access.operator(request.headers());
    go_on(actor, request, next).await
}

async fn go_on(actor: Result<String, Problem>, mut request: Request, next: Next) -> Response {
    match actor {
        Ok(name) => {
            request.extensions_mut().insert(Actor(name));
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}
