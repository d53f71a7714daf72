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
use crate::forge::pull_request::{
    Ask, Known, LABEL, PullRequest, PullRequestApi, PullRequestState, PullRequests, asking, full,
};

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
}

#[derive(Debug, Deserialize)]
struct List {
    #[serde(default)]
    value: Vec<Pull>,
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
        Known { number: pull.pull_request_id, url: page.to_string(), state }
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
        Ok(ask.get::<List>(url).await?.and_then(|list| list.value.first().map(|pull| self.known(pull))))
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

    /// A thread that asks for no answer.
    fn comment(&self, text: &str) -> Value {
        let comment = json!({"parentCommentId": 0, "content": text, "commentType": "text"});
        json!({"comments": [comment], "status": "closed"})
    }
}
