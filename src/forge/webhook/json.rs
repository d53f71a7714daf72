//! Reading JSON that anybody may have sent: strict about what is JSON, forgiving about what is where.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Objects of hosts have dozens of keys. More than this is an attack on memory.
const KEY_LIMIT: usize = 10_000;

/// So many items of a list are kept: no push that a person makes changes more refs.
const ITEMS_KEPT: usize = 1_000;

/// The keys whose values are kept, wherever they are: all that any host says about refs, commits and comments.
const KEPT: [&str; 82] = [
    "action",
    "after",
    "anchor",
    "app",
    "author",
    "author_id",
    "base",
    "before",
    "body",
    "branch",
    "changes",
    "check_run",
    "check_suite",
    "comment",
    "commitId",
    "content",
    "created",
    "createdDate",
    "created_at",
    "created_on",
    "deleted",
    "destination",
    "eventType",
    "event_name",
    "fromHash",
    "full_name",
    "hash",
    "head_sha",
    "id",
    "iid",
    "inline",
    "is_pull",
    "issue",
    "key",
    "lastMergeCommit",
    "last_commit",
    "login",
    "mergeCommit",
    "merge_commit",
    "merge_commit_sha",
    "merge_request",
    "merged",
    "name",
    "new",
    "newObjectId",
    "nickname",
    "note",
    "noteable_type",
    "notificationId",
    "number",
    "object_attributes",
    "old",
    "oldObjectId",
    "path_with_namespace",
    "project",
    "properties",
    "pullRequest",
    "pullRequestId",
    "pull_request",
    "pullrequest",
    "push",
    "raw",
    "ref",
    "refId",
    "refUpdates",
    "ref_type",
    "repository",
    "resource",
    "sender",
    "slug",
    "status",
    "system",
    "target",
    "targetRefName",
    "target_branch",
    "text",
    "toHash",
    "toRef",
    "type",
    "user",
    "username",
    "uuid",
];

/// A body that is no JSON, or JSON that no host sends: nested deeper than 127, with a key twice in one object, with more
/// than 10,000 keys in one, or with a number beyond 64 bits.
#[derive(Debug, thiserror::Error)]
#[error("the body is not usable JSON: {0}")]
pub struct Malformed(serde_json::Error);

/// What is kept of a body. All of it is checked; what is kept is a small part of its size.
pub(super) fn kept(body: &[u8]) -> Result<Value, Malformed> {
    serde_json::from_slice::<Node>(body).map(|node| node.0).map_err(Malformed)
}

/// A value without what nobody reads.
struct Node(Value);

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        NodeVisitor { is_kept: true }.deserialize(deserializer).map(Node)
    }
}

/// Reads a value, and keeps it or not.
#[derive(Clone, Copy)]
struct NodeVisitor {
    is_kept: bool,
}

impl<'de> DeserializeSeed<'de> for NodeVisitor {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        // The parser hands integers beyond 64 bits over as these.
        if number.abs() < i64::MAX as f64 { Ok(Value::Null) } else { Err(E::custom("a number is too large")) }
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(if self.is_kept { Value::from(text) } else { Value::Null })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut kept = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            if self.is_kept && kept.len() < ITEMS_KEPT {
                kept.push(item);
            }
        }
        Ok(Value::Array(kept))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let (mut keys, mut kept) = (HashSet::new(), Map::new());
        while let Some(key) = entries.next_key::<String>()? {
            if keys.len() == KEY_LIMIT {
                return Err(A::Error::custom("an object has too many keys"));
            }
            let is_kept = self.is_kept && KEPT.contains(&key.as_str());
            let value = entries.next_value_seed(Self { is_kept })?;
            if !keys.insert(key.clone()) {
                return Err(A::Error::custom("an object has a key twice"));
            }
            if is_kept {
                kept.insert(key, value);
            }
        }
        Ok(Value::Object(kept))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_somebody_reads_is_kept() {
        let cases = [
            (r#"{"ref": "refs/heads/main", "size": 1, "x": {"ref": "no"}}"#, json!({"ref": "refs/heads/main"})),
            (r#"{"after": "\u00e9\ud83d\udea2", "before": null}"#, json!({"after": "é🚢", "before": null})),
            (
                r#"{"push": {"changes": [{"new": {"name": "a", "links": {}}}]}}"#,
                json!({"push": {"changes": [{"new": {"name": "a"}}]}}),
            ),
            (r#"["ref"]"#, json!(["ref"])),
            ("null", Value::Null),
            (" 1.5 ", Value::Null),
        ];
        for (body, expected) in cases {
            assert_eq!(kept(body.as_bytes()).unwrap(), expected, "{body}");
        }
        let many = format!("[{}0]", "0,".repeat(5_000));
        assert_eq!(kept(many.as_bytes()).unwrap().as_array().map(Vec::len), Some(ITEMS_KEPT));
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
            assert!(kept(body.as_bytes()).is_err(), "{}", body.get(..60).unwrap_or(body));
        }
        assert!(kept(b"{\"ref\": \"\xff\"}").is_err());
    }
}
