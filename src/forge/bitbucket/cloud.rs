//! Writes commit statuses through the API of Bitbucket Cloud.

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

/// Statuses of a page; Bitbucket's own limit.
const PAGE_SIZE: usize = 100;

pub(super) const WORDS: Words = Words {
    name: "Bitbucket",
    rights: "a repository access token needs `Repositories: Read` and `Pull requests: Write`",
    renewal: TOKEN_FILE,
};

/// A writer to Bitbucket Cloud, with an access token of the repository.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn writer(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn StatusWriter>> {
    let api = settings.api();
    Ok(Arc::new(HostedWriter::new(api, manners(), CloudApi { settings }, clock).await?))
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

/// An address below the repository's.
pub(super) fn url<'a>(settings: &'a HostSettings, rest: impl IntoIterator<Item = &'a str>) -> Url {
    let repository = &settings.repository;
    api(settings, ["repositories", &repository.owner, &repository.name].into_iter().chain(rest))
}

/// An address of its API, for which the service has a host of its own.
pub(super) fn api<'a>(settings: &'a HostSettings, rest: impl IntoIterator<Item = &'a str>) -> Url {
    let repository = &settings.repository;
    let mut url = repository.api(["2.0"].into_iter().chain(rest));
    if repository.base.host_str().is_some_and(|host| host.eq_ignore_ascii_case("bitbucket.org")) {
        // The host is a valid one, and the scheme takes hosts.
        url.set_host(Some("api.bitbucket.org")).unwrap_or_default();
    }
    url
}

#[derive(Debug)]
struct CloudApi {
    settings: HostSettings,
}

impl CloudApi {
    fn url(&self, commit: &CommitId, rest: &[&str]) -> Url {
        url(&self.settings, ["commit", commit.as_str(), "statuses"].into_iter().chain(rest.iter().copied()))
    }
}

#[async_trait]
impl StatusApi for CloudApi {
    type Status = BitbucketStatus;

    fn writer(&self) -> &'static str {
        "bitbucket"
    }

    fn words(&self) -> Words {
        WORDS
    }

    fn meaning(&self, answer: &Answer, _: Timestamp) -> Option<Meaning> {
        let is_gone = answer.status.as_u16() == 404 && answer.says("commit not found");
        is_gone.then_some(Meaning::Gone)
    }

    fn rendered(&self, status: &CommitStatus) -> BitbucketStatus {
        let repository = &self.settings.repository;
        let page = repository.api([&repository.owner, &repository.name, "commits", status.commit.as_str()]);
        rendered(status, self.settings.public_url.as_deref(), page.as_str(), "STOPPED")
    }

    async fn present(&self, call: Call<'_>, commit: &CommitId) -> Result<Vec<BitbucketStatus>, Refusal> {
        let present = pages(PAGE_SIZE, |at| {
            let mut url = self.url(commit, &[]);
            let (size, page) = (PAGE_SIZE.to_string(), (at + 1).to_string());
            url.query_pairs_mut().append_pair("pagelen", &size).append_pair("page", &page);
            async move { call.get(self, url, commit).await.map(|listing| listing.map(Listing::numbered)) }
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
        call.post(self, self.url(commit, &["build"]), status, commit).await.map(drop)
    }
}
