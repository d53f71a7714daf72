//! Pull requests on GitHub.

use std::sync::Arc;

use async_trait::async_trait;
use http::Method;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use super::writer::{manners, url, words};
use crate::clock::Clock;
use crate::error::Result;
use crate::forge::answer::Words;
use crate::forge::hosted::{HostSettings, Hosted};
use crate::forge::paging::Page;
use crate::forge::pull_request::{
    Ask, Known, LABEL, PAGE_SIZE, Permission, PullRequest, PullRequestApi, PullRequestState, PullRequests, asking,
};
use crate::model::comment::Author;
use crate::model::ids::CommitId;
use crate::model::preview::OpenPullRequest;

/// The pull requests of a repository, with a token that may write them.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn pull_requests(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn PullRequests>> {
    let api: Box<dyn PullRequestApi> = Box::new(GithubPulls { settings: settings.clone() });
    Ok(Hosted::new(&settings, manners(), api, clock).await?)
}

#[derive(Debug)]
struct GithubPulls {
    settings: HostSettings,
}

/// A pull request as GitHub sends it.
#[derive(Debug, Deserialize)]
struct Pull {
    number: u64,
    html_url: String,
    state: String,
    merged_at: Option<String>,
    base: Option<Base>,
}

/// The branch that one is for.
#[derive(Debug, Deserialize)]
struct Base {
    #[serde(rename = "ref")]
    name: String,
}

/// One of the list.
#[derive(Debug, Deserialize)]
struct Listed {
    number: u64,
    head: Head,
}

#[derive(Debug, Deserialize)]
struct Head {
    #[serde(rename = "ref")]
    name: String,
    sha: String,
    /// Nothing, if the fork was deleted.
    repo: Option<Repository>,
}

#[derive(Debug, Deserialize)]
struct Repository {
    full_name: String,
}

impl GithubPulls {
    fn url(&self, rest: &[&str]) -> Url {
        url(&self.settings, rest.iter().copied())
    }
}

#[async_trait]
impl PullRequestApi for GithubPulls {
    fn words(&self) -> Words {
        let rights =
            "a fine-grained one, or an App, needs `Pull requests: read and write` and `Contents: read and write`";
        words(&self.settings, rights)
    }

    async fn read(&self, ask: Ask<'_>, number: u64) -> Result<Option<Known>> {
        Ok(ask.get::<Pull>(self.url(&["pulls", &number.to_string()])).await?.map(known))
    }

    async fn find(&self, ask: Ask<'_>, wanted: &PullRequest) -> Result<Option<Known>> {
        let head = format!("{}:{}", self.settings.repository.owner, wanted.head);
        let query = [("state", "open"), ("head", &*head), ("base", &*wanted.base)];
        let url = asking(self.url(&["pulls"]), &query);
        Ok(ask.get::<Vec<Pull>>(url).await?.unwrap_or_default().into_iter().next().map(known))
    }

    async fn create(&self, ask: Ask<'_>, wanted: &PullRequest) -> Result<Option<Known>> {
        let PullRequest { head, base, title, body } = wanted;
        let body = json!({"head": head, "base": base, "title": title, "body": body});
        let made = ask.write(Method::POST, self.url(&["pulls"]), &body, &[(422, "already exists")]).await?;
        Ok(made.map(known))
    }

    async fn update(&self, ask: Ask<'_>, number: u64, wanted: &PullRequest) -> Result<()> {
        let body = json!({"title": wanted.title, "body": wanted.body});
        let url = self.url(&["pulls", &number.to_string()]);
        ask.write::<Value>(Method::PATCH, url, &body, &[]).await.map(drop)
    }

    async fn open(&self, ask: Ask<'_>, base: &str, page: usize) -> Result<Page<OpenPullRequest>> {
        let (size, page) = (PAGE_SIZE.to_string(), (page + 1).to_string());
        let query = [
            ("state", "open"),
            ("base", base),
            ("sort", "created"),
            ("direction", "desc"),
            ("per_page", &*size),
            ("page", &*page),
        ];
        let (pulls, more): (Vec<Listed>, _) = ask.list(asking(self.url(&["pulls"]), &query)).await?;
        let repository = &self.settings.repository;
        let own = format!("{}/{}", repository.owner, repository.name);
        let open = |pull: Listed| OpenPullRequest {
            number: pull.number,
            head: CommitId::new(pull.head.sha),
            branch: pull.head.name,
            is_fork: pull.head.repo.is_none_or(|repository| !repository.full_name.eq_ignore_ascii_case(&own)),
            reference: Some(format!("refs/pull/{}/head", pull.number)),
        };
        Ok(Page::new(pulls.into_iter().map(open).collect(), more))
    }

    async fn close(&self, ask: Ask<'_>, number: u64) -> Result<()> {
        let url = self.url(&["pulls", &number.to_string()]);
        ask.write::<Value>(Method::PATCH, url, &json!({"state": "closed"}), &[]).await.map(drop)
    }

    fn comments(&self, number: u64) -> [Url; 2] {
        let url = self.url(&["issues", &number.to_string(), "comments"]);
        [asking(url.clone(), &[("per_page", "100")]), url]
    }

    fn comment_at(&self, _number: u64, id: u64) -> Option<(Method, Url)> {
        Some((Method::PATCH, self.url(&["issues", "comments", &id.to_string()])))
    }

    async fn may_write(&self, ask: Ask<'_>, author: &Author) -> Result<bool> {
        let rights = "a fine-grained one needs `Metadata: read`, of somebody who may write to the repository";
        let ask = ask.needing(rights);
        let url = self.url(&["collaborators", &author.login, "permission"]);
        Ok(ask.get::<Permission>(url).await?.is_some_and(|permission| permission.lets_write(author)))
    }

    /// GitHub makes a label that is not there.
    async fn label(&self, ask: Ask<'_>, number: u64) -> Result<()> {
        let url = self.url(&["issues", &number.to_string(), "labels"]);
        ask.write::<Value>(Method::POST, url, &json!({"labels": [LABEL]}), &[]).await.map(drop)
    }
}

fn known(pull: Pull) -> Known {
    let state = match (pull.merged_at, pull.state.as_str()) {
        (Some(_), _) => PullRequestState::Merged,
        (None, "open") => PullRequestState::Open,
        (None, _) => PullRequestState::Closed,
    };
    Known { number: pull.number, url: pull.html_url, state, base: pull.base.map(|base| base.name) }
}
