//! Calls a webhook when branches move, signed as Gitea signs.

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use serde_json::json;
use ulid::Ulid;

use super::{Host, REPOSITORY};
use crate::error::Result;
use crate::manifest::digest::hex;
use crate::secret::Secret;

/// Where branches are.
pub(super) type Branches = Vec<(String, String)>;

/// The id of a commit that there is none of.
const NONE: &str = "0000000000000000000000000000000000000000";

/// Who is told, and what they said to it.
#[derive(Debug)]
pub(super) struct Webhook {
    url: String,
    secret: Secret,
    answers: Vec<String>,
}

impl Webhook {
    pub(super) fn new(url: String, secret: Secret) -> Self {
        Self { url, secret, answers: Vec::new() }
    }

    /// What it has answered, oldest first.
    pub(super) fn answers(&self) -> Vec<String> {
        self.answers.clone()
    }
}

impl Host {
    /// Where all branches are.
    pub(super) async fn branches(&self) -> Result<Branches> {
        let printed = self.run(&["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/"]).await?;
        let branch = |line: &str| line.split_once(' ').map(|(name, sha)| (name.to_owned(), sha.to_owned()));
        Ok(printed.lines().filter_map(branch).collect())
    }

    /// Does what follows from branches that have moved: pull requests see their new heads, and the webhook is called.
    pub(super) async fn moved(&self, before: &Branches) {
        let Ok(after) = self.branches().await else { return };
        let of = |branches: &Branches, name: &str| {
            branches.iter().find(|(known, _)| known == name).map_or(NONE, |(_, sha)| sha).to_owned()
        };
        for (name, sha) in after.iter().filter(|branch| !before.contains(branch)) {
            self.follow(name, sha).await;
            self.call(name, &of(before, name), sha).await;
        }
        for (name, sha) in before.iter().filter(|(name, _)| of(&after, name) == NONE) {
            self.call(name, sha, NONE).await;
        }
    }

    async fn call(&self, name: &str, before: &str, after: &str) {
        let Some((url, key)) = self
            .kept()
            .webhook
            .as_ref()
            .map(|webhook| (webhook.url.clone(), Key::new(HMAC_SHA256, webhook.secret.reveal().as_bytes())))
        else {
            return;
        };
        let body = json!({
            "ref": name, "before": before, "after": after,
            "repository": {"full_name": REPOSITORY}, "pusher": {"login": "ada"},
        })
        .to_string();
        let request = self.client.post(url).header("content-type", "application/json");
        let request = request.header("x-gitea-event", "push").header("x-gitea-delivery", Ulid::generate().to_string());
        let request = request.header("x-gitea-signature", hex(sign(&key, body.as_bytes()).as_ref()));
        let answer = match request.body(body).send().await {
            Ok(answer) => answer.text().await.unwrap_or_default(),
            Err(error) => error.to_string(),
        };
        if let Some(webhook) = &mut self.kept().webhook {
            webhook.answers.push(answer);
        }
    }
}
