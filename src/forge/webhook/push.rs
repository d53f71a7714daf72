//! What calls say about refs and commits.

use serde_json::Value;

/// Git's own limit on file systems is about this.
const REF_LIMIT: usize = 1024;

/// What became of one ref. Fields that are missing, of another type or unusable are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::forge) struct Update {
    /// The ref in full, such as `refs/heads/main`.
    pub(in crate::forge) reference: Option<String>,
    /// The commit before.
    pub(in crate::forge) before: Option<String>,
    /// The commit after.
    pub(in crate::forge) after: Option<String>,
}

/// The one update of a payload in the words of GitHub, which most hosts share.
pub(in crate::forge) fn single_ref(payload: &Value) -> Vec<Update> {
    let kind = payload.get("ref_type").and_then(Value::as_str);
    let reference = payload.get("ref").and_then(Value::as_str).and_then(|name| full_ref(name.to_owned(), kind));
    vec![Update { reference, before: commit(payload, "/before"), after: commit(payload, "/after") }]
}

/// The commit at a pointer.
pub(in crate::forge) fn commit(value: &Value, pointer: &str) -> Option<String> {
    let id = value.pointer(pointer)?.as_str()?;
    is_commit_id(id).then(|| id.to_owned())
}

/// A ref that stands in full at a pointer.
pub(in crate::forge) fn reference(value: &Value, pointer: &str) -> Option<String> {
    full_ref(value.pointer(pointer)?.as_str()?.to_owned(), None)
}

/// Hosts shorten the ref of created and deleted branches and tags, and name their kind beside it.
pub(in crate::forge) fn full_ref(name: String, kind: Option<&str>) -> Option<String> {
    let full = match kind {
        _ if name.starts_with("refs/") => name,
        Some("branch") => format!("refs/heads/{name}"),
        Some("tag") => format!("refs/tags/{name}"),
        _ => return None,
    };
    is_well_formed(&full).then_some(full)
}

/// The rules of `git check-ref-format`, and `git branch`'s that no branch or tag begins with a dash.
fn is_well_formed(name: &str) -> bool {
    let is_component = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    let short = name.splitn(3, '/').nth(2);
    name.len() <= REF_LIMIT
        && short.is_some_and(|short| !short.starts_with('-'))
        && name.split('/').all(is_component)
        && !name.ends_with('.')
        && !name.contains("..")
        && !name.contains("@{")
        && !name.contains(|c: char| c.is_control() || " ~^:?*[\\".contains(c))
}

/// A SHA-1 or SHA-256 object id.
fn is_commit_id(id: &str) -> bool {
    matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refs_are_taken_in_full_or_not_at_all() {
        let long = format!("refs/heads/{}", "x".repeat(4096));
        let cases = [
            ("refs/heads/main", None, Some("refs/heads/main")),
            ("refs/heads/feature/-x", None, Some("refs/heads/feature/-x")),
            ("refs/tags/v1.0", Some("branch"), Some("refs/tags/v1.0")),
            ("main", Some("branch"), Some("refs/heads/main")),
            ("v1.0", Some("tag"), Some("refs/tags/v1.0")),
            ("main", None, None),
            ("main", Some("repository"), None),
            ("refs/heads/../../etc", None, None),
            ("refs/heads/a\0b", None, None),
            ("refs/heads/a\nb", None, None),
            ("refs/heads/-rf", None, None),
            ("--upload-pack=x", Some("branch"), None),
            ("refs/heads/", None, None),
            ("refs/heads", None, None),
            ("refs/heads/a..b", None, None),
            ("refs/heads/.hidden", None, None),
            ("refs/heads/x.lock", None, None),
            ("refs/heads/a b", None, None),
            ("", Some("branch"), None),
            (&long, None, None),
        ];
        for (name, kind, expected) in cases {
            assert_eq!(full_ref(name.to_owned(), kind).as_deref(), expected, "{name:?} {kind:?}");
        }
    }

    #[test]
    fn commit_ids_are_whole() {
        let sha1 = "a".repeat(40);
        let body = format!(r#"{{"ref":"refs/heads/main","before":"{}","after":"{sha1}"}}"#, "a".repeat(39));
        let push = single_ref(&serde_json::from_str(&body).unwrap()).remove(0);
        assert_eq!((push.before, push.after), (None, Some(sha1)));
    }
}
