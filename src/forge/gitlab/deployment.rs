//! Deployments on GitLab.

use std::sync::Arc;

use async_trait::async_trait;
use http::Method;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use super::writer::{WORDS, manners, url};
use crate::clock::Clock;
use crate::error::{Failure, Result};
use crate::forge::StatusWriter;
use crate::forge::answer::Words;
use crate::forge::api::Answer;
use crate::forge::ask::{Ask, asking};
use crate::forge::deployment::{DeploymentApi, DeploymentReport, Heard};
use crate::forge::hosted::{HostSettings, Hosted};
use crate::model::commit_status::StatusState;
use crate::model::host::is_loopback;

/// Deployments of a page; GitLab's own limit.
const PAGE_SIZE: usize = 100;

/// So many pages of an environment are read, the newest first, to see what is there already: whoever died after a request has
/// gone on before there are as many.
const PAGES: usize = 5;

/// The answers by which GitLab takes no deployment in one environment: it may be protected.
const REFUSED: &[(u16, &str)] = &[(400, ""), (403, ""), (422, "")];

/// The answers of an environment whose link is not to be changed, such as a protected one's.
const UNCHANGED: &[(u16, &str)] = &[(400, ""), (403, ""), (404, ""), (422, "")];

/// Tells GitLab of deployments, with a token that has the scope `api`.
///
/// # Errors
/// `Stalled` if the token would be sent in the clear, or certificates cannot be read.
pub async fn deployments(settings: HostSettings, clock: Arc<dyn Clock>) -> Result<Arc<dyn StatusWriter>> {
    let api: Box<dyn DeploymentApi> = Box::new(GitlabDeployments { settings: settings.clone() });
    Ok(Hosted::new(&settings, manners(), api, clock).await?)
}

#[derive(Debug)]
struct GitlabDeployments {
    settings: HostSettings,
}

/// A deployment as GitLab sends it.
#[derive(Debug, Deserialize)]
struct Known {
    id: u64,
    sha: String,
    status: String,
    /// The job that made it; nothing, where the API was asked to.
    #[serde(default)]
    deployable: Value,
}

/// An environment as GitLab sends it.
#[derive(Debug, Deserialize)]
struct Environment {
    id: u64,
    #[serde(default)]
    external_url: Option<String>,
}

/// What is asked of a project.
#[derive(Debug, Deserialize)]
struct Project {
    default_branch: Option<String>,
}

impl GitlabDeployments {
    fn url(&self, rest: &[&str]) -> Url {
        url(&self.settings, rest)
    }

    /// The one that is meant. GitLab keeps nothing with a deployment by which it could be known again: those of a commit in an
    /// environment that no job has made are counted.
    async fn find(&self, ask: Ask<'_>, report: DeploymentReport<'_>) -> Result<Option<Known>> {
        let is_own = |known: &Known| known.deployable.is_null() && known.sha == report.status.commit.as_str();
        let (mut own, mut at, mut read) = (Vec::new(), 0, 0);
        for _page in 0..PAGES {
            let (page, size) = ((at + 1).to_string(), PAGE_SIZE.to_string());
            let environment = report.deployment.stage.as_str();
            let query = [
                ("environment", environment),
                ("order_by", "id"),
                ("sort", "desc"),
                ("per_page", &size),
                ("page", &page),
            ];
            let url = asking(self.url(&["deployments"]), &query);
            let Some((found, more)) = ask.get_part::<Vec<Known>>(url).await? else { break };
            let here = found.len();
            read += here;
            own.extend(found.into_iter().filter(is_own));
            let is_found = u32::try_from(own.len()).is_ok_and(|own| own >= report.deployment.number);
            match more.next(at, here, read, PAGE_SIZE) {
                Some(next) if !is_found => at = next,
                _ => break,
            }
        }
        own.sort_by_key(|known| known.id);
        let before = usize::try_from(report.deployment.number).unwrap_or(usize::MAX).saturating_sub(1);
        // Where one before it never got there, the one that goes on is meant: those before it have ended.
        let last = if own.len() <= before { own.pop().filter(|last| last.status == "running") } else { None };
        Ok(last.or_else(|| own.into_iter().nth(before)))
    }

    /// The branch that is watched. The one that the configuration leaves out is the project's main one.
    async fn branch(&self, ask: Ask<'_>) -> Result<String> {
        if let Some(branch) = &self.settings.branch {
            return Ok(branch.clone());
        }
        let project: Option<Project> = ask.get(self.url(&[])).await?;
        let unknown = || Failure::stalled("GitLab does not say which branch is the project's main one");
        project.and_then(|project| project.default_branch).ok_or_else(|| unknown().hint("name it: `branch: main`"))
    }

    /// Makes one, unless GitLab does not have the commit, of which it would make the environment all the same.
    async fn make(&self, ask: Ask<'_>, report: DeploymentReport<'_>, state: &str) -> Result<Heard> {
        let commit = report.status.commit.as_str();
        let there: Option<Value> = ask.get(self.url(&["repository", "commits", commit])).await?;
        if there.is_none() {
            return Ok(Heard::Gone);
        }
        let branch = self.branch(ask).await?;
        let made = ask.offer(Method::POST, self.url(&["deployments"]), &made(report, &branch, state), REFUSED).await?;
        Ok(heard(made.map(drop), ask))
    }

    /// Has the environment lead to where it answers. A link that somebody else has given it stays, and no deployment depends on it.
    async fn link(&self, ask: Ask<'_>, report: DeploymentReport<'_>) -> Result<()> {
        let Some(address) = report.status.address.as_deref() else { return Ok(()) };
        let name = report.deployment.stage.as_str();
        let there: Option<Vec<Environment>> = ask.get(asking(self.url(&["environments"]), &[("name", name)])).await?;
        let Some(there) = there.into_iter().flatten().next() else { return Ok(()) };
        let known = there.external_url.as_deref().unwrap_or_default();
        if known == address || !(known.is_empty() || is_own(known)) {
            return Ok(());
        }
        let url = self.url(&["environments", &there.id.to_string()]);
        ask.tell(Method::PUT, url, &json!({"external_url": address}), UNCHANGED).await.map(drop)
    }
}

#[async_trait]
impl DeploymentApi for GitlabDeployments {
    fn writer(&self) -> &'static str {
        "gitlab-deployments"
    }

    fn words(&self) -> Words {
        let rights = "a project access token needs the scope `api` and the role Developer, and where the environment is \
                      protected it has to be among those who may deploy there";
        Words { rights, ..WORDS }
    }

    async fn tell(&self, ask: Ask<'_>, report: DeploymentReport<'_>) -> Result<Heard> {
        let state = state(report.status.state);
        let heard = match self.find(ask, report).await? {
            Some(known) if known.status == state => Heard::Taken,
            Some(known) => {
                let url = self.url(&["deployments", &known.id.to_string()]);
                let answer = ask.offer(Method::PUT, url, &json!({"status": state}), REFUSED).await?;
                heard(answer.map(drop), ask)
            }
            None => self.make(ask, report, state).await?,
        };
        if matches!(heard, Heard::Taken) {
            self.link(ask, report).await?;
        }
        Ok(heard)
    }
}

/// What an answer to writing a deployment says.
fn heard(answer: Result<(), Answer>, ask: Ask<'_>) -> Heard {
    answer.map_or_else(|answer| Heard::refused(&answer, ask.words.rights), |()| Heard::Taken)
}

/// Whether a link leads to a machine's own address, as those do that are given here.
fn is_own(link: &str) -> bool {
    Url::parse(link).is_ok_and(|url| url.host_str().is_some_and(is_loopback))
}

/// A deployment as GitLab takes it.
fn made(report: DeploymentReport<'_>, branch: &str, state: &str) -> Value {
    json!({
        "environment": report.deployment.stage, "sha": report.status.commit, "ref": branch, "tag": false, "status": state,
    })
}

/// GitLab takes none that has not begun.
fn state(state: StatusState) -> &'static str {
    match state {
        StatusState::Pending | StatusState::Running => "running",
        StatusState::Success => "success",
        StatusState::Failure | StatusState::Error => "failed",
        StatusState::Cancelled | StatusState::Skipped | StatusState::Unchanged => "canceled",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::commit_status::CommitStatus;
    use crate::report::deployments::Deployment;

    #[test]
    fn the_body_is_gitlabs() {
        let status = CommitStatus {
            attempt: 2,
            ..CommitStatus::new("1111".into(), "production#2", StatusState::Running, "web version 2 is Running")
        };
        let report = DeploymentReport { status: &status, deployment: &Deployment::of(&status) };
        let expected = r#"{"environment":"production","sha":"1111","ref":"main","tag":false,"status":"running"}"#;
        assert_eq!(made(report, "main", state(status.state)).to_string(), expected);
    }

    #[test]
    fn states_are_gitlabs() {
        for (state, expected) in [
            (StatusState::Pending, "running"),
            (StatusState::Running, "running"),
            (StatusState::Success, "success"),
            (StatusState::Failure, "failed"),
            (StatusState::Error, "failed"),
            (StatusState::Cancelled, "canceled"),
            (StatusState::Skipped, "canceled"),
            (StatusState::Unchanged, "canceled"),
        ] {
            assert_eq!(super::state(state), expected, "{state}");
        }
    }
}
