//! Deployment configs that are deployed anew when what they read changes, which upstream never does: opt-in, by an annotation.

use std::collections::BTreeSet;

use aws_lc_rs::digest::{Context, SHA256};
use serde_json::{Map, Value, json};

use super::digest::named;
use super::findings::Findings;
use super::pod_template::text_at;
use super::shape::nearest;
use crate::model::object::{CONTENT, Kind, Object, ObjectKey};

/// Says of a deployment config which kinds of objects that it reads deploy it when they change.
pub(crate) const ANNOTATION: &str = "launchway.dev/trigger-on";
const POINTER: &str = "/metadata/annotations/launchway.dev~1trigger-on";
const WORDS: [(&str, Kind); 2] = [("configmaps", Kind::ConfigMap), ("secrets", Kind::Secret)];

/// The kinds of objects whose content a deployment config follows.
pub(crate) fn kinds(content: &Value, findings: &mut Findings<'_>) -> BTreeSet<Kind> {
    let mut found = BTreeSet::new();
    for word in text_at(content, POINTER).split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match WORDS.iter().find(|(known, _)| *known == word) {
            Some((_, kind)) => drop(found.insert(kind.clone())),
            None => {
                let near = nearest(word, WORDS.iter().map(|(known, _)| *known));
                let problem =
                    findings.error(POINTER, "unsupported-value", format!("`{word}` is nothing to trigger on"));
                problem.hint = Some(match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("`{ANNOTATION}` takes `configmaps` and `secrets`, separated by commas"),
                });
            }
        }
    }
    found
}

/// Puts the identity of what a deployment config follows into its template, whose change is a change of it.
pub(crate) fn put<'a>(
    content: &mut Value,
    kinds: &BTreeSet<Kind>,
    references: &BTreeSet<ObjectKey>,
    object: impl Fn(&ObjectKey) -> Option<&'a Object>,
) {
    let mut context = Context::new(&SHA256);
    for object in references.iter().filter(|key| kinds.contains(&key.kind)).filter_map(object) {
        context.update(format!("{} {}\n", object.key, object.digest).as_bytes());
    }
    let Some(template) = content.pointer_mut("/spec/template").and_then(Value::as_object_mut) else { return };
    let map = |parent: &mut Map<String, Value>, key: &str| {
        let child = parent.entry(key).or_insert(Value::Null);
        if !child.is_object() {
            *child = json!({});
        }
    };
    map(template, "metadata");
    let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    map(metadata, "annotations");
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.insert(CONTENT.to_owned(), json!(named(&context.finish()).as_str()));
    }
}
