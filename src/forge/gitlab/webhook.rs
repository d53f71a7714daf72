//! GitLab's deliveries.

use crate::forge::webhook::{Authentication, DeliveryId, Dialect, EventName, MIB, single_ref};

/// How GitLab calls. It sends the secret itself, or signs as Standard Webhooks do if it was given a signing token. It
/// retries with the same key, and stops calling whoever refuses too often.
pub(in crate::forge) const DIALECT: Dialect = Dialect {
    event: EventName::Header("x-gitlab-event"),
    pushes: &["Push Hook"],
    pulls: &["Merge Request Hook"],
    authentication: Authentication::SignatureOrToken("x-gitlab-token"),
    delivery: DeliveryId::Header(&["webhook-id", "idempotency-key", "x-gitlab-event-uuid"]),
    commit_required: true,
    body_limit: MIB,
    updates: single_ref,
};
