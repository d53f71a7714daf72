use serde_json::json;

use super::*;
use crate::manifest::yaml;
use crate::model::shipyard::{Operator, QueuePolicy, Requirement};

fn read_text(text: &str) -> (Option<Shipyard>, Vec<String>) {
    let reading = yaml::read(text.as_bytes());
    assert_eq!(reading.errors, []);
    let document = &reading.documents[0];
    let mut findings = Findings::new("shipyard.yaml", document, "");
    let shipyard = read(&document.value, &mut findings);
    (shipyard, findings.problems.iter().map(ToString::to_string).collect())
}

/// A shipyard of the given stages, as a flow sequence or indented by two.
pub(super) fn stages(stages: &str) -> (Option<Shipyard>, Vec<String>) {
    read_text(&format!(
        "apiVersion: spec.keptn.sh/0.2.2\nkind: Shipyard\nmetadata: {{name: s}}\nspec:\n  stages:\n{stages}"
    ))
}

/// A shipyard of the given stages, which has no errors.
pub(crate) fn shipyard_of(text: &str) -> Shipyard {
    let (shipyard, problems) = stages(text);
    shipyard.unwrap_or_else(|| unreachable!("{problems:?}"))
}

/// The problems of a file that is read all the same.
pub(crate) fn shipyard_problems(text: &str) -> Vec<String> {
    let (shipyard, problems) = read_text(text);
    assert!(shipyard.is_some(), "{problems:?}");
    problems
}

#[test]
fn the_seeds_example_is_read() {
    let (shipyard, problems) = read_text(include_str!("../../../tests/manifest/seed-shipyard.yaml"));
    let shipyard = shipyard.expect("it has no errors");
    assert_eq!(shipyard.name, "shipyard-abc");
    let sequence = &shipyard.stages[0].sequences[0];
    let tasks: Vec<_> = sequence.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(tasks, ["deployment", "test", "evaluation", "test", "evaluation", "release"]);
    assert_eq!(sequence.tasks[0].properties, json!({"deploymentstrategy": "blue_green"}));
    assert_eq!(sequence.triggered_on[0].event, "dev.artifact-delivery.finished");
    assert_eq!(problems.len(), 1, "its trigger leads nowhere: {problems:?}");
}

#[test]
fn every_version_that_was_published_is_read() {
    for version in ["spec.keptn.sh/0.2.0", "spec.keptn.sh/0.2.4", "0.2.3"] {
        let text = format!(
            "apiVersion: {version}\nkind: Shipyard\nspec: {{stages: [{{name: dev, sequences: [{{name: a, tasks: [{{name: b}}]}}]}}]}}"
        );
        let (shipyard, problems) = read_text(&text);
        assert!(shipyard.is_some() && problems.is_empty(), "{version}: {problems:?}");
    }
}

#[test]
fn other_versions_are_refused_with_a_hint() {
    let table = [
        ("apiVersion: spec.keptn.sh/0.1.7\nkind: Shipyard", "is of version 0.1"),
        ("stages:\n- name: dev\n  deployment_strategy: direct", "is of version 0.1"),
        (
            "apiVersion: spec.keptn.sh/0.2.0\nkind: Shipyard\nspec: {stages: [{name: dev, test_strategy: functional}]}",
            "is of version 0.1",
        ),
        (
            "apiVersion: spec.keptn.sh/9.9.9\nkind: Shipyard\nspec: {stages: [{name: a}]}",
            "`9.9.9` is no supported version",
        ),
        ("kind: Shipyard\nspec: {stages: [{name: a}]}", "apiVersion: this is required"),
        ("apiVersion: 0.2.0\nkind: Ship\nspec: {stages: [{name: a}]}", "kind: must be `Shipyard`"),
    ];
    for (text, expected) in table {
        let (shipyard, problems) = read_text(text);
        assert!(shipyard.is_none());
        assert!(problems[0].contains(expected) && problems[0].contains("error"), "{problems:?}");
        let names_the_command = problems[0].contains("launchway migrate shipyard FILE");
        assert_eq!(names_the_command, expected == "is of version 0.1", "{problems:?}");
    }
}

#[test]
fn what_keptn_would_fail_at_later_is_refused_at_once() {
    let table = [
        ("    []", "spec.stages: a shipyard needs at least one stage"),
        ("  - {name: Dev, sequences: []}", "spec.stages[0].name: `Dev` must be lower-case letters"),
        ("  - {sequences: []}", "spec.stages[0].name: this is required"),
        ("  - {name: a}\n  - {name: a}", "spec.stages[1].name: the stage `a` is declared twice"),
        ("  - {name: plan}", "spec.stages[0].name: `plan` is taken"),
        ("  - {name: a, sequences: [{name: s, tasks: [{name: pre}]}]}", "tasks[0].name: `pre` is taken"),
        (
            "  - {name: a, sequences: [{name: s, tasks: [{name: t}]}, {name: s, tasks: [{name: t}]}]}",
            "sequences[1].name: the sequence `s` is declared twice",
        ),
        (
            "  - {name: a, sequences: [{name: s.t, tasks: [{name: t}]}]}",
            "sequences[0].name: `s.t` must not contain dots",
        ),
        ("  - {name: a, sequences: [{name: s, tasks: [{name: a/b}]}]}", "tasks[0].name: `a/b` must not contain dots"),
        ("  - {name: a, sequences: [{name: s}]}", "sequences[0].tasks: the sequence `s` has no tasks"),
        (
            "  - {name: a, sequences: [{name: s, tasks: [{name: t, triggeredAfter: soon}]}]}",
            "triggeredAfter: `soon` is not a duration",
        ),
        ("  - {name: a, sequences: [{name: s, tasks: [{name: t, properties: 1}]}]}", "properties: must be a mapping"),
        (
            "  - {name: a, sequences: [{name: s, tasks: [{name: t, timeout: soon}]}]}",
            "timeout: `soon` is not a duration",
        ),
        ("  - {name: a, sequences: [{name: s, tasks: [{name: t, startTimeout: 0}]}]}", "startTimeout: must be text"),
        ("  - {name: a, sequences: [{name: s, timeout: 0s, tasks: [{name: t}]}]}", "timeout: must be a millisecond or"),
        (
            "  - {name: a, sequences: [{name: s, tasks: [{name: t, condition: onsuccess}]}]}",
            "condition: `onsuccess` is not supported (did you mean `onSuccess`?)",
        ),
        ("  - {name: a, sequences: [{name: s, tasks: [{name: t, retries: -1}]}]}", "retries: must be between 0 and"),
        (
            "  - {name: a, sequences: [{name: s, triggeredOn: [{event: x, selector: {matchExpressions: [{key: result, operator: in}]}}], tasks: [{name: t}]}]}",
            "matchExpressions[0].operator: `in` is not supported (did you mean `In`?)",
        ),
        (
            "  - {name: a, sequences: [{name: s, triggeredOn: [{event: x, selector: {matchExpressions: [{key: result, operator: In}]}}], tasks: [{name: t}]}]}",
            "matchExpressions[0].values: `In` and `NotIn` compare with values",
        ),
        (
            "  - {name: a, sequences: [{name: s, triggeredOn: [{event: x, selector: {matchExpressions: [{key: result, operator: Exists, values: [pass]}]}}], tasks: [{name: t}]}]}",
            "matchExpressions[0].values: `Exists` and `DoesNotExist` take no values",
        ),
        (
            "  - {name: a, sequences: [{name: s, triggeredOn: [{selector: {}}], tasks: [{name: t}]}]}",
            "triggeredOn[0].event: this is required",
        ),
    ];
    for (text, expected) in table {
        let (shipyard, problems) = stages(text);
        assert!(shipyard.is_none(), "{text}");
        let found = problems.iter().any(|problem| problem.contains("error") && problem.contains(expected));
        assert!(found, "{text}: {problems:?}");
    }
}

#[test]
fn what_has_no_effect_is_a_warning() {
    let table = [
        ("  - name: a", "has no sequences"),
        ("  - {name: a, sequences: [{name: s, triggers: [x], tasks: [{name: t}]}]}", "since 0.2.0 it is `triggeredOn`"),
        (
            "  - {name: a, sequences: [{name: s, triggeredOn: [{event: b.s.finished}], tasks: [{name: t}]}]}",
            "there is no stage `b`",
        ),
        (
            "  - {name: a, sequences: [{name: s, triggeredOn: [{event: a.x.finished}], tasks: [{name: t}]}]}",
            "has no sequence `x`",
        ),
        (
            "  - {name: a, sequences: [{name: s, triggeredOn: [{event: a.s.started}], tasks: [{name: t}]}]}",
            "only `.finished` does",
        ),
        (
            "  - {name: a, sequences: [{name: s, triggeredOn: [a.evaluation.finished], tasks: [{name: t}]}]}",
            "has the key `event`",
        ),
        (
            "  - {name: a, sequences: [{name: s, triggeredOn: [{event: a.s.finished, selector: {match: {result: failed}}}], tasks: [{name: t}]}]}",
            "`failed` is read as that",
        ),
        (
            "  - {name: a, sequences: [{name: s, triggeredOn: [{event: a.s.finished, selector: {match: {result: good}}}], tasks: [{name: t}]}]}",
            "`good` is never `result`",
        ),
        (
            "  - {name: a, sequences: [{name: s, triggeredOn: [{event: a.s.finished, selector: {match: {xyz.result: fail}}}], tasks: [{name: t}]}]}",
            "`xyz.result` is never there: the sequence `s` has no task `xyz`",
        ),
        (
            "  - {name: a, sequences: [{name: s, triggeredOn: [{event: a.s.finished, selector: {match: {color: pass}}}], tasks: [{name: t}]}]}",
            "cannot be selected by",
        ),
    ];
    for (text, expected) in table {
        let (shipyard, problems) = stages(text);
        assert!(shipyard.is_some(), "{text}: {problems:?}");
        assert_eq!(problems.len(), 1, "{text}: {problems:?}");
        assert!(problems[0].contains("warning") && problems[0].contains(expected), "{text}: {problems:?}");
    }
}

#[test]
fn spellings_of_the_same_become_the_same() {
    let (shipyard, _) = stages(
        "  - {name: a, sequences: [{name: s, triggeredOn: [{event: sh.keptn.event.a.s.finished, selector: {match: {result: failed}}}], tasks: [{name: t, triggeredAfter: 1m30s}]}]}",
    );
    let sequence = &shipyard.expect("no errors").stages[0].sequences[0];
    assert_eq!(sequence.triggered_on[0].event, "a.s.finished");
    assert_eq!(sequence.triggered_on[0].selector.requirements(), [Requirement::is("result", "fail")]);
    assert_eq!(sequence.tasks[0].triggered_after_ms, 90_000);
}

#[test]
fn what_keptns_format_lacks_is_read() {
    let (shipyard, problems) = stages(
        "  - name: a
    sequences:
    - name: s
      timeout: 1h
      queue: all
      triggeredOn:
      - event: problem.open
        selector:
          match: {problem.severity: high}
          matchExpressions:
          - {key: problem.state, operator: NotIn, values: [closed, muted]}
          - {key: problem.service, operator: Exists}
      tasks:
      - {name: t, timeout: 30m, startTimeout: 90s, heartbeat: 2m, retries: 2, executors: [helm-service, jmeter-service], holdSlot: false, triggeredAfter: 10m}
      - {name: u, condition: always, holdSlot: true}
      - {name: v, condition: onFailure}
",
    );
    assert_eq!(problems, [] as [&str; 0]);
    let sequence = &shipyard.expect("no errors").stages[0].sequences[0];
    let requirement = |key: &str, operator, values: &[&str]| Requirement {
        key: key.to_owned(),
        operator,
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    };
    let asked = [
        requirement("problem.service", Operator::Exists, &[]),
        requirement("problem.severity", Operator::In, &["high"]),
        requirement("problem.state", Operator::NotIn, &["closed", "muted"]),
    ];
    assert_eq!(sequence.triggered_on[0].selector.requirements(), asked);
    assert_eq!((sequence.timeout_ms, sequence.queue), (Some(3_600_000), Some(QueuePolicy::All)));
    let first = Task {
        timeout_ms: Some(1_800_000),
        start_timeout_ms: Some(90_000),
        heartbeat_ms: Some(120_000),
        retries: 2,
        executors: vec!["helm-service".into(), "jmeter-service".into()],
        holds_slot: false,
        triggered_after_ms: 600_000,
        ..Task::named("t")
    };
    let second = Task { condition: Condition::Always, ..Task::named("u") };
    let third = Task { condition: Condition::OnFailure, ..Task::named("v") };
    assert_eq!(sequence.tasks, [first, second, third]);
}

#[test]
fn domain_events_are_left_alone() {
    let (_, problems) = stages(
        "  - {name: a, sequences: [{name: s, triggeredOn: [{event: push}, {event: a.problem.open}, {event: problem.open}], tasks: [{name: t}]}]}",
    );
    assert_eq!(problems, [] as [&str; 0]);
}

#[test]
fn the_end_of_a_task_that_is_called_otherwise_is_read_as_meant() {
    let on = |event: &str, task: &str, name: &str| {
        stages(&format!(
            "  - {{name: dev, sequences: [{{name: {name}, tasks: [{{name: {task}}}]}}, \
             {{name: mail, triggeredOn: [{{event: {event}, selector: {{match: {{evaluate.result: fail}}}}}}], tasks: [{{name: send}}]}}]}}"
        ))
    };
    for (event, task, name, expected, warnings) in [
        ("dev.evaluate.finished", "evaluate", "check", "dev.evaluation.finished", 2),
        ("sh.keptn.event.dev.evaluate.finished", "evaluation", "check", "dev.evaluation.finished", 1),
        ("dev.evaluation.finished", "evaluate", "check", "dev.evaluation.finished", 1),
        ("dev.evaluate.finished", "evaluation", "evaluate", "dev.evaluate.finished", 0),
    ] {
        let (shipyard, problems) = on(event, task, name);
        let shipyard = shipyard.expect("it has no errors");
        let read = &shipyard.stages[0].sequences[1].triggered_on[0].event;
        assert_eq!((read.as_str(), problems.len()), (expected, warnings), "{event} {task} {name}: {problems:?}");
        assert!(problems.iter().all(|problem| problem.contains("is read as")), "{problems:?}");
    }
    let (_, problems) = on("dev.evaluate.finished", "test", "check");
    assert!(
        problems.iter().any(|problem| problem.contains("no sequence `evaluate`, and no such task")),
        "{problems:?}"
    );
}

#[test]
fn the_schema_for_editors_takes_what_is_read() {
    let schema = schema();
    let versions = schema["properties"]["apiVersion"]["enum"].as_array().expect("words");
    for version in ["spec.keptn.sh/0.2.2", "0.2.2"] {
        assert!(versions.contains(&json!(version)), "{versions:?}");
    }
    assert_eq!(&schema["properties"]["version"]["enum"], &schema["properties"]["apiVersion"]["enum"]);
    assert_eq!((&schema["required"], &schema["anyOf"][1]["required"]), (&json!(["kind"]), &json!(["version"])));
    let trigger =
        "/properties/spec/properties/stages/items/properties/sequences/items/properties/triggeredOn/items/anyOf";
    let trigger = schema.pointer(trigger).expect("an entry of triggeredOn");
    assert_eq!((&trigger[0]["required"], &trigger[1]["type"]), (&json!(["event"]), &json!("string")));
}
