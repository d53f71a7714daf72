//! A shipyard of 0.1 as the one of 0.2 that does the same. Source: the upgrade path of Keptn's proposal of 0.2, without the
//! slips of what it shows, and Keptn's specification of 0.1 for what that leaves out.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{Migrated, lost_comments};
use crate::manifest::edit::{in_lines, read};
use crate::manifest::findings::Findings;
use crate::manifest::names;
use crate::manifest::pod_template::{items, text_at};
use crate::manifest::problem::Problem;
use crate::manifest::shape::shipyard::STAGE_KEYS_0_1;
use crate::manifest::shipyard::is_of_0_1;

/// What the sequence that delivers an artifact is called in 0.2.
const DELIVERY: &str = "artifact-delivery";
/// What brings the version beside the one that serves.
const BLUE_GREEN: &str = "blue_green_service";
/// The same in 0.2.
const BLUE_GREEN_0_2: &str = "blue_green";
/// What the proposal shows otherwise of its own example, and why that would not do.
const SLIPS: [&str; 3] = [
    "`version: 0.2.0` of the proposal's example is `apiVersion: spec.keptn.sh/0.2.2`",
    "staging: `rollback` waits for `staging.artifact-delivery.finished`; the proposal's example names the stage `hardening`, which is none of its own",
    "production: `artifact-delivery` waits for `staging.artifact-delivery.finished`; the proposal's example names the stage `hardening` here too, and writes a bare text where an `event:` belongs",
];

/// Migrates a file that is a shipyard of 0.1. `names` of what comes of it are the stages; of any other file there are none.
///
/// # Errors
/// What is wrong with the file, or why it cannot be migrated.
pub fn shipyard(file: &str, text: &str) -> Result<Migrated, Box<Problem>> {
    let documents = read(file, text)?;
    let Some(document) = documents.iter().find(|document| is_of_0_1(&document.value)) else {
        return Ok(Migrated { text: text.to_owned(), names: Vec::new(), notes: Vec::new() });
    };
    let mut findings = Findings::new(file, document, "");
    if documents.len() > 1 {
        findings.error("", "migrate", "the file has other documents beside the shipyard, and is not migrated");
    }
    let old = &document.value;
    let stages_at = if old.get("spec").is_some() { "/spec/stages" } else { "/stages" };
    check(old, stages_at, &mut findings);
    if let Some(problem) = findings.problems.into_iter().next() {
        return Err(Box::new(problem));
    }
    let name = Some(text_at(old, "/metadata/name")).filter(|name| !name.is_empty()).unwrap_or("shipyard");
    let (mut stages, mut names, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    let mut before = None;
    for (_, stage) in items(old, stages_at) {
        let mut step = Step { name: text_at(stage, "/name"), stage, notes: &mut notes };
        stages.push(step.migrated(&mut before));
        names.push(step.name.to_owned());
    }
    let new = json!({
        "apiVersion": "spec.keptn.sh/0.2.2",
        "kind": "Shipyard",
        "metadata": {"name": name},
        "spec": {"stages": stages},
    });
    if *old == proposal() {
        notes.extend(SLIPS.map(str::to_owned));
    }
    let text_of_new = in_lines(&new);
    notes.extend(lost_comments(text, &text_of_new));
    Ok(Migrated { text: text_of_new, names, notes })
}

/// The example of the proposal.
fn proposal() -> Value {
    json!({"stages": [
        {"name": "dev", "deployment_strategy": "direct", "test_strategy": "functional"},
        {"name": "staging", "deployment_strategy": BLUE_GREEN, "test_strategy": "performance"},
        {"name": "production", "deployment_strategy": BLUE_GREEN, "remediation_strategy": "automated"},
    ]})
}

/// Names become parts of events, and half of a migration is none.
fn check(old: &Value, stages_at: &str, findings: &mut Findings<'_>) {
    let mut seen = HashSet::new();
    for (index, stage) in items(old, stages_at) {
        let at = format!("{stages_at}/{index}");
        let name = text_at(stage, "/name");
        if let Err(wrong) = names::entity(name) {
            findings.error(&format!("{at}/name"), "invalid", format!("the stage's name `{name}` {wrong}"));
        }
        if !seen.insert(name) {
            findings.error(&format!("{at}/name"), "duplicate", format!("the stage `{name}` is declared twice"));
        }
        if stage.get("sequences").is_some() {
            let message = "the stage has sequences of 0.2 beside keys of 0.1, and is not migrated";
            findings.error(&format!("{at}/sequences"), "migrate", message);
        }
    }
    if items(old, stages_at).next().is_none() {
        findings.error(stages_at, "required", "a shipyard needs at least one stage");
    }
}

/// A stage on its way.
struct Step<'a> {
    name: &'a str,
    stage: &'a Value,
    notes: &'a mut Vec<String>,
}

impl Step<'_> {
    /// The stage in words of 0.2. `before` is the last stage before it that delivers.
    fn migrated(&mut self, before: &mut Option<String>) -> Value {
        let tasks = self.delivery();
        let mut sequences = Vec::new();
        if !tasks.is_empty() {
            let mut delivery = Map::from_iter([("name".to_owned(), json!(DELIVERY))]);
            if let Some(before) = before.replace(self.name.to_owned()) {
                delivery.insert("triggeredOn".to_owned(), json!([{"event": format!("{before}.{DELIVERY}.finished")}]));
            }
            delivery.insert("tasks".to_owned(), json!(tasks));
            sequences.push(Value::Object(delivery));
            sequences.extend(self.rollback());
        }
        sequences.extend(self.remediation());
        self.unknown();
        match sequences.is_empty() {
            true => json!({"name": self.name}),
            false => json!({"name": self.name, "sequences": sequences}),
        }
    }

    fn note(&mut self, note: impl std::fmt::Display) {
        self.notes.push(format!("{}: {note}", self.name));
    }

    fn delivery(&mut self) -> Vec<Value> {
        let (strategy, test) = (text_at(self.stage, "/deployment_strategy"), text_at(self.stage, "/test_strategy"));
        let mut tasks = Vec::new();
        tasks.extend(self.approval());
        let written = if strategy == BLUE_GREEN { BLUE_GREEN_0_2 } else { strategy };
        if !strategy.is_empty() {
            tasks.push(json!({"name": "deployment", "properties": {"deploymentstrategy": written}}));
        }
        if strategy != written {
            self.note("`blue_green_service` is `blue_green`; an executor that deploys, such as Keptn's helm-service, may know the former alone");
        }
        if !test.is_empty() {
            tasks.push(json!({"name": "test", "properties": {"teststrategy": test}}));
            tasks.push(json!({"name": "evaluation"}));
        }
        if !strategy.is_empty() {
            tasks.push(json!({"name": "release"}));
        }
        tasks
    }

    /// What is not said is automatic, and in 0.2 it would be manual.
    fn approval(&mut self) -> Option<Value> {
        let approval = self.stage.get("approval_strategy").filter(|approval| !approval.is_null())?;
        let is_manual = |key: &str| text_at(approval, key) == "manual" || approval == "manual";
        let word = |key: &str| if is_manual(key) { "manual" } else { "automatic" };
        let properties = json!({"pass": word("/pass"), "warning": word("/warning")});
        self.note("`approval` comes before the deployment of its stage, as the last specification of 0.1 has it");
        Some(json!({"name": "approval", "properties": properties}))
    }

    /// Keptn went back by itself where a new version stood beside the old one and its evaluation failed.
    fn rollback(&self) -> Option<Value> {
        let is_judged = !text_at(self.stage, "/test_strategy").is_empty();
        if !is_judged || text_at(self.stage, "/deployment_strategy") != BLUE_GREEN {
            return None;
        }
        let event = format!("{}.{DELIVERY}.finished", self.name);
        let trigger = json!({"event": event, "selector": {"match": {"result": "fail"}}});
        Some(json!({"name": "rollback", "triggeredOn": [trigger], "tasks": [{"name": "rollback"}]}))
    }

    fn remediation(&mut self) -> Option<Value> {
        let strategy = text_at(self.stage, "/remediation_strategy");
        if strategy != "automated" {
            if !strategy.is_empty() {
                self.note(format!("`remediation_strategy: {strategy}` has enabled nothing, and is gone"));
            }
            return None;
        }
        let on = ["problem.open", "remediation.in-progress"];
        let triggers = on.map(|event| json!({"event": format!("{}.{event}", self.name)}));
        let tasks = json!([
            {"name": "remediation"},
            {"name": "test", "properties": {"teststrategy": "real_user"}},
            {"name": "evaluation"},
        ]);
        Some(json!({"name": "remediation", "triggeredOn": triggers, "tasks": tasks}))
    }

    fn unknown(&mut self) {
        const MIGRATED: [&str; 5] =
            ["name", "deployment_strategy", "test_strategy", "approval_strategy", "remediation_strategy"];
        let keys: Vec<String> = self.stage.as_object().into_iter().flat_map(Map::keys).cloned().collect();
        for key in keys.iter().filter(|key| !MIGRATED.contains(&key.as_str())) {
            let known = if STAGE_KEYS_0_1.contains(&key.as_str()) { "has no counterpart" } else { "is no key of 0.1" };
            self.note(format!("`{key}` {known}, and is gone"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::shipyard_problems;

    const SEED: &str = include_str!("../../../tests/manifest/shipyard-0.1.yaml");

    fn migrated(text: &str) -> Migrated {
        let migrated = shipyard("shipyard.yaml", text).unwrap_or_else(|problem| unreachable!("{problem}\n{text}"));
        assert_eq!(shipyard_problems(&migrated.text), [] as [&str; 0], "{}", migrated.text);
        let again = shipyard("shipyard.yaml", &migrated.text).expect("there is nothing to do");
        assert_eq!((again.text, again.names.len()), (migrated.text.clone(), 0));
        migrated
    }

    #[test]
    fn the_seeds_example_becomes_what_the_seed_shows_without_its_slips() {
        let migrated = migrated(SEED);
        assert_eq!(migrated.text, include_str!("../../../tests/manifest/shipyard-0.1-migrated.yaml"));
        assert_eq!(migrated.names, ["dev", "staging", "production"]);
        let of = "`blue_green_service` is `blue_green`; an executor that deploys, such as Keptn's helm-service, may know the former alone";
        let strategies = [format!("staging: {of}"), format!("production: {of}")];
        let expected: Vec<&str> = strategies.iter().map(String::as_str).chain(SLIPS).collect();
        assert_eq!(migrated.notes, expected);
    }

    #[test]
    fn of_other_files_nothing_is_said_that_is_about_the_proposal() {
        let migrated = migrated(&SEED.replace("staging", "hardening"));
        assert!(migrated.text.contains("- event: hardening.artifact-delivery.finished"), "{}", migrated.text);
        assert_eq!(migrated.notes.len(), 2, "{:?}", migrated.notes);
        assert!(!migrated.notes.iter().any(|note| note.contains("proposal")), "{:?}", migrated.notes);
    }

    #[test]
    fn approval_and_remediation_are_handled_as_keptn_did() {
        let text = "# ours
apiVersion: spec.keptn.sh/0.1.7
kind: Shipyard
metadata: {name: shop}
spec:
  stages:
  - name: dev
    release_strategy: none
    color: red
  - name: 'on'
    deployment_strategy: direct
    approval_strategy: {pass: manual}
    remediation_strategy: manual
  - name: gates
  - name: live
    test_strategy: performance
    approval_strategy: {pass: automatic, warning: manual}
";
        let migrated = migrated_with(text);
        let expected = "apiVersion: spec.keptn.sh/0.2.2
kind: Shipyard
metadata:
  name: shop
spec:
  stages:
  - name: dev
  - name: \"on\"
    sequences:
    - name: artifact-delivery
      tasks:
      - name: approval
        properties:
          pass: manual
          warning: automatic
      - name: deployment
        properties:
          deploymentstrategy: direct
      - name: release
  - name: gates
  - name: live
    sequences:
    - name: artifact-delivery
      triggeredOn:
      - event: on.artifact-delivery.finished
      tasks:
      - name: approval
        properties:
          pass: automatic
          warning: manual
      - name: test
        properties:
          teststrategy: performance
      - name: evaluation
";
        assert_eq!(migrated.text, expected);
        let before = "`approval` comes before the deployment of its stage, as the last specification of 0.1 has it";
        let expected = [
            "dev: `release_strategy` has no counterpart, and is gone",
            "dev: `color` is no key of 0.1, and is gone",
            &*format!("on: {before}"),
            "on: `remediation_strategy: manual` has enabled nothing, and is gone",
            &*format!("live: {before}"),
            "the comment `# ours` stood at something that is gone",
        ];
        assert_eq!(migrated.notes, expected);
    }

    /// Stages in which nothing runs are warned of, as in 0.1.
    fn migrated_with(text: &str) -> Migrated {
        let migrated = shipyard("shipyard.yaml", text).unwrap_or_else(|problem| unreachable!("{problem}\n{text}"));
        let problems = shipyard_problems(&migrated.text);
        assert!(problems.iter().all(|problem| problem.contains("has no sequences")), "{problems:?}");
        migrated
    }

    #[test]
    fn what_cannot_be_migrated_is_refused_where_it_stands() {
        for (text, expected) in [
            (
                "stages:\n- name: Dev\n  deployment_strategy: direct\n",
                "shipyard.yaml:2:9: error: stages[0].name: the stage's name `Dev` must be",
            ),
            (
                "stages:\n- {name: a, test_strategy: functional}\n- name: a\n",
                "shipyard.yaml:3:9: error: stages[1].name: the stage `a` is declared twice",
            ),
            (
                "spec: {stages: [{name: a, test_strategy: functional, sequences: []}]}",
                "the stage has sequences of 0.2 beside keys of 0.1",
            ),
            ("stages: []\n", "a shipyard needs at least one stage"),
            ("stages:\n- name: a\n---\na: b\n", "the file has other documents"),
            ("stages: [", "shipyard.yaml:"),
        ] {
            let problem = shipyard("shipyard.yaml", text).expect_err(text).to_string();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }

    #[test]
    fn any_other_file_is_left_alone() {
        for text in ["apiVersion: spec.keptn.sh/0.2.0\nkind: Shipyard\nspec: {stages: [{name: a}]}\n", "a: b\n", ""] {
            let migrated = shipyard("a.yaml", text).expect(text);
            assert_eq!((migrated.text.as_str(), migrated.names.len(), migrated.notes.len()), (text, 0, 0));
        }
    }
}
