//! A daemon as tasks that take turns: the outbox and its workers, the reconciler, and a sync for each repository.
//!
//! Where a real daemon has a safety net, such as looking again every 30 seconds, this one has none: a wake-up that is
//! lost here is never made up for.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::{CountingIds, ManualClock};
use crate::control::replanning;
use crate::control::report_lane::ReportLane;
use crate::control::reporter::StatusReporter;
use crate::executor::admission::{Admission, SlotQueue};
use crate::executor::comments::NoComments;
use crate::executor::deployer_tokens::DeployerTokens;
use crate::executor::drive::Driver;
use crate::executor::outbox::{Outbox, Worker};
use crate::executor::perform::Performer;
use crate::executor::previews::NoPreviews;
use crate::executor::proposals::NoProposals;
use crate::executor::reconciler::Reconciler;
use crate::executor::sink_lane::SinkLane;
use crate::executor::sinks::Subscriber;
use crate::executor::sync;
use crate::executor::work_queue::WorkQueue;
use crate::model::ids::RepositoryName;
use crate::runtime::Runtime;
use crate::simulation::indicators::PretendedIndicators;
use crate::simulation::memory_store::MemoryDisk;
use crate::simulation::runtime::PretendedRuntime;
use crate::store::Store;
use crate::testing::guarded_store::GuardedStore;
use crate::testing::interleaved::alarm::Alarms;
use crate::testing::interleaved::events::{Events, subscribers};
use crate::testing::interleaved::fault::Made;
use crate::testing::interleaved::hosted::Hosted;
use crate::testing::interleaved::hosting::{Hosting, HostingWriter};
use crate::testing::interleaved::runtime::SharedRuntime;
use crate::testing::interleaved::scheduler::{Spawner, Turns};

/// The pause after something that did not work.
const PAUSE: Duration = Duration::from_secs(1);

/// How many actions of a lane are under way at once.
const HANDS: usize = 8;

/// What goes on when the daemon dies.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The time.
    pub clock: Arc<ManualClock>,
    /// What is stored.
    pub disk: MemoryDisk,
    /// Where pods live.
    pub runtime: Arc<PretendedRuntime>,
    /// Where repositories live.
    pub hosting: Hosting,
    pub(super) events: Events,
    pub(super) ids: Arc<CountingIds>,
    pub(super) alarms: Alarms,
    pub(super) made: Made,
    /// Whether daemons remember no record: whoever makes a mistake in the store has it seen by all.
    pub(super) is_forgetful: bool,
}

/// A daemon that runs.
#[derive(Clone, Debug)]
pub struct Daemon {
    /// Its driver, for commands.
    pub driver: Driver,
    /// The group of its tasks.
    pub group: u64,
    pub(super) hosting: Hosting,
    pub(super) events: Events,
    pub(super) runtime: Arc<SharedRuntime>,
    alarms: Alarms,
    spawner: Spawner,
}

impl Daemon {
    /// Starts one: it takes the store over and takes up what that holds.
    pub(super) fn start(around: &Surroundings, spawner: &Spawner, group: u64) -> Self {
        let store: Arc<dyn Store> = Arc::new(around.disk.open(around.clock.clone()));
        let store = Arc::new(GuardedStore { guard: Turns { made: around.made.clone() }, store });
        let subscriber = around.events.subscriber();
        let driver = Driver::new(store, around.clock.clone(), around.ids.clone());
        let driver = driver.with_subscribers(subscribers(subscriber.as_ref()));
        let driver = if around.is_forgetful { driver.forgetful() } else { driver };
        let (hosting, events, alarms) = (around.hosting.clone(), around.events.clone(), around.alarms.clone());
        let runtime =
            Arc::new(SharedRuntime(around.runtime.opened_for(driver.store.incarnation()), around.made.clone()));
        let daemon = Self { driver, group, hosting, events, runtime, alarms, spawner: spawner.clone() };
        let reporter = StatusReporter::new(daemon.driver.clone());
        let performer = Performer {
            driver: daemon.driver.clone(),
            runtime: daemon.runtime.clone(),
            proposals: Arc::new(NoProposals),
            indicators: Arc::<PretendedIndicators>::default(),
            previews: Arc::new(NoPreviews),
            comments: Arc::new(NoComments),
            tokens: DeployerTokens::new(b"pretended", daemon.driver.store.incarnation().clone()),
        };
        spawner.spawn(group, daemon.clone().admits(Admission::new(daemon.driver.clone())));
        for repository in daemon.hosting.repositories() {
            let (hosting, disk, fence) = (daemon.hosting.clone(), around.disk.clone(), around.disk.fence());
            let writer = HostingWriter { hosting, repository: repository.clone(), disk, fence };
            reporter.write_to(&repository, vec![Arc::new(writer)]);
            spawner.spawn(group, daemon.clone().syncs(repository));
        }
        let (hosting, asked) = (daemon.hosting.clone(), daemon.hosting.repositories().into_iter().collect());
        let ask = move |name: &RepositoryName| hosting.request_sync(name);
        spawner.spawn(group, replanning::run(daemon.driver.changes(), asked, ask));
        for lane in reporter.lanes() {
            spawner.spawn(group, daemon.clone().reports(lane));
        }
        for worker in Outbox::new(performer).lanes {
            spawner.spawn(group, daemon.clone().performs(worker));
        }
        let reconciler =
            Reconciler::new(daemon.driver.clone(), daemon.runtime.clone(), Arc::new(daemon.hosting.clone()));
        spawner.spawn(group, daemon.clone().reconciles(reconciler));
        if let Some(subscriber) = subscriber {
            spawner.spawn(group, daemon.clone().tells(subscriber));
        }
        daemon
    }

    /// Whoever waits for a slot that is free gets it.
    async fn admits(self, admission: Admission) {
        let mut changes = self.driver.changes();
        let mut queue = SlotQueue::everything();
        loop {
            tokio::select! { biased;
                change = changes.recv() => queue.touched(change),
                () = self.driver.pace.caught_up(), if !queue.is_empty() => {
                    if admission.examine_some(&mut queue).await.is_err() {
                        self.alarms.wait_until(Some(self.driver.clock.now() + PAUSE)).await;
                    }
                }
            }
        }
    }

    async fn syncs(self, repository: RepositoryName) {
        let mut requests = self.hosting.requests(&repository);
        let (hosted, mut first) = (Hosted { hosting: self.hosting.clone(), name: repository }, true);
        loop {
            let synced = sync::sync(&self.driver, &hosted, std::mem::take(&mut first)).await;
            let again = synced.is_err().then(|| self.driver.clock.now() + PAUSE);
            tokio::select! { biased;
                _ = requests.changed() => {}
                () = self.alarms.wait_until(again) => {}
            }
        }
    }

    async fn performs(self, worker: Worker) {
        let mut changes = self.driver.changes();
        let mut pods = self.runtime.changes();
        let ended = Arc::new(Notify::new());
        loop {
            let claimed = worker.claim(HANDS).await;
            let due = match &claimed {
                Ok(_) => worker.next_due().await.unwrap_or_default(),
                Err(_) => Some(self.driver.clock.now() + PAUSE),
            };
            for row in claimed.unwrap_or_default() {
                let (worker, ended, daemon) = (worker.clone(), ended.clone(), self.clone());
                self.spawner.spawn(self.group, async move {
                    if worker.perform(&row).await.is_err() {
                        daemon.alarms.wait_until(Some(daemon.driver.clock.now() + PAUSE)).await;
                        daemon.driver.give_back(row.id).await.ok();
                    }
                    ended.notify_one();
                });
            }
            let mut concerned = false;
            while !concerned {
                concerned = tokio::select! { biased;
                    () = ended.notified() => true,
                    change = changes.recv() => worker.touched(change, &mut changes).await,
                    change = pods.recv() => worker.runtime_changed(&change).await,
                    () = self.alarms.wait_until(due) => true,
                };
            }
        }
    }

    async fn reports(self, lane: Arc<ReportLane>) {
        lane.asked.retry();
        loop {
            let next = match lane.work().await {
                Ok(_) => lane.next_work().await.unwrap_or_default(),
                Err(_) => Some(self.driver.clock.now() + PAUSE),
            };
            tokio::select! { biased;
                () = lane.asked.woken() => {}
                () = self.alarms.wait_until(next) => {}
            }
        }
    }

    /// Whoever listens hears what happens. What is not taken is told again, which only its lane knows when.
    async fn tells(self, subscriber: Arc<Subscriber>) {
        let mut lane = SinkLane::new(self.driver.clone(), subscriber.clone(), Arc::new(self.events.clone()));
        loop {
            let next = match lane.work().await {
                Ok(_) => lane.next_work().await.unwrap_or_default(),
                Err(_) => Some(self.driver.clock.now() + PAUSE),
            };
            tokio::select! { biased;
                () = subscriber.woken() => {}
                () = self.alarms.wait_until(next) => {}
            }
        }
    }

    async fn reconciles(self, reconciler: Reconciler) {
        let mut touched = self.driver.changes();
        let mut changes = self.runtime.changes();
        let mut queue = WorkQueue::everything();
        loop {
            let failed = reconciler.reconcile(&mut queue).await.is_err();
            if failed {
                queue.add_everything();
                self.alarms.wait_until(Some(self.driver.clock.now() + PAUSE)).await;
            } else if !queue.has_work() {
                tokio::select! { biased;
                    () = self.alarms.wait_until(queue.next_due()) => queue.come_due(self.driver.clock.now()),
                    change = touched.recv() => queue.touched(change),
                    change = changes.recv() => queue.changed(change),
                }
            }
            queue.take_in(&mut touched, &mut changes);
        }
    }
}
