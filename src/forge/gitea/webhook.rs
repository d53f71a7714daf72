//! Deliveries of Gitea, and of its relatives: Forgejo, which carries Gitea's headers too, and Gogs, from which both come.

use crate::forge::webhook::{
    Authentication, Comments, DeliveryId, Dialect, EventName, MIB, Merges, Named, Reruns, closed_as_merged,
    in_words_of_github, single_ref,
};

/// How Gitea calls. It sends GitHub's headers as well, so it has to be told first. Without a secret it sends an empty
/// signature.
pub(in crate::forge) const GITEA: Dialect = Dialect {
    event: EventName::Header("x-gitea-event"),
    pushes: &["push"],
    pulls: &["pull_request"],
    comments: Comments { events: &["issue_comment"], read: in_words_of_github },
    tags: &[],
    merges: Merges { events: &["pull_request"], read: closed_as_merged },
    reruns: Reruns::NONE,
    authentication: Authentication::Hmac { headers: &["x-gitea-signature"], prefix: "" },
    delivery: DeliveryId::Header(&["x-gitea-delivery"]),
    commit_required: true,
    body_limit: MIB,
    updates: single_ref,
    repository: Named::full_name,
};

/// How Forgejo calls. Older ones have Gitea's signature alone.
pub(in crate::forge) const FORGEJO: Dialect = Dialect {
    event: EventName::Header("x-forgejo-event"),
    authentication: Authentication::Hmac { headers: &["x-forgejo-signature", "x-gitea-signature"], prefix: "" },
    delivery: DeliveryId::Header(&["x-forgejo-delivery", "x-gitea-delivery"]),
    ..GITEA
};

/// How Gogs calls.
pub(in crate::forge) const GOGS: Dialect = Dialect {
    event: EventName::Header("x-gogs-event"),
    authentication: Authentication::Hmac { headers: &["x-gogs-signature"], prefix: "" },
    delivery: DeliveryId::Header(&["x-gogs-delivery"]),
    ..GITEA
};
