//! Records as they were read or committed last, so that a decision does not ask the store again for each of them.
//!
//! What is remembered may be old: retention and other processes write past it. That costs a decision a round and no more,
//! because its transaction names what it was made on. What a reader has found is not kept if the record was written while it
//! was under way, and of writes that overlap none is: which of them was the last is only known to the store.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashlink::LruCache;

use crate::engine::records::{Found, Lookup, Remembered};
use crate::error::Result;
use crate::model::state::Versioned;
use crate::model::transaction::Write;
use crate::store::{ReadStore, RecordKey, Transaction};

/// So many records are remembered: those of a thousand sequences that are under way, some kilobytes each.
const MOST: usize = 4096;

/// What so many lookups have found of plans is remembered: what is about one service, which is small.
const MOST_LOOKUPS: usize = 512;

/// The records that were used last.
#[derive(Debug)]
pub(super) struct Recent {
    places: Mutex<LruCache<RecordKey, Place>>,
    lookups: Mutex<Lookups>,
    turns: AtomicU64,
}

/// What was found of plans since one was written.
#[derive(Debug)]
struct Lookups {
    /// When somebody last began or ended to write one.
    turn: Turn,
    found: LruCache<Lookup, Found>,
}

/// What is remembered of a record.
#[derive(Debug)]
struct Place {
    /// When somebody last began or ended to write it, or when it was first asked for.
    turn: Turn,
    known: Option<Remembered>,
}

/// A time, of which each comes once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn(u64);

/// What is being written to the store.
#[derive(Debug)]
pub(super) struct Writing {
    begun: Turn,
    written: Vec<(RecordKey, Remembered)>,
    /// What else it was decided on.
    read: Vec<RecordKey>,
    /// Whether a plan is among it.
    plans: bool,
}

impl Default for Recent {
    fn default() -> Self {
        Self::of(MOST)
    }
}

impl Recent {
    /// Remembers the last `most` records.
    pub(super) fn of(most: usize) -> Self {
        let lookups = Lookups { turn: Turn(0), found: LruCache::new(MOST_LOOKUPS) };
        Self { places: Mutex::new(LruCache::new(most)), lookups: Mutex::new(lookups), turns: AtomicU64::default() }
    }

    /// What is remembered of a record.
    pub(super) fn known(&self, key: &RecordKey) -> Option<Remembered> {
        self.places().get(key)?.known.clone()
    }

    /// Somebody asks the store for a record.
    pub(super) fn ask(&self, key: &RecordKey) -> Turn {
        let mut places = self.places();
        if let Some(place) = places.get(key) {
            return place.turn;
        }
        let turn = self.next();
        places.insert(key.clone(), Place { turn, known: None });
        turn
    }

    /// What was found by whoever asked at `asked`.
    pub(super) fn read(&self, asked: Turn, found: &Remembered) {
        if let Some(place) = self.places().get_mut(&found.key())
            && place.turn == asked
        {
            place.known = Some(found.clone());
        }
    }

    /// What a lookup has found of plans.
    pub(super) fn found(&self, lookup: &Lookup) -> Option<Found> {
        self.lookups().found.get(lookup).cloned()
    }

    /// Somebody looks something up of plans.
    pub(super) fn look_up(&self) -> Turn {
        self.lookups().turn
    }

    /// What was found by whoever looked it up at `asked`.
    pub(super) fn has_found(&self, asked: Turn, lookup: &Lookup, found: &Found) {
        let mut lookups = self.lookups();
        if lookups.turn == asked {
            lookups.found.insert(lookup.clone(), found.clone());
        }
    }

    /// A plan is being written, or was: what was found before may be another by then.
    fn forget_lookups(&self) {
        let turn = self.next();
        let mut lookups = self.lookups();
        lookups.turn = turn;
        lookups.found.clear();
    }

    /// A transaction goes to the store.
    pub(super) fn begin(&self, transaction: &Transaction) -> Writing {
        let plans = transaction.writes.iter().any(|write| matches!(write, Write::Plan(_) | Write::Revision(_)));
        if plans {
            self.forget_lookups();
        }
        let begun = self.next();
        let records = transaction.writes.iter().filter_map(Remembered::after);
        let written: Vec<_> = records.map(|record| (record.key(), record)).collect();
        let mut places = self.places();
        for (key, _) in &written {
            match places.get_mut(key) {
                Some(place) => place.turn = begun,
                None => drop(places.insert(key.clone(), Place { turn: begun, known: None })),
            }
        }
        let read = transaction.reads.iter().map(|read| read.key.clone()).collect();
        Writing { begun, written, read, plans }
    }

    /// The transaction was committed: what it wrote is what there is, unless somebody else was writing it as well.
    pub(super) fn committed(&self, writing: Writing) {
        if writing.plans {
            self.forget_lookups();
        }
        let ended = self.next();
        let mut places = self.places();
        let keys: Vec<RecordKey> = writing.written.iter().map(|(key, _)| key.clone()).collect();
        for (key, record) in writing.written {
            if let Some(place) = places.get_mut(&key) {
                let was_alone = place.turn == writing.begun;
                place.known = Some(record).filter(|record| was_alone && !record.is_over());
            }
        }
        for key in keys {
            if let Some(place) = places.get_mut(&key) {
                place.turn = ended;
            }
        }
    }

    /// The transaction was not committed, or nobody knows: something of what it was decided on is another thing by now.
    pub(super) fn refused(&self, writing: Writing) {
        if writing.plans {
            self.forget_lookups();
        }
        let mut places = self.places();
        for key in writing.written.into_iter().map(|(key, _)| key).chain(writing.read) {
            places.remove(&key);
        }
    }

    /// Everything that is remembered.
    pub(super) fn all(&self) -> Vec<Remembered> {
        self.places().iter().filter_map(|(_, place)| place.known.clone()).collect()
    }

    /// Everything that was found of plans.
    pub(super) fn all_found(&self) -> Vec<(Lookup, Found)> {
        self.lookups().found.iter().map(|(lookup, found)| (lookup.clone(), found.clone())).collect()
    }

    /// Others have written.
    pub(super) fn forget(&self) {
        self.places().clear();
        self.forget_lookups();
    }

    fn next(&self) -> Turn {
        Turn(self.turns.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn lookups(&self) -> MutexGuard<'_, Lookups> {
        self.lookups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn places(&self) -> MutexGuard<'_, LruCache<RecordKey, Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A record as it is stored.
pub(super) async fn stored(store: &dyn ReadStore, key: RecordKey) -> Result<Remembered> {
    fn shared<V>(stored: Option<Versioned<V>>) -> Option<Versioned<Arc<V>>> {
        stored.map(Versioned::shared)
    }
    Ok(match key {
        RecordKey::Run(key) => {
            let run = shared(store.run(&key).await?);
            Remembered::Run(key, run)
        }
        RecordKey::Config(key) => {
            let config = shared(store.config(&key).await?);
            Remembered::Config(key, config)
        }
        RecordKey::Object(place) => {
            let object = shared(store.object(&place.project, &place.stage, &place.key).await?);
            Remembered::Object(place, object)
        }
        RecordKey::Repository(key) => {
            let repository = shared(store.repository(&key).await?);
            Remembered::Repository(key, repository)
        }
        RecordKey::Slot(key) => {
            let slot = shared(store.slot(&key).await?);
            Remembered::Slot(key, slot)
        }
        RecordKey::Passed(key) => {
            let passed = shared(store.passed(&key).await?);
            Remembered::Passed(key, passed)
        }
        RecordKey::Holds(key) => {
            let holds = shared(store.holds_of(&key).await?);
            Remembered::Holds(key, holds)
        }
        RecordKey::Name(key) => {
            let owner = shared(store.name_owner(&key).await?);
            Remembered::Name(key, owner)
        }
    })
}

#[cfg(test)]
mod tests;
