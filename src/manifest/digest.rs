//! The identity of content.

use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use serde::Serialize;
use serde_json::Value;

use crate::model::by_digest::ByDigest;
use crate::model::ids::Digest;
use crate::model::object::Object;

/// SHA-256 of canonical JSON: sorted keys, no white space. The order of keys in a file changes nothing.
pub fn of(content: &Value) -> Digest {
    let mut text = Vec::with_capacity(1024);
    write_canonical(content, &mut text);
    let mut context = Context::new(&SHA256);
    context.update(&text);
    named(&context.finish())
}

/// A value with the digest of its JSON.
pub fn stored<T: Serialize>(value: T) -> ByDigest<T> {
    let digest = of(&serde_json::to_value(&value).unwrap_or_default());
    ByDigest { digest, value: Arc::new(value) }
}

/// The name of a SHA-256.
pub(crate) fn named(hash: &aws_lc_rs::digest::Digest) -> Digest {
    Digest::new(format!("sha256:{}", hex(hash.as_ref())))
}

/// Gives an object another content, with the digest that follows from it.
pub fn exchange(object: &mut Object, content: Value) {
    object.digest = of(&content);
    object.content = content.into();
}

/// Bytes as lower-case digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|nibble| char::from(b"0123456789abcdef"[usize::from(nibble)]))
        .collect()
}

fn write_canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            write_all(b'{', b'}', entries.into_iter(), out, |(key, value), out| {
                write_text(key, out);
                out.push(b':');
                write_canonical(value, out);
            });
        }
        Value::Array(items) => write_all(b'[', b']', items.iter(), out, write_canonical),
        Value::String(text) => write_text(text, out),
        Value::Number(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Null => out.extend_from_slice(b"null"),
    }
}

fn write_all<T>(
    open: u8,
    close: u8,
    items: impl Iterator<Item = T>,
    out: &mut Vec<u8>,
    write: impl Fn(T, &mut Vec<u8>),
) {
    out.push(open);
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(close);
}

/// Escapes no more than is needed to tell texts apart.
fn write_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_keys_does_not_matter_and_everything_else_does() {
        let one = json!({"a": [1, "x"], "b": {"c": null, "d": true}});
        assert_eq!(of(&one), of(&json!({"b": {"d": true, "c": null}, "a": [1, "x"]})));
        for other in [json!({"a": ["x", 1], "b": {"c": null, "d": true}}), json!({"a": [1, "x"], "b": {"d": true}})] {
            assert_ne!(of(&one), of(&other));
        }
        assert_ne!(of(&json!(["a\",\"b"])), of(&json!(["a", "b"])));
    }

    #[test]
    fn the_digest_is_the_known_one() {
        let empty = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        assert_eq!(of(&json!({})).as_str(), empty);
    }
}
