//! Requests to a host's API: over an encrypted connection, with a token that is asked for again for each, and no further than
//! the host itself.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest::{Client, Response, Url};

use super::credential::Credential;
use super::{Refusal, redirect, retry_after};
use crate::clock::{Clock, rfc3339};
use crate::error::{Context, Failure, Result};
use crate::http_client;
use crate::model::host::is_loopback;
use crate::model::time::Timestamp;
use crate::secret::Secret;

/// A server that does not accept a connection within this time is down.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A healthy server answers within milliseconds, also under load within this.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// The most that is read of an answer: a page of statuses with their authors has about 100 KiB.
const ANSWER_LIMIT: usize = 4 * 1024 * 1024;

/// A host, and what opens it.
#[derive(Clone, Debug)]
pub(super) struct ApiSettings {
    /// Its own address, as people know it.
    pub(super) base: Url,
    /// Gives a token for every request.
    pub(super) credential: Arc<dyn Credential>,
    /// A file with certificates (PEM) to trust beside the system's.
    pub(super) ca_file: Option<PathBuf>,
    /// Whether the token may be sent over `http://` to another machine.
    pub(super) insecure: bool,
}

/// The manners of a host.
#[derive(Clone, Debug)]
pub(super) struct Manners {
    /// Its name, for people.
    pub(super) name: &'static str,
    /// The header that carries the token.
    pub(super) header: HeaderName,
    /// What it carries, given the token.
    pub(super) authorization: fn(&str) -> String,
    /// What it wants in the header `Accept`.
    pub(super) accept: &'static str,
    /// Whether an answer asks for fewer requests where its status does not say so, and until when it does, if it says that.
    pub(super) limited: fn(&Answer) -> Option<Option<Timestamp>>,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// Whether the host says something, in whatever letters.
    pub(super) fn says(&self, words: &str) -> bool {
        String::from_utf8_lossy(&self.body).to_ascii_lowercase().contains(&words.to_ascii_lowercase())
    }
}

/// Sends requests to one host.
pub(super) struct ApiClient {
    settings: ApiSettings,
    manners: Manners,
    client: Client,
    clock: Arc<dyn Clock>,
    /// The host asked to be left alone until then.
    quiet_until: Mutex<Timestamp>,
}

impl std::fmt::Debug for ApiClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiClient").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl ApiClient {
    /// A client with these settings. `Stalled` if the token would be sent in the clear, or certificates cannot be read.
    pub(super) async fn new(settings: ApiSettings, manners: Manners, clock: Arc<dyn Clock>) -> Result<Self> {
        require_encryption(&settings)?;
        let builder = http_client::bounded(CONNECT_TIMEOUT, REQUEST_TIMEOUT);
        let client = http_client::trusting_aside(builder, settings.ca_file.clone()).await?;
        Ok(Self { settings, manners, client, clock, quiet_until: Mutex::default() })
    }

    /// Whether requests may be sent: `Transient` as long as the host wants to be left alone.
    pub(super) fn ready(&self) -> Result<()> {
        let until = *self.quiet_until();
        if self.clock.now() < until {
            let name = self.manners.name;
            return Err(Failure::transient(format!("{name} wants no requests until {}", rfc3339(until))));
        }
        Ok(())
    }

    /// Sends a request; once more with another token, if the host takes this one no more and there is another.
    pub(super) async fn send(&self, method: Method, url: Url, body: Option<Vec<u8>>) -> Result<Answer, Refusal> {
        let credential = &self.settings.credential;
        let token = credential.token().await?;
        let answer = self.send_with(&token, method.clone(), url.clone(), body.as_deref()).await?;
        if answer.status != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        match credential.instead_of(&token).await? {
            Some(other) => self.send_with(&other, method, url, body.as_deref()).await,
            None => Ok(answer),
        }
    }

    /// Sends a request, and again to where it leads on the same host: there is what was renamed.
    async fn send_with(
        &self,
        token: &Secret,
        method: Method,
        url: Url,
        body: Option<&[u8]>,
    ) -> Result<Answer, Refusal> {
        let authorization = self.authorization(token).map_err(Refusal::All)?;
        let mut url = url;
        for _redirect in 0..=redirect::LIMIT {
            let request = self.client.request(method.clone(), url.clone());
            let mut request = request.header(&self.manners.header, authorization.clone());
            request = request.header(http::header::ACCEPT, self.manners.accept);
            if let Some(body) = body {
                request = request.header(CONTENT_TYPE, "application/json").body(body.to_vec());
            }
            let answer = request.send().await.map_err(reqwest::Error::without_url);
            let answer = answer.or_transient(|| format!("cannot reach `{}`", self.settings.base));
            let answer = answer.map_err(Refusal::Busy)?;
            match redirect::on_the_same_host(&url, answer.status(), answer.headers().get(LOCATION)) {
                Some(target) => url = target,
                None => return self.read(answer).await.map_err(Refusal::Busy),
            }
        }
        let endless = format!("`{}` redirects more than {} times", self.settings.base, redirect::LIMIT);
        Err(Refusal::All(Failure::stalled(endless).hint("set the repository's address to where it is now")))
    }

    /// From now on the host is left alone as long as an answer asks for it, or until `otherwise`, if it does not say.
    pub(super) fn keep_quiet(&self, answer: &Answer, otherwise: Option<Timestamp>) {
        let asked = answer.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let until = asked.and_then(|value| retry_after::parse(value, self.clock.now())).or(otherwise);
        if let Some(until) = until {
            *self.quiet_until() = until;
        }
    }

    /// Whether an answer asks for fewer requests in the host's own way, and until when it does, if it says that.
    pub(super) fn limited(&self, answer: &Answer) -> Option<Option<Timestamp>> {
        (self.manners.limited)(answer)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn quiet_until(&self) -> std::sync::MutexGuard<'_, Timestamp> {
        self.quiet_until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn authorization(&self, token: &Secret) -> Result<HeaderValue> {
        let value = HeaderValue::from_str(&(self.manners.authorization)(token.reveal()));
        let mut value = value.or_stalled(|| "the token has characters that no token has".to_owned())?;
        value.set_sensitive(true);
        Ok(value)
    }

    async fn read(&self, mut answer: Response) -> Result<Answer> {
        let name = self.manners.name;
        let (status, headers) = (answer.status(), std::mem::take(answer.headers_mut()));
        let too_long =
            || Failure::stalled(format!("the answer is too long to be that of {name}")).hint("check `forge.url`");
        let body = http_client::read(answer, ANSWER_LIMIT, name).await?.ok_or_else(too_long)?;
        Ok(Answer { status, headers, body })
    }
}

fn require_encryption(settings: &ApiSettings) -> Result<()> {
    let base = &settings.base;
    if base.scheme() == "https" || base.host_str().is_some_and(is_loopback) || settings.insecure {
        return Ok(());
    }
    Err(Failure::stalled(format!("a token for `{base}` would cross the network in the clear"))
        .hint("use https://, or set `insecure: true` for this repository"))
}
