//! Many calls, few looks.

use tokio::sync::watch;

/// Rung by whoever wants a repository to be looked at; heard by the one task that looks.
///
/// However often it rings while a look is under way, exactly one more look follows: a look that began after the last
/// ring has seen everything that the ring was about.
#[derive(Debug)]
pub struct Bell {
    count: watch::Sender<Count>,
}

/// How many rings there were, in all.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    rung: u64,
    /// Rings before the last look began.
    heard: u64,
    /// Rings before the last look that has ended began.
    answered: u64,
}

/// A look that is under way; dropping it ends it, whatever came of it.
#[derive(Debug)]
pub struct Look<'a> {
    bell: &'a Bell,
    heard: u64,
}

impl Default for Bell {
    fn default() -> Self {
        Self::new()
    }
}

impl Bell {
    /// A bell that has not rung.
    pub fn new() -> Self {
        Self { count: watch::Sender::new(Count::default()) }
    }

    /// Asks for a look and goes on.
    pub fn ring(&self) {
        self.count.send_modify(|count| count.rung += 1);
    }

    /// Asks for a look and waits until one has ended that began after now.
    pub async fn ring_and_wait(&self) {
        let mut own = 0;
        self.count.send_modify(|count| {
            count.rung += 1;
            own = count.rung;
        });
        self.reach(|count| count.answered >= own).await;
    }

    /// Waits until a look is asked for, and begins it.
    pub async fn next(&self) -> Look<'_> {
        loop {
            self.reach(|count| count.rung > count.heard).await;
            let mut heard = None;
            self.count.send_if_modified(|count| {
                if count.rung > count.heard {
                    count.heard = count.rung;
                    heard = Some(count.rung);
                }
                heard.is_some()
            });
            if let Some(heard) = heard {
                return Look { bell: self, heard };
            }
        }
    }

    async fn reach(&self, condition: impl FnMut(&Count) -> bool) {
        // The sender lives as long as `self`, so this cannot fail.
        drop(self.count.subscribe().wait_for(condition).await);
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        self.bell.count.send_modify(|count| count.answered = count.answered.max(self.heard));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures::FutureExt;
    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_thousand_rings_at_once_cause_one_look_in_flight_and_one_after_it() {
        let bell = Arc::new(Bell::new());
        bell.ring();
        let first = bell.next().await;
        let mut ringing = JoinSet::new();
        for _ in 0..1_000 {
            let bell = Arc::clone(&bell);
            ringing.spawn(async move { bell.ring() });
        }
        ringing.join_all().await;
        drop(first);
        drop(bell.next().now_or_never().expect("one more look is asked for"));
        assert!(bell.next().now_or_never().is_none(), "and no third");
    }

    #[tokio::test]
    async fn nobody_looks_before_the_bell_rings() {
        let bell = Bell::new();
        assert!(bell.next().now_or_never().is_none());
        bell.ring();
        assert!(bell.next().now_or_never().is_some());
    }

    #[tokio::test]
    async fn who_waits_is_answered_by_a_look_that_began_later() {
        let bell = Bell::new();
        bell.ring();
        let under_way = bell.next().await;
        let mut waiting = Box::pin(bell.ring_and_wait());
        assert!((&mut waiting).now_or_never().is_none());
        drop(under_way);
        assert!((&mut waiting).now_or_never().is_none(), "that look may have read the ref before");
        let later = bell.next().await;
        assert!((&mut waiting).now_or_never().is_none());
        drop(later);
        assert!((&mut waiting).now_or_never().is_some());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_thousand_waiters_share_few_looks_and_none_is_forgotten() {
        let bell = Arc::new(Bell::new());
        let looks = Arc::new(AtomicU32::new(0));
        let looking = {
            let (bell, looks) = (Arc::clone(&bell), Arc::clone(&looks));
            tokio::spawn(async move {
                loop {
                    let look = bell.next().await;
                    looks.fetch_add(1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    drop(look);
                }
            })
        };
        let mut waiting = JoinSet::new();
        for _ in 0..1_000 {
            let bell = Arc::clone(&bell);
            waiting.spawn(async move { bell.ring_and_wait().await });
        }
        waiting.join_all().await;
        looking.abort();
        assert!((1..=1_000).contains(&looks.load(Ordering::SeqCst)));
    }
}
