//! Takes actions from the outbox when they are due and performs them: in order for each run, side by side for
//! different runs. A row stays until it was performed, so a crash loses nothing.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, broadcast};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::{Class, Failure, Result};
use crate::executor::perform::Performer;
use crate::executor::transition::{Input, Touched};
use crate::model::event::Event;
use crate::model::ids::RunId;
use crate::runtime::RuntimeChange;
use crate::store::{OutboxId, OutboxRow, Write};

/// How many actions are under way at once; each is short.
const WORKERS: usize = 32;
/// How many due rows are read at once.
const PAGE: u32 = 256;
/// How long to wait when nothing is known to come: a safety net, not a schedule.
const IDLE: Duration = Duration::from_secs(30);
/// The pause before something that waits for an announcement is tried again without one.
const WAITING_PAUSE: Duration = Duration::from_secs(2);
/// The pause before an action is performed again whose end could not be committed, as on a full disk.
const COMMIT_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Performs what the outbox holds.
#[derive(Clone, Debug)]
pub struct Outbox {
    performer: Performer,
    busy: Arc<Mutex<BTreeSet<RunId>>>,
    /// Rows that ended since the last read began: a page that was read before may still name them.
    ended: Arc<Mutex<BTreeSet<OutboxId>>>,
    /// Rows that wait for the runtime to announce something.
    waiting: Arc<Mutex<BTreeSet<OutboxId>>>,
    again: Arc<Notify>,
    workers: Arc<Semaphore>,
}

impl Outbox {
    /// An outbox whose actions are performed by `performer`.
    pub fn new(performer: Performer) -> Self {
        let workers = Arc::new(Semaphore::new(WORKERS));
        Self {
            performer,
            busy: Arc::default(),
            ended: Arc::default(),
            waiting: Arc::default(),
            again: Arc::default(),
            workers,
        }
    }

    /// Works until told to stop; what is under way is finished first.
    pub async fn run(self, stop: CancellationToken) {
        let mut changes = self.performer.driver.changes();
        let mut runtime = self.performer.runtime.changes();
        let tracker = TaskTracker::new();
        while !stop.is_cancelled() {
            if let Err(failure) = self.start_due(&tracker).await {
                tracing::error!(problem = failure.one_line(), "cannot read the outbox");
            }
            let wait = self.until_next().await;
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.again.notified() => {}
                () = tokio::time::sleep(wait) => {}
                change = changes.recv() => drain(change, &mut changes),
                change = runtime.recv() => self.runtime_changed(&change).await,
            }
        }
        tracker.close();
        tracker.wait().await;
    }

    /// Performs everything that is due now, and what follows from it at once, until nothing is.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn settle(&self) -> Result<()> {
        loop {
            let now = self.performer.driver.clock.now();
            let rows = self.performer.driver.store.due(now, PAGE).await?;
            if rows.is_empty() {
                return Ok(());
            }
            for row in rows {
                self.perform(&row).await?;
            }
        }
    }

    async fn start_due(&self, tracker: &TaskTracker) -> Result<()> {
        let now = self.performer.driver.clock.now();
        locked(&self.ended).clear();
        for row in self.performer.driver.store.due(now, PAGE).await? {
            if !self.claim(&row) {
                continue;
            }
            let Ok(permit) = self.workers.clone().acquire_owned().await else { return Ok(()) };
            let outbox = self.clone();
            tracker.spawn(async move {
                if let Err(failure) = outbox.perform(&row).await {
                    tracing::error!(run = %row.run, problem = failure.one_line(), "cannot commit an action's end");
                    // It is performed again, and whoever feels its effect must not feel it without end.
                    tokio::time::sleep(COMMIT_PAUSE).await;
                }
                outbox.release(&row);
                drop(permit);
            });
        }
        Ok(())
    }

    /// Takes a row if nobody works for its run: actions of one run keep their order.
    fn claim(&self, row: &OutboxRow) -> bool {
        let mut busy = locked(&self.busy);
        !locked(&self.ended).contains(&row.id) && busy.insert(row.run.clone())
    }

    fn release(&self, row: &OutboxRow) {
        let mut busy = locked(&self.busy);
        locked(&self.ended).insert(row.id);
        busy.remove(&row.run);
        self.again.notify_one();
    }

    async fn until_next(&self) -> Duration {
        let now = self.performer.driver.clock.now();
        match self.performer.driver.store.next_due(now).await {
            Ok(Some(due)) => due.since(now).min(IDLE),
            Ok(None) | Err(_) => IDLE,
        }
    }

    async fn perform(&self, row: &OutboxRow) -> Result<()> {
        let performed = self.performer.perform(&row.run, &row.action).await;
        self.performer.driver.metrics.action(&row.action, performed.is_ok());
        let inputs = match performed {
            Ok(mut inputs) => {
                inputs.extend(no_longer_delayed(row));
                inputs.push(Input::Write(Box::new(Write::Done(row.id))));
                inputs
            }
            Err(failure) => self.failed(row, &failure),
        };
        self.performer.driver.commit(&inputs).await
    }

    fn failed(&self, row: &OutboxRow, failure: &Failure) -> Vec<Input> {
        let (problem, now) = (failure.one_line(), self.performer.driver.clock.now());
        let (run, action, mut inputs) = (&row.run, row.action.key(), Vec::new());
        let write = match failure.class() {
            Class::Stalled => {
                tracing::error!(%run, action, problem, "an action cannot be performed");
                Write::Done(row.id)
            }
            Class::Waiting => {
                tracing::debug!(%run, action, problem, "an action waits");
                locked(&self.waiting).insert(row.id);
                inputs.extend(no_longer_delayed(row));
                Write::Postpone { id: row.id, due: now + WAITING_PAUSE, problem }
            }
            Class::Transient => {
                tracing::warn!(%run, action, problem, "an action failed and is tried again");
                inputs.push(Input::Tell(run.clone(), Event::Delayed { message: problem.clone() }));
                Write::Postpone { id: row.id, due: now + pause_after(row.attempts), problem }
            }
        };
        inputs.push(Input::Write(Box::new(write)));
        inputs
    }

    /// An image was prepared: what waits for one is due now.
    async fn runtime_changed(&self, change: &Result<RuntimeChange, broadcast::error::RecvError>) {
        if matches!(change, Ok(RuntimeChange::Pod(..))) {
            return;
        }
        let waiting = std::mem::take(&mut *locked(&self.waiting));
        let due = self.performer.driver.clock.now();
        let wake = |id: OutboxId| Write::Postpone { id, due, problem: String::new() };
        let inputs: Vec<Input> = waiting.into_iter().map(|id| Input::Write(Box::new(wake(id)))).collect();
        if let Err(failure) = self.performer.driver.commit(&inputs).await {
            tracing::warn!(problem = failure.one_line(), "cannot wake what waits for an image");
        }
    }
}

/// Takes all announcements that are there already: one look serves them all.
fn drain(first: Result<Touched, broadcast::error::RecvError>, changes: &mut broadcast::Receiver<Touched>) {
    let mut last = first.is_ok();
    while last {
        last = changes.try_recv().is_ok();
    }
}

/// Takes back what the run was told of an earlier try.
fn no_longer_delayed(row: &OutboxRow) -> Option<Input> {
    let told = !row.problem.is_empty();
    told.then(|| Input::Tell(row.run.clone(), Event::Delayed { message: String::new() }))
}

fn pause_after(attempts: u32) -> Duration {
    Duration::from_secs(1).saturating_mul(2_u32.saturating_pow(attempts)).min(LONGEST_PAUSE)
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
