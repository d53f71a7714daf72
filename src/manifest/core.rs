//! Kubernetes' `v1` objects besides pods: defaults and rules.

use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::findings::Findings;
use super::pod_template::defaults::{objects, set_absent};
use super::pod_template::{items, text_at};
use super::shape::{self, Strictness, check};
use super::stage_context::Runtime;
use super::{metadata, names};
use crate::model::masking;

/// Upstream's limit for the data of a ConfigMap or Secret.
const MAX_DATA: usize = 1 << 20;

/// Checks a `Service` and applies its defaults.
pub(crate) fn normalise_service(value: &mut Value, runtime: Runtime, findings: &mut Findings<'_>) {
    check(value, &shape::core::SERVICE, Strictness::Users, findings);
    metadata::normalise(value, names::label, findings);
    let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) else { return };
    set_absent(spec, [("type", json!("ClusterIP")), ("sessionAffinity", json!("None"))]);
    for port in objects(spec.get_mut("ports")) {
        set_absent(port, [("protocol", json!("TCP"))]);
        if let Some(number) = port.get("port").cloned() {
            set_absent(port, [("targetPort", number)]);
        }
    }
    validate_service(value, findings);
    if runtime == Runtime::Local {
        narrowed(value, findings);
    }
}

fn validate_service(value: &Value, findings: &mut Findings<'_>) {
    let is_external = text_at(value, "/spec/type") == "ExternalName";
    let is_headless = text_at(value, "/spec/clusterIP") == "None";
    if is_external && text_at(value, "/spec/externalName").is_empty() {
        findings.error("/spec/externalName", "required", "this is required for the type ExternalName");
    }
    let count = items(value, "/spec/ports").count();
    if count == 0 && !is_external && !is_headless {
        findings.error("/spec/ports", "required", "this is required");
    }
    let (mut seen, mut numbers) = (HashSet::new(), HashSet::new());
    for (index, port) in items(value, "/spec/ports") {
        let name = text_at(port, "/name");
        let field = format!("/spec/ports/{index}/name");
        if name.is_empty() && count > 1 {
            findings.error(&field, "required", "this is required where there are several ports");
        } else if !name.is_empty() {
            if let Err(wrong) = names::label(name) {
                findings.error(&field, "invalid", format!("`{name}` {wrong}"));
            }
            if !seen.insert(name) {
                findings.error(&field, "duplicate", format!("the name `{name}` is used twice"));
            }
        }
        if let Some(number) = port.get("port").and_then(Value::as_i64)
            && !numbers.insert((number, text_at(port, "/protocol")))
        {
            findings.error(
                &format!("/spec/ports/{index}/port"),
                "duplicate",
                format!("port {number} is declared twice"),
            );
        }
        target_port(port, &format!("/spec/ports/{index}/targetPort"), findings);
    }
}

fn target_port(port: &Value, field: &str, findings: &mut Findings<'_>) {
    match port.get("targetPort") {
        Some(Value::Number(number)) if !number.as_i64().is_some_and(|port| (1..=65_535).contains(&port)) => {
            findings.error(field, "invalid", format!("must be between 1 and 65535, not {number}"));
        }
        Some(Value::String(name)) => {
            if let Err(wrong) = names::port(name) {
                findings.error(field, "invalid", format!("`{name}` {wrong}"));
            }
        }
        _ => {}
    }
}

/// What the local runtime makes of a service that asks for more than an address on this machine.
fn narrowed(value: &Value, findings: &mut Findings<'_>) {
    let kind = text_at(value, "/spec/type");
    if matches!(kind, "NodePort" | "LoadBalancer") {
        let message = format!("the local runtime serves `{kind}` like `ClusterIP`, on this machine only");
        findings.warning("/spec/type", "narrowed", message);
    }
    for (index, port) in items(value, "/spec/ports") {
        if matches!(text_at(port, "/protocol"), "UDP" | "SCTP") {
            let field = format!("/spec/ports/{index}/protocol");
            findings.error(&field, "not-supported", "only TCP is supported on the local runtime");
        }
    }
}

/// Checks `Endpoints` and applies their defaults.
pub(crate) fn normalise_endpoints(value: &mut Value, findings: &mut Findings<'_>) {
    check(value, &shape::core::ENDPOINTS, Strictness::Users, findings);
    metadata::normalise(value, names::label, findings);
    for subset in objects(value.get_mut("subsets")) {
        for port in objects(subset.get_mut("ports")) {
            set_absent(port, [("protocol", json!("TCP"))]);
        }
    }
    for (subset, value) in items(value, "/subsets") {
        for (index, address) in items(value, "/addresses") {
            let ip = text_at(address, "/ip");
            if !ip.is_empty() && ip.parse::<std::net::IpAddr>().is_err() {
                let field = format!("/subsets/{subset}/addresses/{index}/ip");
                findings.error(&field, "invalid", format!("`{ip}` is not an IP address"));
            }
        }
    }
}

/// Checks a `ConfigMap`.
pub(crate) fn normalise_config_map(value: &mut Value, findings: &mut Findings<'_>) {
    check(value, &shape::core::CONFIG_MAP, Strictness::Users, findings);
    metadata::normalise(value, names::subdomain, findings);
    base64_data(value, "binaryData", findings);
    data_keys(value, "data", findings);
    data_keys(value, "binaryData", findings);
    let (Some(data), Some(binary)) = (value.get("data").and_then(Value::as_object), value.get("binaryData")) else {
        return;
    };
    for key in data.keys().filter(|key| binary.get(key.as_str()).is_some()) {
        findings.error(&pointer_to("binaryData", key), "duplicate", format!("the key `{key}` is in `data` too"));
    }
}

/// Checks a `Secret`; `stringData` becomes part of `data`. No message shows a value.
pub(crate) fn normalise_secret(value: &mut Value, findings: &mut Findings<'_>) {
    check(value, &shape::core::SECRET, Strictness::Users, findings);
    metadata::normalise(value, names::subdomain, findings);
    data_keys(value, "data", findings);
    data_keys(value, "stringData", findings);
    base64_data(value, "data", findings);
    unmasked(value, findings);
    let Some(object) = value.as_object_mut() else { return };
    set_absent(object, [("type", json!("Opaque"))]);
    if let Some(Value::Object(plain)) = object.remove("stringData") {
        let data = object.entry("data").or_insert_with(|| Value::Object(Map::new()));
        if let Some(data) = data.as_object_mut() {
            for (key, text) in plain {
                let text = text.as_str().unwrap_or_default();
                data.insert(key, Value::String(STANDARD.encode(text)));
            }
        }
    }
}

/// Says once of a Secret which of its values pods may print as they are.
fn unmasked(value: &Value, findings: &mut Findings<'_>) {
    let texts = |block: &'static str| {
        let texts = value.get(block).and_then(Value::as_object).into_iter().flatten();
        texts.filter_map(move |(key, text)| Some((block, key, text.as_str()?)))
    };
    let unmasked: Vec<(&str, &String, &str)> = texts("data")
        .chain(texts("stringData"))
        .filter_map(|(block, key, text)| {
            let decoded = if block == "data" { STANDARD.decode(text).ok()? } else { text.as_bytes().to_vec() };
            Some((block, key, masking::why_not(&decoded)?))
        })
        .collect();
    let Some((block, first, _)) = unmasked.first() else { return };
    let keys: Vec<String> = unmasked.iter().map(|(_, key, why)| format!("`{key}` ({why})")).collect();
    let message = format!("the value of {} is not masked in what pods print", keys.join(", "));
    findings.warning(&pointer_to(block, first), "not-masked", message).hint =
        Some("other output would hold it by chance; what is no secret can be in a ConfigMap".to_owned());
}

fn data_keys(value: &Value, block: &str, findings: &mut Findings<'_>) {
    let Some(data) = value.get(block).and_then(Value::as_object) else { return };
    for key in data.keys() {
        if let Err(wrong) = names::data_key(key) {
            findings.error_at_key(&pointer_to(block, key), "invalid", format!("the key `{key}` {wrong}"));
        }
    }
    let size: usize = data.values().filter_map(Value::as_str).map(str::len).sum();
    if size > MAX_DATA {
        findings.error(&format!("/{block}"), "limit", "holds more than 1 MiB");
    }
}

/// Base64 may be wrapped in the file; the content holds it in one line.
fn base64_data(value: &mut Value, block: &str, findings: &mut Findings<'_>) {
    let Some(data) = value.get_mut(block).and_then(Value::as_object_mut) else { return };
    for (key, item) in data.iter_mut() {
        let Some(text) = item.as_str() else { continue };
        let packed: String = text.split_ascii_whitespace().collect();
        if STANDARD.decode(&packed).is_err() {
            findings.error(&pointer_to(block, key), "invalid", "this is not base64").hint =
                Some("encode it, or put plain text under `stringData` (Secret) or `data` (ConfigMap)".to_owned());
        }
        *item = Value::String(packed);
    }
}

fn pointer_to(block: &str, key: &str) -> String {
    let mut pointer = format!("/{block}");
    super::yaml::push_segment(&mut pointer, key);
    pointer
}

/// Checks a `PersistentVolumeClaim` and applies its defaults.
pub(crate) fn normalise_claim(value: &mut Value, runtime: Runtime, findings: &mut Findings<'_>) {
    check(value, &shape::core::PERSISTENT_VOLUME_CLAIM, Strictness::Users, findings);
    metadata::normalise(value, names::subdomain, findings);
    let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) else { return };
    set_absent(spec, [("volumeMode", json!("Filesystem"))]);
    if let Some(requests) = value.pointer("/spec/resources/requests")
        && requests.get("storage").is_none()
    {
        findings.error("/spec/resources/requests/storage", "required", "this is required");
    }
    if runtime == Runtime::Local && text_at(value, "/spec/volumeMode") == "Block" {
        findings.error("/spec/volumeMode", "not-supported", "only folders are supported on the local runtime");
    }
}

#[cfg(test)]
mod tests;
