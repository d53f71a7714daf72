//! What open deliveries bring to the stages of a project: where they are, and where they come to once the stages before let
//! them pass.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::iter;
use std::sync::Arc;

use crate::model::ids::{CommitId, Destination, Digest, ServiceKey, ServiceName, StageName};
use crate::model::object::ObjectKey;
use crate::model::plan::{Change, Plan, ServicePlan, StagePlan};
use crate::model::project::{Procedure, Project};
use crate::model::run::{Delivery, SequenceRun, SequenceState};
use crate::model::time::Timestamp;
use crate::plan::{delivery_procedure, order};

/// How far a delivery is in a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reached {
    /// It comes if the stages before let it pass.
    Nothing,
    /// It waits for its turn.
    Queue,
    /// It has its turn, and has changed nothing yet.
    Slot,
    /// Its deployment has begun: what it deletes is gone.
    Deployment,
}

/// What an open delivery brings to a service in a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnderWay {
    /// The revision whose delivery it is.
    pub commit: CommitId,
    /// When that was planned; nothing of what a person asked for.
    pub planned_at: Option<Timestamp>,
    /// Everything that the service declares then.
    pub content: Digest,
    /// How it is delivered.
    pub procedure: Arc<Procedure>,
    /// Where to.
    pub destination: Destination,
    /// How far it is in this stage.
    pub reached: Reached,
    /// Whether it comes because the newest plan of the service waits for it to pass, as long as that is the newest.
    pub of_newest: bool,
    /// The objects that it changes, with the identity of what it brings; nothing, if it deletes.
    pub keys: BTreeMap<ObjectKey, Option<Digest>>,
    /// Whether it leads on to a stage that is declared no longer, and may get there before the revision is applied that
    /// leaves that out.
    pub leads_out: bool,
    /// Other open deliveries, which come before it: with something else, or where they are already.
    pub others: Vec<Self>,
}

impl UnderWay {
    /// What one delivery brings, how and where to.
    pub fn new(
        commit: &CommitId,
        (content, changes): (&Digest, &[Change]),
        (procedure, destination): (Arc<Procedure>, &Destination),
        reached: Reached,
    ) -> Self {
        let keys = changes.iter().map(|change| (change.key.clone(), change.digest().cloned())).collect();
        let (commit, content, destination) = (commit.clone(), content.clone(), destination.clone());
        let (planned_at, of_newest, leads_out, others) = (None, false, false, Vec::new());
        Self { commit, planned_at, content, procedure, destination, reached, of_newest, keys, leads_out, others }
    }

    /// Whether it has reached this stage; else it will, if the stages before let it pass.
    pub fn is_here(&self) -> bool {
        self.reached > Reached::Nothing
    }

    /// The objects that it is still to change: what it deletes goes as soon as its deployment begins.
    pub fn changes(&self) -> impl Iterator<Item = &ObjectKey> {
        let is_done = |digest: &Option<Digest>| digest.is_none() && self.reached == Reached::Deployment;
        self.keys.iter().filter(move |(_, digest)| !is_done(digest)).map(|(key, _)| key)
    }

    /// The objects that others change before it, which bring something else.
    pub fn changed_before(&self) -> impl Iterator<Item = &ObjectKey> {
        self.others.iter().filter(|other| other.content != self.content).flat_map(|other| other.keys.keys())
    }

    /// The objects that it and others, whose turn it is, make in the stage, or make anew.
    pub fn makes(&self) -> impl Iterator<Item = &ObjectKey> {
        let here = iter::once(self).chain(&self.others).filter(|brought| brought.reached > Reached::Queue);
        here.flat_map(|brought| &brought.keys).filter_map(|(key, digest)| digest.as_ref().map(|_| key))
    }

    /// Each object that it and others bring, with its identity.
    pub fn brings(&self) -> impl Iterator<Item = (&ObjectKey, &Digest)> {
        let all = iter::once(self).chain(&self.others).flat_map(|brought| &brought.keys);
        all.filter_map(|(key, digest)| Some((key, digest.as_ref()?)))
    }

    /// Of all that comes, what is in the stage already: that of it which has the last word.
    pub fn arrived(mut self) -> Option<Self> {
        let others = std::mem::take(&mut self.others);
        let mut here = iter::once(self).chain(others).filter(Self::is_here);
        let last = here.next()?;
        Some(Self { others: here.collect(), ..last })
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

/// What else is on its way beside what has the last word; what brings the same from the same place adds nothing.
fn merge(found: &mut UnderWays, place: &ServiceKey, brought: UnderWay) {
    match found.entry(place.stage.clone()).or_default().entry(place.service.clone()) {
        Entry::Vacant(free) => drop(free.insert(brought)),
        Entry::Occupied(mut last)
            if (&last.get().content, last.get().is_here()) != (&brought.content, brought.is_here()) =>
        {
            last.get_mut().others.push(brought);
        }
        Entry::Occupied(mut last) => last.get_mut().leads_out |= brought.leads_out,
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
        let is_gone = |stage: &StagePlan| stage.service(service).is_some() && project.stage(&stage.stage).is_none();
        let leads_out = iter::once(plan).chain(newest).flat_map(|plan| &plan.stages).any(is_gone);
        note(&run.service.stage, UnderWay { leads_out, ..brought(run, delivery) });
    }
    let following = following(project, plan, &run.service);
    let passed_on = following.iter().filter_map(|stage| Some((&stage.stage, &stage.service(service)?.content)));
    let comes_to: Vec<(&StageName, &Digest)> =
        run.planned_content().map(|content| (&run.service.stage, content)).into_iter().chain(passed_on).collect();
    let waiting = newest.into_iter().flat_map(|newest| waiting(newest, service, comes_to.clone()));
    let waiting = waiting.map(|(newest, stage)| (newest, stage, true));
    let following = following.into_iter().map(|stage| (plan, stage, false));
    for (plan, stage, of_newest) in waiting.chain(following) {
        if let Some(part) = stage.service(service).filter(|_| project.stage(&stage.stage).is_some()) {
            note(&stage.stage, UnderWay { of_newest, ..comes(plan, stage, part) });
        }
    }
}

/// The stages in which a plan waits for content that is about to come to others, or to be passed on by these.
fn waiting<'a>(
    plan: &'a Plan,
    service: &ServiceName,
    mut comes_to: Vec<(&'a StageName, &'a Digest)>,
) -> Vec<(&'a Plan, &'a StagePlan)> {
    let mut left: Vec<&StagePlan> = plan.stages.iter().collect();
    let mut found = Vec::new();
    loop {
        let waits = |part: &ServicePlan| comes_to.iter().any(|(stage, it)| order::waits_for(part, stage, None, it));
        let Some(next) = left.iter().position(|stage| stage.service(service).is_some_and(waits)) else { return found };
        let stage = left.remove(next);
        comes_to.extend(stage.service(service).map(|part| (&stage.stage, &part.content)));
        found.push((plan, stage));
    }
}

/// The stages that a plan comes to after the one of a service, as long as those are declared that have to pass it on: that
/// may be a sequence of the stage itself, or a stage that stands behind it in the file.
fn following<'a>(project: &Project, plan: &'a Plan, from: &ServiceKey) -> Vec<&'a StagePlan> {
    let after = plan.stages.iter().skip_while(|it| it.stage != from.stage).skip(1);
    let mut left: Vec<&StagePlan> = after.filter(|it| project.stage(&it.stage).is_some()).collect();
    let mut found: Vec<&StagePlan> = Vec::new();
    loop {
        let passes_on = |stage: &StageName| *stage == from.stage || found.iter().any(|it| it.stage == *stage);
        let comes = |it: &&StagePlan| {
            let previous = it.service(&from.service).map(|part| part.previous_stage.as_ref().map(|it| &it.stage));
            previous.is_some_and(|stage| stage.is_none_or(|stage| *stage == it.stage || passes_on(stage)))
        };
        let Some(next) = left.iter().position(comes) else { return found };
        found.push(left.remove(next));
    }
}

/// What a delivery brings where it is.
fn brought(run: &SequenceRun, delivery: &Delivery) -> UnderWay {
    let reached = match run.state {
        _ if run.deployed() => Reached::Deployment,
        SequenceState::Queued | SequenceState::Returning { .. } => Reached::Queue,
        _ if run.yields_slot() => Reached::Queue,
        _ => Reached::Slot,
    };
    let how = (run.procedure.value.clone(), &run.destination);
    let brought = UnderWay::new(&run.commit, (&delivery.content, &delivery.changes), how, reached);
    UnderWay { planned_at: run.planned_at, ..brought }
}

/// What a plan is going to bring to a stage.
fn comes(plan: &Plan, stage: &StagePlan, part: &ServicePlan) -> UnderWay {
    let procedure = delivery_procedure(plan, stage, part).unwrap_or_default();
    let how = (procedure.into(), &stage.destination);
    let comes = UnderWay::new(&plan.commit, (&part.content, &part.changes), how, Reached::Nothing);
    UnderWay { planned_at: Some(plan.at), ..comes }
}

#[cfg(test)]
mod tests;
