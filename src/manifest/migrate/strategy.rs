//! A strategy where a `Deployment` says it: its own fields, and an annotation for the rest.

use serde_json::{Map, Value, json};

use super::{Step, block_of, says};
use crate::manifest::deployment::annotations::STRATEGY;
use crate::manifest::deployment_config::block_of as block_of_type;
use crate::manifest::edit::Change;
use crate::manifest::pod_template::text_at;
use crate::manifest::problem::Problem;

/// Where limits of a rolling deployment are.
const LIMITS: [&str; 2] = ["maxUnavailable", "maxSurge"];

impl Step {
    pub(super) fn strategy(&mut self) -> Result<(), Box<Problem>> {
        let Some(strategy) = self.config.value().pointer("/spec/strategy").cloned() else { return Ok(()) };
        self.leftover(&strategy)?;
        match text_at(&strategy, "/type") {
            "" | "Rolling" | "Recreate" => self.own_strategy(),
            kind => self.annotated_strategy(kind),
        }
    }

    /// Blocks of other strategies, which have no effect.
    fn leftover(&mut self, strategy: &Value) -> Result<(), Box<Problem>> {
        let block = block_of_type(text_at(strategy, "/type"));
        let is_left = |key: &&String| key.ends_with("Params") && *key != block && *key != "customParams";
        let left: Vec<String> = strategy.as_object().into_iter().flat_map(Map::keys).filter(is_left).cloned().collect();
        for key in left {
            self.notes.push(format!("`spec.strategy.{key}` had no effect, and is gone"));
            self.drop_if_there(&format!("/spec/strategy/{key}"))?;
        }
        Ok(())
    }

    /// One of launchway's own strategies goes to the annotation whole.
    fn annotated_strategy(&mut self, kind: &str) -> Result<(), Box<Problem>> {
        let block = format!("/spec/strategy/{}", block_of_type(kind));
        if matches!(kind, "Canary" | "AB") {
            let params = self.config.value().pointer(&block).cloned().unwrap_or_default();
            let missing: Vec<Change> = limits(&params)
                .into_iter()
                .filter(|(key, _)| params.get(*key).is_none())
                .map(|(key, value)| Change::set(format!("{block}/{key}"), value))
                .collect();
            self.change(missing)?;
        }
        let strategy = self.config.value().pointer("/spec/strategy").cloned().unwrap_or_default();
        let words = self.words("/spec/strategy", false).filter(|words| says(words, &strategy));
        self.drop_if_there("/spec/strategy")?;
        self.annotate(STRATEGY, &words.unwrap_or_else(|| block_of(&strategy)))
    }

    /// What a `Deployment` says itself, and what is left.
    fn own_strategy(&mut self) -> Result<(), Box<Problem>> {
        let strategy = self.config.value().pointer("/spec/strategy").cloned().unwrap_or_default();
        let kind = text_at(&strategy, "/type").to_owned();
        let block = block_of_type(&kind);
        let params = strategy.get(block).cloned().unwrap_or_default();
        if let Some(seconds) = params.get("timeoutSeconds").filter(|seconds| !seconds.is_null()) {
            self.change(vec![Change::set("/spec/progressDeadlineSeconds", seconds.clone())])?;
        }
        let rest = rest(&strategy, block, &params);
        let update: Map<String, Value> = if block == "rollingParams" { limits(&params) } else { Vec::new() }
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        let old: Vec<&String> = params.as_object().into_iter().flat_map(Map::keys).collect();
        let others = old.iter().filter(|key| !LIMITS.contains(&key.as_str()));
        self.change(others.map(|key| Change::moved(format!("/spec/strategy/{block}/{key}"))).collect())?;
        if !update.is_empty() {
            let at = format!("/spec/strategy/{block}");
            self.change(update.iter().map(|(key, value)| Change::set(format!("{at}/{key}"), value.clone())).collect())?;
            let update = Value::Object(update);
            let change = match self.words(&at, false).filter(|words| says(words, &update)) {
                Some(words) => Change::written("/spec/strategy/rollingUpdate", update, words),
                None => Change::set("/spec/strategy/rollingUpdate", update),
            };
            self.change(vec![change])?;
        }
        self.drop_if_there(&format!("/spec/strategy/{block}"))?;
        let levels =
            rest.keys().filter(|key| *key != block).map(|key| format!("/spec/strategy/{key}")).collect::<Vec<_>>();
        for pointer in levels {
            self.drop_if_there(&pointer)?;
        }
        if kind == "Rolling" {
            self.change(vec![Change::set("/spec/strategy/type", "RollingUpdate")])?;
        }
        if self.config.value().pointer("/spec/strategy").and_then(Value::as_object).is_some_and(Map::is_empty) {
            self.drop_if_there("/spec/strategy")?;
        }
        if rest.is_empty() { Ok(()) } else { self.annotate(STRATEGY, &block_of(&Value::Object(rest))) }
    }
}

/// What a `Deployment` has no field for.
fn rest(strategy: &Value, block: &str, params: &Value) -> Map<String, Value> {
    let own = ["type", "lifecycle", block];
    let is_said = |value: &Value| !value.is_null();
    let entries = |value: &Value| value.as_object().cloned().unwrap_or_default().into_iter();
    let mut rest: Map<String, Value> =
        entries(strategy).filter(|(key, value)| !own.contains(&key.as_str()) && is_said(value)).collect();
    let moved = ["timeoutSeconds", "updatePercent", "pre", "mid", "post"];
    let limits = if block == "rollingParams" { &LIMITS[..] } else { &[] };
    let left: Map<String, Value> = entries(params)
        .filter(|(key, value)| !moved.contains(&key.as_str()) && !limits.contains(&key.as_str()) && is_said(value))
        .collect();
    if !left.is_empty() {
        rest.insert(block.to_owned(), Value::Object(left));
    }
    rest
}

/// Both limits where one is given: alone it means something else in a `Deployment`.
fn limits(params: &Value) -> Vec<(&'static str, Value)> {
    let given = LIMITS.map(|key| params.get(key).filter(|value| !value.is_null()).cloned());
    let is_zero = |value: &Value| *value == json!(0) || *value == json!("0%");
    let other = |given: &Value| if is_zero(given) { json!("25%") } else { json!(0) };
    let both = match given {
        [None, None] => return Vec::new(),
        [Some(unavailable), None] => [unavailable.clone(), other(&unavailable)],
        [None, Some(surge)] => [other(&surge), surge],
        [Some(unavailable), Some(surge)] => [unavailable, surge],
    };
    LIMITS.into_iter().zip(both).collect()
}
