//! Pull requests on Azure DevOps.

use std::sync::Arc;

use async_trait::async_trait;
use http::Method;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use super::writer::{WORDS, manners, url};
use crate::clock::Clock;
use crate::error::Result;
use crate::forge::answer::Words;
use crate::forge::hosted::{HostSettings, Hosted};
use crate::forge::paging::Page;
use crate::forge::pull_request::{
    Ask, Comment, FOREIGN, Known, LABEL, PAGE_SIZE, PullRequest, PullRequestApi, PullRequestState, PullRequests,
    asking, full, short,
};
use crate::forge::text::Hidden;
use crate::model::ids::CommitId;
use crate::model::preview::OpenPullRequest;

/// The first comment of every thread.
const FIRST: &str = "1";

/// The pull requests of a repository, with a personal access token.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn pull_requests(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn PullRequests>> {
    let api: Box<dyn PullRequestApi> = Box::new(AzurePulls { settings: settings.clone() });
    Ok(Hosted::new(&settings, manners(), api, clock).await?)
}

#[derive(Debug)]
struct AzurePulls {
    settings: HostSettings,
}

/// A pull request as Azure DevOps sends it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pull {
    pull_request_id: u64,
    status: String,
    target_ref_name: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct List<T> {
    #[serde(default = "Vec::new")]
    pub(super) value: Vec<T>,
}

/// One of the list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    pull_request_id: u64,
    source_ref_name: String,
    /// Nothing, as long as it is tried out.
    last_merge_source_commit: Option<Commit>,
    /// Where it comes from, if that is a fork.
    #[serde(default)]
    fork_source: Value,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Commit {
    commit_id: String,
}

/// Comments, the first of which begins it.
#[derive(Debug, Deserialize)]
struct Thread {
    id: u64,
    #[serde(default)]
    comments: Vec<Said>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said {
    content: Option<String>,
    #[serde(default)]
    is_deleted: bool,
}

impl Thread {
    /// What begins it; nothing, if that was taken back.
    fn begins(self) -> Option<Comment> {
        let first = self.comments.into_iter().next().filter(|first| !first.is_deleted)?;
        Some(Comment { id: self.id, body: first.content? })
    }
}

impl AzurePulls {
    fn url(&self, rest: &[&str]) -> Url {
        url(&self.settings, ["pullrequests"].iter().chain(rest).copied())
    }

    /// The page of one: its address in the API is none for people.
    fn known(&self, pull: &Pull) -> Known {
        let state = match pull.status.as_str() {
            "completed" => PullRequestState::Merged,
            "abandoned" => PullRequestState::Closed,
            _ => PullRequestState::Open,
        };
        let repository = &self.settings.repository;
        let number = pull.pull_request_id.to_string();
        let page = repository.api([&repository.owner, "_git", &repository.name, "pullrequest", &number]);
        let base = pull.target_ref_name.as_deref().map(|base| short(base).to_owned());
        Known { number: pull.pull_request_id, url: page.to_string(), state, base }
    }
}

#[async_trait]
impl PullRequestApi for AzurePulls {
    fn words(&self) -> Words {
        let rights = "a personal access token needs the scopes `Code (read & write)` and `Code (status)`";
        Words { rights, ..WORDS }
    }

    /// Source: the documentation of the field `description`.
    fn longest_body(&self) -> usize {
        4000
    }

    async fn read(&self, ask: Ask<'_>, number: u64) -> Result<Option<Known>> {
        Ok(ask.get::<Pull>(self.url(&[&number.to_string()])).await?.map(|pull| self.known(&pull)))
    }

    async fn find(&self, ask: Ask<'_>, wanted: &PullRequest) -> Result<Option<Known>> {
        let (from, to) = (full(&wanted.head), full(&wanted.base));
        let query = [
            ("searchCriteria.status", "active"),
            ("searchCriteria.sourceRefName", &*from),
            ("searchCriteria.targetRefName", &*to),
        ];
        let url = asking(self.url(&[]), &query);
        Ok(ask.get::<List<Pull>>(url).await?.and_then(|list| list.value.first().map(|pull| self.known(pull))))
    }

    async fn create(&self, ask: Ask<'_>, wanted: &PullRequest) -> Result<Option<Known>> {
        let PullRequest { head, base, title, body } = wanted;
        let (from, to) = (full(head), full(base));
        let body = json!({
            "sourceRefName": from, "targetRefName": to, "title": title, "description": body,
            "labels": [{"name": LABEL}],
        });
        let made = ask.write::<Pull>(Method::POST, self.url(&[]), &body, &[(409, "TF401179")]).await?;
        Ok(made.map(|pull| self.known(&pull)))
    }

    async fn update(&self, ask: Ask<'_>, number: u64, wanted: &PullRequest) -> Result<()> {
        let body = json!({"title": wanted.title, "description": wanted.body});
        ask.write::<Value>(Method::PATCH, self.url(&[&number.to_string()]), &body, &[]).await.map(drop)
    }

    async fn close(&self, ask: Ask<'_>, number: u64) -> Result<()> {
        let url = self.url(&[&number.to_string()]);
        ask.write::<Value>(Method::PATCH, url, &json!({"status": "abandoned"}), &[]).await.map(drop)
    }

    fn comments(&self, number: u64) -> [Url; 2] {
        let url = self.url(&[&number.to_string(), "threads"]);
        [url.clone(), url]
    }

    fn longest_comment(&self) -> usize {
        60_000
    }

    fn hidden(&self) -> Hidden {
        Hidden::Address
    }

    async fn said(&self, ask: Ask<'_>, url: Url) -> Result<Vec<Comment>> {
        let threads: Option<List<Thread>> = ask.get(url).await?;
        Ok(threads.into_iter().flat_map(|list| list.value).filter_map(Thread::begins).collect())
    }

    /// What was taken back can be changed no more.
    async fn edit(&self, ask: Ask<'_>, number: u64, id: u64, text: &str) -> Result<bool> {
        let (number, id) = (number.to_string(), id.to_string());
        let thread: Option<Thread> = ask.get(self.url(&[&number, "threads", &id])).await?;
        if thread.and_then(Thread::begins).is_none() {
            return Ok(false);
        }
        let url = self.url(&[&number, "threads", &id, "comments", FIRST]);
        Ok(ask.tell(Method::PATCH, url, &json!({"content": text}), FOREIGN).await?.is_some())
    }

    /// What comes from a fork is in the fork alone, but for what Azure DevOps itself has merged it to.
    async fn open(&self, ask: Ask<'_>, base: &str, page: usize) -> Result<Page<OpenPullRequest>> {
        let (to, top, skip) = (full(base), PAGE_SIZE.to_string(), (page * PAGE_SIZE).to_string());
        let query = [
            ("searchCriteria.status", "active"),
            ("searchCriteria.targetRefName", &*to),
            ("$top", &*top),
            ("$skip", &*skip),
        ];
        let (pulls, more): (List<Listed>, _) = ask.list(asking(self.url(&[]), &query)).await?;
        let open = |pull: Listed| {
            let (is_fork, from) = (!pull.fork_source.is_null(), pull.source_ref_name);
            Some(OpenPullRequest {
                number: pull.pull_request_id,
                head: CommitId::new(pull.last_merge_source_commit?.commit_id),
                branch: short(&from).to_owned(),
                is_fork,
                reference: (!is_fork).then_some(from),
            })
        };
        Ok(Page { here: pulls.value.len(), items: pulls.value.into_iter().filter_map(open).collect(), more })
    }

    /// A thread that asks for no answer.
    fn comment(&self, text: &str) -> Value {
        let comment = json!({"parentCommentId": 0, "content": text, "commentType": "text"});
        json!({"comments": [comment], "status": "closed"})
    }
}
