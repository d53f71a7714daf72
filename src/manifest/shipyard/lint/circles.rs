//! Circles of triggers that nothing but their end by launchway leaves.

use std::collections::HashSet;

use crate::manifest::findings::Findings;
use crate::manifest::shipyard::place;
use crate::model::shipyard::{Ended, Selector, Sequence, SequenceTrigger, Shipyard};

/// A sequence with its place: the positions of its stage and in it.
type Place = (usize, usize);

/// A trigger that fires whenever the sequence that it waits for ends in one way.
struct Step {
    from: Place,
    to: Place,
    trigger: usize,
}

/// Tells of circles that nothing leaves where all passes, or where all fails: one warning for each, at the trigger of the
/// file that closes it. One sequence that tries again where it has failed is none: a remediation may.
pub(super) fn check(shipyard: &Shipyard, findings: &mut Findings<'_>) {
    let (passing, mut failing) =
        (steps(shipyard, Selector::holds_when_passed), steps(shipyard, Selector::holds_when_failed));
    failing.retain(|step| step.from != step.to);
    let mut told = HashSet::new();
    for (steps, passes) in [(passing, true), (failing, false)] {
        for (index, closing) in steps.iter().enumerate() {
            // The last one of a circle in the file's order closes it.
            let Some(way) = way(&steps[..=index], closing.to, closing.from) else { continue };
            if told.insert((closing.to, closing.trigger)) {
                tell(shipyard, closing, &way, passes, findings);
            }
        }
    }
}

fn tell(shipyard: &Shipyard, closing: &Step, way: &[Place], passes: bool, findings: &mut Findings<'_>) {
    let circle: Vec<String> = way.iter().chain([&closing.to]).map(|place| name(shipyard, *place)).collect();
    let asks = |place: &Place| {
        let sequence = &shipyard.stages[place.0].sequences[place.1];
        sequence.triggered_on.iter().any(|trigger| !trigger.selector.is_empty())
    };
    let rounds = if way.iter().all(asks) { "ten rounds" } else { "one round" }; // as `engine/sequence/promotion.rs` counts
    let (how, leaves) = if passes { ("passes", "fail") } else { ("fails", "pass") };
    let (stage, sequence) = closing.to;
    let message = format!("this comes round to itself where all {how}: {}", circle.join(" → "));
    let at = format!("{}/triggeredOn/{}", place(stage, sequence), closing.trigger);
    findings.warning(&at, "circle", message).hint =
        Some(format!("a selector such as `result: {leaves}` leaves it; launchway ends it after {rounds}"));
}

fn name(shipyard: &Shipyard, (stage, sequence): Place) -> String {
    let stage = &shipyard.stages[stage];
    format!("{}.{}", stage.name, stage.sequences[sequence].name)
}

/// What fires on ends on which selectors hold in one way.
fn steps(shipyard: &Shipyard, holds: fn(&Selector) -> bool) -> Vec<Step> {
    let mut steps = Vec::new();
    for (stage, declared) in shipyard.stages.iter().enumerate() {
        for (index, sequence) in declared.sequences.iter().enumerate() {
            for (trigger, it) in sequence.triggered_on.iter().enumerate().filter(|(_, it)| holds(&it.selector)) {
                let from = sources(shipyard, it).into_iter();
                steps.extend(from.map(|from| Step { from, to: (stage, index), trigger }));
            }
        }
    }
    steps
}

/// The sequences whose end a trigger waits for.
fn sources(shipyard: &Shipyard, trigger: &SequenceTrigger) -> Vec<Place> {
    let named = trigger.event.strip_suffix(".finished").and_then(|event| event.split_once('.'));
    let Some((stage, name)) = named else { return Vec::new() };
    let Some(index) = shipyard.stages.iter().position(|known| known.name.as_str() == stage) else { return Vec::new() };
    let is_source = |sequence: &Sequence| match shipyard.stages[index].ended(name) {
        Some(Ended::Sequence(ended)) => ended.name == sequence.name,
        Some(Ended::Task(_)) => sequence.has_task(name),
        None => false,
    };
    let sequences = shipyard.stages[index].sequences.iter().enumerate();
    sequences.filter(|(_, sequence)| is_source(sequence)).map(|(sequence, _)| (index, sequence)).collect()
}

/// The places from one to another, both included; the same one is there at once.
fn way(steps: &[Step], from: Place, to: Place) -> Option<Vec<Place>> {
    let mut ways = vec![vec![from]];
    let mut seen = vec![from];
    while let Some(way) = ways.pop() {
        let here = *way.last()?;
        if here == to {
            return Some(way);
        }
        for step in steps.iter().filter(|step| step.from == here) {
            if !seen.contains(&step.to) {
                seen.push(step.to);
                ways.push(way.iter().copied().chain([step.to]).collect());
            }
        }
    }
    None
}
