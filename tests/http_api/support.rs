//! A server over a simulated world.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use launchway::control::commands::generate::generate;
use launchway::control::commands::{Command, Commands, Done, Refusal};
use launchway::engine::transition::Input;
use launchway::error::Failure;
use launchway::executor::drive::Driver;
use launchway::model::event::Event;
use launchway::model::shipyard::{APPROVAL_TASK, Sequence, Shipyard, Stage, Task};
use launchway::model::time::Timestamp;
use launchway::model::transaction::Write;
use launchway::server::access::{Access, Role, Token};
use launchway::server::api::hooks::HookTurns;
use launchway::server::listener::{self, Bounds};
use launchway::server::query::Query;
use launchway::server::router::router;
use launchway::server::socket::{Listening, Socket};
use launchway::server::state::ServerState;
use launchway::simulation::runtime::Behaviour;
use launchway::simulation::world::World;
use launchway::store::sqlite::SqliteReader;
use launchway::testing::world::{config_key, deployment_config, hook, project};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

/// A token that may act.
pub(crate) const OPERATOR: &str = "an-operators-secret";
/// A token that may read.
pub(crate) const READER: &str = "a-readers-secret";

/// The time between syncs that hooks ask for.
pub(crate) const HOOKS_SPACED: Duration = Duration::from_millis(200);

/// A server that answers until it is dropped.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) asked: Arc<Recorder>,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) router: Router,
    http: reqwest::Client,
    bounds: Bounds,
    running: DropGuard,
}

/// Remembers commands instead of carrying them out; what is only generated is.
pub(crate) struct Recorder {
    all: Mutex<Vec<(Command, String)>>,
    driver: Driver,
}

#[async_trait]
impl Commands for Recorder {
    async fn act(&self, command: Command, by: &str) -> Result<Done, Refusal> {
        if let Command::Retry { .. } = command {
            return Err(Refusal::Conflict(Failure::stalled("rollout #1 is complete").hint("use `rollout latest`")));
        }
        match command {
            Command::Generate(asked) if asked.carry_out.is_none() => {
                return generate(&self.driver, "deploymentconfig/web", *asked, by).await;
            }
            command => self.all.lock().unwrap().push((command, by.to_owned())),
        }
        Ok(Done { message: "rolled out".into(), ..Done::default() })
    }
}

impl Recorder {
    pub(crate) fn all(&self) -> Vec<(Command, String)> {
        self.all.lock().unwrap().clone()
    }
}

/// A shop with two stages, of which `web` was pushed twice; the second time its pre hook failed.
pub(crate) async fn shop() -> Server {
    shop_watching(&[]).await
}

/// The same, behind a listener of these bounds.
pub(crate) async fn shop_within(bounds: Bounds) -> Server {
    let (folder, world) = pushed_twice().await;
    serve(folder, &world, &[], bounds).await
}

/// The same, in a daemon that watches repositories of these names.
pub(crate) async fn shop_watching(watched: &[&str]) -> Server {
    let (folder, world) = pushed_twice().await;
    serve(folder, &world, watched, Bounds::default()).await
}

async fn pushed_twice() -> (tempfile::TempDir, World) {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::open(folder.path()).unwrap();
    let params = json!({"maxSurge": 1, "maxUnavailable": 0, "pre": hook("Abort")});
    let spec = json!({"strategy": {"type": "Rolling", "rollingParams": params}});
    let shop = |image: &str| project(two_stages(), &[deployment_config("web", image, 2, spec.clone())]);
    world.push(&shop("a")).await.unwrap();
    world.settle().await.unwrap();
    world.runtime.behave("web-2-hook-pre", Behaviour::fails(3));
    world.push(&shop("b")).await.unwrap();
    world.settle().await.unwrap();
    (folder, world)
}

/// A shop of which three versions of `web` were good, each with one pod more and another strategy than the one before.
pub(crate) async fn shop_of_three_versions() -> Server {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::open(folder.path()).unwrap();
    for (image, replicas) in [("a", 1), ("b", 2), ("c", 3)] {
        let params = json!({"maxSurge": replicas, "maxUnavailable": 0});
        let spec = json!({"strategy": {"type": "Rolling", "rollingParams": params}});
        world.push(&project(two_stages(), &[deployment_config("web", image, replicas, spec)])).await.unwrap();
        world.settle().await.unwrap();
    }
    serve(folder, &world, &[], Bounds::default()).await
}

/// A shop whose `web` is a test that was deployed.
pub(crate) async fn shop_at_rest() -> Server {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::open(folder.path()).unwrap();
    world.push(&project(two_stages(), &[deployment_config("web", "a", 2, json!({"test": true}))])).await.unwrap();
    world.settle().await.unwrap();
    serve(folder, &world, &[], Bounds::default()).await
}

/// A shop whose `web` was deployed, and is paused since.
pub(crate) async fn shop_paused() -> Server {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::open(folder.path()).unwrap();
    for paused in [false, true] {
        let spec = json!({"paused": paused});
        world.push(&project(two_stages(), &[deployment_config("web", "a", 1, spec)])).await.unwrap();
        world.settle().await.unwrap();
    }
    serve(folder, &world, &[], Bounds::default()).await
}

/// A shop of which `web` was pushed, and pushed again without a change while its deployment hangs.
pub(crate) async fn shop_under_way() -> Server {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::open(folder.path()).unwrap();
    let shop = project(two_stages(), &[deployment_config("web", "a", 1, json!({}))]);
    world.runtime.behave("web-1-0", Behaviour::Hangs);
    world.push(&shop).await.unwrap();
    world.settle().await.unwrap();
    world.push(&shop).await.unwrap();
    world.settle().await.unwrap();
    serve(folder, &world, &[], Bounds::default()).await
}

/// A shop whose only delivery waits for a person.
pub(crate) async fn shop_that_asks() -> Server {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::open(folder.path()).unwrap();
    let mut stages = two_stages();
    stages.stages[0].sequences[0].tasks.insert(0, Task::named(APPROVAL_TASK));
    world.push(&project(stages, &[deployment_config("web", "a", 1, json!({}))])).await.unwrap();
    world.settle().await.unwrap();
    serve(folder, &world, &[], Bounds::default()).await
}

/// A shop whose only version was scaled so often.
pub(crate) async fn shop_scaled(times: u32) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::open(folder.path()).unwrap();
    world.push(&project(two_stages(), &[deployment_config("web", "a", 1, json!({}))])).await.unwrap();
    world.settle().await.unwrap();
    let scaled = |to: u32| {
        let event = Box::new(Event::Scaled { version: Some(1), from: 0, to, by: "ann".into() });
        Input::Write(Box::new(Write::Event { run: config_key("dev", "web").events(), at: Timestamp(0), event }))
    };
    let all: Vec<Input> = (1..=times).map(scaled).collect();
    world.driver.commit(&all).await.unwrap();
    serve(folder, &world, &[], Bounds::default()).await
}

fn two_stages() -> Shipyard {
    let task = |name: &str| Task::named(name);
    let delivery = || Sequence { name: "delivery".into(), tasks: vec![task("deployment")], ..Sequence::default() };
    let stage = |name: &str| Stage { name: name.into(), sequences: vec![delivery()] };
    Shipyard { name: "shop".into(), stages: vec![stage("dev"), stage("production")], ..Shipyard::default() }
}

async fn serve(folder: tempfile::TempDir, world: &World, watched: &[&str], bounds: Bounds) -> Server {
    let asked = Arc::new(Recorder { all: Mutex::default(), driver: world.driver.clone() });
    let store = Arc::new(SqliteReader::open(&folder.path().join("store.db")).unwrap());
    let tokens = vec![Token::new("ann", Role::Operate, OPERATOR), Token::new("ci", Role::Read, READER)];
    let shutdown = CancellationToken::new();
    let state = ServerState {
        query: Query {
            store,
            runtime: Some(world.runtime.clone()),
            hindrances: Arc::default(),
            selectors: world.driver.selectors.clone(),
            renderings: Arc::default(),
            subscribers: None,
            watched: None,
        },
        commands: Some(asked.clone()),
        access: Arc::new(Access { tokens, loopback: true, public: None }),
        watched: watched.iter().map(|name| (*name).into()).collect(),
        started_at: Timestamp(0),
        hook_turns: Arc::new(HookTurns::spaced(HOOKS_SPACED)),
        body_patience: bounds.body,
        stop: shutdown.clone(),
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = router(state);
    tokio::spawn(listener::serve(listener, router.clone(), bounds, shutdown.clone()));
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    Server { url, asked, folder, router, http, bounds, running: shutdown.drop_guard() }
}

impl Server {
    /// Serves on a socket of the state folder too.
    pub(crate) fn open(&self, socket: Socket) {
        let listening = Listening::open(socket, self.folder.path(), None).unwrap();
        let stop = self.running.token().clone();
        tokio::spawn(listener::serve(listening, self.router.clone(), self.bounds, stop));
    }

    /// A client that asks over a socket of the state folder.
    pub(crate) fn over(&self, socket: Socket) -> reqwest::Client {
        reqwest::Client::builder().unix_socket(socket.path(self.folder.path())).build().unwrap()
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url))
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.unwrap()
    }

    pub(crate) async fn json(&self, path: &str) -> Value {
        let response = self.get(path).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        response.json().await.unwrap()
    }

    pub(crate) async fn page(&self, path: &str) -> String {
        let response = self.get(path).await;
        assert_eq!(response.headers()["content-type"], "text/html; charset=utf-8", "{path}");
        response.text().await.unwrap()
    }
}
