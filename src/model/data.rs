//! Data that flows from task to task.

use serde_json::Value;

/// The most bytes that the data of one sequence may have. Source: the limit of Keptn's event validation.
pub const MOST_DATA: usize = 64 * 1024;

/// How deep data that somebody tells may be nested: what is written by hand has a handful of levels, and of what is kept in the
/// record of a run, no more than 128 can be read again.
pub const MOST_DEPTH: usize = 32;

/// How many levels are nested in it.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Both, where the newer wins: mappings are merged key by key, and what is newer in a list comes before what is older. Source:
/// Keptn's shipyard-controller, but for numbers and booleans, of which it kept the older, and for a list that comes back as it
/// was, which it doubled.
pub fn merge(older: Value, newer: Value) -> Value {
    match (older, newer) {
        (Value::Object(mut older), Value::Object(newer)) => {
            for (key, newer) in newer {
                let merged = merge(older.remove(&key).unwrap_or_default(), newer);
                older.insert(key, merged);
            }
            Value::Object(older)
        }
        (Value::Array(older), Value::Array(newer)) if older != newer => {
            Value::Array(newer.into_iter().chain(older).collect())
        }
        (older @ (Value::Object(_) | Value::Array(_)), Value::Null) => older,
        (Value::String(_), Value::Null) => Value::String(String::new()),
        (_, newer) => newer,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_newer_wins() {
        for (older, newer, merged) in [
            (json!({"a": 1, "b": {"c": 1}}), json!({"b": {"d": 2}}), json!({"a": 1, "b": {"c": 1, "d": 2}})),
            (json!("a"), json!("b"), json!("b")),
            (json!(1), json!(2), json!(2)),
            (json!(true), json!(false), json!(false)),
            (json!(["a"]), json!(["b"]), json!(["b", "a"])),
            (json!(["a"]), json!(["a"]), json!(["a"])),
            (json!(null), json!(["a"]), json!(["a"])),
            (json!({"a": 1}), json!(null), json!({"a": 1})),
            (json!(["a"]), json!(null), json!(["a"])),
            (json!("a"), json!(null), json!("")),
            (json!({"a": 1}), json!("a"), json!("a")),
            (json!("a"), json!({"a": 1}), json!({"a": 1})),
        ] {
            assert_eq!(merge(older.clone(), newer.clone()), merged, "{older} and {newer}");
        }
    }
}
