//! A store that dies with its daemon at a chosen commit, and hands out due rows in an order that a seed chooses.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use launchway::error::Failure;
use launchway::model::action::Lane;
use launchway::model::commit_status::Posted;
use launchway::model::hold::{Hold, ProjectHolds};
use launchway::model::ids::{
    CommitId, ConfigKey, PlanId, ProjectName, RepositoryName, RunId, ServiceKey, ServiceName, StageName, WriterName,
};
use launchway::model::object::{Kind, ObjectKey};
use launchway::model::plan::Plan;
use launchway::model::run::Run;
use launchway::model::slot::{Delivered, PassedKey, PassedState, SlotState};
use launchway::model::state::{AppliedDigest, ConfigState, ObjectState, RepositoryState, RevisionState, Versioned};
use launchway::model::time::Timestamp;
use launchway::model::unique_name::{NameOwner, UniqueName};
use launchway::store::sqlite::SqliteStore;
use launchway::store::{
    CommitError, EventRow, OutboxId, OutboxRow, ReadStore, Retention, RunFilter, Store, Transaction,
};

/// At which commit, counted from 1, the daemon dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Death {
    /// The commit.
    pub(crate) at: usize,
    /// Whether the commit was on disk by then.
    pub(crate) durable: bool,
}

/// A store that dies.
pub(crate) struct MortalStore {
    inner: SqliteStore,
    death: Option<Death>,
    commits: AtomicUsize,
    dead: AtomicBool,
    random: Mutex<u64>,
}

impl MortalStore {
    pub(crate) fn new(inner: SqliteStore, death: Option<Death>, seed: u64) -> Self {
        // Small seeds lie close together: spread their bits.
        let random = Mutex::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        Self { inner, death, commits: AtomicUsize::new(0), dead: AtomicBool::new(false), random }
    }

    /// How many commits were asked for.
    pub(crate) fn commits(&self) -> usize {
        self.commits.load(Ordering::SeqCst)
    }

    /// Whether it has died.
    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    fn alive(&self) -> Result<&SqliteStore, Failure> {
        if self.is_dead() { Err(Failure::stalled("the daemon is dead")) } else { Ok(&self.inner) }
    }

    fn random(&self, below: usize) -> usize {
        let mut state = self.random.lock().unwrap();
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        usize::try_from(*state >> 33).unwrap() % below
    }

    /// Any order: claimed rows belong to different runs.
    fn shuffled(&self, mut rows: Vec<OutboxRow>) -> Vec<OutboxRow> {
        let mut shuffled = Vec::new();
        while !rows.is_empty() {
            shuffled.push(rows.swap_remove(self.random(rows.len())));
        }
        shuffled
    }
}

#[async_trait]
impl Store for MortalStore {
    async fn commit(&self, transaction: Transaction) -> Result<(), CommitError> {
        let store = self.alive().map_err(CommitError::Failed)?;
        let number = 1 + self.commits.fetch_add(1, Ordering::SeqCst);
        let Some(death) = self.death.filter(|death| death.at == number) else {
            return store.commit(transaction).await;
        };
        if death.durable {
            store.commit(transaction).await?;
        }
        self.dead.store(true, Ordering::SeqCst);
        Err(CommitError::Failed(Failure::stalled("the daemon dies")))
    }

    async fn claim(&self, lane: &Lane, now: Timestamp, limit: u32) -> Result<Vec<OutboxRow>, CommitError> {
        let store = self.alive().map_err(CommitError::Failed)?;
        Ok(self.shuffled(store.claim(lane, now, limit).await?))
    }

    async fn give_back(&self, id: OutboxId) -> Result<(), CommitError> {
        self.alive().map_err(CommitError::Failed)?.give_back(id).await
    }

    async fn retain(&self, retention: Retention) -> Result<u64, Failure> {
        self.alive()?.retain(retention).await
    }

    async fn backup(&self, to: &std::path::Path) -> Result<(), Failure> {
        Store::backup(self.alive()?, to).await
    }
}

/// Reading goes on as long as the daemon lives.
#[async_trait]
impl ReadStore for MortalStore {
    async fn run(&self, id: &RunId) -> Result<Option<Versioned<Run>>, Failure> {
        self.alive()?.run(id).await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<Versioned<Run>>, Failure> {
        self.alive()?.runs(filter).await
    }

    async fn slot(&self, service: &ServiceKey) -> Result<Option<Versioned<SlotState>>, Failure> {
        self.alive()?.slot(service).await
    }

    async fn open_slots(&self, project: Option<&ProjectName>) -> Result<Vec<Versioned<SlotState>>, Failure> {
        self.alive()?.open_slots(project).await
    }

    async fn delivered(
        &self,
        project: &ProjectName,
        stage: &StageName,
    ) -> Result<BTreeMap<ServiceName, Delivered>, Failure> {
        self.alive()?.delivered(project, stage).await
    }

    async fn attempts(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
        service: &ServiceKey,
    ) -> Result<u32, Failure> {
        self.alive()?.attempts(repository, commit, service).await
    }

    async fn plan_of(&self, id: &PlanId, service: &ServiceName) -> Result<Option<Plan>, Failure> {
        self.alive()?.plan_of(id, service).await
    }

    async fn newest_plan_of(&self, project: &ProjectName, service: &ServiceName) -> Result<Option<Plan>, Failure> {
        self.alive()?.newest_plan_of(project, service).await
    }

    async fn passed(&self, key: &PassedKey) -> Result<Option<Versioned<PassedState>>, Failure> {
        self.alive()?.passed(key).await
    }

    async fn holds_of(&self, project: &ProjectName) -> Result<Option<Versioned<ProjectHolds>>, Failure> {
        self.alive()?.holds_of(project).await
    }

    async fn name_owner(&self, name: &UniqueName) -> Result<Option<Versioned<NameOwner>>, Failure> {
        self.alive()?.name_owner(name).await
    }

    async fn events(&self, run: Option<&RunId>, after: i64, limit: u32) -> Result<Vec<EventRow>, Failure> {
        self.alive()?.events(run, after, limit).await
    }

    async fn config(&self, key: &ConfigKey) -> Result<Option<Versioned<ConfigState>>, Failure> {
        self.alive()?.config(key).await
    }

    async fn configs(
        &self,
        project: Option<&ProjectName>,
        stage: Option<&StageName>,
    ) -> Result<Vec<Versioned<ConfigState>>, Failure> {
        self.alive()?.configs(project, stage).await
    }

    async fn objects(
        &self,
        project: Option<&ProjectName>,
        stage: Option<&StageName>,
        kind: Option<&Kind>,
    ) -> Result<Vec<Versioned<ObjectState>>, Failure> {
        self.alive()?.objects(project, stage, kind).await
    }

    async fn object(
        &self,
        project: &ProjectName,
        stage: &StageName,
        key: &ObjectKey,
    ) -> Result<Option<Versioned<ObjectState>>, Failure> {
        self.alive()?.object(project, stage, key).await
    }

    async fn applied(&self, project: &ProjectName, stage: &StageName) -> Result<Vec<AppliedDigest>, Failure> {
        self.alive()?.applied(project, stage).await
    }

    async fn applied_stages(&self, project: &ProjectName) -> Result<Vec<StageName>, Failure> {
        self.alive()?.applied_stages(project).await
    }

    async fn repository(&self, name: &RepositoryName) -> Result<Option<Versioned<RepositoryState>>, Failure> {
        self.alive()?.repository(name).await
    }

    async fn repositories(&self) -> Result<Vec<Versioned<RepositoryState>>, Failure> {
        self.alive()?.repositories().await
    }

    async fn revision(&self, repository: &RepositoryName, commit: &str) -> Result<Option<RevisionState>, Failure> {
        self.alive()?.revision(repository, commit).await
    }

    async fn revisions(&self, repository: &RepositoryName, limit: u32) -> Result<Vec<RevisionState>, Failure> {
        self.alive()?.revisions(repository, limit).await
    }

    async fn plan(&self, id: &PlanId) -> Result<Option<Plan>, Failure> {
        self.alive()?.plan(id).await
    }

    async fn holds(&self) -> Result<Vec<Hold>, Failure> {
        self.alive()?.holds().await
    }

    async fn posted(
        &self,
        repository: &RepositoryName,
        writer: &WriterName,
        commit: &CommitId,
    ) -> Result<Vec<Posted>, Failure> {
        self.alive()?.posted(repository, writer, commit).await
    }

    async fn was_delivered(&self, repository: &RepositoryName, id: &str) -> Result<bool, Failure> {
        self.alive()?.was_delivered(repository, id).await
    }

    async fn last_event(&self) -> Result<u64, Failure> {
        self.alive()?.last_event().await
    }

    async fn next_due(&self, lane: &Lane, now: Timestamp) -> Result<Option<Timestamp>, Failure> {
        self.alive()?.next_due(lane, now).await
    }

    async fn outbox(&self, run: Option<&RunId>) -> Result<Vec<OutboxRow>, Failure> {
        self.alive()?.outbox(run).await
    }
}
