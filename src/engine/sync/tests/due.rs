//! What a push starts by itself.

use super::*;
use crate::engine::fixtures::delivery;
use crate::model::shipyard::{Selector, SequenceTrigger};
use crate::plan::under_way::{Reached, UnderWay};

const PRODUCTION: [&str; 3] =
    ["shipyard dev production", "declare web image=b", "declare web image=c stage=production"];

/// `dev` has passed what it is to have, and serves it.
fn passed_in_dev() -> Memory {
    let content = build::content_of(&project(&PRODUCTION).stages[0], &"web".into());
    let key = PassedKey { service: service("dev"), content };
    Memory::default().with(repository()).with(serving(1, "b")).with(passed(key))
}

fn both(dev: Applied) -> Stages {
    BTreeMap::from([("dev".into(), dev), ("production".into(), there("b"))])
}

fn pushed(memory: &Memory, stages: &Stages, lines: &[&str]) -> Made<RevisionResult> {
    memory
        .decide(|it| decide(it, &watched(), &head("c2", lines), &Planning::against(stages.clone()), None))
        .expect("it is judged")
}

#[test]
fn a_later_stage_starts_by_itself_where_the_stage_before_has_passed_and_has_nothing_to_do() {
    let dev_changes = passed_in_dev().with(serving(1, "a"));
    for (case, memory, dev, expected) in
        [("passed", passed_in_dev(), "b", "production"), ("dev changes first", dev_changes, "a", "dev")]
    {
        let made = pushed(&memory, &both(applied(&serving(1, dev))), &PRODUCTION);
        assert_eq!(starts_in(&made), [expected], "{case}");
    }
}

#[test]
fn what_is_there_has_passed_a_stage_that_only_deploys_unless_its_delivery_ended_otherwise() {
    let there = || Memory::default().with(repository()).with(serving(1, "b"));
    let content = build::content_of(&project(&PRODUCTION).stages[0], &"web".into());
    let tested = [PRODUCTION[1], PRODUCTION[2], "shipyard dev:deployment,test production", "task test"];
    let undeployed = ConfigState { serving: None, ..serving(1, "b") };
    for (case, memory, lines, passes) in [
        ("nothing delivered it", there(), &PRODUCTION[..], true),
        ("something else was delivered last", there().with(delivered("sha256:other".into())), &PRODUCTION, true),
        ("its delivery failed", there().with(delivered(content)), &PRODUCTION, false),
        ("it is not deployed", there().with(undeployed), &PRODUCTION, false),
        ("it is to be tested", there(), &tested, false),
        ("it is held", there().with(holds(HoldKind::Rollback)), &PRODUCTION, false),
    ] {
        let made = pushed(&memory, &both(applied(&serving(1, "b"))), lines);
        assert_eq!(starts_in(&made), if passes { vec!["production"] } else { vec![] }, "{case}");
        assert_eq!(made.written::<PassedState>().len(), usize::from(passes), "{case}");
    }
}

#[test]
fn a_stage_waits_for_what_an_earlier_revision_is_bringing_to_the_stage_before() {
    let files = project(&PRODUCTION);
    let content = build::content_of(&files.stages[0], &"web".into());
    let run = delivery("s1", "b");
    let sequence = files.shipyard.stages[0].sequences[0].clone();
    let place = (files.stages[0].procedure(&sequence, &"web".into()).into(), &run.destination);
    let under_way = UnderWay::new(&run.commit, (&content, run.changes()), place, Reached::Slot);
    let dev = Applied { under_way: [("web".into(), under_way)].into(), ..applied(&serving(1, "b")) };
    let made = pushed(&passed_in_dev(), &both(dev), &PRODUCTION);
    assert!(starts_in(&made).is_empty(), "it passed here once, and is being delivered again");
}

#[test]
fn a_stage_waits_for_what_is_held_in_the_stage_before() {
    let dev = Applied { holds: holds(HoldKind::Person).holds, ..applied(&serving(1, "a")) };
    let memory = passed_in_dev().with(serving(1, "a")).with(holds(HoldKind::Person));
    let made = pushed(&memory, &both(dev), &PRODUCTION);
    assert_eq!((starts_in(&made), made.started()[0].started_at), (vec!["dev"], None), "it is queued there");
}

#[test]
fn a_service_that_no_earlier_stage_has_waits_for_none() {
    let lines = ["shipyard dev production", "declare web image=b stage=production"];
    let made = pushed(&Memory::default().with(repository()), &Stages::new(), &lines);
    assert_eq!(starts_in(&made), ["production"]);
}

#[test]
fn a_stage_that_only_a_person_starts_is_not_started_by_a_push() {
    let mut files = project(&["shipyard dev qa production", "declare web image=b"]);
    let trigger = SequenceTrigger { event: "dev.delivery.finished".into(), selector: Selector::default() };
    files.shipyard.stages[1].sequences[0].triggered_on.push(trigger);
    let head = Head { declared: Ok(Arc::new(files)), ..head("c2", &FILES) };
    let memory = Memory::default().with(repository());
    let made = memory
        .decide(|it| decide(it, &watched(), &head, &Planning::against(Stages::new()), None))
        .expect("it is judged");
    let RevisionResult::Planned(plan) = &made.answer else { unreachable!("{made:#?}") };
    assert_eq!((&plan.stages[2].start, starts_in(&made)), (&StageStart::ByHand, vec!["dev"]));
}

#[test]
fn what_all_services_need_is_read_at_once() {
    let rounds = |services: usize| {
        let services: Vec<String> = (0..services).map(|number| format!("declare s{number} image=a")).collect();
        let lines: Vec<&str> = std::iter::once("shipyard dev").chain(services.iter().map(String::as_str)).collect();
        let made = pushed(&Memory::default(), &Stages::new(), &lines);
        assert_eq!(made.started().len(), services.len());
        made.rounds
    };
    assert_eq!(rounds(20), rounds(2));
}
