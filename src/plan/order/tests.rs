use super::*;
use crate::manifest::shipyard_of;

/// What starts the delivery to `production`, as people are told, and the stage whose passing it waits for.
fn production(triggers: &str) -> (Vec<String>, Option<(StageName, String)>) {
    let shipyard = shipyard_of(&format!(
        "
  - name: dev
    sequences:
    - {{name: delivery, tasks: [{{name: deployment}}, {{name: test}}]}}
    - {{name: approval, tasks: [{{name: test}}, {{name: ask}}]}}
    - {{name: release, tasks: [{{name: mail}}]}}
    - {{name: publish, tasks: [{{name: release}}]}}
  - name: production
    sequences:
    - {{name: delivery, triggeredOn: {triggers}, tasks: [{{name: deployment}}]}}
"
    ));
    let delivery: BTreeMap<StageName, &Sequence> =
        shipyard.stages.iter().map(|stage| (stage.name.clone(), &stage.sequences[0])).collect();
    let start = starts(&shipyard, &delivery).remove(&StageName::new("production")).expect("it has a delivery");
    let (StageStart::After(triggers) | StageStart::Event(triggers)) = &start else { unreachable!("{start:?}") };
    let told = |it: &SequenceTrigger| {
        let asked = it.selector.requirements().iter().map(|asked| format!(" with {asked}"));
        format!("{}{}", it.event, asked.collect::<String>())
    };
    let waits_for = awaited(&start).map(|(stage, sequence)| (stage, sequence.to_owned()));
    (triggers.iter().map(told).collect(), waits_for)
}

#[test]
fn a_stage_that_an_event_from_outside_starts_takes_what_the_one_before_it_has_passed() {
    let shipyard = |triggers: &str| {
        shipyard_of(&format!(
            "
  - {{name: dev, sequences: [{{name: delivery, tasks: [{{name: deployment}}]}}]}}
  - name: production
    sequences: [{{name: delivery, triggeredOn: {triggers}, tasks: [{{name: deployment}}]}}]
"
        ))
    };
    for (triggers, is_from_outside, gate) in [
        ("[{event: git.tag.created}]", true, Some("dev")),
        ("[{event: git.tag.created}, {event: dev.delivery.finished}]", false, Some("dev")),
        ("[{event: dev.delivery.finished, selector: {match: {result: fail}}}]", false, None),
    ] {
        let shipyard = shipyard(triggers);
        let delivery = shipyard.stages.iter().map(|stage| (stage.name.clone(), &stage.sequences[0])).collect();
        let (starts, production) = (starts(&shipyard, &delivery), StageName::new("production"));
        assert_eq!(starts[&production].is_from_outside(), is_from_outside, "{triggers}");
        let gates = gates(&shipyard, &delivery, &starts, &production);
        assert_eq!(gates.first().map(|gate| gate.stage.as_str()), gate, "{triggers}");
    }
}

#[test]
fn a_delivery_waits_for_the_sequences_that_have_the_task_it_is_triggered_on() {
    let on = |event: &str, selector: &str| format!("[{{event: {event}, selector: {{{selector}}}}}]");
    let dev = |sequence: &str| Some((StageName::new("dev"), sequence.to_owned()));
    for (triggers, expected, waits_for) in [
        (on("dev.delivery.finished", ""), &["dev.delivery.finished"][..], dev("delivery")),
        (
            on("dev.deployment.finished", ""),
            &["dev.delivery.finished with deployment.result in pass, warning"],
            dev("delivery"),
        ),
        (
            on("dev.test.finished", "match: {result: pass, deployment.status: succeeded}"),
            &[
                "dev.delivery.finished with deployment.status succeeded with test.result pass",
                "dev.approval.finished with deployment.status succeeded with test.result pass",
            ],
            dev("delivery"),
        ),
        (on("dev.ask.finished", ""), &["dev.approval.finished with ask.result in pass, warning"], dev("approval")),
        // The sequence of a task's name has the event for itself.
        (on("dev.release.finished", ""), &["dev.release.finished"], dev("release")),
        // What a pass of it does not bring about is awaited by nobody.
        (on("dev.delivery.finished", "match: {result: fail}"), &["dev.delivery.finished with result fail"], None),
        (on("dev.delivery.finished", "match: {test.uri: x}"), &["dev.delivery.finished with test.uri x"], None),
        (on("dev.problem.open", ""), &["dev.problem.open"], None),
        (on("image.built", ""), &["image.built"], None),
    ] {
        let (told, awaited) = production(&triggers);
        assert_eq!(told, expected, "{triggers}");
        assert_eq!(awaited, waits_for, "{triggers}");
    }
}
