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
    /// The host's ids of repositories that were told lately, written or not.
    ids: BTreeMap<RepositoryName, String>,
    /// Whether somebody writes it.
    is_written: bool,
}

impl Journal {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, pending: Mutex::default() }
    }

    /// Has a call written soon, and the host's id of the repository if it told that. Returns at once. Whoever dies within a second of
    /// another call loses it: nothing depends on it.
    pub(super) fn remember(self: &Arc<Self>, repository: &RepositoryName, call: WebhookCall, id: Option<String>) {
        let mut pending = self.pending();
        let calls = pending.calls.entry(repository.clone()).or_default();
        calls.remember(call);
        calls.know(id.clone());
        pending.ids.extend(id.map(|id| (repository.clone(), id)));
        if !mem::replace(&mut pending.is_written, true) {
            tokio::spawn(self.clone().write());
        }
    }

    /// The host's id of a repository, as far as it is known.
    pub(super) async fn repository_id(&self, repository: &RepositoryName) -> Option<String> {
        let told = self.pending().ids.get(repository).cloned();
        if told.is_some() {
            return told;
        }
        let calls = self.store.webhook_calls(repository).await.ok()?;
        calls.repository_id().map(str::to_owned)
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
