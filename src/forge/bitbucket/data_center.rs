//! Writes commit statuses through the API of Bitbucket Data Center.

use std::sync::Arc;

use async_trait::async_trait;
use http::header::AUTHORIZATION;
use reqwest::Url;

use super::listing::Listing;
use super::status::{BitbucketStatus, rendered};
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

/// Statuses of a page; Bitbucket's own limit is higher.
const PAGE_SIZE: usize = 100;

pub(super) const WORDS: Words = Words {
    name: "Bitbucket Data Center",
    rights: "an HTTP access token of the repository or project needs the permission `Repository write`",
    renewal: TOKEN_FILE,
};

/// A writer to Bitbucket Data Center, with an HTTP access token.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn writer(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn StatusWriter>> {
    let api = settings.api();
    Ok(Arc::new(HostedWriter::new(api, manners(), DataCenterApi { settings }, clock).await?))
}

/// How it is spoken to.
pub(super) fn manners() -> Manners {
    Manners {
        name: WORDS.name,
        header: AUTHORIZATION,
        authorization: |token| format!("Bearer {token}"),
        accept: "application/json",
        limited: |_| None,
    }
}

#[derive(Debug)]
struct DataCenterApi {
    settings: HostSettings,
}

#[async_trait]
impl StatusApi for DataCenterApi {
    type Status = BitbucketStatus;

    fn writer(&self) -> &'static str {
        "bitbucket-data-center"
    }

    fn words(&self) -> Words {
        WORDS
    }

    fn meaning(&self, answer: &Answer, _: Timestamp) -> Option<Meaning> {
        let is_gone = answer.status.as_u16() == 404 && answer.says("nosuchcommit");
        is_gone.then_some(Meaning::Gone)
    }

    fn rendered(&self, status: &CommitStatus) -> BitbucketStatus {
        let repository = &self.settings.repository;
        let path = ["projects", &repository.owner, "repos", &repository.name, "commits", status.commit.as_str()];
        rendered(status, self.settings.public_url.as_deref(), repository.api(path).as_str(), "CANCELLED")
    }

    /// The newer API tells of one key alone; the older one of all.
    async fn present(&self, call: Call<'_>, commit: &CommitId) -> Result<Vec<BitbucketStatus>, Refusal> {
        let present = pages(PAGE_SIZE, |start| {
            let mut url = self.settings.repository.api(["rest", "build-status", "1.0", "commits", commit.as_str()]);
            let (size, start) = (PAGE_SIZE.to_string(), start.to_string());
            url.query_pairs_mut().append_pair("limit", &size).append_pair("start", &start);
            async move { call.get(self, url, commit).await.map(|listing| listing.map(Listing::placed)) }
        });
        Ok(present.await?.unwrap_or_default())
    }

    async fn post(
        &self,
        call: Call<'_>,
        commit: &CommitId,
        status: &BitbucketStatus,
        _present: &[BitbucketStatus],
    ) -> Result<(), Refusal> {
        let repository = &self.settings.repository;
        let place = ["projects", &repository.owner, "repos", &repository.name, "commits", commit.as_str(), "builds"];
        let url: Url = repository.api(["rest", "api", "latest"].into_iter().chain(place));
        call.post(self, url, status, commit).await.map(drop)
    }
}
