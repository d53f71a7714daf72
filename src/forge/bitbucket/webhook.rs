//! Deliveries of Bitbucket. A call may tell of many refs.

use serde_json::Value;

use crate::forge::webhook::{
    Authentication, Comments, DeliveryId, Dialect, EventName, MIB, Merge, Merges, Update, branch, commit, full_ref,
    reference,
};

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
