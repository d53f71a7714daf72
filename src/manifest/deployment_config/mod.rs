//! OpenShift's `DeploymentConfig`: keys, defaults, rules.

mod aliases;
mod defaults;
mod hook;
mod overriding;
mod strategy;
mod trigger;

use serde_json::Value;

use super::findings::Findings;
use super::pod_template;
use super::shape::deployment_config::DEPLOYMENT_CONFIG;
use super::shape::{Strictness, check};
use super::stage_context::{Runtime, Terms};
use super::{metadata, names};
use crate::model::deployment_config::{AUTOSCALER, CONTROLLER_OF, CONTROLLERS, DeploymentConfigSpec};

pub(crate) use aliases::in_words_of_the_proposal;
pub(crate) use defaults::write_out_pauses;
pub(crate) use hook::hooks;
pub(crate) use strategy::{block_of, is_leftover_block};

/// Checks a document, applies every default, and leaves the content that is compared.
pub(crate) fn normalise(value: &mut Value, terms: Terms, findings: &mut Findings<'_>) {
    aliases::exchange(value, findings);
    value.pointer_mut("/spec/strategy").map(write_out_pauses);
    check(value, &DEPLOYMENT_CONFIG, Strictness::Users, findings);
    metadata::normalise(value, names::config, findings);
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
        defaults::apply_to_replicas(spec);
    }
    complete(value, terms, findings);
}

/// Applies what the stage asks for and every default but that of the number of replicas, and checks the rules.
pub(crate) fn complete(value: &mut Value, terms: Terms, findings: &mut Findings<'_>) {
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
        for of_the_stage in [AUTOSCALER, CONTROLLERS, CONTROLLER_OF] {
            spec.remove(of_the_stage); // no file's to say
        }
    }
    if let Some(strategy) = terms.strategy {
        overriding::exchange(value, strategy, findings);
    }
    defaults::apply(value);
    let Some(spec) = value.get("spec").filter(|spec| spec.is_object()) else { return };
    strategy::validate(spec, findings);
    trigger::validate(spec, findings);
    validate_spec(spec, terms.runtime, findings);
    if !findings.has_errors() {
        must_be_readable(spec, findings);
    }
}

fn validate_spec(spec: &Value, runtime: Runtime, findings: &mut Findings<'_>) {
    let seconds = spec.get("minReadySeconds").and_then(Value::as_i64).unwrap_or(0);
    let timeout = strategy::timeout_seconds(spec);
    if seconds > 0 && seconds >= timeout {
        let message = format!("must be less than the strategy's timeoutSeconds, which is {timeout}");
        findings.error("/spec/minReadySeconds", "invalid", message);
    }
    let deadline = spec.pointer("/strategy/activeDeadlineSeconds").and_then(Value::as_i64);
    if let Some(deadline) = deadline.filter(|deadline| seconds > 0 && seconds >= *deadline) {
        let message = format!("must be less than activeDeadlineSeconds, which is {deadline}");
        findings.error("/spec/minReadySeconds", "invalid", message);
    }
    let Some(template) = spec.get("template") else { return };
    selector(spec, template, findings);
    let gets_image = |container: &str| trigger::names_container(spec, container);
    pod_template::validate::validate(template, "/spec/template", &gets_image, findings);
    if runtime == Runtime::Local {
        pod_template::local::validate(template, "/spec/template", findings);
        fixed_ports(spec, template, findings);
    }
}

fn selector(spec: &Value, template: &Value, findings: &mut Findings<'_>) {
    let Some(selector) = spec.get("selector").and_then(Value::as_object) else {
        let problem = findings.error("/spec/selector", "required", "this is required");
        problem.hint = Some("or give the template labels: they are the default".to_owned());
        return;
    };
    let labels = template.pointer("/metadata/labels");
    let missing = selector.iter().find(|(key, value)| labels.and_then(|labels| labels.get(*key)) != Some(*value));
    if let Some((key, _)) = missing {
        let message = format!("the selector's `{key}` is not among the template's labels");
        findings.error("/spec/template/metadata/labels", "invalid", message);
    }
}

/// Old and new pods are there at once while a rolling deployment surges, and cannot share a port of the machine.
fn fixed_ports(spec: &Value, template: &Value, findings: &mut Findings<'_>) {
    if !strategy::surges(spec) {
        return;
    }
    for (container, value) in pod_template::items(template, "/spec/containers") {
        for (index, _) in pod_template::items(value, "/ports").filter(|(_, port)| port.get("hostPort").is_some()) {
            let field = format!("/spec/template/spec/containers/{container}/ports/{index}/hostPort");
            findings.warning(&field, "fixed-port", "old and new pods cannot both have this port").hint =
                Some(strategy::without_surge(spec).to_owned());
        }
    }
}

/// What follows reads the content through the model: a value that the tables let through must fit there too.
fn must_be_readable(spec: &Value, findings: &mut Findings<'_>) {
    if let Err(error) = serde_json::from_value::<DeploymentConfigSpec>(spec.clone()) {
        findings.error("/spec", "invalid", format!("the spec cannot be used: {error}"));
    }
}

#[cfg(test)]
mod tests;
