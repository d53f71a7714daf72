//! Sinks by HTTP: an event is posted as JSON in the structured mode of CloudEvents, and signed as Standard Webhooks says.
//!
//! Source: CloudEvents 1.0, HTTP protocol binding; Standard Webhooks 1.0.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response};

use super::{Refusal, Sink};
use crate::engine::sequence::incoming::derived_context;
use crate::error::{Context as _, Failure, Result};
use crate::forge::retry_after;
use crate::http_client;
use crate::model::cloud_event::CloudEvent;
use crate::model::ids::SinkName;
use crate::model::sink::Subscription;
use crate::model::time::Timestamp;
use crate::secret::{Secret, SecretSource};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// From the first byte to the last of the answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// What is read of an answer, so that its connection can be used again; nothing in it counts.
const ANSWER_LIMIT: usize = 64 << 10;
/// What a secret that is not its bytes begins with. Source: Standard Webhooks.
const ENCODED: &str = "whsec_";

/// A sink as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkSettings {
    /// Its name in logs, metrics and histories; its address may be a secret.
    pub name: SinkName,
    /// Where events are posted.
    pub url: String,
    /// What signs them.
    pub secret: Option<SecretSource>,
    /// Certificate authorities that are trusted beside the machine's.
    pub ca_file: Option<PathBuf>,
    /// What it is told; everything, if nothing is said.
    pub subscriptions: Vec<Subscription>,
}

impl SinkSettings {
    /// What of its address is shown: many a webhook's path is as good as a password.
    pub fn place(&self) -> &str {
        let host = self.url.find("://").map_or(0, |at| at + 3);
        self.url[host..].find('/').map_or(&self.url, |end| &self.url[..host + end])
    }
}

/// A sink at an address.
#[derive(Clone, Debug)]
pub struct HttpSink {
    settings: SinkSettings,
    client: Client,
}

impl HttpSink {
    /// One that follows no redirects: what it is told stays where it is told.
    ///
    /// # Errors
    /// If its certificates cannot be used.
    pub fn new(settings: SinkSettings) -> Result<Self> {
        let builder = http_client::bounded(CONNECT_TIMEOUT, REQUEST_TIMEOUT);
        let client = http_client::trusting(builder, settings.ca_file.as_deref())?;
        Ok(Self { settings, client })
    }

    async fn secret(&self) -> Result<Option<Secret>> {
        let Some(source) = self.settings.secret.clone() else { return Ok(None) };
        let read = tokio::task::spawn_blocking(move || source.read());
        read.await.or_transient(|| "reading what signs events broke off".to_owned())?.map(Some)
    }
}

#[async_trait]
impl Sink for HttpSink {
    async fn post(&self, event: &CloudEvent, now: Timestamp) -> Result<(), Refusal> {
        let body = serde_json::to_vec(event).or_stalled(|| "the event cannot be written".to_owned());
        let body = body.map_err(Refusal::Never)?;
        let (id, at) = (message_id(event), now.0.div_euclid(1000).to_string());
        let mut request = self.client.post(&self.settings.url);
        request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/cloudevents+json; charset=utf-8"));
        request = request.header("webhook-id", &id).header("webhook-timestamp", &at);
        if let Some(secret) = self.secret().await.map_err(later)? {
            request = request.header("webhook-signature", signature(&secret, (&id, &at), &body).map_err(later)?);
        }
        let answer = request.body(body).send().await.map_err(reqwest::Error::without_url);
        let answer = answer.or_transient(|| format!("cannot reach sink `{}`", self.settings.name)).map_err(later)?;
        let judged = judge(&self.settings.name, &answer, now);
        drain(answer).await;
        judged
    }
}

fn later(failure: Failure) -> Refusal {
    Refusal::Later { failure, after: Duration::ZERO }
}

/// The same for every try. Source: `webhook-id` of Standard Webhooks.
fn message_id(event: &CloudEvent) -> String {
    derived_context(&format!("{} {} {}", event.source, event.kind, event.id))
}

fn signature(secret: &Secret, (id, at): (&str, &str), body: &[u8]) -> Result<String> {
    let wrong = || format!("the secret begins with `{ENCODED}`, and what follows is no base64");
    let key = match secret.reveal().strip_prefix(ENCODED) {
        Some(encoded) => STANDARD.decode(encoded).or_stalled(wrong)?,
        None => secret.reveal().as_bytes().to_vec(),
    };
    let signed = [format!("{id}.{at}.").as_bytes(), body].concat();
    Ok(format!("v1,{}", STANDARD.encode(sign(&Key::new(HMAC_SHA256, &key), &signed))))
}

/// Whether an event was taken. What may come of a sink that is not set up yet, is busy or is away is tried again.
fn judge(name: &SinkName, answer: &Response, now: Timestamp) -> Result<(), Refusal> {
    let status = answer.status();
    let told = format!("sink `{name}` answers {status}");
    let is_passing = matches!(status.as_u16(), 401 | 403 | 404 | 408 | 409 | 425 | 429);
    match status {
        _ if status.is_success() => Ok(()),
        _ if status.is_server_error() || is_passing => {
            let asked = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
            let after =
                asked.and_then(|value| retry_after::parse(value, now)).map_or(Duration::ZERO, |at| at.since(now));
            Err(Refusal::Later { failure: Failure::transient(told), after })
        }
        _ if status.is_redirection() => {
            Err(Refusal::Never(Failure::stalled(told).hint("redirects are not followed: set its `url` to where it is")))
        }
        _ => Err(Refusal::Never(Failure::stalled(told))),
    }
}

/// Reads an answer to its end, if that is near.
async fn drain(mut answer: Response) {
    let mut read = 0;
    while let Ok(Some(chunk)) = answer.chunk().await {
        read += chunk.len();
        if read > ANSWER_LIMIT {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_signed_as_standard_webhooks_says() {
        // Source: the example of the reference libraries of Standard Webhooks.
        let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let signed = signature(&secret, ("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330"), br#"{"test": 2432232314}"#);
        assert_eq!(signed.unwrap(), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(signature(&Secret::new("whsec_*"), ("a", "1"), b"").is_err());
        assert!(signature(&Secret::new("plain"), ("a", "1"), b"").unwrap().starts_with("v1,"));
    }

    #[test]
    fn of_an_address_only_the_beginning_is_shown() {
        for (url, shown) in [
            ("https://ci.example/hooks/T0/B0/xyz", "https://ci.example"),
            ("http://127.0.0.1:80/x", "http://127.0.0.1:80"),
            ("https://ci.example", "https://ci.example"),
        ] {
            let (secret, ca_file, subscriptions) = Default::default();
            let settings = SinkSettings { name: "ci".into(), url: url.into(), secret, ca_file, subscriptions };
            assert_eq!(settings.place(), shown);
        }
    }

    #[test]
    fn a_message_has_one_id_however_often_it_is_told() {
        let event = |kind: &str, id: &str| CloudEvent::of(kind, id, serde_json::Value::Null);
        assert_eq!(message_id(&event("a", "1")), message_id(&event("a", "1")));
        assert_ne!(message_id(&event("a", "1")), message_id(&event("b", "1")), "one event may start several sequences");
    }
}
