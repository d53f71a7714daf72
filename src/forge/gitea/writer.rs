//! Writes commit statuses through Gitea's API.

use std::sync::Arc;

use async_trait::async_trait;
use http::header::AUTHORIZATION;
use reqwest::Url;
use serde::Deserialize;
use tokio::sync::OnceCell;

use super::status::{GiteaStatus, Rendering, knows_skipped};
use crate::clock::Clock;
use crate::error::Result;
use crate::forge::answer::{Meaning, TOKEN_FILE, Words};
use crate::forge::api::{Answer, Manners};
use crate::forge::ask::asking;
use crate::forge::hosted::{Call, HostSettings, HostedWriter, StatusApi};
use crate::forge::paging::{More, Page, pages};
use crate::forge::{Refusal, StatusWriter};
use crate::model::commit_status::{CommitStatus, StatusState};
use crate::model::ids::CommitId;
use crate::model::time::Timestamp;

/// Statuses of a page; Gitea gives no more where nobody has configured it.
const PAGE_SIZE: usize = 50;

pub(super) const WORDS: Words = Words {
    name: "Gitea",
    rights: "it needs the scope write:repository, and its user has to be allowed to write to the repository",
    renewal: TOKEN_FILE,
};

/// A writer to Gitea or Forgejo, whose token has the scope `write:repository`.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn writer(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn StatusWriter>> {
    let api = settings.api();
    let gitea = GiteaApi { settings, knows_skipped: OnceCell::new() };
    Ok(Arc::new(HostedWriter::new(api, manners(), gitea, clock).await?))
}

/// How Gitea is spoken to.
pub(super) fn manners() -> Manners {
    Manners {
        name: WORDS.name,
        header: AUTHORIZATION,
        authorization: |token| format!("token {token}"),
        accept: "application/json",
        limited: |_| None,
    }
}

/// An address below the repository's.
pub(super) fn url<'a>(settings: &'a HostSettings, rest: impl IntoIterator<Item = &'a str>) -> Url {
    let repository = &settings.repository;
    let path = ["api", "v1", "repos", repository.owner.as_str(), repository.name.as_str()];
    repository.api(path.into_iter().chain(rest))
}

#[derive(Debug)]
struct GiteaApi {
    settings: HostSettings,
    /// Whether the server knows the state `skipped`; not set, if it could not be asked yet.
    knows_skipped: OnceCell<bool>,
}

impl GiteaApi {
    fn url<'a>(&'a self, rest: impl IntoIterator<Item = &'a str>) -> Url {
        url(&self.settings, rest)
    }

    async fn ask_version(&self, call: Call<'_>, commit: &CommitId) -> Result<bool, Refusal> {
        let url = self.settings.repository.api(["api", "v1", "version"]);
        let version: Option<Version> = call.get(self, url, commit).await?;
        Ok(version.is_some_and(|version| knows_skipped(&version.version)))
    }
}

#[async_trait]
impl StatusApi for GiteaApi {
    type Status = GiteaStatus;

    fn writer(&self) -> &'static str {
        "gitea"
    }

    fn words(&self) -> Words {
        WORDS
    }

    /// Gitea answers 500 for writing to a commit that it does not have.
    fn meaning(&self, answer: &Answer, _: Timestamp) -> Option<Meaning> {
        let is_gone = matches!(answer.status.as_u16(), 404 | 500) && answer.says("object does not exist");
        is_gone.then_some(Meaning::Gone)
    }

    fn rendered(&self, status: &CommitStatus) -> GiteaStatus {
        let knows_skipped = self.knows_skipped.get().copied().unwrap_or_default();
        Rendering { public_url: self.settings.public_url.as_deref(), knows_skipped }.render(status)
    }

    async fn prepare(&self, call: Call<'_>, statuses: &[CommitStatus]) {
        let is_skipped = |status: &&CommitStatus| matches!(status.state, StatusState::Skipped | StatusState::Unchanged);
        if let Some(status) = statuses.iter().find(is_skipped)
            && let Err(refusal) = self.knows_skipped.get_or_try_init(|| self.ask_version(call, &status.commit)).await
        {
            tracing::debug!(problem = refusal.failure().one_line(), "cannot tell the version of Gitea");
        }
    }

    async fn present(&self, call: Call<'_>, commit: &CommitId) -> Result<Vec<GiteaStatus>, Refusal> {
        let page = async |at: usize| -> Result<Option<Page<GiteaStatus>>, Refusal> {
            let (limit, page) = (PAGE_SIZE.to_string(), (at + 1).to_string());
            let url = asking(self.url(["commits", commit.as_str(), "status"]), &[("limit", &limit), ("page", &page)]);
            let part: Option<(CombinedStatus, More)> = call.get_part(self, url, commit).await?;
            Ok(part.map(|(found, more)| Page::new(found.statuses.unwrap_or_default(), more.or_perhaps())))
        };
        Ok(pages(PAGE_SIZE, page).await?.unwrap_or_default())
    }

    async fn post(
        &self,
        call: Call<'_>,
        commit: &CommitId,
        status: &GiteaStatus,
        _present: &[GiteaStatus],
    ) -> Result<(), Refusal> {
        let url = self.url(["statuses", commit.as_str()]);
        call.post(self, url, status, commit).await.map(drop)
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
