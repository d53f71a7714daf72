//! Reconciles what serves: for each deployment config, what is wanted is compared with what is there, and the difference
//! is acted on. Nothing of this needs to be remembered, because it can always be worked out again.

mod awaited_services;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::engine::deployment::adoption::{self, Strangers};
use crate::engine::deployment::machine;
use crate::engine::deployment::observed::{Count, Observed};
use crate::engine::deployment::serve::Serving;
use crate::engine::transition::Input;
use crate::error::{Failure, Result};
use crate::executor::declarations::Declarations;
use crate::executor::drive::Driver;
use crate::executor::services::Services;
use crate::executor::set_aside::{Item, SetAside};
use crate::executor::traffic::Traffic;
use crate::executor::work_queue::{ServicesDue, WorkQueue};
use crate::executor::{inherited, perform};
use crate::model::event::Event;
use crate::model::ids::{ConfigKey, Namespace, ServiceKey};
use crate::model::pod::{ObservedPod, Origin, PodId, PodOwner, PodPhase, ReplicaSet, STRANGER};
use crate::model::run::{Run, SequenceRun};
use crate::model::state::ConfigState;
use crate::model::time::Timestamp;
use crate::model::transaction::ObjectPlace;
use crate::runtime::Runtime;
use crate::runtime::replicas::ENDED_PODS_KEPT;

/// How often everything is reconciled although nothing is announced.
const RESYNC: Duration = Duration::from_secs(60);
/// The pause after a failure of the store.
const PAUSE: Duration = Duration::from_secs(2);
/// How many deployment configs are reconciled before it is asked again what else there is to do.
const AT_ONCE: usize = 64;
/// How many of them side by side: starting a pod waits for the disk.
const SIDE_BY_SIDE: usize = 8;
/// How often strangers are judged again that wait for what will be wanted; what wants it does not wait for that.
const STRANGERS_PAUSE: Duration = Duration::from_secs(30);
/// Why strangers serve on although the record names something else.
const AWAITING: &str = "what another life of the store has left serves on until it is decided what takes its place";

/// Brings what is there to what is wanted, and tells runs what became of their pods.
#[derive(Clone)]
pub struct Reconciler {
    driver: Driver,
    runtime: Arc<dyn Runtime>,
    declarations: Arc<dyn Declarations>,
    side_by_side: usize,
    traffic: Arc<Traffic>,
    /// Run-once pods whose end was reported to the run that waits for it, with when they were made: once such a pod is
    /// deleted, another may get its name.
    reported: Arc<Mutex<BTreeMap<PodId, Timestamp>>>,
    aside: Arc<SetAside>,
    caught_up: watch::Sender<bool>,
}

impl std::fmt::Debug for Reconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconciler").finish_non_exhaustive()
    }
}

impl Reconciler {
    /// A reconciler that acts on `runtime`; what no record names goes if `declarations` do not name it either.
    pub fn new(driver: Driver, runtime: Arc<dyn Runtime>, declarations: Arc<dyn Declarations>) -> Self {
        let (traffic, reported, aside) = Default::default();
        let (side_by_side, caught_up) = (SIDE_BY_SIDE, watch::Sender::new(false));
        Self { driver, runtime, declarations, side_by_side, traffic, reported, aside, caught_up }
    }

    /// Waits until runs know what became of their pods while nobody watched those, or until that cannot be found out.
    pub fn caught_up(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut caught_up = self.caught_up.subscribe();
        async move { drop(caught_up.wait_for(|is_so| *is_so).await) }
    }

    /// The same, which does one after the other, for whoever wants the same order every time.
    #[must_use]
    pub fn one_by_one(self) -> Self {
        Self { side_by_side: 1, ..self }
    }

    /// Works until told to stop.
    pub async fn run(self, stop: CancellationToken) {
        let mut touched = self.driver.changes();
        let mut changes = self.runtime.changes();
        let mut queue = WorkQueue::everything();
        let mut resync = tokio::time::interval(RESYNC);
        while !stop.is_cancelled() {
            if let Err(failure) = self.reconcile(&mut queue).await {
                tracing::error!(problem = failure.one_line(), "cannot reconcile what runs with what is wanted");
                self.caught_up.send_replace(true);
                queue.add_everything();
                tokio::select! { () = stop.cancelled() => break, () = tokio::time::sleep(PAUSE) => {} }
            }
            if queue.has_caught_up() {
                self.caught_up.send_replace(true);
            }
            if !queue.has_work() {
                let now = self.driver.clock.now();
                let wait = queue.next_due().map_or(RESYNC, |at| at.since(now).max(Duration::from_millis(1)));
                tokio::select! {
                    () = stop.cancelled() => break,
                    _ = resync.tick() => queue.add_everything(),
                    () = tokio::time::sleep(wait) => queue.come_due(self.driver.clock.now()),
                    change = touched.recv() => queue.touched(change),
                    change = changes.recv() => queue.changed(change),
                }
            }
            queue.take_in(&mut touched, &mut changes);
        }
    }

    /// Reconciles everything once. Says when to do so again although nothing is announced.
    ///
    /// # Errors
    /// If the store or the runtime cannot be read at all.
    pub async fn reconcile_everything(&self) -> Result<Option<Timestamp>> {
        let mut queue = WorkQueue::everything();
        while queue.has_work() {
            self.reconcile(&mut queue).await?;
        }
        Ok(queue.next_due())
    }

    /// Works a part of the queue off: those that wait longest first, so that nobody waits for more than what came before.
    /// What fails is set aside, and comes again later.
    pub(crate) async fn reconcile(&self, queue: &mut WorkQueue) -> Result<()> {
        self.driver.metrics.overlooked_pods(std::mem::take(&mut queue.overlooked));
        self.driver.guard().await?;
        if queue.everything {
            self.take_stock(queue).await?;
            queue.everything = false;
        }
        if self.reconcile_services(&queue.services).await? {
            queue.orphans.get_or_insert(self.driver.clock.now() + STRANGERS_PAUSE);
        }
        for image in std::mem::take(&mut queue.images) {
            queue.configs.extend(self.driver.hindrances.waiting_for(&image));
        }
        for stage in queue.services.take_stages() {
            queue.configs.extend(self.driver.hindrances.within(stage.as_ref())); // what was missing may be there now
        }
        while let Some(pod) = queue.pods.pop_first() {
            let reported = self.report_ended(&pod).await;
            self.aside.judge(Item::Pod(pod), reported);
        }
        let configs = queue.configs.take(AT_ONCE);
        self.driver.pace.set_behind("reconciler", !queue.configs.is_empty());
        let mut work =
            stream::iter(configs).map(|config| self.reconcile_one(config)).buffer_unordered(self.side_by_side);
        while let Some((config, again)) = work.next().await {
            queue.later.extend(again.map(|at| (Item::Config(config), at)));
        }
        let now = self.driver.clock.now();
        queue.later.extend(self.aside.take().into_iter().map(|(item, pause)| (item, now + pause)));
        queue.stock = queue.stock.saturating_sub(AT_ONCE);
        Ok(())
    }

    /// What there is to reconcile at all; what no record names and nobody waits for ends here.
    async fn take_stock(&self, queue: &mut WorkQueue) -> Result<()> {
        self.traffic.take_stock(&*self.driver.store).await?;
        let configs = self.driver.store.config_keys().await?;
        let known: BTreeSet<ConfigKey> = configs.iter().cloned().collect();
        queue.configs.extend(configs);
        queue.stock = queue.configs.len();
        let mut orphans = false;
        for namespace in self.runtime.namespaces().await? {
            let looked = self.take_stock_of(&namespace, &known, &mut queue.pods).await;
            orphans |= self.aside.judge(Item::Namespace(namespace), looked).unwrap_or_default();
        }
        queue.orphans = orphans.then(|| self.driver.clock.now() + STRANGERS_PAUSE);
        let awaited = inherited::tell_of_missing_pods(&self.driver, &*self.runtime, &self.aside).await?;
        queue.services.awaited.extend(awaited);
        Ok(())
    }

    /// What there is in a namespace: run-once pods; says whether there are pods that no record names.
    async fn take_stock_of(
        &self,
        namespace: &Namespace,
        known: &BTreeSet<ConfigKey>,
        once: &mut BTreeSet<PodId>,
    ) -> Result<bool> {
        let pods = self.runtime.observe(namespace).await?;
        let there: BTreeSet<&PodId> = pods.iter().map(|pod| &pod.id).collect();
        self.reported().retain(|pod, _| &pod.namespace != namespace || there.contains(pod));
        once.extend(pods.iter().filter(|pod| pod.version().is_none()).map(|pod| pod.id.clone()));
        self.end_orphans(known, &pods).await
    }

    async fn end_orphans(&self, known: &BTreeSet<ConfigKey>, pods: &[ObservedPod]) -> Result<bool> {
        let (store, life) = (&self.driver.store, self.driver.store.incarnation());
        inherited::end_orphans(&**store, &*self.declarations, &*self.runtime, known, pods, life).await
    }

    /// The services of everything that was announced, or all; says whether some that nobody declares may not go yet.
    async fn reconcile_services(&self, due: &ServicesDue) -> Result<bool> {
        let mut are_left = false;
        let services = self.services();
        let mut places: BTreeSet<ObjectPlace> =
            due.some.iter().chain(&due.again).filter_map(ObjectPlace::service).collect();
        let awaited =
            due.awaited.iter().cloned().chain(places.iter().filter_map(|place| self.driver.selectors.service(place)));
        let awaiting = self.awaiting(awaited.collect()).await;
        if due.all {
            are_left = services.reconcile_all().await?;
        } else {
            // What is gone comes first: another may have its name by now.
            for (namespace, place) in &due.left {
                let stays = services.leave(namespace, place).await;
                let item = Item::Leftover(namespace.clone(), place.key.name.clone());
                are_left |= self.aside.judge(item, stays).unwrap_or_default();
            }
            for run in &awaiting {
                places.extend(self.driver.selectors.of(&run.service).into_iter().chain(run.services()));
            }
            services.reconcile_some(&places).await;
        }
        for run in awaiting {
            let told = self.tell_awaiting(&services, &run).await;
            self.aside.judge(Item::Awaiting(run.service), told);
        }
        Ok(are_left)
    }

    /// The sequences that wait for `Service` objects of these services to listen. They are read before these are asked, so
    /// that none is told what was found before it applied its own.
    async fn awaiting(&self, services: BTreeSet<ServiceKey>) -> Vec<SequenceRun> {
        let mut awaiting = Vec::new();
        for service in services {
            let run = self.awaiting_one(&service).await;
            awaiting.extend(self.aside.judge(Item::Awaiting(service), run).flatten());
        }
        awaiting
    }

    async fn awaiting_one(&self, service: &ServiceKey) -> Result<Option<SequenceRun>> {
        let slot = self.driver.store.slot(service).await?;
        let Some(holder) = slot.and_then(|slot| slot.value.holder) else { return Ok(None) };
        let run = self.driver.store.run(&holder).await?;
        Ok(run.as_ref().and_then(|run| run.value.sequence()).filter(|run| run.awaits_services()).cloned())
    }

    /// Tells one how they are.
    async fn tell_awaiting(&self, services: &Services<'_>, run: &SequenceRun) -> Result<()> {
        let mut places = self.driver.selectors.of(&run.service);
        places.extend(run.services()); // also those that could not even be read
        let problem = services.problems(&places);
        // What leads nowhere without a problem is not asked for: its repository is being taken down.
        if problem.is_empty() && run.services().any(|place| self.driver.selectors.service(&place).is_none()) {
            return Ok(());
        }
        self.driver.tell(&run.id, Event::ServicesChecked { problem }).await
    }

    fn services(&self) -> Services<'_> {
        let (store, declarations, runtime) = (&*self.driver.store, &*self.declarations, &*self.runtime);
        let (aside, selectors, now) = (&*self.aside, &*self.driver.selectors, self.driver.clock.now());
        Services { store, declarations, runtime, traffic: &self.traffic, aside, selectors, now }
    }

    /// Reconciles one; says when to do so again. One that cannot be reconciled holds up no other.
    async fn reconcile_one(&self, config: ConfigKey) -> (ConfigKey, Option<Timestamp>) {
        let reconciled = self.try_reconcile(&config).await;
        let again = self.aside.judge(Item::Config(config.clone()), reconciled).flatten();
        (config, again)
    }

    async fn try_reconcile(&self, config: &ConfigKey) -> Result<Option<Timestamp>> {
        let Some(state) = self.driver.store.config(config).await?.map(|state| state.value) else {
            self.driver.hindrances.forget(config);
            self.traffic.forget(config);
            self.divide_traffic(config, &[]).await;
            return Ok(None);
        };
        let pods = self.runtime.observe_config(&state.destination.namespace, config).await?;
        self.traffic.note(&state);
        self.divide_traffic(config, &pods).await;
        self.reconcile_config(&state, &pods).await
    }

    /// Has the services divide their traffic that may have to do so otherwise: before any pod comes or goes.
    async fn divide_traffic(&self, config: &ConfigKey, pods: &[ObservedPod]) {
        let share = self.traffic.sharing().contains_key(config);
        let places = self.driver.selectors.dividing(config, share, pods);
        self.services().reconcile_some(&places).await;
    }

    /// Tells the run that waits for a run-once pod that it ended.
    async fn report_ended(&self, id: &PodId) -> Result<()> {
        let Some(pod) = self.runtime.observe_pod(id).await? else {
            self.reported().remove(id);
            return Ok(());
        };
        if pod.is_stranger() {
            return inherited::end_runs(&*self.runtime, std::slice::from_ref(&pod)).await;
        }
        let (PodOwner::Run { run, .. }, PodPhase::Ended { outcome }) = (&pod.owner, &pod.phase) else { return Ok(()) };
        if self.reported().get(id) == Some(&pod.created_at) {
            return Ok(());
        }
        let Some(asks) = self.driver.store.run(run).await? else { return Ok(()) };
        if !pod.owner.is_of(run, asks.value.created_at()) {
            return Ok(()); // an earlier run had this name, and was forgotten
        }
        let result = self.runtime.result(id).await?;
        let ended = Event::PodEnded { pod: id.name.clone(), outcome: outcome.clone(), result };
        self.driver.tell(run, ended).await?;
        self.reported().insert(id.clone(), pod.created_at);
        Ok(())
    }

    fn reported(&self) -> MutexGuard<'_, BTreeMap<PodId, Timestamp>> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acts on the difference for one deployment config; says when to decide again.
    async fn reconcile_config(&self, state: &ConfigState, pods: &[ObservedPod]) -> Result<Option<Timestamp>> {
        let now = self.driver.clock.now();
        let of_config = |pod: &&ObservedPod| pod.version().is_some_and(|(owner, _)| owner == &state.key);
        let mut pods: Vec<ObservedPod> = pods.iter().filter(of_config).cloned().collect();
        let strangers = self.take_over(state, &mut pods).await?;
        let observed = Observed::count(&pods, &state.key, state.wanted.min_ready_seconds, now);
        let serving = match strangers {
            Strangers::Awaiting => {
                self.driver.hindrances.note(&state.key, &Failure::transient(AWAITING));
                return Ok(Some(now + STRANGERS_PAUSE));
            }
            Strangers::Preferred => {
                self.driver.commit(&[Input::GiveWay(state.key.clone(), state.wanted.generation)]).await?;
                return Ok(Some(now + PAUSE));
            }
            Strangers::Outdated => return Ok(Some(now + PAUSE)), // the change has been announced as well
            strangers => adoption::decide(state, &pods, strangers, now),
        };
        let scaled = self.scale(state, &serving, &observed).await;
        let again = match &scaled {
            Ok(again) => {
                self.driver.hindrances.forget(&state.key);
                *again
            }
            Err(failure) => Some(now + self.driver.hindrances.note(&state.key, failure)),
        };
        let looks_again = self.tell_owner(state, &serving, &pods).await?.then(|| now + PAUSE);
        if state.removed && observed.is_gone() {
            self.forget(&state.key, &pods).await?;
        } else {
            self.forget_gone(state, &observed, now).await?;
        }
        Ok(serving.decide_again.into_iter().chain(again).chain(looks_again).min())
    }

    /// Takes over what another life of the store has left of a deployment config; says what becomes of the rest.
    async fn take_over(&self, state: &ConfigState, pods: &mut Vec<ObservedPod>) -> Result<Strangers> {
        if pods.iter().all(|pod| pod.origin == Origin::Own || !pod.lives()) {
            return Ok(Strangers::Replaced);
        }
        let strangers = inherited::judge(&*self.driver.store, state, pods).await?;
        if inherited::adopt(&*self.runtime, state, pods, self.driver.clock.now()).await? {
            let known: BTreeSet<PodId> = pods.drain(..).map(|pod| pod.id).collect();
            let there = self.runtime.observe_config(&state.destination.namespace, &state.key).await?;
            pods.extend(there.into_iter().filter(|pod| known.contains(&pod.id)));
        }
        let all_adopted = !pods.iter().any(|pod| pod.is_stranger() && pod.lives());
        Ok(match strangers {
            // There is nothing to wait with: what is wanted is kept up.
            Strangers::Awaiting | Strangers::Preferred if all_adopted && !state.wanted.targets.is_empty() => {
                Strangers::Replaced
            }
            strangers => strangers,
        })
    }

    /// Brings each version to its next count. Those that lose pods come first: others may need their room.
    async fn scale(&self, state: &ConfigState, serving: &Serving, observed: &Observed) -> Result<Option<Timestamp>> {
        let ended: u32 = observed.versions.values().map(|count| count.ended).sum();
        let tidy = ended as usize <= ENDED_PODS_KEPT;
        let differs = |(version, pods): &(&u32, &u32)| !tidy || observed.of(**version).living != **pods;
        let mut sets: Vec<(u32, u32)> = serving.counts.iter().filter(differs).map(|(v, pods)| (*v, *pods)).collect();
        sets.sort_by_key(|(version, pods)| *pods > observed.of(*version).living);
        let mut again = None;
        for (version, replicas) in sets {
            let set = self.replica_set(state, version, replicas).await?;
            let living = observed.of(version).living;
            let later = perform::scale(&*self.driver.store, &*self.runtime, &set, living).await?;
            again = again.into_iter().chain(later).min();
        }
        Ok(again)
    }

    /// A version with so many pods, as its deployment was asked for.
    async fn replica_set(&self, state: &ConfigState, version: u32, replicas: u32) -> Result<ReplicaSet> {
        let run = self.driver.store.run(&state.key.deployment(version)).await?.map(|run| run.value);
        match run {
            Some(Run::Deployment(run)) => {
                let min_ready_seconds = state.wanted.min_ready_seconds;
                Ok(ReplicaSet { min_ready_seconds, ..machine::replica_set(&run, replicas) })
            }
            _ if version == STRANGER => {
                Ok(ReplicaSet::strangers(state.key.clone(), state.destination.clone(), replicas))
            }
            _ if replicas == 0 => Ok(ReplicaSet::nothing_of(state.key.clone(), version, state.destination.clone())),
            _ => Err(Failure::stalled(format!("the record of {} version {version} is gone", state.key))),
        }
    }

    /// Tells the run that waits for it how far it is; a run that knows already ignores it. Says whether all pods are there
    /// that it waits for, and a service that leads to them does not listen: that passes without an announcement.
    async fn tell_owner(&self, state: &ConfigState, serving: &Serving, pods: &[ObservedPod]) -> Result<bool> {
        let Some(owner) = &state.wanted.owner else { return Ok(false) };
        let (not_listening, brought) = self.not_listening(owner, state, serving, pods).await?;
        let looks_again = serving.converged && !not_listening.is_empty();
        let problem = self.driver.hindrances.of(&state.key).filter(|_| !serving.converged);
        let of_pods = || pod_problem(state, pods).filter(|_| !serving.converged);
        let event = Event::Served {
            generation: state.wanted.generation,
            progress: serving.progress,
            converged: serving.converged,
            problem: problem.or_else(of_pods).unwrap_or_default(),
            not_listening,
            brought,
        };
        self.driver.tell(owner, event).await?;
        Ok(looks_again)
    }

    /// Versions that were only told to go and of which nothing is there any more need not be remembered.
    async fn forget_gone(&self, state: &ConfigState, observed: &Observed, now: Timestamp) -> Result<()> {
        let wanted = state.wanted.at(now);
        let is_gone = |version: &u32| matches!(observed.of(*version), Count { living: 0, leaving: 0, .. });
        let gone: BTreeSet<u32> = wanted.silenced.iter().copied().filter(is_gone).collect();
        if gone.is_empty() {
            return Ok(());
        }
        self.driver.commit(&[Input::Gone(state.key.clone(), state.wanted.generation, gone)]).await
    }

    /// The last pod of a deployment config that vanished is gone, and so is its record.
    async fn forget(&self, config: &ConfigKey, pods: &[ObservedPod]) -> Result<()> {
        for pod in pods {
            self.runtime.remove_pod(pod).await?;
        }
        self.traffic.forget(config);
        self.driver.commit(&[Input::Forget(config.clone())]).await
    }
}

/// What the first pod of the wanted version that says something about itself says; one that is ready, and has ended just
/// before, after those that are not.
fn pod_problem(state: &ConfigState, pods: &[ObservedPod]) -> Option<String> {
    let troubled = |pod: &&ObservedPod| {
        let wanted = state.wanted.version().map(|version| (&state.key, version));
        wanted.is_some() && pod.version() == wanted && !pod.message.is_empty()
    };
    let first = pods.iter().filter(troubled).min_by_key(|pod| matches!(pod.phase, PodPhase::Ready { .. }));
    first.map(|pod| format!("{}: {}", pod.id.name, pod.message))
}
