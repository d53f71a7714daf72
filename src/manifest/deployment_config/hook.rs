//! Rules of lifecycle hooks.

use serde_json::Value;

use super::strategy;
use crate::manifest::findings::Findings;
use crate::manifest::names;
use crate::manifest::pod_template::validate::{exactly_one, resources, variables};
use crate::manifest::pod_template::{CONTAINER_LISTS, items, text_at};
use crate::model::image_stream::stream_and_tag;

const POINTS: [&str; 3] = ["pre", "mid", "post"];

/// The hooks of the block that applies, with their pointers in the spec.
pub(crate) fn hooks(spec: &Value) -> impl Iterator<Item = (String, &Value)> {
    let block = strategy::block(spec);
    let has_any = text_at(spec, "/strategy/type") != strategy::CUSTOM; // that is all its deployer's
    let steps = items(spec, &format!("/strategy/{block}/steps")).count();
    let analyses = (0..steps).map(|step| format!("steps/{step}/analysis"));
    let names = POINTS.iter().map(ToString::to_string).chain(["analysis".to_owned()]).chain(analyses);
    let pointers = names.map(move |name| format!("/strategy/{block}/{name}"));
    pointers.filter(move |_| has_any).filter_map(|pointer| spec.pointer(&pointer).map(|hook| (pointer, hook)))
}

/// Checks all hooks of the block that applies.
pub(super) fn validate_all(spec: &Value, findings: &mut Findings<'_>) {
    for (pointer, hook) in hooks(spec).filter(|(_, hook)| hook.is_object()) {
        validate(hook, spec, &format!("/spec{pointer}"), findings);
    }
}

fn validate(hook: &Value, spec: &Value, at: &str, findings: &mut Findings<'_>) {
    let field = format!("{at}/failurePolicy");
    match text_at(hook, "/failurePolicy") {
        "" => {
            findings.error(&field, "required", "this is required").hint =
                Some("one of Retry, Abort, Ignore".to_owned());
        }
        "Retry" | "Abort" | "Ignore" => {}
        other => {
            let message = format!("`{other}` is not supported");
            findings.error(&field, "unsupported-value", message).hint = Some("one of Retry, Abort, Ignore".to_owned());
        }
    }
    own_fields(hook, at, findings);
    match (hook.get("execNewPod"), hook.get("tagImages")) {
        (Some(_), Some(_)) => {
            findings.error(at, "invalid", "only one of execNewPod and tagImages may be given");
        }
        (None, None) => {
            findings.error(at, "required", "one of execNewPod and tagImages is required");
        }
        (Some(exec), None) => exec_new_pod(exec, spec, &format!("{at}/execNewPod"), findings),
        (None, Some(_)) => tag_images(hook, spec, &format!("{at}/tagImages"), findings),
    }
}

/// What a hook may have beyond upstream's fields.
fn own_fields(hook: &Value, at: &str, findings: &mut Findings<'_>) {
    if hook.get("retries").is_some() && text_at(hook, "/failurePolicy") != "Retry" {
        let message = "this has an effect with the policy Retry alone";
        findings.warning(&format!("{at}/retries"), "leftover", message);
    }
    for (index, source) in items(hook, "/envFrom") {
        exactly_one(source, &["configMapRef", "secretRef"], &format!("{at}/envFrom/{index}"), findings);
    }
    resources(hook, at, findings);
}

fn tag_images(hook: &Value, spec: &Value, at: &str, findings: &mut Findings<'_>) {
    for (index, image) in items(hook, "/tagImages") {
        tagged_container(image, spec, &format!("{at}/{index}/containerName"), findings);
        if text_at(image, "/to/kind") != "ImageStreamTag" {
            findings.error(&format!("{at}/{index}/to/kind"), "invalid", "must be an ImageStreamTag");
        }
        let name = text_at(image, "/to/name");
        if name.is_empty() {
            findings.error(&format!("{at}/{index}/to/name"), "required", "this is required");
        } else if stream_and_tag(name).is_none() {
            findings.error(&format!("{at}/{index}/to/name"), "invalid", "must be `<stream>:<tag>`");
        }
    }
}

fn exec_new_pod(exec: &Value, spec: &Value, at: &str, findings: &mut Findings<'_>) {
    if items(exec, "/command").next().is_none() {
        findings.error(&format!("{at}/command"), "required", "this is required");
    }
    variables(exec, at, names::identifier, findings);
    own_container(exec, spec, &format!("{at}/containerName"), findings);
    for (index, volume) in items(exec, "/volumes") {
        let field = format!("{at}/volumes/{index}");
        let name = volume.as_str().unwrap_or_default();
        if name.is_empty() {
            findings.error(&field, "invalid", "must not be empty");
        } else if !items(spec, "/template/spec/volumes").any(|(_, known)| text_at(known, "/name") == name) {
            findings.warning(&field, "not-found", format!("the template has no volume `{name}`"));
        }
    }
}

/// The container that a hook runs in; upstream notices one that is not there only when the hook runs, and so does this.
fn own_container(exec: &Value, spec: &Value, field: &str, findings: &mut Findings<'_>) {
    let name = text_at(exec, "/containerName");
    if name.is_empty() {
        let problem = findings.error(field, "required", "this is required");
        problem.hint =
            Some("the template has several containers: name the one whose image the hook runs in".to_owned());
    } else if !has_container(spec, &["/spec/containers"], name) {
        let message = format!("the template has no container `{name}`, so that the hook will fail");
        findings.warning(field, "not-found", message);
    }
}

/// The container whose image is tagged.
fn tagged_container(image: &Value, spec: &Value, field: &str, findings: &mut Findings<'_>) {
    let name = text_at(image, "/containerName");
    if name.is_empty() {
        findings.error(field, "required", "this is required").hint =
            Some("the template has several containers: name the one whose image is tagged".to_owned());
    } else if !has_container(spec, &CONTAINER_LISTS, name) {
        findings.error(field, "not-found", format!("the template has no container `{name}`"));
    }
}

fn has_container(spec: &Value, lists: &[&str], name: &str) -> bool {
    let template = spec.get("template").unwrap_or(&Value::Null);
    let mut containers = lists.iter().flat_map(|list| items(template, list));
    containers.any(|(_, container)| text_at(container, "/name") == name)
}
