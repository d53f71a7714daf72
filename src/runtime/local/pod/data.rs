//! What ConfigMaps and Secrets hold.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::model::object::Kind;

/// The entries of a ConfigMap or Secret. Fails with the key whose value cannot be decoded, never with the value.
pub(crate) fn entries(kind: &Kind, content: &Value) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let (plain, encoded) = match kind {
        Kind::Secret => ("stringData", "data"),
        _ => ("data", "binaryData"),
    };
    let mut found = BTreeMap::new();
    for (key, text) in texts(content, encoded) {
        let compact: String = text.split_ascii_whitespace().collect();
        let bytes = STANDARD.decode(compact).ok().ok_or_else(|| format!("the value of `{key}` is not base64"))?;
        found.insert(key.clone(), bytes);
    }
    // A Secret's `stringData` wins over its `data`.
    found.extend(texts(content, plain).map(|(key, text)| (key.clone(), text.as_bytes().to_vec())));
    Ok(found)
}

fn texts<'a>(content: &'a Value, field: &str) -> impl Iterator<Item = (&'a String, &'a str)> {
    let map = content.get(field).and_then(Value::as_object);
    map.into_iter().flatten().filter_map(|(key, value)| Some((key, value.as_str()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_decoded_and_config_maps_are_not() {
        let content = json!({"data": {"a": "aGk="}, "stringData": {"b": "x"}, "binaryData": {"c": "aGk="}});
        let secret = entries(&Kind::Secret, &content).unwrap();
        assert_eq!((&secret["a"][..], &secret["b"][..]), (&b"hi"[..], &b"x"[..]));
        let config = entries(&Kind::ConfigMap, &content).unwrap();
        assert_eq!((&config["a"][..], &config["c"][..]), (&b"aGk="[..], &b"hi"[..]));
    }

    #[test]
    fn a_broken_secret_is_named_without_its_value() {
        let problem = entries(&Kind::Secret, &json!({"data": {"a": "p@ss"}})).unwrap_err();
        assert!(problem.contains("`a`") && !problem.contains("p@ss"));
    }
}
