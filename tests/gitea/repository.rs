//! A repository on the server, and what is read of it.

use reqwest::Method;
use serde_json::{Value, json};

use crate::daemon::eventually;
use crate::server::GiteaServer;
use crate::work_tree::WorkTree;

/// A repository of the administrator.
pub(crate) struct Repository {
    pub(crate) server: &'static GiteaServer,
    pub(crate) name: String,
}

/// A status as Gitea shows it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ShownStatus {
    pub(crate) context: String,
    pub(crate) state: String,
    pub(crate) description: String,
    pub(crate) target_url: String,
}

impl Repository {
    /// An empty public repository; `name` is the test's.
    pub(crate) async fn create(name: &str) -> Self {
        Self::create_with(name, false).await
    }

    /// An empty repository that only its owner sees.
    pub(crate) async fn create_private(name: &str) -> Self {
        Self::create_with(name, true).await
    }

    async fn create_with(name: &str, private: bool) -> Self {
        let server = GiteaServer::get().await;
        let wanted = json!({"name": name, "private": private, "default_branch": "main"});
        server.api(Method::POST, "/user/repos", Some(wanted)).await;
        Self { server, name: name.to_owned() }
    }

    /// Its address for Git over HTTP, without credentials.
    pub(crate) fn http_url(&self) -> String {
        self.server.url(&format!("/admin/{}.git", self.name))
    }

    /// Its address for Git over SSH.
    pub(crate) fn ssh_url(&self) -> String {
        self.server.ssh_url("admin", &self.name)
    }

    /// Lets whoever has this key push.
    pub(crate) async fn add_deploy_key(&self, public_key: &str) {
        let key = json!({"title": "suite", "key": public_key, "read_only": false});
        self.api(Method::POST, "/keys", Some(key)).await;
    }

    /// Registers a webhook; its id.
    pub(crate) async fn add_hook(&self, url: &str, secret: &str, content_type: &str) -> u64 {
        let hook = json!({
            "type": "gitea", "active": true, "events": ["push", "create", "delete", "status"],
            "config": {"url": url, "secret": secret, "content_type": content_type},
        });
        self.api(Method::POST, "/hooks", Some(hook)).await["id"].as_u64().unwrap()
    }

    /// Registers a webhook that tells of just what is read.
    pub(crate) async fn add_right_hook(&self, url: &str, secret: &str) {
        let events = ["push", "pull_request_only", "pull_request_sync"];
        let config = json!({"url": url, "secret": secret, "content_type": "json"});
        let hook = json!({"type": "gitea", "active": true, "events": events, "config": config});
        self.api(Method::POST, "/hooks", Some(hook)).await;
    }

    /// Its webhooks.
    pub(crate) async fn hooks(&self) -> Vec<Value> {
        self.api(Method::GET, "/hooks", None).await.as_array().cloned().unwrap_or_default()
    }

    /// Removes a webhook.
    pub(crate) async fn remove_hook(&self, id: u64) {
        self.api(Method::DELETE, &format!("/hooks/{id}"), None).await;
    }

    /// Presses the button "Test delivery".
    pub(crate) async fn test_hook(&self, id: u64) {
        self.api(Method::POST, &format!("/hooks/{id}/tests"), None).await;
    }

    /// A first commit, pushed over HTTP; the work tree to go on with.
    pub(crate) async fn first_push(&self) -> WorkTree {
        let tree = WorkTree::create(self);
        tree.commit("README.md", "a shop\n");
        tree.push_over_http("main").await;
        tree
    }

    /// The latest status of each context on a commit, by context.
    pub(crate) async fn statuses(&self, commit: &str) -> Vec<ShownStatus> {
        let mut shown = Vec::new();
        for page in 1.. {
            let found = self.api(Method::GET, &format!("/commits/{commit}/status?limit=50&page={page}"), None).await;
            let Some(statuses) = found["statuses"].as_array().filter(|statuses| !statuses.is_empty()) else { break };
            shown.extend(statuses.iter().map(shown_status));
        }
        shown.sort_by(|a, b| a.context.cmp(&b.context));
        shown
    }

    /// How many statuses were ever posted on a commit.
    pub(crate) async fn posted(&self, commit: &str) -> usize {
        let mut count = 0;
        for page in 1.. {
            let found = self.api(Method::GET, &format!("/statuses/{commit}?limit=50&page={page}"), None).await;
            let length = found.as_array().map_or(0, Vec::len);
            if length == 0 {
                break;
            }
            count += length;
        }
        count
    }

    /// Its pull requests in a state, `all` for any.
    pub(crate) async fn pulls(&self, state: &str) -> Vec<Value> {
        let found = self.api(Method::GET, &format!("/pulls?state={state}"), None).await;
        found.as_array().cloned().unwrap_or_default()
    }

    /// The comments on a pull request.
    pub(crate) async fn comments(&self, number: u64) -> Vec<Value> {
        let found = self.api(Method::GET, &format!("/issues/{number}/comments"), None).await;
        found.as_array().cloned().unwrap_or_default()
    }

    /// Somebody comments on a pull request.
    pub(crate) async fn comment(&self, number: u64, token: &str, text: &str) {
        let path = format!("/repos/admin/{}/issues/{number}/comments", self.name);
        self.server.api_as(token, Method::POST, &path, Some(json!({"body": text}))).await;
    }

    /// The names of its branches.
    pub(crate) async fn branches(&self) -> Vec<String> {
        let found = self.api(Method::GET, "/branches", None).await;
        let names = found.as_array().into_iter().flatten().filter_map(|branch| branch["name"].as_str());
        names.map(str::to_owned).collect()
    }

    /// Opens a pull request of a branch; its number.
    pub(crate) async fn open_pull(&self, head: &str) -> u64 {
        let pull = json!({"title": head, "head": head, "base": "main"});
        self.api(Method::POST, "/pulls", Some(pull)).await["number"].as_u64().unwrap()
    }

    /// Closes a pull request without merging it.
    pub(crate) async fn close(&self, number: u64) {
        self.api(Method::PATCH, &format!("/pulls/{number}"), Some(json!({"state": "closed"}))).await;
    }

    /// Has a branch take only what is merged, and that only once these contexts are successes, whoever merges.
    pub(crate) async fn protect(&self, branch: &str, contexts: &[&str]) {
        let rule = json!({
            "rule_name": branch, "enable_push": false, "enable_status_check": true, "status_check_contexts": contexts,
        });
        self.api(Method::POST, "/branch_protections", Some(rule)).await;
    }

    /// Why a pull request cannot be merged, in Gitea's words.
    pub(crate) async fn refusal_to_merge(&self, number: u64) -> String {
        let url = self.server.url(&format!("/api/v1/repos/admin/{}/pulls/{number}/merge", self.name));
        eventually("Gitea decides", async || {
            let request = reqwest::Client::new().post(&url).json(&json!({"Do": "merge"}));
            let token = format!("token {}", self.server.admin_token());
            let answer = request.header("authorization", token).send().await.unwrap();
            let (status, text) = (answer.status(), answer.text().await.unwrap());
            assert_eq!(status, 405, "it is merged: {text}");
            // Until it has looked for conflicts, it says no more than this.
            (!text.contains("try again later")).then_some(text)
        })
        .await
    }

    /// Merges a pull request; the commit that this makes.
    pub(crate) async fn merge(&self, number: u64) -> String {
        // Until Gitea has looked for conflicts, which is soon, it takes none.
        eventually("the pull request can be merged", async || {
            let pull = self.api(Method::GET, &format!("/pulls/{number}"), None).await;
            (pull["mergeable"] == true).then_some(())
        })
        .await;
        self.api(Method::POST, &format!("/pulls/{number}/merge"), Some(json!({"Do": "merge"}))).await;
        let merged = self.api(Method::GET, &format!("/pulls/{number}"), None).await;
        merged["merge_commit_sha"].as_str().unwrap().to_owned()
    }

    async fn api(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        self.server.api(method, &format!("/repos/admin/{}{path}", self.name), body).await
    }
}

fn shown_status(status: &Value) -> ShownStatus {
    let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
    ShownStatus {
        context: text("context"),
        state: text("status"),
        description: text("description"),
        target_url: text("target_url"),
    }
}
