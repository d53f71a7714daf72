//! What records, runs and pods come to once nothing is under way any more.

use std::collections::{BTreeMap, BTreeSet};

use crate::clock::Clock as _;
use crate::model::hold::Hold;
use crate::model::ids::{CommitId, ConfigKey, PodName, ProjectName, RepositoryName, ServiceKey};
use crate::model::object::{CONFIG_LABEL, Kind, Object, ObjectKey, VERSION_LABEL};
use crate::model::outcome::PodOutcome;
use crate::model::pod::{ObservedPod, Origin, Pod, PodPhase, PodTemplate};
use crate::model::run::{DeploymentRun, Run};
use crate::model::state::{ConfigState, RepositoryState, Version, spec_of};
use crate::model::time::Timestamp;
use crate::plan::prune::Prune;
use crate::store::{RunFilter, Store};
use crate::testing::interleaved::checks::{Held, Invariant, Moment, Violation};
use crate::testing::interleaved::daemon::Surroundings;
use crate::testing::interleaved::hosting::Commit;
use crate::testing::interleaved::people::now;

/// What is checked of everything.
pub(super) struct At<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) around: &'a Surroundings,
    pub(super) moment: Moment,
}

impl At<'_> {
    /// Every run has ended, unless a person holds it.
    pub(super) fn runs_ended(&self) -> Held {
        let holds = now(self.store.holds())?.whole()?;
        let open = RunFilter { open: Some(true), ..RunFilter::default() };
        for run in now(self.store.runs(&open))?.whole()? {
            let ServiceKey { project, stage, service } = run.value.service();
            let takes = |hold: &Hold| run.value.sequence().is_some_and(|run| run.is_held_by(hold));
            if holds.iter().any(|hold| hold.scope.covers(&project, &stage, &service) || takes(hold)) {
                continue;
            }
            let state = match &run.value {
                Run::Sequence(run) => {
                    let task = run.task().map_or("", |task| &task.message);
                    format!("{:?} {} {task}", run.state, run.message)
                }
                Run::Deployment(run) => format!("{:?} {}", run.step, run.problem),
            };
            let what = format!("{} of {project}/{stage}/{service} is open: {state}", run.value.id());
            return Ok(Err(Violation::new(Invariant::EveryRunEnds, what)));
        }
        Ok(Ok(()))
    }

    /// A repository that is down has no pods.
    pub(super) fn down_is_down(&self) -> Held {
        let down = self.down()?;
        let mut alive = self.around.runtime.templates().into_iter();
        let alive = alive.find(|(pod, seen)| down.contains(&pod.repository) && is_alive(seen));
        Ok(match alive {
            Some((pod, _)) => {
                let what = format!("{} is there although {} is down", pod.id, pod.repository);
                Err(Violation::new(Invariant::DownIsDown, what))
            }
            None => Ok(()),
        })
    }

    pub(super) fn down(&self) -> crate::error::Result<BTreeSet<RepositoryName>> {
        Ok(self.repositories()?.into_iter().filter(|state| state.down).map(|state| state.name).collect())
    }

    fn repositories(&self) -> crate::error::Result<Vec<RepositoryState>> {
        Ok(now(self.store.repositories())?.whole()?.into_iter().map(|state| state.value).collect())
    }

    /// What is there is what the records name: no other version, no other content, no other number.
    pub(super) fn record_serves(&self) -> Held {
        let down = self.down()?;
        let repositories = self.repositories()?;
        let pods = self.around.runtime.templates();
        let alive: Vec<(Pod, ObservedPod)> = pods.into_iter().filter(|(_, seen)| is_alive(seen)).collect();
        let configs = now(self.store.configs(None, None))?.whole()?;
        let known: BTreeSet<&ConfigKey> = configs.iter().map(|config| &config.value.key).collect();
        let orphans: Vec<(&ConfigKey, &ObservedPod)> = alive
            .iter()
            .filter_map(|(_, seen)| seen.version().map(|(config, _)| (config, seen)))
            .filter(|(config, _)| !known.contains(config))
            .collect();
        let open = RunFilter { open: Some(true), ..RunFilter::default() };
        let open = now(self.store.runs(&open))?.whole()?;
        let mut busy: BTreeSet<ProjectName> = open.iter().map(|run| run.value.service().project).collect();
        let refused = repositories.iter().filter(|repository| !repository.down && !repository.has_applied_its_head());
        busy.extend(refused.filter_map(|repository| repository.project.clone()));
        for (config, seen) in orphans.iter().filter(|(config, _)| !busy.contains(&config.project)) {
            // What a lost store has left of what is declared serves on until that has reached its stage.
            let hosting = &self.around.hosting;
            let is_declared = hosting.declares(config, &repositories) || hosting.declares_nothing(&config.project);
            if !seen.is_stranger() || !is_declared && !are_many(&orphans, &known, config) {
                return Ok(Err(serves(format!("{} is there, and no record names its config", seen.id))));
            }
        }
        let is_busy = |config: &ConfigState| busy.contains(&config.key.project);
        let serves_on = |config: &ConfigState| self.serves_on(config, &alive, &repositories, is_busy(config));
        // What is held cannot be resumed: both versions stand until somebody lets go.
        let stands = |config: &ConfigState| open.iter().any(|run| is_rollout_that_waits(&run.value, &config.key));
        for config in configs.iter().filter(|config| !serves_on(&config.value) && !stands(&config.value)) {
            let is_down = down.contains(&config.value.repository);
            let now = self.around.clock.now();
            if let Err(what) = is_served(&config.value, &alive, is_down, now) {
                return Ok(Err(serves(format!("{}: {what}", config.value.key))));
            }
        }
        Ok(Ok(()))
    }

    /// Whether what a restored store knows nothing of serves on: an older record says nothing against what serves. In the
    /// first stage that is so only while the head does not declare what is recorded to serve; while something is held, also
    /// beside what was taken over.
    fn serves_on(
        &self,
        config: &ConfigState,
        alive: &[(Pod, ObservedPod)],
        repositories: &[RepositoryState],
        is_busy: bool,
    ) -> bool {
        let mine = |seen: &&ObservedPod| seen.version().is_some_and(|(of, _)| of == &config.key);
        let mut origins = alive.iter().map(|(_, seen)| seen).filter(mine).map(|seen| seen.origin);
        let has_own = origins.clone().any(|it| it == Origin::Own);
        let is_inherited = (is_busy || !has_own) && origins.any(|it| it == Origin::Stranger);
        let serving = config.serving.as_ref().and_then(|serving| serving.object.template());
        let applies = |head: &Commit| repositories.iter().any(|known| known.applied.as_ref() == Some(&head.id));
        let confirms = |head: Commit| {
            let stage = head.project.stages.first().filter(|stage| stage.name == config.key.stage)?;
            Some(stage.objects.get(&config.object.key)?.template() == serving)
        };
        let head = self.around.hosting.head(&config.repository).filter(applies);
        let is_confirmed = head.and_then(confirms) == Some(true);
        config.inherited.is_some() && is_inherited && (is_busy || !is_confirmed)
    }

    /// A hook's or task's outcome is that of a pod which was started when it was, not of one from another life.
    pub(super) fn own_pods(&self) -> Held {
        let pods = self.around.runtime.pods();
        for run in now(self.store.runs(&RunFilter::default()))?.whole()? {
            let namespace = match &run.value {
                Run::Sequence(run) => &run.destination.namespace,
                Run::Deployment(run) => &run.destination.namespace,
            };
            for (name, started_at, outcome) in run_once(&run.value) {
                let found = pods.iter().find(|pod| pod.id.name == name && &pod.id.namespace == namespace);
                let counts =
                    |pod: &&ObservedPod| matches!(&pod.phase, PodPhase::Ended { outcome: of } if outcome == Some(of));
                if let Some(pod) = found.filter(|pod| pod.created_at < started_at).filter(counts) {
                    let what = format!("{} counts for {} and was there before it", pod.id, run.value.id());
                    return Ok(Err(Violation::new(Invariant::OwnPods, what)));
                }
            }
        }
        Ok(Ok(()))
    }

    /// What a revision changes is deployed as one version, however many causes it has. What goes back brings an earlier one again.
    pub(super) fn one_version_a_revision(&self) -> Held {
        let runs = now(self.store.runs(&RunFilter::default()))?.whole()?;
        let mut made: BTreeMap<(&ConfigKey, &CommitId), u32> = BTreeMap::new();
        for run in &runs {
            let Run::Deployment(run) = &run.value else { continue };
            if run.is_rollback {
                continue;
            }
            let first = *made.entry((&run.config, &run.commit)).or_insert(run.version);
            if first != run.version {
                let DeploymentRun { config, commit, version, cause, .. } = &**run;
                let what = format!("{config} #{first} and #{version} ({cause}) are both of {}", commit.short());
                return Ok(Err(Violation::new(Invariant::OneVersionARevision, what)));
            }
        }
        Ok(Ok(()))
    }

    /// The commit that a serving version is credited to declares it.
    pub(super) fn credit(&self) -> Held {
        for config in now(self.store.configs(None, None))?.whole()? {
            let Some(serving) = &config.value.serving else { continue };
            if !self.declares(&config.value, serving) {
                let what =
                    format!("{} #{} is credited to {}", config.value.key, serving.number, serving.commit.short());
                return Ok(Err(Violation::new(
                    Invariant::CreditIsDue,
                    format!("{what}, which declares something else"),
                )));
            }
        }
        Ok(Ok(()))
    }

    /// Whether the revision declares it that is named with it: of any repository, because a project that has changed hands goes back
    /// to what another one had declared.
    fn declares(&self, config: &ConfigState, serving: &Version) -> bool {
        let repositories = self.around.hosting.repositories();
        let commits = repositories.iter().flat_map(|name| self.around.hosting.commits(name));
        let commits: Vec<_> = commits.filter(|commit| commit.id == serving.commit).collect();
        let stages = commits.iter().flat_map(|commit| &commit.project.stages);
        let mut objects = stages.filter(|stage| stage.name == config.key.stage).flat_map(|stage| stage.objects.iter());
        let is_config =
            |object: &Object| object.key.kind == Kind::DeploymentConfig && object.key.name == config.key.name;
        objects.any(|object| is_config(object) && object.template() == serving.object.template())
            || self.moment == Moment::Untouched && config.removed
    }
}

/// Whether a person has to allow that what no record names ends in a stage: it is much at once.
fn are_many(orphans: &[(&ConfigKey, &ObservedPod)], known: &BTreeSet<&ConfigKey>, config: &ConfigKey) -> bool {
    let in_stage =
        orphans.iter().filter(|(orphan, _)| (&orphan.project, &orphan.stage) == (&config.project, &config.stage));
    let gone: BTreeSet<&ConfigKey> = in_stage.map(|(orphan, _)| *orphan).collect();
    let known = known.iter().filter(|known| known.project == config.project).count();
    let key = |config: &ConfigKey| ObjectKey { kind: Kind::DeploymentConfig, name: config.name.clone() };
    let owned = known + gone.len();
    !Prune { gone: gone.into_iter().map(key).collect(), owned, ..Prune::default() }.is_allowed()
}

fn serves(what: String) -> Violation {
    Violation::new(Invariant::RecordedServes, what)
}

fn is_rollout_that_waits(run: &Run, config: &ConfigKey) -> bool {
    matches!(run, Run::Deployment(run) if &run.config == config && run.waits_for_a_person())
}

fn is_alive(pod: &ObservedPod) -> bool {
    !matches!(pod.phase, PodPhase::Ended { .. })
}

/// The run-once pods of a run, when each was asked for, and how it ended.
fn run_once(run: &Run) -> Vec<(PodName, Timestamp, Option<&PodOutcome>)> {
    match run {
        Run::Sequence(run) => {
            let tries = run.tasks.iter().flat_map(|task| &task.tries);
            tries.map(|once| (once.pod.clone(), once.started_at, once.outcome.as_ref())).collect()
        }
        Run::Deployment(run) => {
            run.hooks.iter().map(|hook| (hook.pod.clone(), hook.started_at, hook.outcome.as_ref())).collect()
        }
    }
}

fn is_served(config: &ConfigState, alive: &[(Pod, ObservedPod)], is_down: bool, now: Timestamp) -> Result<(), String> {
    let wanted = config.wanted.version();
    let serving = config.serving.as_ref().map(|serving| serving.number);
    if !is_down && !config.removed && wanted != serving {
        return Err(format!("version {wanted:?} is wanted, and the record says that {serving:?} serves"));
    }
    let mine = |seen: &ObservedPod| seen.version().is_some_and(|(of, _)| of == &config.key);
    let mut mine: Vec<&(Pod, ObservedPod)> = alive.iter().filter(|(_, seen)| mine(seen)).collect();
    if config.serving.is_none() && !is_down && !config.removed {
        mine.retain(|(_, seen)| seen.origin == Origin::Own); // what a lost store has left serves until it is replaced
    }
    let counts = config.wanted.at(now).counts();
    let expected = counts.values().sum::<u32>() as usize;
    let ready = mine.iter().filter(|(_, seen)| matches!(seen.phase, PodPhase::Ready { .. })).count();
    if mine.len() != expected || ready != expected {
        return Err(format!("{} pods, {ready} of them ready; {counts:?} are wanted", mine.len()));
    }
    let beside = config.beside.as_ref().map(|beside| &beside.version);
    for version in config.serving.iter().chain(beside) {
        let unreadable = |_unreadable| "the record cannot be read".to_owned();
        let declared = as_declared(&spec_of(&version.object).map_err(unreadable)?.template);
        let is_of = |seen: &ObservedPod| seen.version() == Some((&config.key, version.number));
        let (its, others): (Vec<_>, Vec<_>) = mine.into_iter().partition(|(_, seen)| is_of(seen));
        let expected = counts.get(&version.number).copied().unwrap_or_default() as usize;
        if its.len() != expected || its.iter().any(|(pod, _)| as_declared(&pod.template) != declared) {
            return Err(format!("{} pods are of #{}, or not all run what the record says", its.len(), version.number));
        }
        mine = others;
    }
    match mine.first().filter(|_| config.serving.is_some()) {
        Some((pod, _)) => Err(format!("{} runs something else than the record", pod.id)),
        None => Ok(()),
    }
}

/// A template without the labels that pods have by themselves: those of a pod that another life has left may name another version.
pub(super) fn as_declared(template: &PodTemplate) -> PodTemplate {
    let mut template = template.clone();
    template.metadata.labels.retain(|label, _| ![CONFIG_LABEL, VERSION_LABEL].contains(&label.as_str()));
    template
}
