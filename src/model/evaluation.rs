//! Service level objectives, which the built-in `evaluation` task judges. Source: Keptn's SLO format 1.0.

mod criterion;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use super::duration;
use super::time::Timestamp;

pub use criterion::{Criterion, Operator, Target};

/// The key of a task's properties under which its objectives stand.
pub const OBJECTIVES: &str = "objectives";

/// What the properties of an `evaluation` task declare.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Objectives {
    /// In the file's order; each is about another indicator.
    pub objectives: Vec<Objective>,
    /// What `$<key>` and `$<KEY>` stand for in queries.
    #[serde(default)]
    pub filter: BTreeMap<String, String>,
    /// What all of them together have to reach.
    #[serde(default)]
    pub total_score: TotalScore,
    /// What relative criteria compare with.
    #[serde(default)]
    pub comparison: Comparison,
    /// The time until now that queries are about.
    #[serde(default)]
    pub timeframe: Timeframe,
    /// What measures what nobody has given.
    pub prometheus: Option<Prometheus>,
}

/// What one indicator is to be.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Objective {
    /// The indicator's name.
    pub sli: String,
    /// Its name for people; absent if it is the same.
    #[serde(rename = "displayName")]
    pub display_name: Option<String>,
    /// It passes if one group holds; without any, it is only shown.
    #[serde(default)]
    pub pass: Vec<Criteria>,
    /// Otherwise it counts half if one of these holds.
    #[serde(default)]
    pub warning: Vec<Criteria>,
    /// How much it counts.
    #[serde(default = "one")]
    pub weight: u32,
    /// Whether everything fails if it does.
    #[serde(default)]
    pub key_sli: bool,
}

/// Criteria of which all must hold.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Criteria {
    /// At least one.
    pub criteria: Vec<Criterion>,
}

/// From which part of what could be reached, in percent, an evaluation passes or is a warning.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct TotalScore {
    /// It passes.
    pub pass: Percent,
    /// It is a warning; absent: never.
    pub warning: Option<Percent>,
}

impl Default for TotalScore {
    /// Source: the example of Keptn's specification; it does not say a default.
    fn default() -> Self {
        Self { pass: Percent(90.0), warning: Some(Percent(75.0)) }
    }
}

/// A part of a hundred, written as `90%` or `90`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Deserialize)]
#[serde(try_from = "Value")]
pub struct Percent(pub f64);

impl TryFrom<Value> for Percent {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        let number = match &value {
            Value::String(text) => criterion::number(text.trim().trim_end_matches('%')),
            other => other.as_f64(),
        };
        let number = number.filter(|number| (0.0..=100.0).contains(number));
        number.map(Self).ok_or("must be between 0% and 100%")
    }
}

/// What relative criteria compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Comparison {
    /// Whether with one earlier evaluation or several.
    pub compare_with: CompareWith,
    /// With which.
    pub include_result_with_score: Included,
    /// With how many at most, if with several.
    pub number_of_comparison_results: u32,
    /// What makes one value of several.
    pub aggregate_function: Aggregate,
}

/// With how many earlier evaluations one is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompareWith {
    /// With the newest.
    #[default]
    SingleResult,
    /// With as many as is said.
    SeveralResults,
}

/// Which earlier evaluations count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Included {
    /// Every one.
    #[default]
    All,
    /// Those that passed.
    Pass,
    /// Those that did not fail.
    PassOrWarn,
}

/// What makes one value of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Aggregate {
    /// Their mean.
    #[default]
    Avg,
    /// Their median.
    P50,
    /// Their 90th percentile.
    P90,
    /// Their 95th percentile.
    P95,
}

impl Comparison {
    /// The most earlier evaluations that may be asked for.
    pub const MOST: u32 = 100;

    /// How many earlier evaluations it wants.
    pub fn most(&self) -> u32 {
        match self.compare_with {
            CompareWith::SingleResult => 1,
            CompareWith::SeveralResults => self.number_of_comparison_results,
        }
    }
}

impl Default for Comparison {
    /// Source: Keptn's lighthouse-service.
    fn default() -> Self {
        let (compare_with, include_result_with_score, aggregate_function) = Default::default();
        Self { compare_with, include_result_with_score, number_of_comparison_results: 3, aggregate_function }
    }
}

/// The time that queries are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Timeframe(pub Duration);

impl Default for Timeframe {
    fn default() -> Self {
        Self(Duration::from_secs(300))
    }
}

impl TryFrom<String> for Timeframe {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let long_enough = |it: &Duration| *it >= Duration::from_secs(1);
        duration::parse(&text).filter(long_enough).map(Self).ok_or("must be a duration of a second or more")
    }
}

/// A Prometheus that measures indicators.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Prometheus {
    /// Where it answers, without `/api/v1`.
    pub url: String,
    /// By indicator, what it is asked, in PromQL with `$PROJECT`, `$STAGE`, `$SERVICE` and `$DURATION_SECONDS`.
    #[serde(default)]
    pub queries: BTreeMap<String, String>,
}

fn one() -> u32 {
    1
}

/// What a Prometheus is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// Where it answers, without `/api/v1`.
    pub url: String,
    /// By indicator, in PromQL.
    pub queries: BTreeMap<String, String>,
    /// For which time.
    pub at: Timestamp,
}

/// What is known of an indicator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reading {
    /// Its value.
    Value(Number),
    /// Why it has none, for people.
    Missing(String),
}

impl Reading {
    /// What a text says: a number, or why it is none.
    pub fn of(text: &str) -> Self {
        let number = serde_json::from_str(text).ok().filter(|number: &Number| number.as_f64().is_some());
        number.map_or_else(|| Self::Missing(format!("`{text}` is no number")), Self::Value)
    }

    /// The value, if it has one.
    pub fn value(&self) -> Option<f64> {
        match self {
            Reading::Value(number) => number.as_f64(),
            Reading::Missing(_) => None,
        }
    }
}

/// An earlier evaluation of the same service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// The id of the event that told it.
    pub event: String,
    /// The values by indicator.
    pub values: BTreeMap<String, Number>,
}

impl Objectives {
    /// What a task's properties declare; nothing, if they declare no objectives.
    ///
    /// # Errors
    /// If they do not say it well; what was read from a file does.
    pub fn of(properties: &Value) -> Option<Result<Self, String>> {
        are_declared(properties).then(|| Self::deserialize(properties).map_err(|error| error.to_string()))
    }
}

/// Whether a task's properties declare objectives.
pub fn are_declared(properties: &Value) -> bool {
    properties.get(OBJECTIVES).is_some_and(|objectives| !objectives.is_null())
}
