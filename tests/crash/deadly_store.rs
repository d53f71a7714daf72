//! A store that kills its process at the n-th record about the outbox.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

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
use launchway::model::state::{ConfigState, ObjectState, RepositoryState, RevisionState};
use launchway::model::time::Timestamp;
use launchway::model::unique_name::{NameOwner, UniqueName};
use launchway::store::{
    AppliedDigest, CommitError, EventRow, OutboxId, OutboxRow, ReadStore, Retention, RunFilter, Store, Transaction,
    Versioned, Write,
};
use rustix::process::{Signal, getpid, kill_process};

/// When the process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Before,
    After,
}

/// Kills its process at one record.
pub(crate) struct DeadlyStore {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) record: u32,
    pub(crate) moment: Moment,
    pub(crate) seen: AtomicU32,
}

fn about_outbox(write: &Write) -> bool {
    matches!(
        write,
        Write::Ask { .. } | Write::Withdraw { .. } | Write::Done(_) | Write::Postpone { .. } | Write::Await { .. }
    )
}

fn die() {
    kill_process(getpid(), Signal::KILL).unwrap();
}

type Answer<T> = Result<T, Failure>;

#[async_trait]
impl Store for DeadlyStore {
    async fn commit(&self, transaction: Transaction) -> Result<(), CommitError> {
        let counts = transaction.writes.iter().any(about_outbox);
        let now = counts && self.seen.fetch_add(1, Ordering::SeqCst) + 1 == self.record;
        if now && self.moment == Moment::Before {
            die();
        }
        let committed = self.inner.commit(transaction).await;
        if now {
            die();
        }
        committed
    }

    async fn claim(&self, lane: &Lane, now: Timestamp, limit: u32) -> Result<Vec<OutboxRow>, CommitError> {
        self.inner.claim(lane, now, limit).await
    }

    async fn give_back(&self, id: OutboxId) -> Result<(), CommitError> {
        self.inner.give_back(id).await
    }

    async fn retain(&self, retention: Retention) -> Answer<u64> {
        self.inner.retain(retention).await
    }

    async fn backup(&self, to: &Path) -> Answer<()> {
        self.inner.backup(to).await
    }
}

#[async_trait]
impl ReadStore for DeadlyStore {
    async fn run(&self, id: &RunId) -> Answer<Option<Versioned<Run>>> {
        self.inner.run(id).await
    }

    async fn runs(&self, filter: &RunFilter) -> Answer<Vec<Versioned<Run>>> {
        self.inner.runs(filter).await
    }

    async fn slot(&self, service: &ServiceKey) -> Answer<Option<Versioned<SlotState>>> {
        self.inner.slot(service).await
    }

    async fn open_slots(&self, project: Option<&ProjectName>) -> Answer<Vec<Versioned<SlotState>>> {
        self.inner.open_slots(project).await
    }

    async fn delivered(&self, project: &ProjectName, stage: &StageName) -> Answer<BTreeMap<ServiceName, Delivered>> {
        self.inner.delivered(project, stage).await
    }

    async fn attempts(&self, repository: &RepositoryName, commit: &CommitId, service: &ServiceKey) -> Answer<u32> {
        self.inner.attempts(repository, commit, service).await
    }

    async fn plan_of(&self, id: &PlanId, service: &ServiceName) -> Answer<Option<Plan>> {
        self.inner.plan_of(id, service).await
    }

    async fn newest_plan_of(&self, project: &ProjectName, service: &ServiceName) -> Answer<Option<Plan>> {
        self.inner.newest_plan_of(project, service).await
    }

    async fn passed(&self, key: &PassedKey) -> Answer<Option<Versioned<PassedState>>> {
        self.inner.passed(key).await
    }

    async fn holds_of(&self, project: &ProjectName) -> Answer<Option<Versioned<ProjectHolds>>> {
        self.inner.holds_of(project).await
    }

    async fn name_owner(&self, name: &UniqueName) -> Answer<Option<Versioned<NameOwner>>> {
        self.inner.name_owner(name).await
    }

    async fn events(&self, run: Option<&RunId>, after: i64, limit: u32) -> Answer<Vec<EventRow>> {
        self.inner.events(run, after, limit).await
    }

    async fn config(&self, key: &ConfigKey) -> Answer<Option<Versioned<ConfigState>>> {
        self.inner.config(key).await
    }

    async fn configs(
        &self,
        project: Option<&ProjectName>,
        stage: Option<&StageName>,
    ) -> Answer<Vec<Versioned<ConfigState>>> {
        self.inner.configs(project, stage).await
    }

    async fn objects(
        &self,
        project: Option<&ProjectName>,
        stage: Option<&StageName>,
        kind: Option<&Kind>,
    ) -> Answer<Vec<Versioned<ObjectState>>> {
        self.inner.objects(project, stage, kind).await
    }

    async fn object(
        &self,
        project: &ProjectName,
        stage: &StageName,
        key: &ObjectKey,
    ) -> Answer<Option<Versioned<ObjectState>>> {
        self.inner.object(project, stage, key).await
    }

    async fn applied(&self, project: &ProjectName, stage: &StageName) -> Answer<Vec<AppliedDigest>> {
        self.inner.applied(project, stage).await
    }

    async fn applied_stages(&self, project: &ProjectName) -> Answer<Vec<StageName>> {
        self.inner.applied_stages(project).await
    }

    async fn repository(&self, name: &RepositoryName) -> Answer<Option<Versioned<RepositoryState>>> {
        self.inner.repository(name).await
    }

    async fn repositories(&self) -> Answer<Vec<Versioned<RepositoryState>>> {
        self.inner.repositories().await
    }

    async fn revision(&self, repository: &RepositoryName, commit: &str) -> Answer<Option<RevisionState>> {
        self.inner.revision(repository, commit).await
    }

    async fn revisions(&self, repository: &RepositoryName, limit: u32) -> Answer<Vec<RevisionState>> {
        self.inner.revisions(repository, limit).await
    }

    async fn plan(&self, id: &PlanId) -> Answer<Option<Plan>> {
        self.inner.plan(id).await
    }

    async fn holds(&self) -> Answer<Vec<Hold>> {
        self.inner.holds().await
    }

    async fn posted(&self, repository: &RepositoryName, writer: &WriterName, commit: &CommitId) -> Answer<Vec<Posted>> {
        self.inner.posted(repository, writer, commit).await
    }

    async fn was_delivered(&self, repository: &RepositoryName, id: &str) -> Answer<bool> {
        self.inner.was_delivered(repository, id).await
    }

    async fn last_event(&self) -> Answer<u64> {
        self.inner.last_event().await
    }

    async fn next_due(&self, lane: &Lane, now: Timestamp) -> Answer<Option<Timestamp>> {
        self.inner.next_due(lane, now).await
    }

    async fn outbox(&self, run: Option<&RunId>) -> Answer<Vec<OutboxRow>> {
        self.inner.outbox(run).await
    }
}
