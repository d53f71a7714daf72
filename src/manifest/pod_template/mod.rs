//! Kubernetes' pod template: defaults, rules, and what it refers to.

pub(crate) mod defaults;
pub(crate) mod local;
pub(crate) mod references;
pub(crate) mod validate;

use serde_json::Value;

/// The list at a pointer; none where there is no list.
pub(crate) fn items<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten().enumerate()
}

/// The text at a pointer; empty where there is none.
pub(crate) fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The lists of a pod spec that hold containers.
pub(crate) const CONTAINER_LISTS: [&str; 2] = ["/spec/initContainers", "/spec/containers"];
