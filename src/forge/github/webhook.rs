//! GitHub's deliveries.

use crate::forge::webhook::{
    Authentication, Comments, DeliveryId, Dialect, EventName, MIB, Merges, closed_as_merged, in_words_of_github,
    single_ref,
};

/// How GitHub calls. Its older `X-Hub-Signature` (SHA-1) does not count. Deliveries have up to 25 MiB; GitHub sends
/// nothing at all for larger ones.
pub(in crate::forge) const DIALECT: Dialect = Dialect {
    event: EventName::Header("x-github-event"),
    pushes: &["push"],
    pulls: &["pull_request"],
    comments: Comments { events: &["issue_comment"], read: in_words_of_github },
    tags: &[],
    merges: Merges { events: &["pull_request"], read: closed_as_merged },
    authentication: Authentication::Hmac { headers: &["x-hub-signature-256"], prefix: "sha256=" },
    delivery: DeliveryId::Header(&["x-github-delivery"]),
    commit_required: true,
    body_limit: 25 * MIB,
    updates: single_ref,
};
