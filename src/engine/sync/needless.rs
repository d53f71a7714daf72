//! Deliveries that a hold keeps in a queue, and that would bring what is not declared any more to where nothing is left to
//! be done: as where Git says by now what a person has rolled back to.

use std::collections::BTreeMap;

use crate::engine::sequence::slot;
use crate::engine::transition::Transition;
use crate::model::ids::{RunId, ServiceName, StageName};
use crate::model::plan::Plan;
use crate::plan::build::Applied;

/// Ends them. Where something is left to be done, its delivery takes their place once it comes there.
pub(super) fn end(transition: &mut Transition<'_>, plan: &Plan, applied: &BTreeMap<StageName, Applied>) {
    for run in all(plan, applied).flat_map(|(_, runs)| runs) {
        transition.tell(run.clone(), slot::superseded_by(plan.commit.short()));
    }
}

/// The services whose deliveries they are.
pub(super) fn services<'a>(
    plan: &'a Plan,
    applied: &'a BTreeMap<StageName, Applied>,
) -> impl Iterator<Item = &'a ServiceName> {
    all(plan, applied).map(|(service, _)| service)
}

fn all<'a>(
    plan: &'a Plan,
    applied: &'a BTreeMap<StageName, Applied>,
) -> impl Iterator<Item = (&'a ServiceName, &'a Vec<RunId>)> {
    applied.iter().flat_map(move |(stage, seen)| {
        let part = plan.stage(stage);
        seen.held.iter().filter(move |(service, _)| part.is_none_or(|part| part.leaves_alone(service)))
    })
}
