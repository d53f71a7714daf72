//! Reads what is applied in the stages of a project, as far as planning needs it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::engine::records::Records;
use crate::error::Result;
use crate::model::hold::{Hold, Lifted, ProjectHolds, Release};
use crate::model::ids::{ConfigKey, ProjectName, ServiceKey, ServiceName, StageName};
use crate::model::object::{Kind, ObjectKey};
use crate::model::plan::{PassedContent, Plan, ServicePlan, StagePlan};
use crate::model::project::{Procedure, Project};
use crate::model::run::{Delivery, Run, SequenceRun, SequenceState};
use crate::model::shipyard::{DEPLOYMENT_TASK, Sequence};
use crate::model::slot::PassedKey;
use crate::model::transaction::ObjectPlace;
use crate::plan::build::{Applied, UnderWay, content_of, delivery_sequences, differing};
use crate::plan::config_change::foresee;
use crate::plan::{delivery_procedure, gate, passed_procedure, procedure, same_procedure};
use crate::store::ReadStore;

/// What is applied, by stage.
pub type Stages = BTreeMap<StageName, Applied>;

/// What a project is decided on beside its files.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The project as people let it go on.
    pub project: Arc<Project>,
    /// What they let go on although its file says `paused`.
    pub lifted: Vec<Lifted>,
    /// What is applied in its stages, and held there.
    pub stages: Stages,
}

/// What a project is decided on, once `release` was released; what was read of it becomes part of what is decided.
///
/// # Errors
/// If the store cannot be read.
pub async fn surroundings(
    store: &dyn ReadStore,
    project: &Arc<Project>,
    release: &Release,
    records: &mut Records,
) -> Result<Surroundings> {
    let stored = store.holds_of(&project.name).await?;
    let holds = stored.as_ref().map_or_else(|| ProjectHolds::none(project.name.clone()), |stored| stored.value.clone());
    records.holds.read(project.name.clone(), stored);
    let holds = holds.after(release);
    let (project, lifted) = gate::lift(project, &holds.lifted);
    let mut stages = applied(store, &project, records).await?;
    for (name, seen) in &mut stages {
        let covers = |hold: &&Hold| hold.scope.stage.as_ref().is_none_or(|held| held == name);
        seen.holds = holds.holds.iter().filter(covers).cloned().collect();
    }
    Ok(Surroundings { project, lifted, stages })
}

/// What is applied in every stage that a project declares or had; the records of what differs and of what is under way
/// become part of what is decided on it.
async fn applied(store: &dyn ReadStore, project: &Project, records: &mut Records) -> Result<Stages> {
    let deliveries = open_deliveries(store, &project.name, records).await?;
    let (ending, mut open): (Vec<SequenceRun>, Vec<SequenceRun>) =
        deliveries.into_iter().partition(|run| matches!(run.state, SequenceState::Ending { .. }));
    // What is in an earlier stage comes to a later one after what is there already, whichever of the two is newer.
    open.sort_by_key(|run| {
        project.stages.iter().position(|stage| stage.name == run.service.stage).unwrap_or(usize::MAX)
    });
    let mut stages = under_way(store, project, &open).await?;
    let declared = project.stages.iter().map(|stage| stage.name.clone());
    for name in declared.chain(store.applied_stages(&project.name).await?) {
        stages.entry(name).or_default();
    }
    for (name, seen) in &mut stages {
        seen.digests = store.applied(&project.name, name).await?;
        let declared = project.stage(name);
        for key in differing(declared, &seen.digests) {
            read_record(store, &project.name, name, key, seen, records).await?;
        }
        for config in seen.configs.values_mut() {
            let run = config.open_attempt().and_then(|attempt| ending.iter().find(|run| run.id == attempt.run));
            foresee(config, run);
        }
    }
    for (stage, sequence) in delivery_sequences(project) {
        let seen = stages.entry(stage.clone()).or_default();
        read_passed(store, project, &stage, sequence, seen, records).await?;
    }
    Ok(stages)
}

/// Which services of a stage have content that has neither passed its sequence nor ended otherwise, and why that is news;
/// and which have content that was not delivered last and passed before. Where a sequence only deploys, what is deployed
/// has passed, unless the sequence before did more and did not end well.
async fn read_passed(
    store: &dyn ReadStore,
    project: &Project,
    stage: &StageName,
    sequence: &Sequence,
    seen: &mut Applied,
    records: &mut Records,
) -> Result<()> {
    let Some(content) = project.stage(stage) else { return Ok(()) };
    let only_deploys = sequence.tasks.iter().all(|task| task.name == DEPLOYMENT_TASK);
    let deploys = only_deploys.then(|| Procedure { sequence: sequence.clone(), tasks: BTreeMap::new() });
    let mut delivered = store.delivered(&project.name, stage, deploys.as_ref().map(procedure).as_ref()).await?;
    // All services that no task names are delivered alike.
    let named: BTreeSet<&ServiceName> = content.tasks.values().flatten().flat_map(|task| &task.services).collect();
    let mut procedures = BTreeMap::new();
    let otherwise = |service: &ServiceName, deploys: &Procedure| {
        let under_way = seen.under_way.get(service).filter(|it| !same_procedure(&it.procedure, deploys));
        let last = delivered.get(service).map(|last| &last.content);
        under_way.map(|it| &it.content).into_iter().chain(last).any(|brought| *brought == content_of(content, service))
    };
    let asked = |service: &&ServiceName| deploys.as_ref().is_none_or(|deploys| otherwise(service, deploys));
    let services: Vec<&ServiceName> = content.objects.services().filter(asked).collect();
    for service in services {
        let (tried, passes) = procedures.entry(named.get(service)).or_insert_with(|| {
            let tried = content.procedure(sequence, service);
            (procedure(&tried), passed_procedure(&tried))
        });
        let declared = content_of(content, service);
        let ended = delivered.remove(service);
        if let Some(ended) = ended.filter(|it| it.content == declared && it.procedure == *tried) {
            if !ended.deployed {
                let hint = format!("`launchway trigger delivery {service} -s {stage}` runs it again");
                let why = format!("`{}` ended before its deployment; {hint}", sequence.name);
                seen.never_deployed.insert(service.clone(), why);
            }
            continue;
        }
        let (project, stage) = (project.name.clone(), stage.clone());
        let key = ServiceKey { project, stage, service: service.clone() };
        let key = PassedKey { service: key, content: declared.clone() };
        let passed = store.passed(&key).await?;
        let by = passed.as_ref().map(|passed| passed.value.procedure.clone());
        records.passed.read(key, passed);
        let news = match by {
            Some(by) if by == *passes || only_deploys => {
                seen.passed_before.insert(service.clone(), declared);
                continue;
            }
            Some(_) => "has changed",
            None => "has not passed with this",
        };
        seen.not_passed.insert(service.clone(), format!("`{}` {news}", sequence.name));
    }
    let withdrawn = delivered.into_iter().filter(|(_, last)| !last.deployed);
    seen.withdrawn.extend(withdrawn.map(|(service, _)| service));
    Ok(())
}

async fn read_record(
    store: &dyn ReadStore,
    project: &ProjectName,
    stage: &StageName,
    key: ObjectKey,
    seen: &mut Applied,
    records: &mut Records,
) -> Result<()> {
    if key.kind == Kind::DeploymentConfig {
        let config = ConfigKey { project: project.clone(), stage: stage.clone(), name: key.name.clone() };
        let state = store.config(&config).await?;
        seen.configs.extend(state.as_ref().map(|state| (key, state.value.clone())));
        records.configs.read(config, state);
    } else {
        let state = store.object(project, stage, &key).await?;
        seen.objects.extend(state.as_ref().map(|state| (key.clone(), state.value.clone())));
        records.objects.read(ObjectPlace { project: project.clone(), stage: stage.clone(), key }, state);
    }
    Ok(())
}

/// The deliveries that are open, newest first.
async fn open_deliveries(
    store: &dyn ReadStore,
    project: &ProjectName,
    records: &mut Records,
) -> Result<Vec<SequenceRun>> {
    let mut deliveries: Vec<SequenceRun> = Vec::new();
    for slot in store.open_slots(Some(project)).await? {
        for id in slot.value.open() {
            let run = store.run(id).await?;
            if let Some(Run::Sequence(run)) = run.as_ref().map(|run| &run.value)
                && run.delivery.is_some()
            {
                deliveries.push((**run).clone());
            }
            records.runs.read(id.clone(), run);
        }
        records.slots.read(slot.value.service.clone(), Some(slot));
    }
    deliveries.sort_by(|one, other| (other.created_at, &other.id).cmp(&(one.created_at, &one.id)));
    Ok(deliveries)
}

/// What open deliveries bring, per stage and service, also to the stages that follow them; of several the first
/// counts, because it has the last word. What is being ended brings nothing any more, and what is done by hand counts where
/// it is not what is declared, such as an earlier version.
async fn under_way(store: &dyn ReadStore, project: &Project, deliveries: &[SequenceRun]) -> Result<Stages> {
    let mut stages = Stages::new();
    for run in deliveries {
        let service = &run.service.service;
        let Some(id) = &run.plan else {
            if let Some(delivery) = run.delivery.as_ref().filter(|_| !is_declared(project, run)) {
                merge(&mut stages, &run.service, brought(run, delivery));
            }
            continue;
        };
        match store.newest_plan_of(&project.name, service).await? {
            Some(plan) if &plan.id == id => note(&mut stages, project, run, (&plan, None)),
            newest => {
                let plan = store.plan_of(id, service).await?;
                plan.into_iter().for_each(|plan| note(&mut stages, project, run, (&plan, newest.as_ref())));
            }
        }
    }
    Ok(stages)
}

/// Whether all that a run brings is what its stage declares.
fn is_declared(project: &Project, run: &SequenceRun) -> bool {
    let stage = project.stage(&run.service.stage);
    let declared = |key: &ObjectKey| stage.and_then(|stage| stage.objects.get(key)).map(|object| &object.digest);
    run.changes().iter().all(|change| declared(&change.key) == change.digest())
}

/// What else is on its way beside what has the last word; what brings the same adds nothing.
fn merge(stages: &mut Stages, place: &ServiceKey, brought: UnderWay) {
    let seen = stages.entry(place.stage.clone()).or_default();
    match seen.under_way.entry(place.service.clone()) {
        Entry::Vacant(free) => drop(free.insert(brought)),
        Entry::Occupied(mut last) if last.get().content != brought.content => {
            last.get_mut().others.extend(brought.keys);
        }
        Entry::Occupied(_) => {}
    }
}

/// What a delivery brings where it is, and in the stages that follow and are still declared. `newest` is the newest plan of
/// its service: where that waits for the same content to pass, it has the last word, as when the delivery ends.
fn note(stages: &mut Stages, project: &Project, run: &SequenceRun, (plan, newest): (&Plan, Option<&Plan>)) {
    let service = &run.service.service;
    let mut note = |stage: &StageName, brought: UnderWay| {
        merge(stages, &ServiceKey { stage: stage.clone(), ..run.service.clone() }, brought);
    };
    if let Some(delivery) = &run.delivery {
        note(&run.service.stage, brought(run, delivery));
    }
    let content = run.delivery.as_ref().map(|delivery| delivery.content.clone());
    let passed = content.map(|content| PassedContent { stage: run.service.stage.clone(), content });
    let waits = |part: &ServicePlan| passed.is_some() && part.previous_stage == passed;
    let waiting = newest.into_iter().flat_map(|newest| newest.stages.iter().map(move |stage| (newest, stage)));
    let waiting = waiting.filter(|(_, stage)| stage.service(service).is_some_and(waits));
    let following = plan.stages.iter().skip_while(|stage| stage.stage != run.service.stage).skip(1);
    for (plan, stage) in waiting.chain(following.map(|stage| (plan, stage))) {
        if let Some(part) = stage.service(service).filter(|_| project.stage(&stage.stage).is_some()) {
            note(&stage.stage, comes(plan, stage, part));
        }
    }
}

/// What a delivery brings where it is.
fn brought(run: &SequenceRun, delivery: &Delivery) -> UnderWay {
    UnderWay::new((&delivery.content, &delivery.changes), (run.procedure.value.clone(), &run.destination), true)
}

/// What a plan is going to bring to a stage.
fn comes(plan: &Plan, stage: &StagePlan, part: &ServicePlan) -> UnderWay {
    let procedure = delivery_procedure(plan, stage, part).unwrap_or_default();
    UnderWay::new((&part.content, &part.changes), (procedure.into(), &stage.destination), false)
}
