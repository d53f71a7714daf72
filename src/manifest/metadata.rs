//! `metadata` of declared objects.

use serde_json::Value;

use super::findings::Findings;
use super::names;

/// The label that says which service an object is delivered with.
pub(crate) const SERVICE_LABEL: &str = "launchway.dev/service";

/// Checks the metadata of an object and drops what the stage decides.
pub(crate) fn normalise(value: &mut Value, rule: fn(&str) -> Result<(), &'static str>, findings: &mut Findings<'_>) {
    let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if let Some(name) = metadata.get("name").and_then(Value::as_str)
        && let Err(wrong) = rule(name)
    {
        findings.error("/metadata/name", "invalid", format!("`{name}` {wrong}"));
    }
    let is_named = metadata.get("name").is_some();
    if metadata.remove("generateName").is_some() {
        let place = "/metadata/generateName";
        if is_named {
            findings.warning(place, "ignored", "`generateName` is ignored beside `name`");
        } else {
            findings.error_at_key(place, "not-supported", "generated names are not supported").hint =
                Some("give it a `name`, which says from revision to revision which object it is".to_owned());
        }
    }
    if metadata.remove("namespace").is_some() {
        findings.warning("/metadata/namespace", "ignored", "the namespace is ignored: the stage decides").hint =
            Some("set `spec.stages.<stage>.namespace` in launchway.yaml".to_owned());
    }
    if let Some(service) = label(value, SERVICE_LABEL)
        && let Err(wrong) = names::label(&service)
    {
        findings.error("/metadata/labels/launchway.dev~1service", "invalid", format!("`{service}` {wrong}"));
    }
}

/// A label of an object.
pub(crate) fn label(value: &Value, name: &str) -> Option<String> {
    value.get("metadata")?.get("labels")?.get(name)?.as_str().map(str::to_owned)
}
