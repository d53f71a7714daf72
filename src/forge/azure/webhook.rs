//! Deliveries of Azure DevOps' service hooks.

use serde_json::Value;

use crate::forge::webhook::{
    Authentication, Comments, DeliveryId, Dialect, EventName, MIB, Merge, Merges, Named, Reruns, Update, commit,
    reference, text,
};

/// How Azure DevOps calls. It signs nothing: the secret is the password of its basic authentication, or the value of a
/// header of one's own.
pub(in crate::forge) const DIALECT: Dialect = Dialect {
    event: EventName::Field("eventType"),
    pushes: &["git.push"],
    pulls: &["git.pullrequest.created", "git.pullrequest.updated"],
    comments: Comments::NONE,
    tags: &[],
    merges: Merges { events: &["git.pullrequest.updated", "git.pullrequest.merged"], read: merge },
    reruns: Reruns::NONE,
    authentication: Authentication::PasswordOrToken("x-launchway-token"),
    delivery: DeliveryId::Field("id"),
    commit_required: true,
    body_limit: MIB,
    updates,
    repository,
};

fn updates(payload: &Value) -> Vec<Update> {
    let updates = payload.pointer("/resource/refUpdates").and_then(Value::as_array);
    let update = |update: &Value| Update {
        reference: reference(update, "/name"),
        before: commit(update, "/oldObjectId"),
        after: commit(update, "/newObjectId"),
    };
    updates.into_iter().flatten().map(update).collect()
}

fn repository(payload: &Value) -> Named {
    let of = |pointer: &str| text(payload, pointer);
    let path = of("/resource/repository/project/name").zip(of("/resource/repository/name"));
    let path = path.map(|(project, name)| format!("{project}/{name}"));
    Named::known_by(path, of("/resource/repository/id").map(str::to_owned))
}

/// One that is only tried out is told alike, and is not completed.
fn merge(payload: &Value) -> Option<Merge> {
    let merged = payload.get("resource")?;
    (merged.get("status")? == "completed").then(|| Merge {
        into: reference(merged, "/targetRefName"),
        commit: commit(merged, "/lastMergeCommit/commitId"),
        number: merged.get("pullRequestId").and_then(Value::as_u64),
    })
}
