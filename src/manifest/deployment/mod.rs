//! Kubernetes' `Deployment` (`apps/v1`): its own keys, rules and defaults, then the `DeploymentConfig` that it is.
//!
//! Both are one kind to everything behind this room. What a `Deployment` says in other words, and in the annotations
//! that give it hooks and strategies, is put where a `DeploymentConfig` says it; messages still name the place where it
//! is written.

pub(super) mod annotations;
mod conversion;
mod written;

use serde_json::{Value, json};

use super::findings::Findings;
use super::pod_template::{items, text_at};
use super::shape::deployment::DEPLOYMENT;
use super::shape::{Strictness, check};
use super::stage_context::Terms;
use super::{deployment_config, metadata, names};
use crate::model::object::Kind;

pub(super) use written::as_written;

/// Checks a document, applies every default, and leaves the content that is compared: that of a deployment config, with
/// the kind in which it is declared.
pub(crate) fn normalise(value: &mut Value, terms: Terms, findings: &mut Findings<'_>) {
    check(value, &DEPLOYMENT, Strictness::Users, findings);
    metadata::normalise(value, names::config, findings);
    let said = annotations::take(value, findings);
    validate(value, findings);
    if findings.has_errors() {
        return;
    }
    conversion::convert(value, said, findings);
    if let Some(content) = value.as_object_mut().filter(|_| !findings.has_errors()) {
        content.insert("kind".to_owned(), json!(Kind::Deployment.name()));
        deployment_config::complete(value, terms, findings);
    }
}

fn validate(value: &Value, findings: &mut Findings<'_>) {
    let Some(spec) = value.get("spec") else { return };
    selector(spec, findings);
    if text_at(spec, "/strategy/type") == "Recreate" && spec.pointer("/strategy/rollingUpdate").is_some() {
        let message = "may not be there when the strategy's type is Recreate";
        findings.error("/spec/strategy/rollingUpdate", "invalid", message);
    }
    let number = |key: &str| spec.get(key).and_then(Value::as_i64);
    let ready = number("minReadySeconds").unwrap_or(0);
    let deadline = number("progressDeadlineSeconds").unwrap_or(conversion::PROGRESS_DEADLINE);
    if deadline <= ready {
        let message = format!("must be more than minReadySeconds, which is {ready}, but is {deadline}");
        findings.error("/spec/progressDeadlineSeconds", "invalid", message);
    }
}

/// Kubernetes' rules of a label selector.
fn selector(spec: &Value, findings: &mut Findings<'_>) {
    let Some(selector) = spec.get("selector") else { return };
    if selector.as_object().is_some_and(serde_json::Map::is_empty) {
        findings.error("/spec/selector", "required", "an empty selector would select every pod").hint =
            Some("write `matchLabels` with the labels of the template".to_owned());
    }
    for (index, requirement) in items(selector, "/matchExpressions") {
        let field = format!("/spec/selector/matchExpressions/{index}/values");
        let has_values = items(requirement, "/values").next().is_some();
        match text_at(requirement, "/operator") {
            "In" | "NotIn" if !has_values => {
                findings.error(&field, "required", "this is required with In and NotIn");
            }
            "Exists" | "DoesNotExist" if has_values => {
                findings.error(&field, "invalid", "must not be there with Exists and DoesNotExist");
            }
            operator if !holds(requirement, operator, spec) => {
                let message = "the selector does not match the template's labels";
                findings.error("/spec/template/metadata/labels", "invalid", message);
            }
            _ => {}
        }
    }
}

/// Whether the template's labels are as one requirement of the selector says.
fn holds(requirement: &Value, operator: &str, spec: &Value) -> bool {
    let labels = spec.pointer("/template/metadata/labels").and_then(Value::as_object);
    let label = labels.and_then(|labels| labels.get(text_at(requirement, "/key")));
    let is_listed = label.is_some_and(|label| items(requirement, "/values").any(|(_, value)| value == label));
    match operator {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => label.is_some(),
        "DoesNotExist" => label.is_none(),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
