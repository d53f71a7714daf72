//! From a repository's settings to its watcher and the writers of its statuses.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};

use tokio::runtime::Handle;

use crate::clock::Clock;
use crate::config::{History, RepositorySettings, Settings};
use crate::control::app::Parts;
use crate::control::aside::{Aside, Hosts};
use crate::control::code_writer::CodeWriter;
use crate::control::watched::Watched;
use crate::control::watcher::{Host, Watcher};
use crate::control::wiring::MirrorNotes;
use crate::error::{Context, Failure, Result};
use crate::forge::address::{ForgeKind, RepositoryAddress};
use crate::forge::credential::Credential;
use crate::forge::github::app::{AppSettings, Granted, Installation};
use crate::forge::plain::NotesWriter;
use crate::forge::pull_request::PullRequests;
use crate::forge::registration::{Beside, WantedWebhook, Webhooks};
use crate::forge::{HostSettings, azure, bitbucket, gitea, github, gitlab};
use crate::forge::{Refusal, StatusWriter};
use crate::manifest::Options;
use crate::model::commit_status::{CommitStatus, StatusState};
use crate::model::ids::{CommitId, RepositoryName};
use crate::model::seed::Seed;
use crate::report::code::CodeRepository;
use crate::secret::{Given, Giver, Secret, SecretSource};
use crate::source::{Credentials, Limits, Mirror, Remote, RemoteUrl};
use crate::trigger::debounce::Debounce;
use crate::trigger::watch::RefWatches;

/// A watcher for each repository, its statuses' writers registered.
///
/// # Errors
/// If an address is no repository's, or a mirror cannot be opened.
pub(super) async fn watchers(parts: &Parts, settings: &Settings) -> Result<BTreeMap<RepositoryName, Watcher>> {
    let (mut watchers, events, hosts) = (BTreeMap::new(), RefWatches::default(), Hosts::default());
    for repository in &settings.repositories {
        let clock = || parts.driver.clock.clone();
        let place = hosted(settings, repository, clock()).await?;
        let remote = remote(repository, place.as_ref())?;
        let mut watcher = watcher(parts, repository, remote, events.clone(), &hosts).await?;
        let pull_requests = pull_requests(place.clone(), clock()).await?;
        let statuses = statuses(place.clone(), clock()).await?;
        let of_pulls = pull_statuses(place.clone(), statuses.clone(), clock()).await?;
        let deployments = deployments(shown(place.clone(), repository), clock()).await?;
        let code = code(parts, settings, repository, &watcher.watched).await?;
        let writers = writers(parts, repository, &watcher.watched, statuses).into_iter().chain(deployments);
        let writers = writers.chain(code).collect();
        parts.reporter.write_with_pulls(&repository.name, writers, of_pulls.clone());
        watcher.host = pull_requests.zip(of_pulls).zip(place).map(|((pull_requests, statuses), (kind, settings))| {
            let HostSettings { repository, app, .. } = settings;
            Host { pull_requests, statuses, kind, repository, app }
        });
        parts.trees.add(repository.name.clone(), watcher.watched.mirror.clone());
        watchers.insert(repository.name.clone(), watcher);
    }
    Ok(watchers)
}

async fn watcher(
    parts: &Parts,
    settings: &RepositorySettings,
    remote: Remote,
    events: RefWatches,
    hosts: &Hosts,
) -> Result<Watcher> {
    let limits = limits(settings);
    let path = parts.state.mirror(settings.name.as_str());
    let aside = Aside::new(hosts.turns(remote.url.host()));
    let opened = tokio::task::spawn_blocking(move || Mirror::open_or_create(&path, limits)).await;
    let mirror = opened.or_transient(|| "opening the mirror broke off".into())??;
    let seed = parts.driver.store.seed().await?.unwrap_or(Seed::NONE);
    let watched = Watched::new(
        settings.name.clone(),
        remote,
        Arc::new(mirror),
        limits,
        Options { repository: settings.name.clone(), seed },
        settings.history == History::RewriteAllowed,
        aside,
    );
    Ok(Watcher {
        watched: Arc::new(watched),
        requests: Arc::new(Debounce::new()),
        events,
        poll: settings.poll,
        schedule: settings.schedule.clone().map(Arc::new),
        synced: Arc::new(AtomicBool::new(false)),
        metrics: parts.driver.metrics.clone(),
        webhook_secrets: settings.webhook.clone(),
        place: place(settings),
        host: None,
        previews: settings.previews,
        commands: settings.commands,
        allowed_signers: settings.allowed_signers.clone(),
    })
}

/// The sort of a repository's host, and where it is there; nothing needs a token for that.
fn place(settings: &RepositorySettings) -> Option<(ForgeKind, String)> {
    let kind = Some(settings.host()).filter(|kind| *kind != ForgeKind::None)?;
    let RepositoryAddress { owner, name, .. } = address(settings).ok()?;
    Some((kind, format!("{owner}/{name}")))
}

fn limits(settings: &RepositorySettings) -> Limits {
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let limits = settings.limits;
    Limits {
        manifest: limits.manifest,
        launchable: limits.launchable,
        entries: count(limits.entries),
        depth: count(limits.depth),
        fetch: limits.fetch,
    }
}

/// Where a repository is and what opens it; without a branch, if the settings name none.
///
/// # Errors
/// If its address is none, or what opens its host would be sent in the clear.
pub async fn opened(settings: &Settings, repository: &RepositorySettings, clock: Arc<dyn Clock>) -> Result<Remote> {
    remote(repository, hosted(settings, repository, clock).await?.as_ref())
}

fn remote(settings: &RepositorySettings, place: Option<&Place>) -> Result<Remote> {
    let url = RemoteUrl::parse(&settings.url, settings.insecure)?;
    let mut remote = Remote::new(url, settings.branch.clone().unwrap_or_default());
    let files = &settings.credentials;
    let file = |path: &Option<std::path::PathBuf>| path.clone().map(SecretSource::File);
    let by_app = place.filter(|_| files.password.is_none()).and_then(|place| token_of_app(place, remote.url.host()));
    remote.insecure = settings.insecure;
    remote.credentials = Credentials {
        token: file(&files.token).or(by_app),
        username: file(&files.username),
        password: file(&files.password),
        ssh_key_file: files.ssh_key.clone(),
        known_hosts_file: files.known_hosts.clone(),
        ca_file: files.ca.clone(),
    };
    Ok(remote)
}

/// What a GitHub App opens the repository with where Git finds it by HTTP: nowhere else than on its own host.
fn token_of_app((_, settings): &Place, host: &str) -> Option<SecretSource> {
    let is_own = settings.repository.base.host_str().is_some_and(|own| own.eq_ignore_ascii_case(host));
    settings.app.filter(|_| is_own)?;
    let runtime = Handle::try_current().ok()?;
    Some(SecretSource::Given(Given(Arc::new(Awaited { credential: settings.credential.clone(), runtime }))))
}

/// Waits for a token on a thread that may wait: that of whoever speaks to Git.
#[derive(Debug)]
struct Awaited {
    credential: Arc<dyn Credential>,
    runtime: Handle,
}

impl Giver for Awaited {
    fn give(&self) -> Result<Secret> {
        let (given, waits) = mpsc::channel();
        let credential = self.credential.clone();
        // Nobody may wait for it any more.
        self.runtime.spawn(async move { drop(given.send(credential.token().await)) });
        waits.recv().or_transient(|| "getting a token broke off".to_owned())?
    }
}

/// The host's statuses, if it takes any.
async fn statuses(place: Option<Place>, clock: Arc<dyn Clock>) -> Result<Option<Arc<dyn StatusWriter>>> {
    Ok(match place {
        Some((ForgeKind::Gitea, settings)) => Some(gitea::writer(settings, clock).await?),
        Some((ForgeKind::Github, settings)) => Some(github::writer(settings, clock).await?),
        Some((ForgeKind::Gitlab, settings)) => Some(gitlab::writer(settings, clock).await?),
        Some((ForgeKind::Bitbucket, settings)) => Some(bitbucket::cloud(settings, clock).await?),
        Some((ForgeKind::BitbucketDataCenter, settings)) => Some(bitbucket::data_center(settings, clock).await?),
        Some((ForgeKind::Azure, settings)) => Some(azure::writer(settings, clock).await?),
        Some((ForgeKind::None, _)) | None => None,
    })
}

/// Where environments are to show what is deployed, if they are.
fn shown(place: Option<Place>, repository: &RepositorySettings) -> Option<Place> {
    place.filter(|_| repository.deployments)
}

/// What a host's environments show, if it has any.
async fn deployments(place: Option<Place>, clock: Arc<dyn Clock>) -> Result<Option<Arc<dyn StatusWriter>>> {
    Ok(match place {
        Some((ForgeKind::Github, settings)) => Some(github::deployments(settings, clock).await?),
        Some((ForgeKind::Gitlab, settings)) => Some(gitlab::deployments(settings, clock).await?),
        Some(_) | None => None,
    })
}

/// The statuses for the heads of pull requests: on GitLab, one that names the watched branch would count as that branch's.
async fn pull_statuses(
    place: Option<Place>,
    statuses: Option<Arc<dyn StatusWriter>>,
    clock: Arc<dyn Clock>,
) -> Result<Option<Arc<dyn StatusWriter>>> {
    match place {
        Some((ForgeKind::Gitlab, settings)) => {
            Ok(Some(gitlab::writer(HostSettings { branch: None, ..settings }, clock).await?))
        }
        _ => Ok(statuses),
    }
}

/// Where statuses go: to the forge if there is one that takes them, else to Git notes; to both if that is wanted.
fn writers(
    parts: &Parts,
    repository: &RepositorySettings,
    watched: &Watched,
    forge: Option<Arc<dyn StatusWriter>>,
) -> Vec<Arc<dyn StatusWriter>> {
    let mut writers: Vec<Arc<dyn StatusWriter>> = forge.into_iter().collect();
    if writers.is_empty() || repository.notes {
        let (mirror, remote) = (watched.mirror.clone(), watched.remote.clone());
        let notes = MirrorNotes { mirror, remote, clock: parts.driver.clock.clone() };
        writers.push(Arc::new(NotesWriter::new(Arc::new(notes))));
    }
    writers
}

/// The hosts of the code that a repository deploys.
async fn code(
    parts: &Parts,
    settings: &Settings,
    repository: &RepositorySettings,
    watched: &Arc<Watched>,
) -> Result<Vec<Arc<dyn StatusWriter>>> {
    let mut writers: Vec<Arc<dyn StatusWriter>> = Vec::new();
    for code in &repository.code {
        let clock = || parts.driver.clock.clone();
        // The configuration names none without a host and what opens it.
        let Some(host) = statuses(hosted(settings, code, clock()).await?, clock()).await? else { continue };
        let (name, url, is_only) = (code.name.to_string(), code.url.clone(), repository.code.len() == 1);
        let named = CodeRepository { name, url, is_only };
        writers.push(Arc::new(CodeWriter::new(named, watched.clone(), parts.driver.store.clone(), host)));
    }
    Ok(writers)
}

/// Where a repository's pull requests are opened, if its host has those.
async fn pull_requests(place: Option<Place>, clock: Arc<dyn Clock>) -> Result<Option<Arc<dyn PullRequests>>> {
    Ok(match place {
        Some((ForgeKind::Gitea, settings)) => Some(gitea::pull_requests(settings, clock).await?),
        Some((ForgeKind::Github, settings)) => Some(github::pull_requests(settings, clock).await?),
        Some((ForgeKind::Gitlab, settings)) => Some(gitlab::pull_requests(settings, clock).await?),
        Some((ForgeKind::Bitbucket, settings)) => Some(bitbucket::cloud_pull_requests(settings, clock).await?),
        Some((ForgeKind::BitbucketDataCenter, settings)) => {
            Some(bitbucket::data_center_pull_requests(settings, clock).await?)
        }
        Some((ForgeKind::Azure, settings)) => Some(azure::pull_requests(settings, clock).await?),
        Some((ForgeKind::None, _)) | None => None,
    })
}

/// Whether the token may write statuses on a repository's host, if it takes any: tried out on a commit that nobody has.
///
/// # Errors
/// If it may not, or the host cannot be asked.
pub async fn try_statuses(
    settings: &Settings,
    repository: &RepositorySettings,
    clock: Arc<dyn Clock>,
) -> Result<Option<()>> {
    try_out(statuses(hosted(settings, repository, clock.clone()).await?, clock).await?).await
}

/// The same of deployments, if its environments are to show them.
///
/// # Errors
/// As [`try_statuses`].
pub async fn try_deployments(
    settings: &Settings,
    repository: &RepositorySettings,
    clock: Arc<dyn Clock>,
) -> Result<Option<()>> {
    let place = shown(hosted(settings, repository, clock.clone()).await?, repository);
    try_out(deployments(place, clock).await?).await
}

/// Whether the token may open pull requests on a repository's host, if it has any.
///
/// # Errors
/// As [`try_statuses`].
pub async fn try_pull_requests(
    settings: &Settings,
    repository: &RepositorySettings,
    clock: Arc<dyn Clock>,
    base: &str,
) -> Result<Option<()>> {
    match pull_requests(hosted(settings, repository, clock.clone()).await?, clock).await? {
        Some(host) => host.try_out(base).await.map(Some),
        None => Ok(None),
    }
}

async fn try_out(writer: Option<Arc<dyn StatusWriter>>) -> Result<Option<()>> {
    let Some(writer) = writer else { return Ok(None) };
    let status = CommitStatus::new(CommitId::new("0".repeat(40)), "launchway/plan", StatusState::Pending, "tried out");
    match writer.write(&[status]).await {
        Ok(()) | Err(Refusal::Commit(_)) => Ok(Some(())),
        Err(Refusal::All(failure) | Refusal::Busy(failure) | Refusal::Environments { failure, .. }) => Err(failure),
    }
}

/// The webhooks of a repository on its host, if its API is spoken.
///
/// # Errors
/// If its address is none, or its token would be sent in the clear.
pub async fn webhooks(
    settings: &Settings,
    repository: &RepositorySettings,
    clock: Arc<dyn Clock>,
) -> Result<Option<Arc<dyn Webhooks>>> {
    Ok(match hosted(settings, repository, clock.clone()).await? {
        Some((ForgeKind::Gitea, settings)) => Some(gitea::webhooks(settings, clock).await?),
        Some((ForgeKind::Github, settings)) => Some(github::webhooks(settings, clock).await?),
        Some((ForgeKind::Gitlab, settings)) => Some(gitlab::webhooks(settings, clock).await?),
        Some((ForgeKind::Bitbucket, settings)) => Some(bitbucket::cloud_webhooks(settings, clock).await?),
        Some((ForgeKind::BitbucketDataCenter, settings)) => {
            Some(bitbucket::data_center_webhooks(settings, clock).await?)
        }
        Some((ForgeKind::Azure, settings)) => Some(azure::webhooks(settings, clock).await?),
        Some((ForgeKind::None, _)) | None => None,
    })
}

/// The webhook that a repository's host is to have.
///
/// # Errors
/// `Stalled` if the configuration does not say where the host is to call, or has no secret for that.
pub fn wanted_webhook(settings: &Settings, repository: &RepositorySettings) -> Result<WantedWebhook> {
    let name = repository.name.as_str();
    let public_url = settings.public_url.as_deref().ok_or_else(|| {
        Failure::stalled("the configuration has no `publicUrl`, so that no host knows where to call")
            .hint("give the address by which the host reaches this daemon: `publicUrl: https://deploy.example`")
    })?;
    // All are valid at once; the first is the one that stays.
    let secret = repository.webhook.first().ok_or_else(|| {
        Failure::stalled(format!("repository `{name}` has no secret for webhooks")).hint(format!(
            "`openssl rand -hex 32 > {name}.webhook && chmod 600 {name}.webhook`, and in the configuration \
             `webhook: {{secretFiles: [{name}.webhook]}}`"
        ))
    })?;
    let beside = Beside { pulls: repository.previews, comments: repository.commands };
    let others = settings.repositories.iter().map(|other| other.name.to_string());
    let others = others.filter(|other| other != name).collect();
    WantedWebhook::new(public_url, name, others, secret.read()?, repository.branch.clone(), beside)
}

/// A repository's host, and what opens it; its parts share the tokens of an App.
type Place = (ForgeKind, HostSettings);

/// The host that takes a repository's statuses, if there is one, and what opens it.
async fn hosted(settings: &Settings, repository: &RepositorySettings, clock: Arc<dyn Clock>) -> Result<Option<Place>> {
    let (kind, ca_file, insecure) = (repository.host(), repository.credentials.ca.clone(), repository.insecure);
    if kind == ForgeKind::None {
        return Ok(None);
    }
    let credential: Arc<dyn Credential> = match (repository.app(), repository.credentials.token.clone()) {
        (Some(app), _) => installation(app, repository, clock).await?,
        (None, Some(token)) => Arc::new(SecretSource::File(token)),
        (None, None) if repository.forge.is_some() => {
            let message = format!("repository `{}`: statuses on a host need a token", repository.name);
            return Err(Failure::stalled(message)
                .hint("give `credentials: {tokenFile: …}`, or `forge: {kind: none}` for Git notes"));
        }
        (None, None) => return Ok(None),
    };
    let settings = HostSettings {
        repository: address(repository)?,
        credential,
        app: repository.app().map(|app| app.id),
        ca_file,
        insecure,
        public_url: settings.public_url.clone(),
        branch: repository.branch.clone(),
    };
    Ok(Some((kind, settings)))
}

/// What a repository's GitHub App was given, if there is an App.
///
/// # Errors
/// If it is not installed on the repository, or the host cannot be asked.
pub async fn app_granted(repository: &RepositorySettings, clock: Arc<dyn Clock>) -> Result<Option<Granted>> {
    let Some(app) = repository.app() else { return Ok(None) };
    installation(app, repository, clock).await?.granted().await.map(Some)
}

/// Where a repository is on its host.
fn address(repository: &RepositorySettings) -> Result<RepositoryAddress> {
    let forge_url = repository.forge.as_ref().and_then(|forge| forge.url.as_deref());
    RepositoryAddress::on(repository.host(), &repository.url, forge_url)
}

async fn installation(
    app: &AppSettings,
    repository: &RepositorySettings,
    clock: Arc<dyn Clock>,
) -> Result<Arc<Installation>> {
    let ca_file = repository.credentials.ca.clone();
    Installation::new(app, address(repository)?, ca_file, repository.insecure, clock).await
}
