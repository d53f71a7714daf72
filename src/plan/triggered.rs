//! The sequences that an end or an event starts, beside the deliveries of stages.

use serde_json::Value;

use crate::model::cloud_event::short;
use crate::model::ids::StageName;
use crate::model::outcome::{Outcome, Status};
use crate::model::plan::{Plan, StagePlan, StageStart};
use crate::model::run::SequenceRun;
use crate::model::shipyard::{Sequence, SequenceTrigger, Shipyard, Stage};
use crate::plan::selector;

/// What monitoring tools start without a `triggeredOn` where it is declared.
const REMEDIATION: &str = "remediation";
/// The events that start it.
const STARTS_REMEDIATION: [&str; 2] = ["problem.open", "remediation.in-progress"];

/// Something that ended, and what is known of it.
#[derive(Clone, Debug)]
pub struct Finished {
    event: String,
    facts: Value,
}

impl Finished {
    /// A sequence that ended; nothing, if a newer revision has taken its place, which starts what follows instead.
    pub fn sequence(run: &SequenceRun, outcome: Outcome) -> Option<Self> {
        let counts = outcome.status != Status::Superseded;
        counts.then(|| Self { event: format!("{}.finished", run.event_name()), facts: selector::facts(run, outcome) })
    }

    /// A task that ended. A sequence of its name in its stage has that event for itself.
    pub fn task(shipyard: &Shipyard, run: &SequenceRun, index: usize) -> Option<Self> {
        let task = run.tasks.get(index)?;
        let stage = &run.service.stage;
        let is_taken = shipyard.stage(stage).and_then(|stage| stage.sequence(&task.name)).is_some();
        if is_taken || task.outcome?.status == Status::Superseded {
            return None;
        }
        let facts = selector::facts_of_task(run, index)?;
        Some(Self { event: format!("{stage}.{}.finished", task.name), facts })
    }

    /// Its event without what all of them end with, for people.
    pub fn what(&self) -> &str {
        self.event.strip_suffix(".finished").unwrap_or(&self.event)
    }

    /// Whether it is what a trigger waits for.
    pub fn fires(&self, trigger: &SequenceTrigger) -> bool {
        short(&trigger.event) == self.event && selector::holds(&trigger.selector, &self.facts)
    }

    /// Whether it is what the delivery to a stage waits for.
    fn starts_stage(&self, stage: &StagePlan) -> bool {
        match &stage.start {
            StageStart::After(triggers) => triggers.iter().any(|trigger| self.fires(trigger)),
            StageStart::Push | StageStart::Event(_) | StageStart::ByHand => false,
        }
    }

    fn starts(&self, sequence: &Sequence) -> bool {
        sequence.triggered_on.iter().any(|trigger| self.fires(trigger))
    }
}

/// The sequences that the end of another one starts, other than the ones that stages are delivered by, and than those that
/// one of its tasks has started.
pub fn by_end<'a>(plan: &'a Plan, run: &SequenceRun, outcome: Outcome) -> Vec<(&'a StagePlan, &'a Sequence)> {
    let Some(finished) = Finished::sequence(run, outcome) else { return Vec::new() };
    started(plan, run, &finished, run.tasks.len())
}

/// The sequences that the end of a task starts, as far as none before it in its run has started them.
pub fn by_task<'a>(plan: &'a Plan, run: &SequenceRun, index: usize) -> Vec<(&'a StagePlan, &'a Sequence)> {
    match Finished::task(&plan.procedures.shipyard, run, index) {
        Some(finished) => started(plan, run, &finished, index),
        None => Vec::new(),
    }
}

fn started<'a>(
    plan: &'a Plan,
    run: &SequenceRun,
    finished: &Finished,
    tasks: usize,
) -> Vec<(&'a StagePlan, &'a Sequence)> {
    let shipyard = &plan.procedures.shipyard;
    let before: Vec<Finished> = (0..tasks).filter_map(|index| Finished::task(shipyard, run, index)).collect();
    let is_new = |sequence: &Sequence| !before.iter().any(|earlier| earlier.starts(sequence));
    let delivers = |stage: &StagePlan, name: &str| stage.sequence.as_ref().is_some_and(|it| it.name == name);
    let sequences = shipyard.stages.iter().filter_map(|declared| {
        let stage = plan.stage(&declared.name)?;
        Some(declared.sequences.iter().map(move |sequence| (stage, sequence)))
    });
    let is_started = |(stage, sequence): &(&StagePlan, &Sequence)| match delivers(stage, &sequence.name) {
        // What is declared is delivered once its content has passed, which is asked elsewhere.
        true => run.is_foreign && finished.starts_stage(stage),
        false => finished.starts(sequence) && is_new(sequence),
    };
    sequences.flatten().filter(is_started).collect()
}

/// The sequences that an event from outside starts, in the shipyard's order, each once. `stage` is where it says that it
/// happened, which its type may say as well; `data` is what selectors look into. The stages' deliveries are among them, and
/// ends of sequences and tasks of the shipyard are no such events: only what really ran tells them.
pub fn by_event<'a>(
    shipyard: &'a Shipyard,
    event: &str,
    stage: Option<&StageName>,
    data: &Value,
) -> Vec<(&'a Stage, &'a Sequence)> {
    let event = DomainEvent::of(shipyard, event, stage, data);
    let all = shipyard.stages.iter().flat_map(|stage| stage.sequences.iter().map(move |sequence| (stage, sequence)));
    all.filter(|(stage, sequence)| event.starts(shipyard, stage, sequence)).collect()
}

/// Whether a sequence waits for an event from outside, whatever its data are.
pub fn awaits(shipyard: &Shipyard, event: &str) -> bool {
    shipyard.stages.iter().flat_map(|stage| &stage.sequences).any(|it| is_awaited_by(it, shipyard, event))
}

/// Whether that sequence does.
pub fn is_awaited_by(sequence: &Sequence, shipyard: &Shipyard, event: &str) -> bool {
    let names = |wanted: &str| {
        let inside = shipyard.stages.iter().filter_map(|stage| within(wanted, &stage.name));
        wanted == event || inside.into_iter().any(|inside| inside == event)
    };
    sequence.triggered_on.iter().any(|trigger| names(short(&trigger.event)))
}

/// The stage that an event's type begins with, if it begins with one.
pub fn named_stage<'a>(shipyard: &'a Shipyard, event: &str) -> Option<&'a StageName> {
    let event = short(event);
    shipyard.stages.iter().map(|stage| &stage.name).find(|stage| within(event, stage).is_some())
}

/// What follows a stage's name in an event.
fn within<'a>(event: &'a str, stage: &StageName) -> Option<&'a str> {
    event.strip_prefix(stage.as_str())?.strip_prefix('.')
}

/// Something that happened outside.
struct DomainEvent<'a> {
    /// Where it happened, if that is known.
    stage: Option<&'a StageName>,
    /// Its type without the stage.
    name: &'a str,
    data: &'a Value,
}

impl<'a> DomainEvent<'a> {
    fn of(shipyard: &'a Shipyard, event: &'a str, stage: Option<&'a StageName>, data: &'a Value) -> Self {
        let event = short(event);
        let possible = shipyard.stages.iter().map(|it| &it.name).filter(|it| stage.is_none_or(|stage| stage == *it));
        let named = possible.filter_map(|stage| Some((Some(stage), within(event, stage)?))).next();
        let (stage, name) = named.unwrap_or((stage, event));
        Self { stage, name, data }
    }

    fn starts(&self, shipyard: &Shipyard, stage: &Stage, sequence: &Sequence) -> bool {
        let is_here = self.stage == Some(&stage.name);
        if let Some(named) = self.name.strip_suffix(".triggered") {
            return is_here && named == sequence.name;
        }
        if self.is_an_end(shipyard) {
            return false;
        }
        if sequence.name == REMEDIATION && sequence.triggered_on.is_empty() {
            return is_here && STARTS_REMEDIATION.contains(&self.name);
        }
        sequence.triggered_on.iter().any(|trigger| self.fires(stage, trigger))
    }

    /// Whether it says that a sequence or a task of its stage ended.
    fn is_an_end(&self, shipyard: &Shipyard) -> bool {
        let ended = self.name.strip_suffix(".finished");
        let stage = self.stage.and_then(|stage| shipyard.stage(stage));
        let (Some(name), Some(stage)) = (ended, stage) else { return false };
        stage.ended(name).is_some()
    }

    /// A trigger without a stage means that of its sequence, and an event without one means all of them.
    fn fires(&self, stage: &Stage, trigger: &SequenceTrigger) -> bool {
        let wanted = short(&trigger.event);
        let is_meant = match self.stage {
            None => wanted == self.name,
            Some(happened) => {
                within(wanted, happened) == Some(self.name) || (*happened == stage.name && wanted == self.name)
            }
        };
        is_meant && selector::all_hold(&trigger.selector, self.data)
    }
}

#[cfg(test)]
mod tests;
