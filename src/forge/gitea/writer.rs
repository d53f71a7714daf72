//! Writes commit statuses through Gitea's API.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use http::header::{AUTHORIZATION, LOCATION, RETRY_AFTER};
use http::{HeaderValue, Method, StatusCode};
use reqwest::{Certificate, Client, Response, Url};
use serde::Deserialize;
use tokio::sync::OnceCell;

use super::answer::refusal;
use super::redirect;
use super::status::{GiteaStatus, Rendering, knows_skipped};
use crate::clock::{Clock, rfc3339};
use crate::error::{Context, Failure, Result};
use crate::forge::address::RepositoryAddress;
use crate::forge::{Refusal, StatusWriter, retry_after};
use crate::model::commit_status::{CommitStatus, StatusState};
use crate::model::ids::{CommitId, WriterName};
use crate::model::time::Timestamp;
use crate::secret::{Secret, SecretSource};

/// Each status is a request of its own; a call should end within seconds.
const BATCH: usize = 50;

/// A server that does not accept a connection within this time is down.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A healthy server answers within milliseconds, also under load within this.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// Statuses of a page; Gitea's own limit.
const PAGE_SIZE: usize = 50;

/// Pages that are read to see what is there already. What is beyond is written again, which shows nothing new.
const PAGE_LIMIT: usize = 20;

/// The most that is read of an answer: a page of statuses with their authors has about 100 KiB.
const ANSWER_LIMIT: usize = 4 * 1024 * 1024;

/// Where and how statuses are written.
#[derive(Clone, Debug)]
pub struct GiteaSettings {
    /// The repository.
    pub repository: RepositoryAddress,
    /// A token of the scope `write:repository`, read again for every call.
    pub token: SecretSource,
    /// A file with certificates (PEM) to trust beside the system's.
    pub ca_file: Option<PathBuf>,
    /// Whether the token may be sent over `http://` to another machine.
    pub insecure: bool,
    /// The daemon's public address, for links.
    pub public_url: Option<String>,
}

/// Writes commit statuses through Gitea's API.
pub struct GiteaStatusWriter {
    settings: GiteaSettings,
    client: Client,
    clock: Arc<dyn Clock>,
    knows_skipped: OnceCell<bool>,
    /// The server asked to be left alone until then.
    quiet_until: Mutex<Timestamp>,
}

impl std::fmt::Debug for GiteaStatusWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GiteaStatusWriter").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl GiteaStatusWriter {
    /// A writer with these settings. `Stalled` if the token would be sent in the clear, or certificates cannot be read.
    pub async fn new(settings: GiteaSettings, clock: Arc<dyn Clock>) -> Result<Self> {
        require_encryption(&settings)?;
        let client = client(settings.ca_file.as_deref()).await?;
        Ok(Self { settings, client, clock, knows_skipped: OnceCell::new(), quiet_until: Mutex::default() })
    }

    /// Writes what is not there yet on one commit.
    async fn write_commit(&self, token: &Secret, commit: &CommitId, wanted: Vec<GiteaStatus>) -> Result<(), Refusal> {
        let present = self.present(token, commit).await?;
        for status in wanted.iter().filter(|status| !present.contains(status)) {
            let url = self.repository_url(["statuses", commit.as_str()]);
            let body = serde_json::to_vec(status).or_stalled(|| "cannot encode a status".to_owned());
            let body = body.map_err(Refusal::Commit)?;
            let answer = self.send(Method::POST, url, token, Some(body)).await?;
            self.require_success(answer, commit).await?;
        }
        Ok(())
    }

    /// The latest status of each context that is on a commit. Reading first makes a repeated call show nothing twice,
    /// also when the answer to an earlier one was lost or the daemon died before it came.
    async fn present(&self, token: &Secret, commit: &CommitId) -> Result<Vec<GiteaStatus>, Refusal> {
        let mut present = Vec::new();
        for page in 1..=PAGE_LIMIT {
            let mut url = self.repository_url(["commits", commit.as_str(), "status"]);
            url.query_pairs_mut().append_pair("page", &page.to_string()).append_pair("limit", &PAGE_SIZE.to_string());
            let answer = self.send(Method::GET, url, token, None).await?;
            if answer.status() == StatusCode::NOT_FOUND {
                // The commit or the repository is unknown; the answer to writing tells which.
                break;
            }
            let text = self.require_success(answer, commit).await?;
            let page: CombinedStatus = serde_json::from_slice(&text)
                .or_stalled(|| "the answer is not Gitea's; is `forge.url` right?".to_owned())
                .map_err(Refusal::All)?;
            let statuses = page.statuses.unwrap_or_default();
            let is_last = statuses.len() < PAGE_SIZE;
            present.extend(statuses);
            if is_last {
                break;
            }
        }
        Ok(present)
    }

    /// Whether the server knows the state `skipped`; no, if it cannot be asked now.
    async fn knows_skipped(&self, token: &Secret) -> bool {
        let ask = async || {
            let url = self.settings.repository.api(["api", "v1", "version"]);
            let answer = self
                .send(Method::GET, url, token, None)
                .await
                .map_err(|refusal| Failure::transient(refusal.failure().one_line()))?;
            let text = read_bounded(answer).await?;
            let version: Version = serde_json::from_slice(&text).or_transient(|| "no version".to_owned())?;
            Ok::<_, Failure>(knows_skipped(&version.version))
        };
        self.knows_skipped.get_or_try_init(ask).await.is_ok_and(|known| *known)
    }

    /// Sends a request, and again to where it leads on the same host: there Gitea has what was renamed.
    async fn send(&self, method: Method, url: Url, token: &Secret, body: Option<Vec<u8>>) -> Result<Response, Refusal> {
        let authorization = authorization(token).map_err(Refusal::All)?;
        let mut url = url;
        for _redirect in 0..=redirect::LIMIT {
            let mut request = self.client.request(method.clone(), url.clone());
            request = request.header(AUTHORIZATION, authorization.clone());
            if let Some(body) = &body {
                request = request.header(http::header::CONTENT_TYPE, "application/json").body(body.clone());
            }
            let answer = request.send().await.map_err(reqwest::Error::without_url);
            let unreachable = || format!("cannot reach `{}`", self.settings.repository.base);
            let answer = answer.or_transient(unreachable).map_err(Refusal::Busy)?;
            match redirect::on_the_same_host(&url, answer.status(), answer.headers().get(LOCATION)) {
                Some(target) => url = target,
                None => return Ok(answer),
            }
        }
        let endless = format!("`{}` redirects more than {} times", self.settings.repository.base, redirect::LIMIT);
        Err(Refusal::All(Failure::stalled(endless).hint("set the repository's address to where it is now")))
    }

    /// The body of an answer that is 2xx; remembers for how long a busy server wants no more requests.
    async fn require_success(&self, answer: Response, commit: &CommitId) -> Result<Vec<u8>, Refusal> {
        let status = answer.status();
        let now = self.clock.now();
        let pause = answer.headers().get(RETRY_AFTER).and_then(|value| retry_after::parse(value.to_str().ok()?, now));
        let body = read_bounded(answer).await.map_err(Refusal::Busy)?;
        if status.is_success() {
            return Ok(body);
        }
        let refusal = refusal(status, &String::from_utf8_lossy(&body), commit);
        if let (Refusal::Busy(_), Some(until)) = (&refusal, pause) {
            *self.quiet_until.lock().unwrap_or_else(PoisonError::into_inner) = until;
        }
        Err(refusal)
    }

    async fn token(&self) -> Result<Secret> {
        let source = self.settings.token.clone();
        let read = tokio::task::spawn_blocking(move || source.read());
        read.await.or_transient(|| "reading the token broke off".to_owned())?
    }

    fn require_no_pause(&self) -> Result<()> {
        let until = *self.quiet_until.lock().unwrap_or_else(PoisonError::into_inner);
        if self.clock.now() < until {
            return Err(Failure::transient(format!("Gitea wants no requests until {}", rfc3339(until))));
        }
        Ok(())
    }

    fn repository_url<'a>(&'a self, rest: impl IntoIterator<Item = &'a str>) -> Url {
        let RepositoryAddress { owner, name, .. } = &self.settings.repository;
        self.settings.repository.api(["api", "v1", "repos", owner.as_str(), name.as_str()].into_iter().chain(rest))
    }
}

#[async_trait]
impl StatusWriter for GiteaStatusWriter {
    fn name(&self) -> WriterName {
        "gitea".into()
    }

    /// A commit that the server does not have does not keep the others from being written; its failure comes back.
    async fn write(&self, statuses: &[CommitStatus]) -> Result<(), Refusal> {
        self.require_no_pause()?;
        let token = self.token().await?;
        let any_skipped = statuses.iter().any(|status| status.state == StatusState::Skipped);
        let rendering = Rendering {
            public_url: self.settings.public_url.as_deref(),
            knows_skipped: any_skipped && self.knows_skipped(&token).await,
        };
        let mut outcome = Ok(());
        for (commit, wanted) in rendering.by_commit(statuses) {
            match self.write_commit(&token, commit, wanted).await {
                Ok(()) => {}
                Err(refusal @ Refusal::Commit(_)) => outcome = outcome.and(Err(refusal)),
                Err(refusal) => return Err(refusal),
            }
        }
        outcome
    }

    fn batch(&self) -> usize {
        BATCH
    }
}

/// Gitea's answer to the question for a commit's latest statuses.
#[derive(Debug, Deserialize)]
struct CombinedStatus {
    /// `null` if there are none.
    statuses: Option<Vec<GiteaStatus>>,
}

#[derive(Debug, Deserialize)]
struct Version {
    version: String,
}

async fn client(ca_file: Option<&Path>) -> Result<Client> {
    // Followed blindly, a redirect would carry the token to wherever it leads, and turn a POST into a GET.
    let client = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(REQUEST_TIMEOUT)
        .user_agent(concat!("launchway/", env!("CARGO_PKG_VERSION")));
    let Some(path) = ca_file else {
        return client.build().or_stalled(|| "cannot prepare requests to Gitea".to_owned());
    };
    let unusable = || format!("cannot use the certificates in `{}`", path.display());
    let pem = tokio::fs::read(path).await.or_stalled(unusable)?;
    let certificates = Certificate::from_pem_bundle(&pem).or_stalled(unusable)?;
    if certificates.is_empty() {
        return Err(Failure::stalled(unusable()).hint("there are none in PEM form"));
    }
    client.tls_certs_merge(certificates).build().or_stalled(unusable)
}

fn require_encryption(settings: &GiteaSettings) -> Result<()> {
    let base = &settings.repository.base;
    let is_loopback = base.host_str().is_some_and(|host| {
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    });
    if base.scheme() == "https" || is_loopback || settings.insecure {
        return Ok(());
    }
    Err(Failure::stalled(format!("a token for `{base}` would cross the network in the clear"))
        .hint("use https://, or set `insecure: true` for this repository"))
}

fn authorization(token: &Secret) -> Result<HeaderValue> {
    let value = HeaderValue::from_str(&format!("token {}", token.reveal()));
    let mut value = value.or_stalled(|| "the token has characters that no token has".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

async fn read_bounded(mut answer: Response) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    let interrupted = || "the answer of Gitea was interrupted".to_owned();
    while let Some(chunk) = answer.chunk().await.map_err(reqwest::Error::without_url).or_transient(interrupted)? {
        body.extend_from_slice(&chunk);
        if body.len() > ANSWER_LIMIT {
            return Err(Failure::stalled("the answer is too long to be Gitea's").hint("check `forge.url`"));
        }
    }
    Ok(body)
}
