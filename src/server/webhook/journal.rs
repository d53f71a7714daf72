//! What calls came to, kept for people. It is written at most once a second, however many there are.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

use crate::error::{Failure, Result};
use crate::model::ids::RepositoryName;
use crate::model::webhook_call::{WebhookCall, WebhookCalls};
use crate::store::{Store, Transaction, Write};

/// The pause between two writes.
const PAUSE: Duration = Duration::from_secs(1);

/// The calls about all repositories.
pub(super) struct Journal {
    store: Arc<dyn Store>,
    pending: Mutex<Pending>,
}

/// What is not written yet.
#[derive(Default)]
struct Pending {
    calls: BTreeMap<RepositoryName, WebhookCalls>,
    /// Whether somebody writes it.
    is_written: bool,
}

impl Journal {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, pending: Mutex::default() }
    }

    /// Has a call written soon. Returns at once. Whoever dies within a second of another call loses it: nothing depends on it.
    pub(super) fn remember(self: &Arc<Self>, repository: &RepositoryName, call: WebhookCall) {
        let mut pending = self.pending();
        pending.calls.entry(repository.clone()).or_default().remember(call);
        if !mem::replace(&mut pending.is_written, true) {
            tokio::spawn(self.clone().write());
        }
    }

    async fn write(self: Arc<Self>) {
        while let Some(calls) = self.take() {
            for (repository, calls) in calls {
                if let Err(failure) = self.add(&repository, calls).await {
                    let problem = failure.one_line();
                    tracing::warn!(%repository, problem, "cannot remember what webhooks came to");
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// What is to be written; if there is nothing, the next call begins anew.
    fn take(&self) -> Option<BTreeMap<RepositoryName, WebhookCalls>> {
        let mut pending = self.pending();
        pending.is_written = !pending.calls.is_empty();
        pending.is_written.then(|| mem::take(&mut pending.calls))
    }

    async fn add(&self, repository: &RepositoryName, later: WebhookCalls) -> Result<()> {
        let calls = self.store.webhook_calls(repository).await?.then(later);
        let write = Write::WebhookCalls { repository: repository.clone(), calls: Box::new(calls) };
        self.store.commit(Transaction::of(vec![write])).await.map(drop).map_err(Failure::from)
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
