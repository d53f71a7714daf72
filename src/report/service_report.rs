//! What a revision's statuses say of one service. It follows from the plan's part about the service and from its runs
//! alone, so that whatever happens to one service changes what is said of no other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::ids::{Destination, Namespace, RunId, ServiceName, StageName};
use crate::model::plan::{PassedContent, Plan, StagePlan, StageStart};
use crate::model::run::{Run, SequenceRun};
use crate::report::delivery::Delivery;
use crate::report::line::{Line, Next};
use crate::report::{service, step};

/// What is said of one service.
#[derive(Clone, Debug)]
pub struct ServiceReport {
    /// The service.
    pub service: ServiceName,
    /// In the order of the plan's stages, and then those in which it had a run before the plan was made again.
    pub(super) stages: Box<[StageReport]>,
}

/// The same in one stage.
#[derive(Clone, Debug)]
pub(super) struct StageReport {
    pub(super) stage: StageName,
    /// Nothing, if the plan changes nothing of it here and it had no run.
    pub(super) line: Option<Box<Line>>,
    /// Its hooks and tasks that have begun, those of sequences that deliver nothing among them.
    pub(super) steps: Box<[(String, Line)]>,
    /// What those say that an earlier attempt had begun, and the last one has not.
    pub(super) unreached: Option<Line>,
    /// The same of each sequence that delivers nothing, by what its steps begin with.
    pub(super) unreached_of_others: Vec<(String, Line)>,
    /// What follows on its sequences that deliver nothing, each of which is open.
    pub(super) others: Vec<Next>,
    /// What it waits for that nothing on this revision is going to bring.
    pub(super) awaited: Option<PassedContent>,
    /// Whether something was to be done and nothing was started when its turn came: a newer revision may have had its own.
    pub(super) passed_over: bool,
    /// Whether a run is open that may still bring it here.
    pub(super) goes_on: bool,
    /// How often its delivery was attempted, here and in the stages before.
    pub(super) attempt: u32,
}

impl ServiceReport {
    /// What follows for `service` from the part of a plan that is about it, how often the plan was made again, the
    /// service's runs on the revision, and the stages in which earlier ones have nothing under way any more, with whether what
    /// is [`awaited`](Self::awaited) passed there.
    pub fn of<'a>(
        service: &ServiceName,
        plan: &'a Plan,
        again: u32,
        runs: impl IntoIterator<Item = &'a Run>,
        left: &'a BTreeMap<StageName, bool>,
    ) -> Self {
        let delivery = Delivery::of(plan, again, runs, left);
        let gone = delivery.stages().into_iter().filter(|stage| plan.stage(stage).is_none()).map(gone_stage);
        let stages = plan.stages.iter().cloned().chain(gone);
        let stages = stages.map(|stage| stage_report(&delivery, &stage, service)).collect();
        Self { service: service.clone(), stages }
    }

    /// Whether a stage of it waits for what nothing on this revision is going to bring.
    pub fn awaits(&self) -> bool {
        self.stages.iter().any(|stage| stage.awaited.is_some())
    }

    /// What its stages wait for that nothing on this revision is going to bring: an earlier one may have, or have not.
    pub fn awaited(&self) -> BTreeSet<&PassedContent> {
        self.stages.iter().filter_map(|stage| stage.awaited.as_ref()).collect()
    }

    /// The stages in which a delivery of it has begun on the revision.
    pub fn delivered_to(&self) -> impl Iterator<Item = &StageName> {
        self.stages.iter().map(|stage| &stage.stage).filter(|stage| self.run_in(stage).is_some())
    }

    /// The last delivery of it to a stage on the revision.
    pub fn run_in(&self, stage: &StageName) -> Option<&RunId> {
        self.in_stage(stage)?.line.as_ref()?.run.as_ref()
    }

    /// How often anything of it was attempted that may have changed what was said of it in a stage, which may be gone.
    pub(super) fn attempt_in(&self, stage: &StageName) -> Option<u32> {
        let here = self.in_stage(stage).map(|report| report.attempt);
        here.or_else(|| self.stages.iter().map(|report| report.attempt).max())
    }

    pub(super) fn in_stage(&self, stage: &StageName) -> Option<&StageReport> {
        self.stages.iter().find(|report| &report.stage == stage)
    }
}

impl StageReport {
    /// What a step says that an earlier attempt had begun, and the last one has not.
    pub(super) fn unreached(&self, step: &str) -> Option<&Line> {
        let of_other = self.unreached_of_others.iter().find(|(sequence, _)| step.starts_with(sequence));
        of_other.map(|(_, line)| line).or(self.unreached.as_ref())
    }
}

fn stage_report(delivery: &Delivery<'_>, stage: &StagePlan, name: &ServiceName) -> StageReport {
    let run = delivery.told(&stage.stage, name);
    let attempt = delivery.attempt(&stage.stage, name);
    let mut steps = run.map(|run| step::lines(run, delivery)).unwrap_or_default();
    steps.extend(delivery.others(&stage.stage, name).flat_map(step::of_other));
    let line = service::line(delivery, stage, name).or_else(|| {
        // Of what is declared nowhere, its sequences are all that is to be said, the one that delivers before others.
        let delivers = |run: &SequenceRun| stage.sequence.as_ref().is_some_and(|it| it.name == run.sequence());
        let foreign = delivery.others(&stage.stage, name).filter(|run| run.is_foreign);
        let foreign = foreign.max_by_key(|run| (delivers(run), run.created_at, &run.id));
        foreign.map(|run| service::of_run(run, delivery))
    });
    StageReport {
        stage: stage.stage.clone(),
        line: line.map(|line| Box::new(Line { attempt, ..line })),
        steps: steps.into(),
        unreached: run.map(|run| step::not_reached(run, attempt)),
        unreached_of_others: delivery.others(&stage.stage, name).map(unreached_of_other).collect(),
        others: delivery
            .others(&stage.stage, name)
            .map(service::next_of)
            .filter(|next| *next != Next::Nothing)
            .collect(),
        awaited: delivery.awaited(&stage.stage, name).cloned(),
        passed_over: run.is_none() && delivery.is_passed_over(&stage.stage, name),
        goes_on: delivery.goes_on_to(&stage.stage),
        attempt,
    }
}

fn unreached_of_other(run: &SequenceRun) -> (String, Line) {
    (format!("{}.", run.sequence()), step::not_reached(run, run.attempt))
}

/// A stage that the plan no longer lists.
fn gone_stage(stage: &StageName) -> StagePlan {
    StagePlan {
        stage: stage.clone(),
        destination: Destination::local(Namespace::new("")),
        start: StageStart::ByHand,
        sequence: None,
        services: Vec::new(),
        carried: Arc::default(),
    }
}
