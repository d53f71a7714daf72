//! Smart HTTP by reqwest and rustls.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::TryStreamExt as _;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Certificate, Client, ClientBuilder, RequestBuilder, Response, StatusCode, Url, redirect};
use tokio_util::io::StreamReader;

use super::stream::{Stream, wait};
use super::{Deadline, Protocol, Service};
use crate::error::{Context as _, Failure, Result};
use crate::model::host::is_loopback;
use crate::secret::Secret;
use crate::source::url::UrlParts;
use crate::source::{Remote, RemoteUrl};

/// As Git's own bound is meant: a renamed owner and a renamed repository, and some patience.
const MAX_REDIRECTS: usize = 5;
/// Some forges serve Git only to clients that call themselves so.
const USER_AGENT: &str = concat!("git/2.0 (launchway ", env!("CARGO_PKG_VERSION"), ")");
/// Long enough to reuse a connection within one fetch, short enough that servers have not closed it.
const POOL_IDLE: Duration = Duration::from_secs(15);

/// A repository behind HTTP.
pub(super) struct HttpRemote {
    client: Client,
    /// The repository's address; a redirect of the first request changes it for the following ones.
    base: Url,
    home: Url,
    authorization: Option<Secret>,
    has_credentials: bool,
    insecure: bool,
    protocol: Protocol,
    deadline: Deadline,
}

impl fmt::Debug for HttpRemote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HttpRemote").field(&self.base.as_str()).finish()
    }
}

impl HttpRemote {
    pub(super) fn new(remote: &Remote, protocol: Protocol, deadline: Deadline) -> Result<Self> {
        let UrlParts::Http { url, user } = remote.url.parts() else {
            return Err(Failure::stalled(format!("`{}` is not an HTTP address", remote.url)));
        };
        let host = url.host_str().unwrap_or_default();
        Ok(Self {
            client: client(remote, url)?,
            base: url.clone(),
            home: url.clone(),
            authorization: remote.credentials.authorization(host, user.as_deref())?,
            has_credentials: remote.credentials.has_http(),
            insecure: remote.insecure,
            protocol,
            deadline,
        })
    }

    /// Asks for a service, following redirects.
    pub(super) fn advertisement(&mut self, service: Service) -> Result<Stream> {
        let suffix = format!("/info/refs?service={}", service.name());
        let mut url = with_suffix(&self.base, &suffix)?;
        for _redirect in 0..=MAX_REDIRECTS {
            let response = self.perform(self.client.get(url.clone()), &url)?;
            if response.status().is_redirection() {
                url = self.redirected(&url, &response)?;
                self.base = without_suffix(&url, &suffix).ok_or_else(|| {
                    Failure::stalled(format!("`{}` redirects to a page, not to a repository", self.home))
                })?;
                continue;
            }
            let expected = format!("application/x-{}-advertisement", service.name());
            return self.stream(response, &expected);
        }
        Err(Failure::stalled(format!("`{}` redirects more than {MAX_REDIRECTS} times", self.home)))
    }

    /// Sends a request to a service. A redirect at this point is refused, as Git does: it would carry content away.
    pub(super) fn call(&self, service: Service, body: Vec<u8>) -> Result<Stream> {
        let url = with_suffix(&self.base, &format!("/{}", service.name()))?;
        let request = self.client.post(url.clone()).body(body);
        let request = request.header(CONTENT_TYPE, format!("application/x-{}-request", service.name()));
        let expected = format!("application/x-{}-result", service.name());
        self.stream(self.perform(request.header(ACCEPT, &expected), &url)?, &expected)
    }

    fn perform(&self, request: RequestBuilder, url: &Url) -> Result<Response> {
        let request = match self.protocol {
            Protocol::V2 => request.header("Git-Protocol", "version=2"),
            Protocol::V0 => request,
        };
        let request = match &self.authorization {
            // The credentials belong to the configured origin; whoever it redirects to does not get them.
            Some(secret) if url.origin() == self.home.origin() => request.header(AUTHORIZATION, sensitive(secret)?),
            _ => request,
        };
        let sending = async move { request.send().await.map_err(io::Error::other) };
        wait(self.deadline.step(), sending).map_err(|error| self.unreachable(error))
    }

    fn redirected(&self, from: &Url, response: &Response) -> Result<Url> {
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let target = from.join(location).or_stalled(|| format!("`{}` redirects to nowhere", self.home))?;
        if from.scheme() == "https" && target.scheme() != "https" {
            return Err(Failure::stalled(format!("`{}` redirects from https to an unencrypted address", self.home)));
        }
        if target.scheme() == "http" {
            RemoteUrl::parse(&format!("{}/", target.origin().ascii_serialization()), self.insecure)?;
        }
        Ok(target)
    }

    fn stream(&self, response: Response, expected: &str) -> Result<Stream> {
        let status = response.status();
        if !status.is_success() {
            return Err(self.refused(status, &response));
        }
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        // Nobody asked for it; a megabyte of it may unpack to gigabytes.
        if !matches!(header(CONTENT_ENCODING), "" | "identity") {
            return Err(Failure::stalled(format!("`{}` answers compressed, which it was not asked for", self.home))
                .hint("have the server, or what stands before it, leave the answers of Git as they are"));
        }
        let kind = header(CONTENT_TYPE);
        if kind.split(';').next().is_none_or(|kind| kind.trim() != expected) {
            return Err(Failure::stalled(format!("`{}` does not answer as a Git server", self.home))
                .hint("check the repository's address; servers that only serve files are not supported"));
        }
        let body = StreamReader::new(response.bytes_stream().map_err(io::Error::other));
        Ok(Stream::new(Box::new(body), None, self.deadline, format!("`{}`", self.home)))
    }

    fn refused(&self, status: StatusCode, response: &Response) -> Failure {
        let home = &self.home;
        let limited = response.headers().contains_key(RETRY_AFTER);
        match status.as_u16() {
            403 if limited => Failure::transient(format!("`{home}` asks to slow down (HTTP {status})")),
            401 if !self.has_credentials => {
                Failure::stalled(format!("`{home}` wants credentials (HTTP 401), and none are set"))
                    .hint("set `credentials.tokenFile` for this repository, or LAUNCHWAY_GIT_TOKEN")
            }
            401 if self.base.origin() != home.origin() => {
                Failure::stalled(format!("`{home}` redirects to `{}`, which wants credentials", self.base))
                    .hint("credentials are not sent to another host: configure the new address")
            }
            401 => Failure::stalled(format!("`{home}` does not accept the credentials (HTTP 401)"))
                .hint("check that the token is valid, and that it is for this host"),
            403 => Failure::stalled(format!("`{home}` does not allow this (HTTP 403)"))
                .hint("give the token the right to read the repository, and to write for notes"),
            404 | 410 => Failure::stalled(format!("`{home}` does not exist, or is not visible with these credentials"))
                .hint("check the repository's address and who may read it"),
            408 | 425 | 429 | 500..=599 => Failure::transient(format!("`{home}` is not available now (HTTP {status})")),
            _ => Failure::stalled(format!("`{home}` answers HTTP {status}")).hint("check the repository's address"),
        }
    }

    /// Says why no answer came. Untrusted certificates need a person; everything else may pass.
    fn unreachable(&self, error: io::Error) -> Failure {
        let home = &self.home;
        if error.kind() == io::ErrorKind::TimedOut {
            return Failure::transient(format!("`{home}` did not answer in time"));
        }
        let causes = causes(&error);
        if causes.to_ascii_lowercase().contains("certificate") {
            return Failure::stalled(format!("the certificate of `{home}` is not trusted"))
                .hint("set `credentials.caFile` to the authority that signed it")
                .because(causes);
        }
        Failure::transient(format!("cannot reach `{home}`")).because(causes)
    }
}

/// The chain of causes, outermost first, without the address that reqwest repeats in it.
fn causes(error: &io::Error) -> String {
    let beneath = error.get_ref().into_iter().flat_map(|error| crate::error::causes(error).skip(1));
    let mut texts: Vec<String> = beneath.map(ToString::to_string).collect();
    texts.dedup();
    if texts.is_empty() { error.kind().to_string() } else { texts.join(": ") }
}

fn sensitive(secret: &Secret) -> Result<HeaderValue> {
    let mut value = HeaderValue::from_str(secret.reveal())
        .map_err(|_shows_it| Failure::stalled("the credentials hold characters that HTTP cannot carry"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn with_suffix(base: &Url, suffix: &str) -> Result<Url> {
    let text = format!("{}{suffix}", base.as_str().trim_end_matches('/'));
    Url::parse(&text).or_stalled(|| format!("`{base}` is not the address of a repository"))
}

fn without_suffix(url: &Url, suffix: &str) -> Option<Url> {
    Url::parse(url.as_str().strip_suffix(suffix)?).ok()
}

/// What makes one client differ from another.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ClientKind {
    ca: Option<Vec<u8>>,
    /// This machine is never reached through a proxy.
    loopback: bool,
    /// Works on a machine that has no certificate authorities at all.
    unencrypted: bool,
    connect: Duration,
}

/// One client per CA file in use; older ones are made again when files change.
const MAX_CLIENTS: usize = 16;

/// Clients are kept because loading the machine's authorities costs milliseconds at every poll.
fn client(remote: &Remote, url: &Url) -> Result<Client> {
    static CLIENTS: Mutex<BTreeMap<ClientKind, Client>> = Mutex::new(BTreeMap::new());
    let kind = ClientKind {
        ca: remote.credentials.ca_bundle()?,
        loopback: is_loopback(url.host_str().unwrap_or_default()),
        unencrypted: url.scheme() == "http",
        connect: remote.time.connect,
    };
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(client) = clients.get(&kind) {
        return Ok(client.clone());
    }
    let client = build_client(&kind)?;
    if clients.len() >= MAX_CLIENTS {
        clients.clear();
    }
    clients.insert(kind, client.clone());
    Ok(client)
}

fn build_client(kind: &ClientKind) -> Result<Client> {
    let certificates = match &kind.ca {
        Some(pem) => Certificate::from_pem_bundle(pem).or_stalled(|| "the CA file is not in PEM format".to_owned())?,
        None => Vec::new(),
    };
    let client = builder(kind).tls_certs_merge(certificates).build();
    let client = if kind.unencrypted { client.or_else(|_| builder(kind).tls_certs_only([]).build()) } else { client };
    client
        .or_stalled(|| "cannot set up HTTPS".to_owned())
        .map_err(|failure| failure.hint("install the package ca-certificates, or set `credentials.caFile`"))
}

fn builder(kind: &ClientKind) -> ClientBuilder {
    let builder = Client::builder()
        .user_agent(USER_AGENT)
        .redirect(redirect::Policy::none())
        .connect_timeout(kind.connect)
        .pool_idle_timeout(POOL_IDLE);
    if kind.loopback { builder.no_proxy() } else { builder }
}
