//! Generated values are compared and not shown.

use serde_json::Value;

use crate::manifest::generated::{mark, marks};
use crate::model::object::GENERATED;
use crate::model::plan::Difference;

/// Begins a text that is generated while it is compared; no text of a file begins so.
const SEAL: char = '\0';

/// Content that says of nothing but where it has generated values.
pub fn marking(pointers: &str) -> Value {
    serde_json::json!({"metadata": {"annotations": {GENERATED: pointers}}})
}

/// Marks what is generated in another content too, parts of which are in this one.
pub fn mark_as_in(content: &mut Value, other: &Value) {
    let known = marks(content);
    let more = marks(other).lines().filter(|pointer| known.lines().all(|known| known != *pointer));
    let more = more.collect::<Vec<_>>().join("\n");
    mark(content, &more);
}

/// The content with its generated values sealed, and without the note of where they are; nothing if there are none.
pub(super) fn sealed(content: &Value) -> Option<Value> {
    let marks = marks(content);
    if marks.is_empty() {
        return None;
    }
    let mut content = content.clone();
    for pointer in marks.lines() {
        if let Some(Value::String(text)) = content.pointer_mut(pointer).filter(|text| !is_sealed(text)) {
            text.insert(0, SEAL);
        }
    }
    if let Some(Value::Object(metadata)) = content.get_mut("metadata") {
        let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
        let is_empty = annotations.is_some_and(|annotations| {
            annotations.remove(GENERATED);
            annotations.is_empty()
        });
        if is_empty {
            metadata.remove("annotations");
        }
    }
    Some(content)
}

fn is_sealed(text: &Value) -> bool {
    text.as_str().is_some_and(|text| text.starts_with(SEAL))
}

/// A difference without the values.
pub(super) fn hidden(mut difference: Difference) -> Difference {
    difference.old.iter_mut().for_each(|old| hide(old, "(generated)"));
    difference.new.iter_mut().for_each(|new| hide(new, "(generated anew)"));
    difference
}

/// The content as people may see it: in the place of each generated value it says that this is one.
pub fn shown(content: &Value) -> Value {
    let Some(mut shown) = sealed(content) else { return content.clone() };
    hide(&mut shown, "(generated)");
    shown
}

fn hide(value: &mut Value, shown: &str) {
    match value {
        Value::String(_) if is_sealed(value) => *value = shown.into(),
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, shown)),
        Value::Object(map) => map.values_mut().for_each(|value| hide(value, shown)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_generated_is_not_shown() {
        let mut content = marking("/env/0/value");
        content["env"] = json!([{"name": "A", "value": "hunter2"}, {"name": "B", "value": "1"}]);
        let found = shown(&content);
        assert_eq!(found["env"], json!([{"name": "A", "value": "(generated)"}, {"name": "B", "value": "1"}]));
        assert!(!found.to_string().contains(GENERATED));
    }
}
