//! What passes a stage without a delivery: content that has changed although nothing is left to be done about it, as where a
//! config moves to another service, or a ConfigMap gets a second reader.

use std::sync::Arc;

use crate::engine::records::{Needs, Records, Undecided};
use crate::engine::transition::Transition;
use crate::model::ids::ServiceKey;
use crate::model::object::{Kind, Object};
use crate::model::plan::{Plan, ServicePlan};
use crate::model::project::{Project, StageContent};
use crate::model::slot::{PassedKey, PassedState, SlotState};
use crate::plan::passed::deploys;
use crate::plan::{delivery_procedure, passed_procedure};

/// Where a sequence only deploys, what is there has passed it, so that the stages after it are not kept waiting for a
/// delivery that nobody starts.
///
/// # Errors
/// If something must be read first.
pub(super) fn pass(transition: &mut Transition<'_>, project: &Project, plan: &Plan) -> Result<(), Undecided> {
    let mut needs = Needs::default();
    for part in plan.stages.iter().flat_map(|stage| &stage.services) {
        if let Some(passed) = needs.of(passes(transition, project, plan, part))?.flatten() {
            transition.records.passed.put(&passed.key.clone(), Some(passed))?;
        }
    }
    needs.none()
}

/// What has passed the stage before that a service waits for, if that is news.
fn passes(
    transition: &Transition<'_>,
    project: &Project,
    plan: &Plan,
    part: &ServicePlan,
) -> Result<Option<PassedState>, Undecided> {
    let (records, service) = (&*transition.records, &part.service);
    let Some(previous) = part.previous_stage.as_ref().filter(|previous| !previous.alone) else { return Ok(None) };
    let (Some(before), Some(declared)) = (plan.stage(&previous.stage), project.stage(&previous.stage)) else {
        return Ok(None);
    };
    let only_deploys = before.sequence.as_ref().is_some_and(|sequence| deploys(sequence).is_some());
    if !before.leaves_alone(service) || !only_deploys {
        return Ok(None);
    }
    let content = previous.content.clone();
    let place = ServiceKey { project: plan.project.clone(), stage: before.stage.clone(), service: service.clone() };
    // What a person has rolled back to passes nothing.
    let holds = records.holds.get(&plan.project)?;
    if holds.is_some_and(|it| it.holds.iter().any(|hold| hold.scope.covers(&plan.project, &before.stage, service))) {
        return Ok(None);
    }
    // What is under way there comes first, unless it gives way to this revision; and how a delivery of it ended stays, until
    // a person has it run again.
    let slot = records.slots.get(&place)?;
    let comes_first = |slot: &SlotState| slot.open().any(|run| !transition.gives_way(run));
    let ended = |slot: &SlotState| slot.last_delivery.as_ref().is_some_and(|last| last.content == content);
    if slot.is_some_and(|slot| comes_first(slot) || ended(slot)) {
        return Ok(None);
    }
    let key = PassedKey { service: place, content };
    if records.passed.get(&key)?.is_some() || !serves(records, declared, &key.service)? {
        return Ok(None);
    }
    let unchanged = ServicePlan { content: key.content.clone(), ..part.clone() };
    let procedure = delivery_procedure(plan, before, &unchanged).map(|procedure| passed_procedure(&procedure));
    let (commit, at) = (plan.commit.clone(), transition.now);
    Ok(procedure.map(|procedure| PassedState { key, commit, at, procedure }))
}

/// Whether all that a service declares serves: for want of a trigger, it may not.
fn serves(records: &Records, declared: &StageContent, service: &ServiceKey) -> Result<bool, Undecided> {
    let (mut all, mut needs) = (true, Needs::default());
    let is_config = |object: &&Arc<Object>| object.key.kind == Kind::DeploymentConfig;
    for object in declared.objects.of_service(&service.service).filter(is_config) {
        let config = needs.of(records.configs.get(&service.config(&object.key.name)))?.flatten();
        let serving = config.filter(|config| !config.removed).and_then(|config| config.serving.as_ref());
        all &= serving.is_some_and(|serving| serving.object.template() == object.template());
    }
    needs.none()?;
    Ok(all)
}
