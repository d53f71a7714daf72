//! Defaults of `core/v1` for a pod template. Source: Kubernetes' `SetDefaults_PodSpec` and its kin.

use serde_json::{Map, Value, json};

use crate::manifest::image;

/// Applies them; a second time changes nothing.
pub(crate) fn apply(template: &mut Value) {
    let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let defaults = [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("schedulerName", json!("default-scheduler")),
    ];
    set_absent(spec, defaults);
    normalise_account(spec);
    let uses_host_ports = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for key in ["initContainers", "containers"] {
        for container in objects(spec.get_mut(key)) {
            apply_to_container(container, uses_host_ports);
        }
    }
    for volume in objects(spec.get_mut("volumes")) {
        apply_to_volume(volume);
    }
}

/// `serviceAccount` is the old word for `serviceAccountName`.
fn normalise_account(spec: &mut Map<String, Value>) {
    if let Some(account) = spec.remove("serviceAccount") {
        set_absent(spec, [("serviceAccountName", account)]);
    }
}

fn apply_to_container(container: &mut Map<String, Value>, uses_host_ports: bool) {
    let policy = pull_policy(container.get("image").and_then(Value::as_str).unwrap_or_default());
    let defaults = [
        ("imagePullPolicy", json!(policy)),
        ("terminationMessagePath", json!("/dev/termination-log")),
        ("terminationMessagePolicy", json!("File")),
    ];
    set_absent(container, defaults);
    for port in objects(container.get_mut("ports")) {
        set_absent(port, [("protocol", json!("TCP"))]);
        if uses_host_ports && let Some(number) = port.get("containerPort").cloned() {
            set_absent(port, [("hostPort", number)]);
        }
    }
    for variable in objects(container.get_mut("env")) {
        apply_to_variable(variable);
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe).and_then(Value::as_object_mut) {
            apply_to_probe(probe);
        }
    }
    if let Some(lifecycle) = container.get_mut("lifecycle").and_then(Value::as_object_mut) {
        for handler in lifecycle.values_mut().filter_map(Value::as_object_mut) {
            apply_to_handler(handler);
        }
    }
}

/// Upstream's rule for OCI images; a launchable's name says which content is meant, so it is never fetched twice.
fn pull_policy(name: &str) -> &'static str {
    let last = name.rsplit('/').next().unwrap_or(name);
    let has_fixed_tag = last.contains('@') || last.split_once(':').is_some_and(|(_, tag)| tag != "latest");
    if name.is_empty() || has_fixed_tag || image::parse(name).is_ok() { "IfNotPresent" } else { "Always" }
}

/// For environment variables of containers and hooks alike.
pub(crate) fn apply_to_variable(variable: &mut Map<String, Value>) {
    let source = variable.get_mut("valueFrom").and_then(|source| source.get_mut("fieldRef"));
    if let Some(field) = source.and_then(Value::as_object_mut) {
        set_absent(field, [("apiVersion", json!("v1"))]);
    }
}

fn apply_to_probe(probe: &mut Map<String, Value>) {
    let defaults = [
        ("timeoutSeconds", json!(1)),
        ("periodSeconds", json!(10)),
        ("successThreshold", json!(1)),
        ("failureThreshold", json!(3)),
    ];
    set_absent(probe, defaults);
    apply_to_handler(probe);
}

fn apply_to_handler(handler: &mut Map<String, Value>) {
    if let Some(get) = handler.get_mut("httpGet").and_then(Value::as_object_mut) {
        set_absent(get, [("path", json!("/")), ("scheme", json!("HTTP"))]);
    }
}

fn apply_to_volume(volume: &mut Map<String, Value>) {
    if volume.len() == 1 && volume.contains_key("name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["configMap", "secret"] {
        if let Some(source) = volume.get_mut(source).and_then(Value::as_object_mut) {
            set_absent(source, [("defaultMode", json!(0o644))]);
        }
    }
}

/// Sets what is not there yet.
pub(crate) fn set_absent<const N: usize>(map: &mut Map<String, Value>, defaults: [(&str, Value); N]) {
    for (key, value) in defaults {
        if !map.contains_key(key) {
            map.insert(key.to_owned(), value);
        }
    }
}

/// The objects of a list; none where there is no list.
pub(crate) fn objects(list: Option<&mut Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    list.and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}
