//! Webhooks on Bitbucket Cloud.

use std::sync::Arc;

use async_trait::async_trait;
use reqwest::Url;
use serde_json::{Value, json};

use super::cloud::{WORDS, manners, url};
use super::listing::Listing;
use crate::clock::Clock;
use crate::error::Result;
use crate::forge::answer::Words;
use crate::forge::ask::{Ask, asking};
use crate::forge::hosted::{HostSettings, Hosted};
use crate::forge::paging::{Page, pages};
use crate::forge::registration::{SecretSeen, Test, WantedWebhook, Webhook, WebhookApi, Webhooks, text, texts};

/// Of a page; Bitbucket's own limit.
const PAGE_SIZE: usize = 100;

/// The webhooks of a repository, with an access token of it.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn webhooks(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn Webhooks>> {
    let api: Box<dyn WebhookApi> = Box::new(CloudHooks { settings: settings.clone() });
    Ok(Hosted::new(&settings, manners(), api, clock).await?)
}

#[derive(Debug)]
struct CloudHooks {
    settings: HostSettings,
}

impl CloudHooks {
    fn url(&self, rest: &[&str]) -> Url {
        url(&self.settings, ["hooks"].iter().chain(rest).copied())
    }
}

#[async_trait]
impl WebhookApi for CloudHooks {
    fn words(&self) -> Words {
        Words { rights: "a repository access token needs `Webhooks: Read and write`", ..WORDS }
    }

    fn pushes(&self) -> &'static [&'static str] {
        &["repo:push"]
    }

    fn pulls(&self) -> &'static [&'static str] {
        &["pullrequest:created", "pullrequest:updated"]
    }

    fn comments(&self) -> &'static [&'static str] {
        &["pullrequest:comment_created"]
    }

    fn chosen(&self) -> &'static [&'static str] {
        &["pullrequest:fulfilled"]
    }

    async fn list(&self, ask: Ask<'_>) -> Result<Option<Vec<Value>>> {
        let page = async |at: usize| -> Result<Option<Page<Value>>> {
            let (size, page) = (PAGE_SIZE.to_string(), (at + 1).to_string());
            let listing = ask.get::<Listing<_>>(asking(self.url(&[]), &[("pagelen", &size), ("page", &page)])).await?;
            Ok(listing.map(Listing::numbered))
        };
        pages(PAGE_SIZE, page).await
    }

    fn read(&self, whole: Value, _wanted: &WantedWebhook) -> Option<Webhook> {
        Some(Webhook {
            id: text(&whole, "/uuid")?,
            url: text(&whole, "/url")?,
            is_active: whole["active"] == true,
            events: texts(&whole, "/events"),
            secret: if whole["secret_set"] == false { SecretSeen::Missing } else { SecretSeen::Hidden },
            obstacles: Vec::new(),
            whole,
        })
    }

    async fn put(&self, ask: Ask<'_>, wanted: &WantedWebhook, known: Option<&Webhook>) -> Result<Option<()>> {
        let description = known.and_then(|known| text(&known.whole, "/description"));
        let body = json!({
            "description": description.unwrap_or_else(|| "launchway".to_owned()), "url": wanted.url().as_str(),
            "active": true, "events": self.events_for(wanted, known), "secret": wanted.secret.reveal(),
        });
        ask.save(known.map(|known| self.place(&known.id)), self.url(&[]), &body).await
    }

    fn place(&self, id: &str) -> Url {
        self.url(&[id])
    }

    async fn test(&self, _ask: Ask<'_>, _webhook: &Webhook, _wanted: &WantedWebhook) -> Result<Test> {
        Ok(Test::Never)
    }
}
