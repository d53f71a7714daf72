//! Plans, in the shape that `launchway plan -o json` prints.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::manifest;
use crate::model::object::Kind;
use crate::model::plan::{Change, Decision, Difference, Plan};
use crate::plan::line_diff::LineDiff;

/// What a revision would do, or did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanView {
    /// What it was compared with: a commit, or nothing.
    pub from: Option<String>,
    /// The revision.
    pub to: String,
    /// The plan's identity.
    pub digest: String,
    /// What is wrong with the revision.
    pub problems: Vec<Value>,
    /// What changes, stage by stage.
    pub changes: Vec<ChangeView>,
    /// The revisions whose deliveries, under way, bring a part of what it declares: nothing is left to do about that.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub carriers: BTreeSet<String>,
}

/// What happens to one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeView {
    /// The stage.
    pub stage: String,
    /// Where it lives.
    pub namespace: String,
    /// The service it is delivered with.
    pub service: String,
    /// What it is.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What is done: `create`, `deploy`, `scale`, `update`, `none`, `delete`, `wait`, `refuse`.
    pub decision: String,
    /// What differs.
    pub reasons: Vec<DifferenceView>,
    /// Why, in words.
    pub cause: String,
}

/// One value that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DifferenceView {
    /// Where.
    pub pointer: String,
    /// What is applied.
    pub old: Option<Value>,
    /// What is declared.
    pub new: Option<Value>,
}

impl PlanView {
    /// A stored plan; `from` is what was applied before.
    pub fn new(plan: &Plan, from: Option<String>) -> Self {
        let changes = plan.stages.iter().flat_map(|stage| {
            let services = stage.services.iter();
            services.flat_map(move |service| {
                let view = |change| {
                    ChangeView::new(
                        stage.stage.as_str(),
                        stage.destination.namespace.as_str(),
                        service.service.as_str(),
                        change,
                    )
                };
                let again = service.runs_again.as_ref().map(|why| {
                    let place = (stage.stage.as_str(), stage.destination.namespace.as_str(), service.service.as_str());
                    let name = stage.sequence.as_ref().map(|sequence| sequence.name.as_str());
                    ChangeView::runs_again(place, name.unwrap_or_default(), why)
                });
                service.changes.iter().map(view).chain(again)
            })
        });
        Self {
            from,
            to: plan.commit.to_string(),
            digest: plan.id.to_string(),
            problems: Vec::new(),
            changes: changes.collect(),
            carriers: plan.stages.iter().flat_map(|stage| stage.carried.values()).map(ToString::to_string).collect(),
        }
    }
}

impl ChangeView {
    /// What refuses a revision, where no object can be named.
    pub fn refused(file: &str, reason: &str) -> Self {
        Self {
            stage: String::new(),
            namespace: String::new(),
            service: String::new(),
            kind: String::new(),
            name: file.to_owned(),
            decision: Decision::Refuse.as_str().to_owned(),
            reasons: Vec::new(),
            cause: reason.to_owned(),
        }
    }

    /// A sequence that runs although nothing differs.
    fn runs_again((stage, namespace, service): (&str, &str, &str), sequence: &str, why: &str) -> Self {
        Self {
            stage: stage.to_owned(),
            namespace: namespace.to_owned(),
            service: service.to_owned(),
            kind: "Sequence".to_owned(),
            name: sequence.to_owned(),
            decision: Decision::Update.as_str().to_owned(),
            reasons: Vec::new(),
            cause: why.to_owned(),
        }
    }

    /// A change in its place.
    pub fn new(stage: &str, namespace: &str, service: &str, change: &Change) -> Self {
        let hidden = change.key.kind == Kind::Secret;
        let kind = change.kind();
        Self {
            stage: stage.to_owned(),
            namespace: namespace.to_owned(),
            service: service.to_owned(),
            kind: kind.to_string(),
            name: change.key.name.clone(),
            decision: change.decision.as_str().to_owned(),
            reasons: change.reasons.iter().map(|reason| DifferenceView::new(reason, &kind, hidden)).collect(),
            cause: change.cause.clone(),
        }
    }
}

/// A line of a difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DiffLine {
    /// `-`, `+`, or a space if it is the same on both sides.
    pub sign: char,
    /// Without the line's end.
    pub text: String,
}

impl DifferenceView {
    /// What differs, line by line.
    pub fn lines(&self) -> Vec<DiffLine> {
        let (old, new) = (text_of(self.old.as_ref()), text_of(self.new.as_ref()));
        let line = |(sign, text): (char, &str)| DiffLine { sign, text: text.trim_end_matches('\n').to_owned() };
        LineDiff::of(&old, &new).lines().map(line).collect()
    }

    fn new(difference: &Difference, kind: &Kind, hidden: bool) -> Self {
        let side = |value: &Option<Value>| match value {
            Some(_) if hidden => Some(Value::from("(hidden)")),
            value => value.clone(),
        };
        let pointer = manifest::as_written(kind, &difference.pointer);
        Self { pointer, old: side(&difference.old), new: side(&difference.new) }
    }
}

/// A value in lines: a text as it is, anything else as JSON, nothing as nothing.
fn text_of(value: Option<&Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::String(text)) => format!("{}\n", text.trim_end_matches('\n')),
        Some(value) => format!("{value:#}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::object::ObjectKey;

    #[test]
    fn only_the_lines_that_differ_are_marked() {
        let lines = |old: Value, new: Value| {
            let difference = DifferenceView { pointer: "/spec".into(), old: Some(old), new: Some(new) };
            difference.lines().into_iter().map(|line| (line.sign, line.text)).collect::<Vec<_>>()
        };
        let found = lines(Value::from("a\nb\n"), Value::from("a\nc\n"));
        assert_eq!(found, [(' ', "a".into()), ('-', "b".into()), ('+', "c".into())]);
        assert_eq!(lines(Value::from(1), Value::from(2)), [('-', "1".into()), ('+', "2".into())]);
    }

    #[test]
    fn what_a_secret_holds_is_not_shown() {
        let change = Change {
            reasons: vec![Difference {
                pointer: "/data/key".into(),
                old: None,
                new: Some(Value::from("aHVudGVyMg==")),
            }],
            cause: "config change".into(),
            ..Change::of(ObjectKey { kind: Kind::Secret, name: "web-session".into() }, Decision::Update)
        };
        let text = serde_json::to_string(&ChangeView::new("dev", "shop-dev", "web", &change)).expect("JSON");
        assert!(!text.contains("aHVudGVyMg") && text.contains("(hidden)"), "{text}");
    }
}
