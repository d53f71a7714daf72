//! Webhooks on Bitbucket Data Center.

use std::sync::Arc;

use async_trait::async_trait;
use http::Method;
use reqwest::Url;
use serde_json::{Value, json};

use super::data_center::{WORDS, manners};
use super::listing::Listing;
use crate::clock::Clock;
use crate::error::Result;
use crate::forge::answer::Words;
use crate::forge::ask::{Ask, asking};
use crate::forge::hosted::{HostSettings, Hosted};
use crate::forge::paging::{Page, pages};
use crate::forge::registration::{SecretSeen, Test, WantedWebhook, Webhook, WebhookApi, Webhooks, text, texts};

/// Of a page; Bitbucket's own limit is higher.
const PAGE_SIZE: usize = 100;

/// The webhooks of a repository, with an HTTP access token.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn webhooks(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn Webhooks>> {
    let api: Box<dyn WebhookApi> = Box::new(DataCenterHooks { settings: settings.clone() });
    Ok(Hosted::new(&settings, manners(), api, clock).await?)
}

#[derive(Debug)]
struct DataCenterHooks {
    settings: HostSettings,
}

impl DataCenterHooks {
    fn url(&self, rest: &[&str]) -> Url {
        let repository = &self.settings.repository;
        let place = ["projects", &repository.owner, "repos", &repository.name, "webhooks"];
        repository.api(["rest", "api", "latest"].into_iter().chain(place).chain(rest.iter().copied()))
    }
}

#[async_trait]
impl WebhookApi for DataCenterHooks {
    fn words(&self) -> Words {
        Words { rights: "an HTTP access token needs the permission `Repository admin`", ..WORDS }
    }

    fn pushes(&self) -> &'static [&'static str] {
        &["repo:refs_changed"]
    }

    fn pulls(&self) -> &'static [&'static str] {
        &["pr:opened", "pr:from_ref_updated", "pr:modified"]
    }

    fn comments(&self) -> &'static [&'static str] {
        &["pr:comment:added"]
    }

    fn chosen(&self) -> &'static [&'static str] {
        &["pr:merged"]
    }

    async fn list(&self, ask: Ask<'_>) -> Result<Option<Vec<Value>>> {
        let page = async |start: usize| -> Result<Option<Page<Value>>> {
            let (size, start) = (PAGE_SIZE.to_string(), start.to_string());
            let listing = ask.get::<Listing<_>>(asking(self.url(&[]), &[("limit", &size), ("start", &start)])).await?;
            Ok(listing.map(Listing::placed))
        };
        pages(PAGE_SIZE, page).await
    }

    /// Some versions show the secret, others hide it, or show stars.
    fn read(&self, whole: Value, wanted: &WantedWebhook) -> Option<Webhook> {
        let secret = text(&whole, "/configuration/secret").filter(|shown| shown.chars().any(|c| !"*•".contains(c)));
        Some(Webhook {
            id: whole.get("id")?.as_u64()?.to_string(),
            url: text(&whole, "/url")?,
            is_active: whole["active"] == true,
            events: texts(&whole, "/events"),
            secret: match secret {
                None => SecretSeen::Hidden,
                Some(secret) if secret == wanted.secret.reveal() => SecretSeen::Right,
                Some(_) => SecretSeen::Other,
            },
            obstacles: Vec::new(),
            whole,
        })
    }

    /// Whether Bitbucket checks the daemon's certificate stays as somebody has chosen it.
    async fn put(&self, ask: Ask<'_>, wanted: &WantedWebhook, known: Option<&Webhook>) -> Result<Option<()>> {
        let name = known.and_then(|known| text(&known.whole, "/name")).unwrap_or_else(|| "launchway".to_owned());
        let checks = known.is_none_or(|known| known.whole["sslVerificationRequired"] != false);
        let body = json!({
            "name": name, "url": wanted.url().as_str(), "active": true, "events": self.events_for(wanted, known),
            "configuration": {"secret": wanted.secret.reveal()}, "sslVerificationRequired": checks,
        });
        ask.save(known.map(|known| self.place(&known.id)), self.url(&[]), &body).await
    }

    fn place(&self, id: &str) -> Url {
        self.url(&[id])
    }

    async fn test(&self, ask: Ask<'_>, webhook: &Webhook, wanted: &WantedWebhook) -> Result<Test> {
        let query = [("url", wanted.url().to_string()), ("webhookId", webhook.id.clone())];
        let query = query.each_ref().map(|(name, value)| (*name, value.as_str()));
        ask.tell(Method::POST, asking(self.url(&["test"]), &query), &json!({}), &[]).await?;
        Ok(Test::Unsigned("diagnostics:ping"))
    }
}
