//! What is to become of a document's value, before anybody looks at its text.

use serde_json::{Map, Value};

use crate::manifest::yaml::push_segment;

/// A change of one value.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// JSON pointer from the document's root. The segment behind the last value of a list appends to it; what is missing
    /// above the value is made.
    pub pointer: String,
    /// What stands there afterwards.
    pub to: To,
}

/// What stands somewhere afterwards.
#[derive(Clone, Debug, PartialEq)]
pub enum To {
    /// A value, written in the file's style.
    Value(Value),
    /// A value in the words that it was written in elsewhere: the lines of a block that begin at the first column. Where only
    /// brackets fit, the value is written.
    Written(Value, String),
    /// Nothing.
    Nothing,
    /// Nothing, not even the comments right above it: they are wherever it is now.
    Moved,
}

impl Change {
    /// A value, in the file's style.
    pub fn set(pointer: impl Into<String>, value: impl Into<Value>) -> Self {
        Self { pointer: pointer.into(), to: To::Value(value.into()) }
    }

    /// A value in the words that it was written in elsewhere.
    pub fn written(pointer: impl Into<String>, value: Value, text: String) -> Self {
        Self { pointer: pointer.into(), to: To::Written(value, text) }
    }

    /// Nothing.
    pub fn remove(pointer: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), to: To::Nothing }
    }

    /// Nothing, and no comment right above it.
    pub fn moved(pointer: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), to: To::Moved }
    }

    /// Makes the change in a value; nothing of it where a value above is neither a mapping nor a list that has it.
    pub(super) fn apply(&self, value: &mut Value) {
        match &self.to {
            To::Value(new) | To::Written(new, _) => put(value, &segments(&self.pointer), new),
            To::Nothing | To::Moved => take(value, &segments(&self.pointer)),
        }
    }
}

/// The segments of a JSON pointer.
pub(super) fn segments(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~")).collect()
}

/// A value inside of mappings with these keys.
pub(super) fn wrapped(keys: &[String], value: &Value) -> Value {
    keys.iter().rev().fold(value.clone(), |inner, key| Value::Object(Map::from_iter([(key.clone(), inner)])))
}

fn put(value: &mut Value, path: &[String], new: &Value) {
    let [first, rest @ ..] = path else {
        *value = new.clone();
        return;
    };
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => put(map.entry(first.as_str()).or_insert(Value::Null), rest, new),
        Value::Array(items) => match first.parse::<usize>() {
            Ok(index) if index == items.len() => items.push(wrapped(rest, new)),
            Ok(index) if index < items.len() => put(&mut items[index], rest, new),
            _ => {}
        },
        _ => {}
    }
}

fn take(value: &mut Value, path: &[String]) {
    match (path, value) {
        ([last], Value::Object(map)) => drop(map.shift_remove(last)),
        ([last], Value::Array(items)) => {
            if let Some(index) = last.parse().ok().filter(|index| *index < items.len()) {
                items.remove(index);
            }
        }
        ([first, rest @ ..], Value::Object(map)) => {
            if let Some(inner) = map.get_mut(first) {
                take(inner, rest);
            }
        }
        ([first, rest @ ..], Value::Array(items)) => {
            if let Some(inner) = first.parse().ok().and_then(|index: usize| items.get_mut(index)) {
                take(inner, rest);
            }
        }
        _ => {}
    }
}

/// The changes that make one value another, each as deep inside as it can be; lists keep what they have at both ends.
pub fn difference(pointer: &str, old: &Value, new: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    collect(pointer, old, new, &mut changes);
    changes
}

fn collect(pointer: &str, old: &Value, new: &Value, changes: &mut Vec<Change>) {
    match (old, new) {
        _ if old == new => {}
        (Value::Object(old), Value::Object(new)) if !new.is_empty() => {
            for (key, value) in new {
                match old.get(key) {
                    Some(before) => collect(&below(pointer, key), before, value, changes),
                    None => changes.push(Change::set(below(pointer, key), value.clone())),
                }
            }
            changes.extend(
                old.keys().filter(|key| !new.contains_key(*key)).map(|key| Change::remove(below(pointer, key))),
            );
        }
        (Value::Array(old), Value::Array(new)) if !new.is_empty() => lists(pointer, old, new, changes),
        _ => changes.push(Change::set(pointer, new.clone())),
    }
}

fn lists(pointer: &str, old: &[Value], new: &[Value], changes: &mut Vec<Change>) {
    let head = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(old, new)| old == new).count();
    // Nothing is put between what is there: what is longer is written anew from the first that differs.
    let tail = if new.len() > old.len() { 0 } else { tail };
    for (index, value) in new.iter().enumerate().take(new.len() - tail).skip(head) {
        let pointer = below(pointer, &index.to_string());
        match old.get(index) {
            Some(before) => collect(&pointer, before, value, changes),
            None => changes.push(Change::set(pointer, value.clone())),
        }
    }
    let surplus = new.len() - tail..(old.len() - tail).max(new.len() - tail);
    changes.extend(surplus.rev().map(|index| Change::remove(below(pointer, &index.to_string()))));
}

/// The pointer of what a value has at a key.
pub fn below(pointer: &str, key: &str) -> String {
    let mut below = pointer.to_owned();
    push_segment(&mut below, key);
    below
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_is_as_deep_inside_as_it_can_be() {
        let pointers = |old: Value, new: Value| -> Vec<String> {
            difference("/a", &old, &new).into_iter().map(|change| change.pointer).collect()
        };
        assert_eq!(pointers(json!({"b": 1, "c": {"d": 2}}), json!({"b": 1, "c": {"d": 3}})), ["/a/c/d"]);
        assert_eq!(pointers(json!({"b": 1, "c/d": 2}), json!({"b": 1, "e": 2})), ["/a/e", "/a/c~1d"]);
        assert_eq!(pointers(json!([1, 2, 3]), json!([1, 3])), ["/a/1"]);
        assert_eq!(pointers(json!([1, 2]), json!([1, 2, 3])), ["/a/2"]);
        assert_eq!(pointers(json!([1, 2, 3, 4]), json!([1, 4])), ["/a/2", "/a/1"]);
        assert_eq!(pointers(json!([1]), json!([])), ["/a"]);
        assert!(pointers(json!({"b": [1]}), json!({"b": [1]})).is_empty());
    }
}
