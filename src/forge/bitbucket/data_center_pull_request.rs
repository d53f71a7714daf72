//! Pull requests on Bitbucket Data Center, which has no labels.

use std::sync::Arc;

use async_trait::async_trait;
use http::Method;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use super::data_center::{WORDS, manners};
use crate::clock::Clock;
use crate::error::{Failure, Result};
use crate::forge::answer::Words;
use crate::forge::hosted::{HostSettings, Hosted};
use crate::forge::pull_request::{
    Ask, Known, PullRequest, PullRequestApi, PullRequestState, PullRequests, asking, full,
};

/// The pull requests of a repository, with an HTTP access token.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn pull_requests(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn PullRequests>> {
    let api: Box<dyn PullRequestApi> = Box::new(DataCenterPulls { settings: settings.clone() });
    Ok(Hosted::new(&settings, manners(), api, clock).await?)
}

#[derive(Debug)]
struct DataCenterPulls {
    settings: HostSettings,
}

/// A pull request as Bitbucket sends it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pull {
    id: u64,
    version: u64,
    state: String,
    #[serde(default)]
    reviewers: Value,
    to_ref: Ref,
    links: Links,
}

#[derive(Debug, Deserialize)]
struct Ref {
    id: String,
}

#[derive(Debug, Deserialize)]
struct Links {
    #[serde(rename = "self")]
    pages: Vec<Link>,
}

#[derive(Debug, Deserialize)]
struct Link {
    href: String,
}

#[derive(Debug, Deserialize)]
struct Page {
    #[serde(default)]
    values: Vec<Pull>,
}

impl DataCenterPulls {
    fn url(&self, rest: &[&str]) -> Url {
        let repository = &self.settings.repository;
        let place = ["projects", &repository.owner, "repos", &repository.name, "pull-requests"];
        repository.api(["rest", "api", "latest"].into_iter().chain(place).chain(rest.iter().copied()))
    }
}

#[async_trait]
impl PullRequestApi for DataCenterPulls {
    fn words(&self) -> Words {
        WORDS
    }

    fn longest_body(&self) -> usize {
        30_000
    }

    async fn read(&self, ask: Ask<'_>, number: u64) -> Result<Option<Known>> {
        Ok(ask.get::<Pull>(self.url(&[&number.to_string()])).await?.map(known))
    }

    async fn find(&self, ask: Ask<'_>, wanted: &PullRequest) -> Result<Option<Known>> {
        let at = full(&wanted.head);
        let url = asking(self.url(&[]), &[("state", "OPEN"), ("direction", "OUTGOING"), ("at", &at)]);
        let pulls = ask.get::<Page>(url).await?.map(|page| page.values).unwrap_or_default();
        Ok(pulls.into_iter().find(|pull| pull.to_ref.id == full(&wanted.base)).map(known))
    }

    async fn create(&self, ask: Ask<'_>, wanted: &PullRequest) -> Result<Option<Known>> {
        let PullRequest { head, base, title, body } = wanted;
        let (from, to) = (full(head), full(base));
        let body = json!({"title": title, "description": body, "fromRef": {"id": from}, "toRef": {"id": to}});
        let made = ask.write(Method::POST, self.url(&[]), &body, &[(409, "DuplicatePullRequest")]).await?;
        Ok(made.map(known))
    }

    /// What is not sent with it is taken away, and a version that is not the newest is refused.
    async fn update(&self, ask: Ask<'_>, number: u64, wanted: &PullRequest) -> Result<()> {
        let url = self.url(&[&number.to_string()]);
        let Some(Pull { version, reviewers, .. }) = ask.get(url.clone()).await? else { return Ok(()) };
        let body = json!({
            "version": version, "reviewers": reviewers, "title": wanted.title, "description": wanted.body,
        });
        // Somebody else was faster: the next time is soon.
        ask.write::<Value>(Method::PUT, url, &body, &[(409, "")]).await.map(drop)
    }

    /// A version that is not the newest is refused: then it is asked for again.
    async fn close(&self, ask: Ask<'_>, number: u64) -> Result<()> {
        let url = self.url(&[&number.to_string()]);
        let Some(Pull { version, .. }) = ask.get(url).await? else { return Ok(()) };
        let url = asking(self.url(&[&number.to_string(), "decline"]), &[("version", &version.to_string())]);
        let moved = || Failure::transient("somebody else has changed the pull request meanwhile");
        ask.write::<Value>(Method::POST, url, &json!({}), &[(409, "")]).await?.map(drop).ok_or_else(moved)
    }

    /// There are comments among all that happened to it.
    fn comments(&self, number: u64) -> [Url; 2] {
        let number = number.to_string();
        [asking(self.url(&[&number, "activities"]), &[("limit", "100")]), self.url(&[&number, "comments"])]
    }

    fn comment(&self, text: &str) -> Value {
        json!({"text": text})
    }
}

fn known(pull: Pull) -> Known {
    let state = match pull.state.as_str() {
        "OPEN" => PullRequestState::Open,
        "MERGED" => PullRequestState::Merged,
        _ => PullRequestState::Closed, // `DECLINED`
    };
    let url = pull.links.pages.into_iter().next().map(|link| link.href).unwrap_or_default();
    Known { number: pull.id, url, state }
}
