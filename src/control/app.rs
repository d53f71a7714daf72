//! The composition root: a daemon, put together from its settings.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::{Clock, Ids, SystemClock, Ulids, rfc3339};
use crate::config::{self, AccessToken, RepositorySettings, Settings};
use crate::control::accounts;
use crate::control::commands::operator::Operator;
use crate::control::comments::WatchedComments;
use crate::control::environments::Environments;
use crate::control::housekeeping::Housekeeping;
use crate::control::imports;
use crate::control::previews::WatchedPreviews;
use crate::control::proposals::WatchedProposals;
use crate::control::replanning;
use crate::control::reporter::StatusReporter;
use crate::control::repository;
use crate::control::reruns::WatchedReruns;
use crate::control::state_folder::{Ownership, StateFolder};
use crate::control::watcher::Watcher;
use crate::control::wiring::{MirrorTrees, WatchedDeclarations, WatchedHooks};
use crate::error::{Context, Failure, Result};
use crate::executor::admission::Admission;
use crate::executor::deployer_tokens::DeployerTokens;
use crate::executor::drive::Driver;
use crate::executor::outbox::Outbox;
use crate::executor::perform::Performer;
use crate::executor::reconciler::Reconciler;
use crate::executor::sink_lane::SinkLane;
use crate::executor::sinks::{Subscriber, Subscribers};
use crate::indicators::prometheus::PrometheusIndicators;
use crate::model::ids::{Incarnation, RepositoryName};
use crate::model::run::TaskLimits;
use crate::registry::http::HttpRegistry;
use crate::runtime::local::launchable::{self, LaunchableSettings, Launchables};
use crate::runtime::local::service::Services;
use crate::runtime::local::{Allow, LocalOptions, LocalRuntime, Program, open_files};
use crate::server::access::{Access, Role, Token};
use crate::server::host::PublicAddress;
use crate::server::listener::{self, Bounds};
use crate::server::presence::{Presence, deployer_key, operator_token};
use crate::server::query::Query;
use crate::server::socket::{self, Listening, Socket};
use crate::server::state::ServerState;
use crate::server::{router, webhook};
use crate::sinks::http::{HttpSink, SinkSettings};
use crate::store::sqlite::SqliteStore;
use crate::store::{CommitError, Store};

/// How many announcements of the runtime a slow listener may miss before it has to examine everything.
const ANNOUNCEMENTS: usize = 1024;
/// Where to find pods' commands when the daemon's own environment does not say.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Where systemd's journal listens.
const JOURNAL: &str = "/run/systemd/journal/socket";
/// How long a shutdown waits for what is under way; whatever is not done then is done after the next start.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(10);
/// How long what is taken down may take to end.
const DOWN_PATIENCE: Duration = Duration::from_secs(120);
/// How long an address may be in use before that is reported, and how often it is tried.
const BIND_PATIENCE: Duration = Duration::from_secs(1);
const BIND_PAUSE: Duration = Duration::from_millis(20);

/// Connections to each socket of the state folder that are served at once, of all users.
const SOCKET_CONNECTIONS: usize = 1024;

/// A running daemon.
pub struct App {
    /// Tells runs facts, and knows the store.
    pub driver: Driver,
    /// What is watched.
    pub watchers: Arc<BTreeMap<RepositoryName, Watcher>>,
    /// Answers questions.
    pub query: Query,
    /// Where it is reached.
    pub url: String,
    stop: CancellationToken,
    tasks: TaskTracker,
    state: std::path::PathBuf,
    _ownership: Ownership,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("url", &self.url).finish_non_exhaustive()
    }
}

/// The daemon that uses a state folder, as it announced itself; nothing while it starts.
pub fn owner_of(state: &Path) -> Option<String> {
    let Presence { url, pid, since } = Presence::read(state).ok().flatten().filter(Presence::is_running)?;
    let since = since.map_or_else(String::new, |since| format!(" since {}", rfc3339(since)));
    Some(format!("process {pid} serves {url}{since}"))
}

/// What every part of a daemon shares.
pub(super) struct Parts {
    pub(super) driver: Driver,
    pub(super) runtime: Arc<LocalRuntime>,
    pub(super) reporter: Arc<StatusReporter>,
    pub(super) housekeeping: Housekeeping,
    pub(super) trees: Arc<MirrorTrees>,
    pub(super) state: StateFolder,
    pub(super) indicators: Arc<PrometheusIndicators>,
    sinks: Vec<SinkLane>,
    pub(super) tokens: DeployerTokens,
}

impl App {
    /// Starts a daemon on a state folder.
    ///
    /// # Errors
    /// If the folder belongs to another daemon, the address is in use, or a part cannot be opened.
    pub async fn start(settings: &Settings, state: &Path) -> Result<Self> {
        Self::start_over(settings, state, |store| store).await
    }

    /// The same, over the store that `wrap` makes of the daemon's own.
    ///
    /// # Errors
    /// As [`App::start`].
    pub async fn start_over(
        settings: &Settings,
        state: &Path,
        wrap: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
    ) -> Result<Self> {
        let others = settings.repositories.iter().any(|repository| !repository.allow.users.is_empty());
        let folder = StateFolder::new(state).for_pods_of_others(others);
        let ownership = folder.take(|| owner_of(state))?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let ids: Arc<dyn Ids> = Arc::new(Ulids::default());
        let listener = bind(settings.listen).await?;
        let store = wrap(Arc::new(SqliteStore::open(&folder.store(), clock.clone())?));
        let mut parts = assemble(settings, folder, store, clock, ids)?;
        let watchers = Arc::new(repository::watchers(&parts, settings).await?);
        for watcher in watchers.values() {
            if let Err(failure) = watcher.watched.register(&parts.driver).await {
                let (repository, problem) = (&watcher.watched.name, failure.one_line());
                tracing::error!(%repository, problem, "cannot read what is known of a repository; the others go on");
            }
        }
        // Whoever was shut out of the store stops too, as if told to.
        let (stop, tasks) = (parts.driver.fenced().child_token(), TaskTracker::new());
        let address = listener.local_addr().or_transient(|| "cannot tell the daemon's address".into())?;
        let url = format!("http://{address}");
        let Driver { store, hindrances, selectors, renderings, subscribers, .. } = parts.driver.clone();
        let watched = watchers.values().map(|watcher| (watcher.watched.name.clone(), watcher.watched.clone()));
        let watched = Some(Arc::new(watched.collect()));
        let query = Query {
            store,
            runtime: Some(parts.runtime.clone()),
            hindrances,
            selectors,
            renderings,
            subscribers: Some(subscribers),
            watched,
        };
        serve(settings, &parts, &watchers, query.clone(), listener, &stop, &tasks).await?;
        work(&mut parts, &watchers, &stop, &tasks);
        for repository in &settings.repositories {
            let registry = HttpRegistry::new(repository.registries.clone());
            tasks.spawn(imports::run(parts.driver.clone(), registry, repository.name.clone(), stop.clone()));
        }
        Presence { url: url.clone(), pid: std::process::id(), since: Some(parts.driver.clock.now()) }
            .announce(state)?;
        let state = state.to_owned();
        Ok(Self { driver: parts.driver, watchers, query, url, stop, tasks, state, _ownership: ownership })
    }

    /// Waits until nothing of a repository that was taken down runs any more; each pod ends within its grace period.
    ///
    /// # Errors
    /// If the store or the runtime cannot be read.
    pub async fn wait_until_gone(&self, repository: &RepositoryName) -> Result<()> {
        let mut changes = self.driver.changes();
        let started = Instant::now();
        while self.runs_anything(repository).await? {
            if started.elapsed() > DOWN_PATIENCE {
                return Err(Failure::waiting(format!("pods or services of {repository} still end"))
                    .hint("start the daemon, and `launchway get pods` says why"));
            }
            // Pods end without the store knowing: this checks for their ends at short intervals too.
            drop(tokio::time::timeout(Duration::from_millis(100), changes.recv()).await);
        }
        Ok(())
    }

    /// Whether anything of a repository runs, or of the environments of its pull requests.
    async fn runs_anything(&self, repository: &RepositoryName) -> Result<bool> {
        let state = self.driver.store.repository(repository).await?;
        Ok(state.is_some_and(|state| !state.value.environments.is_empty())
            || self.query.runs_anything(repository).await?)
    }

    /// Waits until another process has taken the state folder's store: this one does nothing any more.
    pub async fn lost(&self) -> Failure {
        self.driver.fenced().cancelled().await;
        CommitError::Fenced.into()
    }

    /// Asks everything to end, and waits for it within bounds; pods and services go on.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(SHUTDOWN_PATIENCE, self.tasks.wait()).await.is_err() {
            tracing::warn!("something did not end in time; it is taken up again at the next start");
        }
        if let Err(failure) = socket::withdraw(&self.state) {
            tracing::warn!(problem = failure.one_line(), "cannot take the sockets away");
        }
        if let Ok(Some(presence)) = Presence::read(&self.state)
            && presence.pid == std::process::id()
            && let Err(failure) = presence.withdraw(&self.state)
        {
            tracing::warn!(problem = failure.one_line(), "cannot say that the daemon is gone");
        }
    }
}

/// Listens. A process that a daemon was starting when it was killed may have its socket for another moment.
async fn bind(address: SocketAddr) -> Result<TcpListener> {
    let since = Instant::now();
    loop {
        match TcpListener::bind(address).await {
            Err(error) if error.kind() == ErrorKind::AddrInUse && since.elapsed() < BIND_PATIENCE => {
                tokio::time::sleep(BIND_PAUSE).await;
            }
            bound => {
                return bound.map_err(|error| {
                    Failure::stalled(format!("cannot listen on {address}"))
                        .because(error)
                        .hint("another program may use it: choose another with `listen`, or port 0 for any free one")
                });
            }
        }
    }
}

fn assemble(
    settings: &Settings,
    state: StateFolder,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
) -> Result<Parts> {
    let trees = Arc::new(MirrorTrees::default());
    let life = store.incarnation().clone();
    let runtime = Arc::new(local_runtime(settings, &state, life, trees.clone(), clock.clone())?);
    for repository in &settings.repositories {
        runtime.allow(repository.name.clone(), allowed(repository)?);
    }
    let limits = TaskLimits { start: settings.sequences.task_start_timeout, run: settings.sequences.task_timeout };
    let subscriber = |sink: &SinkSettings| {
        Arc::new(Subscriber::new(sink.name.clone(), sink.place().to_owned(), sink.subscriptions.clone()))
    };
    let subscribers: Vec<Arc<Subscriber>> = settings.sinks.iter().map(subscriber).collect();
    let driver = Driver::new(store, clock, ids).with_limits(limits);
    let driver = driver.with_subscribers(Subscribers::new(subscribers.clone()));
    let lane = |(subscriber, sink): (Arc<Subscriber>, &SinkSettings)| {
        Ok(SinkLane::new(driver.clone(), subscriber, Arc::new(HttpSink::new(sink.clone())?)))
    };
    let sinks = subscribers.into_iter().zip(&settings.sinks).map(lane).collect::<Result<_>>()?;
    let reporter = Arc::new(StatusReporter::new(driver.clone()).on(runtime.clone()));
    let housekeeping = Housekeeping { driver: driver.clone(), runtime: runtime.clone(), policy: settings.retention };
    let opened = settings.repositories.iter().map(|it| (it.name.clone(), it.prometheus.clone()));
    let indicators = Arc::new(PrometheusIndicators::new(opened)?);
    let tokens = DeployerTokens::new(deployer_key(state.root())?.as_bytes(), driver.store.incarnation().clone());
    Ok(Parts { driver, runtime, reporter, housekeeping, trees, state, indicators, sinks, tokens })
}

fn local_runtime(
    settings: &Settings,
    state: &StateFolder,
    incarnation: Incarnation,
    trees: Arc<MirrorTrees>,
    clock: Arc<dyn Clock>,
) -> Result<LocalRuntime> {
    // A pod may take a descriptor of the daemon's.
    let open_files = open_files::raise();
    let program = std::env::current_exe().or_stalled(|| "cannot find the running program".into())?;
    let program = Arc::new(Program::at(program).with_open_files(open_files));
    let root = state.local_runtime();
    let changes = broadcast::channel(ANNOUNCEMENTS).0;
    let hosts = settings.repositories.iter().filter(|repository| repository.allow.host_image);
    let host_allowed: BTreeSet<RepositoryName> = hosts.map(|repository| repository.name.clone()).collect();
    let mut hidden = settings.secret_files();
    hidden.push(state.root().to_owned());
    // A link in their paths may lead elsewhere later on: where they are now is hidden, too.
    hidden.extend(hidden.iter().filter_map(|path| path.canonicalize().ok()).collect::<Vec<_>>());
    let limits = settings.repositories.iter().map(|it| (it.name.clone(), launchable_limits(&it.limits)));
    let mut launchables = LaunchableSettings::new(program, hidden.clone());
    (launchables.host_allowed, launchables.limits_by_repository) = (host_allowed, limits.collect());
    launchables.ca_file = settings.repositories.iter().find_map(|repository| repository.credentials.ca.clone());
    std::fs::create_dir_all(&root).or_stalled(|| format!("cannot make `{}`", root.display()))?;
    let images = Launchables::open(&root, launchables, trees, changes.clone())?;
    let shims = Arc::new(Program::smallest().with_open_files(open_files));
    let services = Services::open(root.clone(), shims.clone())?;
    LocalRuntime::open(LocalOptions {
        root,
        hidden,
        incarnation,
        program: shims,
        search_path: std::env::var("PATH").unwrap_or_else(|_| SEARCH_PATH.to_owned()),
        logs: settings.logs,
        journal: settings.journald.then(|| JOURNAL.into()),
        clock,
        images: Arc::new(images),
        services: Arc::new(services),
        changes,
    })
}

fn launchable_limits(limits: &config::Limits) -> launchable::Limits {
    launchable::Limits {
        bytes: limits.launchable,
        entries: limits.entries,
        depth: usize::try_from(limits.depth).unwrap_or(usize::MAX),
        build: limits.build,
    }
}

/// What a repository may use of the machine; users are given by name or number.
fn allowed(repository: &RepositorySettings) -> Result<Allow> {
    let id = |user: &String| {
        let unknown = || format!("repository `{}`: `allow.users` names `{user}`", repository.name);
        user.parse::<u32>().map_err(|_not_a_number| Failure::stalled(unknown()).hint("give users by number"))
    };
    Ok(Allow {
        users: repository.allow.users.iter().map(id).collect::<Result<_>>()?,
        host_paths: repository.allow.host_paths.clone(),
        host_image: repository.allow.host_image,
    })
}

async fn serve(
    settings: &Settings,
    parts: &Parts,
    watchers: &Arc<BTreeMap<RepositoryName, Watcher>>,
    query: Query,
    listener: TcpListener,
    stop: &CancellationToken,
    tasks: &TaskTracker,
) -> Result<()> {
    let bounds = Bounds::default();
    let operator = operator(parts, watchers);
    let (comments, reruns) = (WatchedComments::new(operator.clone()), WatchedReruns::new(operator.clone()));
    let state = ServerState {
        query,
        commands: Some(Arc::new(operator)),
        access: Arc::new(access(settings, parts.state.root())?),
        started_at: parts.driver.clock.now(),
        watched: watchers.keys().cloned().collect(),
        hook_turns: Arc::default(),
        body_patience: bounds.body,
        stop: stop.clone(),
    };
    let hooks = Arc::new(WatchedHooks {
        watchers: watchers.clone(),
        comments,
        reruns,
        driver: parts.driver.clone(),
        metrics: parts.driver.metrics.clone(),
    });
    let (store, clock) = (parts.driver.store.clone(), parts.driver.clock.clone());
    let metrics = parts.driver.metrics.clone();
    let api = router::router(state.clone());
    let deployers = router::deployers(state.clone(), parts.tokens.clone());
    let whole = api
        .clone()
        .merge(webhook::router(hooks, store, clock, bounds))
        .merge(router::metrics(state, move || metrics.encode()));
    let [for_commands, for_hooks, for_deployers] = sockets(settings, &parts.state)?;
    tasks.spawn(listener::serve(listener, whole.clone(), bounds, stop.clone()));
    let bounds = Bounds { connections: SOCKET_CONNECTIONS, ..bounds };
    tasks.spawn(listener::serve(for_commands, whole, bounds, stop.clone()));
    tasks.spawn(listener::serve(for_hooks, api, bounds, stop.clone()));
    tasks.spawn(listener::serve(for_deployers, deployers, bounds, stop.clone()));
    Ok(())
}

/// What carries out what people ask for.
fn operator(parts: &Parts, watchers: &Arc<BTreeMap<RepositoryName, Watcher>>) -> Operator {
    let (driver, housekeeping) = (parts.driver.clone(), parts.housekeeping.clone());
    Operator { driver, watchers: watchers.clone(), housekeeping }
}

/// The sockets for commands, for hooks and for deployers, where others find them.
fn sockets(settings: &Settings, state: &StateFolder) -> Result<[Listening; 3]> {
    let group_id = |name: &String| {
        let unknown = || Failure::stalled(format!("`access.socketGroup`: there is no group `{name}` here"));
        accounts::group_id(name).ok_or_else(|| unknown().hint("give it by number if this machine knows it otherwise"))
    };
    let group = settings.socket_group.as_ref().map(group_id).transpose()?;
    let commands = Listening::open(Socket::Commands, state.root(), group)?;
    let hooks = Listening::open(Socket::Hooks, state.root(), None)?;
    let deployers = Listening::open(Socket::Deployers, state.root(), None)?;
    if let Err(failure) = state.let_through() {
        tracing::warn!(problem = failure.one_line(), "other users cannot reach the sockets in the state folder");
    }
    Ok([commands, hooks, deployers])
}

/// Who may read and act.
fn access(settings: &Settings, state: &Path) -> Result<Access> {
    let mut tokens = vec![Token::new("operator", Role::Operate, operator_token(state)?)];
    for token in &settings.tokens {
        tokens.push(access_token(token)?);
    }
    let public = settings.public_url.as_deref().map(public_address).transpose()?;
    Ok(Access { tokens, loopback: settings.listen.ip().is_loopback(), public })
}

/// An address that is not understood is no reason to think that nothing stands before this server.
fn public_address(url: &str) -> Result<PublicAddress> {
    let unknown = || Failure::stalled(format!("`publicUrl`: `{url}` names no host that requests could name"));
    PublicAddress::parse(url).ok_or_else(|| unknown().hint("in ASCII (`xn--…`), with a port in digits if it has one"))
}

fn access_token(token: &AccessToken) -> Result<Token> {
    let role = match token.role {
        crate::config::Role::Read => Role::Read,
        crate::config::Role::Operate => Role::Operate,
    };
    Ok(Token::new(token.name.clone(), role, token.token.read()?.reveal()))
}

/// Whoever asks next for what is said of a head hears the same failure, and better.
async fn read_heads(driver: Driver, stop: CancellationToken) {
    if let Some(Err(failure)) = stop.run_until_cancelled(driver.renderings.read_heads(&*driver.store)).await {
        tracing::debug!(problem = failure.one_line(), "cannot read what is said of heads");
    }
}

/// Starts everything that works by itself.
fn work(
    parts: &mut Parts,
    watchers: &Arc<BTreeMap<RepositoryName, Watcher>>,
    stop: &CancellationToken,
    tasks: &TaskTracker,
) {
    let proposals = Arc::new(WatchedProposals { driver: parts.driver.clone(), watchers: watchers.clone() });
    let driver = parts.driver.clone();
    let environments = Environments::new(driver.clone(), parts.runtime.clone());
    tasks.spawn(environments.clone().follow(stop.clone()));
    let previews = Arc::new(WatchedPreviews { driver, watchers: watchers.clone(), environments });
    let (runtime, indicators) = (parts.runtime.clone(), parts.indicators.clone());
    let comments = Arc::new(WatchedComments::new(operator(parts, watchers)));
    let (driver, tokens) = (parts.driver.clone(), parts.tokens.clone());
    let performer = Performer { driver, runtime, proposals, previews, comments, indicators, tokens };
    let declarations = Arc::new(WatchedDeclarations { watchers: watchers.clone(), store: parts.driver.store.clone() });
    let reconciler = Reconciler::new(parts.driver.clone(), parts.runtime.clone(), declarations);
    let (outbox, caught_up, stopped) = (Outbox::new(performer), reconciler.caught_up(), stop.clone());
    tasks.spawn(async move {
        // A deadline that passed while no daemon ran says nothing of pods that got ready meanwhile.
        tokio::select! { () = stopped.cancelled() => return, () = caught_up => {} }
        outbox.run(stopped).await;
    });
    for lane in std::mem::take(&mut parts.sinks) {
        tasks.spawn(lane.run(stop.clone()));
    }
    tasks.spawn(Admission::new(parts.driver.clone()).run(stop.clone()));
    tasks.spawn(parts.reporter.clone().run(stop.clone()));
    tasks.spawn(reconciler.run(stop.clone()));
    let (asked, stopped) = (watchers.clone(), stop.clone());
    let ask = move |name: &RepositoryName| asked.get(name).into_iter().for_each(|watcher| watcher.requests.request());
    let replanning = replanning::run(parts.driver.changes(), watchers.keys().cloned().collect(), ask);
    tasks.spawn(async move { stopped.run_until_cancelled(replanning).await.unwrap_or_default() });
    tasks.spawn(parts.housekeeping.clone().run(stop.clone()));
    tasks.spawn(read_heads(parts.driver.clone(), stop.clone()));
    for watcher in watchers.values() {
        tasks.spawn(watcher.clone().run(parts.driver.clone(), stop.clone()));
    }
}
