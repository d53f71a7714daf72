//! From a revision's declaration to its plan and the runs that it starts.

use std::collections::BTreeMap;

use crate::engine::sequence::chain;
use crate::error::Result;
use crate::executor::drive::Driver;
use crate::executor::start::{does_something, sequence_run};
use crate::executor::transition::Input;
use crate::model::ids::{ConfigKey, Digest, PlanId, ProjectName, ServiceKey, ServiceName, StageName};
use crate::model::object::{Kind, ObjectKey};
use crate::model::plan::{Change, Plan, ServicePlan, StagePlan, StageStart};
use crate::model::project::Project;
use crate::model::run::Run;
use crate::model::state::RevisionState;
use crate::plan::build::{Applied, UnderWay, differing};
use crate::store::{ReadStore, RunFilter, Write};

/// What is applied in every stage that a project declares or had, as far as planning needs it.
///
/// # Errors
/// If the store cannot be read.
pub async fn applied(store: &dyn ReadStore, project: &Project) -> Result<BTreeMap<StageName, Applied>> {
    let mut names: Vec<StageName> = project.stages.iter().map(|stage| stage.name.clone()).collect();
    names.extend(store.applied_stages(&project.name).await?);
    let mut under_way = under_way(store, &project.name).await?;
    names.extend(under_way.keys().cloned());
    names.sort();
    names.dedup();
    let mut stages = BTreeMap::new();
    for name in names {
        let mut seen = Applied { digests: store.applied(&project.name, &name).await?, ..Applied::default() };
        let declared = project.stages.iter().find(|stage| stage.name == name);
        for key in differing(declared, &seen.digests) {
            read_record(store, &project.name, &name, key, &mut seen).await?;
        }
        seen.under_way = under_way.remove(&name).unwrap_or_default();
        stages.insert(name, seen);
    }
    Ok(stages)
}

async fn read_record(
    store: &dyn ReadStore,
    project: &ProjectName,
    stage: &StageName,
    key: ObjectKey,
    seen: &mut Applied,
) -> Result<()> {
    if key.kind == Kind::DeploymentConfig {
        let config = ConfigKey { project: project.clone(), stage: stage.clone(), name: key.name.clone() };
        seen.configs.extend(store.config(&config).await?.map(|state| (key, state)));
    } else {
        seen.objects.extend(store.object(project, stage, &key).await?.map(|state| (key, state)));
    }
    Ok(())
}

/// What open deliveries bring, per stage and service, also to the stages that follow them; of several the newest
/// counts, because it has the last word. What is done by hand is none of a revision's business.
async fn under_way(
    store: &dyn ReadStore,
    project: &ProjectName,
) -> Result<BTreeMap<StageName, BTreeMap<ServiceName, UnderWay>>> {
    let filter =
        RunFilter { project: Some(project.clone()), sequences: Some(true), open: Some(true), ..RunFilter::default() };
    let mut found: BTreeMap<StageName, BTreeMap<ServiceName, UnderWay>> = BTreeMap::new();
    // The deliveries of one push share its plan, which may be large: it is read once.
    let mut plans: BTreeMap<PlanId, Option<Plan>> = BTreeMap::new();
    for run in store.runs(&filter).await? {
        let Run::Sequence(run) = run.value else { continue };
        if !plans.contains_key(&run.plan) {
            plans.insert(run.plan.clone(), store.plan(&run.plan).await?);
        }
        let Some(plan) = plans.get(&run.plan).and_then(Option::as_ref) else { continue };
        let service = &run.service.service;
        let brought = |content: &Digest, here: bool, changes: &[Change]| {
            let keys = changes.iter().map(|change| change.key.clone()).collect();
            UnderWay { content: content.clone(), here, keys }
        };
        let mut note = |stage: &StageName, brought: UnderWay| {
            found.entry(stage.clone()).or_default().entry(service.clone()).or_insert(brought);
        };
        note(&run.service.stage, brought(&run.content, true, &run.changes));
        for stage in plan.stages.iter().skip_while(|stage| stage.stage != run.service.stage).skip(1) {
            if let Some(part) = stage.service(service) {
                note(&stage.stage, brought(&part.content, false, &part.changes));
            }
        }
    }
    Ok(found)
}

/// Stores a revision and its plan.
pub fn remember(revision: &RevisionState) -> Input {
    Input::Write(Box::new(Write::Revision(Box::new(revision.clone()))))
}

/// The runs that a plan starts by itself: in stages that a push starts, and in later ones for services whose content
/// the stage before has passed already.
///
/// # Errors
/// If the store cannot be read.
pub async fn starts(driver: &Driver, plan: &Plan) -> Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for stage in &plan.stages {
        for service in &stage.services {
            if begins(driver, plan, stage, service).await?
                && let Some(run) = sequence_run(driver, plan, stage, service, "push".into()).await?
            {
                inputs.push(Input::Start(Box::new(run)));
            }
        }
    }
    Ok(inputs)
}

async fn begins(driver: &Driver, plan: &Plan, stage: &StagePlan, service: &ServicePlan) -> Result<bool> {
    let previous = match (&stage.start, &service.previous_stage) {
        (StageStart::Push, _) => return Ok(true),
        (StageStart::After(_), Some(previous)) => previous,
        // No stage before has the service, so there is none to wait for.
        (StageStart::After(_), None) => return Ok(chain::predecessor(&stage.start).is_some()),
        (StageStart::ByHand, _) => return Ok(false),
    };
    let before = plan.stage(&previous.stage).and_then(|stage| stage.service(&service.service));
    if before.is_some_and(|before| before.changes.iter().any(|change| does_something(change.decision))) {
        return Ok(false); // the stage before runs first, and its end starts this one
    }
    let key =
        ServiceKey { project: plan.project.clone(), stage: previous.stage.clone(), service: service.service.clone() };
    driver.store.has_passed(&key, &previous.content).await
}
