//! What another life of the store has left, because it was lost or replaced by a copy: pods that serve are taken over or
//! replaced, what is declared no longer goes, and a hook that nobody runs any more has an unknown end.

use std::collections::BTreeSet;

use crate::engine::deployment::adoption::{self, Prospect, Strangers};
use crate::engine::deployment::observed::Observed;
use crate::engine::environments;
use crate::engine::leftover::Holder;
use crate::error::Result;
use crate::manifest::environment::EnvironmentNames;
use crate::model::action::Action;
use crate::model::event::Event;
use crate::model::ids::{ConfigKey, Incarnation, Namespace, ProjectName, RepositoryName, ServiceKey, StageName};
use crate::model::object::{Kind, ObjectKey};
use crate::model::outcome::PodOutcome;
use crate::model::plan::{Plan, StagePlan};
use crate::model::pod::{ObservedPod, Origin, PodOwner};
use crate::model::run::{DeploymentRun, Run};
use crate::model::slot::{PassedKey, SlotState};
use crate::model::state::{ConfigState, ObjectState, RepositoryState};
use crate::model::time::Timestamp;
use crate::model::unique_name::UniqueName;
use crate::runtime::Runtime;
use crate::store::{ReadStore, RecordKey, RunFilter};

use super::declarations::Declarations;
use super::drive::Driver;
use super::set_aside::{Item, SetAside};

/// What becomes of strangers of a deployment config.
///
/// # Errors
/// If the store cannot be read.
pub(super) async fn judge(store: &dyn ReadStore, state: &ConfigState, pods: &[ObservedPod]) -> Result<Strangers> {
    let ConfigKey { project, stage, .. } = state.key.clone();
    let service = ServiceKey { project, stage, service: state.service.clone() };
    let known = Known::read(store, &state.repository, &service, state.inherited.is_some()).await?;
    let has_own = pods.iter().any(|pod| pod.origin == Origin::Own && pod.lives());
    let owner = match &state.wanted.owner {
        Some(owner) => store.run(owner).await?.and_then(|run| deployment(run.value)),
        None => None,
    };
    let is_down = known.repository.as_ref().is_some_and(|repository| repository.down);
    Ok(adoption::judge(state, is_down, owner.as_deref(), has_own || known.prospect().is_settled(state)))
}

/// Whether a service object is to be as it and its endpoints are recorded, although another life of the store has recorded it.
///
/// # Errors
/// If the store cannot be read.
pub(super) async fn confirms(
    store: &dyn ReadStore,
    state: &ObjectState,
    endpoints: Option<&ObjectState>,
) -> Result<bool> {
    let ObjectState { project, stage, repository, object, inherited, .. } = state;
    if inherited.is_none() {
        return Ok(true);
    }
    let service = ServiceKey { project: project.clone(), stage: stage.clone(), service: object.service.clone() };
    Ok(Known::read(store, repository, &service, true).await?.prospect().confirms(state, endpoints))
}

/// What a [`Prospect`] is of.
struct Known {
    repository: Option<RepositoryState>,
    slot: Option<SlotState>,
    newest: Option<Plan>,
    has_passed: bool,
}

impl Known {
    async fn read(
        store: &dyn ReadStore,
        repository: &RepositoryName,
        service: &ServiceKey,
        is_inherited: bool,
    ) -> Result<Self> {
        let repository = store.repository(repository).await?.map(|repository| repository.value);
        let newest = store.newest_plan_of(&service.project, &service.service).await?;
        let slot = store.slot(service).await?.map(|slot| slot.value);
        let known = Self { repository, slot, newest, has_passed: true };
        let has_passed = !is_inherited || known.has_passed_before(store, service).await?;
        Ok(Self { has_passed, ..known })
    }

    /// Whether what was delivered last of a service in the stages before its own, or else what the head brings there, has
    /// passed.
    async fn has_passed_before(&self, store: &dyn ReadStore, service: &ServiceKey) -> Result<bool> {
        let prospect = self.prospect();
        let stages = self.newest.iter().flat_map(|plan| &plan.stages);
        for StagePlan { stage, .. } in stages.take_while(|stage| stage.stage != service.stage) {
            let before = ServiceKey { stage: stage.clone(), ..service.clone() };
            let Some(slot) = store.slot(&before).await?.map(|slot| slot.value) else { continue };
            if !slot.is_free() {
                return Ok(false);
            }
            let delivered = slot.last_delivery.as_ref().map(|last| &last.content);
            let comes = || prospect.part(stage, &service.service).map(|part| &part.content);
            let Some(content) = delivered.or_else(comes).cloned() else { continue };
            if store.passed(&PassedKey { service: before, content }).await?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn prospect(&self) -> Prospect<'_> {
        let Self { repository, slot, newest, has_passed } = self;
        let (repository, slot, newest) = (repository.as_ref(), slot.as_ref(), newest.as_ref());
        Prospect { repository, slot, newest, has_passed: *has_passed }
    }
}

fn deployment(run: Run) -> Option<Box<DeploymentRun>> {
    match run {
        Run::Deployment(run) => Some(run),
        Run::Sequence(_) => None,
    }
}

/// Makes strangers that run what is wanted pods of this life; says whether there were any.
///
/// # Errors
/// If the runtime fails.
pub(super) async fn adopt(
    runtime: &dyn Runtime,
    state: &ConfigState,
    pods: &[ObservedPod],
    now: Timestamp,
) -> Result<bool> {
    let observed = Observed::count(pods, &state.key, state.wanted.min_ready_seconds, now);
    let adopted = adoption::adopt(state, pods, &observed);
    for (pod, version) in &adopted {
        tracing::info!(%pod, version, "runs what is wanted, although another life of the store started it");
        runtime.adopt(pod, *version).await?;
    }
    Ok(!adopted.is_empty())
}

/// Ends what strangers run once: nobody waits for it.
///
/// # Errors
/// If the runtime fails.
pub(super) async fn end_runs(runtime: &dyn Runtime, pods: &[ObservedPod]) -> Result<()> {
    let left = |pod: &&ObservedPod| pod.is_stranger() && pod.lives() && matches!(pod.owner, PodOwner::Run { .. });
    for pod in pods.iter().filter(left) {
        runtime.stop_pod(&pod.id).await?;
    }
    Ok(())
}

/// Ends strangers whose deployment config is neither remembered nor declared. Says whether any are left.
///
/// # Errors
/// If the store or the runtime fails.
pub(super) async fn end_orphans(
    store: &dyn ReadStore,
    declarations: &dyn Declarations,
    runtime: &dyn Runtime,
    known: &BTreeSet<ConfigKey>,
    pods: &[ObservedPod],
    life: &Incarnation,
) -> Result<bool> {
    let strange = pods.iter().filter(|pod| pod.is_stranger());
    let orphans: BTreeSet<&ConfigKey> =
        strange.filter_map(|pod| pod.version()).map(|(config, _)| config).filter(|it| !known.contains(it)).collect();
    for project in orphans.iter().map(|orphan| &orphan.project).collect::<BTreeSet<&ProjectName>>() {
        let mine: Vec<&ConfigKey> = orphans.iter().copied().filter(|orphan| &orphan.project == project).collect();
        let Some(holder) = holder_of(store, declarations, UniqueName::Project(project.clone())).await? else {
            for stage in mine.iter().map(|orphan| &orphan.stage).collect::<BTreeSet<_>>() {
                let names = EnvironmentNames { project: project.clone(), stage: stage.clone() };
                if is_environment_over(store, &names, life).await? {
                    let is_of_it = |pod: &&ObservedPod| is_of_environment(pod, &names);
                    tracing::info!(%project, "the environment of a pull request that no record names is over");
                    end_all(runtime, pods.iter().filter(is_of_it)).await?;
                }
            }
            continue;
        };
        let known = known.iter().filter(|config| &config.project == project).count();
        let declares_nothing = match &holder.declared {
            Some(declared) => declared.declares_nothing(),
            None => store.applied_stages(project).await?.is_empty(),
        };
        let gone = holder.orphans_to_end(&mine, known, declares_nothing).unwrap_or_else(|refusal| {
            tracing::warn!(%project, "what no record names serves on: {refusal}");
            Vec::new()
        });
        let is_gone = |pod: &&ObservedPod| pod.version().is_some_and(|(config, _)| gone.contains(&config));
        end_all(runtime, pods.iter().filter(is_gone)).await?;
    }
    Ok(!orphans.is_empty())
}

async fn end_all(runtime: &dyn Runtime, pods: impl Iterator<Item = &ObservedPod>) -> Result<()> {
    for pod in pods {
        runtime.stop_pod(&pod.id).await?;
        runtime.remove_pod(pod).await?;
    }
    Ok(())
}

/// Whether these are the names of an environment of which nothing is to be there any more. Its pull request was closed before this
/// life of the store had a record of it, or it does not get one.
async fn is_environment_over(store: &dyn ReadStore, names: &EnvironmentNames, life: &Incarnation) -> Result<bool> {
    let Some((project, number)) = names.origin() else { return Ok(false) };
    let Some((repository, _)) = owner(store, UniqueName::Project(project)).await? else { return Ok(false) };
    Ok(repository.name.pull().is_none() && environments::is_over(&repository, number, life))
}

/// Whether a pod is an environment's: those live in a namespace that is called like their project, where no other stage does.
fn is_of_environment(pod: &ObservedPod, names: &EnvironmentNames) -> bool {
    let is_of_it = |config: &ConfigKey| config.project == names.project && config.stage == names.stage;
    pod.is_stranger()
        && pod.version().is_some_and(|(config, _)| is_of_it(config))
        && pod.id.namespace.as_str() == names.project.as_str()
}

/// Whether a service that no record names may end: not while it may lead to strangers that serve on.
///
/// # Errors
/// If the store or the runtime cannot be read.
pub(super) async fn service_may_go(
    store: &dyn ReadStore,
    declarations: &dyn Declarations,
    runtime: &dyn Runtime,
    namespace: &Namespace,
    name: &str,
) -> Result<bool> {
    if !runtime.has_strangers(namespace).await? {
        return Ok(true);
    }
    let key = ObjectKey { kind: Kind::Service, name: name.to_owned() };
    let holder = holder_of(store, declarations, UniqueName::Namespace(namespace.clone())).await?;
    let Some(holder) = holder.filter(|holder| holder.stage.as_ref().is_some_and(|stage| holder.lets_go(stage, &key)))
    else {
        return Ok(false);
    };
    // What is down ends with all that leads to it.
    Ok(holder.repository.down || !leads_to_strangers(runtime, namespace, name).await?)
}

/// Whether a service leads to what another life of the store has left, and still serves.
async fn leads_to_strangers(runtime: &dyn Runtime, namespace: &Namespace, name: &str) -> Result<bool> {
    let Some(spec) = runtime.service_spec(namespace, name).await? else { return Ok(false) };
    let pods = runtime.observe(namespace).await?;
    let mut left = pods.iter().filter(|pod| pod.is_stranger() && pod.lives());
    Ok(left.any(|pod| spec.selects(pod.version(), &pod.labels)))
}

async fn holder_of(store: &dyn ReadStore, declarations: &dyn Declarations, name: UniqueName) -> Result<Option<Holder>> {
    let Some((repository, stage)) = owner(store, name).await? else { return Ok(None) };
    let is_idle = store.open_slot_keys(repository.project.as_ref()).await?.is_empty();
    let declared = match &repository.applied {
        Some(applied) if is_idle && !repository.down => declarations.project(&repository.name, applied).await?,
        _ => None,
    };
    Ok(Some(Holder { repository, stage, is_idle, declared }))
}

/// The repository that has a name, and the stage that it stands for.
async fn owner(store: &dyn ReadStore, name: UniqueName) -> Result<Option<(RepositoryState, Option<StageName>)>> {
    let Some(owner) = store.name_owner(&name).await?.map(|owner| owner.value) else { return Ok(None) };
    let repository = store.repository(&owner.repository).await?;
    Ok(repository.map(|repository| (repository.value, owner.stage)))
}

/// Tells runs that wait for a pod which is not there and which nobody is about to start: how it ended is unknown. Says of
/// which services a sequence waits for what it has applied to listen.
///
/// # Errors
/// If the store cannot be read; one run that cannot be told is set aside.
pub(super) async fn tell_of_missing_pods(
    driver: &Driver,
    runtime: &dyn Runtime,
    aside: &SetAside,
) -> Result<BTreeSet<ServiceKey>> {
    let open = driver.store.runs(&RunFilter { open: Some(true), ..RunFilter::default() }).await?;
    for damaged in &open.damaged {
        let RecordKey::Run(run) = &damaged.key else { continue };
        aside.judge::<()>(Item::Run(run.clone()), Err(damaged.failure()));
    }
    let mut awaited = BTreeSet::new();
    for run in open.found.into_iter().map(|run| run.value) {
        let told = tell_of_missing_pod(driver, runtime, &run).await;
        aside.judge(Item::Run(run.id().clone()), told);
        awaited.extend(run.sequence().filter(|run| run.awaits_services()).map(|run| run.service.clone()));
    }
    Ok(awaited)
}

async fn tell_of_missing_pod(driver: &Driver, runtime: &dyn Runtime, run: &Run) -> Result<()> {
    let Some(pod) = run.awaited_pod() else { return Ok(()) };
    let key = Action::run_pod_key(&pod.name);
    // Asked in this order, because a pod is there before its action is done.
    if driver.store.outbox(Some(run.id())).await?.iter().any(|row| row.key == key) {
        return Ok(());
    }
    let there = runtime.observe(&pod.namespace).await?;
    if there.iter().any(|other| other.id == pod && !other.is_stranger()) {
        return Ok(());
    }
    let message = "it was started before the store was replaced, or its folder is gone".to_owned();
    let event = Event::pod_ended(pod.name, PodOutcome::unknown(message));
    driver.tell(run.id(), event).await
}
