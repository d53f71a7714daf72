//! Webhooks of Azure DevOps, which are subscriptions of its service hooks: of an organization, for one event of one repository.

use std::sync::Arc;

use async_trait::async_trait;
use http::Method;
use reqwest::Url;
use serde_json::{Map, Value, json};

use super::pull_request::List;
use super::writer::{VERSION, WORDS, manners, url};
use crate::clock::Clock;
use crate::error::{Failure, Result};
use crate::forge::answer::Words;
use crate::forge::ask::{Ask, asking};
use crate::forge::hosted::{HostSettings, Hosted};
use crate::forge::pull_request::short;
use crate::forge::registration::{SecretSeen, Test, WantedWebhook, Webhook, WebhookApi, Webhooks, filtered, text};

/// What a subscription is about.
const EVENT: &str = "git.push";
/// What Azure DevOps tries out is a preview of its API.
const TESTING: &str = "7.1-preview.1";

/// The webhooks of a repository, with a personal access token.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn webhooks(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn Webhooks>> {
    let api: Box<dyn WebhookApi> = Box::new(AzureHooks { settings: settings.clone() });
    Ok(Hosted::new(&settings, manners(), api, clock).await?)
}

#[derive(Debug)]
struct AzureHooks {
    settings: HostSettings,
}

impl AzureHooks {
    fn url(&self, rest: &[&str], version: &str) -> Url {
        let place = ["_apis", "hooks"].iter().chain(rest).copied();
        asking(self.settings.repository.api(place), &[("api-version", version)])
    }

    /// The ids of the project and the repository.
    async fn ids(&self, ask: Ask<'_>) -> Result<Option<[String; 2]>> {
        let Some(found) = ask.get::<Value>(url(&self.settings, [])).await? else { return Ok(None) };
        let ids = text(&found, "/project/id").zip(text(&found, "/id"));
        let (project, repository) = ids.ok_or_else(|| Failure::stalled("the repository has no id there"))?;
        Ok(Some([project, repository]))
    }

    /// A subscription as it is wanted. Whom it tells of is left as it is, but for what keeps pushes from being told.
    async fn subscription(&self, ask: Ask<'_>, wanted: &WantedWebhook, known: Option<&Webhook>) -> Result<Value> {
        let ids = self.ids(ask).await?.ok_or_else(|| Failure::stalled("there is no such repository"))?;
        let [project, repository] = ids;
        let branch = known.and_then(|known| text(&known.whole, "/publisherInputs/branch"));
        let branch = branch.filter(|branch| filtered(Some(branch.clone()), wanted).is_none()).unwrap_or_default();
        Ok(json!({
            "publisherId": "tfs", "eventType": EVENT, "resourceVersion": "1.0", "consumerId": "webHooks",
            "consumerActionId": "httpRequest", "status": "enabled",
            "publisherInputs": {"projectId": project, "repository": repository, "branch": branch, "pushedBy": ""},
            "consumerInputs": {
                "url": wanted.url().as_str(), "basicAuthUsername": "launchway",
                "basicAuthPassword": wanted.secret.reveal(), "resourceDetailsToSend": "all", "messagesToSend": "none",
                "detailedMessagesToSend": "none",
            },
        }))
    }
}

#[async_trait]
impl WebhookApi for AzureHooks {
    fn words(&self) -> Words {
        let rights = "a personal access token needs the scopes `Code (read)` and `Service hooks (read and write)`, of \
                      somebody who may edit the project's subscriptions";
        Words { rights, ..WORDS }
    }

    fn pushes(&self) -> &'static [&'static str] {
        &[EVENT]
    }

    /// Those of this repository, or of all of its project.
    async fn list(&self, ask: Ask<'_>) -> Result<Option<Vec<Value>>> {
        let Some([project, repository]) = self.ids(ask).await? else { return Ok(None) };
        let query = [("publisherId", "tfs"), ("eventType", EVENT), ("consumerId", "webHooks")];
        let all: Option<List<Value>> = ask.get(asking(self.url(&["subscriptions"], VERSION), &query)).await?;
        let is_of_it = |subscription: &Value| {
            text(subscription, "/publisherInputs/projectId").is_none_or(|id| id == project)
                && text(subscription, "/publisherInputs/repository").is_none_or(|id| id == repository)
                && text(subscription, "/eventType").as_deref() == Some(EVENT)
        };
        Ok(all.map(|all| all.value.into_iter().filter(is_of_it).collect()))
    }

    fn read(&self, whole: Value, wanted: &WantedWebhook) -> Option<Webhook> {
        let is_given = |input: &str| text(&whole, &format!("/consumerInputs/{input}")).is_some();
        let secret = if is_given("basicAuthPassword") || is_given("httpHeaders") {
            SecretSeen::Hidden
        } else {
            SecretSeen::Missing
        };
        // It may be given in full or without what all branches begin with.
        let branch = text(&whole, "/publisherInputs/branch");
        let branch = branch.map(|branch| short(&branch).to_owned());
        let pushed_by = text(&whole, "/publisherInputs/pushedBy").map(|_| "it tells of some people's pushes only");
        let details = text(&whole, "/consumerInputs/resourceDetailsToSend").filter(|details| details != "all");
        let details = details.map(|_| "it does not tell all of a push");
        let others = [pushed_by, details].into_iter().flatten().map(str::to_owned);
        Some(Webhook {
            id: text(&whole, "/id")?,
            url: text(&whole, "/consumerInputs/url")?,
            is_active: text(&whole, "/status").is_none_or(|status| matches!(&*status, "enabled" | "onProbation")),
            events: text(&whole, "/eventType").into_iter().collect(),
            secret,
            obstacles: filtered(branch, wanted).into_iter().chain(others).collect(),
            whole,
        })
    }

    async fn put(&self, ask: Ask<'_>, wanted: &WantedWebhook, known: Option<&Webhook>) -> Result<Option<()>> {
        let body = self.subscription(ask, wanted, known).await?;
        let list = self.url(&["subscriptions"], VERSION);
        ask.save(known.map(|known| self.place(&known.id)), list, &body).await
    }

    fn place(&self, id: &str) -> Url {
        self.url(&["subscriptions", id], VERSION)
    }

    /// With what the subscription has: where a secret is hidden, Azure DevOps puts its own in.
    async fn test(&self, ask: Ask<'_>, webhook: &Webhook, _wanted: &WantedWebhook) -> Result<Test> {
        let parts = [
            "publisherId",
            "eventType",
            "resourceVersion",
            "consumerId",
            "consumerActionId",
            "publisherInputs",
            "consumerInputs",
        ];
        let details: Map<String, Value> =
            parts.iter().map(|part| ((*part).to_owned(), webhook.whole[*part].clone())).collect();
        let body = json!({"subscriptionId": webhook.id, "details": details});
        ask.tell(Method::POST, self.url(&["testnotifications"], TESTING), &body, &[]).await?;
        Ok(Test::Sent(EVENT))
    }
}
