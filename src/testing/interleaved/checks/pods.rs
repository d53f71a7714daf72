//! What is done to pods, checked whenever something was.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Result;
use crate::model::deployment_config::StrategyKind;
use crate::model::ids::{ConfigKey, Namespace, ProjectName, RepositoryName, StageName};
use crate::model::pod::{ObservedPod, PodId, PodOwner, PodPhase};
use crate::model::state::{ConfigState, RepositoryState};
use crate::model::time::Timestamp;
use crate::model::wanted::Pace;
use crate::simulation::runtime::{Deed, PretendedRuntime};
use crate::store::Store;
use crate::testing::interleaved::checks::{Held, Invariant, Violation};
use crate::testing::interleaved::daemon::Surroundings;
use crate::testing::interleaved::people::now;

/// How many changes of a promise people make faster than anybody acts on the first: they scale twice in a row.
const PROMISES: usize = 3;

/// What was seen of pods so far.
#[derive(Debug, Default)]
pub(super) struct Pods {
    /// How many deeds were checked.
    deeds: usize,
    /// The ready pods at the last look.
    ready: BTreeMap<PodId, ConfigKey>,
    /// What became ready while an act may have been decided on that it was not.
    late: BTreeSet<PodId>,
    /// The last different promises of each deployment config, newest last: until everything came to rest, an act may have
    /// been decided on the ones before.
    promised: BTreeMap<ConfigKey, [u32; PROMISES]>,
    /// By which repository each was declared: another one that declares it, and is refused the project, promises nothing.
    declared_by: BTreeMap<ConfigKey, RepositoryName>,
    /// Hooks and tasks that were started: each try has a pod of its own.
    run_once: BTreeSet<(PodId, Timestamp)>,
    /// The deployment configs of which the store knows what serves, or that nothing should.
    taken_up: BTreeSet<ConfigKey>,
}

impl Pods {
    /// Notes what is promised now. What a store does not know yet that took the place of another stays promised: it goes
    /// on serving until it is replaced, no file declares it any more, or a person takes it down.
    pub(super) fn promises(&mut self, store: &dyn Store, around: &Surroundings) -> Result<()> {
        let configs = around.disk.configs();
        let configs: Vec<&ConfigState> = configs.iter().map(|config| &config.value).collect();
        let taken_up = configs.iter().filter(|config| is_taken_up(config));
        self.taken_up = taken_up.map(|config| config.key.clone()).collect();
        let mut unknown = self.promised.iter_mut().filter(|(key, _)| !self.taken_up.contains(*key)).peekable();
        if unknown.peek().is_some() {
            let repositories: Vec<RepositoryState> =
                now(store.repositories())?.whole()?.into_iter().map(|it| it.value).collect();
            let is_declared = |key: &ConfigKey| match self.declared_by.get(key) {
                Some(by) => around.hosting.declares_in(by, key, &repositories),
                None => around.hosting.declares(key, &repositories),
            };
            let gone = unknown.filter(|(key, _)| !is_declared(key));
            gone.for_each(|(_, promised)| *promised = [0; PROMISES]);
        }
        for config in configs {
            let promise = promise(config);
            self.declared_by.insert(config.key.clone(), config.repository.clone());
            let known = self.promised.entry(config.key.clone()).or_insert([promise; PROMISES]);
            if known[PROMISES - 1] != promise && self.taken_up.contains(&config.key) {
                known.rotate_left(1);
                known[PROMISES - 1] = promise;
            }
        }
        self.promise_what_answers();
        Ok(())
    }

    /// What a store does not know yet is promised as far as it answers: what died by itself is not made up for.
    fn promise_what_answers(&mut self) {
        for (config, promised) in self.promised.iter_mut().filter(|(config, _)| !self.taken_up.contains(*config)) {
            let ready = self.ready.values().filter(|ready| *ready == config).count();
            let ready = u32::try_from(ready).unwrap_or(u32::MAX);
            *promised = promised.map(|promised| promised.min(ready));
        }
    }

    /// A store that took the place of another may have to run again what that one ran.
    pub(super) fn store_changed_hands(&mut self) {
        self.run_once.clear();
    }

    /// Pods that hang are about to become ready: until everything came to rest, one may end as what it was.
    pub(super) fn finishing(&mut self, runtime: &PretendedRuntime) {
        let hangs = |pod: &ObservedPod| pod.phase == PodPhase::Starting;
        self.late.extend(runtime.pods().into_iter().filter(hangs).map(|pod| pod.id));
    }

    /// Nobody is about to act on an earlier promise any more.
    pub(super) fn rested(&mut self) {
        self.late.clear();
        self.promised.values_mut().for_each(|promised| *promised = [promised[PROMISES - 1]; PROMISES]);
    }

    /// Looks at what was done to pods since the last time.
    pub(super) fn check(&mut self, runtime: &PretendedRuntime) -> Held {
        let pods = runtime.pods();
        let deeds = runtime.deeds_since(self.deeds);
        let before = std::mem::replace(&mut self.ready, ready(&pods));
        for deed in &deeds {
            let Deed::Stopped(pod) = deed else { continue };
            let Some(config) = before.get(pod).filter(|_| !self.late.contains(pod)) else { continue };
            let left = self.ready.values().filter(|ready| *ready == config).count();
            let promised = self.promised.get(config).and_then(|promised| promised.iter().min().copied()).unwrap_or(0);
            if left < promised as usize {
                let what = format!("{pod} is to end: {left} ready ones of {config} are left, {promised} promised");
                return Ok(Err(Violation::new(Invariant::PodsAsPromised, what)));
            }
        }
        self.deeds += deeds.len();
        self.promise_what_answers();
        Ok(self.once(&deeds, &pods).and_then(|()| one_hook(&pods)).and_then(|()| one_stage(&pods)))
    }

    /// What a hook or a task does is done once: nothing starts its pod a second time.
    fn once(&mut self, deeds: &[Deed], pods: &[ObservedPod]) -> Result<(), Violation> {
        let started = deeds.iter().filter_map(|deed| if let Deed::Started(pod) = deed { Some(pod) } else { None });
        let asked_at = |pod: &PodId| match &pods.iter().find(|seen| seen.id == *pod)?.owner {
            PodOwner::Run { since, .. } => Some(*since),
            PodOwner::Version { .. } | PodOwner::Unknown => None,
        };
        for pod in started {
            // A config that comes back after all of it was forgotten has runs of the same names.
            let Some(since) = asked_at(pod) else { continue };
            if !self.run_once.insert((pod.clone(), since)) {
                return Err(Violation::new(Invariant::RunsOnce, format!("{pod} is started a second time")));
            }
        }
        Ok(())
    }
}

/// Whether a store knows what serves, or that nothing should: also because what is declared ends others first.
fn is_taken_up(config: &ConfigState) -> bool {
    let recreates = || config.spec().is_ok_and(|spec| spec.strategy.kind == StrategyKind::Recreate);
    let ends_others = config.wanted.generation > 0 && config.wanted.pace == Pace::Recreate;
    config.serving.is_some() || config.removed || ends_others && recreates()
}

/// How many pods of a deployment config must be ready, as far as that is up to launchway.
fn promise(config: &ConfigState) -> u32 {
    let wanted = &config.wanted;
    match wanted.pace {
        Pace::Rolling { max_unavailable, .. } => wanted.desired().saturating_sub(max_unavailable),
        Pace::Recreate => 0,
    }
}

fn ready(pods: &[ObservedPod]) -> BTreeMap<PodId, ConfigKey> {
    let ready = pods.iter().filter(|pod| matches!(pod.phase, PodPhase::Ready { .. }));
    let of_config = ready.filter_map(|pod| match &pod.owner {
        PodOwner::Version { config, .. } => Some((pod.id.clone(), config.clone())),
        PodOwner::Run { .. } | PodOwner::Unknown => None,
    });
    of_config.collect()
}

/// Two stages never share a namespace: their pods have the same names.
fn one_stage(pods: &[ObservedPod]) -> Result<(), Violation> {
    let mut living: BTreeMap<&Namespace, (&ProjectName, &StageName)> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !matches!(pod.phase, PodPhase::Ended { .. })) {
        let PodOwner::Version { config, .. } = &pod.owner else { continue };
        let here = (&config.project, &config.stage);
        if let Some((project, stage)) = living.insert(&pod.id.namespace, here).filter(|other| *other != here) {
            let what = format!("{} is of {}/{}, and lives with pods of {project}/{stage}", pod.id, here.0, here.1);
            return Err(Violation::new(Invariant::OneStageANamespace, what));
        }
    }
    Ok(())
}

/// Hooks and tasks of one owner follow each other.
fn one_hook(pods: &[ObservedPod]) -> Result<(), Violation> {
    let mut alive: BTreeMap<(String, String), &PodId> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !matches!(pod.phase, PodPhase::Ended { .. })) {
        let PodOwner::Run { run, .. } = &pod.owner else { continue };
        // `<project>/<stage>/<name>-<version>`: hooks of different versions do not overlap either.
        let owner = run.as_str().rsplit_once('-').map_or(run.as_str(), |(config, _)| config);
        if let Some(other) = alive.insert((pod.id.namespace.to_string(), owner.to_owned()), &pod.id) {
            let what = format!("{other} and {} run at once", pod.id);
            return Err(Violation::new(Invariant::OneHookAtOnce, what));
        }
    }
    Ok(())
}
