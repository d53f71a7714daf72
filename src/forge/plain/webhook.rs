//! Signed calls of one's own: a post-receive hook of a plain server, a CI job, a script with `curl`.

use crate::forge::webhook::{
    Authentication, Comments, DeliveryId, Dialect, EventName, MIB, Merges, Named, Reruns, single_ref,
};

/// How such calls look. Their id is required, because nothing else of them says what was seen before.
pub(in crate::forge) const GENERIC: Dialect = Dialect {
    event: EventName::Always("push"),
    pushes: &["push"],
    pulls: &[],
    comments: Comments::NONE,
    tags: &[],
    merges: Merges::NONE,
    reruns: Reruns::NONE,
    authentication: Authentication::Hmac { headers: &["x-signature"], prefix: "sha256=" },
    delivery: DeliveryId::Required(&["webhook-id", "x-delivery"]),
    commit_required: false,
    body_limit: MIB,
    updates: single_ref,
    repository: |_| Named::default(),
};

/// How programs call that sign as the specification Standard Webhooks says, which has the id and the time signed too.
pub(in crate::forge) const STANDARD: Dialect = Dialect {
    authentication: Authentication::StandardWebhooks,
    delivery: DeliveryId::Required(&["webhook-id"]),
    ..GENERIC
};
