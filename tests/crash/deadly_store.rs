//! A store that kills its process at the n-th record about the outbox.

use std::sync::atomic::{AtomicU32, Ordering};

use launchway::error::Failure;
use launchway::store::{CommitError, Store, Transaction, Write};
use launchway::testing::guarded_store::Guard;
use rustix::process::{Signal, getpid, kill_process};

/// When the process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Before,
    After,
}

/// Kills its process at one record.
pub(crate) struct Deadly {
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

impl Guard for Deadly {
    async fn pass(&self) -> Result<(), Failure> {
        Ok(())
    }

    async fn commit(&self, store: &dyn Store, transaction: Transaction) -> Result<(), CommitError> {
        let counts = transaction.writes.iter().any(about_outbox);
        let now = counts && self.seen.fetch_add(1, Ordering::SeqCst) + 1 == self.record;
        if now && self.moment == Moment::Before {
            die();
        }
        let committed = store.commit(transaction).await;
        if now {
            die();
        }
        committed
    }
}
