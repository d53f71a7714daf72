//! Gitea's deliveries, and Forgejo's, which carries Gitea's headers too.

use crate::forge::webhook::{Dialect, EventName, MIB};

/// How Gitea calls. It sends GitHub's headers as well, so it has to be told first. Without a secret it sends an empty
/// signature.
pub(in crate::forge) const DIALECT: Dialect = Dialect {
    event: EventName::Header("x-gitea-event"),
    signature: "x-gitea-signature",
    signature_prefix: "",
    delivery: &["x-gitea-delivery"],
    delivery_required: false,
    commit_required: true,
    body_limit: MIB,
};
