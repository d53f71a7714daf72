//! The daemon's webhook side, as Gitea reaches it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use launchway::clock::ManualClock;
use launchway::error::Result;
use launchway::forge::webhook::Host;
use launchway::model::comment::Comment;
use launchway::model::git_event::GitEvent;
use launchway::model::ids::RepositoryName;
use launchway::model::rerun::Rerun;
use launchway::secret::Secret;
use launchway::server::listener::{Bounds, serve};
use launchway::server::webhook::{HookTarget, Hooks, router};
use launchway::store::sqlite::SqliteStore;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::repository::Repository;
use crate::work_tree::WorkTree;

pub(crate) const SECRET: &str = "known to both";

/// Gitea delivers within a second; on a busy machine later.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// What the handler answered to one delivery.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

pub(crate) struct Receiver {
    pub(crate) url: String,
    daemon: Arc<Daemon>,
    answers: UnboundedReceiver<Answered>,
    _state: TempDir,
    _running: DropGuard,
}

#[derive(Default)]
struct Daemon {
    looks: Mutex<usize>,
}

#[async_trait::async_trait]
impl Hooks for Daemon {
    fn repository(&self, name: &RepositoryName) -> Option<HookTarget> {
        let target = HookTarget {
            secrets: vec![Secret::new(SECRET)],
            place: None,
            branch: Some("main".to_owned()),
            pulls: false,
            app: None,
            commands: false,
            body_limit: None,
        };
        (name.as_str() == "shop").then_some(target)
    }

    fn beside(&self, _: &RepositoryName, _: &str) -> Option<RepositoryName> {
        None
    }

    fn sync(&self, _: &RepositoryName) {
        *self.looks.lock().unwrap() += 1;
    }

    async fn asked(&self, _: &RepositoryName, _: Host, _: Comment) -> Result<bool> {
        Ok(false)
    }

    async fn rerun(&self, _: &RepositoryName, _: Host, _: &Rerun) -> Result<()> {
        Ok(())
    }

    async fn happened(&self, _: &RepositoryName, _: &[GitEvent]) -> Result<(), String> {
        Err("no sequence waits for it".to_owned())
    }

    fn answered(&self, _: &RepositoryName, _: &'static str) {}
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let state = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::default());
        let store = SqliteStore::open(&state.path().join("store.db"), Arc::clone(&clock) as _).unwrap();
        let (daemon, bounds) = (Arc::new(Daemon::default()), Bounds::default());
        let (sender, answers) = unbounded_channel();
        let routes = router(Arc::clone(&daemon) as _, Arc::new(store), clock, bounds)
            .layer(middleware::from_fn(move |request, next| record(sender.clone(), request, next)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/webhooks/shop", listener.local_addr().unwrap());
        let shutdown = CancellationToken::new();
        tokio::spawn(serve(listener, routes, bounds, shutdown.clone()));
        Self { url, daemon, answers, _state: state, _running: shutdown.drop_guard() }
    }

    /// Registers itself with an empty repository and sees its first push; the work tree, and the hook's id. A hook that
    /// comes after a push may still be told of it, because Gitea looks hooks up when it gets to that push.
    pub(crate) async fn watch(&mut self, repository: &Repository) -> (WorkTree, u64) {
        let hook = repository.add_hook(&self.url, SECRET, "json").await;
        let tree = repository.first_push().await;
        // A new branch is told twice, in no certain order.
        let mut events = [self.next().await, self.next().await].map(|answered| answered.body["event"].to_string());
        events.sort();
        assert_eq!(events, [r#""create""#, r#""push""#]);
        assert_eq!(self.looks(), 1);
        (tree, hook)
    }

    /// What is answered to the next delivery.
    pub(crate) async fn next(&mut self) -> Answered {
        tokio::time::timeout(DELIVERY_TIMEOUT, self.answers.recv()).await.expect("Gitea delivers nothing").unwrap()
    }

    /// How often a sync of the repository was asked for.
    pub(crate) fn looks(&self) -> usize {
        *self.daemon.looks.lock().unwrap()
    }
}

async fn record(sender: UnboundedSender<Answered>, request: Request, next: Next) -> Response {
    let (parts, body) = next.run(request).await.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let answered = Answered { status: parts.status.as_u16(), body: serde_json::from_slice(&bytes).unwrap_or_default() };
    sender.send(answered).unwrap();
    Response::from_parts(parts, Body::from(bytes))
}
