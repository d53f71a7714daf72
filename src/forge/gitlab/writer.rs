//! Writes commit statuses through GitLab's API.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use http::HeaderName;
use reqwest::Url;

use super::status::{GitlabStatus, rendered};
use crate::clock::Clock;
use crate::error::Result;
use crate::forge::answer::{Meaning, TOKEN_FILE, Words};
use crate::forge::api::{Answer, Manners};
use crate::forge::hosted::{Call, HostSettings, HostedWriter, StatusApi};
use crate::forge::paging::pages;
use crate::forge::{Refusal, StatusWriter};
use crate::model::commit_status::CommitStatus;
use crate::model::ids::CommitId;
use crate::model::time::Timestamp;

/// Statuses of a page; GitLab's own limit.
const PAGE_SIZE: usize = 100;

/// So many commits' pipelines are known by heart; those of others are read again.
const PIPELINES: usize = 1_000;

/// What launchway's contexts begin with: others write statuses in other pipelines.
const CONTEXTS: &str = "launchway/";

pub(super) const WORDS: Words = Words {
    name: "GitLab",
    rights: "a project access token needs the scope `api` and the role Developer",
    renewal: TOKEN_FILE,
};

/// A writer to GitLab, whose token has the scope `api`.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn writer(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn StatusWriter>> {
    let api = settings.api();
    let gitlab = GitlabApi { settings, pipelines: Mutex::default() };
    Ok(Arc::new(HostedWriter::new(api, manners(), gitlab, clock).await?))
}

/// How GitLab is spoken to.
pub(super) fn manners() -> Manners {
    Manners {
        name: WORDS.name,
        header: HeaderName::from_static("private-token"),
        authorization: str::to_owned,
        accept: "application/json",
        limited: |_| None,
    }
}

/// An address below the project's, which goes by its whole path, encoded as one segment.
pub(super) fn url(settings: &HostSettings, rest: &[&str]) -> Url {
    let repository = &settings.repository;
    let project = format!("{}/{}", repository.owner, repository.name);
    repository.api(["api", "v4", "projects", &project].into_iter().chain(rest.iter().copied()))
}

#[derive(Debug)]
struct GitlabApi {
    settings: HostSettings,
    /// The pipeline in which a commit's statuses stand: named with each of them, lest GitLab makes another one, and leaves
    /// what stands in the first for ever as it is.
    pipelines: Mutex<BTreeMap<CommitId, u64>>,
}

impl GitlabApi {
    fn url(&self, rest: &[&str]) -> Url {
        url(&self.settings, rest)
    }

    fn pipelines(&self) -> std::sync::MutexGuard<'_, BTreeMap<CommitId, u64>> {
        self.pipelines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, commit: &CommitId, pipeline: Option<u64>) {
        let Some(pipeline) = pipeline else { return };
        let mut pipelines = self.pipelines();
        if pipelines.len() >= PIPELINES {
            pipelines.clear();
        }
        pipelines.insert(commit.clone(), pipeline);
    }
}

#[async_trait]
impl StatusApi for GitlabApi {
    type Status = GitlabStatus;

    fn writer(&self) -> &'static str {
        "gitlab"
    }

    fn words(&self) -> Words {
        WORDS
    }

    fn meaning(&self, answer: &Answer, _: Timestamp) -> Option<Meaning> {
        match answer.status.as_u16() {
            // Somebody else has written the same state meanwhile.
            400 if answer.says("cannot transition status") => Some(Meaning::Done),
            404 if answer.says("commit not found") => Some(Meaning::Gone),
            _ => None,
        }
    }

    fn rendered(&self, status: &CommitStatus) -> GitlabStatus {
        let HostSettings { public_url, branch, .. } = &self.settings;
        rendered(status, public_url.as_deref(), branch.as_deref())
    }

    /// The latest one of each name.
    async fn present(&self, call: Call<'_>, commit: &CommitId) -> Result<Vec<GitlabStatus>, Refusal> {
        let present: Vec<GitlabStatus> = pages(PAGE_SIZE, |at| {
            let mut url = self.url(&["repository", "commits", commit.as_str(), "statuses"]);
            let (size, page) = (PAGE_SIZE.to_string(), (at + 1).to_string());
            url.query_pairs_mut().append_pair("per_page", &size).append_pair("page", &page);
            call.page(self, url, commit)
        })
        .await?
        .unwrap_or_default();
        let own = present.iter().find(|status| status.name.starts_with(CONTEXTS));
        self.remember(commit, own.and_then(|status| status.pipeline_id));
        Ok(present)
    }

    async fn post(
        &self,
        call: Call<'_>,
        commit: &CommitId,
        status: &GitlabStatus,
        _present: &[GitlabStatus],
    ) -> Result<(), Refusal> {
        let pipeline_id = self.pipelines().get(commit).copied();
        let status = GitlabStatus { pipeline_id, ..status.clone() };
        let url = self.url(&["statuses", commit.as_str()]);
        let written = call.post(self, url, &status, commit).await?;
        let written = written.and_then(|answer| serde_json::from_slice::<GitlabStatus>(&answer.body).ok());
        self.remember(commit, written.and_then(|written| written.pipeline_id));
        Ok(())
    }
}
