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
use crate::forge::hosted::{HostSettings, Hosted};
use crate::forge::paging::Page;
use crate::forge::pull_request::{
    Ask, Known, LABEL, PAGE_SIZE, PullRequest, PullRequestApi, PullRequestState, PullRequests, asking,
};
use crate::model::comment::Author;
use crate::model::ids::CommitId;
use crate::model::preview::OpenPullRequest;

/// The merge requests of a project, with a token that has the scope `api`.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn pull_requests(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn PullRequests>> {
    let api: Box<dyn PullRequestApi> = Box::new(GitlabMerges { settings: settings.clone() });
    Ok(Hosted::new(&settings, manners(), api, clock).await?)
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
    target_branch: Option<String>,
}

/// One of the list.
#[derive(Debug, Deserialize)]
struct Listed {
    iid: u64,
    /// Nothing, as long as the branch is being read.
    sha: Option<String>,
    source_branch: String,
    source_project_id: Option<u64>,
    target_project_id: u64,
}

/// A member of the project, or of a group that it is in or shared with.
#[derive(Debug, Deserialize)]
struct Member {
    username: String,
    state: String,
    access_level: u64,
}

/// The level of the role Developer, from which on people may push.
const DEVELOPER: u64 = 30;

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

    async fn open(&self, ask: Ask<'_>, base: &str, page: usize) -> Result<Page<OpenPullRequest>> {
        let (size, page) = (PAGE_SIZE.to_string(), (page + 1).to_string());
        let query = [
            ("state", "opened"),
            ("target_branch", base),
            ("order_by", "created_at"),
            ("sort", "desc"),
            ("per_page", &*size),
            ("page", &*page),
        ];
        let (merges, more): (Vec<Listed>, _) = ask.list(asking(self.url(&["merge_requests"]), &query)).await?;
        let open = |merge: Listed| {
            Some(OpenPullRequest {
                number: merge.iid,
                head: CommitId::new(merge.sha?),
                branch: merge.source_branch,
                is_fork: merge.source_project_id != Some(merge.target_project_id),
                reference: Some(format!("refs/merge-requests/{}/head", merge.iid)),
            })
        };
        Ok(Page { here: merges.len(), items: merges.into_iter().filter_map(open).collect(), more })
    }

    async fn may_write(&self, ask: Ask<'_>, author: &Author) -> Result<bool> {
        let member: Option<Member> = ask.get(self.url(&["members", "all", &author.id])).await?;
        let may = |member: Member| {
            let is_author = member.username.eq_ignore_ascii_case(&author.login);
            is_author && member.state == "active" && member.access_level >= DEVELOPER
        };
        Ok(member.is_some_and(may))
    }

    async fn close(&self, ask: Ask<'_>, number: u64) -> Result<()> {
        let url = self.url(&["merge_requests", &number.to_string()]);
        ask.write::<Value>(Method::PUT, url, &json!({"state_event": "close"}), &[]).await.map(drop)
    }

    fn comments(&self, number: u64) -> [Url; 2] {
        let url = self.url(&["merge_requests", &number.to_string(), "notes"]);
        [asking(url.clone(), &[("per_page", "100")]), url]
    }

    fn comment_at(&self, number: u64, id: u64) -> Option<(Method, Url)> {
        Some((Method::PUT, self.url(&["merge_requests", &number.to_string(), "notes", &id.to_string()])))
    }
}

fn known(merge: Merge) -> Known {
    let state = match merge.state.as_str() {
        "merged" => PullRequestState::Merged,
        "closed" => PullRequestState::Closed,
        _ => PullRequestState::Open, // `locked`, while it is being merged
    };
    Known { number: merge.iid, url: merge.web_url, state, base: merge.target_branch }
}
