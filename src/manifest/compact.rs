//! Values in as little memory as they need: a snapshot keeps thousands of them for as long as the daemon runs.

use serde_json::{Map, Value};

/// The same value. Reading leaves room in maps and lists for what might have come, which is most of what they take.
pub(crate) fn compact(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut exact = Map::with_capacity(map.len());
            exact.extend(map.into_iter().map(|(key, value)| (key, compact(value))));
            Value::Object(exact)
        }
        Value::Array(items) => {
            let mut exact = Vec::with_capacity(items.len());
            exact.extend(items.into_iter().map(compact));
            Value::Array(exact)
        }
        Value::String(mut text) => {
            text.shrink_to_fit();
            Value::String(text)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_is_lost_and_the_order_stays() {
        let value = json!({"z": [1, {"b": null, "a": "text"}], "y": {}, "x": [], "w": true});
        let compacted = compact(value.clone());
        assert_eq!(compacted.to_string(), value.to_string());
    }
}
