//! Pull requests on Gitea and Forgejo.

use std::sync::Arc;

use async_trait::async_trait;
use http::Method;
use reqwest::Url;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::writer::{WORDS, manners, url};
use crate::clock::Clock;
use crate::error::{Failure, Result};
use crate::forge::answer::Words;
use crate::forge::hosted::{HostSettings, Hosted};
use crate::forge::paging::{More, Page, pages};
use crate::forge::pull_request::{
    Ask, Known, LABEL, Permission, PullRequest, PullRequestApi, PullRequestState, PullRequests, asking,
};
use crate::model::comment::Author;
use crate::model::ids::CommitId;
use crate::model::preview::OpenPullRequest;

/// Of a page; Gitea gives no more where nobody has configured it.
const PAGE_SIZE: usize = 50;

/// The pull requests of a repository, with a token that has the scope `write:repository`; with `write:issue`, they get a
/// label.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn pull_requests(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn PullRequests>> {
    let api: Box<dyn PullRequestApi> = Box::new(GiteaPulls { settings: settings.clone() });
    Ok(Hosted::new(&settings, manners(), api, clock).await?)
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
    /// Below zero, where it is gone.
    repo_id: i64,
    #[serde(default)]
    sha: String,
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

    /// Looks through a list, page by page, until something is found.
    async fn search<T: DeserializeOwned>(
        &self,
        ask: Ask<'_>,
        list: &str,
        query: &[(&str, &str)],
        is_it: impl Fn(&T) -> bool + Send + Sync,
    ) -> Result<Option<T>> {
        let url = asking(self.url(&[list]), query);
        let page = async |at: usize| -> Result<Option<Page<T>>> {
            let (limit, page) = (PAGE_SIZE.to_string(), (at + 1).to_string());
            let part = ask.get_part::<Vec<T>>(asking(url.clone(), &[("limit", &limit), ("page", &page)])).await?;
            Ok(part.map(|(found, more)| {
                let here = found.len();
                let items: Vec<T> = found.into_iter().find(&is_it).into_iter().collect();
                let more = if items.is_empty() { more.or_perhaps() } else { More::Nothing };
                Page { items, here, more }
            }))
        };
        Ok(pages(PAGE_SIZE, page).await?.and_then(|found| found.into_iter().next()))
    }

    async fn label_id(&self, ask: Ask<'_>) -> Result<Option<u64>> {
        let known = self.search(ask, "labels", &[], |label: &Label| label.name == LABEL).await?;
        if let Some(known) = known {
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
        let is_it = |pull: &Pull| {
            let own = pull.head.repo_id == pull.base.repo_id; // no fork's branch of the same name
            own && pull.head.name == wanted.head && pull.base.name == wanted.base
        };
        Ok(self.search(ask, "pulls", &[("state", "open")], is_it).await?.map(known))
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

    /// The list knows no filter by branch.
    async fn open(&self, ask: Ask<'_>, base: &str, page: usize) -> Result<Page<OpenPullRequest>> {
        let (limit, page) = (PAGE_SIZE.to_string(), (page + 1).to_string());
        let query = [("state", "open"), ("sort", "newest"), ("limit", &*limit), ("page", &*page)];
        let (pulls, more): (Vec<Pull>, _) = ask.list(asking(self.url(&["pulls"]), &query)).await?;
        let open = |pull: Pull| OpenPullRequest {
            number: pull.number,
            is_fork: is_of_strangers(&pull),
            head: CommitId::new(pull.head.sha),
            branch: pull.head.name,
            reference: Some(format!("refs/pull/{}/head", pull.number)),
        };
        let (here, more) = (pulls.len(), more.or_perhaps());
        Ok(Page { items: pulls.into_iter().filter(|pull| pull.base.name == base).map(open).collect(), here, more })
    }

    async fn close(&self, ask: Ask<'_>, number: u64) -> Result<()> {
        let url = self.url(&["pulls", &number.to_string()]);
        ask.write::<Value>(Method::PATCH, url, &json!({"state": "closed"}), &[]).await.map(drop)
    }

    fn comments(&self, number: u64) -> [Url; 2] {
        let url = self.url(&["issues", &number.to_string(), "comments"]);
        [url.clone(), url]
    }

    fn comment_at(&self, _number: u64, id: u64) -> Option<(Method, Url)> {
        Some((Method::PATCH, self.url(&["issues", "comments", &id.to_string()])))
    }

    /// Who does not administer the repository sees nobody's rights but their own. Gogs, and Gitea before 1.17, tell nothing.
    async fn may_write(&self, ask: Ask<'_>, author: &Author) -> Result<bool> {
        let rights = "its user has to administer the repository, and it needs the scope read:repository";
        let ask = ask.needing(rights);
        let url = self.url(&["collaborators", &author.login, "permission"]);
        Ok(ask.get::<Permission>(url).await?.is_some_and(|permission| permission.lets_write(author)))
    }

    async fn label(&self, ask: Ask<'_>, number: u64) -> Result<()> {
        let Some(label) = self.label_id(ask).await? else { return Err(Failure::stalled("there is no label")) };
        let url = self.url(&["issues", &number.to_string(), "labels"]);
        ask.write::<Value>(Method::POST, url, &json!({"labels": [label]}), &[]).await.map(drop)
    }
}

/// Whether it may be of somebody who cannot push to the repository: on a fork, or pushed to `refs/for/` (AGit), which whoever
/// can read may do; such a one has no branch.
fn is_of_strangers(pull: &Pull) -> bool {
    pull.head.repo_id != pull.base.repo_id || pull.head.name.starts_with("refs/")
}

fn known(pull: Pull) -> Known {
    let state = match (pull.merged, pull.state.as_str()) {
        (true, _) => PullRequestState::Merged,
        (false, "open") => PullRequestState::Open,
        (false, _) => PullRequestState::Closed,
    };
    Known { number: pull.number, url: pull.html_url, state, base: Some(pull.base.name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_branch_of_the_repository_brings_is_of_strangers() {
        for (name, repository, expected) in
            [("topic", 1, false), ("topic", 2, true), ("topic", -1, true), ("refs/pull/7/head", 1, true)]
        {
            let pull: Pull = serde_json::from_value(json!({
                "number": 7, "html_url": "https://git.example/pulls/7", "state": "open",
                "head": {"ref": name, "repo_id": repository}, "base": {"ref": "main", "repo_id": 1},
            }))
            .unwrap();
            assert_eq!(is_of_strangers(&pull), expected, "{name} {repository}");
        }
    }
}
