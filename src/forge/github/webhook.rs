//! GitHub's deliveries.

use crate::forge::webhook::{Dialect, EventName, MIB};

/// How GitHub calls. Its older `X-Hub-Signature` (SHA-1) does not count. Deliveries have up to 25 MiB; GitHub sends
/// nothing at all for larger ones.
pub(in crate::forge) const DIALECT: Dialect = Dialect {
    event: EventName::Header("x-github-event"),
    signature: "x-hub-signature-256",
    signature_prefix: "sha256=",
    delivery: &["x-github-delivery"],
    delivery_required: false,
    commit_required: true,
    body_limit: 25 * MIB,
};
