//! Merge requests on GitLab.

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
use crate::forge::hosted::HostSettings;
use crate::forge::pull_request::{
    Ask, Known, LABEL, PullRequest, PullRequestApi, PullRequestState, PullRequests, asking, hosted,
};

/// The merge requests of a project, with a token that has the scope `api`.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn pull_requests(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn PullRequests>> {
    hosted(&settings.clone(), manners(), GitlabMerges { settings }, clock).await
}

#[derive(Debug)]
struct GitlabMerges {
    settings: HostSettings,
}

/// A merge request as GitLab sends it.
#[derive(Debug, Deserialize)]
struct Merge {
    iid: u64,
    web_url: String,
    state: String,
}

impl GitlabMerges {
    fn url(&self, rest: &[&str]) -> Url {
        url(&self.settings, rest)
    }
}

#[async_trait]
impl PullRequestApi for GitlabMerges {
    fn words(&self) -> Words {
        WORDS
    }

    async fn read(&self, ask: Ask<'_>, number: u64) -> Result<Option<Known>> {
        Ok(ask.get::<Merge>(self.url(&["merge_requests", &number.to_string()])).await?.map(known))
    }

    async fn find(&self, ask: Ask<'_>, wanted: &PullRequest) -> Result<Option<Known>> {
        let query = [("state", "opened"), ("source_branch", &*wanted.head), ("target_branch", &*wanted.base)];
        let url = asking(self.url(&["merge_requests"]), &query);
        Ok(ask.get::<Vec<Merge>>(url).await?.unwrap_or_default().into_iter().next().map(known))
    }

    async fn create(&self, ask: Ask<'_>, wanted: &PullRequest) -> Result<Option<Known>> {
        let PullRequest { head, base, title, body } = wanted;
        let body = json!({
            "source_branch": head, "target_branch": base, "title": title, "description": body, "labels": LABEL,
            "remove_source_branch": true,
        });
        let made = ask.write(Method::POST, self.url(&["merge_requests"]), &body, &[(409, "already exists")]).await?;
        Ok(made.map(known))
    }

    async fn update(&self, ask: Ask<'_>, number: u64, wanted: &PullRequest) -> Result<()> {
        let body = json!({"title": wanted.title, "description": wanted.body});
        let url = self.url(&["merge_requests", &number.to_string()]);
        ask.write::<Value>(Method::PUT, url, &body, &[]).await.map(drop)
    }

    async fn close(&self, ask: Ask<'_>, number: u64) -> Result<()> {
        let url = self.url(&["merge_requests", &number.to_string()]);
        ask.write::<Value>(Method::PUT, url, &json!({"state_event": "close"}), &[]).await.map(drop)
    }

    fn comments(&self, number: u64) -> [Url; 2] {
        let url = self.url(&["merge_requests", &number.to_string(), "notes"]);
        [asking(url.clone(), &[("per_page", "100")]), url]
    }
}

fn known(merge: Merge) -> Known {
    let state = match merge.state.as_str() {
        "merged" => PullRequestState::Merged,
        "closed" => PullRequestState::Closed,
        _ => PullRequestState::Open, // `locked`, while it is being merged
    };
    Known { number: merge.iid, url: merge.web_url, state }
}
