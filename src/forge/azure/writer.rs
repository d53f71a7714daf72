//! Writes commit statuses through the API of Azure DevOps.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use reqwest::Url;
use serde::Deserialize;

use super::status::{AzureStatus, rendered};
use crate::clock::Clock;
use crate::error::Result;
use crate::forge::answer::{Meaning, TOKEN_FILE, Words};
use crate::forge::api::{Answer, Manners};
use crate::forge::hosted::{Call, HostSettings, HostedWriter, StatusApi};
use crate::forge::{Refusal, StatusWriter};
use crate::model::commit_status::CommitStatus;
use crate::model::ids::CommitId;
use crate::model::time::Timestamp;

/// The version of the API that is spoken.
pub(super) const VERSION: &str = "7.1";

/// The most statuses that are asked for: Azure DevOps' own limit.
const MOST: &str = "1000";

pub(super) const WORDS: Words = Words {
    name: "Azure DevOps",
    rights: "a personal access token needs the scope `Code (status)`",
    renewal: TOKEN_FILE,
};

/// A writer to Azure DevOps, with a personal access token.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn writer(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn StatusWriter>> {
    let api = settings.api();
    Ok(Arc::new(HostedWriter::new(api, manners(), AzureApi { settings }, clock).await?))
}

/// How Azure DevOps is spoken to.
pub(super) fn manners() -> Manners {
    Manners {
        name: WORDS.name,
        header: AUTHORIZATION,
        authorization: |token| format!("Basic {}", STANDARD.encode(format!(":{token}"))),
        accept: "application/json",
        limited: |_| None,
    }
}

/// An address below the repository's, whose owner is its project, below an organization that is a part of the host's address.
pub(super) fn url<'a>(settings: &'a HostSettings, rest: impl IntoIterator<Item = &'a str>) -> Url {
    let repository = &settings.repository;
    let head = [repository.owner.as_str(), "_apis", "git", "repositories", &repository.name];
    let mut url = repository.api(head.into_iter().chain(rest));
    url.query_pairs_mut().append_pair("api-version", VERSION);
    url
}

#[derive(Debug)]
struct AzureApi {
    settings: HostSettings,
}

impl AzureApi {
    fn url(&self, commit: &CommitId) -> Url {
        url(&self.settings, ["commits", commit.as_str(), "statuses"])
    }
}

#[async_trait]
impl StatusApi for AzureApi {
    type Status = AzureStatus;

    fn writer(&self) -> &'static str {
        "azure"
    }

    fn words(&self) -> Words {
        WORDS
    }

    fn meaning(&self, answer: &Answer, _: Timestamp) -> Option<Meaning> {
        let is_gone = answer.status.as_u16() == 404 && answer.says("TF401175");
        is_gone.then_some(Meaning::Gone)
    }

    fn rendered(&self, status: &CommitStatus) -> AzureStatus {
        rendered(status, self.settings.public_url.as_deref())
    }

    async fn present(&self, call: Call<'_>, commit: &CommitId) -> Result<Vec<AzureStatus>, Refusal> {
        let mut url = self.url(commit);
        url.query_pairs_mut().append_pair("latestOnly", "true").append_pair("top", MOST);
        Ok(call.get::<_, List>(self, url, commit).await?.map(|list| list.value).unwrap_or_default())
    }

    async fn post(
        &self,
        call: Call<'_>,
        commit: &CommitId,
        status: &AzureStatus,
        _present: &[AzureStatus],
    ) -> Result<(), Refusal> {
        call.post(self, self.url(commit), status, commit).await.map(drop)
    }
}

#[derive(Debug, Deserialize)]
struct List {
    #[serde(default)]
    value: Vec<AzureStatus>,
}
