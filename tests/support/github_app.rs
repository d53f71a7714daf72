//! GitHub as a GitHub App meets it, over real HTTP: tokens of installations, and check runs with their limits. Source: GitHub's
//! documentation of authentication as an App, of check runs, and of secondary rate limits.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header::RETRY_AFTER};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use launchway::clock::{Clock, from_rfc3339, rfc3339};
use launchway::model::time::Timestamp;
use serde_json::{Value, json};

/// The App, and where it is installed.
pub(crate) const APP: u64 = 1234;
pub(crate) const INSTALLATION: u64 = 77;
/// A token of a person.
pub(crate) const PERSONAL: &str = "ghp_of_a_person";
/// Where the App is at home.
const PAGE: &str = "https://the.app/launchway";
/// What may be written in a minute and in an hour.
const LIMITS: [(usize, i64); 2] = [(80, 60_000), (500, 3_600_000)];
/// The most annotations of a request.
const ANNOTATIONS: usize = 50;

/// The App's key, made for the tests that run.
static KEY: LazyLock<RsaKeyPair> = LazyLock::new(|| RsaKeyPair::generate(KeySize::Rsa2048).unwrap());

/// The private key as GitHub gives it away.
pub(crate) fn private_key() -> String {
    let der: Pkcs8V1Der<'_> = KEY.as_der().unwrap();
    let text = STANDARD.encode(der.as_ref());
    let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"))
}

/// What goes wrong with the next request that writes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    /// It is answered so, and nothing happens.
    Status(u16),
    /// It is done, and answered as if it had failed.
    Lost,
}

/// A check run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) id: u64,
    pub(crate) app: u64,
    /// As it was sent, and changed since.
    pub(crate) body: Value,
    pub(crate) annotations: Vec<Value>,
}

impl Run {
    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.body.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// How it stands, in a line.
    pub(crate) fn told(&self) -> String {
        let [status, conclusion] = ["/status", "/conclusion"].map(|pointer| self.text(pointer));
        let state = if conclusion.is_empty() { status } else { conclusion };
        format!("{state} {} {}", self.text("/name"), self.text("/output/title"))
    }

    fn shown(&self) -> Value {
        let mut shown = self.body.clone();
        shown["id"] = json!(self.id);
        shown["app"] = json!({"id": self.app, "slug": "launchway"});
        shown["conclusion"] = self.body.get("conclusion").cloned().unwrap_or_default();
        if shown.get("details_url").is_none() {
            shown["details_url"] = json!(PAGE);
        }
        if let Some(output) = shown["output"].as_object_mut() {
            output.remove("annotations");
            output.insert("annotations_count".to_owned(), json!(self.annotations.len()));
        }
        shown
    }
}

/// What GitHub has.
#[derive(Default)]
pub(crate) struct Hub {
    /// All check runs, oldest first.
    pub(crate) runs: Vec<Run>,
    /// What every request that was taken has made of its run, oldest first.
    pub(crate) told: Vec<String>,
    /// The commits that are there; nothing, if all are.
    pub(crate) commits: Option<Vec<String>>,
    /// What the installation may do.
    pub(crate) permissions: Value,
    pub(crate) events: Vec<String>,
    pub(crate) is_installed: bool,
    /// The tokens that were given away, with when they end.
    pub(crate) tokens: Vec<(String, Timestamp)>,
    /// What was asked for with them.
    pub(crate) asked: Vec<Value>,
    /// How often a token was not accepted.
    pub(crate) refused: usize,
    pub(crate) troubles: VecDeque<Trouble>,
    /// When something was written, in milliseconds.
    at: Vec<i64>,
    pub(crate) limits_broken: usize,
    ids: u64,
}

/// What handlers see.
#[derive(Clone)]
pub(crate) struct Shared {
    hub: Arc<Mutex<Hub>>,
    clock: Arc<dyn Clock>,
}

/// Whoever asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    App,
    Installation,
    Person,
}

impl Shared {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let hub = Hub {
            permissions: json!({"checks": "write", "contents": "read", "metadata": "read", "administration": "write"}),
            events: vec!["push".to_owned()],
            is_installed: true,
            ..Hub::default()
        };
        Self { hub: Arc::new(Mutex::new(hub)), clock }
    }

    pub(crate) fn hub(&self) -> MutexGuard<'_, Hub> {
        self.hub.lock().unwrap()
    }

    /// Every token is worth nothing from now on.
    pub(crate) fn revoke(&self) {
        self.hub().tokens.clear();
    }

    /// The runs of a commit, each in a line, oldest first.
    pub(crate) fn runs(&self, sha: &str) -> Vec<String> {
        let hub = self.hub();
        hub.runs.iter().filter(|run| run.app == APP && run.text("/head_sha") == sha).map(Run::told).collect()
    }

    /// The newest run of a commit with a name.
    pub(crate) fn run(&self, sha: &str, name: &str) -> Option<Run> {
        let is_it = |run: &&Run| run.app == APP && run.text("/head_sha") == sha && run.text("/name") == name;
        self.hub().runs.iter().rev().find(is_it).cloned()
    }

    fn asker(&self, headers: &HeaderMap) -> Option<Asker> {
        let given = headers.get("authorization")?.to_str().ok()?.strip_prefix("Bearer ")?.to_owned();
        if given == PERSONAL {
            return Some(Asker::Person);
        }
        if given.split('.').count() == 3 {
            return self.is_signed(&given).then_some(Asker::App);
        }
        let now = self.clock.now();
        let is_valid = self.hub().tokens.iter().any(|(token, ends)| *token == given && now < *ends);
        is_valid.then_some(Asker::Installation)
    }

    /// Whether a text was signed by the App a moment ago, for ten minutes at most.
    fn is_signed(&self, token: &str) -> bool {
        let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).unwrap_or_default();
        let parts: Vec<&str> = token.split('.').collect();
        let [header, claims, signature] = parts[..] else { return false };
        let read = |part: &str| serde_json::from_slice::<Value>(&decoded(part)).unwrap_or_default();
        let (now, claimed) = (self.clock.now().0 / 1000, read(claims));
        let time = |claim: &str| claimed[claim].as_i64().unwrap_or_default();
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, KEY.public_key().as_ref());
        read(header)["alg"] == "RS256"
            && claimed["iss"].as_str() == Some(&*APP.to_string())
            && time("iat") <= now
            && time("exp") > now
            && time("exp") <= now + 600
            && public.verify(format!("{header}.{claims}").as_bytes(), &decoded(signature)).is_ok()
    }
}

/// GitHub Enterprise Server, which a test can have at any address, with the repository of this path.
pub(crate) fn routes(shared: Shared, repository: &str) -> Router {
    let of_repository = Router::new()
        .route("/installation", get(installation))
        .route("/check-runs", post(create))
        .route("/check-runs/{id}", patch(update))
        .route("/commits/{sha}/check-runs", get(list));
    Router::new()
        .nest(&format!("/api/v3/repos/{repository}"), of_repository)
        .route("/api/v3/app/installations/{id}/access_tokens", post(issue))
        .fallback(async || said(404, json!({"message": "Not Found"})))
        .layer(from_fn_with_state(shared.clone(), guard))
        .with_state(shared)
}

/// Serves it until the runtime ends.
pub(crate) async fn serve(shared: Shared, repository: &str) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, routes) = (listener.local_addr().unwrap(), routes(shared, repository));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

fn said(status: u16, body: Value) -> Response {
    (StatusCode::from_u16(status).unwrap(), Json(body)).into_response()
}

fn refused(message: &str) -> Response {
    said(422, json!({"message": "Invalid request.", "errors": [message]}))
}

/// Lets the App ask for tokens, an installation write checks, and a person read.
async fn guard(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let asker = shared.asker(request.headers());
    let path = request.uri().path().to_owned();
    let is_of_app = path.ends_with("/installation") || path.ends_with("/access_tokens");
    let is_write = request.method() != "GET" && path.contains("/check-runs");
    match asker {
        Some(Asker::App) if is_of_app => next.run(request).await,
        Some(Asker::Person) if is_write => said(403, json!({"message": "You must authenticate via a GitHub App."})),
        Some(Asker::Installation) if is_write && shared.hub().permissions["checks"] != "write" => {
            said(403, json!({"message": "Resource not accessible by integration"}))
        }
        Some(Asker::Person | Asker::Installation) if !is_of_app => next.run(request).await,
        _ => {
            shared.hub().refused += 1;
            said(401, json!({"message": "Bad credentials"}))
        }
    }
}

async fn installation(State(shared): State<Shared>) -> Response {
    let hub = shared.hub();
    if !hub.is_installed {
        return said(404, json!({"message": "Not Found"}));
    }
    let Hub { permissions, events, .. } = &*hub;
    said(
        200,
        json!({"id": INSTALLATION, "app_id": APP, "permissions": permissions, "events": events, "suspended_at": null}),
    )
}

/// A token for an hour, of what was given to the installation.
async fn issue(State(shared): State<Shared>, Path(id): Path<u64>, Json(body): Json<Value>) -> Response {
    let mut hub = shared.hub();
    let is_given = |(name, level): (&String, &Value)| hub.permissions.get(name) == Some(level);
    let wanted = body["permissions"].as_object().cloned().unwrap_or_default();
    if id != INSTALLATION || !hub.is_installed {
        return said(404, json!({"message": "Not Found"}));
    }
    if !wanted.iter().all(is_given) {
        return said(422, json!({"message": "The permissions requested are not granted to this installation."}));
    }
    let ends = Timestamp(shared.clock.now().0 + 3_600_000);
    let token = format!("ghs_{}_{}", hub.tokens.len() + hub.asked.len(), "x".repeat(400));
    hub.asked.push(body);
    hub.tokens.push((token.clone(), ends));
    let expires_at = rfc3339(Timestamp(ends.0 / 1000 * 1000));
    assert!(from_rfc3339(&expires_at).is_some());
    said(201, json!({"token": token, "expires_at": expires_at, "permissions": wanted}))
}

/// Takes one write, unless something is wrong with it.
fn admitted(shared: &Shared, body: &Value) -> Result<Option<Trouble>, Box<Response>> {
    let mut hub = shared.hub();
    let trouble = hub.troubles.pop_front();
    if let Some(Trouble::Status(status)) = trouble {
        return Err(said(status, json!({"message": "as the test wants it"})).into());
    }
    let now = shared.clock.now().0;
    let within = |span: i64| hub.at.iter().filter(|at| **at > now - span).count();
    if LIMITS.iter().any(|(most, span)| within(*span) >= *most) {
        hub.limits_broken += 1;
        let body = Json(json!({"message": "You have exceeded a secondary rate limit."}));
        return Err((StatusCode::FORBIDDEN, [(RETRY_AFTER, "60")], body).into_response().into());
    }
    hub.at.push(now);
    match wrong(body) {
        Some(wrong) => Err(refused(wrong).into()),
        None => Ok(trouble),
    }
}

/// What GitHub would not take.
fn wrong(body: &Value) -> Option<&'static str> {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
    let is_completed = text("/status") == Some("completed");
    let conclusions = ["success", "failure", "neutral", "cancelled", "timed_out", "action_required", "skipped"];
    let annotations = body.pointer("/output/annotations").and_then(Value::as_array).map(Vec::as_slice);
    let is_annotation = |it: &Value| {
        let level = it["annotation_level"].as_str();
        it["path"].as_str().is_some_and(|path| !path.is_empty() && !path.starts_with('/'))
            && it["start_line"].as_u64().is_some_and(|line| line > 0)
            && it["end_line"].as_u64() >= it["start_line"].as_u64()
            && matches!(level, Some("notice" | "warning" | "failure"))
            && it["message"].as_str().is_some_and(|message| !message.is_empty())
    };
    match () {
        () if text("/name").is_none_or(str::is_empty) => Some("name is missing"),
        () if !matches!(text("/status"), Some("queued" | "in_progress" | "completed")) => Some("status is no status"),
        () if is_completed != text("/conclusion").is_some_and(|word| conclusions.contains(&word)) => {
            Some("a conclusion belongs to what is completed")
        }
        () if body.get("details_url").is_some() && !text("/details_url").is_some_and(|url| url.starts_with("http")) => {
            Some("details_url must use http or https")
        }
        () if ["/output/title", "/output/summary"].iter().any(|part| text(part).is_none_or(str::is_empty)) => {
            Some("an output needs title and summary")
        }
        () if text("/output/summary").is_some_and(|summary| summary.len() > 65_535) => Some("summary is too long"),
        () if annotations.is_some_and(|all| all.len() > ANNOTATIONS) => Some("too many annotations"),
        () if !annotations.unwrap_or_default().iter().all(is_annotation) => Some("an annotation is none"),
        () => None,
    }
}

fn annotations(body: &mut Value) -> Vec<Value> {
    let found = body["output"].as_object_mut().and_then(|output| output.remove("annotations"));
    found.and_then(|found| found.as_array().cloned()).unwrap_or_default()
}

async fn create(State(shared): State<Shared>, Json(mut body): Json<Value>) -> Response {
    let trouble = match admitted(&shared, &body) {
        Ok(trouble) => trouble,
        Err(refusal) => return *refusal,
    };
    let mut hub = shared.hub();
    let sha = body["head_sha"].as_str().unwrap_or_default().to_owned();
    if hub.commits.as_ref().is_some_and(|commits| !commits.contains(&sha)) {
        return said(422, json!({"message": format!("No commit found for SHA: {sha}")}));
    }
    hub.ids += 1;
    let annotations = annotations(&mut body);
    let run = Run { id: hub.ids, app: APP, body, annotations };
    hub.told.push(format!("new {}", run.told()));
    hub.runs.push(run.clone());
    match trouble {
        Some(_) => said(502, json!({})),
        None => said(201, run.shown()),
    }
}

/// What has ended keeps its end, whatever is sent; annotations come to those that there are.
async fn update(State(shared): State<Shared>, Path((id,)): Path<(u64,)>, Json(mut body): Json<Value>) -> Response {
    let trouble = match admitted(&shared, &body) {
        Ok(trouble) => trouble,
        Err(refusal) => return *refusal,
    };
    let mut hub = shared.hub();
    let Some(run) = hub.runs.iter_mut().find(|run| run.id == id && run.app == APP) else {
        return said(404, json!({"message": "Not Found"}));
    };
    run.annotations.extend(annotations(&mut body));
    let has_ended = run.text("/status") == "completed";
    for (key, value) in body.as_object().unwrap() {
        if !(has_ended && matches!(key.as_str(), "status" | "conclusion")) {
            run.body[key] = value.clone();
        }
    }
    let run = run.clone();
    hub.told.push(format!("over {}", run.told()));
    match trouble {
        Some(_) => said(502, json!({})),
        None => said(200, run.shown()),
    }
}

/// The newest of each name, page by page.
async fn list(State(shared): State<Shared>, Path((sha,)): Path<(String,)>, Query(query): Query<Value>) -> Response {
    let hub = shared.hub();
    if hub.commits.as_ref().is_some_and(|commits| !commits.contains(&sha)) {
        return said(422, json!({"message": format!("No commit found for SHA: {sha}")}));
    }
    let number = |key: &str, otherwise: usize| query[key].as_str().and_then(|it| it.parse().ok()).unwrap_or(otherwise);
    let app = query["app_id"].as_str().and_then(|it| it.parse::<u64>().ok());
    let mut found: Vec<&Run> = Vec::new();
    for run in hub.runs.iter().rev().filter(|run| run.text("/head_sha") == sha) {
        let is_older = found.iter().any(|newer| newer.app == run.app && newer.text("/name") == run.text("/name"));
        if !(query["filter"] == "latest" && is_older) && app.is_none_or(|app| app == run.app) {
            found.push(run);
        }
    }
    let (size, page) = (number("per_page", 30).min(100), number("page", 1));
    let shown: Vec<Value> = found.iter().skip((page - 1) * size).take(size).map(|run| run.shown()).collect();
    said(200, json!({"total_count": found.len(), "check_runs": shown}))
}
