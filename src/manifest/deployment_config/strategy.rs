//! Rules of the deployment strategy. Only the block of the type that applies is checked; a leftover one gets a warning.

use serde_json::Value;

use super::hook;
use crate::manifest::findings::Findings;
use crate::manifest::names;
use crate::manifest::pod_template::{items, text_at};
use crate::model::deployment_config::DEFAULT_STRATEGY_TIMEOUT;

/// Checks `spec.strategy`.
pub(super) fn validate(spec: &Value, findings: &mut Findings<'_>) {
    match text_at(spec, "/strategy/type") {
        "Rolling" => {
            rolling(spec, findings);
            leftover(spec, "Rolling", "recreateParams", findings);
            of_the_deployer(spec, findings);
        }
        "Recreate" => {
            timeout(spec, "recreateParams", findings);
            hook::validate_all(spec, "recreateParams", findings);
            leftover(spec, "Recreate", "rollingParams", findings);
            of_the_deployer(spec, findings);
        }
        "Custom" => custom(spec, findings),
        _ => {}
    }
}

/// Upstream checks the other blocks too: the user's own deployer may use them.
fn custom(spec: &Value, findings: &mut Findings<'_>) {
    let message = "the Custom strategy is not carried out yet: nothing will be deployed";
    findings.warning("/spec/strategy/type", "not-supported", message).hint =
        Some("Rolling and Recreate are, with hooks for what the deployer image does".to_owned());
    if spec.pointer("/strategy/rollingParams").is_some() {
        rolling(spec, findings);
    }
    if spec.pointer("/strategy/recreateParams").is_some() {
        timeout(spec, "recreateParams", findings);
        hook::validate_all(spec, "recreateParams", findings);
    }
    let Some(params) = spec.pointer("/strategy/customParams") else {
        findings.error("/spec/strategy/customParams", "required", "this is required");
        return;
    };
    for (index, variable) in items(params, "/environment") {
        let name = text_at(variable, "/name");
        if let (false, Err(wrong)) = (name.is_empty(), names::identifier(name)) {
            let field = format!("/spec/strategy/customParams/environment/{index}/name");
            findings.error(&field, "invalid", format!("`{name}` {wrong}"));
        }
    }
}

/// What is for the deployer's pod, which there is none of.
fn of_the_deployer(spec: &Value, findings: &mut Findings<'_>) {
    let is_given = |value: &Value| value.as_object().is_some_and(|map| !map.is_empty());
    if spec.pointer("/strategy/customParams").is_some_and(is_given) {
        let message = "customParams are not carried out yet: nothing will be deployed";
        findings.warning("/spec/strategy/customParams", "not-supported", message);
    }
    for key in ["resources", "labels", "annotations"] {
        if spec.pointer(&format!("/strategy/{key}")).is_some_and(is_given) {
            let message = format!("`{key}` has no effect: they are a deployer pod's, and here the daemon deploys");
            findings.warning(&format!("/spec/strategy/{key}"), "no-effect", message);
        }
    }
}

/// Whether there may be more pods than declared for a while.
pub(super) fn surges(spec: &Value) -> bool {
    let surge = spec.pointer("/strategy/rollingParams/maxSurge");
    text_at(spec, "/strategy/type") == "Rolling" && surge.is_some_and(|surge| surge != 0 && surge != "0%")
}

/// The block that is read for `timeoutSeconds`: that of the strategy's type.
pub(super) fn timeout_seconds(spec: &Value) -> i64 {
    let block = if text_at(spec, "/strategy/type") == "Recreate" { "recreateParams" } else { "rollingParams" };
    let default = i64::try_from(DEFAULT_STRATEGY_TIMEOUT.as_secs()).unwrap_or(i64::MAX);
    spec.pointer(&format!("/strategy/{block}/timeoutSeconds")).and_then(Value::as_i64).unwrap_or(default)
}

fn leftover(spec: &Value, kind: &str, block: &str, findings: &mut Findings<'_>) {
    if spec.pointer(&format!("/strategy/{block}")).is_some() {
        let message = format!("`{block}` has no effect with the strategy {kind}");
        findings.warning(&format!("/spec/strategy/{block}"), "leftover", message).hint =
            Some("remove it; its hooks do not run".to_owned());
    }
}

fn rolling(spec: &Value, findings: &mut Findings<'_>) {
    for key in ["updatePeriodSeconds", "intervalSeconds"] {
        must_be_positive(spec, &format!("/strategy/rollingParams/{key}"), findings);
    }
    timeout(spec, "rollingParams", findings);
    let unavailable = limit(spec, "maxUnavailable", findings);
    let surge = limit(spec, "maxSurge", findings);
    if unavailable.is_some_and(Limit::is_zero) && surge.is_some_and(Limit::is_zero) {
        let message = "cannot be 0 while maxSurge is 0 too: no pod could ever be replaced";
        findings.error("/spec/strategy/rollingParams/maxUnavailable", "invalid", message);
    }
    if let Some(Limit::Percent(percent)) = unavailable
        && percent > 100
    {
        let message = format!("must not be more than 100%, but is {percent}%");
        findings.error("/spec/strategy/rollingParams/maxUnavailable", "invalid", message);
    }
    hook::validate_all(spec, "rollingParams", findings);
}

fn must_be_positive(spec: &Value, pointer: &str, findings: &mut Findings<'_>) {
    if let Some(number) = spec.pointer(pointer).and_then(Value::as_i64).filter(|number| *number < 1) {
        findings.error(&format!("/spec{pointer}"), "invalid", format!("must be more than 0, not {number}"));
    }
}

fn timeout(spec: &Value, block: &str, findings: &mut Findings<'_>) {
    must_be_positive(spec, &format!("/strategy/{block}/timeoutSeconds"), findings);
    let timeout = timeout_seconds(spec);
    let deadline = spec.pointer("/strategy/activeDeadlineSeconds").and_then(Value::as_i64);
    if let Some(deadline) = deadline.filter(|deadline| (1..=timeout).contains(deadline)) {
        let message = format!("must be more than timeoutSeconds, which is {timeout}, but is {deadline}");
        findings.error("/spec/strategy/activeDeadlineSeconds", "invalid", message);
    }
}

#[derive(Clone, Copy)]
enum Limit {
    Pods(i64),
    Percent(u32),
}

impl Limit {
    fn is_zero(self) -> bool {
        matches!(self, Limit::Pods(0) | Limit::Percent(0))
    }
}

fn limit(spec: &Value, key: &str, findings: &mut Findings<'_>) -> Option<Limit> {
    let parsed = match spec.pointer(&format!("/strategy/rollingParams/{key}"))? {
        Value::Number(number) => {
            number.as_i64().filter(|pods| (0..=i64::from(i32::MAX)).contains(pods)).map(Limit::Pods)
        }
        Value::String(text) => percent(text).map(Limit::Percent),
        _ => return None,
    };
    if parsed.is_none() {
        let field = format!("/spec/strategy/rollingParams/{key}");
        findings.error(&field, "invalid", "must be a number of pods, 0 or more, or a percentage such as 25%");
    }
    parsed
}

fn percent(text: &str) -> Option<u32> {
    let digits = text.strip_suffix('%')?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}
