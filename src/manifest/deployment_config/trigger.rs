//! Rules of triggers.

use std::collections::HashSet;

use serde_json::Value;

use crate::manifest::findings::Findings;
use crate::manifest::pod_template::{CONTAINER_LISTS, items, text_at};
use crate::manifest::shape::nearest;

/// The last one only says that nothing starts a deployment but people.
const TYPES: [&str; 3] = ["ConfigChange", "ImageChange", "Manual"];

/// Whether an image trigger sets the image of a container.
pub(super) fn names_container(spec: &Value, container: &str) -> bool {
    image_triggers(spec).any(|(_, params)| items(params, "/containerNames").any(|(_, name)| name == container))
}

fn image_triggers(spec: &Value) -> impl Iterator<Item = (usize, &Value)> {
    let image_triggers = items(spec, "/triggers").filter(|(_, trigger)| text_at(trigger, "/type") == "ImageChange");
    image_triggers.filter_map(|(index, trigger)| Some((index, trigger.get("imageChangeParams")?)))
}

/// Checks `spec.triggers`.
pub(super) fn validate(spec: &Value, findings: &mut Findings<'_>) {
    for (index, trigger) in items(spec, "/triggers") {
        known_type(text_at(trigger, "/type"), &format!("/spec/triggers/{index}/type"), findings);
        let is_image_change = text_at(trigger, "/type") == "ImageChange";
        if is_image_change && trigger.get("imageChangeParams").is_none() {
            findings.error(&format!("/spec/triggers/{index}/imageChangeParams"), "required", "this is required");
        }
    }
    let mut claimed = HashSet::new();
    for (index, params) in image_triggers(spec) {
        image_change(params, &format!("/spec/triggers/{index}/imageChangeParams"), findings);
        for (position, name) in items(params, "/containerNames") {
            let Some(name) = name.as_str() else { continue };
            let field = format!("/spec/triggers/{index}/imageChangeParams/containerNames/{position}");
            if !claimed.insert(name) {
                findings.warning(&field, "duplicate", format!("two triggers set the image of `{name}`"));
            }
            let template = spec.get("template").unwrap_or(&Value::Null);
            let mut containers = CONTAINER_LISTS.iter().flat_map(|list| items(template, list));
            if !containers.any(|(_, container)| text_at(container, "/name") == name) {
                findings.warning(&field, "not-found", format!("the template has no container `{name}`"));
            }
        }
    }
}

/// Upstream takes any word, and never deploys by one that it does not know: a slip would only be noticed much later.
fn known_type(word: &str, field: &str, findings: &mut Findings<'_>) {
    if word.is_empty() || TYPES.contains(&word) {
        return;
    }
    let message = format!("`{word}` is no trigger");
    match nearest(word, TYPES.into_iter()) {
        Some(known) => {
            findings.error(field, "unsupported-value", message).hint = Some(format!("did you mean `{known}`?"));
        }
        None => {
            findings.warning(field, "unsupported-value", message).hint = Some(format!("known: {}", TYPES.join(", ")));
        }
    }
}

fn image_change(params: &Value, at: &str, findings: &mut Findings<'_>) {
    if items(params, "/containerNames").next().is_none() {
        findings.error(&format!("{at}/containerNames"), "required", "this is required");
    }
    let Some(from) = params.get("from") else {
        findings.error(&format!("{at}/from"), "required", "this is required");
        return;
    };
    if text_at(from, "/kind") != "ImageStreamTag" {
        findings.error(&format!("{at}/from/kind"), "invalid", "must be an ImageStreamTag");
    }
    let name = text_at(from, "/name");
    if name.is_empty() {
        findings.error(&format!("{at}/from/name"), "required", "this is required");
    } else if !matches!(name.split_once(':'), Some((stream, tag)) if !stream.is_empty() && !tag.is_empty()) {
        findings.error(&format!("{at}/from/name"), "invalid", "must be `<stream>:<tag>`");
    }
}
