//! Indicators by Prometheus' HTTP API: instant queries.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::{Client, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::Value;

use super::Indicators;
use crate::error::{Context as _, Failure, Result};
use crate::http_client;
use crate::model::evaluation::{Measurement, Reading};
use crate::model::ids::RepositoryName;
use crate::secret::{Secret, SecretSource};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// One sample is wanted, not a metric with all of its series.
const ANSWER_LIMIT: usize = 1 << 20;
/// How much of what it says is passed on to people.
const TOLD: usize = 300;

/// What opens a Prometheus to a repository. Files are read again at each question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrometheusSettings {
    /// Its address, as shipyards say it.
    pub url: String,
    /// A token.
    pub token: Option<SecretSource>,
    /// A user name.
    pub username: Option<SecretSource>,
    /// Its password.
    pub password: Option<SecretSource>,
    /// Certificate authorities that are trusted beside the machine's.
    pub ca_file: Option<PathBuf>,
}

/// Asks Prometheus, and whatever has its API.
#[derive(Clone, Debug)]
pub struct PrometheusIndicators {
    client: Client,
    /// Who is asked in another way, and how.
    known: BTreeMap<RepositoryName, Vec<(PrometheusSettings, Client)>>,
}

/// What makes a request one of somebody's.
#[derive(Clone, Debug)]
enum Identity {
    Nobody,
    Bearer(Secret),
    Basic(Secret, Secret),
}

/// What it answers. Source: Prometheus' HTTP API v1.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    status: String,
    #[serde(default)]
    error: String,
    data: Option<Data>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    result_type: String,
    result: Value,
}

impl PrometheusIndicators {
    /// One that follows no redirects: what it is told stays where it is asked. What opens a Prometheus to a repository is
    /// told to no other, and for no other repository.
    ///
    /// # Errors
    /// If no client can be made.
    pub fn new(known: impl IntoIterator<Item = (RepositoryName, Vec<PrometheusSettings>)>) -> Result<Self> {
        let bounded = || http_client::bounded(CONNECT_TIMEOUT, REQUEST_TIMEOUT);
        let ready = |settings: PrometheusSettings| {
            let client = http_client::trusting(bounded(), settings.ca_file.as_deref())?;
            Ok((settings, client))
        };
        let known = known
            .into_iter()
            .map(|(repository, settings)| Ok((repository, settings.into_iter().map(ready).collect::<Result<_>>()?)));
        Ok(Self { client: http_client::trusting(bounded(), None)?, known: known.collect::<Result<_>>()? })
    }

    /// How a Prometheus is asked for a repository.
    async fn way_to(&self, repository: &RepositoryName, url: &str) -> Result<(Client, Identity)> {
        let is_meant = |(known, _): &&(PrometheusSettings, Client)| same_address(&known.url, url);
        let known = self.known.get(&repository.watched()).and_then(|known| known.iter().find(is_meant));
        let Some((settings, client)) = known.cloned() else { return Ok((self.client.clone(), Identity::Nobody)) };
        let read = tokio::task::spawn_blocking(move || identity(&settings)).await;
        Ok((client, read.or_transient(|| "reading what opens a Prometheus broke off".to_owned())??))
    }

    async fn ask(
        &self,
        (client, identity): &(Client, Identity),
        measurement: &Measurement,
        query: &str,
    ) -> Result<Reading> {
        let base = &measurement.url;
        let address = format!("{}/api/v1/query", base.trim_end_matches('/'));
        let mut url = Url::parse(&address).or_stalled(|| format!("`{base}` is no address"))?;
        let time = format!("{}.{:03}", measurement.at.0.div_euclid(1000), measurement.at.0.rem_euclid(1000));
        url.query_pairs_mut().append_pair("query", query).append_pair("time", &time);
        let request = match identity {
            Identity::Nobody => client.get(url),
            Identity::Bearer(token) => client.get(url).bearer_auth(token.reveal()),
            Identity::Basic(user, password) => client.get(url).basic_auth(user.reveal(), Some(password.reveal())),
        };
        let answer = request.send().await.map_err(reqwest::Error::without_url);
        let answer = answer.or_transient(|| format!("cannot reach `{base}`"))?;
        let status = answer.status();
        refused(base, status)?;
        let body = body(base, answer).await?;
        match serde_json::from_slice::<Answer>(&body) {
            Ok(answer) => Ok(reading(answer)),
            Err(error) if status.is_success() => {
                Err(Failure::stalled(format!("`{base}` does not answer as Prometheus does")).because(error))
            }
            Err(_) => Err(Failure::stalled(format!("`{base}` answers {status}"))),
        }
    }
}

#[async_trait]
impl Indicators for PrometheusIndicators {
    async fn measure(
        &self,
        repository: &RepositoryName,
        measurement: &Measurement,
    ) -> Result<BTreeMap<String, Reading>> {
        let (mut found, way) = (BTreeMap::new(), self.way_to(repository, &measurement.url).await?);
        for (sli, query) in &measurement.queries {
            found.insert(sli.clone(), self.ask(&way, measurement, query).await?);
        }
        Ok(found)
    }
}

/// Whether two addresses are one but for a slash at the end.
fn same_address(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

fn identity(settings: &PrometheusSettings) -> Result<Identity> {
    Ok(match (&settings.token, &settings.username, &settings.password) {
        (Some(token), _, _) => Identity::Bearer(token.read()?),
        (None, Some(username), Some(password)) => Identity::Basic(username.read()?, password.read()?),
        (None, _, _) => Identity::Nobody,
    })
}

/// Whether an answer says nothing of the query: it says that of one that is wrong by 400 and 422.
fn refused(base: &str, status: StatusCode) -> Result<()> {
    let told = format!("`{base}` answers {status}");
    match status {
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => Ok(()),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => Err(Failure::transient(told)),
        _ if status.is_success() => Ok(()),
        _ if status.is_server_error() => Err(Failure::transient(told)),
        _ if status.is_redirection() => {
            Err(Failure::stalled(told).hint("redirects are not followed: set `prometheus.url` to where it is"))
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Err(Failure::stalled(told)
                .hint("say what opens it in the daemon's configuration: `repositories[].prometheus`"))
        }
        _ => Err(Failure::stalled(told).hint("check `prometheus.url`")),
    }
}

async fn body(base: &str, answer: Response) -> Result<Vec<u8>> {
    let too_long = || {
        Failure::stalled(format!("`{base}` answers with more than {ANSWER_LIMIT} bytes"))
            .hint("have the query find one value, as `sum(…)` does")
    };
    http_client::read(answer, ANSWER_LIMIT, &format!("`{base}`")).await?.ok_or_else(too_long)
}

/// The value of the first sample.
fn reading(answer: Answer) -> Reading {
    let ("success", Some(data)) = (answer.status.as_str(), answer.data) else {
        return Reading::Missing(answer.error.chars().take(TOLD).collect());
    };
    let sample = match data.result_type.as_str() {
        "vector" => data.result.get(0).and_then(|first| first.get("value")),
        "scalar" => Some(&data.result),
        other => return Reading::Missing(format!("the query finds a {other}, not a value")),
    };
    match sample.and_then(|sample| sample.get(1)).and_then(Value::as_str) {
        Some(text) => Reading::of(text),
        None => Reading::Missing("the query finds nothing".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn what_opens_a_prometheus_is_for_it_and_its_repository_alone() {
        let secret = |text: &str| Some(SecretSource::Value(Secret::new(text)));
        let plain = |url: &str| {
            let (token, username, password, ca_file) = Default::default();
            PrometheusSettings { url: url.into(), token, username, password, ca_file }
        };
        let token = PrometheusSettings { token: secret("t"), ..plain("https://a.example/x") };
        let user = PrometheusSettings { username: secret("u"), password: secret("p"), ..plain("https://b.example") };
        let indicators = PrometheusIndicators::new([("shop".into(), vec![token, user])]).unwrap();
        for (repository, url, expected) in [
            ("shop", "https://a.example/x/", "Bearer(Secret(…))"),
            ("shop", "https://b.example", "Basic(Secret(…), Secret(…))"),
            ("shop", "https://a.example/xy", "Nobody"),
            ("shop", "http://a.example/x", "Nobody"),
            ("other", "https://a.example/x", "Nobody"),
        ] {
            let (_, identity) = indicators.way_to(&repository.into(), url).await.unwrap();
            assert_eq!(format!("{identity:?}"), expected, "{repository} {url}");
        }
    }

    #[test]
    fn the_first_sample_has_the_value() {
        let missing = |why: &str| Reading::Missing(why.into());
        let found =
            |kind: &str, result: Value| json!({"status": "success", "data": {"resultType": kind, "result": result}});
        for (answer, expected) in [
            (
                found("vector", json!([{"metric": {}, "value": [1.5, "812"]}, {"value": [1.5, "1"]}])),
                Reading::of("812"),
            ),
            (found("vector", json!([{"value": [1.5, "0.05"]}])), Reading::of("0.05")),
            (found("vector", json!([{"value": [1.5, "1.5e-07"]}])), Reading::of("1.5e-07")),
            (found("scalar", json!([1.5, "3"])), Reading::of("3")),
            (found("vector", json!([])), missing("the query finds nothing")),
            (found("vector", json!([{"value": [1.5, "NaN"]}])), missing("`NaN` is no number")),
            (found("vector", json!([{"value": [1.5, "+Inf"]}])), missing("`+Inf` is no number")),
            (found("matrix", json!([])), missing("the query finds a matrix, not a value")),
            (json!({"status": "error", "errorType": "bad_data", "error": "parse error"}), missing("parse error")),
        ] {
            assert_eq!(reading(serde_json::from_value(answer.clone()).unwrap()), expected, "{answer}");
        }
        assert_eq!(Reading::of("0.05").value(), Some(0.05));
    }
}
