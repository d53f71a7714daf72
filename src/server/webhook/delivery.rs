//! Which deliveries were taken before. Hosts deliver again when an answer was lost, and attackers replay.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::clock::Clock;
use crate::model::ids::RepositoryName;
use crate::store::{Store, Transaction, Write};

type Key = (RepositoryName, String);

/// The deliveries of all repositories.
pub(super) struct Deliveries {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// Those that are being taken, so that of two equal ones at once only one is.
    under_way: Mutex<HashSet<Key>>,
}

impl Deliveries {
    pub(super) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, under_way: Mutex::default() }
    }

    /// Takes a delivery; `None` if it was, or is just being, taken. If the store cannot tell, it counts as new: to look
    /// once too often is better than not to sync.
    pub(super) async fn claim(&self, repository: &RepositoryName, id: &str) -> Option<Claim<'_>> {
        let key = (repository.clone(), id.to_owned());
        if !self.under_way().insert(key.clone()) {
            return None;
        }
        let claim = Claim { deliveries: self, key };
        match self.store.was_delivered(repository, id).await {
            Ok(true) => None,
            Ok(false) => Some(claim),
            Err(failure) => {
                tracing::warn!(%repository, problem = failure.one_line(), "cannot tell whether a webhook is a duplicate");
                Some(claim)
            }
        }
    }

    fn under_way(&self) -> std::sync::MutexGuard<'_, HashSet<Key>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A delivery that is being taken.
pub(super) struct Claim<'a> {
    deliveries: &'a Deliveries,
    key: Key,
}

impl Claim<'_> {
    /// Remembers that the delivery was taken. It is remembered after the sync was asked for, so that a crash between
    /// the two lets the host deliver again.
    pub(super) async fn taken(self) {
        let (repository, id) = self.key.clone();
        let write = Write::Delivery { repository, id, at: self.deliveries.clock.now() };
        let committed = self.deliveries.store.commit(Transaction::of(vec![write])).await;
        if let Err(error) = committed {
            tracing::warn!(repository = %self.key.0, ?error, "cannot remember a webhook delivery");
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.deliveries.under_way().remove(&self.key);
    }
}
