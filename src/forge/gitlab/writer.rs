//! Writes commit statuses through GitLab's API.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use http::{HeaderName, Method, StatusCode};
use reqwest::Url;

use super::answer::refusal;
use super::status::{GitlabStatus, rendered};
use crate::clock::Clock;
use crate::error::{Context, Result};
use crate::forge::api::Manners;
use crate::forge::hosted::{Call, HostSettings, HostedWriter, StatusApi};
use crate::forge::{Refusal, StatusWriter};
use crate::model::commit_status::CommitStatus;
use crate::model::ids::CommitId;

/// Statuses of a page; GitLab's own limit.
const PAGE_SIZE: usize = 100;

/// Pages that are read to see what is there already.
const PAGE_LIMIT: usize = 10;

/// So many commits' pipelines are known by heart; those of others are read again.
const PIPELINES: usize = 1_000;

const MANNERS: Manners = Manners {
    name: "GitLab",
    header: HeaderName::from_static("private-token"),
    scheme: "",
    accept: "application/json",
};

/// A writer to GitLab, whose token has the scope `api`.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn writer(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn StatusWriter>> {
    let api = settings.api();
    let gitlab = GitlabApi { settings, pipelines: Mutex::default() };
    Ok(Arc::new(HostedWriter::new(api, MANNERS, gitlab, clock).await?))
}

#[derive(Debug)]
struct GitlabApi {
    settings: HostSettings,
    /// The pipeline in which a commit's statuses stand: named with each of them, lest GitLab makes another one, and leaves
    /// what stands in the first for ever as it is.
    pipelines: Mutex<BTreeMap<CommitId, u64>>,
}

impl GitlabApi {
    /// A project goes by its whole path, encoded as one segment.
    fn url(&self, rest: &[&str]) -> Url {
        let repository = &self.settings.repository;
        let project = format!("{}/{}", repository.owner, repository.name);
        repository.api(["api", "v4", "projects", &project].into_iter().chain(rest.iter().copied()))
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

    fn rendered(&self, status: &CommitStatus) -> GitlabStatus {
        let HostSettings { public_url, branch, .. } = &self.settings;
        rendered(status, public_url.as_deref(), branch.as_deref())
    }

    /// The latest one of each name.
    async fn present(&self, call: Call<'_>, commit: &CommitId) -> Result<Vec<GitlabStatus>, Refusal> {
        let mut present: Vec<GitlabStatus> = Vec::new();
        for page in 1..=PAGE_LIMIT {
            let mut url = self.url(&["repository", "commits", commit.as_str(), "statuses"]);
            url.query_pairs_mut()
                .append_pair("per_page", &PAGE_SIZE.to_string())
                .append_pair("page", &page.to_string());
            let answer = call.client.send(Method::GET, url, call.token, None).await?;
            if answer.status == StatusCode::NOT_FOUND {
                // The commit or the project is unknown; the answer to writing tells which.
                break;
            }
            if !answer.status.is_success() {
                let text = String::from_utf8_lossy(&answer.body);
                let Some(refusal) = refusal(answer.status.as_u16(), &text, commit) else { break };
                if let Refusal::Busy(_) = &refusal {
                    call.client.keep_quiet(&answer, None);
                }
                return Err(refusal);
            }
            let page: Vec<GitlabStatus> = serde_json::from_slice(&answer.body)
                .or_stalled(|| "the answer is not GitLab's; is `forge.url` right?".to_owned())
                .map_err(Refusal::All)?;
            let is_last = page.len() < PAGE_SIZE;
            let own = page.into_iter().filter(|status| status.name.starts_with("launchway/"));
            present.extend(own);
            if is_last {
                break;
            }
        }
        self.remember(commit, present.iter().find_map(|status| status.pipeline_id));
        Ok(present)
    }

    async fn post(&self, call: Call<'_>, commit: &CommitId, status: &GitlabStatus) -> Result<(), Refusal> {
        let pipeline_id = self.pipelines().get(commit).copied();
        let status = GitlabStatus { pipeline_id, ..status.clone() };
        let url = self.url(&["statuses", commit.as_str()]);
        let body = serde_json::to_vec(&status).or_stalled(|| "cannot encode a status".to_owned());
        let body = body.map_err(Refusal::Commit)?;
        let answer = call.client.send(Method::POST, url, call.token, Some(body)).await?;
        if answer.status.is_success() {
            let written = serde_json::from_slice::<GitlabStatus>(&answer.body).ok();
            self.remember(commit, written.and_then(|written| written.pipeline_id));
            return Ok(());
        }
        match refusal(answer.status.as_u16(), &String::from_utf8_lossy(&answer.body), commit) {
            None => Ok(()),
            Some(refusal) => {
                if let Refusal::Busy(_) = &refusal {
                    call.client.keep_quiet(&answer, None);
                }
                Err(refusal)
            }
        }
    }
}
