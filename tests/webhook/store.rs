//! A store that knows deliveries and nothing else.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use launchway::error::{Failure, Result};
use launchway::model::commit_status::CommitStatus;
use launchway::model::hold::Hold;
use launchway::model::ids::{
    CommitId, ConfigKey, Digest, PlanId, ProjectName, RepositoryName, RunId, ServiceKey, StageName,
};
use launchway::model::object::{Kind, ObjectKey};
use launchway::model::plan::Plan;
use launchway::model::run::Run;
use launchway::model::state::{ConfigState, ObjectState, RepositoryState, RevisionState};
use launchway::model::time::Timestamp;
use launchway::store::{
    AppliedDigest, CommitError, EventRow, OutboxRow, ReadStore, Retention, RunFilter, Store, Transaction, Versioned,
    Write,
};

#[derive(Default)]
pub(crate) struct DeliveryStore {
    deliveries: Mutex<HashSet<(RepositoryName, String)>>,
    broken: AtomicBool,
}

impl DeliveryStore {
    /// From now on nothing can be read or written.
    pub(crate) fn break_down(&self) {
        self.broken.store(true, Ordering::SeqCst);
    }

    fn require_whole(&self) -> Result<()> {
        if self.broken.load(Ordering::SeqCst) { Err(Failure::transient("the disk is full")) } else { Ok(()) }
    }
}

fn no<T>() -> Result<T> {
    Err(Failure::stalled("webhooks have no business here"))
}

#[async_trait]
impl Store for DeliveryStore {
    async fn commit(&self, transaction: Transaction) -> Result<(), CommitError> {
        self.require_whole().map_err(CommitError::Failed)?;
        for write in transaction.writes {
            match write {
                Write::Delivery { repository, id, .. } => {
                    self.deliveries.lock().unwrap().insert((repository, id));
                }
                _ => return no().map_err(CommitError::Failed),
            }
        }
        Ok(())
    }

    async fn retain(&self, _: Retention) -> Result<u64> {
        no()
    }

    async fn backup(&self, _: &Path) -> Result<()> {
        no()
    }
}

#[async_trait]
impl ReadStore for DeliveryStore {
    async fn was_delivered(&self, repository: &RepositoryName, id: &str) -> Result<bool> {
        self.require_whole()?;
        Ok(self.deliveries.lock().unwrap().contains(&(repository.clone(), id.to_owned())))
    }

    async fn run(&self, _: &RunId) -> Result<Option<Versioned<Run>>> {
        no()
    }

    async fn runs(&self, _: &RunFilter) -> Result<Vec<Versioned<Run>>> {
        no()
    }

    async fn slot(&self, _: &ServiceKey) -> Result<Vec<Versioned<Run>>> {
        no()
    }

    async fn events(&self, _: Option<&RunId>, _: i64, _: u32) -> Result<Vec<EventRow>> {
        no()
    }

    async fn config(&self, _: &ConfigKey) -> Result<Option<Versioned<ConfigState>>> {
        no()
    }

    async fn configs(&self, _: Option<&ProjectName>, _: Option<&StageName>) -> Result<Vec<Versioned<ConfigState>>> {
        no()
    }

    async fn objects(
        &self,
        _: Option<&ProjectName>,
        _: Option<&StageName>,
        _: Option<&Kind>,
    ) -> Result<Vec<Versioned<ObjectState>>> {
        no()
    }

    async fn object(&self, _: &ProjectName, _: &StageName, _: &ObjectKey) -> Result<Option<Versioned<ObjectState>>> {
        no()
    }

    async fn applied(&self, _: &ProjectName, _: &StageName) -> Result<Vec<AppliedDigest>> {
        no()
    }

    async fn applied_stages(&self, _: &ProjectName) -> Result<Vec<StageName>> {
        no()
    }

    async fn repository(&self, _: &RepositoryName) -> Result<Option<Versioned<RepositoryState>>> {
        no()
    }

    async fn repositories(&self) -> Result<Vec<Versioned<RepositoryState>>> {
        no()
    }

    async fn revision(&self, _: &RepositoryName, _: &str) -> Result<Option<RevisionState>> {
        no()
    }

    async fn revisions(&self, _: &RepositoryName, _: u32) -> Result<Vec<RevisionState>> {
        no()
    }

    async fn plan(&self, _: &PlanId) -> Result<Option<Plan>> {
        no()
    }

    async fn has_passed(&self, _: &ServiceKey, _: &Digest) -> Result<bool> {
        no()
    }

    async fn holds(&self) -> Result<Vec<Hold>> {
        no()
    }

    async fn posted(&self, _: &RepositoryName, _: &CommitId) -> Result<Vec<CommitStatus>> {
        no()
    }

    async fn due(&self, _: Timestamp, _: u32) -> Result<Vec<OutboxRow>> {
        no()
    }

    async fn next_due(&self, _: Timestamp) -> Result<Option<Timestamp>> {
        no()
    }

    async fn outbox(&self, _: Option<&RunId>) -> Result<Vec<OutboxRow>> {
        no()
    }
}
