//! Rules of the deployment strategy. Only the block of the type that applies is checked; a leftover one gets a warning.

use serde_json::Value;

use super::hook;
use crate::manifest::findings::Findings;
use crate::manifest::names;
use crate::manifest::pod_template::{items, text_at};
use crate::manifest::problem::Problem;
use crate::model::deployment_config::DEFAULT_STRATEGY_TIMEOUT;
use crate::model::duration;

/// The blocks of parameters, of which the one of the strategy's type applies.
pub(super) const BLOCKS: [&str; 5] = ["rollingParams", "recreateParams", "canaryParams", "blueGreenParams", "abParams"];
/// The type of a strategy that the user's own deployer carries out.
pub(super) const CUSTOM: &str = "Custom";
/// Where that deployer is described.
const PARAMS: &str = "/strategy/customParams";
/// The code of what has no effect because something else applies.
const LEFTOVER: &str = "leftover";
/// The most steps of a canary.
const MOST_STEPS: usize = 100;

/// The block that applies. Upstream takes the timeout of Custom from the first that is there.
pub(super) fn block(spec: &Value) -> &'static str {
    let is_there = |block: &str| spec.pointer(&format!("/strategy/{block}")).is_some();
    match text_at(spec, "/strategy/type") {
        CUSTOM if !is_there("rollingParams") && is_there("recreateParams") => "recreateParams",
        kind => block_of(kind),
    }
}

/// The block of a strategy's type.
pub(crate) fn block_of(kind: &str) -> &'static str {
    match kind {
        "Recreate" => "recreateParams",
        "Canary" => "canaryParams",
        "BlueGreen" => "blueGreenParams",
        "AB" => "abParams",
        _ => "rollingParams",
    }
}

/// Checks `spec.strategy`.
pub(super) fn validate(spec: &Value, findings: &mut Findings<'_>) {
    match text_at(spec, "/strategy/type") {
        CUSTOM => custom(spec, findings),
        "Rolling" | "Recreate" | "Canary" | "BlueGreen" | "AB" => {
            block_that_applies(spec, findings);
            leftover(spec, findings);
            of_the_deployer(spec, findings);
        }
        _ => {}
    }
}

fn block_that_applies(spec: &Value, findings: &mut Findings<'_>) {
    match text_at(spec, "/strategy/type") {
        "Rolling" => {
            for key in ["updatePeriodSeconds", "intervalSeconds"] {
                must_be_positive(spec, &format!("/strategy/rollingParams/{key}"), findings);
            }
            limits(spec, findings);
        }
        "Canary" => canary(spec, findings),
        "BlueGreen" => duration(spec, "/strategy/blueGreenParams/keep", findings),
        "AB" => {
            must_be_there(spec, findings);
            limits(spec, findings);
        }
        _ => {}
    }
    timeout(spec, findings);
    hook::validate_all(spec, findings);
}

/// What no default stands for.
fn must_be_there(spec: &Value, findings: &mut Findings<'_>) {
    let field = format!("/spec/strategy/{}", block(spec));
    if spec.pointer(field.trim_start_matches("/spec")).is_none() {
        findings.error(&field, "required", "this is required");
    }
}

fn canary(spec: &Value, findings: &mut Findings<'_>) {
    must_be_there(spec, findings);
    limits(spec, findings);
    let steps: Vec<(usize, &Value)> = items(spec, "/strategy/canaryParams/steps").collect();
    if spec.pointer("/strategy/canaryParams").is_some() && steps.is_empty() {
        findings.error("/spec/strategy/canaryParams/steps", "required", "this is required").hint =
            Some("one step at least, such as {weight: 10, pause: 5m}; without any, Rolling does the same".to_owned());
    }
    if steps.len() > MOST_STEPS {
        let message = format!("has {} steps; {MOST_STEPS} are the most", steps.len());
        findings.error("/spec/strategy/canaryParams/steps", "invalid", message);
    }
    for (index, step) in steps.into_iter().filter(|(_, step)| step.get("pause").is_some()) {
        let pointer = format!("/strategy/canaryParams/steps/{index}/pause");
        match &step["pause"] {
            Value::Object(map) if map.is_empty() => {}
            Value::Object(map) if map.len() == 1 && map.contains_key("duration") => {
                duration(spec, &format!("{pointer}/duration"), findings);
            }
            _ => duration(spec, &pointer, findings),
        }
    }
}

fn duration(spec: &Value, pointer: &str, findings: &mut Findings<'_>) {
    let Some(value) = spec.pointer(pointer) else { return };
    if value.as_str().and_then(duration::parse).is_none() {
        findings.error(&format!("/spec{pointer}"), "invalid", "must be a duration such as 30s, 5m or 1h30m");
    }
}

/// Upstream checks the other blocks too: the user's own deployer may use them.
fn custom(spec: &Value, findings: &mut Findings<'_>) {
    for (kind, block) in [("Rolling", "rollingParams"), ("Recreate", "recreateParams")] {
        if spec.pointer(&format!("/strategy/{block}")).is_some() {
            let mut as_if = spec.clone();
            as_if["strategy"]["type"] = kind.into();
            block_that_applies(&as_if, findings);
        }
    }
    let Some(params) = spec.pointer(PARAMS) else {
        findings.error("/spec/strategy/customParams", "required", "this is required");
        return;
    };
    if !names_something(params) {
        let message = "names neither an image nor a command: nothing will be deployed";
        findings.warning("/spec/strategy/customParams", "incomplete", message).hint =
            Some("`command` alone runs in the image of the template's first container".to_owned());
    }
    deployer(params, findings);
}

fn names_something(params: &Value) -> bool {
    !text_at(params, "/image").is_empty() || items(params, "/command").next().is_some()
}

/// Whether the user's own deployer runs.
pub(super) fn has_deployer(spec: &Value) -> bool {
    let decorates = matches!(text_at(spec, "/strategy/type"), "" | "Rolling" | "Recreate");
    decorates && spec.pointer(PARAMS).is_some_and(names_something)
}

fn deployer(params: &Value, findings: &mut Findings<'_>) {
    for (index, variable) in items(params, "/environment") {
        let name = text_at(variable, "/name");
        if let (false, Err(wrong)) = (name.is_empty(), names::identifier(name)) {
            let field = format!("/spec/strategy/customParams/environment/{index}/name");
            findings.error(&field, "invalid", format!("`{name}` {wrong}"));
        }
    }
}

/// What is for the deployer's pod, and that there may be none.
fn of_the_deployer(spec: &Value, findings: &mut Findings<'_>) {
    let is_given = |value: &Value| value.as_object().is_some_and(|map| !map.is_empty());
    if has_deployer(spec) {
        return deployer(spec.pointer(PARAMS).unwrap_or(&Value::Null), findings);
    }
    if spec.pointer(PARAMS).is_some_and(is_given) {
        let message = match text_at(spec, "/strategy/type") {
            "Rolling" | "Recreate" => {
                "customParams have no effect: they name neither an image nor a command".to_owned()
            }
            kind => format!("customParams have no effect with the strategy {kind}"),
        };
        findings.warning("/spec/strategy/customParams", "no-effect", message);
    }
    for key in ["resources", "labels", "annotations"] {
        if spec.pointer(&format!("/strategy/{key}")).is_some_and(is_given) {
            let message = format!("`{key}` has no effect: they are a deployer pod's, and here the daemon deploys");
            findings.warning(&format!("/spec/strategy/{key}"), "no-effect", message);
        }
    }
}

/// Whether old and new pods may be there at once.
pub(super) fn surges(spec: &Value) -> bool {
    match text_at(spec, "/strategy/type") {
        "Rolling" => {
            let surge = spec.pointer("/strategy/rollingParams/maxSurge");
            surge.is_some_and(|surge| surge != 0 && surge != "0%")
        }
        kind => matches!(kind, "Canary" | "BlueGreen" | "AB"),
    }
}

/// How they are not.
pub(super) fn without_surge(spec: &Value) -> &'static str {
    match text_at(spec, "/strategy/type") {
        "Rolling" => "leave it out, or set maxSurge to 0",
        _ => "leave it out: both versions are there at once",
    }
}

/// `timeoutSeconds` of the block that applies.
pub(super) fn timeout_seconds(spec: &Value) -> i64 {
    let default = i64::try_from(DEFAULT_STRATEGY_TIMEOUT.as_secs()).unwrap_or(i64::MAX);
    let pointer = format!("/strategy/{}/timeoutSeconds", block(spec));
    spec.pointer(&pointer).and_then(Value::as_i64).unwrap_or(default)
}

/// Whether a problem is that of a block of another strategy.
pub(crate) fn is_leftover_block(problem: &Problem) -> bool {
    problem.code == LEFTOVER && BLOCKS.iter().any(|block| problem.field.ends_with(block))
}

fn leftover(spec: &Value, findings: &mut Findings<'_>) {
    let kind = text_at(spec, "/strategy/type");
    for other in BLOCKS.iter().filter(|other| **other != block(spec)) {
        if spec.pointer(&format!("/strategy/{other}")).is_some() {
            let message = format!("`{other}` has no effect with the strategy {kind}");
            findings.warning(&format!("/spec/strategy/{other}"), LEFTOVER, message).hint =
                Some("remove it; its hooks do not run".to_owned());
        }
    }
}

/// `maxSurge` and `maxUnavailable` of the block that applies.
fn limits(spec: &Value, findings: &mut Findings<'_>) {
    let unavailable = limit(spec, "maxUnavailable", findings);
    let surge = limit(spec, "maxSurge", findings);
    let field = format!("/spec/strategy/{}/maxUnavailable", block(spec));
    if unavailable.is_some_and(Limit::is_zero) && surge.is_some_and(Limit::is_zero) {
        let message = "cannot be 0 while maxSurge is 0 too: no pod could ever be replaced";
        findings.error(&field, "invalid", message);
    }
    if let Some(Limit::Percent(percent)) = unavailable
        && percent > 100
    {
        let message = format!("must not be more than 100%, but is {percent}%");
        findings.error(&field, "invalid", message);
    }
}

fn must_be_positive(spec: &Value, pointer: &str, findings: &mut Findings<'_>) {
    if let Some(number) = spec.pointer(pointer).and_then(Value::as_i64).filter(|number| *number < 1) {
        findings.error(&format!("/spec{pointer}"), "invalid", format!("must be more than 0, not {number}"));
    }
}

fn timeout(spec: &Value, findings: &mut Findings<'_>) {
    must_be_positive(spec, &format!("/strategy/{}/timeoutSeconds", block(spec)), findings);
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
    let pointer = format!("/strategy/{}/{key}", block(spec));
    let parsed = match spec.pointer(&pointer)? {
        Value::Number(number) => {
            number.as_i64().filter(|pods| (0..=i64::from(i32::MAX)).contains(pods)).map(Limit::Pods)
        }
        Value::String(text) => percent(text).map(Limit::Percent),
        _ => return None,
    };
    if parsed.is_none() {
        findings.error(
            &format!("/spec{pointer}"),
            "invalid",
            "must be a number of pods, 0 or more, or a percentage such as 25%",
        );
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
