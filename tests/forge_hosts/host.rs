//! What the doubles share: a server, what it was sent, and what it does wrong when it is told to.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::{Json, Router};
use launchway::clock::{Clock, ManualClock};
use launchway::forge::address::{ForgeKind, RepositoryAddress};
use launchway::server::listener::{Bounds, serve};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Routes of a host on which a project's path is one segment, which the router would take apart.
pub(crate) fn with_whole_paths(inner: Router) -> Router {
    Router::new().fallback_service(tower::service_fn(move |mut request: Request| {
        let path = request.uri().to_string().replace("%2F", "/");
        *request.uri_mut() = path.parse().unwrap();
        tower::ServiceExt::oneshot(inner.clone(), request)
    }))
}

/// Where a host of a kind has the repository of these tests.
pub(crate) fn repository(kind: ForgeKind, host: &Host) -> RepositoryAddress {
    let path = match kind {
        ForgeKind::Azure => "acme/web/_git/shop",
        ForgeKind::BitbucketDataCenter => "scm/ACME/shop.git",
        _ => "acme/shop.git",
    };
    RepositoryAddress::on(kind, &format!("http://{}/{path}", host.address), None).unwrap()
}

/// A page of a list as a host of a kind gives it, whose pages have no more than `most`, and as it says that there is more.
pub(crate) fn paged(kind: ForgeKind, most: usize, query: &BTreeMap<String, String>, all: &[Value]) -> Response {
    let number = |name: &str| query.get(name).and_then(|text| text.parse::<usize>().ok());
    let size = ["limit", "per_page", "pagelen", "$top"].iter().find_map(|name| number(name)).unwrap_or(usize::MAX);
    let size = size.min(most);
    // Pages are counted from 1; others say how many come before.
    let before = number("page").map(|page| (page - 1) * size).or(number("start")).or(number("$skip"));
    let before = before.unwrap_or_default().min(all.len());
    let page = &all[before..before.saturating_add(size).min(all.len())];
    let next = Some(before + page.len()).filter(|next| *next < all.len());
    let link = next.map(|_| (header::LINK, "<https://host.example/?cursor=9>; rel=\"next\"".to_owned()));
    match kind {
        ForgeKind::Bitbucket => {
            let mut told = json!({"values": page, "pagelen": size});
            if next.is_some() {
                told["next"] = json!("https://host.example/?cursor=9");
            }
            Json(told).into_response()
        }
        ForgeKind::BitbucketDataCenter => {
            Json(json!({"values": page, "isLastPage": next.is_none(), "nextPageStart": next})).into_response()
        }
        ForgeKind::Azure => Json(json!({"value": page, "count": page.len()})).into_response(),
        ForgeKind::Github | ForgeKind::Gitlab => (AppendHeaders(link), Json(page)).into_response(),
        _ => ([("x-total-count", all.len().to_string())], Json(page)).into_response(),
    }
}

/// What goes wrong with the next request that writes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// It is answered so, and nothing happens.
    Status(u16),
    /// It is done, and answered as if it had failed.
    Lost,
}

/// A webhook.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hook {
    pub(crate) id: String,
    pub(crate) secret: Option<String>,
    pub(crate) whole: Value,
}

/// A deployment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Deployed {
    pub(crate) id: u64,
    pub(crate) sha: String,
    pub(crate) environment: String,
    /// What whoever made it keeps with it; on GitLab the name of the job that made it, if one did.
    pub(crate) payload: Value,
    /// All that was said of it, oldest first.
    pub(crate) states: Vec<Value>,
}

impl Deployed {
    /// What was said of it last.
    pub(crate) fn state(&self) -> &str {
        self.states.last().and_then(|last| last["state"].as_str()).unwrap_or("created")
    }
}

/// What a host knows.
#[derive(Default)]
pub(crate) struct World {
    /// Every status that was taken: the commit and the body, oldest first.
    pub(crate) rows: Vec<(String, Value)>,
    /// When it was taken, in milliseconds.
    pub(crate) at: Vec<i64>,
    /// Every pull request that was made, in the order of their numbers, in the words of Gitea.
    pub(crate) pulls: Vec<Value>,
    /// Every deployment, oldest first.
    pub(crate) deployments: Vec<Deployed>,
    /// The environments that were made, where the host makes them by themselves.
    pub(crate) environments: BTreeSet<String>,
    /// The environments in which the token may not deploy.
    pub(crate) protected: BTreeSet<String>,
    /// Where environments lead, and how often that was said.
    pub(crate) links: BTreeMap<String, (String, usize)>,
    /// How many ids were given away.
    pub(crate) ids: u64,
    /// Every webhook that is there, in the words of its host, with the secret beside what is shown of it.
    pub(crate) hooks: Vec<Hook>,
    /// The webhooks that were tried out, by their ids.
    pub(crate) tried: Vec<String>,
    /// Whether the token may do what is asked for.
    pub(crate) forbids: bool,
    pub(crate) faults: VecDeque<Fault>,
    /// The most that a page has.
    pub(crate) most: usize,
    /// The labels that there are, oldest first.
    pub(crate) labels: Vec<Value>,
    /// The commits that are there.
    pub(crate) commits: Vec<String>,
    /// How often a limit of the host was broken.
    pub(crate) limits_broken: usize,
    /// How many requests came without the token.
    pub(crate) strangers: usize,
}

impl World {
    pub(crate) fn next(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    /// One more deployment, of which nothing was said yet; gives its id.
    pub(crate) fn deploy(&mut self, sha: &str, environment: &str, payload: &Value) -> u64 {
        let (id, states) = (self.next(), Vec::new());
        let (sha, environment, payload) = (sha.to_owned(), environment.to_owned(), payload.clone());
        self.deployments.push(Deployed { id, sha, environment, payload, states });
        id
    }
}

/// A running double.
pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    pub(crate) shared: Shared,
    _running: DropGuard,
}

/// What its handlers see.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) world: Arc<Mutex<World>>,
    pub(crate) clock: Arc<ManualClock>,
}

impl Shared {
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    pub(crate) fn now(&self) -> i64 {
        self.clock.now().0
    }
}

impl Host {
    pub(crate) async fn start(
        clock: Arc<ManualClock>,
        token: &'static str,
        header: &'static str,
        routes: impl FnOnce(Shared) -> Router,
    ) -> Self {
        let world =
            World { commits: vec![crate::COMMIT.to_owned(), crate::OTHER.to_owned()], most: 100, ..World::default() };
        let shared = Shared { world: Arc::new(Mutex::new(world)), clock };
        let seen = shared.clone();
        let guard = from_fn(move |request: Request, next: Next| {
            let seen = seen.clone();
            async move { authorized(&seen, token, header, request, next).await }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        tokio::spawn(serve(listener, routes(shared.clone()).layer(guard), Bounds::default(), shutdown.clone()));
        Self { address, shared, _running: shutdown.drop_guard() }
    }

    pub(crate) fn fail_next(&self, faults: impl IntoIterator<Item = Fault>) {
        self.shared.world().faults.extend(faults);
    }

    /// One field of each status of a commit with its state, oldest first.
    pub(crate) fn rows(&self, commit: &str, name: &str) -> Vec<String> {
        let text = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
        let world = self.shared.world();
        let of_commit = world.rows.iter().filter(|(sha, _)| sha == commit);
        of_commit
            .map(|(_, row)| format!("{} {} {}", text(row, "state"), text(row, name), text(row, "description")))
            .collect()
    }
}

async fn authorized(shared: &Shared, token: &str, header: &str, request: Request, next: Next) -> Response {
    let given = request.headers().get(header).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if given != token {
        shared.world().strangers += 1;
        return StatusCode::UNAUTHORIZED.into_response();
    }
    next.run(request).await
}
