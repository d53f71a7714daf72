//! In which order stages follow each other, and what follows a sequence's end: the stages whose turn it is.

use std::collections::BTreeMap;

use crate::model::ids::{Digest, ServiceName, StageName};
use crate::model::outcome::{Outcome, Status};
use crate::model::plan::{Plan, ServicePlan, StagePlan, StageStart};
use crate::model::shipyard::{Requirement, Selector, Sequence, SequenceTrigger, Shipyard};

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
            Some(_) if !sequence.triggered_on.is_empty() => StageStart::After(sequence.triggered_on.clone()),
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

/// The stage whose passing a start waits for: the one that the first trigger names which fires when a stage passes.
pub fn predecessor(start: &StageStart) -> Option<StageName> {
    Some(awaited(start)?.0)
}

/// The stage and the sequence of it whose passing a start waits for.
fn awaited(start: &StageStart) -> Option<(StageName, &str)> {
    let StageStart::After(triggers) = start else { return None };
    let trigger = triggers.iter().find(|trigger| selects(trigger, "pass"))?;
    let (stage, sequence) = short(&trigger.event).split_once('.')?;
    Some((StageName::new(stage), sequence.strip_suffix(".finished").unwrap_or(sequence)))
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

/// What has to pass before a stage has its turn, nearest first. One that a person starts comes after the one before it in
/// the file.
pub fn gates(
    shipyard: &Shipyard,
    delivery: &BTreeMap<StageName, &Sequence>,
    starts: &BTreeMap<StageName, StageStart>,
    stage: &StageName,
) -> Vec<Gate> {
    let gate = |of: &StageName| match starts.get(of)? {
        StageStart::Push => None,
        StageStart::ByHand => {
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

/// The parts of a plan whose turn it is when a sequence of `stage` ended for `service`: of stages that it triggers, and
/// of those that stand behind stages which do not have the service.
pub fn next<'a>(
    plan: &'a Plan,
    stage: &StageName,
    service: &ServiceName,
    sequence: &str,
    outcome: Outcome,
) -> Vec<(&'a StagePlan, &'a ServicePlan)> {
    let event = format!("{stage}.{sequence}.finished");
    let triggered = |part: &StagePlan| match &part.start {
        StageStart::After(triggers) => triggers.iter().any(|trigger| fires(trigger, &event, outcome)),
        StageStart::Push | StageStart::ByHand => false,
    };
    let behind = |part: &StagePlan, service: &ServicePlan| {
        let waits_for_this = service.previous_stage.as_ref().is_some_and(|previous| &previous.stage == stage);
        outcome.passes() && waits_for_this && predecessor(&part.start).is_some_and(|named| &named != stage)
    };
    let parts = plan.stages.iter().filter_map(|part| Some((part, part.service(service)?)));
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

/// The sequences that the end of another one starts, other than the ones that stages are delivered by.
pub fn others<'a>(plan: &'a Plan, ended: &str, outcome: Outcome) -> Vec<(&'a StagePlan, &'a Sequence)> {
    let event = format!("{ended}.finished");
    let delivers = |stage: &StagePlan, name: &str| stage.sequence.as_ref().is_some_and(|it| it.name == name);
    let sequences = plan.procedures.shipyard.stages.iter().filter_map(|declared| {
        let stage = plan.stage(&declared.name)?;
        Some(declared.sequences.iter().map(move |sequence| (stage, sequence)))
    });
    let started = |(stage, sequence): &(&StagePlan, &Sequence)| {
        !delivers(stage, &sequence.name) && sequence.triggered_on.iter().any(|it| fires(it, &event, outcome))
    };
    sequences.flatten().filter(started).collect()
}

/// A trigger may name its event with or without the type's prefix.
fn short(event: &str) -> &str {
    event.strip_prefix("sh.keptn.event.").unwrap_or(event)
}

/// Whether a trigger fires: without a selector on `pass` and `warning`, as Keptn's controller does.
fn fires(trigger: &SequenceTrigger, event: &str, outcome: Outcome) -> bool {
    let goes_on = !matches!(outcome.status, Status::Aborted | Status::Superseded);
    goes_on && short(&trigger.event) == event && selects(trigger, outcome.result.as_str())
}

fn selects(trigger: &SequenceTrigger, result: &str) -> bool {
    let requirements = trigger.selector.requirements();
    let fits = |it: &Requirement| (it.key == "result" || it.key.ends_with(".result")) && it.allows(Some(result));
    if requirements.is_empty() { result != "fail" } else { requirements.iter().all(fits) }
}
