//! Registries over HTTP, by the OCI distribution specification.

mod challenge;

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, ETAG, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH, LOCATION, WWW_AUTHENTICATE,
};
use reqwest::{Client, Method, Response, StatusCode, Url};
use serde::Deserialize;

use self::challenge::Challenge;
use super::name::is_digest;
use super::{ImageName, Known, Registry};
use crate::error::{Context as _, Failure, Result};
use crate::http_client;
use crate::manifest::digest::named;
use crate::model::host::is_loopback;
use crate::secret::{Secret, SecretSource};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// What registries call a manifest at most; source: the distribution specification asks clients for that much.
const MANIFEST_LIMIT: usize = 4 << 20;
const TOKEN_LIMIT: usize = 64 << 10;
const MAX_REDIRECTS: usize = 5;
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");
/// An image for several platforms is one image, so its index comes first.
const MANIFESTS: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json";

/// What opens a registry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistrySettings {
    /// Its host as images name it, with its port.
    pub host: String,
    /// A user name.
    pub username: Option<SecretSource>,
    /// Its password, or a token.
    pub password: Option<SecretSource>,
    /// A file with certificates (PEM) to trust beside the system's.
    pub ca_file: Option<PathBuf>,
    /// Whether it is asked without TLS.
    pub insecure: bool,
}

/// Asks registries over HTTP. What opens one is read again for every question.
#[derive(Clone, Debug, Default)]
pub struct HttpRegistry {
    known: Vec<RegistrySettings>,
}

/// One question and all that it takes to answer it.
struct Question<'a> {
    image: &'a ImageName,
    client: Client,
    basic: Option<Secret>,
}

impl HttpRegistry {
    /// Registries that are asked as these settings say; all others without credentials.
    pub fn new(known: Vec<RegistrySettings>) -> Self {
        Self { known }
    }
}

#[async_trait]
impl Registry for HttpRegistry {
    async fn look_up(&self, image: &ImageName, known: Option<&Known>) -> Result<Known> {
        let settings = self.known.iter().find(|settings| settings.host == image.host()).cloned().unwrap_or_default();
        let builder = http_client::bounded(CONNECT_TIMEOUT, REQUEST_TIMEOUT);
        let client = http_client::trusting_aside(builder, settings.ca_file.clone()).await?;
        let basic = basic(&settings).await?;
        let host = image.api();
        let is_loopback = is_loopback(host);
        let scheme = if settings.insecure || is_loopback { "http" } else { "https" };
        let address = format!("{scheme}://{host}/v2/{}/manifests/{}", image.repository(), image.tag());
        let url = Url::parse(&address).or_stalled(|| format!("`{host}` is no host of a registry"))?;
        let question = Question { image, client, basic };
        question.ask(&url, known).await
    }
}

impl Question<'_> {
    async fn ask(&self, url: &Url, known: Option<&Known>) -> Result<Known> {
        let mut authorization = None;
        let mut answer = self.send(Method::HEAD, url, known, authorization.as_ref()).await?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            authorization = Some(self.authorize(answer.headers()).await?);
            answer = self.send(Method::HEAD, url, known, authorization.as_ref()).await?;
        }
        if let (StatusCode::NOT_MODIFIED, Some(known)) = (answer.status(), known) {
            return Ok(known.clone());
        }
        self.refused(&answer)?;
        let etag = text(answer.headers(), &ETAG).map(str::to_owned);
        let digest = match text(answer.headers(), &CONTENT_DIGEST).filter(|digest| is_digest(digest)) {
            Some(digest) => digest.to_owned(),
            // An old registry says it only by the manifest itself.
            None => {
                let answer = self.send(Method::GET, url, None, authorization.as_ref()).await?;
                self.refused(&answer)?;
                let manifest = self.body(answer, MANIFEST_LIMIT).await?;
                named(&digest(&SHA256, &manifest)).to_string()
            }
        };
        Ok(Known { digest, etag })
    }

    /// Sends a request, and again to where it leads; only the host that was asked hears what opens it.
    async fn send(
        &self,
        method: Method,
        url: &Url,
        known: Option<&Known>,
        authorization: Option<&Secret>,
    ) -> Result<Response> {
        let mut at = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let mut request = self.client.request(method.clone(), at.clone()).header(ACCEPT, MANIFESTS);
            if let Some(etag) = known.and_then(|known| known.etag.as_ref()) {
                request = request.header(IF_NONE_MATCH, etag);
            }
            if let Some(authorization) = authorization.filter(|_| at.origin() == url.origin()) {
                request = request.header(AUTHORIZATION, sensitive(authorization)?);
            }
            let answer = request.send().await.map_err(reqwest::Error::without_url);
            let answer = answer.or_transient(|| format!("cannot reach the registry `{}`", self.image.host()))?;
            if !matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok(answer);
            }
            at = self.led_to(&at, answer.headers())?;
        }
        Err(Failure::stalled(format!("the registry `{}` redirects endlessly", self.image.host())))
    }

    fn led_to(&self, from: &Url, headers: &HeaderMap) -> Result<Url> {
        let host = self.image.host();
        let to = text(headers, &LOCATION).and_then(|location| from.join(location).ok());
        let to = to.ok_or_else(|| Failure::stalled(format!("the registry `{host}` redirects to nowhere")))?;
        match to.scheme() {
            "https" => Ok(to),
            "http" if from.scheme() == "http" && to.origin() == from.origin() => Ok(to),
            _ => Err(Failure::stalled(format!("the registry `{host}` redirects to an unencrypted address"))),
        }
    }

    /// What the registry wants to hear, by what it has said.
    async fn authorize(&self, headers: &HeaderMap) -> Result<Secret> {
        let host = self.image.host();
        let hint = "say what opens it under `registries` of the repository in the daemon's configuration";
        match text(headers, &WWW_AUTHENTICATE).and_then(Challenge::parse) {
            Some(Challenge::Basic) => self.basic.clone().ok_or_else(|| {
                Failure::stalled(format!("the registry `{host}` wants a user name and a password")).hint(hint)
            }),
            Some(Challenge::Bearer { realm, service, scope }) => {
                let realm = Url::parse(&realm)
                    .ok()
                    .filter(|realm| realm.scheme() == "https" || realm.host_str().is_some_and(is_loopback));
                let mut realm = realm.ok_or_else(|| {
                    Failure::stalled(format!("the registry `{host}` wants a token from an unencrypted address"))
                })?;
                let scope = scope.unwrap_or_else(|| format!("repository:{}:pull", self.image.repository()));
                realm.query_pairs_mut().extend_pairs(service.map(|service| ("service", service)));
                realm.query_pairs_mut().append_pair("scope", &scope);
                self.token(realm).await
            }
            None => {
                Err(Failure::stalled(format!("the registry `{host}` refuses and does not say what it wants"))
                    .hint(hint))
            }
        }
    }

    async fn token(&self, realm: Url) -> Result<Secret> {
        #[derive(Deserialize)]
        struct Token {
            token: Option<String>,
            access_token: Option<String>,
        }
        let host = self.image.host();
        let mut request = self.client.get(realm);
        if let Some(basic) = &self.basic {
            request = request.header(AUTHORIZATION, sensitive(basic)?);
        }
        let answer = request.send().await.map_err(reqwest::Error::without_url);
        let answer = answer.or_transient(|| format!("cannot get a token for the registry `{host}`"))?;
        self.refused(&answer)?;
        let body = self.body(answer, TOKEN_LIMIT).await?;
        let token: Option<Token> = serde_json::from_slice(&body).ok();
        let token = token.and_then(|it| it.token.or(it.access_token)).filter(|token| !token.is_empty());
        let none = || Failure::stalled(format!("the registry `{host}` leads to a token, and none is there"));
        Ok(Secret::new(format!("Bearer {}", token.ok_or_else(none)?)))
    }

    fn refused(&self, answer: &Response) -> Result<()> {
        let (host, status) = (self.image.host(), answer.status());
        if status.is_success() {
            return Ok(());
        }
        let told = format!("the registry `{host}` answers {status}");
        Err(match status {
            StatusCode::NOT_FOUND => Failure::stalled(format!("the registry has no image `{}`", self.image)),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Failure::stalled(format!("the registry `{host}` does not give `{}` out", self.image.repository()))
                    .hint("check what opens it, under `registries` of the repository in the daemon's configuration")
            }
            StatusCode::TOO_MANY_REQUESTS => Failure::transient(told),
            _ if status.is_server_error() => Failure::transient(told),
            _ => Failure::stalled(told),
        })
    }

    async fn body(&self, answer: Response, limit: usize) -> Result<Vec<u8>> {
        let whom = format!("the registry `{}`", self.image.host());
        let too_long = || Failure::stalled(format!("the answer of {whom} is too long to be one"));
        http_client::read(answer, limit, &whom).await?.ok_or_else(too_long)
    }
}

async fn basic(settings: &RegistrySettings) -> Result<Option<Secret>> {
    let (Some(username), Some(password)) = (settings.username.clone(), settings.password.clone()) else {
        return Ok(None);
    };
    let read = tokio::task::spawn_blocking(move || -> Result<Secret> {
        let pair = format!("{}:{}", username.read()?.reveal(), password.read()?.reveal());
        Ok(Secret::new(format!("Basic {}", STANDARD.encode(pair))))
    });
    read.await.or_transient(|| "reading what opens a registry broke off".to_owned())?.map(Some)
}

fn sensitive(secret: &Secret) -> Result<HeaderValue> {
    let value = HeaderValue::from_str(secret.reveal());
    let mut value = value.or_stalled(|| "what opens the registry has characters that no such thing has".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
