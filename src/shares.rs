//! What is shared among many, such as clients or services. Each gets at most a part of what is left, so that others find room
//! whatever those before them do: where that is a fifth, ten that take all they can leave a tenth.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Something of which there is a number, such as connections or bytes of memory.
#[derive(Debug)]
pub(crate) struct Shares<K: Eq + Hash> {
    /// Who holds something may have one of so many parts of that and of what is left.
    parts: usize,
    /// What one gets of it that is alone.
    most: usize,
    state: Mutex<State<K>>,
    freed: Notify,
}

#[derive(Debug)]
struct State<K> {
    free: usize,
    held: HashMap<K, usize>,
}

/// What somebody holds until it is dropped.
#[derive(Debug)]
pub(crate) struct Share<K: Eq + Hash> {
    of: Arc<Shares<K>>,
    holder: K,
    amount: usize,
}

impl<K: Eq + Hash + Clone> Shares<K> {
    /// So many, all free. One that is alone gets one of `parts`.
    pub(crate) fn new(total: usize, parts: usize) -> Arc<Self> {
        let state = Mutex::new(State { free: total, held: HashMap::new() });
        Arc::new(Self { parts, most: total / parts, state, freed: Notify::new() })
    }

    /// Takes so many, or the most that one can get; `None` if that is more than its part.
    pub(crate) fn try_take(self: &Arc<Self>, holder: &K, amount: usize) -> Option<Share<K>> {
        let amount = amount.min(self.most);
        let mut state = self.state();
        let held = state.held.get(holder).copied().unwrap_or(0) + amount;
        if held.saturating_mul(self.parts - 1).saturating_add(amount) > state.free {
            return None;
        }
        state.free -= amount;
        state.held.insert(holder.clone(), held);
        Some(Share { of: self.clone(), holder: holder.clone(), amount })
    }

    /// Takes so many, or the most that one can get, as soon as that is possible.
    pub(crate) async fn take(self: &Arc<Self>, holder: &K, amount: usize) -> Share<K> {
        loop {
            // Before looking, so that what is freed meanwhile is not missed.
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            if let Some(share) = self.try_take(holder, amount) {
                return share;
            }
            freed.await;
        }
    }
}

impl<K: Eq + Hash> Shares<K> {
    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash> Drop for Share<K> {
    fn drop(&mut self) {
        let mut state = self.of.state();
        state.free += self.amount;
        let left = state.held.get_mut(&self.holder).map(|held| {
            *held -= self.amount;
            *held
        });
        if left == Some(0) {
            state.held.remove(&self.holder);
        }
        drop(state);
        self.of.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    /// What one gets that takes all it can.
    fn hoard<K: Eq + Hash + Clone>(shares: &Arc<Shares<K>>, holder: &K) -> Vec<Share<K>> {
        std::iter::from_fn(|| shares.try_take(holder, 1)).collect()
    }

    #[test]
    fn however_many_take_all_they_can_one_more_gets_something() {
        let shares = Shares::new(1000, 5);
        let hoards: Vec<_> = (0..10).map(|number| hoard(&shares, &number)).collect();
        let sizes: Vec<usize> = hoards.iter().map(Vec::len).collect();
        assert_eq!(sizes[..3], [200, 160, 128], "each a fifth of what is left");
        assert!(hoard(&shares, &10).len() > 20, "{sizes:?}");
        drop(hoards);
        assert_eq!(hoard(&shares, &10).len(), 200);
        assert!(shares.state().held.is_empty(), "nobody is remembered who holds nothing");
    }

    #[tokio::test]
    async fn who_waits_gets_what_is_freed_and_too_much_is_cut_to_what_one_can_get() {
        let (shares, ann) = (Shares::new(10, 5), "ann");
        let all = shares.take(&ann, 100).await;
        let mut waiting = Box::pin(shares.take(&ann, 1));
        assert!((&mut waiting).now_or_never().is_none());
        assert!(shares.try_take(&"bob", 1).is_some(), "another waits for nothing");
        drop(all);
        assert!(waiting.now_or_never().is_some());
    }
}
