//! The slot: whoever shares it, one at a time, and the newest delivery has the last word.

use std::collections::BTreeMap;
use std::sync::Arc;

use launchway::engine::sequence::slot::decide;
use launchway::model::event::Event;
use launchway::model::hold::{Hold, HoldKind, HoldScope};
use launchway::model::ids::{Digest, HoldId};
use launchway::model::outcome::Outcome;
use launchway::model::plan::{Decision, PAUSED};
use launchway::model::project::Procedure;
use launchway::model::run::{SequenceRun, SequenceState};
use proptest::prelude::*;

use super::samples::{NOW, sequence};

fn hold() -> Hold {
    let scope = HoldScope { project: "shop".into(), stage: Some("dev".into()), service: None, context: None };
    Hold { id: HoldId::new("1"), kind: HoldKind::Person, scope, reason: "freeze".into(), by: "ann".into(), since: NOW }
}

fn run(number: usize, state: SequenceState, is_rollback: bool) -> SequenceRun {
    let mut run = SequenceRun { state, is_rollback, ..sequence(&format!("{number:08}")) };
    run.delivery.as_mut().unwrap().content = Digest::new(format!("sha256:{number}"));
    run
}

proptest! {
    #[test]
    fn one_at_a_time_and_the_newest_delivery_stays(
        queued in prop::collection::vec(any::<bool>(), 0..6),
        active in prop::option::of(prop_oneof![
            (0_usize..2).prop_map(|task| SequenceState::Running { task }),
            Just(SequenceState::Ending { task: 0, outcome: Outcome::ABORTED }),
        ]),
        held in any::<bool>(),
    ) {
        let mut runs: Vec<SequenceRun> = active.into_iter().map(|state| run(0, state, false)).collect();
        runs.extend(queued.iter().enumerate().map(|(number, rollback)| run(1 + number, SequenceState::Queued, *rollback)));
        let told = decide(&runs.iter().collect::<Vec<_>>(), &Vec::from_iter(held.then(hold)));
        let is = |run: &SequenceRun, wanted: fn(&Event) -> bool| told.iter().any(|(id, event)| id == &run.id && wanted(event));
        let admitted: Vec<_> = runs.iter().filter(|run| is(run, |event| *event == Event::Admitted)).collect();
        let rollback = queued.iter().any(|rollback| *rollback);
        prop_assert_eq!(admitted.len(), usize::from(active.is_none() && !queued.is_empty() && (rollback || !held)));
        prop_assert!(admitted.iter().all(|run| run.is_rollback == rollback), "a rollback comes first");
        for kind in [false, true] {
            let mut of_kind = runs.iter().filter(|run| run.state == SequenceState::Queued && run.is_rollback == kind);
            let newest = of_kind.next_back();
            let ends = |event: &Event| matches!(event, Event::Cancel { outcome: Outcome::SUPERSEDED, .. });
            prop_assert!(of_kind.all(|run| is(run, ends)), "the older ones are superseded");
            prop_assert!(newest.is_none_or(|run| !is(run, ends)), "the newest stays");
        }
        let runs_on = if rollback { 2 } else { 1 };
        let gives_way = matches!(active, Some(SequenceState::Running { task }) if task < runs_on);
        let overtaken = runs.first().is_some_and(|run| run.state != SequenceState::Queued && is(run, |event| matches!(event, Event::Cancel { .. })));
        prop_assert_eq!(overtaken, gives_way && !queued.is_empty() && (rollback || !held));
    }
}

/// What a person asks for of one deployment config.
fn by_hand(number: usize, config: &str, state: SequenceState) -> SequenceRun {
    let mut asked = run(number, state, false);
    asked.by = Some("ann".into());
    asked.plan = None;
    asked.delivery.as_mut().unwrap().changes.retain(|change| change.key.name.as_str() == config);
    asked
}

fn superseded(runs: &[SequenceRun]) -> Vec<String> {
    let told = decide(&runs.iter().collect::<Vec<_>>(), &[]);
    let ends = |event: &Event| matches!(event, Event::Cancel { outcome: Outcome::SUPERSEDED, .. });
    told.into_iter().filter(|(_, event)| ends(event)).map(|(id, _)| id.to_string()).collect()
}

#[test]
fn nothing_is_left_undone_by_what_takes_its_place() {
    const DEPLOYS: SequenceState = SequenceState::Running { task: 0 };
    const WAITS: SequenceState = SequenceState::Queued;
    let tests = SequenceRun { delivery: None, ..run(2, WAITS, false) };
    let whole = |number, state| run(number, state, false);
    let first: &[&str] = &["00000001"];
    let mut one = whole(1, DEPLOYS);
    one.delivery.as_mut().unwrap().changes.retain(|change| change.key.name.as_str() == "web");
    let table: [(&str, [SequenceRun; 2], &[&str]); 8] = [
        ("one config waits for what has to pass", [one, by_hand(2, "web", WAITS)], &[]),
        ("a newer revision replaces what deploys", [whole(1, DEPLOYS), whole(2, WAITS)], first),
        ("one config waits for what deploys two", [whole(1, DEPLOYS), by_hand(2, "web", WAITS)], &[]),
        ("a revision replaces one config that deploys", [by_hand(1, "web", DEPLOYS), whole(2, WAITS)], first),
        ("one config waits for another", [by_hand(1, "web", DEPLOYS), by_hand(2, "api", WAITS)], &[]),
        ("one config replaces itself", [by_hand(1, "web", WAITS), by_hand(2, "web", WAITS)], first),
        ("one config waits beside another", [by_hand(1, "web", WAITS), by_hand(2, "api", WAITS)], &[]),
        ("what only tests ends no deployment", [whole(1, DEPLOYS), tests], &[]),
    ];
    for (name, runs, expected) in table {
        assert_eq!(superseded(&runs), expected, "{name}");
    }
    let backlog = [whole(1, WAITS), whole(2, WAITS), by_hand(3, "web", WAITS)];
    assert_eq!(superseded(&backlog), first, "the newest need not be what replaces");
    let corrected = |content: &str| {
        let mut fix = whole(2, WAITS);
        fix.delivery.as_mut().unwrap().content = content.into();
        fix.procedure.value = Arc::new(Procedure { tasks: BTreeMap::new(), ..Procedure::clone(&fix.procedure) });
        fix
    };
    let tested = whole(1, SequenceState::Running { task: 1 });
    let content = tested.delivery.as_ref().unwrap().content.to_string();
    assert_eq!(superseded(&[tested.clone(), whole(2, WAITS)]), [""; 0], "what was deployed is tested");
    assert_eq!(
        superseded(&[tested.clone(), corrected("sha256:other")]),
        [""; 0],
        "also if what comes is tested otherwise"
    );
    assert_eq!(superseded(&[tested, corrected(&content)]), first, "a corrected test takes the place of the wrong one");
    let rolled_back = |number, config| SequenceRun { is_rollback: true, ..by_hand(number, config, WAITS) };
    assert_eq!(superseded(&[rolled_back(1, "web"), rolled_back(2, "api")]), [""; 0], "each is rolled back");
    let mut repeated = whole(3, WAITS);
    repeated.delivery.as_mut().unwrap().content = whole(1, WAITS).delivery.unwrap().content;
    assert_eq!(superseded(&[whole(1, DEPLOYS), whole(2, WAITS), repeated]), ["00000002"], "what is taken back");
    let mut paused = whole(2, WAITS);
    for change in &mut paused.delivery.as_mut().unwrap().changes {
        (change.decision, change.cause) = (Decision::Wait, PAUSED.to_owned());
    }
    assert_eq!(superseded(&[whole(1, DEPLOYS), paused.clone()]), [""; 0], "what a file pauses is not undone");
    paused.delivery.as_mut().unwrap().changes.pop();
    assert_eq!(superseded(&[whole(1, DEPLOYS), paused]), first, "but for what it pauses no longer declares");
    let hangs = by_hand(1, "web", DEPLOYS);
    let fixed = SequenceRun { by: None, plan: Some("plan".into()), ..by_hand(3, "web", WAITS) };
    assert_eq!(
        superseded(&[hangs, by_hand(2, "api", WAITS), fixed]),
        first,
        "a fix waits for nothing that it replaces"
    );
}
