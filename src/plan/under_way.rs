//! What open deliveries bring to the stages of a project: where they are, and where they come to once the stages before let
//! them pass.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::ids::{CommitId, Destination, Digest, ServiceKey, ServiceName, StageName};
use crate::model::object::ObjectKey;
use crate::model::plan::{Change, Plan, ServicePlan, StagePlan};
use crate::model::project::{Procedure, Project};
use crate::model::run::{Delivery, SequenceRun, SequenceState};
use crate::plan::{delivery_procedure, order};

/// What an open delivery brings to a service in a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnderWay {
    /// The revision whose delivery it is.
    pub commit: CommitId,
    /// Everything that the service declares then.
    pub content: Digest,
    /// How it is delivered.
    pub procedure: Arc<Procedure>,
    /// Where to.
    pub destination: Destination,
    /// Whether it has reached this stage; else it will, if the stages before let it pass.
    pub here: bool,
    /// The objects that it changes.
    pub keys: BTreeSet<ObjectKey>,
    /// The objects that other open deliveries change before it, which bring something else.
    pub others: BTreeSet<ObjectKey>,
}

impl UnderWay {
    /// What one delivery brings, how and where to.
    pub fn new(
        commit: &CommitId,
        (content, changes): (&Digest, &[Change]),
        (procedure, destination): (Arc<Procedure>, &Destination),
        here: bool,
    ) -> Self {
        let keys = changes.iter().map(|change| change.key.clone()).collect();
        let (commit, content, destination) = (commit.clone(), content.clone(), destination.clone());
        Self { commit, content, procedure, destination, here, keys, others: BTreeSet::new() }
    }
}

/// A delivery that is open, with the plans that it leads on to, as far as they are about its service.
#[derive(Clone, Debug)]
pub struct OpenDelivery {
    /// The run.
    pub run: SequenceRun,
    /// The plan that it carries out; none, if a person asked for something else than what is declared.
    pub plan: Option<Plan>,
    /// The newest plan, if that is another one.
    pub newest: Option<Plan>,
}

/// What comes where, by stage and service.
pub type UnderWays = BTreeMap<StageName, BTreeMap<ServiceName, UnderWay>>;

/// Open deliveries in the order in which they are to be [added](add): the newest has the last word, but what is in an earlier
/// stage comes to a later one after what is there already. What is being ended brings nothing any more.
pub fn last_word_first(project: &Project, mut deliveries: Vec<SequenceRun>) -> Vec<SequenceRun> {
    deliveries.retain(|run| !matches!(run.state, SequenceState::Ending { .. }));
    let place = |run: &SequenceRun| project.stages.iter().position(|stage| stage.name == run.service.stage);
    deliveries.sort_by_cached_key(|run| {
        (place(run).unwrap_or(usize::MAX), Reverse((run.created_at, run.id.clone()))) // ids grow
    });
    deliveries
}

/// Adds what an open delivery brings where it is, and to the stages that follow. What is done by hand counts where it is not
/// what is declared, such as an earlier version.
pub fn add(found: &mut UnderWays, project: &Project, OpenDelivery { run, plan, newest }: &OpenDelivery) {
    match (plan, &run.delivery) {
        (Some(plan), _) => note(found, project, run, (plan, newest.as_ref())),
        (None, Some(delivery)) if run.plan.is_none() && !is_declared(project, run) => {
            merge(found, &run.service, brought(run, delivery));
        }
        (None, _) => {}
    }
}

/// Whether all that a run brings is what its stage declares.
fn is_declared(project: &Project, run: &SequenceRun) -> bool {
    let stage = project.stage(&run.service.stage);
    let declared = |key: &ObjectKey| stage.and_then(|stage| stage.objects.get(key)).map(|object| &object.digest);
    run.changes().iter().all(|change| declared(&change.key) == change.digest())
}

/// What else is on its way beside what has the last word; what brings the same adds nothing.
fn merge(found: &mut UnderWays, place: &ServiceKey, brought: UnderWay) {
    match found.entry(place.stage.clone()).or_default().entry(place.service.clone()) {
        Entry::Vacant(free) => drop(free.insert(brought)),
        Entry::Occupied(mut last) if last.get().content != brought.content => {
            last.get_mut().others.extend(brought.keys);
        }
        Entry::Occupied(_) => {}
    }
}

/// What a delivery brings where it is, and in the stages that follow and are still declared. Where the newest plan waits for
/// the same content to pass, it has the last word, as when the delivery ends.
fn note(found: &mut UnderWays, project: &Project, run: &SequenceRun, (plan, newest): (&Plan, Option<&Plan>)) {
    let service = &run.service.service;
    let mut note = |stage: &StageName, brought: UnderWay| {
        merge(found, &ServiceKey { stage: stage.clone(), ..run.service.clone() }, brought);
    };
    if let Some(delivery) = &run.delivery {
        note(&run.service.stage, brought(run, delivery));
    }
    let content = run.planned_content();
    let waits =
        |part: &ServicePlan| content.is_some_and(|content| order::waits_for(part, &run.service.stage, None, content));
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
    UnderWay::new(
        &run.commit,
        (&delivery.content, &delivery.changes),
        (run.procedure.value.clone(), &run.destination),
        true,
    )
}

/// What a plan is going to bring to a stage.
fn comes(plan: &Plan, stage: &StagePlan, part: &ServicePlan) -> UnderWay {
    let procedure = delivery_procedure(plan, stage, part).unwrap_or_default();
    UnderWay::new(&plan.commit, (&part.content, &part.changes), (procedure.into(), &stage.destination), false)
}

#[cfg(test)]
mod tests;
