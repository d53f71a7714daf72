//! Starts a service's part of a plan as a sequence run.

use crate::engine::sequence::machine::task_records;
use crate::error::Result;
use crate::executor::drive::Driver;
use crate::executor::pending::Pending;
use crate::model::ids::{RunId, ServiceKey};
use crate::model::plan::{Decision, Plan, ServicePlan, StagePlan};
use crate::model::run::{Run, SequenceRun, SequenceState};
use crate::model::shipyard::DEPLOYMENT_TASK;
use crate::plan::build::is_nothing;
use crate::store::RunFilter;

/// The run for a service's part of a plan; nothing, if its stage has no delivery sequence or the part does nothing.
///
/// # Errors
/// If the store cannot be read.
pub async fn sequence_run(
    driver: &Driver,
    plan: &Plan,
    stage: &StagePlan,
    service: &ServicePlan,
    cause: String,
) -> Result<Option<SequenceRun>> {
    let Some(run) = queued_run(driver, plan, stage, service, cause).await? else { return Ok(None) };
    let acts = run.changes.iter().any(|change| does_something(change.decision));
    Ok(if acts || overtakes(driver, &run).await? { Some(run) } else { None })
}

/// The run for a service's part of a plan, whether it finds anything to do or not; nothing, if its stage has no delivery
/// sequence. What was decided when the plan was made is decided again on what is applied now, because that may have
/// moved.
///
/// # Errors
/// If the store cannot be read.
pub async fn queued_run(
    driver: &Driver,
    plan: &Plan,
    stage: &StagePlan,
    service: &ServicePlan,
    cause: String,
) -> Result<Option<SequenceRun>> {
    let Some(mut sequence) = stage.sequence.clone() else { return Ok(None) };
    if is_nothing(&service.content) {
        sequence.tasks.retain(|task| task.name == DEPLOYMENT_TASK); // nothing is left to be tested
    }
    let key =
        ServiceKey { project: plan.project.clone(), stage: stage.stage.clone(), service: service.service.clone() };
    let (mut now_applied, mut changes) = (Pending::new(&*driver.store), Vec::new());
    for change in &service.changes {
        changes.push(now_applied.decide_again(&key, change).await?);
    }
    let now = driver.clock.now();
    Ok(Some(SequenceRun {
        id: RunId::new(driver.ids.next(now)),
        is_rollback: false,
        attempt: 1 + attempts(driver, plan, &key).await?,
        service: key,
        namespace: stage.namespace.clone(),
        repository: plan.repository.clone(),
        commit: plan.commit.clone(),
        plan: plan.id.clone(),
        cause,
        tasks: task_records(&sequence),
        sequence,
        content: service.content.clone(),
        changes,
        definitions: service.tasks.clone(),
        state: SequenceState::Queued,
        created_at: now,
        started_at: None,
        ended_at: None,
        verdict: None,
        message: String::new(),
    }))
}

/// Whether a run that finds nothing to do now has to take its turn all the same, because an open delivery is about to
/// bring other content.
async fn overtakes(driver: &Driver, newer: &SequenceRun) -> Result<bool> {
    for run in driver.store.slot(&newer.service).await? {
        let Run::Sequence(run) = run.value else { continue };
        if run.content != newer.content && driver.store.plan(&run.plan).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a decision has an effect.
pub fn does_something(decision: Decision) -> bool {
    !matches!(decision, Decision::None | Decision::Wait | Decision::Refuse)
}

/// How many runs this revision had for the service already.
async fn attempts(driver: &Driver, plan: &Plan, service: &ServiceKey) -> Result<u32> {
    let filter = RunFilter {
        repository: Some(plan.repository.clone()),
        project: Some(service.project.clone()),
        stage: Some(service.stage.clone()),
        service: Some(service.service.to_string()),
        commit: Some(plan.commit.clone()),
        sequences: Some(true),
        ..RunFilter::default()
    };
    let runs = driver.store.runs(&filter).await?;
    Ok(u32::try_from(runs.len()).unwrap_or(u32::MAX))
}
