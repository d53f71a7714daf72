//! Pull requests through the API of a host: what all of them share. There is never a second one for a branch: the open one
//! is searched for first, and again where the host says that there is one.

use std::collections::BTreeSet;

use async_trait::async_trait;
use http::Method;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::Words;
pub(super) use super::ask::{Ask, asking};
use super::hosted::Hosted;
use super::paging::{More, Page, some_pages};
use super::text::{Hidden, cut};
use crate::clock::rfc3339;
use crate::error::{Class, Failure, Result};
use crate::model::comment::Author;
use crate::model::preview::OpenPullRequest;
use crate::model::time::Timestamp;

/// The answers to changing a comment that is gone, or somebody else's.
pub(super) const FOREIGN: &[(u16, &str)] = &[(403, ""), (404, "")];
/// Pull requests of a page; Gitea gives no more where nobody has configured it.
pub(super) const PAGE_SIZE: usize = 50;
/// So many open ones are read, the newest first.
const MOST: usize = 300;
/// A branch that is nowhere.
const NOBODYS: &str = "launchway/there-is-no-such-branch";
/// What hosts answer where a branch is nowhere, to those who may open pull requests.
const ABSENT: &[u16] = &[400, 404, 409, 422];
/// The label that pull requests get where the host has labels.
pub(super) const LABEL: &str = "rollback";

/// What a pull request says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    /// The branch that it brings, which is in the same repository.
    pub head: String,
    /// The branch that it is brought to.
    pub base: String,
    /// One line.
    pub title: String,
    /// Markdown.
    pub body: String,
}

/// A pull request as its host has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its number in the repository.
    pub number: u64,
    /// Its page.
    pub url: String,
    /// What became of it.
    pub state: PullRequestState,
    /// The branch that it is for, if its host says that.
    pub base: Option<String>,
}

/// What became of a pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullRequestState {
    /// It waits for a person.
    Open,
    /// It was merged.
    Merged,
    /// It was closed without being merged.
    Closed,
}

/// Opens pull requests on a host, and hears what became of them.
#[async_trait]
pub trait PullRequests: Send + Sync + std::fmt::Debug {
    /// A pull request by its number; nothing, if it is gone.
    ///
    /// # Errors
    /// `Transient` if the host is busy or out of reach, `Stalled` if a person has to act: a token without rights.
    async fn read(&self, number: u64) -> Result<Option<Known>>;

    /// Opens one, or has the one that is open for the same branches say the same.
    ///
    /// # Errors
    /// As [`PullRequests::read`].
    async fn open_or_update(&self, wanted: &PullRequest) -> Result<Known>;

    /// Whether the token may open them: tried out with a branch that nobody has.
    ///
    /// # Errors
    /// As [`PullRequests::read`].
    async fn try_out(&self, base: &str) -> Result<()>;

    /// Closes one that is open, without merging it, and says why in a comment, once.
    ///
    /// # Errors
    /// As [`PullRequests::read`].
    async fn close(&self, number: u64, why: &str) -> Result<()>;

    /// The newest open ones for a branch.
    ///
    /// # Errors
    /// As [`PullRequests::read`].
    async fn open(&self, base: &str) -> Result<Vec<OpenPullRequest>>;

    /// Whether somebody may write to the repository now, as the host itself tells.
    ///
    /// # Errors
    /// As [`PullRequests::read`]; `Stalled` also if the host does not tell.
    async fn may_write(&self, author: &Author) -> Result<bool>;

    /// Has one comment on a pull request say something behind a `marker` that nobody sees: the one that is `known`, else one
    /// that begins with the marker and was not written before `since`, else a new one. Gives its id.
    ///
    /// # Errors
    /// As [`PullRequests::read`].
    async fn say(
        &self,
        number: u64,
        known: Option<u64>,
        since: Option<Timestamp>,
        marker: &str,
        text: &str,
    ) -> Result<u64>;
}

/// A comment on a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Comment {
    /// Its id on its host.
    pub(super) id: u64,
    /// Markdown.
    #[serde(default)]
    pub(super) body: String,
}

/// What somebody may do, in the words of GitHub, which Gitea shares.
#[derive(Debug, Deserialize)]
pub(super) struct Permission {
    permission: String,
    user: Option<Person>,
}

#[derive(Debug, Deserialize)]
struct Person {
    id: u64,
}

impl Permission {
    /// Whether it is that of an author, and lets them write. GitHub's other roles show as the one of these that they extend.
    pub(super) fn lets_write(&self, author: &Author) -> bool {
        let is_theirs = self.user.as_ref().is_some_and(|user| user.id.to_string() == author.id);
        is_theirs && ["write", "admin", "owner"].contains(&self.permission.as_str())
    }
}

/// A host's API of pull requests.
#[async_trait]
pub(super) trait PullRequestApi: Send + Sync + std::fmt::Debug {
    /// What is said of the host, and which rights pull requests need.
    fn words(&self) -> Words;

    /// The most characters of a description.
    fn longest_body(&self) -> usize {
        60_000
    }

    /// The most characters of a comment.
    fn longest_comment(&self) -> usize {
        self.longest_body()
    }

    /// One by its number.
    async fn read(&self, ask: Ask<'_>, number: u64) -> Result<Option<Known>>;

    /// The open one for the same branches.
    async fn find(&self, ask: Ask<'_>, wanted: &PullRequest) -> Result<Option<Known>>;

    /// Opens one; nothing, if the host says that there is one.
    async fn create(&self, ask: Ask<'_>, wanted: &PullRequest) -> Result<Option<Known>>;

    /// Has an open one say what is wanted.
    async fn update(&self, ask: Ask<'_>, number: u64, wanted: &PullRequest) -> Result<()>;

    /// Closes an open one.
    async fn close(&self, ask: Ask<'_>, number: u64) -> Result<()>;

    /// Where its comments are, to be read and to be written.
    fn comments(&self, number: u64) -> [Url; 2];

    /// A comment as the host takes it.
    fn comment(&self, text: &str) -> Value {
        json!({"body": text})
    }

    /// How something is hidden in a comment.
    fn hidden(&self) -> Hidden {
        Hidden::Html
    }

    /// The newest of its comments.
    async fn said(&self, ask: Ask<'_>, url: Url) -> Result<Vec<Comment>> {
        Ok(ask.get(url).await?.unwrap_or_default())
    }

    /// How and where a comment is changed; nothing, where none is.
    fn comment_at(&self, _number: u64, _id: u64) -> Option<(Method, Url)> {
        None
    }

    /// Has a comment say something else; not, if it is gone or somebody else's.
    async fn edit(&self, ask: Ask<'_>, number: u64, id: u64, text: &str) -> Result<bool> {
        let Some((method, url)) = self.comment_at(number, id) else { return Ok(false) };
        Ok(ask.tell(method, url, &self.comment(text), FOREIGN).await?.is_some())
    }

    /// A page of the open ones for a branch, the newest first, counted from 0, or from where the one before it says that it
    /// begins; none, where they are not read.
    async fn open(&self, _ask: Ask<'_>, _base: &str, _at: usize) -> Result<Page<OpenPullRequest>> {
        Ok(Page::new(Vec::new(), More::Nothing))
    }

    /// Whether somebody may write to the repository. A host of which it is not known how it tells refuses.
    async fn may_write(&self, ask: Ask<'_>, _author: &Author) -> Result<bool> {
        Err(Failure::stalled(format!("{} is not asked what people may do", ask.words.name)))
    }

    /// Labels a new one; a host without labels does nothing.
    async fn label(&self, _ask: Ask<'_>, _number: u64) -> Result<()> {
        Ok(())
    }
}

/// The name of a branch, which may be its full one.
pub(super) fn short(branch: &str) -> &str {
    branch.strip_prefix("refs/heads/").unwrap_or(branch)
}

/// A branch by its full name.
pub(super) fn full(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

impl Hosted<dyn PullRequestApi> {
    fn ask(&self) -> Ask<'_> {
        Ask { client: &self.client, words: self.api.words(), what: "open pull requests", busy: &[], absent: &[] }
    }

    /// Comments on one, unless the comment is there.
    async fn comment(&self, ask: Ask<'_>, number: u64, text: &str) -> Result<()> {
        let [read, write] = self.api.comments(number);
        let there: Value = ask.get(read).await?.unwrap_or_default();
        if mentions(&there, text) {
            return Ok(());
        }
        ask.write::<Value>(Method::POST, write, &self.api.comment(text), &[]).await.map(drop)
    }
}

/// Whether a text stands anywhere in an answer.
fn mentions(answer: &Value, text: &str) -> bool {
    match answer {
        Value::String(found) => found.contains(text),
        Value::Array(values) => values.iter().any(|value| mentions(value, text)),
        Value::Object(map) => map.values().any(|value| mentions(value, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[async_trait]
impl PullRequests for Hosted<dyn PullRequestApi> {
    async fn read(&self, number: u64) -> Result<Option<Known>> {
        self.client.ready()?;
        self.api.read(self.ask(), number).await
    }

    async fn open_or_update(&self, wanted: &PullRequest) -> Result<Known> {
        self.client.ready()?;
        let ask = self.ask();
        let wanted = PullRequest { body: cut(wanted.body.clone(), self.api.longest_body()), ..wanted.clone() };
        let found = match self.api.find(ask, &wanted).await? {
            Some(found) => found,
            None => match self.api.create(ask, &wanted).await? {
                Some(made) => {
                    if let Err(failure) = self.api.label(ask, made.number).await {
                        let problem = failure.one_line();
                        tracing::info!(problem, pull_request = made.url, "a pull request has no label");
                    }
                    return Ok(made);
                }
                None => self.api.find(ask, &wanted).await?.ok_or_else(|| {
                    let name = self.api.words().name;
                    Failure::transient(format!("{name} has a pull request of the branch and does not show it"))
                })?,
            },
        };
        self.api.update(ask, found.number, &wanted).await?;
        Ok(found)
    }

    async fn try_out(&self, base: &str) -> Result<()> {
        self.client.ready()?;
        let ask = Ask { absent: ABSENT, ..self.ask() };
        let title = "tried out".to_owned();
        let wanted = PullRequest { head: NOBODYS.to_owned(), base: base.to_owned(), title, body: String::new() };
        self.api.create(ask, &wanted).await.map(drop)
    }

    async fn close(&self, number: u64, why: &str) -> Result<()> {
        self.client.ready()?;
        let ask = self.ask();
        let known = self.api.read(ask, number).await?;
        let Some(known) = known.filter(|known| known.state == PullRequestState::Open) else { return Ok(()) };
        match self.comment(ask, number, why).await {
            // A token may open and close pull requests, and not comment on them.
            Err(failure) if failure.class() == Class::Stalled => {
                let problem = failure.one_line();
                tracing::info!(problem, pull_request = known.url, "a pull request is closed without a comment");
            }
            commented => commented?,
        }
        self.api.close(ask, number).await
    }

    async fn open(&self, base: &str) -> Result<Vec<OpenPullRequest>> {
        self.client.ready()?;
        let page = async |at: usize| self.api.open(self.ask(), base, at).await.map(Some);
        let mut all = some_pages(PAGE_SIZE, MOST, page).await?.unwrap_or_default();
        // One that is opened meanwhile moves the last of a page to the next.
        let mut seen = BTreeSet::new();
        all.retain(|pull| seen.insert(pull.number));
        Ok(all)
    }

    async fn may_write(&self, author: &Author) -> Result<bool> {
        self.client.ready()?;
        let ask = Ask { what: "ask what people may do", ..self.ask() };
        self.api.may_write(ask, author).await
    }

    /// The oldest one with the marker is the own one: whoever has copied it has done so later. Where there are many, those of
    /// hosts that know no such filter come newest first.
    async fn say(
        &self,
        number: u64,
        known: Option<u64>,
        since: Option<Timestamp>,
        marker: &str,
        text: &str,
    ) -> Result<u64> {
        self.client.ready()?;
        let (ask, marker) = (self.ask(), self.api.hidden().hide(marker));
        let text = cut(format!("{marker}\n{text}"), self.api.longest_comment());
        if let Some(id) = known
            && self.api.edit(ask, number, id, &text).await?
        {
            return Ok(id);
        }
        let [read, write] = self.api.comments(number);
        let read = match since {
            Some(since) => asking(read, &[("since", &rfc3339(since))]),
            None => read,
        };
        let mut comments = self.api.said(ask, read).await?;
        comments.sort_by_key(|comment| comment.id);
        for comment in comments.iter().filter(|comment| comment.body.starts_with(&marker)) {
            if self.api.edit(ask, number, comment.id, &text).await? {
                return Ok(comment.id);
            }
        }
        let made: Option<Comment> = ask.write(Method::POST, write, &self.api.comment(&text), &[(404, "")]).await?;
        let gone = || Failure::transient(format!("{} has no pull request {number} any more", ask.words.name));
        made.map(|made| made.id).ok_or_else(gone)
    }
}
