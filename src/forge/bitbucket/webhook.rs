//! Deliveries of Bitbucket. A call may tell of many refs.

use serde_json::Value;

use crate::forge::webhook::{
    Authentication, Comments, DeliveryId, Dialect, EventName, MIB, Merge, Merges, Update, Written, branch, commit,
    full_ref, number, reference, text,
};
use crate::model::time::Timestamp;

/// What stands for a commit that is not there: of a ref that came, or is gone.
const NONE: &str = "0000000000000000000000000000000000000000";

/// How Bitbucket Cloud calls, where the webhook has a secret.
pub(in crate::forge) const CLOUD: Dialect = Dialect {
    event: EventName::Header("x-event-key"),
    pushes: &["repo:push"],
    pulls: &[],
    comments: Comments::NONE,
    tags: &[],
    merges: Merges { events: &["pullrequest:fulfilled"], read: cloud_merge },
    authentication: Authentication::Hmac { headers: &["x-hub-signature"], prefix: "sha256=" },
    delivery: DeliveryId::Header(&["x-request-uuid"]),
    commit_required: true,
    body_limit: MIB,
    updates: cloud,
};

/// How Bitbucket Data Center calls.
pub(in crate::forge) const DATA_CENTER: Dialect = Dialect {
    pushes: &["repo:refs_changed"],
    pulls: &["pr:opened", "pr:from_ref_updated", "pr:modified"],
    comments: Comments { events: &["pr:comment:added"], read: data_center_comment },
    merges: Merges { events: &["pr:merged"], read: data_center_merge },
    delivery: DeliveryId::Header(&["x-request-id"]),
    updates: data_center,
    ..CLOUD
};

fn cloud(payload: &Value) -> Vec<Update> {
    let changes = payload.pointer("/push/changes").and_then(Value::as_array);
    changes.into_iter().flatten().map(cloud_update).collect()
}

/// `new` is null for a ref that is gone, `old` for one that came.
fn cloud_update(change: &Value) -> Update {
    let side = |side: &str| change.get(side).filter(|side| side.is_object());
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let named = side("new").or(side("old"));
    let reference = named.and_then(|named| full_ref(text(named, "name")?, text(named, "type").as_deref()));
    let at = |name: &str| match side(name) {
        Some(side) => commit(side, "/target/hash"),
        None => Some(NONE.to_owned()),
    };
    Update { reference, before: at("old"), after: at("new") }
}

fn data_center(payload: &Value) -> Vec<Update> {
    let changes = payload.get("changes").and_then(Value::as_array);
    let update = |change: &Value| Update {
        reference: reference(change, "/ref/id").or_else(|| reference(change, "/refId")),
        before: commit(change, "/fromHash"),
        after: commit(change, "/toHash"),
    };
    changes.into_iter().flatten().map(update).collect()
}

/// A comment on a pull request. One on a line of a diff has an anchor there.
fn data_center_comment(payload: &Value) -> Written<'_> {
    let is_anchored = payload.pointer("/comment/anchor").is_some_and(|anchor| !anchor.is_null());
    let place = text(payload, "/pullRequest/toRef/repository/project/key")
        .zip(text(payload, "/pullRequest/toRef/repository/slug"));
    Written {
        is_new: true,
        pull: number(payload, "/pullRequest/id").filter(|_| !is_anchored),
        is_by_program: text(payload, "/comment/author/type") != Some("NORMAL"),
        id: number(payload, "/comment/id"),
        repository: place.map(|(project, name)| format!("{project}/{name}")),
        login: text(payload, "/comment/author/name"),
        author: number(payload, "/comment/author/id"),
        at: payload.pointer("/comment/createdDate").and_then(Value::as_i64).map(Timestamp),
        text: text(payload, "/comment/text"),
    }
}

/// Its id of the commit may be shortened, which names none.
fn cloud_merge(payload: &Value) -> Option<Merge> {
    let merged = payload.get("pullrequest")?;
    Some(Merge {
        into: branch(merged, "/destination/branch/name"),
        commit: commit(merged, "/merge_commit/hash"),
        number: merged.get("id").and_then(Value::as_u64),
    })
}

fn data_center_merge(payload: &Value) -> Option<Merge> {
    let merged = payload.get("pullRequest")?;
    Some(Merge {
        into: reference(merged, "/toRef/id"),
        commit: commit(merged, "/properties/mergeCommit/id"),
        number: merged.get("id").and_then(Value::as_u64),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_comment_of_a_person_on_a_pull_request_as_a_whole_is_told() {
        let mut payload = json!({
            "eventKey": "pr:comment:added",
            "pullRequest": {"id": 7, "toRef": {"repository": {"slug": "shop", "project": {"key": "ACME"}}}},
            "comment": {
                "id": 12, "text": "/launchway retry web", "createdDate": 1_505_784_066_751_i64, "anchor": null,
                "author": {"name": "ann", "id": 3, "type": "NORMAL"},
            },
        });
        let told = data_center_comment(&payload);
        assert!(told.is_new && !told.is_by_program, "{told:?}");
        assert_eq!((told.pull, told.id, told.author, told.login), (Some(7), Some(12), Some(3), Some("ann")));
        assert_eq!((told.repository.as_deref(), told.text), (Some("ACME/shop"), Some("/launchway retry web")));
        assert_eq!(told.at, Some(Timestamp(1_505_784_066_751)));
        payload["comment"]["anchor"] = json!({"path": "web.yaml", "line": 3});
        assert_eq!(data_center_comment(&payload).pull, None);
        for kind in [json!("SERVICE"), Value::Null] {
            payload["comment"]["author"]["type"] = kind;
            assert!(data_center_comment(&payload).is_by_program);
        }
    }
}
