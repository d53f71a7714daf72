//! What a trigger asks of the end that it waits for: Keptn's `match`, and Kubernetes' `matchExpressions`.

use serde_json::Value;

use super::texts;
use crate::manifest::findings::Findings;
use crate::manifest::pod_template::{items, text_at};
use crate::manifest::yaml::push_segment;
use crate::model::shipyard::{Operator, Requirement, Selector};

/// The selector of a trigger that stands at `at`.
pub(super) fn read(trigger: &Value, at: &str, findings: &mut Findings<'_>) -> Selector {
    let plain = trigger.pointer("/selector/match").and_then(Value::as_object).into_iter().flatten();
    let plain = plain.map(|(key, value)| {
        let mut pointer = format!("{at}/selector/match");
        push_segment(&mut pointer, key);
        Requirement::is(key, as_meant(key, value.as_str().unwrap_or_default(), &pointer, findings))
    });
    let mut requirements: Vec<Requirement> = plain.collect();
    for (index, value) in items(trigger, "/selector/matchExpressions") {
        requirements.extend(expression(value, &format!("{at}/selector/matchExpressions/{index}"), findings));
    }
    requirements.into_iter().collect()
}

fn expression(value: &Value, at: &str, findings: &mut Findings<'_>) -> Option<Requirement> {
    let key = text_at(value, "/key");
    let operator = Operator::named(text_at(value, "/operator"))?;
    let values = texts(value, "/values").into_iter().enumerate();
    let values: Vec<String> =
        values.map(|(index, word)| as_meant(key, &word, &format!("{at}/values/{index}"), findings)).collect();
    if operator.takes_values() && values.is_empty() {
        findings.error(&format!("{at}/values"), "required", "`In` and `NotIn` compare with values");
    }
    if !operator.takes_values() && !values.is_empty() {
        findings.error(&format!("{at}/values"), "invalid", "`Exists` and `DoesNotExist` take no values");
    }
    Some(Requirement { key: key.to_owned(), operator, values })
}

/// Keptn's documents say `failed`, and its controller `fail`.
fn as_meant(key: &str, value: &str, pointer: &str, findings: &mut Findings<'_>) -> String {
    let is_result = key == "result" || key.ends_with(".result");
    if is_result && value == "failed" {
        findings.warning(pointer, "shipyard", "the result of a sequence is `fail`; `failed` is read as that");
        return "fail".to_owned();
    }
    if is_result && !matches!(value, "pass" | "warning" | "fail") {
        findings.warning(pointer, "shipyard", format!("`{value}` is never the result of a sequence")).hint =
            Some("one of pass, warning, fail".to_owned());
    }
    value.to_owned()
}
