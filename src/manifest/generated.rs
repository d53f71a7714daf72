//! Where an object says which of its values are generated.

use serde_json::Value;

use crate::model::object::GENERATED;

/// Where in an object's content generated values are, one JSON pointer a line; empty where there are none.
pub(crate) fn marks(content: &Value) -> &str {
    let annotations = content.get("metadata").and_then(|metadata| metadata.get("annotations"));
    annotations.and_then(|annotations| annotations.get(GENERATED)).and_then(Value::as_str).unwrap_or_default()
}

/// Marks more of them, one JSON pointer a line.
pub(crate) fn mark(content: &mut Value, more: &str) {
    if more.is_empty() {
        return;
    }
    let all = format!("{}\n{more}", marks(content));
    let Some(metadata) = content.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Default::default()));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(GENERATED.to_owned(), all.into());
    }
}
