//! Indicators by Prometheus' HTTP API: instant queries.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::{Client, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::Value;

use super::Indicators;
use crate::error::{Context as _, Failure, Result};
use crate::http_client;
use crate::model::evaluation::{Measurement, Reading};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// One sample is wanted, not a metric with all of its series.
const ANSWER_LIMIT: usize = 1 << 20;
/// How much of what it says is passed on to people.
const TOLD: usize = 300;

/// Asks Prometheus, and whatever has its API.
#[derive(Clone, Debug)]
pub struct PrometheusIndicators {
    client: Client,
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
    /// One that follows no redirects: what it is told stays where it is asked.
    ///
    /// # Errors
    /// If no client can be made.
    pub fn new() -> Result<Self> {
        let client = http_client::bounded(CONNECT_TIMEOUT, REQUEST_TIMEOUT).build();
        Ok(Self { client: client.or_stalled(|| "cannot prepare requests to Prometheus".to_owned())? })
    }

    async fn ask(&self, measurement: &Measurement, query: &str) -> Result<Reading> {
        let base = &measurement.url;
        let address = format!("{}/api/v1/query", base.trim_end_matches('/'));
        let mut url = Url::parse(&address).or_stalled(|| format!("`{base}` is no address"))?;
        let time = format!("{}.{:03}", measurement.at.0.div_euclid(1000), measurement.at.0.rem_euclid(1000));
        url.query_pairs_mut().append_pair("query", query).append_pair("time", &time);
        let answer = self.client.get(url).send().await.map_err(reqwest::Error::without_url);
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
    async fn measure(&self, measurement: &Measurement) -> Result<BTreeMap<String, Reading>> {
        let mut found = BTreeMap::new();
        for (sli, query) in &measurement.queries {
            found.insert(sli.clone(), self.ask(measurement, query).await?);
        }
        Ok(found)
    }
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
        _ => Err(Failure::stalled(told).hint("check `prometheus.url`")),
    }
}

async fn body(base: &str, mut answer: Response) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    let interrupted = || format!("the answer of `{base}` was interrupted");
    while let Some(chunk) = answer.chunk().await.map_err(reqwest::Error::without_url).or_transient(interrupted)? {
        body.extend_from_slice(&chunk);
        if body.len() > ANSWER_LIMIT {
            let message = format!("`{base}` answers with more than {ANSWER_LIMIT} bytes");
            return Err(Failure::stalled(message).hint("have the query find one value, as `sum(…)` does"));
        }
    }
    Ok(body)
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
