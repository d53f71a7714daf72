//! Rules of `core/v1` for the pod template of a replication controller, beyond keys and types.

use std::collections::HashSet;

use serde_json::Value;

use super::{CONTAINER_LISTS, items, text_at};
use crate::manifest::findings::Findings;
use crate::manifest::names;

/// Checks a template that stands at `at` of its object. `may_lack_image` says which containers get their image later.
pub(crate) fn validate(template: &Value, at: &str, may_lack_image: &dyn Fn(&str) -> bool, findings: &mut Findings<'_>) {
    if template.get("spec").is_none_or(|spec| !spec.is_object()) {
        return;
    }
    let spec = format!("{at}/spec");
    if text_at(template, "/spec/restartPolicy") != "Always" {
        findings.error(&format!("{spec}/restartPolicy"), "unsupported-value", "must be `Always` for pods that serve");
    }
    if template.pointer("/spec/activeDeadlineSeconds").is_some() {
        let field = format!("{spec}/activeDeadlineSeconds");
        findings.error(&field, "invalid", "pods that serve cannot have a deadline");
    }
    volumes(template, &spec, findings);
    let mut names_seen = HashSet::new();
    for list in CONTAINER_LISTS {
        for (index, container) in items(template, list) {
            let place = format!("{at}{list}/{index}");
            let name = text_at(container, "/name");
            named(name, &place, names::label, &mut names_seen, findings);
            image(text_at(container, "/image"), &place, may_lack_image(name), findings);
            if list.ends_with("initContainers") {
                init_container(container, &place, findings);
            }
            self::container(container, template, &place, findings);
        }
    }
}

/// Where no trigger brings one, upstream takes a blank image for one that will come, and none at all for a mistake.
fn image(name: &str, place: &str, may_lack: bool, findings: &mut Findings<'_>) {
    let field = format!("{place}/image");
    if may_lack || !name.trim().is_empty() {
        return;
    }
    if name.is_empty() {
        findings.error(&field, "required", "this is required");
    } else {
        let message = "the image is blank, and no image trigger brings this container one: nothing is deployed";
        findings.warning(&field, "blank", message);
    }
}

fn named<'a>(
    name: &'a str,
    place: &str,
    rule: fn(&str) -> Result<(), &'static str>,
    seen: &mut HashSet<&'a str>,
    findings: &mut Findings<'_>,
) {
    if name.is_empty() {
        return;
    }
    let field = format!("{place}/name");
    if let Err(wrong) = rule(name) {
        findings.error(&field, "invalid", format!("`{name}` {wrong}"));
    }
    if !seen.insert(name) {
        findings.error(&field, "duplicate", format!("the name `{name}` is used twice"));
    }
}

fn volumes(template: &Value, spec: &str, findings: &mut Findings<'_>) {
    let mut seen = HashSet::new();
    for (index, volume) in items(template, "/spec/volumes") {
        let place = format!("{spec}/volumes/{index}");
        named(text_at(volume, "/name"), &place, names::label, &mut seen, findings);
        let sources = volume.as_object().map_or(0, |map| map.keys().filter(|key| *key != "name").count());
        if sources > 1 {
            findings.error(&place, "invalid", "a volume has exactly one source");
        }
        let path = text_at(volume, "/hostPath/path");
        if path.split('/').any(|part| part == "..") {
            findings.error(&format!("{place}/hostPath/path"), "invalid", "must not contain `..`");
        }
    }
}

fn init_container(container: &Value, place: &str, findings: &mut Findings<'_>) {
    for key in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if container.get(key).is_some() {
            findings.error(&format!("{place}/{key}"), "invalid", "init containers cannot have this");
        }
    }
}

fn container(container: &Value, template: &Value, place: &str, findings: &mut Findings<'_>) {
    ports(container, place, findings);
    mounts(container, template, place, findings);
    variables(container, place, names::variable, findings);
    for (index, source) in items(container, "/envFrom") {
        exactly_one(source, &["configMapRef", "secretRef"], &format!("{place}/envFrom/{index}"), findings);
    }
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get(key) {
            let at = format!("{place}/{key}");
            exactly_one(probe, &["exec", "httpGet", "tcpSocket", "grpc"], &at, findings);
            let threshold = probe.get("successThreshold").and_then(Value::as_i64).unwrap_or(1);
            if key != "readinessProbe" && threshold != 1 {
                findings.error(&format!("{at}/successThreshold"), "invalid", "must be 1 for this probe");
            }
        }
    }
    for key in ["postStart", "preStop"] {
        if let Some(handler) = container.get("lifecycle").and_then(|lifecycle| lifecycle.get(key)) {
            let at = format!("{place}/lifecycle/{key}");
            exactly_one(handler, &["exec", "httpGet", "tcpSocket", "sleep"], &at, findings);
        }
    }
    resources(container, place, findings);
}

fn ports(container: &Value, place: &str, findings: &mut Findings<'_>) {
    let mut seen = HashSet::new();
    for (index, port) in items(container, "/ports") {
        named(text_at(port, "/name"), &format!("{place}/ports/{index}"), names::port, &mut seen, findings);
    }
}

fn mounts(container: &Value, template: &Value, place: &str, findings: &mut Findings<'_>) {
    let volumes: HashSet<_> = items(template, "/spec/volumes").map(|(_, volume)| text_at(volume, "/name")).collect();
    let mut paths = HashSet::new();
    for (index, mount) in items(container, "/volumeMounts") {
        let at = format!("{place}/volumeMounts/{index}");
        let (name, path) = (text_at(mount, "/name"), text_at(mount, "/mountPath"));
        if !name.is_empty() && !volumes.contains(name) {
            findings.error(&format!("{at}/name"), "not-found", format!("there is no volume `{name}`"));
        }
        if !path.is_empty() && !paths.insert(path) {
            findings.error(&format!("{at}/mountPath"), "invalid", format!("`{path}` is mounted twice"));
        }
        let sub_path = text_at(mount, "/subPath");
        if sub_path.starts_with('/') || sub_path.split('/').any(|part| part == "..") {
            findings.error(&format!("{at}/subPath"), "invalid", "must be inside the volume");
        }
    }
}

/// Checks variables of a container, hook or task.
pub(crate) fn variables(
    holder: &Value,
    place: &str,
    rule: fn(&str) -> Result<(), &'static str>,
    findings: &mut Findings<'_>,
) {
    for (index, variable) in items(holder, "/env") {
        let at = format!("{place}/env/{index}");
        let name = text_at(variable, "/name");
        if let (false, Err(wrong)) = (name.is_empty(), rule(name)) {
            findings.error(&format!("{at}/name"), "invalid", format!("`{name}` {wrong}"));
        }
        let Some(source) = variable.get("valueFrom") else { continue };
        let at = format!("{at}/valueFrom");
        if variable.get("value").is_some() {
            findings.error(&at, "invalid", "cannot stand beside `value`");
        }
        let sources = ["configMapKeyRef", "secretKeyRef", "fieldRef", "resourceFieldRef", "fileKeyRef"];
        exactly_one(source, &sources, &at, findings);
    }
}

pub(crate) fn exactly_one(value: &Value, choices: &[&str], at: &str, findings: &mut Findings<'_>) {
    let chosen = choices.iter().filter(|choice| value.get(**choice).is_some()).count();
    if chosen == 0 && value.is_object() {
        findings.error(at, "required", format!("one of {} is required", choices.join(", ")));
    } else if chosen > 1 {
        findings.error(at, "invalid", format!("only one of {} may be given", choices.join(", ")));
    }
}

pub(crate) fn resources(container: &Value, place: &str, findings: &mut Findings<'_>) {
    use crate::manifest::quantity::is_more;
    let Some(requests) = container.pointer("/resources/requests").and_then(Value::as_object) else { return };
    for (name, request) in requests {
        let limit = container.pointer("/resources/limits").and_then(|limits| limits.get(name));
        let (Some(request), Some(limit)) = (request.as_str(), limit.and_then(Value::as_str)) else { continue };
        if is_more(request, limit) {
            let field = format!("{place}/resources/requests/{name}");
            findings.error(&field, "invalid", format!("must not be more than the limit of {limit}"));
        }
    }
}
