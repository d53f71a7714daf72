//! Records as they were committed last, a few of each kind: what was just written is what is asked for next, and from here
//! it comes without a hand-over to a thread, SQL and decoding.
//!
//! Only the thread that writes puts anything here, after each commit and in the order of the commits, before anybody is
//! told of it. So a record here is never older than the last commit that somebody knows of; a reader beside a commit sees
//! the record before it, as one that read the file a moment earlier.

use std::fmt;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hashlink::LruCache;

use crate::model::ids::{ConfigKey, RunId, ServiceKey};
use crate::model::run::Run;
use crate::model::slot::SlotState;
use crate::model::state::{ConfigState, Versioned};
use crate::model::transaction::Write;

/// How many records of each kind: those of the deployments that are under way at once.
const CAPACITY: usize = 256;

/// The records that were committed last.
#[derive(Debug)]
pub(super) struct Recent {
    /// Runs.
    pub(super) runs: Newest<RunId, Run>,
    /// Deployment configs.
    pub(super) configs: Newest<ConfigKey, ConfigState>,
    /// Slots.
    pub(super) slots: Newest<ServiceKey, SlotState>,
}

/// Records of one kind.
pub(super) struct Newest<K, V>(Mutex<LruCache<K, Versioned<V>>>);

impl Recent {
    /// With nothing yet.
    pub(super) fn new() -> Self {
        Self { runs: Newest::new(CAPACITY), configs: Newest::new(CAPACITY), slots: Newest::new(CAPACITY) }
    }

    /// Takes over what a transaction wrote, once it is committed.
    pub(super) fn committed(&self, writes: Vec<Write>) {
        for write in writes {
            match write {
                Write::Run(run) => self.runs.put(run.value.id().clone(), *run),
                Write::Config(config) => self.configs.put(config.value.key.clone(), *config),
                Write::RemoveConfig(config) => self.configs.remove(&config.value),
                Write::Slot(slot) => self.slots.put(slot.value.service.clone(), *slot),
                _ => {}
            }
        }
    }

    /// Records were deleted of which no transaction says which.
    pub(super) fn forget(&self) {
        self.runs.known().clear();
        self.configs.known().clear();
        self.slots.known().clear();
    }
}

impl<K: Eq + Hash, V: Clone> Newest<K, V> {
    fn new(capacity: usize) -> Self {
        Self(Mutex::new(LruCache::new(capacity)))
    }

    /// The record, if it is here.
    pub(super) fn get(&self, key: &K) -> Option<Versioned<V>> {
        self.known().get(key).cloned()
    }

    /// The record has become the next version of what it was decided on.
    fn put(&self, key: K, Versioned { version, value }: Versioned<V>) {
        self.known().insert(key, Versioned { version: version + 1, value });
    }

    fn remove(&self, key: &K) {
        self.known().remove(key);
    }
}

impl<K, V> Newest<K, V> {
    fn known(&self) -> MutexGuard<'_, LruCache<K, Versioned<V>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> fmt::Debug for Newest<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Newest").finish_non_exhaustive()
    }
}
