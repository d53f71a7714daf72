//! The daemon's API as commands use it. Where no daemon runs, the same answers come from the store, read in this
//! process by the same router.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use reqwest::Url;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::arguments::Global;
use super::output::{Complaint, Outcome};
use crate::clock::{Clock, SystemClock};
use crate::error::{Context, Failure, Result};
use crate::server::access::Access;
use crate::server::presence::{self, Presence};
use crate::server::problem::Problem;
use crate::server::query::Query;
use crate::server::router::router;
use crate::server::state::ServerState;
use crate::store::sqlite::SqliteReader;

/// How long a daemon on the other side may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an answer may take; commands in pods may take long.
const ANSWER: Duration = Duration::from_secs(90);
/// The store's file in the state folder.
pub(super) const STORE_FILE: &str = "store.db";
/// Where in-process answers seem to come from.
const HERE: &str = "http://localhost/";

/// Who answers.
#[derive(Debug)]
pub(super) enum Client {
    /// A daemon.
    Daemon { base: Url, token: Option<String>, http: reqwest::Client },
    /// The store, without a daemon.
    Store { router: Router },
}

/// Parameters after the `?`; absent ones are left out.
pub(super) type Parameters<'a> = &'a [(&'a str, Option<&'a str>)];

impl Client {
    /// Who answers questions: a daemon, or the store it left.
    pub(super) async fn to_read(global: &Global) -> Outcome<Self> {
        match Self::daemon(global).await? {
            Some(daemon) => Ok(daemon),
            None => Ok(Self::store(global)?),
        }
    }

    /// Who carries commands out: only a daemon can.
    pub(super) async fn to_act(global: &Global) -> Outcome<Self> {
        Ok(Self::daemon(global).await?.ok_or_else(|| {
            Failure::transient("no daemon runs that could do that")
                .hint("start it with `launchway up` or `launchway serve`, or name one with `--server`")
        })?)
    }

    /// The daemon that the user names, which must answer, or the one that the state folder names, if it does.
    async fn daemon(global: &Global) -> Result<Option<Self>> {
        let state = global.state_folder();
        if let Some(server) = global.server() {
            let base = Url::parse(&server).or_stalled(|| format!("`{server}` is no address of a server"))?;
            let token = token_for(&base, state.ok().as_deref())?;
            return Self::over_http(base, token).map(Some);
        }
        let state = state?;
        let Some(presence) = Presence::read(&state)? else { return Ok(None) };
        let base = Url::parse(&presence.url).or_stalled(|| format!("`{}` is no address of a server", presence.url))?;
        let client = Self::over_http(base.clone(), token_for(&base, Some(&state))?)?;
        Ok(client.is_alive().await.then_some(client))
    }

    fn over_http(base: Url, token: Option<String>) -> Result<Self> {
        let mut builder = reqwest::Client::builder().connect_timeout(CONNECT).timeout(ANSWER);
        if is_loopback(&base) {
            builder = builder.no_proxy();
        }
        let http = builder.build().or_stalled(|| "cannot prepare HTTP".to_owned())?;
        Ok(Self::Daemon { base, token, http })
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
        let query = Query { store, runtime: None, hindrances: Arc::default(), renderings: Arc::default() };
        let access = Arc::new(Access { tokens: Vec::new(), loopback: true, public_host: None });
        let stop = CancellationToken::new();
        let state =
            ServerState { query, commands: None, access, started_at: SystemClock.now(), watched: Vec::new(), stop };
        Ok(Self::Store { router: router(state) })
    }

    /// Whether somebody answers soon: a daemon that hangs still accepts connections.
    async fn is_alive(&self) -> bool {
        let answer = tokio::time::timeout(CONNECT, self.call(Method::GET, "/healthz", &[], None)).await;
        answer.is_ok_and(|answer| answer.is_ok_and(|(status, _)| status.is_success()))
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
        let Self::Daemon { base, token, http } = self else { return take(&self.text(path, parameters).await?) };
        let request = http.get(address(base, &format!("/api/v1/{path}"), parameters)).timeout(Duration::MAX);
        let request = token.iter().fold(request, |request, token| request.bearer_auth(token));
        let mut response = request.send().await.map_err(|error| unreachable(base, error))?;
        if !response.status().is_success() {
            let status = response.status();
            return accepted((status, response.bytes().await.map_err(|error| unreachable(base, error))?)).map(drop);
        }
        while let Some(piece) = response.chunk().await.map_err(|error| unreachable(base, error))? {
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

    async fn call(
        &self,
        method: Method,
        path: &str,
        parameters: Parameters<'_>,
        body: Option<Vec<u8>>,
    ) -> Result<(StatusCode, Bytes)> {
        match self {
            Self::Daemon { base, token, http } => {
                let mut request = http.request(method, address(base, path, parameters));
                if let Some(token) = token {
                    request = request.bearer_auth(token);
                }
                if let Some(body) = body {
                    request = request.header(header::CONTENT_TYPE, "application/json").body(body);
                }
                over_http(base, request).await
            }
            Self::Store { router } => {
                let here = Url::parse(HERE).or_stalled(|| "cannot name this process".to_owned())?;
                let request = Request::builder().method(method).uri(address(&here, path, parameters).as_str());
                let request = request.header(header::HOST, "localhost").body(Body::from(body.unwrap_or_default()));
                in_process(router, request.or_stalled(|| "cannot write the request".to_owned())?).await
            }
        }
    }
}

async fn over_http(base: &Url, request: reqwest::RequestBuilder) -> Result<(StatusCode, Bytes)> {
    let response = request.send().await.map_err(|error| unreachable(base, error))?;
    let status = response.status();
    Ok((status, response.bytes().await.map_err(|error| unreachable(base, error))?))
}

fn unreachable(base: &Url, error: reqwest::Error) -> Failure {
    Failure::transient(format!("cannot reach `{base}`"))
        .because(error.without_url())
        .hint("is the daemon running? `launchway up` starts one")
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

/// The token to send: the user's own, or the state folder's for a daemon on this machine and for no other.
fn token_for(base: &Url, state: Option<&std::path::Path>) -> Result<Option<String>> {
    if let Ok(token) = std::env::var("LAUNCHWAY_TOKEN") {
        return Ok(Some(token));
    }
    match state.filter(|_| is_loopback(base)) {
        Some(state) => presence::read_token(&presence::token_path(state)),
        None => Ok(None),
    }
}

fn is_loopback(base: &Url) -> bool {
    base.host_str().is_some_and(|host| {
        let name = host.trim_matches(['[', ']']);
        name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    })
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

    #[test]
    fn the_operators_token_stays_on_this_machine() {
        let state = tempfile::tempdir().expect("a folder");
        let token = presence::operator_token(state.path()).expect("made");
        let sent =
            |base: &str| token_for(&Url::parse(base).expect("an address"), Some(state.path())).expect("readable");
        assert_eq!(sent("http://127.0.0.1:8787"), Some(token.clone()));
        assert_eq!(sent("http://[::1]:8787"), Some(token));
        assert_eq!(sent("https://deploy.example"), None);
        assert_eq!(sent("https://localhost.example"), None);
    }
}
