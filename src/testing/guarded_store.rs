//! A store in front of another: something happens before every call. The one place that forwards a store's calls.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::{Failure, Result};
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
use crate::model::unique_name::{NameOwner, UniqueName};
use crate::model::webhook_call::WebhookCalls;
use crate::store::{
    AppliedDigest, Backlog, CommitError, EventRow, KnownServices, Listing, OutboxId, OutboxRow, ReadStore, Retained,
    Retention, RevisionFacts, RunFilter, ServiceFacts, Store, Transaction, Versioned,
};

/// What happens at the calls of a store.
pub trait Guard: Send + Sync {
    /// Happens before every call; an error is its answer.
    fn pass(&self) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Makes a change durable.
    fn commit(
        &self,
        store: &dyn Store,
        transaction: Transaction,
    ) -> impl Future<Output = Result<(), CommitError>> + Send {
        async move {
            self.pass().await.map_err(CommitError::Failed)?;
            store.commit(transaction).await
        }
    }

    /// So many records were handed out by a call that answers with several.
    fn answered(&self, _records: usize) {}

    /// In which order claimed rows are handed out.
    fn arrange(&self, rows: Vec<OutboxRow>) -> Vec<OutboxRow> {
        rows
    }
}

/// A store behind a guard.
pub struct GuardedStore<G> {
    /// What happens at its calls.
    pub guard: G,
    /// What answers them.
    pub store: Arc<dyn Store>,
}

impl<G> std::fmt::Debug for GuardedStore<G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuardedStore").finish_non_exhaustive()
    }
}

#[async_trait]
impl<G: Guard> Store for GuardedStore<G> {
    fn incarnation(&self) -> &Incarnation {
        self.store.incarnation()
    }

    async fn commit(&self, transaction: Transaction) -> Result<(), CommitError> {
        self.guard.commit(&*self.store, transaction).await
    }

    async fn claim(&self, lane: &Lane, now: Timestamp, limit: u32) -> Result<Vec<OutboxRow>, CommitError> {
        self.guard.pass().await.map_err(CommitError::Failed)?;
        Ok(self.guard.arrange(self.store.claim(lane, now, limit).await?))
    }

    async fn give_back(&self, id: OutboxId) -> Result<(), CommitError> {
        self.guard.pass().await.map_err(CommitError::Failed)?;
        self.store.give_back(id).await
    }

    async fn retain(&self, retention: Retention) -> Result<Retained> {
        self.guard.pass().await?;
        self.store.retain(retention).await
    }

    async fn superfluous(&self, retention: Retention) -> Result<Retained> {
        self.guard.pass().await?;
        self.store.superfluous(retention).await
    }

    async fn backup(&self, to: &Path) -> Result<()> {
        self.guard.pass().await?;
        self.store.backup(to).await
    }
}

impl<G: Guard> GuardedStore<G> {
    fn counted<T>(&self, found: T) -> T
    where
        for<'a> &'a T: IntoIterator,
    {
        self.guard.answered((&found).into_iter().count());
        found
    }

    fn listed<T>(&self, listing: Listing<T>) -> Listing<T> {
        Listing { found: self.counted(listing.found), ..listing }
    }
}

#[async_trait]
impl<G: Guard> ReadStore for GuardedStore<G> {
    async fn run(&self, id: &RunId) -> Result<Option<Versioned<Run>>> {
        self.guard.pass().await?;
        self.store.run(id).await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Listing<Versioned<Run>>> {
        self.guard.pass().await?;
        Ok(self.listed(self.store.runs(filter).await?))
    }

    async fn slot(&self, service: &ServiceKey) -> Result<Option<Versioned<SlotState>>> {
        self.guard.pass().await?;
        self.store.slot(service).await
    }

    async fn outline(&self, repository: &RepositoryName, commit: &str) -> Result<Option<RevisionState>> {
        self.guard.pass().await?;
        self.store.outline(repository, commit).await
    }

    async fn outlines(&self, repository: &RepositoryName, limit: u32) -> Result<Vec<RevisionState>> {
        self.guard.pass().await?;
        Ok(self.counted(self.store.outlines(repository, limit).await?))
    }

    async fn revision_facts(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
        known: KnownServices,
    ) -> Result<Option<RevisionFacts>> {
        self.guard.pass().await?;
        let found = self.store.revision_facts(repository, commit, known).await?;
        self.guard.answered(found.iter().map(|facts| facts.moved.services.len() + facts.services.len()).sum());
        Ok(found)
    }

    async fn service_facts(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
        plan: &PlanId,
        services: &[ServiceName],
    ) -> Result<Vec<ServiceFacts>> {
        self.guard.pass().await?;
        Ok(self.counted(self.store.service_facts(repository, commit, plan, services).await?))
    }

    async fn config_keys(&self) -> Result<Vec<ConfigKey>> {
        self.guard.pass().await?;
        Ok(self.counted(self.store.config_keys().await?))
    }

    async fn open_slots(&self, project: Option<&ProjectName>) -> Result<Vec<Versioned<SlotState>>> {
        self.guard.pass().await?;
        Ok(self.counted(self.store.open_slots(project).await?))
    }

    async fn open_slot_keys(&self, project: Option<&ProjectName>) -> Result<Vec<ServiceKey>> {
        self.guard.pass().await?;
        Ok(self.counted(self.store.open_slot_keys(project).await?))
    }

    async fn events(&self, run: Option<&RunId>, after: i64, limit: u32) -> Result<Vec<EventRow>> {
        self.guard.pass().await?;
        Ok(self.counted(self.store.events(run, after, limit).await?))
    }

    async fn newest_events(&self, run: Option<&RunId>, before: i64, limit: u32) -> Result<Vec<EventRow>> {
        self.guard.pass().await?;
        Ok(self.counted(self.store.newest_events(run, before, limit).await?))
    }

    async fn config(&self, key: &ConfigKey) -> Result<Option<Versioned<ConfigState>>> {
        self.guard.pass().await?;
        self.store.config(key).await
    }

    async fn configs(
        &self,
        project: Option<&ProjectName>,
        stage: Option<&StageName>,
    ) -> Result<Listing<Versioned<ConfigState>>> {
        self.guard.pass().await?;
        Ok(self.listed(self.store.configs(project, stage).await?))
    }

    async fn configs_of(&self, service: &ServiceKey) -> Result<Vec<Versioned<ConfigState>>> {
        self.guard.pass().await?;
        Ok(self.counted(self.store.configs_of(service).await?))
    }

    async fn objects(
        &self,
        project: Option<&ProjectName>,
        stage: Option<&StageName>,
        kind: Option<&Kind>,
    ) -> Result<Listing<Versioned<ObjectState>>> {
        self.guard.pass().await?;
        Ok(self.listed(self.store.objects(project, stage, kind).await?))
    }

    async fn object(
        &self,
        project: &ProjectName,
        stage: &StageName,
        key: &ObjectKey,
    ) -> Result<Option<Versioned<ObjectState>>> {
        self.guard.pass().await?;
        self.store.object(project, stage, key).await
    }

    async fn applied(&self, project: &ProjectName, stage: &StageName) -> Result<Vec<AppliedDigest>> {
        self.guard.pass().await?;
        Ok(self.counted(self.store.applied(project, stage).await?))
    }

    async fn applied_stages(&self, project: &ProjectName) -> Result<Vec<StageName>> {
        self.guard.pass().await?;
        Ok(self.counted(self.store.applied_stages(project).await?))
    }

    async fn repository(&self, name: &RepositoryName) -> Result<Option<Versioned<RepositoryState>>> {
        self.guard.pass().await?;
        self.store.repository(name).await
    }

    async fn repositories(&self) -> Result<Listing<Versioned<RepositoryState>>> {
        self.guard.pass().await?;
        Ok(self.listed(self.store.repositories().await?))
    }

    async fn revision(&self, repository: &RepositoryName, commit: &str) -> Result<Option<RevisionState>> {
        self.guard.pass().await?;
        self.store.revision(repository, commit).await
    }

    async fn revisions(&self, repository: &RepositoryName, limit: u32) -> Result<Vec<RevisionState>> {
        self.guard.pass().await?;
        Ok(self.counted(self.store.revisions(repository, limit).await?))
    }

    async fn plan(&self, id: &PlanId) -> Result<Option<Plan>> {
        self.guard.pass().await?;
        self.store.plan(id).await
    }

    async fn delivered(
        &self,
        project: &ProjectName,
        stage: &StageName,
        except: Option<&Digest>,
    ) -> Result<BTreeMap<ServiceName, Delivered>> {
        self.guard.pass().await?;
        Ok(self.counted(self.store.delivered(project, stage, except).await?))
    }

    async fn attempts(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
        service: &ServiceKey,
        sequence: Option<&str>,
    ) -> Result<u32> {
        self.guard.pass().await?;
        self.store.attempts(repository, commit, service, sequence).await
    }

    async fn plan_of(&self, id: &PlanId, service: &ServiceName) -> Result<Option<Plan>> {
        self.guard.pass().await?;
        self.store.plan_of(id, service).await
    }

    async fn newest_plan_of(&self, project: &ProjectName, service: &ServiceName) -> Result<Option<Plan>> {
        self.guard.pass().await?;
        self.store.newest_plan_of(project, service).await
    }

    async fn passed(&self, key: &PassedKey) -> Result<Option<Versioned<PassedState>>> {
        self.guard.pass().await?;
        self.store.passed(key).await
    }

    async fn holds_of(&self, project: &ProjectName) -> Result<Option<Versioned<ProjectHolds>>> {
        self.guard.pass().await?;
        self.store.holds_of(project).await
    }

    async fn holds(&self) -> Result<Listing<Hold>> {
        self.guard.pass().await?;
        Ok(self.listed(self.store.holds().await?))
    }

    async fn name_owner(&self, name: &UniqueName) -> Result<Option<Versioned<NameOwner>>> {
        self.guard.pass().await?;
        self.store.name_owner(name).await
    }

    async fn posted(&self, repository: &RepositoryName, writer: &WriterName, commit: &CommitId) -> Result<Vec<Posted>> {
        self.guard.pass().await?;
        Ok(self.counted(self.store.posted(repository, writer, commit).await?))
    }

    async fn overtaken_by(&self, repository: &RepositoryName, commit: &CommitId) -> Result<Vec<CommitId>> {
        self.guard.pass().await?;
        self.store.overtaken_by(repository, commit).await
    }

    async fn was_delivered(&self, repository: &RepositoryName, id: &str) -> Result<bool> {
        self.guard.pass().await?;
        self.store.was_delivered(repository, id).await
    }

    async fn webhook_calls(&self, repository: &RepositoryName) -> Result<WebhookCalls> {
        self.guard.pass().await?;
        self.store.webhook_calls(repository).await
    }

    async fn seen_tags(&self, repository: &RepositoryName) -> Result<Option<SeenTags>> {
        self.guard.pass().await?;
        self.store.seen_tags(repository).await
    }

    async fn seed(&self) -> Result<Option<Seed>> {
        self.guard.pass().await?;
        self.store.seed().await
    }

    async fn last_event(&self) -> Result<u64> {
        self.guard.pass().await?;
        self.store.last_event().await
    }

    async fn next_due(&self, lane: &Lane, now: Timestamp) -> Result<Option<Timestamp>> {
        self.guard.pass().await?;
        self.store.next_due(lane, now).await
    }

    async fn backlog(&self, lane: &Lane) -> Result<Backlog> {
        self.guard.pass().await?;
        self.store.backlog(lane).await
    }

    async fn outbox(&self, run: Option<&RunId>) -> Result<Vec<OutboxRow>> {
        self.guard.pass().await?;
        Ok(self.counted(self.store.outbox(run).await?))
    }
}
