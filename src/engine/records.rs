//! What a decision has read, and what it has made of that.
//!
//! A decision asks for records as it goes. One that was not read yet ends it with [`Undecided::Needs`]: whoever drives
//! it reads the record and decides again from the beginning. So everything that a decision was made on is known here,
//! what is absent included, and becomes the read set of its transaction. A decision about many things that have nothing
//! to do with each other asks for what all of them need at once ([`Needs`]): how often it begins again does not depend
//! on how many they are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Failure;
use crate::model::evaluation::Earlier;
use crate::model::hold::ProjectHolds;
use crate::model::ids::{ConfigKey, Namespace, ProjectName, RepositoryName, RunId, ServiceKey, ServiceName, StageName};
use crate::model::plan::Plan;
use crate::model::rollback::Past;
use crate::model::run::{Run, SequenceRun};
use crate::model::slot::{PassedKey, PassedState, SlotState};
use crate::model::state::{ConfigState, ObjectState, RepositoryState, Version, Versioned};
use crate::model::tag::SeenTags;
use crate::model::time::Timestamp;
use crate::model::transaction::{ObjectPlace, Read, RecordKey, Write};
use crate::model::unique_name::{NameOwner, UniqueName};

mod lookup;
mod remembered;

pub use lookup::{Found, Lookup};
pub use remembered::Remembered;

/// Why there is no decision.
#[derive(Debug)]
pub enum Undecided {
    /// Something must be read first.
    Needs(Vec<Need>),
    /// It must not be; nothing is changed.
    Refused(Failure),
}

/// What several decisions ask for that are made together.
#[derive(Debug, Default)]
pub struct Needs(Vec<Need>);

impl Needs {
    /// What was decided, if nothing is missing for it.
    ///
    /// # Errors
    /// If it is refused.
    pub fn of<T>(&mut self, decided: Result<T, Undecided>) -> Result<Option<T>, Undecided> {
        match decided {
            Ok(answer) => Ok(Some(answer)),
            Err(Undecided::Needs(needs)) => {
                self.0.extend(needs);
                Ok(None)
            }
            Err(refused) => Err(refused),
        }
    }

    /// Nothing was missing.
    ///
    /// # Errors
    /// If something must be read first.
    pub fn none(self) -> Result<(), Undecided> {
        if self.0.is_empty() { Ok(()) } else { Err(Undecided::Needs(self.0)) }
    }
}

impl From<Failure> for Undecided {
    fn from(failure: Failure) -> Self {
        Undecided::Refused(failure)
    }
}

/// What a decision asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// A record; its version becomes part of the transaction.
    Record(RecordKey),
    /// Something that is found by a search; it moves only together with a record that the decision reads as well, unless the lookup
    /// says otherwise.
    Lookup(Box<Lookup>),
    /// An identity that was never given.
    Id,
}

/// Records of one kind.
#[derive(Debug)]
pub struct Table<K, V>(BTreeMap<K, Entry<V>>);

#[derive(Debug)]
struct Entry<V> {
    version: u64,
    stored: Option<Arc<V>>,
    /// What has become of it, once it was changed.
    changed: Option<Option<V>>,
    /// Whose it is, if it was read before anybody knew whether the decision is about that service.
    of: Option<ServiceName>,
    /// Whether the decision is made on it.
    counts: AtomicBool,
    /// Whether it was not read for this decision, but is what was known of it before.
    recalled: bool,
}

/// A record as it is stored, if it is, at its version.
type Stored<V> = Option<Versioned<Arc<V>>>;

impl<V> Entry<V> {
    fn new(stored: Stored<V>, of: Option<ServiceName>) -> Self {
        let (version, stored) = stored.map_or((0, None), |stored| (stored.version, Some(stored.value)));
        let counts = AtomicBool::new(of.is_none());
        Self { version, stored, changed: None, of, counts, recalled: false }
    }

    /// It counts once the decision asks for it.
    fn recalled(stored: Stored<V>) -> Self {
        Self { counts: AtomicBool::new(false), recalled: true, ..Self::new(stored, None) }
    }

    fn now(&self) -> Option<&V> {
        self.changed.as_ref().map_or(self.stored.as_deref(), Option::as_ref)
    }

    /// What has become of it, if that is something else.
    fn change(&self) -> Option<Option<&V>>
    where
        V: PartialEq,
    {
        let changed = self.changed.as_ref()?.as_ref();
        (changed != self.stored.as_deref()).then_some(changed)
    }
}

/// Everything that a decision has read.
#[derive(Debug, Default)]
pub struct Records {
    /// Runs.
    pub runs: Table<RunId, Run>,
    /// Deployment configs.
    pub configs: Table<ConfigKey, ConfigState>,
    /// Other objects.
    pub objects: Table<ObjectPlace, ObjectState>,
    /// Repositories.
    pub repositories: Table<RepositoryName, RepositoryState>,
    /// Slots.
    pub slots: Table<ServiceKey, SlotState>,
    /// What passed.
    pub passed: Table<PassedKey, PassedState>,
    /// Holds.
    pub holds: Table<ProjectName, ProjectHolds>,
    /// Names that only one may have.
    pub names: Table<UniqueName, NameOwner>,
    lookups: BTreeMap<Lookup, Found>,
    ids: Vec<String>,
    ids_used: usize,
    /// Whether what was known before will do.
    trusts: bool,
    /// What is taken for granted of lookups that were not made.
    assumed: Vec<Lookup>,
    /// Whether something was found by an earlier lookup.
    found_before: bool,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Clone + Into<RecordKey>, V: Clone> Table<K, V> {
    /// The record as it is now.
    ///
    /// # Errors
    /// If it was not read yet.
    pub fn get(&self, key: &K) -> Result<Option<&V>, Undecided> {
        let entry = self.0.get(key).ok_or_else(|| needs(key))?;
        entry.counts.store(true, Ordering::Relaxed);
        Ok(entry.now())
    }

    /// The record, to be changed.
    ///
    /// # Errors
    /// If it was not read yet.
    pub fn get_mut(&mut self, key: &K) -> Result<Option<&mut V>, Undecided> {
        let entry = self.0.get_mut(key).ok_or_else(|| needs(key))?;
        *entry.counts.get_mut() = true;
        if entry.changed.is_none() && entry.stored.is_none() {
            return Ok(None);
        }
        Ok(entry.changed.get_or_insert_with(|| entry.stored.as_deref().cloned()).as_mut())
    }

    /// Replaces the record, or removes it.
    ///
    /// # Errors
    /// If it was not read yet.
    pub fn put(&mut self, key: &K, value: Option<V>) -> Result<(), Undecided> {
        let entry = self.0.get_mut(key).ok_or_else(|| needs(key))?;
        *entry.counts.get_mut() = true;
        entry.changed = Some(value);
        Ok(())
    }

    /// Takes over what was read, on which the decision is made.
    pub fn read(&mut self, key: K, stored: Option<Versioned<V>>) {
        self.0.insert(key, Entry::new(stored.map(Versioned::shared), None));
    }

    /// The same; what was read of a service counts only if the decision asks for it, or is about that service
    /// ([`Records::count_on`]). Of what is read twice the first reading stands: if it has moved in between, so does the
    /// decision on it.
    pub fn read_of(&mut self, service: Option<ServiceName>, key: K, stored: Option<Versioned<V>>) {
        self.0.entry(key).or_insert_with(|| Entry::new(stored.map(Versioned::shared), service));
    }

    fn count_on(&self, is_about: &impl Fn(&ServiceName) -> bool) {
        for entry in self.0.values().filter(|entry| entry.of.as_ref().is_some_and(is_about)) {
            entry.counts.store(true, Ordering::Relaxed);
        }
    }

    /// Every record is again as it was read.
    fn forget_changes(&mut self) {
        self.0.values_mut().for_each(|entry| entry.changed = None);
    }

    /// What was changed and is still there: as it was read, if it was there, and as it is now.
    pub fn changed(&self) -> impl Iterator<Item = (Option<&V>, &V)>
    where
        V: PartialEq,
    {
        self.0.values().filter_map(|entry| Some((entry.stored.as_deref(), entry.change()??)))
    }

    /// What was only read goes to `reads`, what was changed becomes a write.
    fn drain(
        self,
        (reads, writes): &mut (&mut Vec<Read>, &mut Vec<Write>),
        put: impl Fn(Versioned<Arc<V>>) -> Write,
        remove: impl Fn(Versioned<K>) -> Option<Write>,
    ) where
        V: PartialEq,
    {
        for (key, entry) in self.0 {
            let (version, is_changed) = (entry.version, entry.change().is_some());
            match entry.changed {
                Some(Some(value)) if is_changed => writes.push(put(Versioned { version, value }.shared())),
                Some(None) if is_changed => writes.extend(remove(Versioned { version, value: key })),
                _ if entry.counts.into_inner() => reads.push(Read { key: key.into(), version }),
                _ => {}
            }
        }
    }
}

fn needs<K: Clone + Into<RecordKey>>(key: &K) -> Undecided {
    Undecided::Needs(vec![Need::Record(key.clone().into())])
}

impl Records {
    /// What a lookup found.
    ///
    /// # Errors
    /// If it was not made yet.
    pub fn lookup(&self, lookup: Lookup) -> Result<&Found, Undecided> {
        self.lookups.get(&lookup).ok_or_else(|| Undecided::Needs(vec![Need::Lookup(Box::new(lookup))]))
    }

    /// A plan that a lookup found.
    ///
    /// # Errors
    /// If it was not made yet.
    pub fn plan(&self, lookup: Lookup) -> Result<Option<&Plan>, Undecided> {
        match self.lookup(lookup)? {
            Found::Plan(plan) => Ok(plan.as_deref()),
            _ => Ok(None),
        }
    }

    /// A number that a lookup found.
    ///
    /// # Errors
    /// If it was not made yet.
    pub fn number(&self, lookup: Lookup) -> Result<u32, Undecided> {
        match self.lookup(lookup)? {
            Found::Number(number) => Ok(*number),
            _ => Ok(0),
        }
    }

    /// The versions in the history of a deployment config, oldest first.
    ///
    /// # Errors
    /// If they were not looked up yet.
    pub fn history(&self, config: &ConfigKey) -> Result<&[Past], Undecided> {
        match self.lookup(Lookup::History(config.clone()))? {
            Found::Versions(versions) => Ok(versions),
            _ => Ok(&[]),
        }
    }

    /// The stages of a project of which anything is left.
    ///
    /// # Errors
    /// If they were not looked up yet.
    pub fn inhabited(&self, project: &ProjectName) -> Result<&BTreeSet<StageName>, Undecided> {
        const NONE: &BTreeSet<StageName> = &BTreeSet::new();
        match self.lookup(Lookup::Inhabited(project.clone()))? {
            Found::Stages(stages) => Ok(stages),
            _ => Ok(NONE),
        }
    }

    /// The namespace in which anything is left of a stage, if anything is.
    ///
    /// # Errors
    /// If it was not looked up yet.
    pub fn lives_in(&self, project: &ProjectName, stage: &StageName) -> Result<Option<&Namespace>, Undecided> {
        match self.lookup(Lookup::LivesIn(project.clone(), stage.clone()))? {
            Found::Namespace(namespace) => Ok(namespace.as_ref()),
            _ => Ok(None),
        }
    }

    /// A time that is looked up, if there is one.
    ///
    /// # Errors
    /// If that was not looked up yet.
    pub fn moment(&self, lookup: Lookup) -> Result<Option<Timestamp>, Undecided> {
        match self.lookup(lookup)? {
            Found::Moment(moment) => Ok(*moment),
            _ => Ok(None),
        }
    }

    /// Earlier evaluations, newest first.
    ///
    /// # Errors
    /// If they were not looked up yet.
    pub fn evaluations(&self, lookup: Lookup) -> Result<&[Earlier], Undecided> {
        match self.lookup(lookup)? {
            Found::Evaluations(earlier) => Ok(earlier),
            _ => Ok(&[]),
        }
    }

    /// The tags that a repository had when they were compared last.
    ///
    /// # Errors
    /// If they were not looked up yet.
    pub fn seen_tags(&self, repository: &RepositoryName) -> Result<Option<&SeenTags>, Undecided> {
        match self.lookup(Lookup::SeenTags(repository.clone()))? {
            Found::Tags(seen) => Ok(seen.as_deref()),
            _ => Ok(None),
        }
    }

    /// Takes over what a lookup found.
    pub fn found(&mut self, lookup: Lookup, found: Found) {
        self.lookups.insert(lookup, found);
    }

    /// The same for a run, of which there is none.
    ///
    /// # Errors
    /// If one must be made first.
    pub fn fresh_run(&mut self) -> Result<RunId, Undecided> {
        let id = RunId::new(self.fresh_id()?);
        self.assume_absent(&id);
        Ok(id)
    }

    /// An identity that was never given; the same one when the decision is made again.
    ///
    /// # Errors
    /// If one must be made first.
    pub fn fresh_id(&mut self) -> Result<String, Undecided> {
        let id = self.ids.get(self.ids_used).cloned().ok_or_else(|| Undecided::Needs(vec![Need::Id]))?;
        self.ids_used += 1;
        Ok(id)
    }

    /// Takes over an identity.
    pub fn add_id(&mut self, id: String) {
        self.ids.push(id);
    }

    /// Back to what was read: the decision begins again.
    pub fn forget_changes(&mut self) {
        self.runs.forget_changes();
        self.configs.forget_changes();
        self.objects.forget_changes();
        self.repositories.forget_changes();
        self.slots.forget_changes();
        self.passed.forget_changes();
        self.holds.forget_changes();
        self.names.forget_changes();
        self.ids_used = 0;
    }

    /// Nothing is known any more but the identities that were given: something moved, and everything is read.
    pub fn forget(&mut self) {
        let ids = std::mem::take(&mut self.ids);
        *self = Self { ids, ..Self::default() };
    }

    /// The decision is made on everything that was read of some services.
    pub fn count_on(&self, is_about: impl Fn(&ServiceName) -> bool) {
        self.runs.count_on(&is_about);
        self.configs.count_on(&is_about);
        self.objects.count_on(&is_about);
        self.slots.count_on(&is_about);
        self.passed.count_on(&is_about);
    }

    /// The runs as they are now, as far as they were read.
    pub fn known_runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.0.values().filter_map(Entry::now)
    }

    /// The versions that are attempted from now on.
    pub fn begun(&self) -> impl Iterator<Item = (&ConfigKey, &Version)> {
        self.configs.0.iter().filter_map(|(key, entry)| {
            let attempt = entry.changed.as_ref()?.as_ref()?.open_attempt()?;
            let before = entry.stored.as_ref().and_then(|stored| stored.open_attempt());
            (before.map(|before| before.version.number) != Some(attempt.version.number))
                .then_some((key, &attempt.version))
        })
    }

    /// The sequences that end now.
    pub fn ended(&self) -> impl Iterator<Item = &SequenceRun> {
        let changed = self.runs.0.values().filter_map(|entry| entry.changed.as_ref()?.as_ref());
        changed.filter_map(Run::sequence).filter(|run| run.ended_at.is_some())
    }

    /// The deployment configs that have changed and keep what files declare no longer, or otherwise.
    pub fn keepers(&self) -> impl Iterator<Item = &ConfigState> {
        let changed = self.configs.0.values().filter_map(|entry| entry.changed.as_ref()?.as_ref());
        changed.filter(|state| !state.keeps.is_empty())
    }

    /// Where objects were that are removed or go elsewhere.
    pub fn objects_left(&self) -> impl Iterator<Item = (Namespace, ObjectPlace)> {
        self.objects.0.iter().filter_map(|(place, entry)| {
            let (before, now) = (entry.stored.as_ref()?, entry.changed.as_ref()?);
            let namespace = &before.destination.namespace;
            let stays = now.as_ref().is_some_and(|now| now.destination.namespace == *namespace);
            (!stays).then(|| (namespace.clone(), place.clone()))
        })
    }

    /// What was read and not changed, and what is to be written. Runs and slots stay for ever, as far as a decision can
    /// tell.
    pub fn into_sets(self) -> (Vec<Read>, Vec<Write>) {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        let mut sets = (&mut reads, &mut writes);
        self.runs.drain(&mut sets, Write::Run, |_| None);
        self.configs.drain(&mut sets, Write::Config, |key| Some(Write::RemoveConfig(key)));
        self.objects.drain(&mut sets, Write::Object, |key| Some(Write::RemoveObject(key)));
        self.repositories.drain(&mut sets, Write::Repository, |key| Some(Write::RemoveRepository(key)));
        self.slots.drain(&mut sets, Write::Slot, |_| None);
        self.passed.drain(&mut sets, Write::Passed, |key| Some(Write::RemovePassed(key)));
        self.holds.drain(&mut sets, Write::Holds, |_| None);
        self.names.drain(&mut sets, Write::Name, |key| Some(Write::FreeName(key)));
        (reads, writes)
    }
}

#[cfg(test)]
mod tests;
