//! A GitHub App: how it shows that it is one, and gets tokens for a repository that it is installed on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::Method;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;

use super::jwt;
use super::writer::{WORDS, api_url, manners};
use crate::clock::{Clock, from_rfc3339};
use crate::error::{Context, Failure, Result};
use crate::forge::address::RepositoryAddress;
use crate::forge::answer::Words;
use crate::forge::api::{ApiClient, ApiSettings};
use crate::forge::ask::Ask;
use crate::forge::credential::Credential;
use crate::model::time::Timestamp;
use crate::secret::{Secret, read_lines};

/// What to do where GitHub does not accept what an App shows.
pub(super) const RENEWAL: &str = "check `forge.app`: its `id`, the key in its `keyFile`, and this machine's clock";

/// How long before its end a token is replaced, so that none ends while something is written.
const MARGIN: Duration = Duration::from_secs(5 * 60);

/// All that a token is ever needed for; what an installation was not given is not asked for, and nothing else is.
const NEEDED: [&str; 7] =
    ["checks", "contents", "deployments", "issues", "metadata", "pull_requests", "repository_hooks"];

/// An App, and what shows that somebody is it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppSettings {
    /// GitHub's id of it.
    pub id: u64,
    /// The file of its private key (PEM), read again whenever it is needed.
    pub key_file: PathBuf,
}

/// Shows that it is the App itself.
#[derive(Debug)]
struct Identity {
    app: AppSettings,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl Credential for Identity {
    async fn token(&self) -> Result<Secret> {
        let (app, now) = (self.app.clone(), self.clock.now());
        let signed = move || jwt::signed(app.id, &read_lines(&app.key_file)?, now);
        let signed = tokio::task::spawn_blocking(signed).await;
        signed.or_transient(|| "signing for the App broke off".to_owned())?.map_err(|failure| {
            let path = self.app.key_file.display();
            Failure::stalled(format!("the key of the App in `{path}` cannot be used")).because(failure)
        })
    }
}

/// An App as it is installed on one repository: gives tokens for that alone, which only the memory keeps.
#[derive(Debug)]
pub struct Installation {
    /// Asks as the App itself.
    client: ApiClient,
    app: u64,
    repository: RepositoryAddress,
    clock: Arc<dyn Clock>,
    issued: Mutex<Option<Issued>>,
}

/// A token, and when it ends.
#[derive(Debug)]
struct Issued {
    token: Secret,
    ends: Timestamp,
}

/// An installation as GitHub sends it.
#[derive(Debug, Deserialize)]
struct Known {
    id: u64,
    #[serde(default)]
    permissions: BTreeMap<String, String>,
    #[serde(default)]
    events: Vec<String>,
    suspended_at: Option<String>,
}

/// A token as GitHub sends it.
#[derive(Deserialize)]
struct Answered {
    token: String,
    expires_at: String,
}

/// What whoever installed an App has given to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Granted {
    /// What it may do: `read`, `write` or `admin`, by GitHub's names.
    pub permissions: BTreeMap<String, String>,
    /// Of what GitHub tells it.
    pub events: Vec<String>,
}

impl Granted {
    /// Whether it may write something.
    pub fn may_write(&self, permission: &str) -> bool {
        self.permissions.get(permission).is_some_and(|level| matches!(level.as_str(), "write" | "admin"))
    }
}

impl Installation {
    /// That of an App on a repository. Nothing is asked yet.
    ///
    /// # Errors
    /// `Stalled` if what opens it would be sent in the clear, or certificates cannot be read.
    pub async fn new(
        app: &AppSettings,
        repository: RepositoryAddress,
        ca_file: Option<PathBuf>,
        insecure: bool,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>> {
        let identity = Identity { app: app.clone(), clock: clock.clone() };
        let settings = ApiSettings { base: repository.base.clone(), credential: Arc::new(identity), ca_file, insecure };
        let client = ApiClient::new(settings, manners(), clock.clone()).await?;
        Ok(Arc::new(Self { client, app: app.id, repository, clock, issued: Mutex::default() }))
    }

    /// What whoever installed it has given to it.
    ///
    /// # Errors
    /// `Transient` if the host is busy or out of reach, `Stalled` if a person has to act: it is not installed.
    pub async fn granted(&self) -> Result<Granted> {
        let Known { permissions, events, .. } = self.known().await?;
        Ok(Granted { permissions, events })
    }

    fn ask(&self) -> Ask<'_> {
        let words = Words { rights: "the App has to be installed on the repository", renewal: RENEWAL, ..WORDS };
        Ask { client: &self.client, words, what: "ask for tokens of the App", busy: &[409], absent: &[] }
    }

    fn name(&self) -> String {
        format!("`{}/{}`", self.repository.owner, self.repository.name)
    }

    async fn known(&self) -> Result<Known> {
        self.client.ready()?;
        let (owner, name) = (self.repository.owner.as_str(), self.repository.name.as_str());
        let url = api_url(&self.repository, ["repos", owner, name, "installation"]);
        let known: Option<Known> = self.ask().get(url).await?;
        let known = known.ok_or_else(|| {
            Failure::stalled(format!("the App {} is not installed on {}", self.app, self.name()))
                .hint("install it there: the App's settings → Install App; and check the repository's address")
        })?;
        if known.suspended_at.is_some() {
            let message = format!("the installation of the App {} on {} is suspended", self.app, self.name());
            return Err(Failure::stalled(message).hint("whoever installed it can take that back"));
        }
        Ok(known)
    }

    /// Gets a token that may do what the installation may and launchway needs, on this repository alone.
    async fn issue(&self) -> Result<Issued> {
        let known = self.known().await?;
        let id = known.id.to_string();
        let url = api_url(&self.repository, ["app", "installations", &id, "access_tokens"]);
        let permissions: BTreeMap<&str, &str> = needed(&known.permissions);
        let body = json!({"repositories": [self.repository.name], "permissions": permissions});
        let answered: Option<Answered> = self.ask().write(Method::POST, url, &body, &[(422, "")]).await?;
        let Answered { token, expires_at } = answered.ok_or_else(|| {
            Failure::stalled(format!("GitHub gives the App {} no token for {}", self.app, self.name()))
                .hint("set the repository's address to where it is now")
        })?;
        let ends = from_rfc3339(&expires_at)
            .ok_or_else(|| Failure::stalled("GitHub does not say until when the App's token is valid"))?;
        tracing::debug!(app = self.app, repository = self.name(), expires_at, "a token for the App");
        Ok(Issued { token: Secret::new(token), ends })
    }
}

/// What of an installation's permissions is needed.
fn needed(granted: &BTreeMap<String, String>) -> BTreeMap<&str, &str> {
    let is_needed = |(name, _): &(&String, &String)| NEEDED.contains(&name.as_str());
    granted.iter().filter(is_needed).map(|(name, level)| (name.as_str(), level.as_str())).collect()
}

#[async_trait]
impl Credential for Installation {
    async fn token(&self) -> Result<Secret> {
        let mut issued = self.issued.lock().await;
        if let Some(known) = issued.as_ref().filter(|known| self.clock.now() + MARGIN < known.ends) {
            return Ok(known.token.clone());
        }
        Ok(issued.insert(self.issue().await?).token.clone())
    }

    /// Whoever comes second finds what the first one got.
    async fn instead_of(&self, refused: &Secret) -> Result<Option<Secret>> {
        let mut issued = self.issued.lock().await;
        if let Some(known) = issued.as_ref().filter(|known| known.token != *refused) {
            return Ok(Some(known.token.clone()));
        }
        Ok(Some(issued.insert(self.issue().await?).token.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_asked_for_that_is_not_needed_or_not_given() {
        let granted = [("checks", "write"), ("contents", "read"), ("administration", "write"), ("metadata", "read")];
        let granted: BTreeMap<String, String> =
            granted.iter().map(|(name, level)| ((*name).to_owned(), (*level).to_owned())).collect();
        let expected = BTreeMap::from([("checks", "write"), ("contents", "read"), ("metadata", "read")]);
        assert_eq!(needed(&granted), expected);
        let granted = Granted { permissions: granted, events: Vec::new() };
        assert!(granted.may_write("checks") && !granted.may_write("contents") && !granted.may_write("issues"));
    }
}
