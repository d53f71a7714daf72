//! Reading JSON that anybody may have sent: strict about what is JSON, forgiving about what is where.

use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Objects of hosts have dozens of keys. More than this is an attack on memory.
const KEY_LIMIT: usize = 10_000;

/// A body that is no JSON, or JSON that no host sends: nested deeper than 127, with a key twice in one object, with more
/// than 10,000 keys in one, or with a number beyond 64 bits.
#[derive(Debug, thiserror::Error)]
#[error("the body is not usable JSON: {0}")]
pub struct Malformed(serde_json::Error);

/// The texts among the fields of the object in `body`; none if it holds something else. All of it is checked, and the
/// memory needed is bounded by its size.
pub(super) fn text_fields(body: &[u8]) -> Result<HashMap<String, String>, Malformed> {
    let fields = match serde_json::from_slice(body).map_err(Malformed)? {
        Node::Object(fields) => fields,
        Node::Text(_) | Node::Other => HashMap::new(),
    };
    Ok(fields.into_iter().filter_map(|(key, text)| Some((key, text?))).collect())
}

/// What is kept of a value: of an object its keys with the texts among its fields, and nothing below.
enum Node {
    Object(HashMap<String, Option<String>>),
    Text(String),
    Other,
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Node, E> {
        // The parser hands integers beyond 64 bits over as these.
        if number.abs() < i64::MAX as f64 { Ok(Node::Other) } else { Err(E::custom("a number is too large")) }
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        while items.next_element::<Node>()?.is_some() {}
        Ok(Node::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut fields = HashMap::new();
        while let Some((key, value)) = entries.next_entry::<String, Node>()? {
            if fields.len() == KEY_LIMIT {
                return Err(A::Error::custom("an object has too many keys"));
            }
            let text = if let Node::Text(text) = value { Some(text) } else { None };
            if fields.insert(key, text).is_some() {
                return Err(A::Error::custom("an object has a key twice"));
            }
        }
        Ok(Node::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_texts_of_the_outermost_object_are_kept() {
        let cases: [(&str, &[(&str, &str)]); 6] = [
            (r#"{"ref": "refs/heads/main", "size": 1, "x": {"ref": "no"}}"#, &[("ref", "refs/heads/main")]),
            (r#"{"after": "\u00e9\ud83d\udea2", "before": null}"#, &[("after", "é🚢")]),
            (r#"["ref"]"#, &[]),
            (r#""ref""#, &[]),
            ("null", &[]),
            (" 1.5 ", &[]),
        ];
        for (body, expected) in cases {
            let expected = expected.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
            assert_eq!(text_fields(body.as_bytes()).unwrap(), expected, "{body}");
        }
    }

    #[test]
    fn what_is_not_json_or_abuses_it_is_malformed() {
        let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
        let wide = format!("{{{}}}", (0..=KEY_LIMIT).map(|n| format!("\"k{n}\":0")).collect::<Vec<_>>().join(","));
        let cases = [
            "",
            "{",
            "{} {}",
            "payload=%7B%7D",
            r#"{"id": NaN}"#,
            r#"{"id": 99999999999999999999}"#,
            r#"{"id": -99999999999999999999}"#,
            r#"{"id": 1e999}"#,
            r#"{"name": "\ud800"}"#,
            r#"{"ref": "a", "ref": "b"}"#,
            r#"{"x": [{"y": 1, "y": {}}]}"#,
            &deep,
            &wide,
        ];
        for body in cases {
            assert!(text_fields(body.as_bytes()).is_err(), "{}", body.get(..60).unwrap_or(body));
        }
        assert!(text_fields(b"{\"ref\": \"\xff\"}").is_err());
    }
}
