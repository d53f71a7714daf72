//! Writes commit statuses through GitHub's API.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::Method;
use http::header::AUTHORIZATION;
use reqwest::Url;

use super::answer::refusal;
use super::status::{GithubStatus, rendered};
use crate::clock::{Clock, rfc3339};
use crate::error::{Context, Failure, Result};
use crate::forge::api::{Answer, Manners};
use crate::forge::budget::Budget;
use crate::forge::hosted::{Call, HostSettings, HostedWriter, StatusApi};
use crate::forge::{Refusal, StatusWriter};
use crate::model::commit_status::CommitStatus;
use crate::model::ids::CommitId;
use crate::model::time::Timestamp;

/// Statuses of a page; GitHub's own limit.
const PAGE_SIZE: usize = 100;

/// Pages that are read to see what is there already: all that GitHub keeps of one context.
const PAGE_LIMIT: usize = 10;

/// How much may be written. Source: GitHub's secondary limits on requests that create content, with some room for others
/// who use the same token.
const WRITES: &[(usize, Duration)] = &[(60, Duration::from_secs(60)), (400, Duration::from_secs(60 * 60))];

/// How long GitHub is left alone where it asks for less without saying for how long. Source: its documentation.
const PAUSE: Duration = Duration::from_secs(60);

const MANNERS: Manners =
    Manners { name: "GitHub", header: AUTHORIZATION, scheme: "Bearer ", accept: "application/vnd.github+json" };

/// A writer to GitHub, whose token may write commit statuses.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn writer(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn StatusWriter>> {
    let api = settings.api();
    let github = GithubApi { settings, writes: Budget::new(WRITES) };
    Ok(Arc::new(HostedWriter::new(api, MANNERS, github, clock).await?))
}

#[derive(Debug)]
struct GithubApi {
    settings: HostSettings,
    writes: Budget,
}

impl GithubApi {
    /// The service has a host of its own for its API; GitHub Enterprise Server a path.
    fn url<'a>(&'a self, rest: impl IntoIterator<Item = &'a str>) -> Url {
        let repository = &self.settings.repository;
        let is_service = repository.base.host_str().is_some_and(|host| host.eq_ignore_ascii_case("github.com"));
        let prefix: &[&str] = if is_service { &[] } else { &["api", "v3"] };
        let path = ["repos", repository.owner.as_str(), repository.name.as_str()];
        let mut url = repository.api(prefix.iter().copied().chain(path).chain(rest));
        if is_service {
            // The host is a valid one, and the scheme takes hosts.
            url.set_host(Some("api.github.com")).unwrap_or_default();
        }
        url
    }
}

#[async_trait]
impl StatusApi for GithubApi {
    type Status = GithubStatus;

    fn writer(&self) -> &'static str {
        "github"
    }

    fn rendered(&self, status: &CommitStatus) -> GithubStatus {
        rendered(status, self.settings.public_url.as_deref())
    }

    /// GitHub lists all that was ever written, the newest first.
    async fn present(&self, call: Call<'_>, commit: &CommitId) -> Result<Vec<GithubStatus>, Refusal> {
        let mut present: Vec<GithubStatus> = Vec::new();
        for page in 1..=PAGE_LIMIT {
            let mut url = self.url(["commits", commit.as_str(), "statuses"]);
            url.query_pairs_mut()
                .append_pair("per_page", &PAGE_SIZE.to_string())
                .append_pair("page", &page.to_string());
            let answer = call.client.send(Method::GET, url, call.token, None).await?;
            if matches!(answer.status.as_u16(), 404 | 422) {
                // The commit or the repository is unknown; the answer to writing tells which.
                break;
            }
            let answer = require_success(call, answer, commit)?;
            let page: Vec<GithubStatus> = serde_json::from_slice(&answer.body)
                .or_stalled(|| "the answer is not GitHub's; is `forge.url` right?".to_owned())
                .map_err(Refusal::All)?;
            let is_last = page.len() < PAGE_SIZE;
            for status in page {
                if !present.iter().any(|newer| newer.context.eq_ignore_ascii_case(&status.context)) {
                    present.push(status);
                }
            }
            if is_last {
                break;
            }
        }
        Ok(present)
    }

    async fn post(&self, call: Call<'_>, commit: &CommitId, status: &GithubStatus) -> Result<(), Refusal> {
        self.writes.spend(call.client.now()).map_err(|until| {
            let message = format!("GitHub takes so many statuses in an hour; more follow from {} on", rfc3339(until));
            Refusal::Busy(Failure::transient(message))
        })?;
        let url = self.url(["statuses", commit.as_str()]);
        let body = serde_json::to_vec(status).or_stalled(|| "cannot encode a status".to_owned());
        let body = body.map_err(Refusal::Commit)?;
        let answer = call.client.send(Method::POST, url, call.token, Some(body)).await?;
        require_success(call, answer, commit).map(drop)
    }
}

/// An answer that is 2xx; GitHub is left alone as long as it wants, or as its limit is spent.
fn require_success(call: Call<'_>, answer: Answer, commit: &CommitId) -> Result<Answer, Refusal> {
    if answer.status.is_success() {
        return Ok(answer);
    }
    let number = |name: &str| answer.headers.get(name)?.to_str().ok()?.trim().parse::<i64>().ok();
    let is_spent = number("x-ratelimit-remaining") == Some(0);
    let is_limited = is_spent || answer.headers.contains_key("retry-after");
    let refusal = refusal(answer.status.as_u16(), &answer.body, is_limited, commit);
    if let Refusal::Busy(_) = &refusal {
        let reset = number("x-ratelimit-reset").filter(|_| is_spent).map(|seconds| Timestamp(seconds * 1000));
        let asks_for_less = matches!(answer.status.as_u16(), 403 | 429);
        let otherwise = reset.or(asks_for_less.then(|| call.client.now() + PAUSE));
        call.client.keep_quiet(&answer, otherwise);
    }
    Err(refusal)
}
