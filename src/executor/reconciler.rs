//! Reconciles what serves: for each deployment config, what is wanted is compared with what is there, and the difference
//! is acted on. Nothing of this needs to be remembered, because it can always be worked out again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::engine::deployment::machine;
use crate::engine::deployment::observed::Observed;
use crate::engine::deployment::serve::{self, Serving};
use crate::engine::transition::{Input, Touched};
use crate::error::{Failure, Result};
use crate::executor::drive::Driver;
use crate::executor::perform;
use crate::executor::services::reconcile_services;
use crate::model::event::Event;
use crate::model::ids::{ConfigKey, Namespace};
use crate::model::pod::{ObservedPod, PodId, PodOwner, PodPhase, ReplicaSet};
use crate::model::run::Run;
use crate::model::state::{ConfigState, Versioned, Wanted};
use crate::model::time::Timestamp;
use crate::runtime::replicas::ENDED_PODS_KEPT;
use crate::runtime::{Runtime, RuntimeChange};

/// How often everything is reconciled although nothing is announced.
const RESYNC: Duration = Duration::from_secs(60);
/// The pause after the first failure, of the store or to start pods; it doubles with each that follows.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
/// The longest pause between two tries to start pods.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Brings what is there to what is wanted, and tells runs what became of their pods.
#[derive(Clone)]
pub struct Reconciler {
    driver: Driver,
    runtime: Arc<dyn Runtime>,
    problems: Arc<Mutex<BTreeMap<ConfigKey, Problem>>>,
    /// Deployment configs whose versions share the traffic, as they were last reconciled.
    sharing: Arc<Mutex<BTreeMap<ConfigKey, Wanted>>>,
    /// Run-once pods whose end was reported to the run that waits for it.
    reported: Arc<Mutex<BTreeSet<PodId>>>,
}

impl std::fmt::Debug for Reconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconciler").finish_non_exhaustive()
    }
}

/// Why a deployment config cannot be brought to what is wanted.
#[derive(Debug, Default)]
struct Problem {
    message: String,
    /// How often that was tried.
    tries: u32,
}

/// What is to be reconciled next, and when.
#[derive(Debug, Default)]
pub(crate) struct WorkQueue {
    pub(crate) everything: bool,
    objects: bool,
    namespaces: BTreeSet<Namespace>,
    configs: BTreeSet<ConfigKey>,
    later: BTreeMap<ConfigKey, Timestamp>,
}

impl Reconciler {
    /// A reconciler that acts on `runtime`.
    pub fn new(driver: Driver, runtime: Arc<dyn Runtime>) -> Self {
        Self { driver, runtime, problems: Arc::default(), sharing: Arc::default(), reported: Arc::default() }
    }

    /// What holds a deployment config's pods back, if anything is known.
    pub fn problem(&self, config: &ConfigKey) -> Option<String> {
        self.problems().get(config).map(|problem| problem.message.clone())
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
                queue.everything = true;
                tokio::select! { () = stop.cancelled() => break, () = tokio::time::sleep(FIRST_PAUSE) => {} }
            }
            let wait = queue.next(self.driver.clock.now());
            tokio::select! {
                () = stop.cancelled() => break,
                _ = resync.tick() => queue.everything = true,
                () = tokio::time::sleep(wait) => queue.come_due(self.driver.clock.now()),
                change = touched.recv() => queue.touched(change),
                change = changes.recv() => queue.changed(change),
            }
            while let Ok(change) = touched.try_recv() {
                queue.touched(Ok(change));
            }
            while let Ok(change) = changes.try_recv() {
                queue.changed(Ok(change));
            }
        }
    }

    /// Reconciles everything once. Says when to do so again although nothing is announced.
    ///
    /// # Errors
    /// If the store or the runtime cannot be read.
    pub async fn reconcile_everything(&self) -> Result<Option<Timestamp>> {
        let mut queue = WorkQueue::everything();
        self.reconcile(&mut queue).await?;
        Ok(queue.later.into_values().min())
    }

    /// Works the queue off.
    pub(crate) async fn reconcile(&self, queue: &mut WorkQueue) -> Result<()> {
        let everything = std::mem::take(&mut queue.everything);
        let objects = std::mem::take(&mut queue.objects) || everything;
        if objects {
            queue.configs.extend(self.problems().keys().cloned()); // what was missing may be there now
        }
        let configs = self.due(std::mem::take(&mut queue.configs), everything).await?;
        if self.share_traffic(&configs) || objects {
            let (sharing, now) = (self.sharing().clone(), self.driver.clock.now());
            reconcile_services(&*self.driver.store, &*self.runtime, &sharing, now).await?;
        }
        let mut namespaces: BTreeMap<Namespace, Vec<Versioned<ConfigState>>> = BTreeMap::new();
        for namespace in std::mem::take(&mut queue.namespaces) {
            namespaces.entry(namespace).or_default();
        }
        if everything {
            for namespace in self.runtime.namespaces().await? {
                namespaces.entry(namespace).or_default();
            }
        }
        for config in configs {
            namespaces.entry(config.value.destination.namespace.clone()).or_default().push(config);
        }
        for (namespace, configs) in namespaces {
            let pods = self.runtime.observe(&namespace).await?;
            self.report_ended(&namespace, &pods).await?;
            for config in configs {
                let again = self.reconcile_config(&config, &pods).await?;
                queue.later.extend(again.map(|at| (config.value.key, at)));
            }
        }
        Ok(())
    }

    /// Notes which deployment configs have versions that share the traffic; says whether any of these does or did.
    fn share_traffic(&self, configs: &[Versioned<ConfigState>]) -> bool {
        let mut sharing = self.sharing();
        let mut any = false;
        for config in configs.iter().map(|config| &config.value) {
            let before = sharing.remove(&config.key);
            if config.wanted.shares_traffic() {
                sharing.insert(config.key.clone(), config.wanted.clone());
            }
            any |= before.is_some() || config.wanted.shares_traffic();
        }
        any
    }

    fn sharing(&self) -> MutexGuard<'_, BTreeMap<ConfigKey, Wanted>> {
        self.sharing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn due(&self, keys: BTreeSet<ConfigKey>, everything: bool) -> Result<Vec<Versioned<ConfigState>>> {
        if everything {
            return self.driver.store.configs(None, None).await;
        }
        let mut configs = Vec::new();
        for key in keys {
            configs.extend(self.driver.store.config(&key).await?);
        }
        Ok(configs)
    }

    /// Tells runs that their run-once pods ended. `pods` are all of a namespace: others of it are gone for good.
    async fn report_ended(&self, namespace: &Namespace, pods: &[ObservedPod]) -> Result<()> {
        let there: BTreeSet<&PodId> = pods.iter().map(|pod| &pod.id).collect();
        self.reported().retain(|pod| &pod.namespace != namespace || there.contains(pod));
        for pod in pods {
            let (PodOwner::Run { run, .. }, PodPhase::Ended { outcome }) = (&pod.owner, &pod.phase) else { continue };
            if self.reported().contains(&pod.id) {
                continue;
            }
            let event = Event::PodEnded { pod: pod.id.name.clone(), outcome: outcome.clone() };
            self.driver.tell(run, event).await?;
            self.reported().insert(pod.id.clone());
        }
        Ok(())
    }

    fn reported(&self) -> MutexGuard<'_, BTreeSet<PodId>> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acts on the difference for one deployment config; says when to decide again.
    async fn reconcile_config(
        &self,
        config: &Versioned<ConfigState>,
        pods: &[ObservedPod],
    ) -> Result<Option<Timestamp>> {
        let state = &config.value;
        let now = self.driver.clock.now();
        let observed = Observed::count(pods, &state.key, state.wanted.min_ready_seconds, now);
        let serving = serve::decide(&state.wanted, &observed);
        let scaled = self.scale(state, &serving, &observed).await;
        let again = match &scaled {
            Ok(again) => {
                self.forget_problem(&state.key);
                *again
            }
            Err(failure) => Some(now + self.remember(&state.key, failure)),
        };
        self.tell_owner(state, &serving, pods).await?;
        if state.removed && observed.is_gone() {
            self.forget(&state.key, pods).await?;
        }
        Ok(serving.decide_again.into_iter().chain(again).min())
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
            let later = perform::scale(&*self.driver.store, &*self.runtime, &set).await?;
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
            _ if replicas == 0 => Ok(ReplicaSet::nothing_of(state.key.clone(), version, state.destination.clone())),
            _ => Err(Failure::stalled(format!("the record of {} version {version} is gone", state.key))),
        }
    }

    fn problems(&self) -> MutexGuard<'_, BTreeMap<ConfigKey, Problem>> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget_problem(&self, config: &ConfigKey) {
        self.problems().remove(config);
    }

    /// Notes what holds a deployment config back; says how long to wait before it is tried again.
    fn remember(&self, config: &ConfigKey, failure: &Failure) -> Duration {
        let message = failure.one_line();
        let mut problems = self.problems();
        let problem = problems.entry(config.clone()).or_default();
        if problem.message != message {
            tracing::warn!(%config, problem = message, "cannot bring a deployment config to what is wanted");
            problem.message = message;
        }
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(problem.tries)).min(LONGEST_PAUSE);
        problem.tries += 1;
        pause
    }

    /// Tells the run that waits for it how far it is; a run that knows already ignores it.
    async fn tell_owner(&self, state: &ConfigState, serving: &Serving, pods: &[ObservedPod]) -> Result<()> {
        let Some(owner) = &state.wanted.owner else { return Ok(()) };
        let event = Event::Served {
            generation: state.wanted.generation,
            progress: serving.progress,
            converged: serving.converged,
            problem: if serving.converged { String::new() } else { self.why_not(state, pods) },
        };
        self.driver.tell(owner, event).await
    }

    fn why_not(&self, state: &ConfigState, pods: &[ObservedPod]) -> String {
        self.problem(&state.key).or_else(|| pod_problem(state, pods)).unwrap_or_default()
    }

    /// The last pod of a deployment config that vanished is gone, and so is its record.
    async fn forget(&self, config: &ConfigKey, pods: &[ObservedPod]) -> Result<()> {
        for pod in pods.iter().filter(|pod| pod.version().is_some_and(|(owner, _)| owner == config)) {
            self.runtime.remove_pod(&pod.id).await?;
        }
        self.sharing().remove(config);
        self.driver.commit(&[Input::Forget(config.clone())]).await
    }
}

/// What the first pod of the wanted version that is not ready says about itself.
fn pod_problem(state: &ConfigState, pods: &[ObservedPod]) -> Option<String> {
    let troubled = |pod: &&ObservedPod| {
        let wanted = state.wanted.version().map(|version| (&state.key, version));
        wanted.is_some()
            && pod.version() == wanted
            && !pod.message.is_empty()
            && !matches!(pod.phase, PodPhase::Ready { .. })
    };
    pods.iter().find(troubled).map(|pod| format!("{}: {}", pod.id.name, pod.message))
}

impl WorkQueue {
    /// Everything is to be reconciled.
    pub(crate) fn everything() -> Self {
        Self { everything: true, ..Self::default() }
    }

    pub(crate) fn touched(&mut self, change: Result<Touched, RecvError>) {
        match change {
            Ok(touched) => {
                self.configs.extend(touched.configs);
                self.objects |= touched.objects;
            }
            Err(_) => self.everything = true,
        }
    }

    pub(crate) fn changed(&mut self, change: Result<RuntimeChange, RecvError>) {
        match change {
            Ok(RuntimeChange::Pod(_, PodOwner::Version { config, .. })) => {
                self.configs.insert(config);
            }
            Ok(RuntimeChange::Pod(pod, PodOwner::Run { .. })) => {
                self.namespaces.insert(pod.namespace);
            }
            Ok(RuntimeChange::Image | RuntimeChange::Everything) | Err(_) => self.everything = true,
        }
    }

    fn next(&self, now: Timestamp) -> Duration {
        self.next_due().map_or(RESYNC, |at| at.since(now).max(Duration::from_millis(1)))
    }

    /// When something of it comes due by itself.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.later.values().min().copied()
    }

    pub(crate) fn come_due(&mut self, now: Timestamp) {
        let due: Vec<ConfigKey> = self.later.iter().filter(|(_, at)| **at <= now).map(|(key, _)| key.clone()).collect();
        for key in due {
            self.later.remove(&key);
            self.configs.insert(key);
        }
    }
}
