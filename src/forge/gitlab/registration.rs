//! Webhooks on GitLab.

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
use crate::forge::registration::{
    SecretSeen, Test, WantedWebhook, Webhook, WebhookApi, Webhooks, filtered, listed, text,
};

/// Of a page; GitLab's own limit.
const PAGE_SIZE: usize = 100;
/// The end of the fields that say which events a webhook tells of.
const EVENTS: &str = "_events";
/// The field with a body of somebody's own making.
const TEMPLATE: &str = "custom_webhook_template";

/// The webhooks of a project, with a token that has the scope `api` and the role Maintainer.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn webhooks(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn Webhooks>> {
    let api: Box<dyn WebhookApi> = Box::new(GitlabHooks { settings: settings.clone() });
    Ok(Hosted::new(&settings, manners(), api, clock).await?)
}

#[derive(Debug)]
struct GitlabHooks {
    settings: HostSettings,
}

impl GitlabHooks {
    fn url(&self, rest: &[&str]) -> Url {
        let path: Vec<&str> = ["hooks"].iter().chain(rest).copied().collect();
        url(&self.settings, &path)
    }
}

/// The fields of a webhook that say which events it tells of.
fn events(whole: &Value) -> impl Iterator<Item = (&String, &Value)> {
    whole.as_object().into_iter().flatten().filter(|(field, on)| field.ends_with(EVENTS) && on.is_boolean())
}

#[async_trait]
impl WebhookApi for GitlabHooks {
    fn words(&self) -> Words {
        Words { rights: "a project access token needs the scope `api` and the role Maintainer", ..WORDS }
    }

    fn pushes(&self) -> &'static [&'static str] {
        &["push_events"]
    }

    fn pulls(&self) -> &'static [&'static str] {
        &["merge_requests_events"]
    }

    fn comments(&self) -> &'static [&'static str] {
        &["note_events"]
    }

    fn chosen(&self) -> &'static [&'static str] {
        &["tag_push_events", "merge_requests_events"]
    }

    async fn list(&self, ask: Ask<'_>) -> Result<Option<Vec<Value>>> {
        let page =
            |page: usize| asking(self.url(&[]), &[("per_page", &PAGE_SIZE.to_string()), ("page", &page.to_string())]);
        listed(ask, PAGE_SIZE, page).await
    }

    /// GitLab switches off by itself what fails again and again.
    fn read(&self, whole: Value, wanted: &WantedWebhook) -> Option<Webhook> {
        let is_active = text(&whole, "/alert_status").is_none_or(|status| status == "executable");
        let template = text(&whole, &format!("/{TEMPLATE}"));
        let template = template.map(|_| "it sends a body of somebody's own making".to_owned());
        let filter = filtered(text(&whole, "/push_events_branch_filter"), wanted);
        Some(Webhook {
            id: whole.get("id")?.as_u64()?.to_string(),
            url: text(&whole, "/url")?,
            is_active,
            events: events(&whole).filter(|(_, on)| **on == true).map(|(field, _)| field.clone()).collect(),
            secret: SecretSeen::Hidden,
            obstacles: [filter, template].into_iter().flatten().collect(),
            whole,
        })
    }

    async fn put(&self, ask: Ask<'_>, wanted: &WantedWebhook, known: Option<&Webhook>) -> Result<Option<()>> {
        let mut body = json!({"url": wanted.url().as_str(), "token": wanted.secret.reveal()});
        let found = known.map(|known| &known.whole);
        for (field, _) in found.into_iter().flat_map(events) {
            body[field] = json!(false);
        }
        for field in self.events_for(wanted, known) {
            body[field] = json!(true);
        }
        let told = match known {
            Some(known) => {
                if filtered(text(&known.whole, "/push_events_branch_filter"), wanted).is_some() {
                    body["push_events_branch_filter"] = json!("");
                }
                if text(&known.whole, &format!("/{TEMPLATE}")).is_some() {
                    body[TEMPLATE] = json!("");
                }
                ask.tell(Method::PUT, self.place(&known.id), &body, &[]).await?
            }
            None => {
                body["enable_ssl_verification"] = json!(true);
                ask.tell(Method::POST, self.url(&[]), &body, &[]).await?
            }
        };
        Ok(told.map(drop))
    }

    fn place(&self, id: &str) -> Url {
        self.url(&[id])
    }

    /// A success switches a webhook on again; GitLab before 16.11 cannot be asked. 422 is what it makes of an answer to its call
    /// that is none of success, and of a project without commits.
    async fn test(&self, ask: Ask<'_>, webhook: &Webhook, _wanted: &WantedWebhook) -> Result<Test> {
        let url = self.url(&[&webhook.id, "test", "push_events"]);
        let answer = ask.tell(Method::POST, url, &json!({}), &[(404, ""), (422, "")]).await?;
        let is_known = answer.is_some() || ask.get::<Value>(self.place(&webhook.id)).await?.is_some();
        Ok(if is_known { Test::Sent("Push Hook") } else { Test::Never })
    }
}
