//! Pull requests on Bitbucket Cloud, which has no labels.

use std::sync::Arc;

use async_trait::async_trait;
use http::Method;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use super::cloud::{WORDS, manners, url};
use crate::clock::Clock;
use crate::error::Result;
use crate::forge::answer::Words;
use crate::forge::hosted::{HostSettings, Hosted};
use crate::forge::pull_request::{Ask, Known, PullRequest, PullRequestApi, PullRequestState, PullRequests, asking};

/// The pull requests of a repository, with an access token of it.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn pull_requests(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn PullRequests>> {
    let api: Box<dyn PullRequestApi> = Box::new(CloudPulls { settings: settings.clone() });
    Ok(Hosted::new(&settings, manners(), api, clock).await?)
}

#[derive(Debug)]
struct CloudPulls {
    settings: HostSettings,
}

/// A pull request as Bitbucket sends it.
#[derive(Debug, Deserialize)]
struct Pull {
    id: u64,
    state: String,
    links: Links,
}

#[derive(Debug, Deserialize)]
struct Links {
    html: Link,
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

impl CloudPulls {
    fn url(&self, rest: &[&str]) -> Url {
        url(&self.settings, ["pullrequests"].iter().chain(rest).copied())
    }
}

#[async_trait]
impl PullRequestApi for CloudPulls {
    fn words(&self) -> Words {
        let rights = "a repository access token needs `Repositories: Write` and `Pull requests: Write`";
        Words { rights, ..WORDS }
    }

    fn longest_body(&self) -> usize {
        30_000
    }

    async fn read(&self, ask: Ask<'_>, number: u64) -> Result<Option<Known>> {
        Ok(ask.get::<Pull>(self.url(&[&number.to_string()])).await?.map(known))
    }

    async fn find(&self, ask: Ask<'_>, wanted: &PullRequest) -> Result<Option<Known>> {
        // The names of branches hold no quotation marks.
        let query = format!(
            "state = \"OPEN\" AND source.branch.name = \"{}\" AND destination.branch.name = \"{}\"",
            wanted.head, wanted.base
        );
        let url = asking(self.url(&[]), &[("q", &query)]);
        Ok(ask.get::<Page>(url).await?.and_then(|page| page.values.into_iter().next()).map(known))
    }

    /// Bitbucket Cloud has one for two branches: asked for another, it changes that one, or refuses.
    async fn create(&self, ask: Ask<'_>, wanted: &PullRequest) -> Result<Option<Known>> {
        let PullRequest { head, base, title, body } = wanted;
        let body = json!({
            "title": title, "description": body, "close_source_branch": true,
            "source": {"branch": {"name": head}}, "destination": {"branch": {"name": base}},
        });
        let exists = [(409, ""), (400, "already exists")];
        Ok(ask.write(Method::POST, self.url(&[]), &body, &exists).await?.map(known))
    }

    async fn update(&self, ask: Ask<'_>, number: u64, wanted: &PullRequest) -> Result<()> {
        let body = json!({"title": wanted.title, "description": wanted.body});
        ask.write::<Value>(Method::PUT, self.url(&[&number.to_string()]), &body, &[]).await.map(drop)
    }

    async fn close(&self, ask: Ask<'_>, number: u64) -> Result<()> {
        let url = self.url(&[&number.to_string(), "decline"]);
        ask.write::<Value>(Method::POST, url, &json!({}), &[]).await.map(drop)
    }

    fn comments(&self, number: u64) -> [Url; 2] {
        let url = self.url(&[&number.to_string(), "comments"]);
        [asking(url.clone(), &[("pagelen", "100")]), url]
    }

    fn comment(&self, text: &str) -> Value {
        json!({"content": {"raw": text}})
    }
}

fn known(pull: Pull) -> Known {
    let state = match pull.state.as_str() {
        "OPEN" => PullRequestState::Open,
        "MERGED" => PullRequestState::Merged,
        _ => PullRequestState::Closed, // `DECLINED`, `SUPERSEDED`
    };
    Known { number: pull.id, url: pull.links.html.href, state }
}
