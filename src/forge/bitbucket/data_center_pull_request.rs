//! Pull requests on Bitbucket Data Center, which has no labels.

use std::sync::Arc;

use async_trait::async_trait;
use http::Method;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use super::data_center::{WORDS, manners};
use super::listing::Listing;
use crate::clock::Clock;
use crate::error::{Failure, Result};
use crate::forge::answer::Words;
use crate::forge::hosted::{HostSettings, Hosted};
use crate::forge::paging::Page;
use crate::forge::pull_request::{
    Ask, Comment, Known, PAGE_SIZE, PullRequest, PullRequestApi, PullRequestState, PullRequests, asking, full, short,
};
use crate::forge::text::Hidden;
use crate::model::comment::Author;
use crate::model::ids::CommitId;
use crate::model::preview::OpenPullRequest;

/// How often a comment is changed that somebody else changes meanwhile.
const ATTEMPTS: usize = 3;
/// The answers to changing a comment that is gone, somebody else's, or another one by now.
const REFUSALS: &[(u16, &str)] = &[(401, "AuthorisationException"), (403, ""), (404, ""), (409, "")];

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

/// One of the list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    id: u64,
    from_ref: Side,
    to_ref: Side,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Side {
    display_id: String,
    latest_commit: String,
    repository: Repository,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Repository {
    id: u64,
}

/// Something that happened to a pull request.
#[derive(Debug, Deserialize)]
struct Activity {
    comment: Option<Said>,
}

#[derive(Debug, Deserialize)]
struct Said {
    id: u64,
    version: u64,
    #[serde(default)]
    text: String,
}

/// Somebody who may do what was asked for.
#[derive(Debug, Deserialize)]
struct User {
    id: u64,
    name: String,
    active: bool,
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
        let pulls = ask.get::<Listing<Pull>>(url).await?.map(|page| page.values).unwrap_or_default();
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

    /// What a pull request brings is in the repository itself, also where it comes from a fork.
    async fn open(&self, ask: Ask<'_>, base: &str, start: usize) -> Result<Page<OpenPullRequest>> {
        let (at, size, start) = (full(base), PAGE_SIZE.to_string(), start.to_string());
        let query = [
            ("state", "OPEN"),
            ("direction", "INCOMING"),
            ("at", &*at),
            ("order", "NEWEST"),
            ("limit", &*size),
            ("start", &*start),
        ];
        let (pulls, _): (Listing<Listed>, _) = ask.list(asking(self.url(&[]), &query)).await?;
        let open = |Listed { id, from_ref: from, to_ref: to }: Listed| OpenPullRequest {
            number: id,
            is_fork: from.repository != to.repository,
            head: CommitId::new(from.latest_commit),
            branch: from.display_id,
            reference: Some(format!("refs/pull-requests/{id}/from")),
        };
        let Page { items, here, more } = pulls.placed();
        Ok(Page { items: items.into_iter().map(open).collect(), here, more })
    }

    /// Asks for those who may write, by themselves or by a group. Bitbucket leaves out filters that it does not know; this one is
    /// known to every version that signs its calls.
    async fn may_write(&self, ask: Ask<'_>, author: &Author) -> Result<bool> {
        let rights = "a token of a licensed person may ask, where one of the repository may not";
        let ask = ask.needing(rights);
        let repository = &self.settings.repository;
        let query = [
            ("permission.1", "REPO_WRITE"),
            ("permission.1.projectKey", &*repository.owner),
            ("permission.1.repositorySlug", &*repository.name),
            ("filter", &*author.login),
            ("limit", "1000"),
        ];
        let users = asking(repository.api(["rest", "api", "latest", "users"]), &query);
        let users: Option<Listing<User>> = ask.get(users).await?;
        let is_author = |user: User| user.id.to_string() == author.id && user.name == author.login && user.active;
        Ok(users.into_iter().flat_map(|page| page.values).any(is_author))
    }

    /// There are comments among all that happened to it.
    fn comments(&self, number: u64) -> [Url; 2] {
        let number = number.to_string();
        [asking(self.url(&[&number, "activities"]), &[("limit", "100")]), self.url(&[&number, "comments"])]
    }

    fn comment(&self, text: &str) -> Value {
        json!({"text": text})
    }

    fn hidden(&self) -> Hidden {
        Hidden::Address
    }

    async fn said(&self, ask: Ask<'_>, url: Url) -> Result<Vec<Comment>> {
        let happened: Option<Listing<Activity>> = ask.get(url).await?;
        let said = happened.into_iter().flat_map(|page| page.values).filter_map(|activity| activity.comment);
        Ok(said.map(|said| Comment { id: said.id, body: said.text }).collect())
    }

    /// A version that is not the newest is refused: then the comment is read again.
    async fn edit(&self, ask: Ask<'_>, number: u64, id: u64, text: &str) -> Result<bool> {
        let url = self.url(&[&number.to_string(), "comments", &id.to_string()]);
        let mut refused = None;
        for _attempt in 0..ATTEMPTS {
            let said: Option<Said> = ask.get(url.clone()).await?;
            let Some(version) = said.map(|said| said.version).filter(|version| Some(*version) != refused) else {
                return Ok(false);
            };
            let body = json!({"text": text, "version": version});
            if ask.tell(Method::PUT, url.clone(), &body, REFUSALS).await?.is_some() {
                return Ok(true);
            }
            refused = Some(version);
        }
        Err(Failure::transient("somebody else changes the comment at the same time"))
    }
}

fn known(pull: Pull) -> Known {
    let state = match pull.state.as_str() {
        "OPEN" => PullRequestState::Open,
        "MERGED" => PullRequestState::Merged,
        _ => PullRequestState::Closed, // `DECLINED`
    };
    let url = pull.links.pages.into_iter().next().map(|link| link.href).unwrap_or_default();
    Known { number: pull.id, url, state, base: Some(short(&pull.to_ref.id).to_owned()) }
}
