//! What the socket for hooks takes of what it leads to: what the hook of a push asks for, and no more.

use axum::http::StatusCode;

use super::act::SyncRequest;
use crate::server::origin::Origin;
use crate::server::problem::{Answer, Problem};

/// Whether a sync may be asked for: of one repository, and nothing that takes a person.
pub(super) fn may_sync(origin: &Origin, request: &SyncRequest) -> Answer<()> {
    let SyncRequest { repository, allow_prune, accept_rewrite, up, only_new: _ } = request;
    let is_plain = repository.is_some() && allow_prune.is_none() && accept_rewrite.is_none() && !up;
    refuse_unless(origin, is_plain, "a hook asks for a plain sync of one repository")
}

/// Whether a revision may be followed: only by whoever knows it, because they pushed it.
pub(super) fn may_follow(origin: &Origin, commit: &str) -> Answer<()> {
    let is_whole = matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    refuse_unless(origin, is_whole, "a hook names a commit by its whole id")
}

fn refuse_unless(origin: &Origin, allowed: bool, rule: &str) -> Answer<()> {
    match origin {
        Origin::Hooks { .. } if !allowed => Err(Problem::new(StatusCode::FORBIDDEN, rule)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_asks_for_a_plain_sync_of_one_repository() {
        let shop = || SyncRequest { repository: Some("shop".into()), ..SyncRequest::default() };
        let word = || Some("1a2b".to_owned());
        for (request, allowed) in [
            (shop(), true),
            (SyncRequest { only_new: true, ..shop() }, true),
            (SyncRequest::default(), false),
            (SyncRequest { up: true, ..shop() }, false),
            (SyncRequest { allow_prune: word(), ..shop() }, false),
            (SyncRequest { accept_rewrite: word(), ..shop() }, false),
        ] {
            let user = || "ann".to_owned();
            assert_eq!(may_sync(&Origin::Hooks { user: user() }, &request).is_ok(), allowed, "{request:?}");
            assert!(may_sync(&Origin::Commands { user: user() }, &request).is_ok(), "{request:?}");
        }
    }

    #[test]
    fn a_hook_follows_what_it_knows() {
        let hook = Origin::Hooks { user: "git".into() };
        for (commit, allowed) in [("1a2b3c4".to_owned(), false), ("a".repeat(40), true), ("z".repeat(40), false)] {
            assert_eq!(may_follow(&hook, &commit).is_ok(), allowed, "{commit}");
        }
    }
}
