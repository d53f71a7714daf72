//! What is measured, and what a run hears of being judged.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::engine::fixtures::{Memory, NOW, delivery, repository, sequence, slot};
use crate::engine::sequence::machine::task_records;
use crate::engine::transition::Input;
use crate::manifest::digest;
use crate::model::project::Procedure;
use crate::model::run::SequenceState;
use crate::model::shipyard::{Sequence, Task};
use crate::model::transaction::RecordKey;

/// A run that evaluates `time` and `errors` of `web`, to which this was given, and has begun.
fn run(given: &Value) -> SequenceRun {
    let properties = json!({
        "objectives": [
            {"sli": "time", "pass": [{"criteria": ["<600"]}]},
            {"sli": "errors", "pass": [{"criteria": ["=0"]}]},
            {"sli": "users"},
        ],
        "timeframe": "10m",
        "prometheus": {"url": "http://x", "queries": {
            "time": "t{p=\"$PROJECT\",s=\"$STAGE\"}[$DURATION_SECONDS]", "errors": "e{s=\"$SERVICE\"}",
        }},
    });
    let tasks = vec![Task { properties, ..Task::named("evaluation") }];
    let sequence = Sequence { name: "check".into(), tasks, ..Sequence::default() };
    let mut run = SequenceRun {
        tasks: task_records(&sequence),
        procedure: digest::stored(Procedure { sequence, ..Procedure::default() }),
        data: json!({"evaluation": {"values": given}}),
        delivery: None,
        state: SequenceState::Running { task: 0 },
        started_at: Some(NOW),
        ..delivery("s1", "a")
    };
    run.tasks[0].started_at = Some(NOW);
    run.tasks[0].offers = 1;
    run
}

fn measured(run: &SequenceRun) -> BTreeMap<String, String> {
    let objectives = run.objectives(0).unwrap().unwrap();
    measurement(run, (0, &objectives), NOW).map(|it| it.queries).unwrap_or_default()
}

#[test]
fn only_what_nobody_has_given_is_measured_for_the_service_and_the_time() {
    let (time, errors) = (r#"t{p="shop",s="dev"}[600s]"#, r#"e{s="web"}"#);
    for (given, queries) in [
        (json!({}), vec![("errors", errors), ("time", time)]),
        (Value::Null, vec![("errors", errors), ("time", time)]),
        (json!({"time": 5, "users": 1}), vec![("errors", errors)]),
        (json!({"time": "5", "errors": "none"}), vec![]),
    ] {
        let queries: BTreeMap<String, String> =
            queries.into_iter().map(|(sli, query)| (sli.to_owned(), query.to_owned())).collect();
        assert_eq!(measured(&run(&given)), queries, "{given}");
    }
}

#[test]
fn a_filter_stands_in_queries_under_its_names() {
    let mut run = run(&json!({"errors": 0}));
    let mut procedure = Procedure::clone(&run.procedure);
    let properties = &mut procedure.sequence.tasks[0].properties;
    properties["filter"] = json!({"zone": "'north'", "zone_id": "7", "service": "all"});
    properties["prometheus"]["queries"]["time"] = json!("t{z=\"$zone\",i=\"$ZONE_ID\",s=\"$SERVICE\",p=\"$PROJECT\"}");
    run.procedure = digest::stored(procedure);
    assert_eq!(measured(&run)["time"], r#"t{z="north",i="7",s="all",p="shop"}"#);
}

#[test]
fn what_was_measured_is_judged_with_what_was_given_in_the_transaction_that_names_the_slot() {
    let run = run(&json!({"errors": "0"}));
    let memory = Memory::default().with(sequence(&run)).with(slot(Some(&run), &[])).with(repository());
    let readings = BTreeMap::from([("time".to_owned(), Reading::of("812"))]);
    let event = Input::Tell(run.id.clone(), Event::Measured { task: 0, at: NOW, readings });
    let made = memory.decide(|transition| transition.take(&event)).expect("it is judged");
    let Run::Sequence(after) = made.only::<Run>() else { unreachable!() };
    assert_eq!(after.outcome, Some(Outcome::FAIL));
    assert_eq!(after.tasks[0].message, "fail, score 50 %: time is 812, not <600");
    let left = &after.gathered(1)["evaluation"];
    assert_eq!((&left["score"], &left["values"]), (&json!(50), &Value::Null));
    assert_eq!(left, &after.tasks[0].evaluation);
    let is_slot = |key: &RecordKey| matches!(key, RecordKey::Slot(of) if *of == run.service);
    let named = made.transaction.reads.iter().any(|read| is_slot(&read.key));
    assert!(named || made.written::<crate::model::slot::SlotState>().len() == 1, "{:#?}", made.transaction);
}
