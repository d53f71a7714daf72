//! What a revision's statuses say of one service. It follows from the plan's part about the service and from its runs
//! alone, so that whatever happens to one service changes what is said of no other.

use crate::model::ids::{ServiceName, StageName};
use crate::model::plan::{Decision, Plan, PlanSummary, StagePlan};
use crate::model::run::Run;
use crate::plan::summary::summary;
use crate::report::delivery::Delivery;
use crate::report::line::Line;
use crate::report::{service, step};

/// What is said of one service.
#[derive(Clone, Debug)]
pub struct ServiceReport {
    /// The service.
    pub(super) service: ServiceName,
    /// What the plan says of it, in a few numbers.
    pub(super) summary: PlanSummary,
    /// In the order of the plan's stages.
    pub(super) stages: Vec<StageReport>,
}

/// The same in one stage.
#[derive(Clone, Debug)]
pub(super) struct StageReport {
    pub(super) stage: StageName,
    /// Nothing, if the plan changes nothing of it here and it had no run.
    pub(super) line: Option<Line>,
    /// Its hooks and tasks that have begun.
    pub(super) steps: Vec<(String, Line)>,
    /// What those say that an earlier attempt had begun, and the last one has not.
    pub(super) unreached: Option<Line>,
    /// How often its delivery was attempted, here and in the stages before.
    pub(super) attempt: u32,
    /// Whether it is to do something here and has not begun.
    pub(super) waits: bool,
}

impl ServiceReport {
    /// What follows for `service` from the part of a plan that is about it, how often the plan was made again, and the
    /// service's runs on the revision.
    pub fn of(service: &ServiceName, plan: &Plan, again: u32, runs: &[Run]) -> Self {
        let delivery = Delivery::of(plan, again, runs);
        let stages = plan.stages.iter().map(|stage| stage_report(&delivery, stage, service)).collect();
        Self { service: service.clone(), summary: summary(plan), stages }
    }

    /// The stages in which it is to do something and has not begun: another revision may have taken its place there.
    pub fn waits_in(&self) -> impl Iterator<Item = &StageName> {
        self.stages.iter().filter(|report| report.waits).map(|report| &report.stage)
    }

    pub(super) fn in_stage(&self, stage: &StageName) -> Option<&StageReport> {
        self.stages.iter().find(|report| &report.stage == stage)
    }
}

fn stage_report(delivery: &Delivery<'_>, stage: &StagePlan, name: &ServiceName) -> StageReport {
    let run = delivery.newest(&stage.stage, name);
    let acts = stage.service(name).is_some_and(|part| part.changes.iter().any(|it| it.decision != Decision::None));
    StageReport {
        stage: stage.stage.clone(),
        line: service::line(delivery, stage, name),
        steps: run.map(|run| step::lines(run, delivery)).unwrap_or_default(),
        unreached: run.map(|run| step::not_reached(run, delivery)),
        attempt: delivery.attempt(&stage.stage, name),
        waits: acts && run.is_none(),
    }
}
