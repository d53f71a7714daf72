//! Takes the actions of runs from the outbox when they are due and performs them: one after the other for each run, side
//! by side for different runs, and what ends something before what begins something. A row stays until it was performed,
//! so a crash loses nothing.
//!
//! Five lanes work independently: what prepares images, asks monitoring, waits for hosts (proposed rollbacks, what people ask for in
//! comments), or plans pull requests, can neither hide nor delay pods and timers. Statuses have lanes of their own (`control::report_lane`).

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::engine::given_up;
use crate::engine::transition::{Input, Touched};
use crate::error::{Class, Failure, Result};
use crate::executor::perform::Performer;
use crate::model::action::Lane;
use crate::model::event::Event;
use crate::model::time::Timestamp;
use crate::runtime::RuntimeChange;
use crate::store::{OutboxId, OutboxRow, Write};

/// How many actions of runs are under way at once; each is short.
const RUN_WORKERS: usize = 32;
/// How many images are asked for at once; what takes long in that goes on elsewhere.
const IMAGE_WORKERS: usize = 8;
/// How many evaluations are measured for at once.
const MEASUREMENT_WORKERS: usize = 16;
/// How many repositories' proposals are brought to their hosts, and comments there answered, at once.
const PROPOSAL_WORKERS: usize = 16;
/// How many repositories' pull requests are planned at once.
const PREVIEW_WORKERS: usize = 2;
/// How long to wait when nothing is known to come: a safety net, not a schedule.
const IDLE: Duration = Duration::from_secs(30);
/// The pause before something that waits for an announcement is tried again without one.
const WAITING_PAUSE: Duration = Duration::from_secs(2);
/// It is as long as something has waited, up to this.
const LONGEST_WAITING_PAUSE: Duration = Duration::from_secs(30);
/// The pause before the store is asked again after it failed, as on a full disk.
pub const STORE_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Performs what the outbox holds.
#[derive(Clone, Debug)]
pub struct Outbox {
    pub(crate) lanes: [Worker; 5],
}

impl Outbox {
    /// An outbox whose actions are performed by `performer`.
    pub fn new(performer: Performer) -> Self {
        let runs = Worker::new(performer.clone(), Lane::Runs, RUN_WORKERS);
        let images = Worker::new(performer.clone(), Lane::Images, IMAGE_WORKERS);
        let measurements = Worker::new(performer.clone(), Lane::Measurements, MEASUREMENT_WORKERS);
        let proposals = Worker::new(performer.clone(), Lane::Proposals, PROPOSAL_WORKERS);
        let previews = Worker::new(performer, Lane::Previews, PREVIEW_WORKERS);
        Self { lanes: [runs, images, measurements, proposals, previews] }
    }

    /// Works until told to stop; what is under way is finished first.
    pub async fn run(self, stop: CancellationToken) {
        futures::future::join_all(self.lanes.map(|lane| lane.run(stop.clone()))).await;
    }

    /// Performs everything that is due now, and what follows from it at once, until nothing is.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn drain(&self) -> Result<()> {
        loop {
            let mut idle = true;
            for lane in &self.lanes {
                idle &= !lane.perform_due().await?;
            }
            if idle {
                return Ok(());
            }
        }
    }

    /// When something comes due that is not due now.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn next_due(&self) -> Result<Option<Timestamp>> {
        let mut next = None;
        for lane in &self.lanes {
            let due = lane.next_due().await?;
            next = next.into_iter().chain(due).min();
        }
        Ok(next)
    }
}

/// Performs the actions of one lane.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    performer: Performer,
    lane: Lane,
    hands: Arc<Semaphore>,
    /// Rows that wait, by the announcement that they wait for, if they know it.
    waiting: Arc<Mutex<BTreeMap<Option<String>, BTreeSet<OutboxId>>>>,
    again: Arc<Notify>,
}

impl Worker {
    fn new(performer: Performer, lane: Lane, hands: usize) -> Self {
        let hands = Arc::new(Semaphore::new(hands));
        Self { performer, lane, hands, waiting: Arc::default(), again: Arc::default() }
    }

    async fn run(self, stop: CancellationToken) {
        let mut changes = self.performer.driver.changes();
        let mut runtime = self.performer.runtime.changes();
        let tracker = TaskTracker::new();
        let mut by_safety_net = false;
        while !stop.is_cancelled() {
            let wait = self.start_due(&tracker, by_safety_net).await.unwrap_or_else(|failure| {
                tracing::error!(lane = %self.lane, problem = failure.one_line(), "cannot read the outbox");
                STORE_PAUSE
            });
            by_safety_net = false;
            let (mut pause, mut concerned) = (pin!(tokio::time::sleep(wait)), false);
            while !concerned && !stop.is_cancelled() {
                concerned = tokio::select! {
                    () = stop.cancelled() => false,
                    () = self.again.notified() => true,
                    () = &mut pause => {
                        by_safety_net = wait == IDLE;
                        true
                    }
                    change = changes.recv() => self.touched(change, &mut changes).await,
                    change = runtime.recv() => self.runtime_changed(&change).await,
                };
            }
        }
        tracker.close();
        tracker.wait().await;
    }

    /// Starts as much of what is due as there are hands for; says how long nothing more will come by itself. What only the
    /// safety net finds is counted.
    async fn start_due(&self, tracker: &TaskTracker, by_safety_net: bool) -> Result<Duration> {
        let rows = self.claim(self.hands.available_permits()).await?;
        if by_safety_net {
            let now = self.performer.driver.clock.now();
            let overlooked = rows.iter().filter(|row| row.was_overlooked(now)).count();
            self.performer.driver.metrics.lost_wakeups(&self.lane, overlooked);
        }
        for row in rows {
            let Ok(hand) = self.hands.clone().acquire_owned().await else { break };
            let worker = self.clone();
            tracker.spawn(async move {
                if let Err(failure) = worker.perform(&row).await {
                    tracing::error!(run = %row.run, problem = failure.one_line(), "cannot commit an action's end");
                    worker.give_back(&row).await;
                }
                drop(hand);
                worker.again.notify_one();
            });
        }
        let now = self.performer.driver.clock.now();
        let next = self.next_due().await?;
        Ok(next.map_or(IDLE, |due| due.since(now).min(IDLE)))
    }

    /// Performs everything that is due now, one after the other; says whether there was anything.
    async fn perform_due(&self) -> Result<bool> {
        let rows = self.claim(usize::MAX).await?;
        for row in &rows {
            self.perform(row).await?;
        }
        Ok(!rows.is_empty())
    }

    /// Takes what is due and has nobody who performs it.
    pub(crate) async fn claim(&self, most: usize) -> Result<Vec<OutboxRow>> {
        if most == 0 {
            return Ok(Vec::new());
        }
        let driver = &self.performer.driver;
        let claimed = driver.claim(&self.lane, u32::try_from(most).unwrap_or(u32::MAX)).await?;
        driver.pace.set_behind(&self.lane.to_string(), claimed.len() >= most);
        Ok(claimed)
    }

    /// When something comes due that is not due now.
    pub(crate) async fn next_due(&self) -> Result<Option<Timestamp>> {
        let driver = &self.performer.driver;
        driver.store.next_due(&self.lane, driver.clock.now()).await
    }

    /// It is performed again, after a pause: whoever feels its effect must not feel it without end.
    async fn give_back(&self, row: &OutboxRow) {
        tokio::time::sleep(STORE_PAUSE).await;
        if let Err(failure) = self.performer.driver.give_back(row.id).await {
            tracing::error!(run = %row.run, problem = failure.one_line(), "cannot give an action back");
        }
    }

    /// Performs a row that was claimed. Where its end cannot be committed before a person puts a record right, it comes
    /// again, ever later.
    pub(crate) async fn perform(&self, row: &OutboxRow) -> Result<()> {
        match self.try_perform(row).await {
            Err(failure) if failure.class() == Class::Stalled => {
                let (driver, problem) = (&self.performer.driver, failure.one_line());
                tracing::error!(run = %row.run, action = row.key, problem, "cannot commit an action's end");
                let due = driver.clock.now() + pause_after(row.attempts);
                driver.commit(&[Input::Write(Box::new(Write::Postpone { id: row.id, due, problem }))]).await
            }
            performed => performed,
        }
    }

    async fn try_perform(&self, row: &OutboxRow) -> Result<()> {
        let performed = match &row.action {
            Ok(action) => self.performer.perform(&row.run, action).await,
            Err(problem) => Err(Failure::stalled(problem.clone())),
        };
        let result = match performed.as_ref().map_err(Failure::class) {
            Ok(_) => "performed",
            Err(Class::Waiting) => "waits",
            Err(Class::Transient | Class::Stalled) => "failed",
        };
        self.performer.driver.metrics.action(&row.key, result);
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
        let (run, action, id, mut inputs) = (&row.run, &row.key, row.id, Vec::new());
        let write = match failure.class() {
            Class::Stalled => {
                tracing::error!(%run, action, problem, "an action cannot be performed");
                inputs.extend(given_up::told(action, &problem).map(|event| Input::Tell(run.clone(), event)));
                // It stays, set aside, for people to see.
                Write::Await { id, due: None, reason: problem }
            }
            Class::Waiting => {
                tracing::debug!(%run, action, problem, "an action waits");
                locked(&self.waiting).entry(failure.awaits().map(ToOwned::to_owned)).or_default().insert(id);
                inputs.extend(match failure.awaits() {
                    Some(_) => no_longer_delayed(row), // what is announced comes by itself
                    None => Some(Input::Tell(run.clone(), Event::Delayed { message: problem.clone() })),
                });
                let pause = now.since(row.asked_at).clamp(WAITING_PAUSE, LONGEST_WAITING_PAUSE);
                Write::Await { id, due: Some(now + pause), reason: problem }
            }
            Class::Transient => {
                tracing::warn!(%run, action, problem, "an action failed and is tried again");
                inputs.push(Input::Tell(run.clone(), Event::Delayed { message: problem.clone() }));
                Write::Postpone { id, due: now + pause_after(row.attempts), problem }
            }
        };
        inputs.push(Input::Write(Box::new(write)));
        inputs
    }

    /// An image was prepared: what waits for it is due now. What waits for nothing that is announced may be, too, once
    /// anything may have changed. Says whether anything has come due here.
    pub(crate) async fn runtime_changed(&self, change: &Result<RuntimeChange, RecvError>) -> bool {
        let woken: BTreeSet<OutboxId> = match change {
            Ok(RuntimeChange::Pod(..) | RuntimeChange::Overlooked(_)) => return false,
            Ok(RuntimeChange::Image(image)) => locked(&self.waiting).remove(&Some(image.clone())).unwrap_or_default(),
            Ok(RuntimeChange::Everything) | Err(_) => {
                std::mem::take(&mut *locked(&self.waiting)).into_values().flatten().collect()
            }
        };
        self.wake(woken).await
    }

    /// Takes all announcements that are there already: one pass serves them all. Objects that changed may be those that
    /// something waits for. Says whether anything is asked for, or has come due, here.
    pub(crate) async fn touched(&self, first: Result<Touched, RecvError>, changes: &mut Receiver<Touched>) -> bool {
        // Of what was missed, anything may be true.
        let news = |change: Result<Touched, ()>| {
            change.map_or((true, true), |touched| (touched.asked.contains(&self.lane), !touched.objects.is_empty()))
        };
        let (mut asked, mut objects) = news(first.map_err(drop));
        loop {
            let (more, more_objects) = match changes.try_recv() {
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
                change => news(change.map_err(drop)),
            };
            (asked, objects) = (asked | more, objects | more_objects);
        }
        let waiting = if objects { locked(&self.waiting).remove(&None) } else { None };
        self.wake(waiting.unwrap_or_default()).await | asked
    }

    /// Brings forward what waits; says whether there is any.
    async fn wake(&self, rows: BTreeSet<OutboxId>) -> bool {
        let (any, due) = (!rows.is_empty(), self.performer.driver.clock.now());
        let wake = |id: OutboxId| Input::Write(Box::new(Write::Wake { id, due }));
        let inputs: Vec<Input> = rows.into_iter().map(wake).collect();
        if let Err(failure) = self.performer.driver.commit(&inputs).await {
            tracing::warn!(problem = failure.one_line(), "cannot wake what waits");
        }
        any
    }
}

/// Takes back what the run heard of an earlier try.
fn no_longer_delayed(row: &OutboxRow) -> Option<Input> {
    let delayed = row.attempts > 0 || !row.problem.is_empty();
    delayed.then(|| Input::Tell(row.run.clone(), Event::Delayed { message: String::new() }))
}

/// The pause before the next try of what has failed so often.
pub fn pause_after(failures: u32) -> Duration {
    Duration::from_secs(1).saturating_mul(2_u32.saturating_pow(failures)).min(LONGEST_PAUSE)
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tokio::sync::broadcast;

    use super::*;
    use crate::model::object::{Kind, ObjectKey};
    use crate::model::transaction::ObjectPlace;
    use crate::simulation::memory_store::MemoryDisk;
    use crate::simulation::world::{Surroundings, World};

    #[tokio::test]
    async fn a_lane_is_concerned_by_what_is_asked_for_in_it_and_by_what_it_missed() {
        let surroundings = Surroundings::default();
        let store = Arc::new(MemoryDisk::default().open(surroundings.clock()));
        let images = World::over(store, surroundings).outbox.lanes[1].clone();
        assert_eq!(images.lane, Lane::Images);
        let asked = |lanes: &[Lane]| Touched { asked: lanes.iter().cloned().collect(), ..Touched::default() };
        let map = ObjectKey { kind: Kind::ConfigMap, name: "settings".into() };
        let place = ObjectPlace { project: "shop".into(), stage: "dev".into(), key: map };
        let changed = Touched { objects: [place].into(), ..Touched::default() };
        // (what was announced, how much of it is heard, what is to come of it)
        let table = [
            (vec![Touched::default()], 4, false),
            (vec![asked(&[Lane::Runs]), asked(&[Lane::Previews])], 4, false),
            (vec![changed], 4, false), // nothing waits for it
            (vec![asked(&[Lane::Runs]), asked(&[Lane::Runs, Lane::Images])], 4, true),
            (vec![asked(&[Lane::Runs]), asked(&[Lane::Runs])], 1, true),
        ];
        for (announced, room, expected) in table {
            let (sender, mut changes) = broadcast::channel(room);
            announced.iter().for_each(|touched| drop(sender.send(touched.clone())));
            let first = changes.recv().await;
            assert_eq!(images.touched(first, &mut changes).await, expected, "{announced:?}");
        }
        for change in [Ok(RuntimeChange::Everything), Ok(RuntimeChange::Image("a".to_owned())), Err(RecvError::Closed)]
        {
            assert!(!images.runtime_changed(&change).await, "nothing waits for {change:?}");
        }
    }
}
