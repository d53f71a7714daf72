//! Webhooks on Gitea and Forgejo.

use std::sync::Arc;

use async_trait::async_trait;
use http::Method;
use reqwest::Url;
use serde_json::{Value, json};

use super::writer::{WORDS, manners, url};
use crate::clock::Clock;
use crate::error::Result;
use crate::forge::answer::Words;
use crate::forge::ask::{Ask, asking};
use crate::forge::hosted::{HostSettings, Hosted};
use crate::forge::paging::{Page, pages};
use crate::forge::registration::{
    SecretSeen, Test, WantedWebhook, Webhook, WebhookApi, Webhooks, filtered, text, texts,
};

/// Of a page; Gitea gives no more where nobody has configured it.
const PAGE_SIZE: usize = 50;
/// The kinds of webhooks whose calls are read.
const KINDS: [&str; 3] = ["gitea", "forgejo", "gogs"];

/// The webhooks of a repository, with a token of somebody who administers it.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn webhooks(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn Webhooks>> {
    let api: Box<dyn WebhookApi> = Box::new(GiteaHooks { settings: settings.clone() });
    Ok(Hosted::new(&settings, manners(), api, clock).await?)
}

#[derive(Debug)]
struct GiteaHooks {
    settings: HostSettings,
}

impl GiteaHooks {
    fn url(&self, rest: &[&str]) -> Url {
        url(&self.settings, ["hooks"].iter().chain(rest).copied())
    }
}

#[async_trait]
impl WebhookApi for GiteaHooks {
    fn words(&self) -> Words {
        let rights = "it needs the scope write:repository, and its user has to administer the repository";
        Words { rights, ..WORDS }
    }

    fn pushes(&self) -> &'static [&'static str] {
        &["push"]
    }

    fn pulls(&self) -> &'static [&'static str] {
        &["pull_request", "pull_request_sync"]
    }

    fn comments(&self) -> &'static [&'static str] {
        &["pull_request_comment"]
    }

    /// Source: `editHook` of Gitea 1.26 takes everything but the secret.
    fn keeps_secrets(&self) -> bool {
        true
    }

    fn chosen(&self) -> &'static [&'static str] {
        &["pull_request"]
    }

    async fn list(&self, ask: Ask<'_>) -> Result<Option<Vec<Value>>> {
        let page = async |at: usize| -> Result<Option<Page<Value>>> {
            let (limit, page) = (PAGE_SIZE.to_string(), (at + 1).to_string());
            let part = ask.get_part(asking(self.url(&[]), &[("limit", &limit), ("page", &page)])).await?;
            Ok(part.map(|(hooks, more)| Page::new(hooks, more.or_perhaps())))
        };
        pages(PAGE_SIZE, page).await
    }

    fn read(&self, whole: Value, wanted: &WantedWebhook) -> Option<Webhook> {
        let kind = text(&whole, "/type").filter(|kind| KINDS.contains(&kind.as_str()));
        let sends_json = text(&whole, "/config/content_type").as_deref() == Some("json");
        let form = (!sends_json).then(|| "it sends forms, and not JSON".to_owned());
        let foreign = kind.is_none().then(|| "it calls in the way of another program".to_owned());
        Some(Webhook {
            id: whole.get("id")?.as_u64()?.to_string(),
            url: text(&whole, "/config/url")?,
            is_active: whole["active"] == true,
            events: texts(&whole, "/events"),
            secret: SecretSeen::Hidden,
            obstacles: [filtered(text(&whole, "/branch_filter"), wanted), form, foreign]
                .into_iter()
                .flatten()
                .collect(),
            whole,
        })
    }

    /// Always a new one, with the header by which a proxy before the daemon may have let the old one pass.
    async fn put(&self, ask: Ask<'_>, wanted: &WantedWebhook, known: Option<&Webhook>) -> Result<Option<()>> {
        let config = json!({"url": wanted.url().as_str(), "content_type": "json", "secret": wanted.secret.reveal()});
        // By its plain name, it would tell of reviews, labels and comments too.
        let name = |event: &'static str| if event == "pull_request" { "pull_request_only" } else { event };
        let events: Vec<&str> = self.events_for(wanted, known).into_iter().map(name).collect();
        let mut body = json!({"type": "gitea", "active": true, "events": events, "config": config});
        if let Some(header) = known.and_then(|known| text(&known.whole, "/authorization_header")) {
            body["authorization_header"] = json!(header);
        }
        Ok(ask.tell(Method::POST, self.url(&[]), &body, &[]).await?.map(drop))
    }

    fn place(&self, id: &str) -> Url {
        self.url(&[id])
    }

    async fn test(&self, ask: Ask<'_>, webhook: &Webhook, _wanted: &WantedWebhook) -> Result<Test> {
        ask.tell(Method::POST, self.url(&[&webhook.id, "tests"]), &json!({}), &[]).await?;
        Ok(Test::Sent("push"))
    }
}
