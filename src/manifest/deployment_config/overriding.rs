//! The strategy that a stage's `deployment` task asks for, in place of a deployment config's own.
//!
//! What the file says of that strategy counts; where it says nothing, hooks, time and numbers of pods are those of its own.

use serde_json::{Map, Value, json};

use super::strategy::{self, CUSTOM, block_of};
use crate::manifest::findings::{Elsewhere, Findings};
use crate::manifest::pod_template::{items, text_at};
use crate::model::deployment_config::StrategyKind;

/// What of the block of a config's own strategy means the same under another one.
const SAME_EVERYWHERE: [&str; 4] = ["timeoutSeconds", "pre", "mid", "post"];
/// The same where pods are exchanged a few at a time.
const LIMITS: [&str; 2] = ["maxSurge", "maxUnavailable"];

/// Exchanges the strategy of a config, before its defaults are applied.
pub(super) fn exchange(value: &mut Value, by: StrategyKind, findings: &mut Findings<'_>) {
    let Some(spec) = value.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    let own = match text_at(spec, "/strategy/type") {
        "" => StrategyKind::default().as_str().to_owned(),
        written => written.to_owned(),
    };
    if own == by.as_str() || is_the_deployers(spec, by, findings) {
        return;
    }
    what_is_lost(spec, by, findings);
    let (own_block, block) = (strategy::block(spec), block_of(by.as_str()));
    let Some(strategy) = spec.as_object_mut().map(|spec| spec.entry("strategy").or_insert_with(|| json!({}))) else {
        return;
    };
    let Some(strategy) = strategy.as_object_mut() else { return };
    let own_params = strategy.shift_remove(own_block).unwrap_or_default();
    let params = strategy.entry(block).or_insert_with(|| json!({}));
    if let (Value::Object(own), Some(params)) = (own_params, params.as_object_mut()) {
        carry_over((own_block, own), (block, params), by, findings);
    }
    if let Some(params) = params.as_object_mut().filter(|_| by == StrategyKind::Canary) {
        params.entry("steps").or_insert_with(steps);
    }
    strategy.insert("type".to_owned(), json!(by.as_str()));
    strategy.insert("overrides".to_owned(), json!(own));
}

/// The steps of a canary that says none.
fn steps() -> Value {
    json!([{"weight": 10, "pause": "1m"}, {"weight": 50, "pause": "1m"}])
}

fn carry_over(
    (own_block, own): (&str, Map<String, Value>),
    (block, params): (&str, &mut Map<String, Value>),
    by: StrategyKind,
    findings: &mut Findings<'_>,
) {
    let has_limits = by == StrategyKind::Canary;
    let counts = |key: &str| SAME_EVERYWHERE.contains(&key) || has_limits && LIMITS.contains(&key);
    for (key, value) in own.into_iter().filter(|(key, _)| counts(key)) {
        if !params.contains_key(&key) {
            let [read, written] = [block, own_block].map(|block| format!("/spec/strategy/{block}/{key}"));
            findings.said_elsewhere(Elsewhere { read, written, is_field: true, within: None });
            params.insert(key, value);
        }
    }
}

/// Whether a program of the user's own deploys: nothing can take its place.
fn is_the_deployers(spec: &Value, by: StrategyKind, findings: &mut Findings<'_>) -> bool {
    let field = match text_at(spec, "/strategy/type") == CUSTOM {
        true => "/spec/strategy/type",
        false if strategy::has_deployer(spec) => "/spec/strategy/customParams",
        false => return false,
    };
    let message = format!(
        "a deployer of its own deploys this, and the shipyard's `deploymentstrategy` asks for {} in this stage",
        by.as_str()
    );
    findings.error(field, "strategy", message).hint =
        Some("take out one of them; `deploymentstrategy: direct` leaves it to the deployer".to_owned());
    true
}

/// What the config's own strategy has promised and this one does not keep.
fn what_is_lost(spec: &Value, by: StrategyKind, findings: &mut Findings<'_>) {
    let (block, kind) = (strategy::block(spec), by.as_str());
    let at = |key: &str| format!("/strategy/{block}/{key}");
    let mut warn = |key: &str, message: String| {
        findings.warning(&format!("/spec{}", at(key)), "strategy", message).hint =
            Some(format!("say it in `{}`, which counts where `deploymentstrategy` asks for {kind}", block_of(kind)));
    };
    let is_there = |key: &str| spec.pointer(&at(key)).is_some_and(|value| !value.is_null());
    if block == "recreateParams" && is_there("mid") {
        warn("mid", format!("runs while the version before serves: this stage deploys by {kind}, and not by Recreate"));
    }
    let has_analysis = |key: &str| items(spec, &at(key)).any(|(_, step)| step.get("analysis").is_some());
    if is_there("analysis") {
        warn("analysis", format!("judges nothing in this stage, which deploys by {kind}"));
    }
    if has_analysis("steps") {
        warn("steps", format!("their analyses judge nothing in this stage, which deploys by {kind}"));
    }
}
