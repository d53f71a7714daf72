//! The embedded store: one SQLite file with a write-ahead log, synced to disk at every commit.
//!
//! One thread writes (`writer`); a few read-only connections read beside it (`readers`). Other processes read the
//! same file through [`SqliteReader`], whether a daemon runs or not.

mod connection;
mod content;
mod copy;
mod facts;
mod failure;
mod fence;
mod migration;
mod outbox;
mod place;
mod read;
mod readers;
mod retention;
mod revisions;
mod rows;
mod schema;
mod seed;
mod write;
mod writer;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::Connection;

pub use self::copy::{is_store, restore};

use self::failure::{Error, failed};
use self::readers::Readers;
use self::writer::Writer;
use super::{
    AppliedDigest, Backlog, CommitError, EventRow, KnownServices, Listing, OutboxId, OutboxRow, ReadStore, Retained,
    Retention, RevisionFacts, RunFilter, ServiceFacts, Store, Transaction, Versioned,
};
use crate::clock::Clock;
use crate::error::{Context, Failure, Result};
use crate::model::action::Lane;
use crate::model::commit_status::Posted;
use crate::model::hold::{Hold, ProjectHolds};
use crate::model::ids::{
    CommitId, ConfigKey, Digest, Incarnation, PlanId, ProjectName, RepositoryName, RunId, ServiceKey, ServiceName,
    StageName, WriterName,
};
use crate::model::object::{Kind, ObjectKey};
use crate::model::plan::Plan;
use crate::model::run::Run;
use crate::model::seed::Seed;
use crate::model::slot::{Delivered, PassedKey, PassedState, SlotState};
use crate::model::state::{ConfigState, ObjectState, RepositoryState, RevisionState};
use crate::model::tag::SeenTags;
use crate::model::time::Timestamp;
use crate::model::transaction::ObjectPlace;
use crate::model::unique_name::{NameOwner, UniqueName};
use crate::model::webhook_call::WebhookCalls;
use crate::store::RecordKey;
use crate::store::content::Refers;
use crate::store::record::Record;

/// A store in a file; `W` is what it can do beside reading.
#[derive(Debug)]
pub struct Sqlite<W> {
    readers: Readers,
    writing: W,
}

/// The store for commands: it reads, whether a daemon runs or not.
pub type SqliteReader = Sqlite<ReadOnly>;

/// The store for the daemon.
pub type SqliteStore = Sqlite<ReadWrite>;

/// Nothing beside reading.
#[derive(Clone, Copy, Debug)]
pub struct ReadOnly;

/// Writing, under a fence.
#[derive(Debug)]
pub struct ReadWrite {
    incarnation: Incarnation,
    writer: Writer,
    clock: Arc<dyn Clock>,
}

impl SqliteStore {
    /// Takes the store in the file over: creates it, or brings it to this version beside a copy of what it was, and shuts
    /// out the process that had it before. Blocks until that is on disk.
    ///
    /// # Errors
    /// If the file cannot be written, is damaged, not ours, or of a newer version; it is then as it was.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        let mut connection = connection::open_for_writing(path)?;
        migration::migrate(&mut connection, path)?;
        let (fence, incarnation) =
            fence::take_over(&mut connection, clock.now()).map_err(|error| failed("take the store over", error))?;
        seed::make(&connection)?;
        outbox::prepare(&connection).map_err(|error| failed("prepare the outbox", error))?;
        let readers = Readers::open(path)?;
        let writer = Writer::start(connection, fence)?;
        Ok(Self { readers, writing: ReadWrite { incarnation, writer, clock } })
    }
}

impl SqliteReader {
    /// Opens the file for reading.
    ///
    /// # Errors
    /// If there is none, or it is damaged, not ours, or of another version.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self { readers: Readers::open(path)?, writing: ReadOnly })
    }
}

impl<W> Sqlite<W> {
    /// Writes a consistent copy to a file that does not exist yet.
    ///
    /// # Errors
    /// If the file exists or cannot be written.
    pub async fn backup(&self, to: &Path) -> Result<()> {
        let (from, to) = (self.readers.path().to_owned(), to.to_owned());
        let copied = tokio::task::spawn_blocking(move || copy::backup(&from, &to)).await;
        copied.or_stalled(|| "cannot write a backup: it was shut down".to_owned())?
    }

    async fn record<T: Record + Send + 'static>(&self, key: RecordKey) -> Result<Option<Versioned<T>>> {
        self.read(move |connection| read::record_of(connection, &key)).await
    }

    async fn filled_record<T>(&self, key: RecordKey) -> Result<Option<Versioned<T>>>
    where
        T: Refers + Send + 'static,
    {
        self.read(move |connection| read::filled_record_of(connection, &key)).await
    }

    async fn read<T, F>(&self, read: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    {
        self.readers.read(read).await
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn incarnation(&self) -> &Incarnation {
        &self.writing.incarnation
    }

    async fn commit(&self, transaction: Transaction) -> Result<(), CommitError> {
        let now = self.writing.clock.now();
        let apply = move |connection: &Connection| write::apply(connection, &transaction, now);
        self.writing.writer.perform(apply).await
    }

    async fn claim(&self, lane: &Lane, now: Timestamp, limit: u32) -> Result<Vec<OutboxRow>, CommitError> {
        let lane = lane.clone();
        self.writing.writer.perform(move |connection| outbox::claim(connection, &lane, now, limit)).await
    }

    async fn give_back(&self, id: OutboxId) -> Result<(), CommitError> {
        self.writing.writer.perform(move |connection| outbox::give_back(connection, id)).await
    }

    async fn retain(&self, retention: Retention) -> Result<Retained, Failure> {
        Ok(retention::retain(&self.writing.writer, retention).await?)
    }

    async fn superfluous(&self, retention: Retention) -> Result<Retained, Failure> {
        Ok(retention::superfluous(&self.writing.writer, retention).await?)
    }

    async fn backup(&self, to: &Path) -> Result<(), Failure> {
        Sqlite::backup(self, to).await
    }
}

#[async_trait]
impl<W: Send + Sync> ReadStore for Sqlite<W> {
    async fn run(&self, id: &RunId) -> Result<Option<Versioned<Run>>> {
        self.filled_record(id.clone().into()).await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Listing<Versioned<Run>>> {
        let filter = filter.clone();
        self.read(move |connection| read::runs(connection, &filter)).await
    }

    async fn slot(&self, service: &ServiceKey) -> Result<Option<Versioned<SlotState>>> {
        self.record(service.clone().into()).await
    }

    async fn open_slots(&self, project: Option<&ProjectName>) -> Result<Vec<Versioned<SlotState>>> {
        let project = project.cloned();
        self.read(move |connection| read::open_slots(connection, project.as_ref())).await
    }

    async fn open_slot_keys(&self, project: Option<&ProjectName>) -> Result<Vec<ServiceKey>> {
        let project = project.cloned();
        self.read(move |connection| read::open_slot_keys(connection, project.as_ref())).await
    }

    async fn events(&self, run: Option<&RunId>, after: i64, limit: u32) -> Result<Vec<EventRow>> {
        let run = run.cloned();
        self.read(move |connection| read::events(connection, run.as_ref(), after, limit)).await
    }

    async fn newest_events(&self, run: Option<&RunId>, before: i64, limit: u32) -> Result<Vec<EventRow>> {
        let run = run.cloned();
        self.read(move |connection| read::newest_events(connection, run.as_ref(), before, limit)).await
    }

    async fn config(&self, key: &ConfigKey) -> Result<Option<Versioned<ConfigState>>> {
        self.filled_record(key.clone().into()).await
    }

    async fn config_keys(&self) -> Result<Vec<ConfigKey>> {
        self.read(read::config_keys).await
    }

    async fn configs(
        &self,
        project: Option<&ProjectName>,
        stage: Option<&StageName>,
    ) -> Result<Listing<Versioned<ConfigState>>> {
        let (project, stage) = (project.cloned(), stage.cloned());
        self.read(move |connection| read::configs(connection, project.as_ref(), stage.as_ref())).await
    }

    async fn configs_of(&self, service: &ServiceKey) -> Result<Vec<Versioned<ConfigState>>> {
        let service = service.clone();
        self.read(move |connection| read::configs_of(connection, &service)).await
    }

    async fn objects(
        &self,
        project: Option<&ProjectName>,
        stage: Option<&StageName>,
        kind: Option<&Kind>,
    ) -> Result<Listing<Versioned<ObjectState>>> {
        let (project, stage, kind) = (project.cloned(), stage.cloned(), kind.cloned());
        self.read(move |connection| read::objects(connection, project.as_ref(), stage.as_ref(), kind.as_ref())).await
    }

    async fn object(
        &self,
        project: &ProjectName,
        stage: &StageName,
        key: &ObjectKey,
    ) -> Result<Option<Versioned<ObjectState>>> {
        let (project, stage, key) = (project.clone(), stage.clone(), key.clone());
        self.filled_record(ObjectPlace { project, stage, key }.into()).await
    }

    async fn applied(&self, project: &ProjectName, stage: &StageName) -> Result<Vec<AppliedDigest>> {
        let (project, stage) = (project.clone(), stage.clone());
        self.read(move |connection| read::applied(connection, &project, &stage)).await
    }

    async fn applied_stages(&self, project: &ProjectName) -> Result<Vec<StageName>> {
        let project = project.clone();
        self.read(move |connection| read::applied_stages(connection, &project)).await
    }

    async fn repository(&self, name: &RepositoryName) -> Result<Option<Versioned<RepositoryState>>> {
        self.record(name.clone().into()).await
    }

    async fn repositories(&self) -> Result<Listing<Versioned<RepositoryState>>> {
        self.read(read::repositories).await
    }

    async fn revision(&self, repository: &RepositoryName, commit: &str) -> Result<Option<RevisionState>> {
        let (repository, commit) = (repository.clone(), commit.to_owned());
        self.read(move |connection| revisions::revision(connection, &repository, &commit)).await
    }

    async fn revisions(&self, repository: &RepositoryName, limit: u32) -> Result<Vec<RevisionState>> {
        let repository = repository.clone();
        self.read(move |connection| revisions::revisions(connection, &repository, limit)).await
    }

    async fn outline(&self, repository: &RepositoryName, commit: &str) -> Result<Option<RevisionState>> {
        let (repository, commit) = (repository.clone(), commit.to_owned());
        self.read(move |connection| revisions::outline(connection, &repository, &commit)).await
    }

    async fn outlines(&self, repository: &RepositoryName, limit: u32) -> Result<Vec<RevisionState>> {
        let repository = repository.clone();
        self.read(move |connection| revisions::outlines(connection, &repository, limit)).await
    }

    async fn revision_facts(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
        known: KnownServices,
    ) -> Result<Option<RevisionFacts>> {
        let (repository, commit) = (repository.clone(), commit.clone());
        self.read(move |connection| facts::revision_facts(connection, &repository, &commit, &known)).await
    }

    async fn service_facts(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
        plan: &PlanId,
        services: &[ServiceName],
    ) -> Result<Vec<ServiceFacts>> {
        let (repository, commit) = (repository.clone(), commit.clone());
        let (plan, services) = (plan.clone(), services.to_vec());
        self.read(move |connection| facts::service_facts(connection, &repository, &commit, &plan, &services)).await
    }

    async fn plan(&self, id: &PlanId) -> Result<Option<Plan>> {
        let id = id.clone();
        self.read(move |connection| read::plan(connection, &id)).await
    }

    async fn plan_of(&self, id: &PlanId, service: &ServiceName) -> Result<Option<Plan>> {
        let (id, service) = (id.clone(), service.clone());
        self.read(move |connection| read::plan_of(connection, &id, &service)).await
    }

    async fn newest_plan_of(&self, project: &ProjectName, service: &ServiceName) -> Result<Option<Plan>> {
        let (project, service) = (project.clone(), service.clone());
        self.read(move |connection| read::newest_plan_of(connection, &project, &service)).await
    }

    async fn delivered(
        &self,
        project: &ProjectName,
        stage: &StageName,
        except: Option<&Digest>,
    ) -> Result<BTreeMap<ServiceName, Delivered>> {
        let (project, stage, except) = (project.clone(), stage.clone(), except.cloned());
        self.read(move |connection| read::delivered(connection, &project, &stage, except.as_ref())).await
    }

    async fn attempts(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
        service: &ServiceKey,
        sequence: Option<&str>,
    ) -> Result<u32> {
        let (repository, commit, service) = (repository.clone(), commit.clone(), service.clone());
        let sequence = sequence.map(str::to_owned);
        let attempts = move |connection: &Connection| {
            read::attempts(connection, &repository, &commit, &service, sequence.as_deref())
        };
        self.read(attempts).await
    }

    async fn passed(&self, key: &PassedKey) -> Result<Option<Versioned<PassedState>>> {
        self.record(key.clone().into()).await
    }

    async fn holds_of(&self, project: &ProjectName) -> Result<Option<Versioned<ProjectHolds>>> {
        self.record(project.clone().into()).await
    }

    async fn name_owner(&self, name: &UniqueName) -> Result<Option<Versioned<NameOwner>>> {
        self.record(name.clone().into()).await
    }

    async fn holds(&self) -> Result<Listing<Hold>> {
        self.read(read::holds).await
    }

    async fn posted(&self, repository: &RepositoryName, writer: &WriterName, commit: &CommitId) -> Result<Vec<Posted>> {
        let (repository, writer, commit) = (repository.clone(), writer.clone(), commit.clone());
        self.read(move |connection| read::posted(connection, &repository, &writer, &commit)).await
    }

    async fn overtaken_by(&self, repository: &RepositoryName, commit: &CommitId) -> Result<Vec<CommitId>> {
        let (repository, commit) = (repository.clone(), commit.clone());
        self.read(move |connection| revisions::overtaken_by(connection, &repository, &commit)).await
    }

    async fn was_delivered(&self, repository: &RepositoryName, id: &str) -> Result<bool> {
        let (repository, id) = (repository.clone(), id.to_owned());
        self.read(move |connection| read::was_delivered(connection, &repository, &id)).await
    }

    async fn webhook_calls(&self, repository: &RepositoryName) -> Result<WebhookCalls> {
        let repository = repository.clone();
        self.read(move |connection| read::webhook_calls(connection, &repository)).await
    }

    async fn seen_tags(&self, repository: &RepositoryName) -> Result<Option<SeenTags>> {
        let repository = repository.clone();
        self.read(move |connection| read::seen_tags(connection, &repository)).await
    }

    async fn seed(&self) -> Result<Option<Seed>> {
        self.read(|connection| Ok(seed::read(connection)?)).await
    }

    async fn last_event(&self) -> Result<u64> {
        self.read(read::last_event).await
    }

    async fn next_due(&self, lane: &Lane, now: Timestamp) -> Result<Option<Timestamp>> {
        let lane = lane.clone();
        self.read(move |connection| outbox::next_due(connection, &lane, now)).await
    }

    async fn backlog(&self, lane: &Lane) -> Result<Backlog> {
        let lane = lane.clone();
        self.read(move |connection| outbox::backlog(connection, &lane)).await
    }

    async fn outbox(&self, run: Option<&RunId>) -> Result<Vec<OutboxRow>> {
        let run = run.cloned();
        self.read(move |connection| read::outbox(connection, run.as_ref())).await
    }
}
