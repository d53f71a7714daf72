//! Writes commit statuses through Gitea's API.

use std::sync::Arc;

use async_trait::async_trait;
use http::header::AUTHORIZATION;
use http::{Method, StatusCode};
use reqwest::Url;
use serde::Deserialize;
use tokio::sync::OnceCell;

use super::answer::refusal;
use super::status::{GiteaStatus, Rendering, knows_skipped};
use crate::clock::Clock;
use crate::error::{Context, Failure, Result};
use crate::forge::api::{Answer, Manners};
use crate::forge::hosted::{Call, HostSettings, HostedWriter, StatusApi};
use crate::forge::{Refusal, StatusWriter};
use crate::model::commit_status::{CommitStatus, StatusState};
use crate::model::ids::CommitId;

/// Statuses of a page; Gitea's own limit.
const PAGE_SIZE: usize = 50;

/// Pages that are read to see what is there already. What is beyond is written again, which shows nothing new.
const PAGE_LIMIT: usize = 20;

const MANNERS: Manners = Manners { name: "Gitea", header: AUTHORIZATION, scheme: "token ", accept: "application/json" };

/// A writer to Gitea or Forgejo, whose token has the scope `write:repository`.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn writer(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn StatusWriter>> {
    let api = settings.api();
    let gitea = GiteaApi { settings, knows_skipped: OnceCell::new() };
    Ok(Arc::new(HostedWriter::new(api, MANNERS, gitea, clock).await?))
}

#[derive(Debug)]
struct GiteaApi {
    settings: HostSettings,
    /// Whether the server knows the state `skipped`; not set, if it could not be asked yet.
    knows_skipped: OnceCell<bool>,
}

impl GiteaApi {
    fn url<'a>(&'a self, rest: impl IntoIterator<Item = &'a str>) -> Url {
        let repository = &self.settings.repository;
        let path = ["api", "v1", "repos", repository.owner.as_str(), repository.name.as_str()];
        repository.api(path.into_iter().chain(rest))
    }

    async fn ask_version(&self, call: Call<'_>) -> Result<bool> {
        let url = self.settings.repository.api(["api", "v1", "version"]);
        let answer = call.client.send(Method::GET, url, call.token, None).await;
        let answer = answer.map_err(|refusal| Failure::transient(refusal.failure().one_line()))?;
        let version: Version = serde_json::from_slice(&answer.body).or_transient(|| "no version".to_owned())?;
        Ok(knows_skipped(&version.version))
    }
}

#[async_trait]
impl StatusApi for GiteaApi {
    type Status = GiteaStatus;

    fn writer(&self) -> &'static str {
        "gitea"
    }

    fn rendered(&self, status: &CommitStatus) -> GiteaStatus {
        let knows_skipped = self.knows_skipped.get().copied().unwrap_or_default();
        Rendering { public_url: self.settings.public_url.as_deref(), knows_skipped }.render(status)
    }

    async fn prepare(&self, call: Call<'_>, statuses: &[CommitStatus]) {
        let is_skipped = |status: &CommitStatus| matches!(status.state, StatusState::Skipped | StatusState::Unchanged);
        if statuses.iter().any(is_skipped)
            && let Err(failure) = self.knows_skipped.get_or_try_init(|| self.ask_version(call)).await
        {
            tracing::debug!(problem = failure.one_line(), "cannot tell the version of Gitea");
        }
    }

    async fn present(&self, call: Call<'_>, commit: &CommitId) -> Result<Vec<GiteaStatus>, Refusal> {
        let mut present = Vec::new();
        for page in 1..=PAGE_LIMIT {
            let mut url = self.url(["commits", commit.as_str(), "status"]);
            url.query_pairs_mut().append_pair("page", &page.to_string()).append_pair("limit", &PAGE_SIZE.to_string());
            let answer = call.client.send(Method::GET, url, call.token, None).await?;
            if answer.status == StatusCode::NOT_FOUND {
                // The commit or the repository is unknown; the answer to writing tells which.
                break;
            }
            let answer = require_success(call, answer, commit)?;
            let page: CombinedStatus = serde_json::from_slice(&answer.body)
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

    async fn post(&self, call: Call<'_>, commit: &CommitId, status: &GiteaStatus) -> Result<(), Refusal> {
        let url = self.url(["statuses", commit.as_str()]);
        let body = serde_json::to_vec(status).or_stalled(|| "cannot encode a status".to_owned());
        let body = body.map_err(Refusal::Commit)?;
        let answer = call.client.send(Method::POST, url, call.token, Some(body)).await?;
        require_success(call, answer, commit).map(drop)
    }
}

/// An answer that is 2xx; a busy server is left alone for as long as it wants.
fn require_success(call: Call<'_>, answer: Answer, commit: &CommitId) -> Result<Answer, Refusal> {
    if answer.status.is_success() {
        return Ok(answer);
    }
    let refusal = refusal(answer.status, &String::from_utf8_lossy(&answer.body), commit);
    if let Refusal::Busy(_) = &refusal {
        call.client.keep_quiet(&answer, None);
    }
    Err(refusal)
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
