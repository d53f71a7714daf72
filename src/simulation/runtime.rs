//! A runtime that pretends: pods become ready or end as the test says, and everything asked for is written down.

mod late;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::StreamExt as _;
use tokio::sync::broadcast;

use crate::clock::Clock;
use crate::error::{Failure, Result};
use crate::model::ids::{Incarnation, Namespace};
use crate::model::outcome::{FailureReason, PodOutcome};
use crate::model::pod::references;
use crate::model::pod::{ObservedPod, Origin, Pod, PodId, PodOwner, PodPhase, PodResult, ReplicaSet};
use crate::model::time::Timestamp;
use crate::runtime::exec::{ExecCommand, ExecSession};
use crate::runtime::logs::{LogQuery, LogStream};
use crate::runtime::{ImageUse, Objects, Runtime, RuntimeChange, ServiceAddress, ServiceSpec, replicas};

/// How pods whose name begins in some way behave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Ready at once; a run-once pod succeeds at once. The default.
    Good,
    /// Never ready; a run-once pod does not end by itself.
    Hangs,
    /// A run-once pod ends so.
    Ends(PodOutcome),
    /// The same, and it has written something.
    Writes(PodOutcome, PodResult),
    /// It cannot be started, and no retry helps.
    CannotStart(String),
    /// Ready at once, and once told to end it takes until the test says that it is gone.
    Lingers,
    /// It ends by itself at once, also one that should serve.
    Dies,
}

/// What was really done to a pod; repetitions without effect are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// It was started.
    Started(PodId),
    /// It is to end.
    Stopped(PodId),
    /// It died by itself.
    Died(PodId),
}

impl Behaviour {
    /// A run-once pod that fails with an exit code.
    pub fn fails(code: i32) -> Self {
        Self::Ends(failed(code))
    }
}

/// A runtime that pretends.
#[derive(Clone, Debug)]
pub struct PretendedRuntime {
    clock: Arc<dyn Clock>,
    /// The life of the store that asks; without one, whoever looks on sees what the newest one does.
    life: Option<Incarnation>,
    state: Arc<Mutex<State>>,
    changes: broadcast::Sender<RuntimeChange>,
}

#[derive(Debug, Default)]
struct State {
    pods: BTreeMap<PodId, (Pod, ObservedPod)>,
    /// What pods have read.
    reads: BTreeMap<PodId, Objects>,
    /// What pods have written.
    results: BTreeMap<PodId, PodResult>,
    newest_life: Option<Incarnation>,
    /// The life of the store that a pod was started in, and the one that it was adopted in.
    lives: BTreeMap<PodId, (Option<Incarnation>, Option<Incarnation>)>,
    services: BTreeMap<(Namespace, String), ServiceSpec>,
    /// What keeps services of a name from listening.
    not_listening: BTreeMap<String, String>,
    behaviours: Vec<(String, Behaviour)>,
    unprepared: BTreeSet<String>,
    deeds: Vec<Deed>,
    announced: u64,
    asked_of_services: usize,
}

impl PretendedRuntime {
    /// A runtime without pods.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, life: None, state: Arc::default(), changes: broadcast::channel(1024).0 }
    }

    /// The same pods, as a life of the store sees them.
    pub fn opened_for(&self, life: &Incarnation) -> Self {
        self.state().newest_life = Some(life.clone());
        Self { life: Some(life.clone()), ..self.clone() }
    }

    /// From now on, pods whose name, alone or after `<namespace>/`, begins with `prefix` behave so; of several that fit,
    /// the last one said counts.
    pub fn behave(&self, prefix: &str, behaviour: Behaviour) {
        self.state().behaviours.push((prefix.to_owned(), behaviour));
    }

    /// From now on, services of this name cannot listen, for this reason; without one they can.
    pub fn keep_from_listening(&self, name: &str, problem: Option<&str>) {
        let not_listening = &mut self.state().not_listening;
        match problem {
            Some(problem) => not_listening.insert(name.to_owned(), problem.to_owned()),
            None => not_listening.remove(name),
        };
    }

    /// From now on, all services can listen.
    pub fn let_all_listen(&self) {
        self.state().not_listening.clear();
    }

    /// From now on, images that contain `part` are still being prepared, or not.
    pub fn hold_image(&self, part: &str, held: bool) {
        if held {
            self.state().unprepared.insert(part.to_owned());
        } else {
            self.state().unprepared.remove(part);
        }
        self.announce(RuntimeChange::Everything);
    }

    /// No image is being prepared any more.
    pub fn prepare_all(&self) {
        if !std::mem::take(&mut self.state().unprepared).is_empty() {
            self.announce(RuntimeChange::Everything);
        }
    }

    /// Everything that was really done, in order.
    pub fn deeds(&self) -> Vec<Deed> {
        self.state().deeds.clone()
    }

    /// What was really done since so many deeds were.
    pub fn deeds_since(&self, known: usize) -> Vec<Deed> {
        self.state().deeds.get(known..).map(<[Deed]>::to_vec).unwrap_or_default()
    }

    /// Every pod that was ever really started, in order.
    pub fn started(&self) -> Vec<PodId> {
        let started = |deed| if let Deed::Started(pod) = deed { Some(pod) } else { None };
        self.deeds().into_iter().filter_map(started).collect()
    }

    /// Every pod that was ever really told to end, in order.
    pub fn stopped(&self) -> Vec<PodId> {
        let stopped = |deed| if let Deed::Stopped(pod) = deed { Some(pod) } else { None };
        self.deeds().into_iter().filter_map(stopped).collect()
    }

    /// The services as they were asked for, by namespace and name.
    pub fn services(&self) -> Vec<ServiceSpec> {
        self.state().services.values().cloned().collect()
    }

    /// How often services were applied, ended or listed.
    pub fn asked_of_services(&self) -> usize {
        self.state().asked_of_services
    }

    /// All pods that are known, sorted by name, ended ones included.
    pub fn pods(&self) -> Vec<ObservedPod> {
        let state = self.state();
        state.pods.values().map(|(_, seen)| state.seen_by(self.life.as_ref(), seen)).collect()
    }

    /// What the pods that live have read when they started.
    pub fn reads(&self) -> Vec<(PodId, Objects)> {
        let state = self.state();
        let lives = |pod: &PodId| state.pods.get(pod).is_some_and(|(_, seen)| seen.lives());
        let reads = state.reads.iter().filter(|(pod, read)| !read.is_empty() && lives(pod));
        reads.map(|(pod, read)| (pod.clone(), read.clone())).collect()
    }

    /// A pod dies as when the machine or its supervisor does.
    pub fn lose(&self, pod: &PodId) {
        self.state().deeds.push(Deed::Died(pod.clone()));
        let outcome = PodOutcome::unknown("its supervisor died");
        self.set_phase(pod, PodPhase::Ended { outcome });
    }

    /// All pods die: the machine was started again.
    pub fn reboot(&self) {
        for pod in self.pods() {
            if !matches!(pod.phase, PodPhase::Ended { .. }) {
                self.lose(&pod.id);
            }
        }
    }

    /// A pod that hung ends, or becomes ready.
    pub fn set_phase(&self, pod: &PodId, phase: PodPhase) {
        let now = self.clock.now();
        let owner = self.state().pods.get_mut(pod).map(|(_, seen)| {
            seen.ended_at = matches!(phase, PodPhase::Ended { .. }).then_some(now);
            seen.phase = phase;
            seen.owner.clone()
        });
        if let Some(owner) = owner {
            self.announce(RuntimeChange::Pod(pod.clone(), owner));
        }
    }

    /// How often anything changed.
    pub fn announced(&self) -> u64 {
        self.state().announced
    }

    /// The pods that are known with what they were started as, sorted by name, ended ones included.
    pub fn templates(&self) -> Vec<(Pod, ObservedPod)> {
        let state = self.state();
        let seen = |(pod, seen): &(Pod, ObservedPod)| (pod.clone(), state.seen_by(self.life.as_ref(), seen));
        state.pods.values().map(seen).collect()
    }

    /// What nobody waits for makes room: what another life of the store has left to run once, and what has the name of
    /// this one but was another run's.
    async fn make_room(&self, pod: &Pod) -> Result<()> {
        let is_other = |seen: &ObservedPod| {
            let strange = seen.is_stranger() && matches!(seen.owner, PodOwner::Run { .. });
            strange || seen.id == pod.id && !seen.owner.answers(&pod.owner)
        };
        let left: Vec<ObservedPod> = self.observe(&pod.id.namespace).await?.into_iter().filter(is_other).collect();
        for other in left.iter().filter(|other| other.runs()) {
            self.stop_pod(&other.id).await?;
        }
        match left.iter().find(|other| other.runs()) {
            Some(other) => Err(Failure::waiting(format!("`{}` is ending", other.id))),
            None => match left.iter().find(|other| other.id == pod.id) {
                Some(namesake) => self.remove_pod(namesake).await,
                None => Ok(()),
            },
        }
    }

    /// Whatever hangs or lingers comes to its end: it becomes ready, succeeds, or is gone.
    pub fn finish(&self) {
        let succeeded = PodPhase::Ended { outcome: PodOutcome::Succeeded };
        for pod in self.pods() {
            match (&pod.phase, &pod.owner) {
                (PodPhase::Starting, PodOwner::Run { .. }) | (PodPhase::Stopping { .. }, _) => {
                    self.set_phase(&pod.id, succeeded.clone());
                }
                (PodPhase::Starting, PodOwner::Version { .. }) => {
                    self.set_phase(&pod.id, PodPhase::Ready { since: self.clock.now() });
                }
                (PodPhase::Ready { .. } | PodPhase::Ended { .. }, _) | (_, PodOwner::Unknown) => {}
            }
        }
    }

    fn announce(&self, change: RuntimeChange) {
        self.state().announced += 1;
        drop(self.changes.send(change)); // nobody listening is fine
    }

    /// The state, for whoever asks something of services.
    fn asked(&self) -> MutexGuard<'_, State> {
        let mut state = self.state();
        state.asked_of_services += 1;
        state
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// A pod as a life of the store sees it.
    fn seen_by(&self, life: Option<&Incarnation>, pod: &ObservedPod) -> ObservedPod {
        let life = life.or(self.newest_life.as_ref());
        let origin = match self.lives.get(&pod.id) {
            Some((started, _)) if started.as_ref() == life => Origin::Own,
            Some((_, adopted)) if adopted.is_some() && adopted.as_ref() == life => Origin::Adopted,
            _ => Origin::Stranger,
        };
        ObservedPod { origin, ..pod.clone() }
    }

    fn address(&self, service: &ServiceSpec) -> ServiceAddress {
        ServiceAddress {
            name: service.name.clone(),
            address: std::net::Ipv4Addr::LOCALHOST.into(),
            ports: service.ports.clone(),
            selects: None,
            ready: 0,
            problem: self.not_listening.get(&service.name).cloned(),
        }
    }

    fn behaviour(&self, pod: &PodId) -> Behaviour {
        let full = pod.to_string();
        let fits = |(prefix, _): &&(String, Behaviour)| {
            pod.name.as_str().starts_with(prefix.as_str()) || full.starts_with(prefix.as_str())
        };
        self.behaviours.iter().rev().find(fits).map_or(Behaviour::Good, |(_, behaviour)| behaviour.clone())
    }
}

#[async_trait]
impl Runtime for PretendedRuntime {
    async fn prepare(&self, pod: &Pod) -> Result<()> {
        let state = self.state();
        let images = pod.template.spec.containers.iter().map(|container| &container.image);
        let held = images.into_iter().find(|image| state.unprepared.iter().any(|part| image.contains(part)));
        held.map_or(Ok(()), |image| Err(Failure::waiting(format!("`{image}` is being built"))))
    }

    async fn forget_failures(&self, _pod: &Pod) -> Result<()> {
        Ok(())
    }

    async fn scale(&self, set: &ReplicaSet, living: u32, objects: &Objects) -> Result<Option<Timestamp>> {
        let pods = self.observe(&set.destination.namespace).await?;
        let choice = replicas::choose(set, living, &pods, self.clock.now());
        for pod in &choice.stop {
            self.stop_pod(pod).await?;
        }
        for pod in pods.iter().filter(|pod| choice.remove.contains(&pod.id)) {
            self.remove_pod(pod).await?;
        }
        for number in &choice.start {
            self.start_pod(&set.pod(*number), objects).await?;
        }
        Ok(choice.again)
    }

    async fn start_pod(&self, pod: &Pod, objects: &Objects) -> Result<()> {
        if matches!(pod.owner, PodOwner::Run { .. }) {
            self.make_room(pod).await?;
        }
        let now = self.clock.now();
        let mut state = self.state();
        if state.pods.contains_key(&pod.id) {
            return Ok(());
        }
        if let Some(missing) = references::missing(pod, objects) {
            return Err(Failure::waiting(missing));
        }
        let phase = match state.behaviour(&pod.id) {
            Behaviour::CannotStart(message) => return Err(Failure::stalled(message)),
            Behaviour::Hangs => PodPhase::Starting,
            Behaviour::Dies => PodPhase::Ended { outcome: failed(1) },
            Behaviour::Ends(outcome) if pod.run_once_seconds.is_some() => PodPhase::Ended { outcome },
            Behaviour::Writes(outcome, result) if pod.run_once_seconds.is_some() => {
                state.results.extend(pod.tells_result.then(|| (pod.id.clone(), result)));
                PodPhase::Ended { outcome }
            }
            Behaviour::Good | Behaviour::Lingers if pod.run_once_seconds.is_some() => {
                PodPhase::Ended { outcome: PodOutcome::Succeeded }
            }
            Behaviour::Good | Behaviour::Ends(_) | Behaviour::Writes(..) | Behaviour::Lingers => {
                PodPhase::Ready { since: now }
            }
        };
        let seen = ObservedPod {
            id: pod.id.clone(),
            owner: pod.owner.clone(),
            origin: Origin::Own,
            labels: pod.template.metadata.labels.clone().into(),
            restarts: 0,
            message: String::new(),
            created_at: now,
            ended_at: matches!(phase, PodPhase::Ended { .. }).then_some(now),
            phase,
        };
        state.deeds.push(Deed::Started(pod.id.clone()));
        state.reads.insert(pod.id.clone(), objects.clone());
        state.lives.insert(pod.id.clone(), (self.life.clone(), None));
        state.pods.insert(pod.id.clone(), (pod.clone(), seen));
        drop(state);
        self.announce(RuntimeChange::Pod(pod.id.clone(), pod.owner.clone()));
        Ok(())
    }

    async fn adopt(&self, pod: &PodId, version: u32) -> Result<()> {
        let mut state = self.state();
        let Some((_, adopted)) = state.lives.get_mut(pod) else { return Ok(()) };
        adopted.clone_from(&self.life);
        let Some((_, seen)) = state.pods.get_mut(pod) else { return Ok(()) };
        if let PodOwner::Version { version: of, .. } = &mut seen.owner {
            *of = version;
        }
        let owner = seen.owner.clone();
        drop(state);
        self.announce(RuntimeChange::Pod(pod.clone(), owner));
        Ok(())
    }

    async fn stop_pod(&self, pod: &PodId) -> Result<()> {
        let lingers = {
            let mut state = self.state();
            let running = matches!(
                state.pods.get(pod),
                Some((_, seen)) if !matches!(seen.phase, PodPhase::Stopping { .. } | PodPhase::Ended { .. })
            );
            if !running {
                return Ok(());
            }
            state.deeds.push(Deed::Stopped(pod.clone()));
            state.behaviour(pod) == Behaviour::Lingers
        };
        let message = "ended on request".to_owned();
        let outcome = PodOutcome::Failed { code: 143, reason: FailureReason::Cancelled, message };
        let stopping = PodPhase::Stopping { interrupted: false };
        self.set_phase(pod, if lingers { stopping } else { PodPhase::Ended { outcome } });
        Ok(())
    }

    async fn remove_pod(&self, pod: &ObservedPod) -> Result<()> {
        let mut state = self.state();
        let is_seen = |seen: &ObservedPod| seen.owner == pod.owner && seen.created_at == pod.created_at;
        let ended = |seen: &ObservedPod| matches!(seen.phase, PodPhase::Ended { .. });
        if state.pods.get(&pod.id).is_some_and(|(_, seen)| ended(seen) && is_seen(seen)) {
            state.pods.remove(&pod.id);
            state.reads.remove(&pod.id);
            state.results.remove(&pod.id);
            state.lives.remove(&pod.id);
        }
        Ok(())
    }

    async fn result(&self, pod: &PodId) -> Result<Option<PodResult>> {
        Ok(self.state().results.get(pod).cloned())
    }

    async fn observe(&self, namespace: &Namespace) -> Result<Vec<ObservedPod>> {
        let state = self.state();
        let here = state.pods.values().filter(|(_, seen)| &seen.id.namespace == namespace);
        Ok(here.map(|(_, seen)| state.seen_by(self.life.as_ref(), seen)).collect())
    }

    async fn namespaces(&self) -> Result<Vec<Namespace>> {
        let state = self.state();
        let of_pods = state.pods.keys().map(|pod| &pod.namespace);
        let all: BTreeSet<&Namespace> = of_pods.chain(state.services.keys().map(|(namespace, _)| namespace)).collect();
        Ok(all.into_iter().cloned().collect())
    }

    async fn apply_service(&self, service: &ServiceSpec) -> Result<ServiceAddress> {
        let key = (service.namespace.clone(), service.name.clone());
        let mut state = self.asked();
        state.services.insert(key, service.clone());
        Ok(state.address(service))
    }

    async fn service_spec(&self, namespace: &Namespace, name: &str) -> Result<Option<ServiceSpec>> {
        Ok(self.asked().services.get(&(namespace.clone(), name.to_owned())).cloned())
    }

    async fn remove_service(&self, namespace: &Namespace, name: &str) -> Result<()> {
        self.asked().services.remove(&(namespace.clone(), name.to_owned()));
        Ok(())
    }

    async fn service(&self, namespace: &Namespace, name: &str) -> Result<Option<ServiceAddress>> {
        let state = self.asked();
        let service = state.services.get(&(namespace.clone(), name.to_owned()));
        Ok(service.map(|service| state.address(service)))
    }

    async fn services(&self, namespace: &Namespace) -> Result<Vec<ServiceAddress>> {
        let state = self.asked();
        let here = state.services.values().filter(|service| &service.namespace == namespace);
        Ok(here.map(|service| state.address(service)).collect())
    }

    async fn logs(&self, _pod: &PodId, _query: &LogQuery) -> Result<LogStream> {
        Ok(futures::stream::empty().boxed())
    }

    async fn exec(&self, pod: &PodId, _container: Option<&str>, _command: &ExecCommand) -> Result<ExecSession> {
        Err(Failure::stalled(format!("`{pod}` only pretends to run")))
    }

    fn changes(&self) -> broadcast::Receiver<RuntimeChange> {
        self.changes.subscribe()
    }

    async fn collect_garbage(&self, _keep: &[ImageUse], _dry_run: bool) -> Result<u64> {
        Ok(0)
    }
}

/// How a pod ends that fails with an exit code.
pub(super) fn failed(code: i32) -> PodOutcome {
    PodOutcome::Failed { code, reason: FailureReason::Error, message: format!("exit {code}") }
}
