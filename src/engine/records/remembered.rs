//! What was known of records before a decision.
//!
//! A decision may be made on that, because its transaction names what it was made on: where that is no longer so, it is
//! refused, and the decision made anew on what is read. One that writes nothing has no transaction, and is to be made on what
//! was read for it ([`Records::rest_on_memory`]).
//!
//! Fewer rounds are made where what is known of one record leads to others that a decision about it asks for; those count only
//! if it does.

use std::collections::btree_map::Entry as BTreeEntry;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Entry, Found, Lookup, Records, Stored, Table};
use crate::model::hold::ProjectHolds;
use crate::model::ids::{ConfigKey, ProjectName, RepositoryName, RunId, ServiceKey};
use crate::model::run::Run;
use crate::model::slot::{PassedKey, PassedState, SlotState};
use crate::model::state::{ConfigState, ObjectState, RepositoryState, Versioned};
use crate::model::transaction::{ObjectPlace, RecordKey, Write};
use crate::model::unique_name::{NameOwner, UniqueName};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($key:ty, $value:ty) in $table:ident),* $(,)?) => {
        /// A record as it was once, or that there was none.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Remembered {
            $($(#[$doc])* $kind($key, Stored<$value>),)*
        }

        impl Remembered {
            /// What it is of.
            pub fn key(&self) -> RecordKey {
                match self {
                    $(Remembered::$kind(key, _) => key.clone().into(),)*
                }
            }
        }

        impl Records {
            /// Takes a record as it was read for this decision.
            pub fn read(&mut self, read: Remembered) {
                match read {
                    $(Remembered::$kind(key, stored) => drop(self.$table.0.insert(key, Entry::new(stored, None))),)*
                }
            }

            /// Takes what is remembered of a record that was not read. Says whether it was not known by then.
            fn take(&mut self, remembered: Remembered) -> bool {
                match remembered {
                    $(Remembered::$kind(key, stored) => self.$table.recall(key, stored),)*
                }
            }

            /// Whether the decision is made on anything that was not read for it.
            pub fn rest_on_memory(&self) -> bool {
                self.found_before || !self.assumed.is_empty() $(|| self.$table.rests_on_memory())*
            }

            /// Whether everything is as it was read.
            pub fn are_unchanged(&self) -> bool {
                $(self.$table.is_unchanged())&&*
            }
        }
    };
}

kinds! {
    /// A run.
    Run(RunId, Run) in runs,
    /// A deployment config.
    Config(ConfigKey, ConfigState) in configs,
    /// Any other object.
    Object(ObjectPlace, ObjectState) in objects,
    /// A repository.
    Repository(RepositoryName, RepositoryState) in repositories,
    /// The slot of a service in a stage.
    Slot(ServiceKey, SlotState) in slots,
    /// Whether content has passed a stage.
    Passed(PassedKey, PassedState) in passed,
    /// The holds of a project.
    Holds(ProjectName, ProjectHolds) in holds,
    /// Who has a name.
    Name(UniqueName, NameOwner) in names,
}

impl<K: Ord, V: PartialEq> Table<K, V> {
    fn recall(&mut self, key: K, stored: Stored<V>) -> bool {
        match self.0.entry(key) {
            BTreeEntry::Occupied(_) => false,
            BTreeEntry::Vacant(vacant) => {
                vacant.insert(Entry::recalled(stored));
                true
            }
        }
    }

    fn rests_on_memory(&self) -> bool {
        self.0.values().any(|entry| entry.recalled && entry.counts.load(Ordering::Relaxed))
    }

    fn is_unchanged(&self) -> bool {
        self.0.values().all(|entry| entry.change().is_none())
    }
}

impl Remembered {
    /// What a record is once it was written; nothing, if no record is.
    pub fn after(write: &Write) -> Option<Self> {
        Some(match write {
            Write::Run(it) => Remembered::Run(it.value.id().clone(), next(it)),
            Write::Config(it) => Remembered::Config(it.value.key.clone(), next(it)),
            Write::RemoveConfig(it) => Remembered::Config(it.value.clone(), None),
            Write::Object(it) => Remembered::Object((&*it.value).into(), next(it)),
            Write::RemoveObject(it) => Remembered::Object(it.value.clone(), None),
            Write::Repository(it) => Remembered::Repository(it.value.name.clone(), next(it)),
            Write::RemoveRepository(it) => Remembered::Repository(it.value.clone(), None),
            Write::Slot(it) => Remembered::Slot(it.value.service.clone(), next(it)),
            Write::Passed(it) => Remembered::Passed(it.value.key.clone(), next(it)),
            Write::RemovePassed(it) => Remembered::Passed(it.value.clone(), None),
            Write::Holds(it) => Remembered::Holds(it.value.project.clone(), next(it)),
            Write::Name(it) => Remembered::Name(it.value.name.clone(), next(it)),
            Write::FreeName(it) => Remembered::Name(it.value.clone(), None),
            Write::Event { .. }
            | Write::Ask { .. }
            | Write::AskOvertaken { .. }
            | Write::Withdraw { .. }
            | Write::Done(_)
            | Write::Postpone { .. }
            | Write::Await { .. }
            | Write::Wake { .. }
            | Write::Revive { .. }
            | Write::Plan(_)
            | Write::Revision(_)
            | Write::Posted { .. }
            | Write::WebhookCalls { .. }
            | Write::Tags { .. }
            | Write::Delivery { .. } => return None,
        })
    }

    /// Whether it is a run that nothing happens to any more.
    pub fn is_over(&self) -> bool {
        matches!(self, Remembered::Run(_, Some(run)) if run.value.is_ended())
    }

    /// What most decisions about this record ask for next.
    fn companions(&self) -> Vec<RecordKey> {
        match self {
            Remembered::Run(_, Some(run)) => {
                let service = run.value.service();
                let (repository, _) = run.value.revision();
                let mut asked = vec![
                    RecordKey::Repository(repository.clone()),
                    RecordKey::Holds(service.project.clone()),
                    RecordKey::Slot(service),
                ];
                if let Run::Deployment(run) = &*run.value {
                    asked.push(RecordKey::Config(run.config.clone()));
                }
                asked
            }
            Remembered::Slot(_, Some(slot)) => slot.value.open().cloned().map(RecordKey::Run).collect(),
            _ => Vec::new(),
        }
    }
}

/// What is stored after a write.
fn next<V>(written: &Versioned<Arc<V>>) -> Stored<V> {
    Some(Versioned { version: written.version + 1, value: Arc::clone(&written.value) })
}

impl Records {
    /// Nothing was read yet, and what is remembered will do.
    pub fn trusting() -> Self {
        Self { trusts: true, ..Self::default() }
    }

    /// Takes for granted that nothing with an id was told before: whoever remembers it is refused if it was. Says whether
    /// that is what is asked.
    pub fn assume(&mut self, lookup: &Lookup) -> bool {
        let may = self.trusts && matches!(lookup, Lookup::WasDelivered(..));
        if may {
            self.assumed.push(lookup.clone());
            self.found(lookup.clone(), Found::Number(0));
        }
        may
    }

    /// Takes what an earlier lookup found, if that will do. Says whether it does.
    pub fn recall_lookup(&mut self, lookup: &Lookup, memory: impl FnOnce() -> Option<Found>) -> bool {
        let Some(found) = self.trusts.then(memory).flatten() else { return false };
        self.found_before = true;
        self.found(lookup.clone(), found);
        true
    }

    /// Whether these writes, if they are not refused, prove all that was taken for granted.
    pub fn are_proved_by(&self, writes: &[Write]) -> bool {
        let proves = |write: &Write, assumed: &Lookup| match (write, assumed) {
            (Write::Delivery { repository, id, .. }, Lookup::WasDelivered(of, told)) => (repository, id) == (of, told),
            _ => false,
        };
        self.assumed.iter().all(|assumed| writes.iter().any(|write| proves(write, assumed)))
    }

    /// There is no run with an identity that was just made: it can only be written as a new one.
    pub(super) fn assume_absent(&mut self, run: &RunId) {
        if self.trusts {
            self.runs.recall(run.clone(), None);
        }
    }

    /// Takes a record from what is remembered, and with it what a decision about it is likely to ask for. Says whether it was
    /// there.
    pub fn recall(&mut self, key: &RecordKey, memory: impl Fn(&RecordKey) -> Option<Remembered>) -> bool {
        let Some(first) = self.trusts.then(|| memory(key)).flatten() else { return false };
        let mut found = vec![first];
        while let Some(remembered) = found.pop() {
            let companions = remembered.companions();
            if self.take(remembered) {
                found.extend(companions.iter().filter_map(&memory));
            }
        }
        true
    }
}
