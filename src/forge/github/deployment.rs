//! Deployments on GitHub, with their statuses.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::Method;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::status::{DESCRIPTION_LIMIT, absent_is_empty};
use super::writer::{manners, spend, url, words};
use crate::clock::Clock;
use crate::error::Result;
use crate::forge::StatusWriter;
use crate::forge::answer::Words;
use crate::forge::ask::{Ask, asking};
use crate::forge::budget::Budget;
use crate::forge::deployment::{DeploymentApi, DeploymentReport, Heard, REFUSED};
use crate::forge::hosted::{HostSettings, Hosted, description, link};
use crate::model::commit_status::{CommitStatus, StatusState};

/// How much may be written: together with commit statuses less than GitHub's secondary limits on requests that create content.
const WRITES: &[(usize, Duration)] = &[(15, Duration::from_secs(60)), (80, Duration::from_secs(60 * 60))];

/// Those of a commit in an environment, and the statuses of each, are fewer; GitHub's own limit of a page.
const PAGE_SIZE: &str = "100";

/// Tells GitHub of deployments, with a token that may write them.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn deployments(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn StatusWriter>> {
    let api = GithubDeployments { settings: settings.clone(), writes: Budget::new(WRITES) };
    let api: Box<dyn DeploymentApi> = Box::new(api);
    Ok(Hosted::new(&settings, manners(), api, clock).await?)
}

#[derive(Debug)]
struct GithubDeployments {
    settings: HostSettings,
    writes: Budget,
}

/// A deployment as GitHub sends it.
#[derive(Debug, Deserialize)]
struct Known {
    id: u64,
    /// What whoever made it keeps with it.
    #[serde(default)]
    payload: Value,
}

/// What became of it, as it is sent and as it is read back.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Status {
    state: String,
    #[serde(default, deserialize_with = "absent_is_empty")]
    description: String,
    #[serde(default, deserialize_with = "absent_is_empty", skip_serializing_if = "String::is_empty")]
    log_url: String,
    /// Where the environment answers.
    #[serde(default, deserialize_with = "absent_is_empty", skip_serializing_if = "String::is_empty")]
    environment_url: String,
}

impl GithubDeployments {
    fn url(&self, rest: &[&str]) -> Url {
        url(&self.settings, ["deployments"].into_iter().chain(rest.iter().copied()))
    }

    fn spend(&self, ask: Ask<'_>) -> Result<()> {
        spend(&self.writes, ask.client.now(), "deployments")
    }

    /// The one that was made for this.
    async fn find(&self, ask: Ask<'_>, report: DeploymentReport<'_>) -> Result<Option<Known>> {
        let (sha, environment) = (report.status.commit.as_str(), report.deployment.stage.as_str());
        let url = asking(self.url(&[]), &[("sha", sha), ("environment", environment), ("per_page", PAGE_SIZE)]);
        let there: Vec<Known> = ask.get(url).await?.unwrap_or_default();
        Ok(there.into_iter().find(|known| known.payload == payload(report)))
    }

    /// Whether something was said of one already. It need not be the last that was: GitHub itself says that another one has
    /// taken its place.
    async fn was_told(&self, ask: Ask<'_>, id: u64, status: &Status) -> Result<bool> {
        let url = asking(self.url(&[&id.to_string(), "statuses"]), &[("per_page", PAGE_SIZE)]);
        Ok(ask.get::<Vec<Status>>(url).await?.is_some_and(|all| all.contains(status)))
    }
}

#[async_trait]
impl DeploymentApi for GithubDeployments {
    fn writer(&self) -> &'static str {
        "github-deployments"
    }

    fn words(&self) -> Words {
        words(&self.settings, "a fine-grained one, or an App, needs `Deployments: read and write` for the repository")
    }

    async fn tell(&self, ask: Ask<'_>, report: DeploymentReport<'_>) -> Result<Heard> {
        let status = rendered(report.status, self.settings.public_url.as_deref());
        let id = match self.find(ask, report).await? {
            Some(known) if self.was_told(ask, known.id, &status).await? => return Ok(Heard::Taken),
            Some(known) => known.id,
            None => {
                self.spend(ask)?;
                match ask.offer(Method::POST, self.url(&[]), &made(report), REFUSED).await? {
                    Ok(made) => ask.read::<Known>(&made)?.id,
                    Err(answer) if answer.says("no ref found") => return Ok(Heard::Gone),
                    Err(answer) => return Ok(Heard::refused(&answer, ask.words.rights)),
                }
            }
        };
        self.spend(ask)?;
        let mut body = json!(status);
        body["auto_inactive"] = json!(true); // those before it are no longer what the environment has
        let url = self.url(&[&id.to_string(), "statuses"]);
        let said = ask.offer(Method::POST, url, &body, REFUSED).await?;
        Ok(said.map_or_else(|answer| Heard::refused(&answer, ask.words.rights), |_| Heard::Taken))
    }
}

/// A deployment as GitHub takes it. Nothing is merged and no status is waited for: what is deployed is decided.
fn made(report: DeploymentReport<'_>) -> Value {
    json!({
        "ref": report.status.commit, "environment": report.deployment.stage, "auto_merge": false, "required_contexts": [],
        "description": "deployed by launchway", "payload": payload(report),
    })
}

/// By what it is known again.
fn payload(report: DeploymentReport<'_>) -> Value {
    json!({"launchway": report.status.context})
}

/// What became of it in GitHub's words.
fn rendered(status: &CommitStatus, public_url: Option<&str>) -> Status {
    Status {
        state: state(status.state).to_owned(),
        description: description(status, DESCRIPTION_LIMIT),
        log_url: link(status, public_url),
        environment_url: status.address.clone().unwrap_or_default(),
    }
}

/// What was ended by a person or a newer revision has not failed, and is not what the environment has.
fn state(state: StatusState) -> &'static str {
    match state {
        StatusState::Pending => "queued",
        StatusState::Running => "in_progress",
        StatusState::Success => "success",
        StatusState::Failure => "failure",
        StatusState::Error => "error",
        StatusState::Cancelled | StatusState::Skipped | StatusState::Unchanged => "inactive",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::deployments::Deployment;

    fn status(context: &str, state: StatusState) -> CommitStatus {
        CommitStatus {
            path: Some("/revisions/shop/1111".to_owned()),
            ..CommitStatus::new(
                "1111111111111111111111111111111111111111".into(),
                context,
                state,
                "web: version 2 serves".to_owned(),
            )
        }
    }

    #[test]
    fn the_bodies_are_githubs() {
        let status = status("production#2", StatusState::Success);
        let report = DeploymentReport { status: &status, deployment: &Deployment::of(&status) };
        let expected = r#"{"ref":"1111111111111111111111111111111111111111","environment":"production","auto_merge":false,"required_contexts":[],"description":"deployed by launchway","payload":{"launchway":"production#2"}}"#;
        assert_eq!(made(report).to_string(), expected);
        let sent = serde_json::to_string(&rendered(&status, Some("https://deploy.example"))).unwrap();
        let expected = r#"{"state":"success","description":"web: version 2 serves","log_url":"https://deploy.example/revisions/shop/1111"}"#;
        assert_eq!(sent, expected);
        let read =
            r#"{"id": 7, "state": "success", "description": "web: version 2 serves", "log_url": null, "creator": {}}"#;
        assert_eq!(serde_json::from_str::<Status>(read).unwrap(), rendered(&status, None));
        let answers = CommitStatus { address: Some("http://127.0.3.1:8080".to_owned()), path: None, ..status };
        let sent = serde_json::to_string(&rendered(&answers, None)).unwrap();
        let expected =
            r#"{"state":"success","description":"web: version 2 serves","environment_url":"http://127.0.3.1:8080"}"#;
        assert_eq!(sent, expected);
    }

    #[test]
    fn states_are_githubs() {
        for (state, expected) in [
            (StatusState::Pending, "queued"),
            (StatusState::Running, "in_progress"),
            (StatusState::Success, "success"),
            (StatusState::Failure, "failure"),
            (StatusState::Error, "error"),
            (StatusState::Cancelled, "inactive"),
            (StatusState::Skipped, "inactive"),
            (StatusState::Unchanged, "inactive"),
        ] {
            assert_eq!(super::state(state), expected, "{state}");
        }
    }
}
