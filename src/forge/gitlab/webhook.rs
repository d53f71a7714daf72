//! GitLab's deliveries.

use serde_json::Value;

use crate::forge::webhook::{
    Authentication, Comments, DeliveryId, Dialect, EventName, MIB, Merge, Merges, Named, Reruns, Written, branch,
    commit, number, single_ref, text, time,
};

/// How GitLab calls. It sends the secret itself, or signs as Standard Webhooks do if it was given a signing token. It
/// retries with the same key, and stops calling whoever refuses too often.
pub(in crate::forge) const DIALECT: Dialect = Dialect {
    event: EventName::Header("x-gitlab-event"),
    pushes: &["Push Hook"],
    pulls: &["Merge Request Hook"],
    comments: Comments { events: &["Note Hook"], read: note },
    tags: &["Tag Push Hook"],
    merges: Merges { events: &["Merge Request Hook"], read: merge },
    reruns: Reruns::NONE,
    authentication: Authentication::SignatureOrToken("x-gitlab-token"),
    delivery: DeliveryId::Header(&["webhook-id", "idempotency-key", "x-gitlab-event-uuid"]),
    commit_required: true,
    body_limit: MIB,
    updates: single_ref,
    repository: |payload| {
        Named::of(text(payload, "/project/path_with_namespace").map(str::to_owned), number(payload, "/project/id"))
    },
};

/// A comment on a merge request. GitLab says from 17.0 on whether it is a new one. Whoever calls may be another than its author.
fn note(payload: &Value) -> Written<'_> {
    let author = number(payload, "/object_attributes/author_id");
    let login = text(payload, "/user/username");
    let is_on_merge_request = text(payload, "/object_attributes/noteable_type") == Some("MergeRequest");
    let is_on_lines = text(payload, "/object_attributes/type") == Some("DiffNote");
    Written {
        is_new: text(payload, "/object_attributes/action") == Some("create") && author == number(payload, "/user/id"),
        pull: number(payload, "/merge_request/iid").filter(|_| is_on_merge_request && !is_on_lines),
        is_by_program: login.is_some_and(is_of_token)
            || payload.pointer("/object_attributes/system").and_then(Value::as_bool) != Some(false),
        id: number(payload, "/object_attributes/id"),
        repository: text(payload, "/project/path_with_namespace").map(str::to_owned),
        login: login.map(str::to_owned),
        author: author.map(|id| id.to_string()),
        at: time(payload, "/object_attributes/created_at"),
        text: text(payload, "/object_attributes/note"),
    }
}

/// Whether somebody is the user that GitLab makes for an access token, such as `project_7_bot_1a2b`.
fn is_of_token(login: &str) -> bool {
    let rest = login.strip_prefix("project_").or_else(|| login.strip_prefix("group_"));
    let rest = rest.map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    rest.is_some_and(|rest| rest == "_bot" || rest.starts_with("_bot_"))
}

/// A merge that moves the branch forward makes no commit of its own.
fn merge(payload: &Value) -> Option<Merge> {
    let attributes = payload.get("object_attributes")?;
    (attributes.get("action")? == "merge").then(|| Merge {
        into: branch(attributes, "/target_branch"),
        commit: commit(attributes, "/merge_commit_sha").or_else(|| commit(attributes, "/last_commit/id")),
        number: attributes.get("iid").and_then(Value::as_u64),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_new_note_of_a_person_on_a_merge_request_is_told() {
        let payload = json!({
            "object_kind": "note", "user": {"id": 3, "username": "ann"}, "merge_request": {"id": 900, "iid": 7},
            "project": {"path_with_namespace": "acme/web/shop"},
            "object_attributes": {
                "id": 12, "note": "/launchway retry web", "noteable_type": "MergeRequest", "type": null, "author_id": 3,
                "created_at": "2026-11-26 12:00:00 UTC", "system": false, "action": "create",
            },
        });
        let told = note(&payload);
        assert!(told.is_new && !told.is_by_program, "{told:?}");
        assert_eq!((told.pull, told.id), (Some(7), Some(12)));
        assert_eq!((told.author.as_deref(), told.login.as_deref()), (Some("3"), Some("ann")));
        assert_eq!((told.repository.as_deref(), told.text), (Some("acme/web/shop"), Some("/launchway retry web")));
        let with = |pointer: &str, value: Value| {
            let mut changed = payload.clone();
            *changed.pointer_mut(pointer).unwrap() = value;
            changed
        };
        for (pointer, value) in [
            ("/object_attributes/action", json!("update")),
            ("/object_attributes/action", Value::Null),
            ("/user/id", json!(4)),
        ] {
            assert!(!note(&with(pointer, value)).is_new, "{pointer}");
        }
        for kind in ["Issue", "Commit", "Snippet"] {
            assert_eq!(note(&with("/object_attributes/noteable_type", json!(kind))).pull, None, "{kind}");
        }
        for (kind, expected) in [("DiscussionNote", Some(7)), ("DiffNote", None)] {
            assert_eq!(note(&with("/object_attributes/type", json!(kind))).pull, expected, "{kind}");
        }
        assert!(note(&with("/object_attributes/system", json!(true))).is_by_program);
        for (login, expected) in [("project_7_bot", true), ("group_7_bot_1a2b", true), ("project_bot", false)] {
            assert_eq!(note(&with("/user/username", json!(login))).is_by_program, expected, "{login}");
        }
    }
}
