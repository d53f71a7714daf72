//! Who is behind with their work. New work is admitted only while nobody is, so that what is under way stays bounded,
//! however much waits, and whoever comes later is not behind all of it.

use std::collections::BTreeSet;

use tokio::sync::watch;

/// Who is behind.
#[derive(Debug, Default)]
pub struct Pace(watch::Sender<BTreeSet<String>>);

impl Pace {
    /// `who` has more to do than they do at once, or no longer.
    pub fn set_behind(&self, who: &str, behind: bool) {
        self.0.send_if_modified(|all| if behind { all.insert(who.to_owned()) } else { all.remove(who) });
    }

    /// Waits until nobody is behind.
    pub async fn caught_up(&self) {
        // It fails only when nobody can be behind any more.
        self.0.subscribe().wait_for(BTreeSet::is_empty).await.ok();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn everybody_has_to_catch_up() {
        let pace = Pace::default();
        pace.set_behind("runs", true);
        pace.set_behind("images", true);
        pace.set_behind("runs", false);
        assert!(pace.caught_up().now_or_never().is_none());
        pace.set_behind("images", false);
        assert!(pace.caught_up().now_or_never().is_some());
    }
}
