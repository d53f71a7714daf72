//! Circles of triggers that nothing but their end by launchway leaves.

use crate::manifest::findings::Findings;
use crate::manifest::shipyard::place;
use crate::model::shipyard::{Ended, Sequence, SequenceTrigger, Shipyard};

/// A sequence with its place: the positions of its stage and in it.
type Place = (usize, usize);

/// A trigger that fires whenever the sequence that it waits for passes.
struct Step {
    from: Place,
    to: Place,
    trigger: usize,
}

/// Tells of circles that go on for ever where all passes: one warning for each, at the trigger of the file that closes it.
pub(super) fn check(shipyard: &Shipyard, findings: &mut Findings<'_>) {
    let steps = steps(shipyard);
    for (index, closing) in steps.iter().enumerate() {
        // The last one of a circle in the file's order closes it.
        let Some(way) = way(&steps[..=index], closing.to, closing.from) else { continue };
        let circle: Vec<String> = way.iter().chain([&closing.to]).map(|place| name(shipyard, *place)).collect();
        let (stage, sequence) = closing.to;
        let message = format!("this goes round for ever where all passes: {}", circle.join(" → "));
        let at = format!("{}/triggeredOn/{}", place(stage, sequence), closing.trigger);
        findings.warning(&at, "circle", message).hint =
            Some("a selector such as `result: fail` leaves it; no sequence is started by its own end".to_owned());
    }
}

fn name(shipyard: &Shipyard, (stage, sequence): Place) -> String {
    let stage = &shipyard.stages[stage];
    format!("{}.{}", stage.name, stage.sequences[sequence].name)
}

fn steps(shipyard: &Shipyard) -> Vec<Step> {
    let mut steps = Vec::new();
    for (stage, declared) in shipyard.stages.iter().enumerate() {
        for (index, sequence) in declared.sequences.iter().enumerate() {
            for (trigger, it) in
                sequence.triggered_on.iter().enumerate().filter(|(_, it)| it.selector.holds_when_passed())
            {
                let from = sources(shipyard, it).into_iter();
                steps.extend(from.map(|from| Step { from, to: (stage, index), trigger }));
            }
        }
    }
    steps
}

/// The sequences whose passing a trigger waits for.
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
