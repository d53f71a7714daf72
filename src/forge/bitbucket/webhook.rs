//! Deliveries of Bitbucket. A call may tell of many refs.

use serde_json::Value;

use crate::forge::webhook::{
    Authentication, Comments, DeliveryId, Dialect, EventName, MIB, Merge, Merges, Named, Reruns, Update, Written,
    branch, commit, full_ref, number, reference, text, time,
};
use crate::model::time::Timestamp;

/// What stands for a commit that is not there: of a ref that came, or is gone.
const NONE: &str = "0000000000000000000000000000000000000000";

/// How Bitbucket Cloud calls, where the webhook has a secret.
pub(in crate::forge) const CLOUD: Dialect = Dialect {
    event: EventName::Header("x-event-key"),
    pushes: &["repo:push"],
    pulls: &["pullrequest:created", "pullrequest:updated"],
    comments: Comments { events: &["pullrequest:comment_created"], read: cloud_comment },
    tags: &[],
    merges: Merges { events: &["pullrequest:fulfilled"], read: cloud_merge },
    reruns: Reruns::NONE,
    authentication: Authentication::Hmac { headers: &["x-hub-signature"], prefix: "sha256=" },
    delivery: DeliveryId::Header(&["x-request-uuid"]),
    commit_required: true,
    body_limit: MIB,
    updates: cloud,
    repository: cloud_repository,
};

/// How Bitbucket Data Center calls.
pub(in crate::forge) const DATA_CENTER: Dialect = Dialect {
    pushes: &["repo:refs_changed"],
    pulls: &["pr:opened", "pr:from_ref_updated", "pr:modified"],
    comments: Comments { events: &["pr:comment:added"], read: data_center_comment },
    merges: Merges { events: &["pr:merged"], read: data_center_merge },
    reruns: Reruns::NONE,
    delivery: DeliveryId::Header(&["x-request-id"]),
    updates: data_center,
    repository: data_center_repository,
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

fn cloud_repository(payload: &Value) -> Named {
    let of = |pointer: &str| text(payload, pointer).map(str::to_owned);
    Named::known_by(of("/repository/full_name"), of("/repository/uuid"))
}

/// A call about a pull request has it as that which the request goes to.
fn data_center_repository(payload: &Value) -> Named {
    let of_pull = || payload.pointer("/pullRequest/toRef/repository");
    let Some(repository) = payload.get("repository").or_else(of_pull) else { return Named::default() };
    let path = text(repository, "/project/key").zip(text(repository, "/slug"));
    Named::of(path.map(|(project, name)| format!("{project}/{name}")), number(repository, "/id"))
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

/// A comment on a pull request. One on a line of a diff says on which; programs are no users.
fn cloud_comment(payload: &Value) -> Written<'_> {
    let is_inline = payload.pointer("/comment/inline").is_some_and(|inline| !inline.is_null());
    let is_id = |id: &&str| id.bytes().all(|byte| byte.is_ascii_hexdigit() || b"{-}".contains(&byte));
    let author = text(payload, "/comment/user/uuid").filter(is_id);
    Written {
        is_new: true,
        pull: number(payload, "/pullrequest/id").filter(|_| !is_inline),
        is_by_program: text(payload, "/comment/user/type") != Some("user"),
        id: number(payload, "/comment/id"),
        repository: text(payload, "/repository/full_name").map(str::to_owned),
        login: author.and_then(|id| cloud_login(text(payload, "/comment/user/nickname").unwrap_or_default(), id)),
        author: author.map(str::to_owned),
        at: time(payload, "/comment/created_on"),
        text: text(payload, "/comment/content/raw"),
    }
}

/// By what people know somebody. Whoever likes a nickname may take it, so that the id has to tell the rest.
fn cloud_login(nickname: &str, id: &str) -> Option<String> {
    let name: String = nickname.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect();
    Some(format!("{name}-{}", id.trim_start_matches('{').get(..8)?))
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
        login: text(payload, "/comment/author/name").map(str::to_owned),
        author: number(payload, "/comment/author/id").map(|id| id.to_string()),
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
        assert_eq!((told.pull, told.id), (Some(7), Some(12)));
        assert_eq!((told.author.as_deref(), told.login.as_deref()), (Some("3"), Some("ann")));
        assert_eq!((told.repository.as_deref(), told.text), (Some("ACME/shop"), Some("/launchway retry web")));
        assert_eq!(told.at, Some(Timestamp(1_505_784_066_751)));
        payload["comment"]["anchor"] = json!({"path": "web.yaml", "line": 3});
        assert_eq!(data_center_comment(&payload).pull, None);
        for kind in [json!("SERVICE"), Value::Null] {
            payload["comment"]["author"]["type"] = kind;
            assert!(data_center_comment(&payload).is_by_program);
        }
    }

    #[test]
    fn who_somebody_is_on_the_cloud_no_nickname_tells() {
        let payload = json!({
            "repository": {"full_name": "acme/shop"}, "pullrequest": {"id": 7},
            "comment": {
                "id": 12, "content": {"raw": "/launchway retry web"}, "created_on": "2026-11-26T12:00:00.178679+00:00",
                "user": {"nickname": "Ann B. /é", "uuid": "{504c3b62-8120-4f0c-a7bc-87800b9d6f70}", "type": "user"},
            },
        });
        let told = cloud_comment(&payload);
        assert!(told.is_new && !told.is_by_program && told.at.is_some(), "{told:?}");
        assert_eq!((told.pull, told.id, told.login.as_deref()), (Some(7), Some(12), Some("AnnB.-504c3b62")));
        assert_eq!(told.author.as_deref(), Some("{504c3b62-8120-4f0c-a7bc-87800b9d6f70}"));
        assert_eq!((told.repository.as_deref(), told.text), (Some("acme/shop"), Some("/launchway retry web")));
        let with = |pointer: &str, value: Value| {
            let mut changed = payload.clone();
            *changed.pointer_mut(pointer).unwrap() = value;
            changed
        };
        assert!(cloud_comment(&with("/comment/user/type", json!("app_user"))).is_by_program);
        for id in [json!("{504c3b62\" OR 1=1}"), json!("{504c"), json!(3)] {
            assert_eq!(cloud_comment(&with("/comment/user/uuid", id)).login, None);
        }
        let mut inline = payload.clone();
        inline["comment"]["inline"] = json!({"path": "web.yaml", "to": 3});
        assert_eq!(cloud_comment(&inline).pull, None);
    }
}
