//! A store at which the turn is given away before every call, so that anything may have happened since the last one.

use std::collections::BTreeMap;
use std::path::Path;

use async_trait::async_trait;

use crate::error::Result;
use crate::model::action::Lane;
use crate::model::commit_status::Posted;
use crate::model::hold::{Hold, ProjectHolds};
use crate::model::ids::{
    CommitId, ConfigKey, PlanId, ProjectName, RepositoryName, RunId, ServiceKey, ServiceName, StageName, WriterName,
};
use crate::model::object::{Kind, ObjectKey};
use crate::model::plan::Plan;
use crate::model::run::Run;
use crate::model::slot::{Delivered, PassedKey, PassedState, SlotState};
use crate::model::state::{ConfigState, ObjectState, RepositoryState, RevisionState};
use crate::model::time::Timestamp;
use crate::model::unique_name::{NameOwner, UniqueName};
use crate::store::{
    AppliedDigest, CommitError, EventRow, OutboxId, OutboxRow, ReadStore, Retention, RunFilter, Store, Transaction,
    Versioned,
};
use crate::testing::interleaved::scheduler::turn;
use crate::testing::memory_store::MemoryStore;

/// A store whose callers take turns.
#[derive(Debug)]
pub(super) struct SharedStore(pub(super) MemoryStore);

#[async_trait]
impl Store for SharedStore {
    async fn commit(&self, transaction: Transaction) -> Result<(), CommitError> {
        turn().await;
        self.0.commit(transaction).await
    }

    async fn claim(&self, lane: &Lane, now: Timestamp, limit: u32) -> Result<Vec<OutboxRow>, CommitError> {
        turn().await;
        self.0.claim(lane, now, limit).await
    }

    async fn give_back(&self, id: OutboxId) -> Result<(), CommitError> {
        turn().await;
        self.0.give_back(id).await
    }

    async fn retain(&self, retention: Retention) -> Result<u64> {
        turn().await;
        self.0.retain(retention).await
    }

    async fn backup(&self, to: &Path) -> Result<()> {
        turn().await;
        self.0.backup(to).await
    }
}

#[async_trait]
impl ReadStore for SharedStore {
    async fn run(&self, id: &RunId) -> Result<Option<Versioned<Run>>> {
        turn().await;
        self.0.run(id).await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<Versioned<Run>>> {
        turn().await;
        self.0.runs(filter).await
    }

    async fn slot(&self, service: &ServiceKey) -> Result<Option<Versioned<SlotState>>> {
        turn().await;
        self.0.slot(service).await
    }

    async fn open_slots(&self, project: Option<&ProjectName>) -> Result<Vec<Versioned<SlotState>>> {
        turn().await;
        self.0.open_slots(project).await
    }

    async fn events(&self, run: Option<&RunId>, after: i64, limit: u32) -> Result<Vec<EventRow>> {
        turn().await;
        self.0.events(run, after, limit).await
    }

    async fn config(&self, key: &ConfigKey) -> Result<Option<Versioned<ConfigState>>> {
        turn().await;
        self.0.config(key).await
    }

    async fn configs(
        &self,
        project: Option<&ProjectName>,
        stage: Option<&StageName>,
    ) -> Result<Vec<Versioned<ConfigState>>> {
        turn().await;
        self.0.configs(project, stage).await
    }

    async fn objects(
        &self,
        project: Option<&ProjectName>,
        stage: Option<&StageName>,
        kind: Option<&Kind>,
    ) -> Result<Vec<Versioned<ObjectState>>> {
        turn().await;
        self.0.objects(project, stage, kind).await
    }

    async fn object(
        &self,
        project: &ProjectName,
        stage: &StageName,
        key: &ObjectKey,
    ) -> Result<Option<Versioned<ObjectState>>> {
        turn().await;
        self.0.object(project, stage, key).await
    }

    async fn applied(&self, project: &ProjectName, stage: &StageName) -> Result<Vec<AppliedDigest>> {
        turn().await;
        self.0.applied(project, stage).await
    }

    async fn applied_stages(&self, project: &ProjectName) -> Result<Vec<StageName>> {
        turn().await;
        self.0.applied_stages(project).await
    }

    async fn repository(&self, name: &RepositoryName) -> Result<Option<Versioned<RepositoryState>>> {
        turn().await;
        self.0.repository(name).await
    }

    async fn repositories(&self) -> Result<Vec<Versioned<RepositoryState>>> {
        turn().await;
        self.0.repositories().await
    }

    async fn revision(&self, repository: &RepositoryName, commit: &str) -> Result<Option<RevisionState>> {
        turn().await;
        self.0.revision(repository, commit).await
    }

    async fn revisions(&self, repository: &RepositoryName, limit: u32) -> Result<Vec<RevisionState>> {
        turn().await;
        self.0.revisions(repository, limit).await
    }

    async fn plan(&self, id: &PlanId) -> Result<Option<Plan>> {
        turn().await;
        self.0.plan(id).await
    }

    async fn delivered(&self, project: &ProjectName, stage: &StageName) -> Result<BTreeMap<ServiceName, Delivered>> {
        turn().await;
        self.0.delivered(project, stage).await
    }

    async fn attempts(&self, repository: &RepositoryName, commit: &CommitId, service: &ServiceKey) -> Result<u32> {
        turn().await;
        self.0.attempts(repository, commit, service).await
    }

    async fn plan_of(&self, id: &PlanId, service: &ServiceName) -> Result<Option<Plan>> {
        turn().await;
        self.0.plan_of(id, service).await
    }

    async fn newest_plan_of(&self, project: &ProjectName, service: &ServiceName) -> Result<Option<Plan>> {
        turn().await;
        self.0.newest_plan_of(project, service).await
    }

    async fn passed(&self, key: &PassedKey) -> Result<Option<Versioned<PassedState>>> {
        turn().await;
        self.0.passed(key).await
    }

    async fn holds_of(&self, project: &ProjectName) -> Result<Option<Versioned<ProjectHolds>>> {
        turn().await;
        self.0.holds_of(project).await
    }

    async fn holds(&self) -> Result<Vec<Hold>> {
        turn().await;
        self.0.holds().await
    }

    async fn name_owner(&self, name: &UniqueName) -> Result<Option<Versioned<NameOwner>>> {
        turn().await;
        self.0.name_owner(name).await
    }

    async fn posted(&self, repository: &RepositoryName, writer: &WriterName, commit: &CommitId) -> Result<Vec<Posted>> {
        turn().await;
        self.0.posted(repository, writer, commit).await
    }

    async fn was_delivered(&self, repository: &RepositoryName, id: &str) -> Result<bool> {
        turn().await;
        self.0.was_delivered(repository, id).await
    }

    async fn last_event(&self) -> Result<u64> {
        turn().await;
        self.0.last_event().await
    }

    async fn next_due(&self, lane: &Lane, now: Timestamp) -> Result<Option<Timestamp>> {
        turn().await;
        self.0.next_due(lane, now).await
    }

    async fn outbox(&self, run: Option<&RunId>) -> Result<Vec<OutboxRow>> {
        turn().await;
        self.0.outbox(run).await
    }
}
