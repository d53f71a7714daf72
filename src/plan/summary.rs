//! What a plan comes to, in a few numbers.

use std::collections::BTreeMap;

use crate::model::ids::StageName;
use crate::model::plan::{Decision, Plan, PlanSummary, ServicePlan, StagePlan};
use crate::model::shipyard::DEPLOYMENT_TASK;
use crate::model::state::spec_of;

/// What a plan's commit shows of it.
pub fn summary(plan: &Plan) -> PlanSummary {
    let of_stage = |stage: &StagePlan| {
        let mut counts: BTreeMap<Decision, u32> = BTreeMap::new();
        for change in stage.services.iter().flat_map(|service| &service.changes) {
            *counts.entry(change.decision).or_default() += 1;
        }
        counts.remove(&Decision::None);
        (stage.stage.clone(), counts)
    };
    let stages = plan.stages.iter().map(of_stage).filter(|(_, counts)| !counts.is_empty()).collect();
    PlanSummary { stages, details: details(plan) }
}

/// What the parts of a plan come to together.
pub fn whole<'a>(plan: &Plan, parts: impl Iterator<Item = &'a PlanSummary>) -> PlanSummary {
    let (mut counts, mut details) = (BTreeMap::<&StageName, BTreeMap<Decision, u32>>::new(), 0);
    for part in parts {
        details += part.details;
        for (stage, of_stage) in &part.stages {
            let sums = counts.entry(stage).or_default();
            of_stage.iter().for_each(|(decision, count)| *sums.entry(*decision).or_default() += count);
        }
    }
    let stages = plan.stages.iter().filter_map(|stage| Some((stage.stage.clone(), counts.remove(&stage.stage)?)));
    PlanSummary { stages: stages.collect(), details }
}

/// How many statuses below the stages a plan leads to: services, their tasks, and the hooks of their deployments.
fn details(plan: &Plan) -> usize {
    let hooks = |service: &ServicePlan| -> usize {
        let deployments = service.changes.iter().filter(|change| change.starts_deployment() || change.is_held());
        let specs = deployments.filter_map(|change| spec_of(change.object.as_ref()?).ok());
        specs.map(|spec| spec.strategy.hooks()).sum()
    };
    let tasks = |stage: &StagePlan| {
        let tasks = stage.sequence.iter().flat_map(|sequence| &sequence.tasks);
        tasks.filter(|task| task.name != DEPLOYMENT_TASK).count()
    };
    let of_stage =
        |stage: &StagePlan| -> usize { stage.services.iter().map(|service| 1 + tasks(stage) + hooks(service)).sum() };
    plan.stages.iter().map(of_stage).sum()
}
