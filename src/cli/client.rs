//! The daemon's API as commands use it: over the socket in the state folder, which needs no proof beside the kernel's, or,
//! where the user names a server, over TCP with a token. Where no daemon runs, the same answers come from the store, read in this
//! process by the same router.

use std::io::ErrorKind;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use reqwest::{ClientBuilder, RequestBuilder, Response, Upgraded, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::arguments::Global;
use super::output::{Complaint, Outcome};
use crate::clock::{Clock, SystemClock};
use crate::error::{Context, Failure, Result};
use crate::model::host::is_loopback;
use crate::server::access::{Access, THIS_MACHINE};
use crate::server::listener::Bounds;
use crate::server::origin::Origin;
use crate::server::problem::Problem;
use crate::server::query::Query;
use crate::server::router::router;
use crate::server::socket::{Reach, Socket};
use crate::server::state::ServerState;
use crate::store::sqlite::SqliteReader;

/// How long a daemon on the other side may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an answer may take; commands in pods may take long.
const ANSWER: Duration = Duration::from_secs(90);
/// The store's file in the state folder.
pub(super) const STORE_FILE: &str = "store.db";
/// What to do where no daemon runs.
const START_ONE: &str = "start it with `launchway up` or `launchway serve`, or name one with `--server`";
/// Where answers of this machine seem to come from.
const HERE: &str = "http://localhost/";

/// Who answers.
#[derive(Debug)]
pub(super) enum Client {
    /// A daemon.
    Daemon(Daemon),
    /// The store, without a daemon.
    Store { router: Router },
}

/// A daemon, and the way to it.
#[derive(Debug)]
pub(super) struct Daemon {
    base: Url,
    token: Option<String>,
    http: reqwest::Client,
    /// The socket by which it is reached; none over TCP.
    socket: Option<(Socket, Reach)>,
    /// How people know it.
    name: String,
}

/// Parameters after the `?`; absent ones are left out.
pub(super) type Parameters<'a> = &'a [(&'a str, Option<&'a str>)];

impl Client {
    /// Who answers questions: a daemon, or the store it left.
    pub(super) async fn to_read(global: &Global) -> Outcome<Self> {
        match Self::daemon(global).await? {
            Some(daemon) => Ok(Self::Daemon(daemon)),
            None => Ok(Self::store(global)?),
        }
    }

    /// Whether no daemon runs any more, where one did: while it ends it still lets others connect.
    pub(super) async fn is_gone(global: &Global) -> bool {
        match Self::daemon(global).await {
            Ok(Some(daemon)) => !daemon.lives().await,
            Ok(None) => true,
            Err(_closed) => false,
        }
    }

    /// Who carries commands out: only a daemon can.
    pub(super) async fn to_act(global: &Global) -> Outcome<Self> {
        Ok(Self::Daemon(Self::daemon(global).await?.ok_or_else(no_daemon)?))
    }

    /// Who syncs and tells what becomes of a push: also another user's daemon, over its socket for hooks.
    pub(super) async fn to_sync(global: &Global) -> Outcome<Self> {
        let closed = match Self::daemon(global).await {
            Ok(daemon) => return Ok(Self::Daemon(daemon.ok_or_else(deployed_later)?)),
            Err(failure) if global.server().is_none() => failure,
            Err(failure) => return Err(failure.into()),
        };
        match Daemon::over_socket(&global.state_folder()?, Socket::Hooks).await {
            Ok(daemon) => Ok(Self::Daemon(daemon.ok_or_else(deployed_later)?)),
            Err(_closed_too) => Err(closed.into()),
        }
    }

    /// Whether it takes no more than a hook asks for.
    pub(super) fn is_for_hooks(&self) -> bool {
        matches!(self, Self::Daemon(Daemon { socket: Some((Socket::Hooks, _)), .. }))
    }

    /// The daemon that the user names, or the one of the state folder, if it answers.
    async fn daemon(global: &Global) -> Result<Option<Daemon>> {
        match global.server() {
            Some(server) => Daemon::over_tcp(&server).map(Some),
            None => Daemon::over_socket(&global.state_folder()?, Socket::Commands).await,
        }
    }

    fn store(global: &Global) -> Result<Self> {
        let state = global.state_folder()?;
        let path = state.join(STORE_FILE);
        if !path.exists() {
            let message = format!("no daemon answers, and `{}` holds no state", state.display());
            return Err(
                Failure::transient(message).hint("start with `launchway up`, or name a state folder with `--state`")
            );
        }
        let store = Arc::new(SqliteReader::open(&path)?);
        let (hindrances, selectors, renderings) = Default::default();
        let query = Query { store, runtime: None, hindrances, selectors, renderings, subscribers: None, watched: None };
        let access = Arc::new(Access { tokens: Vec::new(), loopback: true, public: None });
        let state = ServerState {
            query,
            commands: None,
            access,
            started_at: SystemClock.now(),
            watched: Vec::new(),
            hook_turns: Arc::default(),
            body_patience: Bounds::default().body,
            stop: CancellationToken::new(),
        };
        Ok(Self::Store { router: router(state) })
    }

    /// Reads a resource below `/api/v1/`.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str, parameters: Parameters<'_>) -> Outcome<T> {
        let body = self.text(path, parameters).await?;
        parsed(&body)
    }

    /// Reads a resource that may not be there.
    pub(super) async fn find<T: DeserializeOwned>(&self, path: &str) -> Outcome<Option<T>> {
        let answer = self.call(Method::GET, &format!("/api/v1/{path}"), &[], None).await?;
        match answer.0 {
            StatusCode::NOT_FOUND => Ok(None),
            _ => parsed(&accepted(answer)?).map(Some),
        }
    }

    /// Reads a resource in the shape of Keptn's control plane.
    pub(super) async fn keptn<T: DeserializeOwned>(&self, path: &str) -> Outcome<T> {
        let answer = self.call(Method::GET, &format!("/api/controlPlane/v1/{path}"), &[], None).await?;
        parsed(&accepted(answer)?)
    }

    /// Reads a resource below `/api/v1/` as it is.
    pub(super) async fn text(&self, path: &str, parameters: Parameters<'_>) -> Outcome<Bytes> {
        let answer = self.call(Method::GET, &format!("/api/v1/{path}"), parameters, None).await?;
        accepted(answer)
    }

    /// Reads a resource below `/api/v1/` piece by piece as it comes, for as long as it takes.
    pub(super) async fn stream(
        &self,
        path: &str,
        parameters: Parameters<'_>,
        mut take: impl FnMut(&[u8]) -> Outcome<()>,
    ) -> Outcome<()> {
        let Self::Daemon(daemon) = self else { return take(&self.text(path, parameters).await?) };
        let request = daemon.request(Method::GET, &format!("/api/v1/{path}"), parameters).timeout(Duration::MAX);
        let unreachable = |error| daemon.unreachable(error);
        let mut response = daemon.send(request).await?;
        if !response.status().is_success() {
            return accepted((response.status(), response.bytes().await.map_err(unreachable)?)).map(drop);
        }
        while let Some(piece) = response.chunk().await.map_err(unreachable)? {
            take(&piece)?;
        }
        Ok(())
    }

    /// Has an action performed below `/api/v1/`.
    pub(super) async fn post<T: DeserializeOwned>(&self, path: &str, request: &impl Serialize) -> Outcome<T> {
        let body = serde_json::to_vec(request).or_stalled(|| "cannot write the request".to_owned())?;
        let answer = self.call(Method::POST, &format!("/api/v1/{path}"), &[], Some(body)).await?;
        parsed(&accepted(answer)?)
    }

    /// Has an action below `/api/v1/` begin a conversation over its connection.
    pub(super) async fn upgrade(&self, path: &str, protocol: &str, request: &impl Serialize) -> Outcome<Upgraded> {
        let Self::Daemon(daemon) = self else { return Err(no_daemon().into()) };
        let body = serde_json::to_vec(request).or_stalled(|| "cannot write the request".to_owned())?;
        let request = daemon.request(Method::POST, &format!("/api/v1/{path}"), &[]);
        let request = request.header(header::CONNECTION, "upgrade").header(header::UPGRADE, protocol);
        let request = request.header(header::CONTENT_TYPE, "application/json").body(body);
        let unreachable = |error| daemon.unreachable(error);
        let response = request.send().await.map_err(unreachable)?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(response.upgrade().await.map_err(unreachable)?);
        }
        accepted((response.status(), response.bytes().await.map_err(unreachable)?))?;
        Err(Failure::stalled(format!("the server does not speak `{protocol}`")).into())
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        parameters: Parameters<'_>,
        body: Option<Vec<u8>>,
    ) -> Result<(StatusCode, Bytes)> {
        match self {
            Self::Daemon(daemon) => daemon.call(method, path, parameters, body).await,
            Self::Store { router } => {
                let here = Url::parse(HERE).or_stalled(|| "cannot name this process".to_owned())?;
                let request = Request::builder().method(method).uri(address(&here, path, parameters).as_str());
                let request = request.extension(Origin::Commands { user: THIS_MACHINE.to_owned() });
                let request = request.body(Body::from(body.unwrap_or_default()));
                in_process(router, request.or_stalled(|| "cannot write the request".to_owned())?).await
            }
        }
    }
}

impl Daemon {
    /// The daemon at an address, where a token alone says who asks. On that port may be anybody, so none is sent unasked.
    fn over_tcp(server: &str) -> Result<Self> {
        let base = Url::parse(server).or_stalled(|| format!("`{server}` is no address of a server"))?;
        let builder = if base.host_str().is_some_and(is_loopback) { http().no_proxy() } else { http() };
        let token = std::env::var("LAUNCHWAY_TOKEN").ok().filter(|token| !token.is_empty());
        Ok(Self { name: base.to_string(), base, token, http: built(builder)?, socket: None })
    }

    /// The daemon of a state folder; none where nobody listens.
    async fn over_socket(state: &Path, socket: Socket) -> Result<Option<Self>> {
        let Ok(reach) = socket.reach(state) else { return Ok(None) };
        let name = socket.path(state).display().to_string();
        match tokio::time::timeout(CONNECT, UnixStream::connect(reach.path())).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) if error.kind() == ErrorKind::PermissionDenied => {
                return Err(Failure::stalled(format!("`{name}` is another user's"))
                    .because(error)
                    .hint("ask as the daemon's user, be in its `access.socketGroup`, or use `--server` with a token"));
            }
            _ => return Ok(None),
        }
        let base = Url::parse(HERE).or_stalled(|| "cannot name this machine".to_owned())?;
        // Nothing is encrypted here: to read the certificates of a machine takes longer than most answers.
        let http = built(http().unix_socket(reach.path()).tls_certs_only([]))?;
        Ok(Some(Self { base, token: None, http, socket: Some((socket, reach)), name }))
    }

    /// Sends a request. A long answer is waited for, but not that of a daemon that hangs, which still lets others connect.
    async fn send(&self, request: RequestBuilder) -> Result<Response> {
        let mut answer = pin!(request.send());
        let soon = tokio::time::timeout(CONNECT, &mut answer).await;
        let answer = match soon {
            Ok(answer) => answer,
            Err(_elapsed) if !self.lives().await => {
                return Err(Failure::transient(format!("the daemon at `{}` does not answer", self.name)).hint(
                    "what is pushed is deployed once it goes on; if it does not, end its process and start it again",
                ));
            }
            Err(_elapsed) => answer.await,
        };
        answer.map_err(|error| self.unreachable(error))
    }

    /// Whether it says that it lives.
    async fn lives(&self) -> bool {
        let alive = self.request(Method::GET, "/healthz", &[]).timeout(CONNECT).send().await;
        alive.is_ok_and(|answer| answer.status().is_success())
    }

    fn request(&self, method: Method, path: &str, parameters: Parameters<'_>) -> RequestBuilder {
        let request = self.http.request(method, address(&self.base, path, parameters));
        self.token.iter().fold(request, |request, token| request.bearer_auth(token))
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        parameters: Parameters<'_>,
        body: Option<Vec<u8>>,
    ) -> Result<(StatusCode, Bytes)> {
        let mut request = self.request(method, path, parameters);
        if let Some(body) = body {
            request = request.header(header::CONTENT_TYPE, "application/json").body(body);
        }
        let response = self.send(request).await?;
        let status = response.status();
        Ok((status, response.bytes().await.map_err(|error| self.unreachable(error))?))
    }

    fn unreachable(&self, error: reqwest::Error) -> Failure {
        Failure::transient(format!("cannot reach `{}`", self.name))
            .because(error.without_url())
            .hint("is the daemon running? `launchway up` starts one")
    }
}

fn http() -> ClientBuilder {
    reqwest::Client::builder().connect_timeout(CONNECT).timeout(ANSWER)
}

fn built(builder: ClientBuilder) -> Result<reqwest::Client> {
    builder.build().or_stalled(|| "cannot prepare HTTP".to_owned())
}

fn no_daemon() -> Failure {
    Failure::transient("no daemon runs that could do that").hint(START_ONE)
}

/// The same to whoever has pushed.
fn deployed_later() -> Failure {
    Failure::transient("no daemon runs: what is pushed is deployed when it starts").hint(START_ONE)
}

async fn in_process(router: &Router, request: Request<Body>) -> Result<(StatusCode, Bytes)> {
    let answered: std::result::Result<_, std::convert::Infallible> = router.clone().oneshot(request).await;
    let response = match answered {
        Ok(response) => response,
        Err(never) => match never {},
    };
    let status = response.status();
    let body = response.into_body().collect().await;
    Ok((status, body.or_stalled(|| "the answer broke off".to_owned())?.to_bytes()))
}

/// The address of a path, every segment of which is encoded where it must be.
fn address(base: &Url, path: &str, parameters: Parameters<'_>) -> Url {
    let mut address = base.clone();
    if let Ok(mut segments) = address.path_segments_mut() {
        segments.pop_if_empty().extend(path.split('/').filter(|segment| !segment.is_empty()));
    }
    let given = parameters.iter().filter_map(|(name, value)| value.map(|value| (name, value)));
    for (name, value) in given {
        address.query_pairs_mut().append_pair(name, value);
    }
    address
}

fn accepted((status, body): (StatusCode, Bytes)) -> Outcome<Bytes> {
    if status.is_success() {
        return Ok(body);
    }
    let problem = serde_json::from_slice::<Problem>(&body);
    let mut failure = match &problem {
        Ok(problem) => Failure::stalled(problem.detail.clone()),
        Err(_) => Failure::transient(format!("the server answered {status}")),
    };
    if let Some(hint) = problem.ok().and_then(|problem| problem.hint) {
        failure = failure.hint(hint);
    }
    Err(match status {
        StatusCode::NOT_FOUND | StatusCode::CONFLICT => Complaint::failed(failure),
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => Complaint::usage(failure),
        _ => failure.into(),
    })
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> Outcome<T> {
    let value = serde_json::from_slice(body);
    Ok(value.or_stalled(|| "the server's answer is not what this version understands".to_owned())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::Exit;

    #[test]
    fn names_are_encoded_into_addresses() {
        let base = Url::parse("http://127.0.0.1:8787").expect("an address");
        let address = address(&base, "/api/v1/runs/shop/dev/web?-1", &[("stage", Some("a&b")), ("name", None)]);
        assert_eq!(address.as_str(), "http://127.0.0.1:8787/api/v1/runs/shop/dev/web%3F-1?stage=a%26b");
    }

    #[test]
    fn a_server_below_a_path_keeps_it() {
        let base = Url::parse("https://example.org/launchway/").expect("an address");
        assert_eq!(address(&base, "/healthz", &[]).as_str(), "https://example.org/launchway/healthz");
    }

    #[test]
    fn the_status_decides_the_exit_code() {
        for (status, exit) in [(404, Exit::Failed), (409, Exit::Failed), (422, Exit::Usage), (401, Exit::Environment)] {
            let status = StatusCode::from_u16(status).expect("a status");
            let body = serde_json::to_vec(&Problem::new(status, "no").hint("do")).expect("JSON");
            let complaint = accepted((status, body.into())).expect_err("refused");
            assert_eq!(complaint.exit, exit, "{status}");
            assert_eq!(complaint.failure.hint_text(), Some("do"));
        }
    }
}
