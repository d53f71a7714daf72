//! A webhook that `repository check` registers and has tried out, by a small host that calls the daemon as real ones do.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard};

use aws_lc_rs::hmac;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::support::daemon::{World, private, repository};
use crate::support::git_http::GitHttp;

const SECRET: &str = "kept-by-both";
const TOKEN: &str = "d8a1c2e3f4051627384950617283940516273849";

/// What the host has.
#[derive(Default)]
struct Hosted {
    /// What is shown of each webhook, with its secret.
    hooks: Vec<(Value, String)>,
    writes: usize,
    /// Whether its calls get lost.
    is_cut_off: bool,
    forbids: bool,
}

type Shared = Arc<Mutex<Hosted>>;

/// GitHub, Bitbucket Data Center and Bitbucket Cloud in one, as far as webhooks go; it ends when dropped.
struct Host {
    address: SocketAddr,
    hosted: Shared,
    _runtime: tokio::runtime::Runtime,
}

impl Host {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let (address, hosted) = (listener.local_addr().unwrap(), Shared::default());
        let hooks = || {
            Router::new()
                .route("/", get(list).post(create))
                .route("/test", post(connection))
                .route("/{id}", axum::routing::patch(update).put(update))
                .route("/{id}/pings", post(ping))
        };
        let app = Router::new()
            .nest("/api/v3/repos/moody/origin/hooks", hooks())
            .nest("/rest/api/latest/projects/moody/repos/origin/webhooks", hooks())
            .nest("/2.0/repositories/moody/origin/hooks", hooks())
            .fallback(async || (StatusCode::UNPROCESSABLE_ENTITY, "No commit found for SHA"))
            .with_state(Arc::clone(&hosted));
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self { address, hosted, _runtime: runtime }
    }

    fn hosted(&self) -> MutexGuard<'_, Hosted> {
        self.hosted.lock().unwrap()
    }
}

/// What GitHub, Data Center and Cloud each call the page; only the first lists plainly.
async fn list(State(hosted): State<Shared>, Query(query): Query<Value>) -> Response {
    let hosted = hosted.lock().unwrap();
    if hosted.forbids {
        return StatusCode::NOT_FOUND.into_response();
    }
    let all: Vec<Value> = hosted.hooks.iter().map(|(shown, _)| shown.clone()).collect();
    let is_plain = !query["per_page"].is_null();
    Json(if is_plain { Value::Array(all) } else { json!({"values": all}) }).into_response()
}

/// What is shown of a webhook, and its secret.
fn taken(id: usize, mut body: Value) -> (Value, String) {
    let secret = ["/config/secret", "/configuration/secret", "/secret"].iter().find_map(|pointer| {
        let secret = body.pointer_mut(pointer)?.take();
        secret.as_str().map(str::to_owned)
    });
    if body.pointer("/config/url").is_some() {
        body["config"]["secret"] = json!("********");
    }
    body["id"] = json!(id);
    body["uuid"] = json!(id.to_string());
    (body, secret.unwrap())
}

async fn create(State(hosted): State<Shared>, Json(body): Json<Value>) -> Response {
    let mut hosted = hosted.lock().unwrap();
    hosted.writes += 1;
    let hook = taken(hosted.hooks.len(), body);
    hosted.hooks.push(hook.clone());
    (StatusCode::CREATED, Json(hook.0)).into_response()
}

async fn update(State(hosted): State<Shared>, Path(id): Path<usize>, Json(body): Json<Value>) -> Json<Value> {
    let mut hosted = hosted.lock().unwrap();
    hosted.writes += 1;
    let hook = taken(id, body);
    hosted.hooks[id] = hook.clone();
    Json(hook.0)
}

async fn ping(State(hosted): State<Shared>, Path(id): Path<usize>) -> StatusCode {
    let ((shown, secret), is_cut_off) = {
        let hosted = hosted.lock().unwrap();
        (hosted.hooks[id].clone(), hosted.is_cut_off)
    };
    if !is_cut_off {
        let body = json!({"zen": "Design for failure.", "hook_id": id}).to_string();
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), body.as_bytes());
        let digits: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let call = reqwest::Client::new().post(shown["config"]["url"].as_str().unwrap());
        let call = call.header("x-github-event", "ping").header("content-type", "application/json");
        call.header("x-hub-signature-256", format!("sha256={digits}")).body(body).send().await.unwrap();
    }
    StatusCode::NO_CONTENT
}

/// Data Center does not sign what it tries out.
async fn connection(Query(query): Query<Value>) -> Json<Value> {
    let call = reqwest::Client::new().post(query["url"].as_str().unwrap());
    let call = call.header("x-event-key", "diagnostics:ping").header("content-type", "application/json");
    let status = call.body(r#"{"test":true}"#).send().await.unwrap().status().as_u16();
    Json(json!({"response": {"statusCode": status}}))
}

/// A daemon that could be called, not started yet, whose repository is on the host.
fn world(host: &Host, server: &GitHttp, world: &World, kind: &str, more: &str) -> String {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (token, secret) = (world.git.path("token"), world.git.path("secret"));
    private(&token, TOKEN);
    private(&secret, SECRET);
    let settings = [
        format!("forge: {{kind: {kind}, url: 'http://{}'}}", host.address),
        format!("credentials: {{tokenFile: {}}}", token.display()),
        format!("webhook: {{secretFiles: [{}]}}", secret.display()),
    ];
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let repository = repository("shop", &server.url("moody/origin.git"), &settings);
    let text = format!("listen: 127.0.0.1:{port}\n{more}repositories:\n{repository}");
    std::fs::write(world.config(), text.replace("PORT", &port.to_string())).unwrap();
    format!("http://127.0.0.1:{port}/webhooks/shop")
}

/// How a check ends and what it prints, and what it prints as JSON.
fn checked(world: &World, more: &[&str]) -> (Option<i32>, String, Value) {
    let config = world.config().display().to_string();
    let arguments = [&["repository", "check", "shop", "--config", &config], more].concat();
    let output = world.run(&arguments);
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(!told.contains(SECRET) && !told.contains(TOKEN), "{told}");
    (output.status.code(), told, world.json(&arguments)[0]["webhook"].clone())
}

const PUBLIC: &str = "publicUrl: http://127.0.0.1:PORT\n";
const REGISTER: &[&str] = &["--register-webhook"];

#[test]
fn a_webhook_is_registered_tried_out_and_left_as_it_is_by_a_second_check() {
    let world = World::new(&[]);
    let (host, server) = (Host::start(), GitHttp::start(world.git.root()));
    let url = self::world(&host, &server, &world, "github", PUBLIC);
    world.git.push_files(&[("readme", "1")]);
    let (code, told, found) = checked(&world, &[]);
    assert_eq!((code, &found["state"]), (Some(0), &json!("missing")), "{told}");
    let command = format!("repository check shop --config {} --register-webhook", world.config().display());
    assert!(told.contains(&format!("GitHub has none that calls {url}")) && told.contains(&command), "{told}");
    assert!(told.contains("statuses: the token may write them"), "{told}");
    assert!(told.contains("pull requests: the token may open them"), "{told}");
    assert_eq!(host.hosted().writes, 0, "a look changes nothing");

    let (code, told, found) = checked(&world, REGISTER);
    assert_eq!((code, &found["state"]), (Some(1), &json!("right")), "registered by the first of two: {told}");
    assert!(told.contains("no daemon answers, so that no test delivery was asked for"), "{told}");
    world.start();
    let (code, told, found) = checked(&world, REGISTER);
    assert_eq!((code, &found["delivery"]["event"]), (Some(0), &json!("ping")), "{told}");
    assert!(told.contains("test delivery: ping was ignored: `ping` is not a push"), "{told}");
    assert_eq!(host.hosted().writes, 1, "a second check changes nothing");
    assert!(world.tell(&["repository", "deliveries"]).contains("ping"));

    // GitHub shows no secret: that the call is refused tells.
    host.hosted().hooks[0].1 = "another".to_owned();
    let (code, told, _) = checked(&world, REGISTER);
    assert!(told.contains("repaired: GitHub calls") && told.contains("another secret than the daemon"), "{told}");
    assert_eq!((code, host.hosted().hooks[0].1.as_str()), (Some(0), SECRET));
    host.hosted().hooks[0].0["active"] = json!(false);
    let (_, told, found) = checked(&world, &[]);
    assert!(told.contains("it is switched off") && told.contains("repairs it"), "{told}");
    assert_eq!(found["state"], "wrong");
    let (code, told, _) = checked(&world, REGISTER);
    assert!(code == Some(0) && told.contains("(it is switched off)"), "{told}");
    assert_eq!(host.hosted().hooks.len(), 1);

    host.hosted().is_cut_off = true;
    let config = world.config().display().to_string();
    let output = world.run(&["repository", "check", "shop", "--config", &config, "--register-webhook"]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("was asked for a test delivery, and none came within 20 s"), "{told}");
}

#[test]
fn hosts_that_try_out_without_a_signature_or_not_at_all_say_so() {
    for (kind, expected) in [
        ("bitbucket-data-center", "does not sign what it tries out"),
        ("bitbucket", "sends no test when it is asked to: push a commit"),
    ] {
        let world = World::new(&[]);
        let (host, server) = (Host::start(), GitHttp::start(world.git.root()));
        self::world(&host, &server, &world, kind, PUBLIC);
        world.git.push_files(&[("readme", "1")]);
        world.start();
        for writes in [1, 1] {
            let (code, told, _) = checked(&world, REGISTER);
            assert!(code == Some(0) && told.contains(expected), "{kind}: {told}");
            assert_eq!(host.hosted().writes, writes, "{kind}: a second check changes nothing");
        }
    }
}

#[test]
fn what_the_configuration_or_the_token_lacks_is_said_with_what_to_do() {
    let world = World::new(&[]);
    let (host, server) = (Host::start(), GitHttp::start(world.git.root()));
    world.git.push_files(&[("readme", "1")]);
    self::world(&host, &server, &world, "github", "");
    let (code, told, found) = checked(&world, REGISTER);
    assert_eq!((code, &found["state"]), (Some(1), &json!("unconfigured")), "{told}");
    assert!(told.contains("has no `publicUrl`") && told.contains("`publicUrl: https://"), "{told}");
    assert_eq!(checked(&world, &[]).0, Some(0), "polling does without");

    self::world(&host, &server, &world, "github", PUBLIC);
    host.hosted().forbids = true;
    let (code, told, _) = checked(&world, REGISTER);
    assert_eq!(code, Some(1), "{told}");
    assert!(
        told.contains("does not show the repository's webhooks") && told.contains("`Webhooks: read and write`"),
        "{told}"
    );
    let text = std::fs::read_to_string(world.config()).unwrap();
    let without: String =
        text.lines().filter(|line| !line.contains("webhook:")).map(|line| format!("{line}\n")).collect();
    std::fs::write(world.config(), without).unwrap();
    let (code, told, _) = checked(&world, REGISTER);
    assert!(code == Some(1) && told.contains("has no secret for webhooks") && told.contains("openssl rand"), "{told}");
}
