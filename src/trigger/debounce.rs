//! Many requests, few syncs.

use tokio::sync::watch;

/// Requests for a sync of one repository, which anybody may make and one task serves.
///
/// However many come while a sync is under way, exactly one more sync follows: one that began after the last request has
/// seen everything that the request was about.
#[derive(Debug)]
pub struct Debounce {
    count: watch::Sender<Count>,
}

/// How many requests there were, in all.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    requested: u64,
    /// Requests before the last sync began.
    begun: u64,
    /// Requests before the last sync that has ended began.
    done: u64,
}

/// A sync that is under way; dropping it ends it, whatever came of it.
#[derive(Debug)]
pub struct Sync<'a> {
    requests: &'a Debounce,
    begun: u64,
    /// Whether anybody asked for it.
    pub was_requested: bool,
}

impl Default for Debounce {
    fn default() -> Self {
        Self::new()
    }
}

impl Debounce {
    /// Nothing was requested yet.
    pub fn new() -> Self {
        Self { count: watch::Sender::new(Count::default()) }
    }

    /// Asks for a sync and goes on.
    pub fn request(&self) {
        self.count.send_modify(|count| count.requested += 1);
    }

    /// Asks for a sync and waits until one has ended that began after now.
    pub async fn request_and_wait(&self) {
        let mut own = 0;
        self.count.send_modify(|count| {
            count.requested += 1;
            own = count.requested;
        });
        self.reach(|count| count.done >= own).await;
    }

    /// Waits until a sync is requested, and begins it.
    pub async fn next(&self) -> Sync<'_> {
        loop {
            self.reach(|count| count.requested > count.begun).await;
            let sync = self.begin();
            if sync.was_requested {
                return sync;
            }
        }
    }

    /// Begins a sync, whether or not one was requested.
    pub fn begin(&self) -> Sync<'_> {
        let (mut begun, mut was_requested) = (0, false);
        self.count.send_if_modified(|count| {
            was_requested = count.requested > count.begun;
            count.begun = count.requested;
            begun = count.begun;
            was_requested
        });
        Sync { requests: self, begun, was_requested }
    }

    async fn reach(&self, condition: impl FnMut(&Count) -> bool) {
        // The sender lives as long as `self`, so this cannot fail.
        drop(self.count.subscribe().wait_for(condition).await);
    }
}

impl Drop for Sync<'_> {
    fn drop(&mut self) {
        self.requests.count.send_modify(|count| count.done = count.done.max(self.begun));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::FutureExt;
    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_thousand_requests_at_once_cause_one_sync_in_flight_and_one_after_it() {
        let requests = Arc::new(Debounce::new());
        requests.request();
        let first = requests.next().await;
        let mut requesting = JoinSet::new();
        for _ in 0..1_000 {
            let requests = Arc::clone(&requests);
            requesting.spawn(async move { requests.request() });
        }
        requesting.join_all().await;
        drop(first);
        drop(requests.next().now_or_never().expect("one more sync is requested"));
        assert!(requests.next().now_or_never().is_none(), "and no third");
    }

    #[tokio::test]
    async fn nothing_begins_before_it_is_requested() {
        let requests = Debounce::new();
        assert!(requests.next().now_or_never().is_none());
        requests.request();
        assert!(requests.next().now_or_never().is_some());
    }

    #[tokio::test]
    async fn who_waits_is_answered_by_a_sync_that_began_later() {
        let requests = Debounce::new();
        requests.request();
        let under_way = requests.next().await;
        let mut waiting = Box::pin(requests.request_and_wait());
        assert!((&mut waiting).now_or_never().is_none());
        drop(under_way);
        assert!((&mut waiting).now_or_never().is_none(), "that sync may have read the ref before");
        let later = requests.next().await;
        assert!((&mut waiting).now_or_never().is_none());
        drop(later);
        assert!((&mut waiting).now_or_never().is_some());
    }

    #[tokio::test]
    async fn one_that_nobody_asked_for_serves_whoever_asks_before_it_begins() {
        let requests = Debounce::new();
        assert!(!requests.begin().was_requested);
        let mut waiting = Box::pin(requests.request_and_wait());
        assert!((&mut waiting).now_or_never().is_none());
        let sync = requests.begin();
        assert!(sync.was_requested);
        drop(sync);
        assert!(waiting.now_or_never().is_some());
        assert!(requests.next().now_or_never().is_none());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_thousand_that_wait_while_a_sync_is_under_way_share_the_next_one() {
        let requests = Arc::new(Debounce::new());
        requests.request();
        let under_way = requests.next().await;
        let mut waiting = JoinSet::new();
        for _ in 0..1_000 {
            let requests = Arc::clone(&requests);
            waiting.spawn(async move { requests.request_and_wait().await });
        }
        requests.reach(|count| count.requested == 1_001).await;
        drop(under_way);
        drop(requests.next().await);
        waiting.join_all().await;
        assert!(requests.next().now_or_never().is_none(), "one sync served them all");
    }
}
