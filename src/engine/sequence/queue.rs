//! The one place that makes a sequence run: queued, with everything that it needs to its end.

use std::collections::BTreeMap;

use crate::engine::deployment::apply;
use crate::engine::records::{Lookup, Records, Undecided};
use crate::engine::sequence::machine::task_records;
use crate::model::ids::{CommitId, Destination, Digest, PlanId, RepositoryName, RunId, ServiceKey};
use crate::model::plan::{Change, Decision, Plan, ServicePlan, StagePlan};
use crate::model::project::TaskDefinition;
use crate::model::run::{Run, SequenceRun, SequenceState, TaskLimits};
use crate::model::shipyard::{DEPLOYMENT_TASK, Sequence};
use crate::model::slot::PassedKey;
use crate::model::time::Timestamp;
use crate::plan::build::is_nothing;
use crate::plan::{passed_procedure, procedure};

/// What a new run is told apart by.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What it takes the slot of.
    pub service: ServiceKey,
    /// Where the stage's objects live.
    pub destination: Destination,
    /// Whose revision.
    pub repository: RepositoryName,
    /// The revision whose content it deploys.
    pub commit: CommitId,
    /// The plan that it carries out a part of; none for what a person asked for.
    pub plan: Option<PlanId>,
    /// What starts it.
    pub cause: String,
    /// The person who does, if one does.
    pub by: Option<String>,
    /// Whether a person goes back to what ran before.
    pub is_rollback: bool,
    /// Why a person starts it although the stage before has not passed.
    pub forced: Option<String>,
    /// The sequence.
    pub sequence: Sequence,
    /// What the service declares, as a digest.
    pub content: Digest,
    /// What the deployment task does.
    pub changes: Vec<Change>,
    /// How other tasks run.
    pub definitions: BTreeMap<String, TaskDefinition>,
}

/// A queued run. Its attempt is one more than the revision has had for the service.
///
/// # Errors
/// If something must be read first.
pub fn queued(records: &mut Records, now: Timestamp, asked: Asked) -> Result<SequenceRun, Undecided> {
    let attempts = Lookup::Attempts(asked.repository.clone(), asked.commit.clone(), asked.service.clone());
    let attempt = 1 + records.number(attempts)?;
    let id = RunId::new(records.fresh_id()?);
    let Asked {
        service,
        destination,
        repository,
        commit,
        plan,
        cause,
        by,
        is_rollback,
        forced,
        sequence,
        content,
        changes,
        definitions,
    } = asked;
    Ok(SequenceRun {
        id,
        service,
        destination,
        repository,
        commit,
        plan,
        cause,
        by,
        is_rollback,
        forced,
        attempt,
        tasks: task_records(&sequence),
        sequence,
        content,
        changes,
        definitions,
        limits: TaskLimits::default(),
        state: SequenceState::Queued,
        created_at: now,
        started_at: None,
        ended_at: None,
        verdict: None,
        message: String::new(),
    })
}

/// The run for a service's part of a plan, whether it finds anything to do or not; nothing, if its stage has no delivery
/// sequence. What was decided when the plan was made is decided again on what is applied now, because that may have
/// moved.
///
/// # Errors
/// If something must be read first.
pub fn delivery(
    records: &mut Records,
    now: Timestamp,
    plan: &Plan,
    stage: &StagePlan,
    part: &ServicePlan,
    cause: String,
) -> Result<Option<SequenceRun>, Undecided> {
    let Some(mut sequence) = stage.sequence.clone() else { return Ok(None) };
    if is_nothing(&part.content) {
        sequence.tasks.retain(|task| task.name == DEPLOYMENT_TASK); // nothing is left to be tested
    }
    let service =
        ServiceKey { project: plan.project.clone(), stage: stage.stage.clone(), service: part.service.clone() };
    let again = part.changes.iter().map(|change| apply::decide_again(records, &service, change));
    let changes = again.collect::<Result<_, _>>()?;
    let asked = Asked {
        service,
        destination: stage.destination.clone(),
        repository: plan.repository.clone(),
        commit: plan.commit.clone(),
        plan: Some(plan.id.clone()),
        cause,
        by: None,
        is_rollback: false,
        forced: None,
        sequence,
        content: part.content.clone(),
        changes,
        definitions: part.tasks.clone(),
    };
    queued(records, now, asked).map(Some)
}

/// The same, but nothing if the part does nothing now.
///
/// # Errors
/// If something must be read first.
pub fn due_delivery(
    records: &mut Records,
    now: Timestamp,
    plan: &Plan,
    stage: &StagePlan,
    part: &ServicePlan,
    cause: String,
) -> Result<Option<SequenceRun>, Undecided> {
    let Some(run) = delivery(records, now, plan, stage, part, cause)? else { return Ok(None) };
    let acts = run.changes.iter().any(|change| does_something(change.decision));
    Ok(if acts || runs_again(records, part, &run)? || overtakes(records, &run)? { Some(run) } else { None })
}

/// Whether the sequence runs although nothing differs: what the part was planned for has neither passed nor ended
/// otherwise since.
fn runs_again(records: &Records, part: &ServicePlan, run: &SequenceRun) -> Result<bool, Undecided> {
    if part.runs_again.is_none() {
        return Ok(false);
    }
    let key = PassedKey { service: run.service.clone(), content: run.content.clone() };
    let passed = records.passed.get(&key)?.map(|passed| passed.procedure.clone());
    let last = records.slots.get(&run.service)?.and_then(|slot| slot.last_delivery.clone());
    let ended = last.is_some_and(|last| {
        last.content == run.content && last.procedure == procedure(&run.sequence, &run.definitions)
    });
    Ok(!ended && passed != Some(passed_procedure(&run.sequence, &run.definitions)))
}

/// Whether a run that finds nothing to do now has to take its turn all the same, because an open delivery is about to
/// bring other content.
fn overtakes(records: &Records, newer: &SequenceRun) -> Result<bool, Undecided> {
    let Some(slot) = records.slots.get(&newer.service)? else { return Ok(false) };
    for id in slot.open() {
        if let Some(Run::Sequence(run)) = records.runs.get(id)?
            && run.content != newer.content
            && run.plan.is_some()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a decision has an effect.
pub fn does_something(decision: Decision) -> bool {
    !matches!(decision, Decision::None | Decision::Wait | Decision::Refuse)
}
