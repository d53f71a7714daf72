//! Keeps what should serve: for each deployment config, what is wanted is compared with what is there, and the
//! difference is acted on. Nothing of this needs to be remembered, because it can always be worked out again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::engine::deployment::machine::version_pod;
use crate::engine::deployment::serve::{self, Serving};
use crate::error::{Failure, Result};
use crate::executor::drive::Driver;
use crate::executor::perform::start_pod;
use crate::executor::services::keep_services;
use crate::executor::transition::{Input, Touched};
use crate::model::event::Event;
use crate::model::ids::{ConfigKey, Namespace};
use crate::model::pod::{ObservedPod, PodId, PodOwner, PodPhase};
use crate::model::run::Run;
use crate::model::state::{ConfigState, Versioned};
use crate::model::time::Timestamp;
use crate::runtime::{Runtime, RuntimeChange};

/// How often everything is compared although nothing is announced.
const FULL_LOOK: Duration = Duration::from_secs(60);
/// The pause before a pod that could not be started is tried again.
const START_PAUSE: Duration = Duration::from_secs(2);

/// Keeps what should serve.
#[derive(Clone)]
pub struct Keeper {
    driver: Driver,
    runtime: Arc<dyn Runtime>,
    problems: Arc<Mutex<BTreeMap<ConfigKey, String>>>,
    /// Run-once pods whose end the run that waits for it has been told.
    told: Arc<Mutex<BTreeSet<PodId>>>,
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}

/// What to look at next, and when.
#[derive(Debug, Default)]
struct Agenda {
    everything: bool,
    objects: bool,
    namespaces: BTreeSet<Namespace>,
    configs: BTreeSet<ConfigKey>,
    later: BTreeMap<ConfigKey, Timestamp>,
}

impl Keeper {
    /// A keeper that acts on `runtime`.
    pub fn new(driver: Driver, runtime: Arc<dyn Runtime>) -> Self {
        Self { driver, runtime, problems: Arc::default(), told: Arc::default() }
    }

    /// What holds a deployment config's pods back, if anything is known.
    pub fn problem(&self, config: &ConfigKey) -> Option<String> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).get(config).cloned()
    }

    /// Works until told to stop.
    pub async fn run(self, stop: CancellationToken) {
        let mut touched = self.driver.changes();
        let mut changes = self.runtime.changes();
        let mut agenda = Agenda { everything: true, ..Agenda::default() };
        let mut full_look = tokio::time::interval(FULL_LOOK);
        while !stop.is_cancelled() {
            if let Err(failure) = self.look(&mut agenda).await {
                tracing::error!(problem = failure.one_line(), "cannot compare what runs with what should");
                agenda.everything = true;
                tokio::select! { () = stop.cancelled() => break, () = tokio::time::sleep(START_PAUSE) => {} }
            }
            let wait = agenda.next(self.driver.clock.now());
            tokio::select! {
                () = stop.cancelled() => break,
                _ = full_look.tick() => agenda.everything = true,
                () = tokio::time::sleep(wait) => agenda.come_due(self.driver.clock.now()),
                change = touched.recv() => agenda.touched(change),
                change = changes.recv() => agenda.changed(change),
            }
            while let Ok(change) = touched.try_recv() {
                agenda.touched(Ok(change));
            }
            while let Ok(change) = changes.try_recv() {
                agenda.changed(Ok(change));
            }
        }
    }

    /// Compares everything with what is there, once. Says when to look again although nothing is announced.
    ///
    /// # Errors
    /// If the store or the runtime cannot be read.
    pub async fn look_at_everything(&self) -> Result<Option<Timestamp>> {
        let mut agenda = Agenda { everything: true, ..Agenda::default() };
        self.look(&mut agenda).await?;
        Ok(agenda.later.into_values().min())
    }

    async fn look(&self, agenda: &mut Agenda) -> Result<()> {
        let everything = std::mem::take(&mut agenda.everything);
        if std::mem::take(&mut agenda.objects) || everything {
            keep_services(&*self.driver.store, &*self.runtime).await?;
        }
        let mut namespaces: BTreeMap<Namespace, Vec<Versioned<ConfigState>>> = BTreeMap::new();
        for namespace in std::mem::take(&mut agenda.namespaces) {
            namespaces.entry(namespace).or_default();
        }
        if everything {
            for namespace in self.runtime.namespaces().await? {
                namespaces.entry(namespace).or_default();
            }
        }
        for config in self.due(std::mem::take(&mut agenda.configs), everything).await? {
            namespaces.entry(config.value.namespace.clone()).or_default().push(config);
        }
        for (namespace, configs) in namespaces {
            let pods = self.runtime.observe(&namespace).await?;
            self.tell_ended(&namespace, &pods).await?;
            for config in configs {
                let again = self.keep(&config, &pods).await?;
                agenda.later.extend(again.map(|at| (config.value.key, at)));
            }
        }
        Ok(())
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
    async fn tell_ended(&self, namespace: &Namespace, pods: &[ObservedPod]) -> Result<()> {
        let there: BTreeSet<&PodId> = pods.iter().map(|pod| &pod.id).collect();
        self.told().retain(|pod| &pod.namespace != namespace || there.contains(pod));
        for pod in pods {
            let (PodOwner::Run { run, .. }, PodPhase::Ended { outcome }) = (&pod.owner, &pod.phase) else { continue };
            if self.told().contains(&pod.id) {
                continue;
            }
            let event = Event::PodEnded { pod: pod.id.name.clone(), outcome: outcome.clone() };
            self.driver.tell(run, event).await?;
            self.told().insert(pod.id.clone());
        }
        Ok(())
    }

    fn told(&self) -> MutexGuard<'_, BTreeSet<PodId>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acts on the difference for one deployment config; says when to look again.
    async fn keep(&self, config: &Versioned<ConfigState>, pods: &[ObservedPod]) -> Result<Option<Timestamp>> {
        let state = &config.value;
        let is_mine =
            |pod: &&ObservedPod| matches!(&pod.owner, PodOwner::Version { config, .. } if config == &state.key);
        let mine: Vec<ObservedPod> = pods.iter().filter(is_mine).cloned().collect();
        let now = self.driver.clock.now();
        let serving = serve::decide(&state.wanted, &mine, now);
        let started = self.act(state, &serving).await;
        self.remember(&state.key, started.as_ref().err());
        self.tell_owner(state, &serving, &mine).await?;
        if state.removed && mine.iter().all(|pod| matches!(pod.phase, PodPhase::Ended { .. })) {
            self.forget(&state.key, &mine).await?;
        }
        let retry = started.is_err().then(|| now + START_PAUSE);
        Ok(serving.look_again.into_iter().chain(retry).min())
    }

    async fn act(&self, state: &ConfigState, serving: &Serving) -> Result<()> {
        for pod in &serving.stop {
            self.runtime.stop_pod(pod).await?;
        }
        for pod in &serving.remove {
            self.runtime.remove_pod(pod).await?;
        }
        let (Some(version), false) = (state.wanted.version, serving.start.is_empty()) else { return Ok(()) };
        let Some(Run::Deployment(run)) =
            self.driver.store.run(&state.key.deployment(version)).await?.map(|run| run.value)
        else {
            return Err(Failure::stalled(format!("the record of {} version {version} is gone", state.key)));
        };
        for number in &serving.start {
            start_pod(&*self.driver.store, &*self.runtime, &version_pod(&run, *number)).await?;
        }
        Ok(())
    }

    fn remember(&self, config: &ConfigKey, failure: Option<&Failure>) {
        let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        match failure {
            None => problems.remove(config),
            Some(failure) => {
                let problem = failure.one_line();
                if problems.get(config) != Some(&problem) {
                    tracing::warn!(%config, problem, "cannot bring a deployment config to what is wanted");
                }
                problems.insert(config.clone(), problem)
            }
        };
    }

    /// Tells the run that waits for it how far it is; a run that knows already ignores it.
    async fn tell_owner(&self, state: &ConfigState, serving: &Serving, pods: &[ObservedPod]) -> Result<()> {
        let Some(owner) = &state.wanted.owner else { return Ok(()) };
        let event = Event::Served {
            generation: state.wanted.generation,
            progress: serving.progress,
            converged: serving.converged,
            problem: self.problem(&state.key).or_else(|| pod_problem(state, pods)).unwrap_or_default(),
        };
        self.driver.tell(owner, event).await
    }

    /// The last pod of a deployment config that vanished is gone, and so is its record.
    async fn forget(&self, config: &ConfigKey, pods: &[ObservedPod]) -> Result<()> {
        for pod in pods {
            self.runtime.remove_pod(&pod.id).await?;
        }
        self.driver.commit(&[Input::Forget(config.clone())]).await
    }
}

/// What the first pod of the wanted version that is not ready says about itself.
fn pod_problem(state: &ConfigState, pods: &[ObservedPod]) -> Option<String> {
    let troubled = |pod: &&ObservedPod| {
        let wanted = matches!(pod.owner, PodOwner::Version { version, .. } if Some(version) == state.wanted.version);
        wanted && !pod.message.is_empty() && !matches!(pod.phase, PodPhase::Ready { .. })
    };
    pods.iter().find(troubled).map(|pod| format!("{}: {}", pod.id.name, pod.message))
}

impl Agenda {
    fn touched(&mut self, change: Result<Touched, RecvError>) {
        match change {
            Ok(touched) => {
                self.configs.extend(touched.configs);
                self.objects |= touched.objects;
            }
            Err(_) => self.everything = true,
        }
    }

    fn changed(&mut self, change: Result<RuntimeChange, RecvError>) {
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
        self.later.values().min().map_or(FULL_LOOK, |at| at.since(now).max(Duration::from_millis(1)))
    }

    fn come_due(&mut self, now: Timestamp) {
        let due: Vec<ConfigKey> = self.later.iter().filter(|(_, at)| **at <= now).map(|(key, _)| key.clone()).collect();
        for key in due {
            self.later.remove(&key);
            self.configs.insert(key);
        }
    }
}
