//! What clients share. Each gets at most a part of what is left, so that others find room whatever those before them do:
//! one that is alone gets a fifth of all, and ten that take all they can leave a tenth.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::origin::Client;

/// A client may hold one of so many parts of what is left.
const PARTS: usize = 4;

/// Something of which there is a number, such as connections or bytes of memory.
#[derive(Debug)]
pub(super) struct Shares {
    /// What a client gets of it that is alone.
    most: usize,
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug)]
struct State {
    free: usize,
    held: HashMap<Client, usize>,
}

/// What a client holds until it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    of: Arc<Shares>,
    client: Client,
    amount: usize,
}

impl Shares {
    /// So many, all free.
    pub(super) fn new(total: usize) -> Arc<Self> {
        let state = Mutex::new(State { free: total, held: HashMap::new() });
        Arc::new(Self { most: total / (PARTS + 1), state, freed: Notify::new() })
    }

    /// Takes so many, or the most that a client can get; `None` if that is more than its part.
    pub(super) fn try_take(self: &Arc<Self>, client: &Client, amount: usize) -> Option<Share> {
        let amount = amount.min(self.most);
        let mut state = self.state();
        let held = state.held.get(client).copied().unwrap_or(0) + amount;
        if held.saturating_mul(PARTS).saturating_add(amount) > state.free {
            return None;
        }
        state.free -= amount;
        state.held.insert(client.clone(), held);
        Some(Share { of: self.clone(), client: client.clone(), amount })
    }

    /// Takes so many, or the most that a client can get, as soon as that is possible.
    pub(super) async fn take(self: &Arc<Self>, client: &Client, amount: usize) -> Share {
        loop {
            // Before looking, so that what is freed meanwhile is not missed.
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            if let Some(share) = self.try_take(client, amount) {
                return share;
            }
            freed.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = self.of.state();
        state.free += self.amount;
        if let Entry::Occupied(mut held) = state.held.entry(self.client.clone()) {
            *held.get_mut() -= self.amount;
            if *held.get() == 0 {
                held.remove();
            }
        }
        drop(state);
        self.of.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn user(name: &str) -> Client {
        Client::User(name.into())
    }

    /// What a client gets that takes all it can.
    fn hoard(shares: &Arc<Shares>, client: &Client) -> Vec<Share> {
        std::iter::from_fn(|| shares.try_take(client, 1)).collect()
    }

    #[test]
    fn however_many_take_all_they_can_one_more_gets_something() {
        let shares = Shares::new(1000);
        let hoards: Vec<_> = (0..10).map(|number| hoard(&shares, &user(&number.to_string()))).collect();
        let sizes: Vec<usize> = hoards.iter().map(Vec::len).collect();
        assert_eq!(sizes[..3], [200, 160, 128], "each a fifth of what is left");
        assert!(hoard(&shares, &user("another")).len() > 20, "{sizes:?}");
        drop(hoards);
        assert_eq!(hoard(&shares, &user("another")).len(), 200);
        assert!(shares.state().held.is_empty(), "nobody is remembered who holds nothing");
    }

    #[tokio::test]
    async fn who_waits_gets_what_is_freed_and_too_much_is_cut_to_what_one_can_get() {
        let (shares, ann) = (Shares::new(10), user("ann"));
        let all = shares.take(&ann, 100).await;
        let mut waiting = Box::pin(shares.take(&ann, 1));
        assert!((&mut waiting).now_or_never().is_none());
        assert!(shares.try_take(&user("bob"), 1).is_some(), "another waits for nothing");
        drop(all);
        assert!(waiting.now_or_never().is_some());
    }
}
