//! Who is told what happens, and whether they take it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::time;
use crate::executor::sinks::Subscriber;
use crate::store::Backlog;

/// A sink of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SinkView {
    /// Its name.
    pub name: String,
    /// The beginning of its address; what follows may be a secret.
    pub url: String,
    /// `Ready`, or `Failing`, if the last event was not taken.
    pub status: String,
    /// Since when it fails, as far as this process knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<String>,
    /// What came of the last event that was not taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// How many events wait to be told.
    pub waiting: u64,
    /// When the oldest of them happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<String>,
}

impl SinkView {
    /// A sink, with what waits for it.
    pub fn new(sink: &Subscriber, backlog: Backlog) -> Self {
        let trouble = sink.trouble();
        Self {
            name: sink.name.to_string(),
            url: sink.place.clone(),
            status: if trouble.is_some() { "Failing" } else { "Ready" }.to_owned(),
            failing_since: trouble.as_ref().map(|trouble| time(trouble.since)),
            problem: trouble.map(|trouble| trouble.problem),
            waiting: backlog.count,
            oldest: backlog.oldest.map(time),
        }
    }
}
