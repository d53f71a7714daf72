//! Webhooks on GitHub.

use std::sync::Arc;

use async_trait::async_trait;
use http::Method;
use reqwest::Url;
use serde_json::{Value, json};

use super::writer::{manners, url, words};
use crate::clock::Clock;
use crate::error::Result;
use crate::forge::answer::Words;
use crate::forge::ask::{Ask, asking};
use crate::forge::hosted::{HostSettings, Hosted};
use crate::forge::registration::{SecretSeen, Test, WantedWebhook, Webhook, WebhookApi, Webhooks, listed, text, texts};

/// Of a page; GitHub's own limit.
const PAGE_SIZE: usize = 100;

/// The webhooks of a repository, with a token that may write them.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn webhooks(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn Webhooks>> {
    let api: Box<dyn WebhookApi> = Box::new(GithubHooks { settings: settings.clone() });
    Ok(Hosted::new(&settings, manners(), api, clock).await?)
}

#[derive(Debug)]
struct GithubHooks {
    settings: HostSettings,
}

impl GithubHooks {
    fn url(&self, rest: &[&str]) -> Url {
        url(&self.settings, ["hooks"].iter().chain(rest).copied())
    }
}

#[async_trait]
impl WebhookApi for GithubHooks {
    fn words(&self) -> Words {
        let rights = "a fine-grained one, or an App, needs `Webhooks: read and write`, of somebody who administers the repository";
        words(&self.settings, rights)
    }

    fn pushes(&self) -> &'static [&'static str] {
        &["push"]
    }

    fn pulls(&self) -> &'static [&'static str] {
        &["pull_request"]
    }

    fn comments(&self) -> &'static [&'static str] {
        &["issue_comment"]
    }

    fn chosen(&self) -> &'static [&'static str] {
        &["pull_request"]
    }

    async fn list(&self, ask: Ask<'_>) -> Result<Option<Vec<Value>>> {
        let page =
            |page: usize| asking(self.url(&[]), &[("per_page", &PAGE_SIZE.to_string()), ("page", &page.to_string())]);
        listed(ask, PAGE_SIZE, page).await
    }

    /// GitHub shows stars in place of a secret, and nothing where there is none.
    fn read(&self, whole: Value, _wanted: &WantedWebhook) -> Option<Webhook> {
        let sends_json = text(&whole, "/config/content_type").as_deref() == Some("json");
        Some(Webhook {
            id: whole.get("id")?.as_u64()?.to_string(),
            url: text(&whole, "/config/url")?,
            is_active: whole["active"] == true,
            events: texts(&whole, "/events"),
            secret: text(&whole, "/config/secret").map_or(SecretSeen::Missing, |_| SecretSeen::Hidden),
            obstacles: (!sends_json).then(|| "it sends forms, and not JSON".to_owned()).into_iter().collect(),
            whole,
        })
    }

    /// Whether GitHub checks the daemon's certificate stays as somebody has chosen it.
    async fn put(&self, ask: Ask<'_>, wanted: &WantedWebhook, known: Option<&Webhook>) -> Result<Option<()>> {
        let unchecked = known.and_then(|known| text(&known.whole, "/config/insecure_ssl"));
        let config = json!({
            "url": wanted.url().as_str(), "content_type": "json", "secret": wanted.secret.reveal(),
            "insecure_ssl": unchecked.unwrap_or_else(|| "0".to_owned()),
        });
        let mut body = json!({"active": true, "events": self.events_for(wanted, known), "config": config});
        let told = match known {
            Some(known) => ask.tell(Method::PATCH, self.place(&known.id), &body, &[]).await?,
            None => {
                body["name"] = json!("web");
                ask.tell(Method::POST, self.url(&[]), &body, &[(422, "already exists")]).await?
            }
        };
        Ok(told.map(drop))
    }

    fn place(&self, id: &str) -> Url {
        self.url(&[id])
    }

    async fn test(&self, ask: Ask<'_>, webhook: &Webhook, _wanted: &WantedWebhook) -> Result<Test> {
        ask.tell(Method::POST, self.url(&[&webhook.id, "pings"]), &json!({}), &[]).await?;
        Ok(Test::Sent("ping"))
    }
}
