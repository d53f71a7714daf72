//! Signed calls of one's own: a post-receive hook of a plain server, a CI job, a script with `curl`.

use crate::forge::webhook::{Dialect, EventName, MIB};

/// How such calls look. Their id is required, because nothing else of them says what was seen before.
pub(in crate::forge) const DIALECT: Dialect = Dialect {
    event: EventName::Always("push"),
    signature: "x-signature",
    signature_prefix: "sha256=",
    delivery: &["webhook-id", "x-delivery"],
    delivery_required: true,
    commit_required: false,
    body_limit: MIB,
};
