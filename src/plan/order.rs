//! In which order stages follow each other, and what follows a sequence's end: the stages whose turn it is.

use std::collections::BTreeMap;

use crate::model::cloud_event::short;
use crate::model::ids::{Digest, ServiceName, StageName};
use crate::model::outcome::{Outcome, TaskResult};
use crate::model::plan::{Plan, ServicePlan, StagePlan, StageStart};
use crate::model::run::SequenceRun;
use crate::model::shipyard::{Ended, Operator, Requirement, Selector, Sequence, SequenceTrigger, Shipyard};
use crate::plan::selector::RESULT;
use crate::plan::triggered::Finished;

/// The domain event of a push, for stages that want to start with it beside the first one.
const PUSH: &str = "push";

/// How each stage's delivery sequence is started: the first by the push, later ones by what they name in
/// `triggeredOn`; if no delivery sequence names anything, by the stage before them in the file.
pub fn starts(shipyard: &Shipyard, delivery: &BTreeMap<StageName, &Sequence>) -> BTreeMap<StageName, StageStart> {
    let chained = delivery.values().any(|sequence| !sequence.triggered_on.is_empty());
    let mut starts = BTreeMap::new();
    let mut previous: Option<(&StageName, &Sequence)> = None;
    for stage in &shipyard.stages {
        let Some(sequence) = delivery.get(&stage.name) else { continue };
        let start = match previous {
            None => StageStart::Push,
            Some(_) if sequence.triggered_on.iter().any(|trigger| short(&trigger.event) == PUSH) => StageStart::Push,
            Some(_) if sequence.triggered_on.iter().any(|trigger| ended(trigger).is_some()) => {
                StageStart::After(sequence.triggered_on.iter().flat_map(|it| of_sequences(shipyard, it)).collect())
            }
            Some(_) if !sequence.triggered_on.is_empty() => StageStart::Event(sequence.triggered_on.clone()),
            Some(_) if chained => StageStart::ByHand,
            Some((before, theirs)) => StageStart::After(vec![finished(before, &theirs.name)]),
        };
        starts.insert(stage.name.clone(), start);
        previous = Some((&stage.name, sequence));
    }
    starts
}

fn finished(stage: &StageName, sequence: &str) -> SequenceTrigger {
    SequenceTrigger { event: format!("{stage}.{sequence}.finished"), selector: Selector::default() }
}

/// A trigger on the end of a task as triggers on the ends of the sequences that have it. A stage takes only what has passed
/// before it, which is known when those have ended.
fn of_sequences(shipyard: &Shipyard, trigger: &SequenceTrigger) -> Vec<SequenceTrigger> {
    let Some((stage, name)) = ended(trigger) else { return vec![trigger.clone()] };
    let Some(Ended::Task(having)) = shipyard.stage(&stage).and_then(|stage| stage.ended(name)) else {
        return vec![trigger.clone()];
    };
    let of_task = |asked: &Requirement| match asked.key.contains('.') {
        true => asked.clone(),
        false => Requirement { key: format!("{name}.{}", asked.key), ..asked.clone() },
    };
    let passes = || {
        let values = [TaskResult::Pass, TaskResult::Warning].map(|result| result.as_str().to_owned()).into();
        [Requirement { key: format!("{name}.{RESULT}"), operator: Operator::In, values }].into_iter().collect()
    };
    let selector: Selector = match trigger.selector.is_empty() {
        true => passes(),
        false => trigger.selector.requirements().iter().map(of_task).collect(),
    };
    let ends = having.into_iter().map(|sequence| finished(&stage, &sequence.name));
    ends.map(|end| SequenceTrigger { selector: selector.clone(), ..end }).collect()
}

/// The stage that a trigger names, and whose end in it.
fn ended(trigger: &SequenceTrigger) -> Option<(StageName, &str)> {
    let (stage, name) = short(&trigger.event).strip_suffix(".finished")?.split_once('.')?;
    Some((StageName::new(stage), name))
}

/// The stage whose passing a start waits for: the one that the first trigger names which fires when a stage passes.
pub fn predecessor(start: &StageStart) -> Option<StageName> {
    Some(awaited(start)?.0)
}

/// The stage and the sequence of it whose passing a start waits for.
fn awaited(start: &StageStart) -> Option<(StageName, &str)> {
    let StageStart::After(triggers) = start else { return None };
    triggers.iter().filter(|trigger| trigger.selector.holds_when_passed()).find_map(ended)
}

/// Whether a start waits for the end of a sequence, however that ends.
pub fn starts_on(start: &StageStart, stage: &StageName, sequence: &str) -> bool {
    let StageStart::After(triggers) = start else { return false };
    triggers.iter().filter_map(ended).any(|(of, name)| of == *stage && name == sequence)
}

/// What has to pass before a stage has its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The stage.
    pub stage: StageName,
    /// The sequence of it that has to pass beside the one that delivers it.
    pub sequence: Option<String>,
    /// Whether that sequence is all: the stage delivers nothing, or not before.
    pub alone: bool,
}

/// What has to pass before a stage has its turn, nearest first. One that a person or an event from outside starts comes after
/// the one before it in the file.
pub fn gates(
    shipyard: &Shipyard,
    delivery: &BTreeMap<StageName, &Sequence>,
    starts: &BTreeMap<StageName, StageStart>,
    stage: &StageName,
) -> Vec<Gate> {
    let gate = |of: &StageName| match starts.get(of)? {
        StageStart::Push => None,
        StageStart::ByHand | StageStart::Event(_) => {
            let before = shipyard.stages.iter().map(|stage| &stage.name).take_while(|stage| *stage != of);
            let stage = before.filter(|stage| delivery.contains_key(*stage)).last()?.clone();
            Some(Gate { stage, sequence: None, alone: false })
        }
        start @ StageStart::After(_) => {
            let (stage, sequence) = awaited(start)?;
            let delivers = delivery.get(&stage).is_some_and(|delivery| delivery.name == sequence);
            let alone = !delivers && (stage == *of || !delivery.contains_key(&stage));
            Some(Gate { stage, sequence: (!delivers).then(|| sequence.to_owned()), alone })
        }
    };
    let mut found: Vec<Gate> = Vec::new();
    let mut next = gate(stage);
    while let Some(before) = next.filter(|next| found.iter().all(|known| known.stage != next.stage)) {
        next = gate(&before.stage);
        found.push(before);
    }
    found
}

/// Whether a stage of a plan waits for a sequence that delivers nothing.
pub fn is_awaited(plan: &Plan, stage: &StageName, sequence: &str) -> bool {
    let starts = plan.stages.iter().filter_map(|later| awaited(&later.start));
    starts.into_iter().any(|(of, awaited)| of == *stage && awaited == sequence)
}

/// Whether a stage comes behind another one in a plan, or the plan does not have it.
pub fn follows(plan: &Plan, stage: &StageName, before: &StageName) -> bool {
    let delivery = plan.stages.iter().filter_map(|it| Some((it.stage.clone(), it.sequence.as_ref()?))).collect();
    let shipyard = &plan.procedures.shipyard;
    let starts = starts(shipyard, &delivery);
    !starts.contains_key(stage) || gates(shipyard, &delivery, &starts, stage).iter().any(|gate| gate.stage == *before)
}

/// The parts of a plan whose turn it is when a sequence ended for its service: of stages that it triggers, and of those
/// that stand behind stages which do not have the service.
pub fn next<'a>(plan: &'a Plan, run: &SequenceRun, outcome: Outcome) -> Vec<(&'a StagePlan, &'a ServicePlan)> {
    let Some(finished) = Finished::sequence(run, outcome) else { return Vec::new() };
    let triggered = |part: &StagePlan| match &part.start {
        StageStart::After(triggers) => triggers.iter().any(|trigger| finished.fires(trigger)),
        StageStart::Push | StageStart::Event(_) | StageStart::ByHand => false,
    };
    let stage = &run.service.stage;
    let behind = |part: &StagePlan, service: &ServicePlan| {
        let waits_for_this = service.previous_stage.as_ref().is_some_and(|previous| &previous.stage == stage);
        outcome.passes() && waits_for_this && predecessor(&part.start).is_some_and(|named| &named != stage)
    };
    let parts = plan.stages.iter().filter_map(|part| Some((part, part.service(&run.service.service)?)));
    parts.filter(|(part, service)| triggered(part) || behind(part, service)).collect()
}

/// The parts of a plan that wait until a stage has passed what it declares for a service, and then start by themselves.
pub fn after<'a>(
    plan: &'a Plan,
    stage: &StageName,
    service: &ServiceName,
    content: &Digest,
) -> Vec<(&'a StagePlan, &'a ServicePlan)> {
    let parts = plan.stages.iter().filter(|part| matches!(part.start, StageStart::After(_)));
    let parts = parts.filter_map(|part| Some((part, part.service(service)?)));
    parts.filter(|(_, part)| waits_for(part, stage, None, content)).collect()
}

/// Whether a part waits until a stage, or a sequence of it that does not deliver, has passed this content.
pub fn waits_for(part: &ServicePlan, stage: &StageName, sequence: Option<&str>, content: &Digest) -> bool {
    part.previous_stage.as_ref().is_some_and(|previous| {
        &previous.stage == stage && &previous.content == content && previous.sequence.as_deref() == sequence
    })
}

#[cfg(test)]
mod tests;
