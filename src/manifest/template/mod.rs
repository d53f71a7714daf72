//! OpenShift's `Template`: objects with parameters, which have their own values in each stage.
//!
//! Source of the rules: OpenShift's `templateprocessing`, the library behind `oc process`.

mod expression;
mod parameters;
mod substitute;

use serde_json::{Map, Value};

use super::findings::{Findings, Moved};
use super::pod_template::{items, text_at};
use super::shape::template::TEMPLATE;
use super::shape::{Strictness, check};
use super::slip;
use super::stage_context::StageContext;
use crate::model::object::GENERATED;
use substitute::{Budget, names_a_parameter};

/// Two spellings of one thing.
pub(crate) const API_VERSIONS: [&str; 2] = ["template.openshift.io/v1", "v1"];
/// How much the values of parameters may add to a template, in bytes.
const MAX_GROWTH: usize = 32 << 20;
/// Shorter values are found in too much that has nothing to do with them.
const SHORTEST_SECRET: usize = 4;

/// One object of a template, with values in the places of parameters.
#[derive(Debug)]
pub(crate) struct Expanded {
    pub(crate) value: Value,
    /// Where it stands in the template.
    pub(crate) pointer: String,
    /// What stands under another key than it is written.
    pub(crate) moved: Vec<Moved>,
}

/// What a template is in a stage.
#[derive(Debug, Default)]
pub(crate) struct Expansion {
    pub(crate) objects: Vec<Expanded>,
    pub(crate) generated: Generated,
}

/// The values that were made up, which nobody is shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Generated(Vec<String>);

/// Whether a document is one, or a list that may hold some.
pub(crate) fn may_be_in(value: &Value) -> bool {
    match super::object::type_of(value) {
        Some((_, "Template")) => true,
        Some((_, kind)) if kind.ends_with("List") => items(value, "/items").any(|(_, item)| may_be_in(item)),
        _ => false,
    }
}

/// The objects of a template for a stage; none if anything is wrong with the template.
pub(crate) fn expand(template: &Value, file: &str, context: &StageContext, findings: &mut Findings<'_>) -> Expansion {
    let mut head = template.clone();
    check(&mut head, &TEMPLATE, Strictness::Users, findings);
    slip::in_template(template, findings);
    let name = match text_at(&head, "/metadata/name") {
        "" => file,
        name => name,
    };
    let resolved = parameters::resolve(&head, name, context, findings);
    if findings.has_errors() {
        return Expansion::default();
    }
    let mut budget = Budget::new(MAX_GROWTH);
    let values = &resolved.values;
    let labels = head.get("labels").and_then(Value::as_object).into_iter().flatten();
    let labels: Map<String, Value> = labels
        .map(|(key, label)| {
            let label = substitute::in_text(label.as_str().unwrap_or_default(), values, &mut budget);
            (substitute::in_text(key, values, &mut budget), Value::String(label))
        })
        .collect();
    let mut objects = Vec::new();
    for (index, object) in items(template, "/objects") {
        let (mut value, moved) = substitute::substitute(&without_namespace(object), values, &mut budget);
        add_labels(&mut value, &labels);
        objects.push(Expanded { value, pointer: format!("/objects/{index}"), moved });
    }
    if budget.is_spent {
        let message = "the values of its parameters would add more than 32 MiB to the template";
        findings.error("/parameters", "limit", message);
        return Expansion::default();
    }
    Expansion { objects, generated: Generated(resolved.generated) }
}

/// A namespace that is the same wherever the template is used says nothing about where that is.
fn without_namespace(object: &Value) -> Value {
    let mut object = object.clone();
    if !names_a_parameter(text_at(&object, "/metadata/namespace"))
        && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.remove("namespace");
    }
    object
}

/// On the object's own metadata only, in place of labels that it has.
fn add_labels(object: &mut Value, labels: &Map<String, Value>) {
    if labels.is_empty() {
        return;
    }
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let own = metadata.entry("labels").or_insert_with(|| Value::Object(Map::new()));
    if own.is_null() {
        *own = Value::Object(Map::new());
    }
    if let Some(own) = own.as_object_mut() {
        own.extend(labels.clone());
    }
}

impl Generated {
    /// Notes in an object where such values are: plans say only that these differ.
    pub(crate) fn mark(&self, content: &mut Value) {
        let mut found = Vec::new();
        self.find(content, &mut String::new(), &mut found);
        let marks = Value::String(found.join("\n"));
        let metadata = content.get_mut("metadata").and_then(Value::as_object_mut);
        if let Some(metadata) = metadata.filter(|_| !found.is_empty()) {
            let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
            if let Some(annotations) = annotations.as_object_mut() {
                annotations.insert(GENERATED.to_owned(), marks);
            }
        }
    }

    fn find(&self, value: &Value, pointer: &mut String, found: &mut Vec<String>) {
        let length = pointer.len();
        match value {
            Value::String(text) if self.is_in(text) => found.push(pointer.clone()),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    super::yaml::push_segment(pointer, &index.to_string());
                    self.find(item, pointer, found);
                    pointer.truncate(length);
                }
            }
            Value::Object(map) => {
                for (key, value) in map {
                    super::yaml::push_segment(pointer, key);
                    self.find(value, pointer, found);
                    pointer.truncate(length);
                }
            }
            _ => {}
        }
    }

    fn is_in(&self, text: &str) -> bool {
        self.long_enough().any(|value| text.contains(value))
    }

    /// What was found, without them.
    pub(crate) fn hide(&self, text: &str) -> String {
        self.long_enough().fold(text.to_owned(), |text, value| text.replace(value, "(generated)"))
    }

    fn long_enough(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str).filter(|value| value.len() >= SHORTEST_SECRET)
    }
}

#[cfg(test)]
mod tests;
