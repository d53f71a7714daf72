//! What the environments of a host show of a real daemon's deliveries, on a small GitHub.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::daemon_edges::survival::{SERVICE, service_address};
use crate::support::daemon::{World, eventually, private, repository, sleeper};
use crate::support::git_http::GitHttp;

/// What the host has.
#[derive(Default)]
struct Hosted {
    /// Each deployment as it was asked for, with what was said of it.
    deployments: Vec<(Value, Vec<Value>)>,
    /// Whether the token may do no more than write commit statuses.
    forbids: bool,
    /// Whether it takes a deployment and does not answer.
    hangs: bool,
}

type Shared = Arc<Mutex<Hosted>>;

/// A GitHub with deployments; it ends when dropped.
struct Github {
    address: SocketAddr,
    hosted: Shared,
    _runtime: tokio::runtime::Runtime,
}

impl Github {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let (address, hosted) = (listener.local_addr().unwrap(), Shared::default());
        let repository = Router::new()
            .route("/commits/{commit}/statuses", get(async || Json(json!([]))))
            .route("/statuses/{commit}", axum::routing::post(async || StatusCode::CREATED))
            .route("/deployments", get(list).post(create))
            .route("/deployments/{id}/statuses", get(statuses).post(say));
        let app = Router::new().nest("/api/v3/repos/moody/origin", repository).with_state(Arc::clone(&hosted));
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self { address, hosted, _runtime: runtime }
    }

    fn hosted(&self) -> MutexGuard<'_, Hosted> {
        self.hosted.lock().unwrap()
    }

    /// Commit, environment and last state of each deployment, oldest first.
    fn shows(&self) -> Vec<(String, String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let shown = |(body, said): &(Value, Vec<Value>)| {
            let state = said.last().map(|last| text(&last["state"])).unwrap_or_default();
            (text(&body["ref"]), text(&body["environment"]), state)
        };
        self.hosted().deployments.iter().map(shown).collect()
    }
}

async fn list(State(hosted): State<Shared>, Query(query): Query<Value>) -> Response {
    let hosted = hosted.lock().unwrap();
    if hosted.forbids {
        return StatusCode::FORBIDDEN.into_response();
    }
    let all = hosted.deployments.iter().enumerate().map(|(id, (body, _))| (id, body));
    let asked = all.filter(|(_, body)| body["ref"] == query["sha"] && body["environment"] == query["environment"]);
    Json(asked.map(|(id, body)| json!({"id": id, "payload": body["payload"]})).collect::<Value>()).into_response()
}

async fn create(State(hosted): State<Shared>, Json(body): Json<Value>) -> Response {
    if body["ref"] == "0".repeat(40) {
        return (StatusCode::UNPROCESSABLE_ENTITY, "No ref found").into_response();
    }
    let (id, hangs) = {
        let mut hosted = hosted.lock().unwrap();
        hosted.deployments.push((body, Vec::new()));
        (hosted.deployments.len() - 1, hosted.hangs)
    };
    if hangs {
        std::future::pending::<()>().await;
    }
    (StatusCode::CREATED, Json(json!({"id": id}))).into_response()
}

async fn statuses(State(hosted): State<Shared>, Path(id): Path<usize>) -> Json<Value> {
    Json(Value::Array(hosted.lock().unwrap().deployments[id].1.clone()))
}

async fn say(State(hosted): State<Shared>, Path(id): Path<usize>, Json(body): Json<Value>) -> StatusCode {
    hosted.lock().unwrap().deployments[id].1.push(body);
    StatusCode::CREATED
}

/// A deployment config whose pods have this variable.
fn web(variable: &str) -> String {
    sleeper("web", "type: Recreate", variable)
}

#[test]
fn environments_show_what_a_real_daemon_delivers_and_never_twice() {
    let world = World::new(&[]);
    let (host, server) = (Github::start(), GitHttp::start(world.git.root()));
    let token = world.git.path("token");
    private(&token, "d8a1c2e3f4051627384950617283940516273849\n");
    let more = [
        format!("forge: {{kind: github, url: 'http://{}'}}", host.address),
        format!("credentials: {{tokenFile: {}}}", token.display()),
        "notes: true".to_owned(),
        "deployments: true".to_owned(),
    ];
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    world.configure(&repository("shop", &server.url("moody/origin.git"), &more));
    host.hosted().forbids = true;
    let first = world.git.push_files(&[("web.yaml", &web("1")), ("service.yaml", SERVICE)]);
    world.start();
    world.status(&first, "launchway/default", "success");
    let problem = || world.json(&["repository", "list"])["items"][0]["statusProblem"].as_str().unwrap_or("").to_owned();
    eventually("the lack of a right is told", || problem().contains("github-deployments: the token may not create"));
    let config = world.config().display().to_string();
    let check = || String::from_utf8(world.run(&["repository", "check", "shop", "--config", &config]).stdout).unwrap();
    let told = check();
    assert!(told.contains("  statuses: the token may write them\n  deployments: the token may not create"), "{told}");
    assert!(told.contains("`Deployments: read and write`"), "{told}");
    assert!(told.contains("  not written by the daemon: github-deployments: the token may not create"), "{told}");

    // What is told late is what serves.
    host.hosted().forbids = false;
    assert!(check().contains("  deployments: the token may write them\n"));
    assert!(host.shows().is_empty(), "a check makes none");
    eventually("the head's deployment", || {
        world.tell(&["sync"]);
        host.shows() == [(first.clone(), "default".to_owned(), "success".to_owned())]
    });
    eventually("nothing is wrong", || problem().is_empty());

    // The daemon dies after the host has made one, and before it knows.
    host.hosted().hangs = true;
    let second = world.git.push_files(&[("web.yaml", &web("2"))]);
    world.tell(&["sync"]);
    eventually("a deployment without an answer", || host.shows().len() == 2);
    world.kill();
    host.hosted().hangs = false;
    world.start();
    let of = |commit: &str, state: &str| (commit.to_owned(), "default".to_owned(), state.to_owned());
    let both = [of(&first, "success"), of(&second, "success")];
    eventually("the same deployment has succeeded", || host.shows() == both);

    // Going back deploys the earlier revision once more.
    world.tell(&["rollback", "dc/web", "--to-version", "1"]);
    let again = [both[0].clone(), both[1].clone(), both[0].clone()];
    eventually("the first one is there again", || host.shows() == again);
    let last = host.hosted().deployments[2].clone();
    assert_eq!(last.0["payload"], json!({"launchway": "default#2"}));
    assert_eq!((last.0["auto_merge"].clone(), last.0["required_contexts"].clone()), (json!(false), json!([])));
    let said: Vec<&Value> = last.1.iter().map(|said| &said["state"]).collect();
    assert!(said == ["in_progress", "success"] || said == ["success"], "{said:?}");
    assert!(last.1.iter().all(|said| said["auto_inactive"] == true), "{last:?}");
    let address = format!("http://{}", service_address(&world).trim_end_matches(":80"));
    assert_eq!(last.1.last().map(|said| &said["environment_url"]), Some(&json!(address)), "where the stage answers");
}
