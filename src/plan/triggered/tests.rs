use serde_json::json;

use super::*;
use crate::engine::sequence::machine::task_records;
use crate::manifest::digest::stored;
use crate::manifest::shipyard_of;
use crate::model::ids::{Destination, ServiceKey};
use crate::model::project::Procedure;

fn names(found: &[(&Stage, &Sequence)]) -> Vec<String> {
    found.iter().map(|(stage, sequence)| format!("{}.{}", stage.name, sequence.name)).collect()
}

const EVENTS: &str = "
  - name: dev
    sequences:
    - {name: delivery, tasks: [{name: deployment}, {name: test}]}
    - {name: alarm, triggeredOn: [{event: problem.open}, {event: dev.problem.open}], tasks: [{name: mail}]}
    - {name: after, triggeredOn: [{event: dev.test.finished}, {event: dev.delivery.triggered}], tasks: [{name: mail}]}
  - name: production
    sequences:
    - {name: delivery, triggeredOn: [{event: image.built}], tasks: [{name: deployment}]}
    - {name: remediation, tasks: [{name: get-action}]}
    - name: page
      triggeredOn:
      - {event: problem.open, selector: {match: {problem.severity: high}}}
      - {event: sh.keptn.event.production.problem.closed}
      tasks: [{name: mail}]
    - {name: watch, triggeredOn: [{event: dev.problem.open}], tasks: [{name: mail}]}
";

#[test]
fn events_from_outside_start_what_names_them() {
    let shipyard = shipyard_of(EVENTS);
    let high = json!({"problem": {"severity": "high"}});
    for (event, stage, data, expected) in [
        // Where it happened, by its type or its data, or anywhere.
        ("sh.keptn.event.dev.problem.open", None, json!({}), vec!["dev.alarm", "production.watch"]),
        ("problem.open", Some("dev"), json!({}), vec!["dev.alarm", "production.watch"]),
        ("production.problem.open", None, json!({}), vec!["production.remediation"]),
        (
            "production.problem.open",
            Some("production"),
            high.clone(),
            vec!["production.remediation", "production.page"],
        ),
        ("problem.open", None, high.clone(), vec!["dev.alarm", "production.page"]),
        ("problem.open", Some("staging"), high, vec![]),
        ("problem.closed", Some("production"), json!({}), vec!["production.page"]),
        ("problem.closed", Some("dev"), json!({}), vec![]),
        ("remediation.in-progress", Some("production"), json!({}), vec!["production.remediation"]),
        ("remediation.in-progress", None, json!({}), vec![]),
        // The trigger that every sequence has.
        ("sh.keptn.event.dev.delivery.triggered", None, json!({}), vec!["dev.delivery"]),
        ("dev.delivery.triggered", Some("dev"), json!({}), vec!["dev.delivery"]),
        ("dev.delivery.triggered", Some("production"), json!({}), vec![]),
        ("production.remediation.triggered", None, json!({}), vec!["production.remediation"]),
        ("dev.unknown.triggered", None, json!({}), vec![]),
        ("delivery.triggered", None, json!({}), vec![]),
        // Only what ran tells its end.
        ("dev.test.finished", None, json!({"result": "pass"}), vec![]),
        ("test.finished", Some("dev"), json!({"result": "pass"}), vec![]),
        ("image.built", None, json!({}), vec!["production.delivery"]),
        ("image", None, json!({}), vec![]),
        ("", None, json!({}), vec![]),
    ] {
        let stage = stage.map(StageName::new);
        let found = by_event(&shipyard, event, stage.as_ref(), &data);
        assert_eq!(names(&found), expected, "{event} in {stage:?} with {data}");
    }
}

#[test]
fn a_remediation_that_says_what_starts_it_is_started_by_nothing_else() {
    let shipyard = shipyard_of(
        "
  - name: dev
    sequences:
    - {name: remediation, triggeredOn: [{event: alert}], tasks: [{name: get-action}]}
",
    );
    let dev = StageName::new("dev");
    for (event, expected) in [("alert", vec!["dev.remediation"]), ("problem.open", vec![])] {
        assert_eq!(names(&by_event(&shipyard, event, Some(&dev), &json!({}))), expected, "{event}");
    }
}

/// A delivery to `dev` whose tasks ended so, in order; the rest never ran.
fn ran(shipyard: &Shipyard, outcomes: &[Outcome]) -> SequenceRun {
    let sequence = shipyard.stages[0].sequences[0].clone();
    let mut tasks = task_records(&sequence);
    tasks.iter_mut().zip(outcomes).for_each(|(task, outcome)| task.outcome = Some(*outcome));
    let procedure = stored(Procedure { sequence, ..Procedure::default() });
    let service = ServiceKey { project: "shop".into(), stage: "dev".into(), service: "web".into() };
    let draft =
        SequenceRun::draft(service, Destination::local("shop-dev".into()), ("shop".into(), "c1".into()), procedure);
    // The data of a delivery whose test told a score; `release` is from elsewhere.
    let data = json!({"test": {"score": 97, "result": "odd"}, "release": {"result": "pass"}});
    SequenceRun { tasks, data, ..draft }
}

/// The events that trigger `on` would be told, `end` of the sequence among them.
fn fired(triggers: &str, outcomes: &[Outcome], end: Outcome) -> Vec<String> {
    let shipyard = shipyard_of(&format!(
        "
  - name: dev
    sequences:
    - {{name: delivery, tasks: [{{name: deployment, properties: {{by: {{who: ann}}}}}}, {{name: test}}, {{name: release}}]}}
    - {{name: release, tasks: [{{name: mail}}]}}
    - {{name: follow, triggeredOn: {triggers}, tasks: [{{name: mail}}]}}
"
    ));
    let run = ran(&shipyard, outcomes);
    let follow = &shipyard.stages[0].sequences[2];
    let tasks = (0..run.tasks.len()).filter_map(|index| Finished::task(&shipyard, &run, index));
    let all = tasks.chain(Finished::sequence(&run, end));
    all.filter(|finished| finished.starts(follow)).map(|finished| finished.what().to_owned()).collect()
}

#[test]
fn ends_of_sequences_and_tasks_fire_with_what_is_known_of_them() {
    let good = [Outcome::PASS; 3];
    let tested = [Outcome::PASS, Outcome::FAIL];
    let warned = Outcome { result: crate::model::outcome::TaskResult::Warning, ..Outcome::PASS };
    let on = |event: &str, selector: &str| format!("[{{event: {event}, selector: {{{selector}}}}}]");
    let delivery = |selector: &str| on("dev.delivery.finished", selector);
    let no = [] as [&str; 0];
    let end = ["dev.delivery"];
    for (triggers, outcomes, outcome, expected) in [
        (delivery(""), &good[..], Outcome::PASS, &end[..]),
        (delivery(""), &good, warned, &end),
        (delivery(""), &tested, Outcome::FAIL, &no),
        (delivery("match: {result: fail}"), &tested, Outcome::FAIL, &end),
        (delivery("match: {result: fail}"), &tested, Outcome::TIMED_OUT, &end),
        (delivery("match: {result: fail}"), &tested, Outcome::ABORTED, &end),
        (delivery("match: {result: fail}"), &tested, Outcome::ERRORED, &end),
        (delivery("match: {result: fail}"), &tested, Outcome::SUPERSEDED, &no),
        (delivery("match: {status: timedOut}"), &tested, Outcome::TIMED_OUT, &end),
        // Any task, not only the last one, and all that is asked.
        (delivery("match: {deployment.result: pass}"), &tested, Outcome::FAIL, &end),
        (delivery("match: {test.result: fail, deployment.result: pass}"), &tested, Outcome::FAIL, &end),
        (delivery("match: {test.result: fail, deployment.result: fail}"), &tested, Outcome::FAIL, &no),
        (delivery("match: {release.result: fail}"), &tested, Outcome::FAIL, &no),
        (delivery("matchExpressions: [{key: release.result, operator: DoesNotExist}]"), &tested, Outcome::FAIL, &end),
        (delivery("match: {deployment.by.who: ann}"), &good, Outcome::PASS, &end),
        (delivery("match: {deployment.by.who: bob}"), &good, Outcome::PASS, &no),
        (delivery("match: {test.score: '97'}"), &good, Outcome::PASS, &end),
        (delivery("match: {test.result: pass}"), &good, Outcome::PASS, &end),
        (delivery("match: {release.result: pass}"), &tested, Outcome::FAIL, &no),
        // A task's end has the task's result, and knows nothing of what comes later.
        (on("dev.deployment.finished", ""), &tested, Outcome::FAIL, &["dev.deployment"]),
        (on("dev.test.finished", "match: {result: fail}"), &tested, Outcome::FAIL, &["dev.test"]),
        (
            on("dev.test.finished", "match: {deployment.result: pass, test.result: fail}"),
            &tested,
            Outcome::FAIL,
            &["dev.test"],
        ),
        (on("dev.deployment.finished", "match: {test.result: fail}"), &tested, Outcome::FAIL, &no),
        (
            on("dev.test.finished", "match: {result: fail}"),
            &[Outcome::PASS, Outcome::SUPERSEDED],
            Outcome::SUPERSEDED,
            &no,
        ),
        // The sequence `release` has the event for itself.
        (on("dev.release.finished", ""), &good, Outcome::PASS, &no),
        (on("production.test.finished", ""), &good, Outcome::PASS, &no),
    ] {
        assert_eq!(fired(&triggers, outcomes, outcome), expected, "{triggers} {outcomes:?} {outcome:?}");
    }
}
