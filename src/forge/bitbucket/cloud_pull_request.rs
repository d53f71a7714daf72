//! Pull requests on Bitbucket Cloud, which has no labels.

use std::sync::Arc;

use async_trait::async_trait;
use http::Method;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use super::cloud::{WORDS, api, manners, url};
use super::listing::Listing;
use crate::clock::Clock;
use crate::error::Result;
use crate::forge::answer::Words;
use crate::forge::hosted::{HostSettings, Hosted};
use crate::forge::paging::Page;
use crate::forge::pull_request::{
    Ask, Comment, Known, PAGE_SIZE, PullRequest, PullRequestApi, PullRequestState, PullRequests, asking, full,
};
use crate::forge::text::Hidden;
use crate::model::comment::Author;
use crate::model::ids::CommitId;
use crate::model::preview::OpenPullRequest;

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
    destination: Option<Destination>,
}

/// Where it goes.
#[derive(Debug, Deserialize)]
struct Destination {
    branch: Branch,
}

#[derive(Debug, Deserialize)]
struct Links {
    html: Link,
}

#[derive(Debug, Deserialize)]
struct Link {
    href: String,
}

/// One of the list.
#[derive(Debug, Deserialize)]
struct Listed {
    id: u64,
    source: Side,
}

#[derive(Debug, Deserialize)]
struct Side {
    branch: Branch,
    /// Nothing, if the branch was deleted.
    commit: Option<Commit>,
    /// Nothing, if the fork was deleted.
    repository: Option<Repository>,
}

#[derive(Debug, Deserialize)]
struct Branch {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Commit {
    /// The first digits of the id.
    hash: String,
}

#[derive(Debug, Deserialize)]
struct Repository {
    full_name: String,
}

#[derive(Debug, Deserialize)]
struct Said {
    id: u64,
    content: Content,
}

#[derive(Debug, Deserialize)]
struct Content {
    #[serde(default)]
    raw: String,
}

/// What somebody may do, by themselves or by a group: the most of it.
#[derive(Debug, Deserialize)]
struct Permission {
    permission: String,
    user: User,
}

#[derive(Debug, Deserialize)]
struct User {
    uuid: String,
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
        Ok(ask.get::<Listing<Pull>>(url).await?.and_then(|page| page.values.into_iter().next()).map(known))
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
        [asking(url.clone(), &[("pagelen", "100"), ("sort", "-created_on")]), url]
    }

    async fn said(&self, ask: Ask<'_>, url: Url) -> Result<Vec<Comment>> {
        let said: Option<Listing<Said>> = ask.get(url).await?;
        let comment = |said: Said| Comment { id: said.id, body: said.content.raw };
        Ok(said.into_iter().flat_map(|page| page.values).map(comment).collect())
    }

    fn comment_at(&self, number: u64, id: u64) -> Option<(Method, Url)> {
        Some((Method::PUT, self.url(&[&number.to_string(), "comments", &id.to_string()])))
    }

    fn hidden(&self) -> Hidden {
        Hidden::Address
    }

    /// Bitbucket Cloud has no reference for a pull request: what comes from a fork is in the fork alone.
    async fn open(&self, ask: Ask<'_>, base: &str, page: usize) -> Result<Page<OpenPullRequest>> {
        let (size, page) = (PAGE_SIZE.to_string(), (page + 1).to_string());
        let query = format!("state = \"OPEN\" AND destination.branch.name = \"{base}\"");
        let query = [("q", &*query), ("sort", "-created_on"), ("pagelen", &*size), ("page", &*page)];
        let (pulls, _): (Listing<Listed>, _) = ask.list(asking(self.url(&[]), &query)).await?;
        let repository = &self.settings.repository;
        let own = format!("{}/{}", repository.owner, repository.name);
        let open = |Listed { id, source }: Listed| {
            let is_fork = source.repository.is_none_or(|repository| !repository.full_name.eq_ignore_ascii_case(&own));
            let reference = (!is_fork).then(|| full(&source.branch.name));
            let (branch, head) = (source.branch.name, CommitId::new(source.commit?.hash));
            Some(OpenPullRequest { number: id, head, branch, is_fork, reference })
        };
        let Page { items, here, more } = pulls.numbered();
        Ok(Page { items: items.into_iter().filter_map(open).collect(), here, more })
    }

    /// Asks what somebody may do, by themselves or by a group.
    async fn may_write(&self, ask: Ask<'_>, author: &Author) -> Result<bool> {
        let rights = "an access token of the workspace needs `Account: Read` and `Repositories: Admin`; one of the \
                      repository may not ask";
        let ask = ask.needing(rights);
        let repository = &self.settings.repository;
        let place = ["workspaces", &repository.owner, "permissions", "repositories", &repository.name];
        let query = format!("user.uuid=\"{}\"", author.id);
        let found: Option<Listing<Permission>> = ask.get(asking(api(&self.settings, place), &[("q", &query)])).await?;
        let lets_write =
            |found: Permission| found.user.uuid == author.id && ["write", "admin"].contains(&found.permission.as_str());
        Ok(found.into_iter().flat_map(|page| page.values).any(lets_write))
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
    let base = pull.destination.map(|destination| destination.branch.name);
    Known { number: pull.id, url: pull.links.html.href, state, base }
}
