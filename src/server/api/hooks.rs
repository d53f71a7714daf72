//! What the socket for hooks takes of what it leads to: what the hook of a push asks for, no more, and not without end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::time::{Instant, sleep_until};

use super::act::SyncRequest;
use crate::model::ids::RepositoryName;
use crate::server::origin::{Client, Origin, PARTS};
use crate::server::problem::{Answer, Problem};
use crate::shares::{Share, Shares};

/// Syncs that hooks wait for at once.
const AT_ONCE: usize = 64;
/// The time between syncs of one repository that hooks ask for. Any user may ask again and again, and each may cost a
/// question to a host that does not answer.
const SPACING: Duration = Duration::from_secs(5);

/// When hooks may have a repository synced. Those who come meanwhile share the next sync.
#[derive(Debug)]
pub struct HookTurns {
    spacing: Duration,
    at_once: Arc<Shares<Client>>,
    /// Until when nobody may, of repositories that are watched.
    closed: Mutex<HashMap<RepositoryName, Instant>>,
}

impl Default for HookTurns {
    fn default() -> Self {
        Self::spaced(SPACING)
    }
}

impl HookTurns {
    /// With this time between syncs of a repository.
    pub fn spaced(spacing: Duration) -> Self {
        Self { spacing, at_once: Shares::new(AT_ONCE, PARTS), closed: Mutex::default() }
    }

    /// Waits until a hook may have a repository synced; nobody else waits. To be kept until it is.
    pub(super) async fn turn(&self, origin: &Origin, repository: &RepositoryName) -> Option<Share<Client>> {
        let Origin::Hooks { .. } = origin else { return None };
        let share = self.at_once.take(&origin.client(), 1).await;
        if let Some(opening) = self.opens(repository) {
            sleep_until(opening).await;
        }
        Some(share)
    }

    /// From when on it may be synced, if it may not now. Whoever may closes it behind them.
    fn opens(&self, repository: &RepositoryName) -> Option<Instant> {
        let (now, mut closed) = (Instant::now(), self.closed.lock().unwrap_or_else(PoisonError::into_inner));
        match closed.get(repository) {
            Some(until) if *until > now => Some(*until),
            _ => {
                closed.insert(repository.clone(), now + self.spacing);
                None
            }
        }
    }
}

/// Whether a sync may be asked for: of one repository, and nothing that takes a person. What else is watched is not told.
pub(super) fn may_sync(origin: &Origin, request: &SyncRequest, watched: &[RepositoryName]) -> Answer<()> {
    let SyncRequest { repository, allow_prune, accept_rewrite, up, only_new: _ } = request;
    let plain = repository.as_deref().filter(|_| allow_prune.is_none() && accept_rewrite.is_none() && !up);
    refuse_unless(origin, plain.is_some(), "a hook asks for a plain sync of one repository")?;
    match (origin, plain) {
        (Origin::Hooks { .. }, Some(name)) if !watched.iter().any(|watched| watched.as_str() == name) => {
            Err(Problem::not_found(format!("no repository `{name}` is watched here")))
        }
        _ => Ok(()),
    }
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
    use futures::FutureExt;
    use futures::future::join_all;

    use super::*;

    #[test]
    fn a_hook_asks_for_a_plain_sync_of_one_repository() {
        let shop = || SyncRequest { repository: Some("shop".into()), ..SyncRequest::default() };
        let word = || Some("1a2b".to_owned());
        for (request, allowed) in [
            (shop(), true),
            (SyncRequest { only_new: true, ..shop() }, true),
            (SyncRequest::default(), false),
            (SyncRequest { repository: Some("other".into()), ..SyncRequest::default() }, false),
            (SyncRequest { up: true, ..shop() }, false),
            (SyncRequest { allow_prune: word(), ..shop() }, false),
            (SyncRequest { accept_rewrite: word(), ..shop() }, false),
        ] {
            let (user, watched) = (|| "ann".to_owned(), ["shop".into(), "bank".into()]);
            let asked = may_sync(&Origin::Hooks { user: user() }, &request, &watched);
            assert_eq!(asked.is_ok(), allowed, "{request:?}");
            assert!(!format!("{asked:?}").contains("bank"), "what is watched is nobody's business");
            assert!(may_sync(&Origin::Commands { user: user() }, &request, &watched).is_ok(), "{request:?}");
        }
    }

    #[test]
    fn a_hook_follows_what_it_knows() {
        let hook = Origin::Hooks { user: "git".into() };
        for (commit, allowed) in [("1a2b3c4".to_owned(), false), ("a".repeat(40), true), ("z".repeat(40), false)] {
            assert_eq!(may_follow(&hook, &commit).is_ok(), allowed, "{commit}");
        }
    }

    #[tokio::test]
    async fn a_hook_that_asks_again_waits_and_shares_the_next_sync_with_others() {
        let turns = HookTurns::default();
        let turn = |user: &str, repository: &str| {
            let (origin, repository) = (Origin::Hooks { user: user.into() }, repository.into());
            let turns = &turns;
            async move { turns.turn(&origin, &repository).await }
        };
        assert!(turn("ann", "shop").now_or_never().is_some());
        assert!(turn("ann", "bank").now_or_never().is_some(), "another repository is another matter");
        assert!(turn("ann", "shop").now_or_never().is_none());
        let command = Origin::Commands { user: "ann".into() };
        assert!(turns.turn(&command, &"shop".into()).now_or_never().is_some());

        let quick = HookTurns::spaced(Duration::from_millis(100));
        let (hook, shop, begun) = (Origin::Hooks { user: "ann".into() }, "shop".into(), Instant::now());
        let all = join_all((0..10).map(|_| quick.turn(&hook, &shop))).await;
        assert_eq!(all.len(), 10);
        assert!((1..=9).contains(&(begun.elapsed().as_millis() / 100)), "all but the first wait once");
    }

    #[tokio::test]
    async fn a_user_whose_syncs_take_long_keeps_no_other_from_theirs() {
        let turns = HookTurns::default();
        let turn = async |user: &str, repository: String| {
            turns.turn(&Origin::Hooks { user: user.into() }, &repository.as_str().into()).await
        };
        let mut kept = Vec::new();
        while let Some(share) = turn("mallory", format!("shop-{}", kept.len())).now_or_never() {
            kept.push(share);
        }
        assert!((1..AT_ONCE).contains(&kept.len()), "{}", kept.len());
        assert!(turn("ann", "another".into()).now_or_never().is_some());
    }
}
