//! What a `Deployment` says in annotations: launchway's hooks, strategy and triggers, and OpenShift's image triggers.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::manifest::content_trigger;
use crate::manifest::findings::{Elsewhere, Findings};
use crate::manifest::pod_template::{CONTAINER_LISTS, items, text_at};
use crate::manifest::problem::Severity;
use crate::manifest::shape::nearest;
use crate::manifest::yaml::{self, Document, Position, push_segment};
use crate::model::object::CODE;

pub(in crate::manifest) const HOOKS: &str = "launchway.dev/hooks";
pub(in crate::manifest) const STRATEGY: &str = "launchway.dev/strategy";
pub(in crate::manifest) const TRIGGERS: &str = "launchway.dev/triggers";
/// Source: OpenShift's image trigger controller, which sets images of Kubernetes' own kinds by it.
pub(in crate::manifest) const IMAGE_TRIGGERS: &str = "image.openshift.io/triggers";

/// Those that say nothing of a `DeploymentConfig`.
pub(in crate::manifest) const INERT: [&str; 4] = [HOOKS, STRATEGY, TRIGGERS, IMAGE_TRIGGERS];

/// Annotations of this prefix are launchway's.
const OWN: &str = "launchway.dev/";
/// The annotations of a `Deployment` that are launchway's.
const KNOWN: [&str; 5] = [HOOKS, STRATEGY, TRIGGERS, content_trigger::ANNOTATION, CODE];

/// The annotations' texts, read as documents.
#[derive(Debug, Default)]
pub(super) struct Annotations {
    /// `pre`, `mid` and `post`.
    pub(super) hooks: Option<Annotation>,
    /// The fields of a deployment config's strategy.
    pub(super) strategy: Option<Annotation>,
    /// A deployment config's triggers.
    pub(super) triggers: Option<Annotation>,
    /// The same, from OpenShift's.
    pub(super) image_triggers: Vec<Value>,
}

/// One annotation.
#[derive(Debug)]
pub(super) struct Annotation {
    pointer: String,
    document: Arc<Document>,
}

impl Annotation {
    /// What it says.
    pub(super) fn value(&self) -> &Value {
        &self.document.value
    }

    /// That a value which is read at one pointer is what it says at `inner`.
    pub(super) fn says(&self, read: &str, inner: &'static str) -> Elsewhere {
        let within = Some((Arc::clone(&self.document), inner));
        Elsewhere { read: read.to_owned(), written: self.pointer.clone(), is_field: true, within }
    }
}

/// Takes them out of the metadata: they are read, and compared by what they mean.
pub(super) fn take(value: &mut Value, findings: &mut Findings<'_>) -> Annotations {
    let Some(all) = value.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
        return Annotations::default();
    };
    let mut taken =
        |name: &str| all.shift_remove(name).and_then(|text| Some((pointer(name), text.as_str()?.to_owned())));
    let [hooks, strategy, triggers, image_triggers] = [HOOKS, STRATEGY, TRIGGERS, IMAGE_TRIGGERS].map(&mut taken);
    for name in all.keys().filter(|name| name.starts_with(OWN)) {
        if [content_trigger::ANNOTATION, CODE].contains(&name.as_str()) {
            continue;
        }
        if let Some(meant) = nearest(name, KNOWN.into_iter()) {
            let problem = findings.error_at_key(&pointer(name), "misspelt", format!("there is no `{name}`"));
            problem.hint = Some(format!("did you mean `{meant}`?"));
        }
    }
    if all.is_empty()
        && let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.shift_remove("annotations");
    }
    let mut own = |found: Option<(String, String)>| found.and_then(|(pointer, text)| read(pointer, &text, findings));
    let (hooks, strategy, triggers) = (own(hooks), own(strategy), own(triggers));
    let image_triggers = image_triggers.and_then(|(pointer, text)| read(pointer, &text, findings));
    let image_triggers = image_triggers.map(|found| converted(&found, value, findings)).unwrap_or_default();
    Annotations { hooks, strategy, triggers, image_triggers }
}

fn pointer(name: &str) -> String {
    let mut pointer = "/metadata/annotations".to_owned();
    push_segment(&mut pointer, name);
    pointer
}

/// Reads the text of an annotation as one document.
fn read(pointer: String, text: &str, findings: &mut Findings<'_>) -> Option<Annotation> {
    let mut reading = yaml::read(text.as_bytes());
    for error in &reading.errors {
        findings.error_within(&pointer, error.position, error.code, error.message.clone()).hint = error.hint.clone();
    }
    let document = reading.documents.pop();
    match document.filter(|_| reading.documents.is_empty()) {
        Some(document) => {
            Some(Annotation { pointer, document: Arc::new(document) }).filter(|_| reading.errors.is_empty())
        }
        None if reading.errors.is_empty() => {
            let start = Position { line: 1, column: 1 };
            findings.error_within(&pointer, start, "invalid", "must be one YAML document");
            None
        }
        None => None,
    }
}

/// OpenShift's triggers of an image as those of a deployment config.
fn converted(found: &Annotation, content: &Value, findings: &mut Findings<'_>) -> Vec<Value> {
    let mut triggers = Vec::new();
    if !found.value().is_array() {
        findings.error(&found.pointer, "type", "must be a list");
    }
    for (index, trigger) in items(found.value(), "") {
        let mut tell = |severity: Severity, inner: &str, message: String| {
            let position = found.document.position(&format!("/{index}{inner}"));
            findings.error_within(&found.pointer, position, "invalid", message).severity = severity;
        };
        let Some(from) = trigger.get("from").filter(|from| from.is_object()) else {
            tell(Severity::Error, "", "a trigger has a `from`, the image that it follows".to_owned());
            continue;
        };
        let path = text_at(trigger, "/fieldPath");
        match container(path, content) {
            Some(name) => {
                let is_paused = matches!(trigger.get("paused"), Some(Value::Bool(true)) | Some(Value::String(_)));
                let mut params = json!({"containerNames": [name], "from": from});
                // As in a deployment config, `false` is what is not said.
                if !is_paused {
                    params["automatic"] = json!(true);
                }
                triggers.push(json!({"type": "ImageChange", "imageChangeParams": params}));
            }
            // OpenShift's API takes any such text.
            None => {
                let message = format!("`{path}` names no image of a container of the template");
                tell(Severity::Warning, "/fieldPath", message);
            }
        }
    }
    triggers
}

/// The container that a path such as `spec.template.spec.containers[?(@.name=="web")].image` leads to.
pub(in crate::manifest) fn container(path: &str, content: &Value) -> Option<String> {
    let path = path.trim_start_matches('$').trim_start_matches('.');
    let template = content.pointer("/spec/template")?;
    let in_list = |list: &&str| path.strip_prefix(&format!("spec.template{}[", list.replace('/', ".")));
    let list = CONTAINER_LISTS.iter().find(|list| in_list(list).is_some())?;
    let chosen = in_list(list)?.strip_suffix("].image")?;
    let mut containers = items(template, list).map(|(index, container)| (index, text_at(container, "/name")));
    let found = match chosen.strip_prefix("?(@.name==").and_then(|name| name.strip_suffix(')')) {
        Some(name) => {
            let name = name.trim_matches(['"', '\'']);
            containers.find(|(_, known)| *known == name)
        }
        None => containers.find(|(index, _)| chosen.parse() == Ok(*index)),
    };
    found.map(|(_, name)| name.to_owned())
}
