//! The real handler behind the real listener on loopback, and calls to it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use launchway::clock::ManualClock;
use launchway::error::{Failure, Result};
use launchway::forge::address::ForgeKind;
use launchway::forge::webhook::Host;
use launchway::model::comment::Comment;
use launchway::model::git_event::GitEvent;
use launchway::model::ids::RepositoryName;
use launchway::model::rerun::Rerun;
use launchway::model::webhook_call::WebhookCall;
use launchway::secret::Secret;
use launchway::server::listener::{self, Bounds};
use launchway::server::webhook::{HookTarget, Hooks, router};
use launchway::store::ReadStore;
use launchway::store::sqlite::SqliteStore;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long what is written in the background may take.
const LONGEST: Duration = Duration::from_secs(30);

pub(crate) const SECRET: &str = "It's a Secret to Everybody";
pub(crate) const BEFORE: &str = "2b1d0b6d2f3f4f9d0a4c6e0f1a2b3c4d5e6f7a8b";
pub(crate) const AFTER: &str = "6113728f27ae82c7b1a177c8d03f9e96e0adf246";

/// A daemon's webhook side.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    daemon: Arc<Daemon>,
    client: reqwest::Client,
    state: TempDir,
    store: Arc<SqliteStore>,
    shutdown: CancellationToken,
    served: JoinHandle<()>,
}

#[derive(Default)]
struct Daemon {
    syncs: Mutex<Vec<RepositoryName>>,
    answers: Mutex<Vec<&'static str>>,
    asked: Mutex<Vec<(RepositoryName, u64)>>,
}

#[async_trait::async_trait]
impl Hooks for Daemon {
    fn repository(&self, name: &RepositoryName) -> Option<HookTarget> {
        let secrets = match name.as_str() {
            "shop" => vec![Secret::new("the next one"), Secret::new(SECRET)],
            "closed" => Vec::new(),
            _ => return None,
        };
        Some(HookTarget {
            secrets,
            place: Some((ForgeKind::Gitea, "acme/shop".to_owned())),
            branch: Some("main".to_owned()),
            pulls: false,
            commands: true,
            app: Some(1234),
            body_limit: None,
        })
    }

    fn beside(&self, _: &RepositoryName, _: &str) -> Option<RepositoryName> {
        None
    }

    fn sync(&self, name: &RepositoryName) {
        self.syncs.lock().unwrap().push(name.clone());
    }

    async fn asked(&self, name: &RepositoryName, _: Host, comment: Comment) -> Result<bool> {
        match &*comment.author.login {
            "ann" => {}
            "slow" => return Err(Failure::transient("the host does not answer")),
            stranger => return Err(Failure::stalled(format!("`{stranger}` may not write"))),
        }
        let (mut asked, taken) = (self.asked.lock().unwrap(), (name.clone(), comment.id));
        let is_new = !asked.contains(&taken);
        asked.extend(is_new.then_some(taken));
        Ok(is_new)
    }

    async fn rerun(&self, name: &RepositoryName, _: Host, rerun: &Rerun) -> Result<()> {
        self.asked.lock().unwrap().push((name.clone(), rerun.context.iter().count() as u64));
        Ok(())
    }

    async fn happened(&self, _: &RepositoryName, events: &[GitEvent]) -> Result<(), String> {
        let is_awaited = events.iter().any(|event| event.tag_name() == Some("v1"));
        if is_awaited { Ok(()) } else { Err("no sequence waits for it".to_owned()) }
    }

    fn answered(&self, _: &RepositoryName, answer: &'static str) {
        self.answers.lock().unwrap().push(answer);
    }
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        Self::with_bounds(Bounds::default()).await
    }

    pub(crate) async fn with_bounds(bounds: Bounds) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = tempfile::tempdir().unwrap();
        let (daemon, store) = (Arc::new(Daemon::default()), Arc::new(open_store(&state)));
        let routes =
            router(Arc::clone(&daemon) as _, Arc::clone(&store) as _, Arc::new(ManualClock::default()), bounds);
        let shutdown = CancellationToken::new();
        let served = tokio::spawn(listener::serve(listener, routes, bounds, shutdown.clone()));
        Self { address, daemon, client: reqwest::Client::new(), state, store, shutdown, served }
    }

    /// How often the repository was to be synced.
    pub(crate) fn syncs(&self) -> usize {
        self.daemon.syncs.lock().unwrap().len()
    }

    /// Which comments were taken.
    pub(crate) fn asked(&self) -> Vec<u64> {
        self.daemon.asked.lock().unwrap().iter().map(|(_, comment)| *comment).collect()
    }

    /// How calls were answered.
    pub(crate) fn answers(&self) -> Vec<&'static str> {
        self.daemon.answers.lock().unwrap().clone()
    }

    /// What is kept of the calls once it is as expected, newest first: `(result, times, reason)`.
    pub(crate) async fn kept(&self, expected: &[(&str, u64, &str)]) {
        let told = async || {
            let calls = self.store.webhook_calls(&"shop".into()).await.unwrap();
            let told = |call: &WebhookCall| {
                (call.result.as_str().to_owned(), call.times, call.reason.clone().unwrap_or_default())
            };
            calls.newest_first().into_iter().map(told).collect::<Vec<_>>()
        };
        let expected = expected.iter().map(|(result, times, reason)| ((*result).into(), *times, (*reason).into()));
        let expected: Vec<(String, u64, String)> = expected.collect();
        let begun = Instant::now();
        while told().await != expected && begun.elapsed() < LONGEST {
            tokio::task::yield_now().await;
        }
        assert_eq!(told().await, expected);
    }

    /// Another process takes the store over: from now on nothing more is written by this one.
    pub(crate) fn lose_store(&self) -> SqliteStore {
        open_store(&self.state)
    }

    /// Ends it; everything that is under way ends first.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.served.await.unwrap();
    }

    pub(crate) async fn deliver(&self, call: Call) -> (u16, Value) {
        let url = format!("http://{}/webhooks/{}", self.address, call.repository);
        let mut request = self.client.request(call.method, url).body(call.body);
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let expected = if status < 300 { "application/json" } else { "application/problem+json" };
        assert_eq!(kind, expected, "the content type of a {status}");
        (status, response.json().await.unwrap())
    }
}

/// A call as a test changes it.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) method: reqwest::Method,
    pub(crate) repository: &'static str,
    pub(crate) headers: BTreeMap<&'static str, String>,
    pub(crate) body: Vec<u8>,
}

impl Call {
    pub(crate) fn gitea(body: &Value, id: &str) -> Self {
        let body = serde_json::to_vec_pretty(body).unwrap();
        let signature = sign(&body);
        let call = Self::new(body)
            .header("x-gitea-event", "push")
            .header("x-gitea-delivery", id)
            .header("x-gitea-signature", &signature);
        // Gitea sends its relatives' headers too.
        call.header("x-gogs-event", "push")
            .header("x-github-event", "push")
            .header("x-github-delivery", id)
            .header("x-hub-signature-256", &format!("sha256={signature}"))
    }

    pub(crate) fn github(event: &str, body: &Value, id: &str) -> Self {
        let body = serde_json::to_vec(body).unwrap();
        let signature = format!("sha256={}", sign(&body));
        Self::new(body)
            .header("x-github-event", event)
            .header("x-github-delivery", id)
            .header("x-hub-signature-256", &signature)
    }

    pub(crate) fn generic(body: &Value, id: &str) -> Self {
        let body = serde_json::to_vec(body).unwrap();
        let signature = format!("sha256={}", sign(&body));
        Self::new(body).header("x-delivery", id).header("x-signature", &signature)
    }

    /// In the words of Forgejo or Gogs, which sign as Gitea does.
    pub(crate) fn like_gitea(names: [&'static str; 3], body: &Value, id: &str) -> Self {
        let body = serde_json::to_vec(body).unwrap();
        let signature = sign(&body);
        let [event, delivery, header] = names;
        Self::new(body).header(event, "push").header(delivery, id).header(header, &signature)
    }

    /// With the secret itself, as older GitLabs do.
    pub(crate) fn gitlab(event: &str, body: &Value, id: &str) -> Self {
        let call = Self::new(serde_json::to_vec(body).unwrap());
        call.header("x-gitlab-event", event).header("idempotency-key", id).header("x-gitlab-token", SECRET)
    }

    /// Bitbucket Cloud with an id of the hook, Data Center without.
    pub(crate) fn bitbucket(event: &str, hook: Option<&str>, body: &Value, id: &str) -> Self {
        let body = serde_json::to_vec(body).unwrap();
        let signature = format!("sha256={}", sign(&body));
        let call = Self::new(body).header("x-event-key", event).header("x-hub-signature", &signature);
        match hook {
            Some(hook) => call.header("x-hook-uuid", hook).header("x-request-uuid", id),
            None => call.header("x-request-id", id),
        }
    }

    pub(crate) fn azure(body: &Value) -> Self {
        let password = STANDARD.encode(format!(":{SECRET}"));
        let call = Self::new(serde_json::to_vec(body).unwrap());
        call.header("user-agent", "VSServices/19.225").header("authorization", &format!("Basic {password}"))
    }

    /// As Standard Webhooks sign, so many seconds after 1970.
    pub(crate) fn standard(body: &Value, id: &str, at: i64) -> Self {
        let body = serde_json::to_vec(body).unwrap();
        let signed = [format!("{id}.{at}.").as_bytes(), &body].concat();
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()), &signed);
        let call = Self::new(body).header("webhook-id", id).header("webhook-timestamp", &at.to_string());
        call.header("webhook-signature", &format!("v1,{}", STANDARD.encode(tag)))
    }

    fn new(body: Vec<u8>) -> Self {
        let headers = BTreeMap::from([("content-type", "application/json".to_owned())]);
        Self { method: reqwest::Method::POST, repository: "shop", headers, body }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.insert(name, value.to_owned());
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.remove(name);
        self
    }

    pub(crate) fn to(mut self, repository: &'static str) -> Self {
        self.repository = repository;
        self
    }

    pub(crate) fn method(mut self, method: reqwest::Method) -> Self {
        self.method = method;
        self
    }

    /// Another body, signed again.
    pub(crate) fn signed_body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        let signature = sign(&self.body);
        for (name, value) in &mut self.headers {
            match *name {
                "x-gitea-signature" => value.clone_from(&signature),
                "x-hub-signature-256" | "x-hub-signature" | "x-signature" => *value = format!("sha256={signature}"),
                _ => {}
            }
        }
        self
    }
}

pub(crate) fn push() -> Value {
    json!({"ref": "refs/heads/main", "before": BEFORE, "after": AFTER, "commits": null, "repository": {"id": 35}})
}

pub(crate) fn push_with(field: &str, value: Value) -> Value {
    let mut body = push();
    body[field] = value;
    body
}

fn open_store(state: &TempDir) -> SqliteStore {
    SqliteStore::open(&state.path().join("store.db"), Arc::new(ManualClock::default())).unwrap()
}

fn sign(body: &[u8]) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()), body);
    tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
