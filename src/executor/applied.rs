//! Reads what is applied in the stages of a project, as far as planning needs it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::engine::records::Records;
use crate::error::Result;
use crate::model::hold::{Hold, Lifted, ProjectHolds, Release};
use crate::model::ids::{ConfigKey, ProjectName, RunId, ServiceKey, ServiceName, StageName};
use crate::model::object::{Kind, ObjectKey};
use crate::model::project::{Project, StageContent};
use crate::model::run::{Run, SequenceRun, SequenceState};
use crate::model::shipyard::Sequence;
use crate::model::slot::PassedKey;
use crate::model::state::ConfigState;
use crate::model::transaction::ObjectPlace;
use crate::plan::build::{Applied, content_of, delivery_sequences, differing};
use crate::plan::config_change::foresee;
use crate::plan::images::{self, RecordedImages};
use crate::plan::passed::{self, Asked};
use crate::plan::under_way::{self, OpenDelivery, UnderWays};
use crate::plan::{controllers, gate, kept, procedure};
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

/// What a project is decided on, once `release` was released. What was read of services becomes part of that as far as the
/// decision is about them: a push of one does not wait until the deliveries of all others stand still.
///
/// # Errors
/// If the store cannot be read.
pub async fn surroundings(
    store: &dyn ReadStore,
    project: &Arc<Project>,
    release: &Release,
    records: &mut Records,
) -> Result<Surroundings> {
    read(store, project, release, records, is_overtaken).await
}

/// The same for people who ask what is still to be done: what a hold keeps from starting is not under way.
///
/// # Errors
/// If the store cannot be read.
pub async fn shown(store: &dyn ReadStore, project: &Arc<Project>) -> Result<Surroundings> {
    let is_held = |_: &Project, run: &SequenceRun, holds: &[Hold]| {
        run.state == SequenceState::Queued && holds.iter().any(|hold| run.is_held_by(hold))
    };
    read(store, project, &Release::default(), &mut Records::default(), is_held).await
}

/// Whether a delivery stands in a queue, where a hold keeps it, and brings something else than what the project declares by
/// now: it cannot begin before the hold is released, and the project is planned again then.
fn is_overtaken(project: &Project, run: &SequenceRun, holds: &[Hold]) -> bool {
    let holds_it = |hold: &Hold| hold.scope.context.is_none() && run.is_held_by(hold);
    // What is declared is only read for what a hold keeps: many may be open.
    if run.state != SequenceState::Queued || run.has_its_turn() || !holds.iter().any(holds_it) {
        return false;
    }
    let declared = project.stage(&run.service.stage).map(|stage| content_of(stage, &run.service.service));
    run.planned_content().is_some_and(|brought| declared.is_some_and(|declared| declared != *brought))
}

/// Open deliveries of which `is_held` says so are kept from beginning, and not under way.
async fn read(
    store: &dyn ReadStore,
    project: &Arc<Project>,
    release: &Release,
    records: &mut Records,
    is_held: impl Fn(&Project, &SequenceRun, &[Hold]) -> bool,
) -> Result<Surroundings> {
    let stored = store.holds_of(&project.name).await?;
    let holds = stored.as_ref().map_or_else(|| ProjectHolds::none(project.name.clone()), |stored| stored.value.clone());
    records.holds.read(project.name.clone(), stored);
    let holds = holds.after(release);
    let recorded = recorded_images(store, project, records).await?;
    let project = images::follow(project, &recorded);
    let (project, lifted) = gate::lift(&project, &holds.lifted);
    let open = open_deliveries(store, &project.name, records).await?;
    let (held, coming): (Vec<_>, Vec<_>) = open.into_iter().partition(|run| is_held(&project, run, &holds.holds));
    let mut stages = applied(store, &project, coming, records).await?;
    for run in held {
        stages.entry(run.service.stage).or_default().held.entry(run.service.service).or_default().push(run.id);
    }
    for (name, seen) in &mut stages {
        // One of a context covers what is under way with that, and nothing that is planned.
        let covers =
            |hold: &&Hold| hold.scope.context.is_none() && hold.scope.stage.as_ref().is_none_or(|held| held == name);
        seen.holds = holds.holds.iter().filter(covers).cloned().collect();
        let released = |state: &&mut ConfigState| release.paused.iter().any(|lifted| lifted.config == state.key);
        seen.configs.values_mut().filter(released).for_each(|state| state.quarantined.clear());
        if let (Some(stage), Some(recorded)) = (project.stage(name), recorded.get(name)) {
            seen.came_round = images::came_round(stage, recorded);
        }
    }
    Ok(Surroundings { project, lifted, stages })
}

/// What is recorded of images, as far as files do not say it.
async fn recorded_images(
    store: &dyn ReadStore,
    project: &Project,
    records: &mut Records,
) -> Result<BTreeMap<StageName, RecordedImages>> {
    let mut stages = BTreeMap::new();
    for stage in &project.stages {
        let mut recorded = RecordedImages::default();
        for stream in stage.objects.image_streams() {
            let place =
                ObjectPlace { project: project.name.clone(), stage: stage.name.clone(), key: stream.key.clone() };
            let state = store.object(&place.project, &place.stage, &place.key).await?;
            recorded.streams.extend(state.as_ref().map(|state| state.value.clone()));
            records.objects.read_of(Some(stream.service.clone()), place, state);
        }
        for key in images::asked(stage, &recorded.streams) {
            let config = ConfigKey { project: project.name.clone(), stage: stage.name.clone(), name: key.name.clone() };
            let state = store.config(&config).await?;
            let service = stage.objects.get(&key).map(|declared| declared.service.clone());
            recorded.configs.extend(state.as_ref().map(|state| (key, state.value.clone())));
            records.configs.read_of(service, config, state);
        }
        stages.insert(stage.name.clone(), recorded);
    }
    Ok(stages)
}

/// What is applied in every stage that a project declares or had, with the records of what differs and of what is under way.
async fn applied(
    store: &dyn ReadStore,
    project: &Project,
    deliveries: Vec<SequenceRun>,
    records: &mut Records,
) -> Result<Stages> {
    let is_ending = |run: &&SequenceRun| matches!(run.state, SequenceState::Ending { .. });
    let ending: Vec<SequenceRun> = deliveries.iter().filter(is_ending).cloned().collect();
    let mut coming = UnderWays::new();
    for run in under_way::last_word_first(project, deliveries) {
        under_way::add(&mut coming, project, &with_plans(store, project, run).await?);
    }
    let coming = coming.into_iter();
    let mut stages: Stages =
        coming.map(|(stage, under_way)| (stage, Applied { under_way, ..Applied::default() })).collect();
    let declared = project.stages.iter().map(|stage| stage.name.clone());
    for name in declared.chain(store.applied_stages(&project.name).await?) {
        stages.entry(name).or_default();
    }
    for (name, seen) in &mut stages {
        seen.digests = store.applied(&project.name, name).await?;
        let declared = project.stage(name);
        for key in differing(declared, &seen.digests) {
            let declared = declared.and_then(|stage| stage.objects.get(&key)).map(|object| object.service.clone());
            read_record(store, (&project.name, name, key), declared, seen, records).await?;
        }
        // Whether a replication controller goes is for what deploys it to say, and of other objects for what runs with them.
        let leaders = seen.configs.values().filter_map(|config| controllers::leader_of(&config.object));
        let concerned = declared.map(|stage| kept::concerned(stage, seen)).unwrap_or_default();
        let others: BTreeSet<ObjectKey> = leaders.chain(concerned).collect();
        for key in others {
            if !seen.configs.contains_key(&key) {
                read_record(store, (&project.name, name, key), None, seen, records).await?;
            }
        }
        for config in seen.configs.values_mut() {
            let run = config.open_attempt().and_then(|attempt| ending.iter().find(|run| run.id == attempt.run));
            foresee(config, run);
        }
    }
    for (stage, sequence) in delivery_sequences(project) {
        if let Some(content) = project.stage(&stage) {
            read_passed(store, project, content, sequence, stages.entry(stage).or_default(), records).await?;
        }
    }
    Ok(stages)
}

async fn read_passed(
    store: &dyn ReadStore,
    project: &Project,
    content: &StageContent,
    sequence: &Sequence,
    seen: &mut Applied,
    records: &mut Records,
) -> Result<()> {
    let except = passed::deploys(sequence).as_ref().map(procedure);
    let delivered = store.delivered(&project.name, &content.name, except.as_ref()).await?;
    let last: BTreeMap<ServiceName, RunId> =
        delivered.iter().map(|(service, last)| (service.clone(), last.run.clone())).collect();
    let asked = Asked::of(content, sequence, &seen.under_way, delivered);
    let (mut by, mut only_deployed) = (BTreeMap::new(), BTreeSet::new());
    for (service, declared) in asked.contents() {
        let (project, stage) = (project.name.clone(), content.name.clone());
        let place = ServiceKey { project, stage, service: service.clone() };
        let key = PassedKey { service: place, content: declared.clone() };
        let passed = store.passed(&key).await?;
        by.extend(passed.as_ref().map(|passed| (service.clone(), passed.value.procedure.clone())));
        if let (None, Some(_), Some(last)) = (&passed, &except, last.get(service)) {
            let run = store.run(last).await?.map(|run| run.value);
            let sequence = run.as_ref().and_then(Run::sequence).map(|run| &run.procedure.sequence);
            only_deployed.extend(sequence.and_then(passed::deploys).map(|_| service.clone()));
        }
        records.passed.read_of(Some(service.clone()), key, passed);
    }
    asked.judge(&by, &only_deployed, seen);
    Ok(())
}

async fn read_record(
    store: &dyn ReadStore,
    (project, stage, key): (&ProjectName, &StageName, ObjectKey),
    declared: Option<ServiceName>,
    seen: &mut Applied,
    records: &mut Records,
) -> Result<()> {
    if key.kind == Kind::DeploymentConfig {
        let config = ConfigKey { project: project.clone(), stage: stage.clone(), name: key.name.clone() };
        let state = store.config(&config).await?;
        seen.configs.extend(state.as_ref().map(|state| (key, state.value.clone())));
        let service = declared.or_else(|| state.as_ref().map(|state| state.value.service.clone()));
        records.configs.read_of(service, config, state);
    } else {
        let state = store.object(project, stage, &key).await?;
        seen.objects.extend(state.as_ref().map(|state| (key.clone(), state.value.clone())));
        let place = ObjectPlace { project: project.clone(), stage: stage.clone(), key };
        let service = declared.or_else(|| state.as_ref().map(|state| state.value.object.service.clone()));
        records.objects.read_of(service, place, state);
    }
    Ok(())
}

/// The deliveries that are open. One that ended after its slot was read brings nothing any more.
async fn open_deliveries(
    store: &dyn ReadStore,
    project: &ProjectName,
    records: &mut Records,
) -> Result<Vec<SequenceRun>> {
    let mut deliveries = Vec::new();
    for slot in store.open_slots(Some(project)).await? {
        let service = Some(slot.value.service.service.clone());
        for id in slot.value.open() {
            let run = store.run(id).await?;
            if let Some(Run::Sequence(run)) = run.as_ref().map(|run| &run.value)
                && run.delivery.is_some()
                && run.ended_at.is_none()
            {
                deliveries.push((**run).clone());
            }
            records.runs.read_of(service.clone(), id.clone(), run);
        }
        records.slots.read_of(service, slot.value.service.clone(), Some(slot));
    }
    Ok(deliveries)
}

/// With the plans that a delivery leads on to.
async fn with_plans(store: &dyn ReadStore, project: &Project, run: SequenceRun) -> Result<OpenDelivery> {
    let Some(id) = &run.plan else { return Ok(OpenDelivery { run, plan: None, newest: None }) };
    let service = &run.service.service;
    let newest = store.newest_plan_of(&project.name, service).await?;
    if newest.as_ref().is_some_and(|newest| &newest.id == id) {
        return Ok(OpenDelivery { run, plan: newest, newest: None });
    }
    let plan = store.plan_of(id, service).await?;
    Ok(OpenDelivery { run, plan, newest })
}
