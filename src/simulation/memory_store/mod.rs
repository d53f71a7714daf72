//! A store in memory: what SQLite's does, without threads, files or text, so that a simulated delivery costs next to
//! nothing and nothing in it depends on timing.

mod read;
mod retention;
mod tables;
mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::clock::Clock;
use crate::error::{Failure, Result};
use crate::model::action::Lane;
use crate::model::ids::{Incarnation, RunId};
use crate::model::run::Run;
use crate::model::state::ConfigState;
use crate::model::time::Timestamp;
use crate::simulation::memory_store::tables::Tables;
use crate::store::{CommitError, OutboxId, OutboxRow, Retained, Retention, Store, Transaction, Versioned, Write};

/// What a store's file is on a real machine: it outlives the processes that open it.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk(Arc<Mutex<Content>>);

#[derive(Debug, Default)]
struct Content {
    tables: Tables,
    /// Grows with every process that takes the store over. Not part of the tables, so that a restored copy shuts out
    /// whoever worked on what it replaces.
    fence: u64,
    /// Grows with every life of the store.
    lives: u64,
    commits: u64,
    copies: BTreeMap<PathBuf, Tables>,
}

/// A process's way to a [`MemoryDisk`], until another takes it over.
#[derive(Debug)]
pub struct MemoryStore {
    disk: MemoryDisk,
    clock: Arc<dyn Clock>,
    fence: u64,
    incarnation: Incarnation,
    /// The rows that are being performed, with their lane and run; the end of the process ends them.
    claims: Mutex<BTreeMap<OutboxId, (Lane, RunId)>>,
}

impl MemoryDisk {
    /// Takes the store over, and shuts out the process that had it before.
    pub fn open(&self, clock: Arc<dyn Clock>) -> MemoryStore {
        let mut content = self.content();
        content.fence += 1;
        let incarnation = Incarnation::new(format!("life {}", content.lives));
        MemoryStore { disk: self.clone(), clock, fence: content.fence, incarnation, claims: Mutex::default() }
    }

    /// Reads the store beside whoever has it; nothing can be written so.
    pub fn read(&self, clock: Arc<dyn Clock>) -> MemoryStore {
        let incarnation = Incarnation::new("nobody's");
        MemoryStore { disk: self.clone(), clock, fence: 0, incarnation, claims: Mutex::default() }
    }

    /// How often anything was written; grows with every commit.
    pub fn commits(&self) -> u64 {
        self.content().commits
    }

    /// The runs that are open, as they are stored: nothing is copied for whoever only looks.
    pub fn open_runs(&self) -> Vec<Arc<Versioned<Run>>> {
        self.content().tables.open_runs().cloned().collect()
    }

    /// The same of deployment configs.
    pub fn configs(&self) -> Vec<Arc<Versioned<ConfigState>>> {
        self.content().tables.configs.values().cloned().collect()
    }

    /// The same of what is to be performed.
    pub fn outbox(&self) -> Vec<Arc<OutboxRow>> {
        self.content().tables.outbox.values().cloned().collect()
    }

    /// Which process has it, counted from the first.
    pub fn fence(&self) -> u64 {
        self.content().fence
    }

    /// Puts a copy that [`Store::backup`] wrote in the place of what is there; no process may be using it.
    ///
    /// # Errors
    /// If there is no such copy.
    pub fn restore(&self, from: &Path, now: Timestamp) -> Result<()> {
        let mut content = self.content();
        let copy = content.copies.get(from).cloned();
        let copy = copy.ok_or_else(|| Failure::stalled(format!("`{}` does not exist", from.display())))?;
        content.begin_life(copy, now);
        Ok(())
    }

    /// A copy that [`Store::backup`] wrote, as a disk of its own.
    ///
    /// # Errors
    /// If there is no such copy.
    pub fn copy(&self, from: &Path) -> Result<Self> {
        let copy = Self::default();
        let tables = self.content().copies.get(from).cloned();
        copy.content().tables =
            tables.ok_or_else(|| Failure::stalled(format!("`{}` does not exist", from.display())))?;
        Ok(copy)
    }

    /// Everything is gone, but for the copies.
    pub fn lose(&self) {
        let mut content = self.content();
        content.begin_life(Tables::default(), Timestamp::default());
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Content {
    /// What was seen in another life says nothing about what came after it: every repository is to be read anew, and what
    /// is reported of it is written again.
    fn begin_life(&mut self, mut tables: Tables, now: Timestamp) {
        tables.forget_heads();
        tables.inherit(now);
        tables.doubt_posted();
        self.tables = tables;
        self.fence += 1;
        self.lives += 1;
    }
}

impl MemoryStore {
    /// The tables as they are now; a copy costs nothing, because they share what is in them.
    fn tables(&self) -> Tables {
        self.disk.content().tables.clone()
    }

    fn owned(&self) -> Result<MutexGuard<'_, Content>, CommitError> {
        let content = self.disk.content();
        if content.fence == self.fence { Ok(content) } else { Err(CommitError::Fenced) }
    }

    fn claims(&self) -> MutexGuard<'_, BTreeMap<OutboxId, (Lane, RunId)>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The row that is no longer being performed after a write.
fn ends_claim(write: &Write) -> Option<OutboxId> {
    match write {
        Write::Done(id) | Write::Postpone { id, .. } | Write::Await { id, .. } => Some(*id),
        _ => None,
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn incarnation(&self) -> &Incarnation {
        &self.incarnation
    }

    async fn commit(&self, transaction: Transaction) -> Result<(), CommitError> {
        let now = self.clock.now();
        let mut content = self.owned()?;
        let mut tables = content.tables.clone();
        let performed: Vec<OutboxId> = transaction.writes.iter().filter_map(ends_claim).collect();
        write::apply(&mut tables, transaction, now).map_err(|what| CommitError::Conflict { what })?;
        content.tables = tables;
        content.commits += 1;
        let mut claims = self.claims();
        performed.iter().for_each(|id| drop(claims.remove(id)));
        Ok(())
    }

    async fn claim(&self, lane: &Lane, now: Timestamp, limit: u32) -> Result<Vec<OutboxRow>, CommitError> {
        let content = self.owned()?;
        let mut due: Vec<_> = content.tables.outbox.values().filter(|row| write::is_of(lane, row)).collect();
        due.retain(|row| row.due.is_some_and(|due| due <= now));
        due.sort_by_key(|row| (write::turn(row), row.id));
        let (mut claims, mut rows) = (self.claims(), Vec::new());
        for row in due {
            let claim = (lane.clone(), row.run.clone());
            if rows.len() < limit as usize && !claims.values().any(|known| *known == claim) {
                claims.insert(row.id, claim);
                rows.push(OutboxRow::clone(row));
            }
        }
        Ok(rows)
    }

    async fn give_back(&self, id: OutboxId) -> Result<(), CommitError> {
        self.owned().map(|_content| drop(self.claims().remove(&id)))
    }

    async fn retain(&self, retention: Retention) -> Result<Retained, Failure> {
        Ok(retention::retain(&mut self.owned()?.tables, retention))
    }

    async fn superfluous(&self, retention: Retention) -> Result<Retained, Failure> {
        Ok(retention::retain(&mut self.owned()?.tables.clone(), retention))
    }

    async fn backup(&self, to: &Path) -> Result<(), Failure> {
        let mut content = self.disk.content();
        if content.copies.contains_key(to) {
            return Err(Failure::stalled(format!("`{}` exists already", to.display())).hint("choose a new file's name"));
        }
        let copy = content.tables.clone();
        content.copies.insert(to.to_owned(), copy);
        Ok(())
    }
}
