//! Pull requests on Gitea and Forgejo.

use std::sync::Arc;

use async_trait::async_trait;
use http::Method;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use super::writer::{WORDS, manners, url};
use crate::clock::Clock;
use crate::error::{Failure, Result};
use crate::forge::answer::Words;
use crate::forge::hosted::HostSettings;
use crate::forge::pull_request::{
    Ask, Known, LABEL, PullRequest, PullRequestApi, PullRequestState, PullRequests, asking, hosted,
};

/// Of a page; Gitea's own limit.
const PAGE_SIZE: usize = 50;
/// Pages of open pull requests that are looked through.
const PAGES: usize = 20;

/// The pull requests of a repository, with a token that has the scope `write:repository`; with `write:issue`, they get a
/// label.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn pull_requests(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn PullRequests>> {
    hosted(&settings.clone(), manners(), GiteaPulls { settings }, clock).await
}

#[derive(Debug)]
struct GiteaPulls {
    settings: HostSettings,
}

/// A pull request as Gitea sends it.
#[derive(Debug, Deserialize)]
struct Pull {
    number: u64,
    html_url: String,
    state: String,
    #[serde(default)]
    merged: bool,
    head: Branch,
    base: Branch,
}

#[derive(Debug, Deserialize)]
struct Branch {
    #[serde(rename = "ref")]
    name: String,
    repo_id: u64,
}

#[derive(Debug, Deserialize)]
struct Label {
    id: u64,
    name: String,
}

impl GiteaPulls {
    fn url(&self, rest: &[&str]) -> Url {
        url(&self.settings, rest.iter().copied())
    }

    async fn label_id(&self, ask: Ask<'_>) -> Result<Option<u64>> {
        let url = asking(self.url(&["labels"]), &[("limit", &PAGE_SIZE.to_string())]);
        let labels: Vec<Label> = ask.get(url).await?.unwrap_or_default();
        if let Some(known) = labels.into_iter().find(|label| label.name == LABEL) {
            return Ok(Some(known.id));
        }
        let body = json!({"name": LABEL, "color": "#d93f0b", "description": "goes back to what ran before"});
        let made: Option<Label> = ask.write(Method::POST, self.url(&["labels"]), &body, &[]).await?;
        Ok(made.map(|made| made.id))
    }
}

#[async_trait]
impl PullRequestApi for GiteaPulls {
    fn words(&self) -> Words {
        WORDS
    }

    async fn read(&self, ask: Ask<'_>, number: u64) -> Result<Option<Known>> {
        Ok(ask.get::<Pull>(self.url(&["pulls", &number.to_string()])).await?.map(known))
    }

    /// The list knows no filter by branch.
    async fn find(&self, ask: Ask<'_>, wanted: &PullRequest) -> Result<Option<Known>> {
        for page in 1..=PAGES {
            let (limit, page) = (PAGE_SIZE.to_string(), page.to_string());
            let url = asking(self.url(&["pulls"]), &[("state", "open"), ("limit", &limit), ("page", &page)]);
            let pulls: Vec<Pull> = ask.get(url).await?.unwrap_or_default();
            let is_last = pulls.len() < PAGE_SIZE;
            let is_it = |pull: &Pull| {
                let own = pull.head.repo_id == pull.base.repo_id; // no fork's branch of the same name
                own && pull.head.name == wanted.head && pull.base.name == wanted.base
            };
            if let Some(found) = pulls.into_iter().find(is_it) {
                return Ok(Some(known(found)));
            }
            if is_last {
                break;
            }
        }
        Ok(None)
    }

    async fn create(&self, ask: Ask<'_>, wanted: &PullRequest) -> Result<Option<Known>> {
        let PullRequest { head, base, title, body } = wanted;
        let body = json!({"head": head, "base": base, "title": title, "body": body});
        let made = ask.write(Method::POST, self.url(&["pulls"]), &body, &[(409, "already exists")]).await?;
        Ok(made.map(known))
    }

    async fn update(&self, ask: Ask<'_>, number: u64, wanted: &PullRequest) -> Result<()> {
        let body = json!({"title": wanted.title, "body": wanted.body});
        let url = self.url(&["pulls", &number.to_string()]);
        ask.write::<Value>(Method::PATCH, url, &body, &[]).await.map(drop)
    }

    async fn close(&self, ask: Ask<'_>, number: u64) -> Result<()> {
        let url = self.url(&["pulls", &number.to_string()]);
        ask.write::<Value>(Method::PATCH, url, &json!({"state": "closed"}), &[]).await.map(drop)
    }

    fn comments(&self, number: u64) -> [Url; 2] {
        let url = self.url(&["issues", &number.to_string(), "comments"]);
        [url.clone(), url]
    }

    async fn label(&self, ask: Ask<'_>, number: u64) -> Result<()> {
        let Some(label) = self.label_id(ask).await? else { return Err(Failure::stalled("there is no label")) };
        let url = self.url(&["issues", &number.to_string(), "labels"]);
        ask.write::<Value>(Method::POST, url, &json!({"labels": [label]}), &[]).await.map(drop)
    }
}

fn known(pull: Pull) -> Known {
    let state = match (pull.merged, pull.state.as_str()) {
        (true, _) => PullRequestState::Merged,
        (false, "open") => PullRequestState::Open,
        (false, _) => PullRequestState::Closed,
    };
    Known { number: pull.number, url: pull.html_url, state }
}
