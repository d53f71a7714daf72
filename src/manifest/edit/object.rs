//! The deployment configs of a file, where they stand in it.

use std::sync::Arc;

use serde_json::Value;

use super::change::{Change, below};
use super::{edit, problem};
use crate::manifest::deployment_config::{block_of, in_words_of_the_proposal};
use crate::manifest::object::type_of;
use crate::manifest::pod_template::{CONTAINER_LISTS, items, text_at};
use crate::manifest::problem::Problem;
use crate::manifest::yaml::{self, Document};
use crate::model::object::{Kind, Location};

/// A `DeploymentConfig` or a `Deployment` in a file.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which of the two.
    pub kind: Kind,
    /// Its name; in a template, with the parameters' own values.
    pub name: String,
    /// Where it stands.
    pub location: Location,
    /// The document that it is in, as [`edit`](super::edit()) counts.
    pub document: usize,
    /// JSON pointer to it in the document; empty unless it is in a list or a template.
    pub pointer: String,
    read: Arc<Document>,
}

/// The deployment configs of a file, also those in its lists and templates.
///
/// # Errors
/// What is wrong with the file.
pub fn configs(file: &str, text: &str) -> Result<Vec<Config>, Box<Problem>> {
    let reading = yaml::read(text.as_bytes());
    if let Some(error) = reading.errors.first() {
        return Err(Box::new(problem(file, error)));
    }
    let mut found = Vec::new();
    for (document, read) in reading.documents.into_iter().map(Arc::new).enumerate() {
        collect(&read, "", &[], &mut |pointer, kind, name| {
            let yaml::Position { line, column } = read.position(pointer);
            let location = Location { file: file.to_owned(), line, column };
            let (pointer, read) = (pointer.to_owned(), Arc::clone(&read));
            found.push(Config { kind, name, location, document, pointer, read });
        });
    }
    Ok(found)
}

/// A parameter of a template and its own value.
type Parameter<'a> = (&'a str, &'a str);

fn collect(read: &Document, at: &str, parameters: &[Parameter<'_>], take: &mut dyn FnMut(&str, Kind, String)) {
    let value = read.value.pointer(at).unwrap_or(&Value::Null);
    let inside = |key: &str| -> Vec<String> {
        let count = items(value, &format!("/{key}")).count();
        (0..count).map(|index| format!("{at}/{key}/{index}")).collect()
    };
    match type_of(value) {
        Some(("v1" | "apps.openshift.io/v1", "DeploymentConfig")) => {
            let name = match text_at(value, "/metadata/name") {
                "" => text_at(value, "/id"), // as in the proposal
                name => name,
            };
            take(at, Kind::DeploymentConfig, expanded(name, parameters));
        }
        Some(("apps/v1", "Deployment")) => {
            take(at, Kind::Deployment, expanded(text_at(value, "/metadata/name"), parameters));
        }
        Some((_, "Template")) if at.is_empty() || parameters.is_empty() => {
            let named = |(_, parameter): (usize, &'_ Value)| {
                parameter
                    .get("name")
                    .and_then(Value::as_str)
                    .map(|name| (name.to_owned(), text_at(parameter, "/value").to_owned()))
            };
            let own: Vec<(String, String)> = items(value, "/parameters").filter_map(named).collect();
            let own: Vec<Parameter<'_>> = own.iter().map(|(name, value)| (&**name, &**value)).collect();
            inside("objects").iter().for_each(|pointer| collect(read, pointer, &own, take));
        }
        Some((_, kind)) if kind.ends_with("List") => {
            inside("items").iter().for_each(|pointer| collect(read, pointer, parameters, take));
        }
        _ => {}
    }
}

fn expanded(name: &str, parameters: &[Parameter<'_>]) -> String {
    parameters
        .iter()
        .fold(name.to_owned(), |name, (parameter, value)| name.replace(&format!("${{{parameter}}}"), value))
}

impl Config {
    /// What is written of it.
    pub fn value(&self) -> &Value {
        self.read.value.pointer(&self.pointer).unwrap_or(&Value::Null)
    }

    /// The type of its kind as `oc` calls it, with its name.
    pub fn title(&self) -> String {
        let kind = if self.kind == Kind::Deployment { "deployment.apps" } else { "deploymentconfig.apps.openshift.io" };
        format!("{kind}/{}", self.name)
    }

    /// The names of its containers, those that only run at first among them if asked for.
    pub fn containers(&self, with_initial: bool) -> Vec<&str> {
        let lists = if with_initial { &CONTAINER_LISTS[..] } else { &["/spec/containers"] };
        let template = self.value().pointer("/spec/template").unwrap_or(&Value::Null);
        lists.iter().flat_map(|list| items(template, list)).map(|(_, container)| text_at(container, "/name")).collect()
    }

    /// The names of its volumes.
    pub fn volumes(&self) -> Vec<&str> {
        items(self.value(), "/spec/template/spec/volumes").map(|(_, volume)| text_at(volume, "/name")).collect()
    }

    /// A problem of it.
    pub(in crate::manifest) fn problem(&self, pointer: &str, message: impl Into<String>) -> Box<Problem> {
        let yaml::Position { line, column } = self.read.position(&format!("{}{pointer}", self.pointer));
        let location = Location { file: self.location.file.clone(), line, column };
        Box::new(Problem::error(&location, "edit", message))
    }

    /// What is written in them is in other places than the search expects.
    pub(super) fn refuse_the_proposals_words(&self) -> Result<(), Box<Problem>> {
        let Some(place) = in_words_of_the_proposal(self.value()) else { return Ok(()) };
        let message = "this is in the words of a proposal, in which nothing is changed";
        let hint = "write `spec.template` and `spec.strategy`, or change it by hand";
        Err(Box::new(self.problem(place, message).hint(hint)))
    }

    /// The block of parameters of a strategy, given as it is written.
    pub(super) fn block(&self, strategy: &Value) -> Result<&'static str, Box<Problem>> {
        self.refuse_the_proposals_words()?;
        match text_at(strategy, "/type") {
            "Custom" => Err(self.problem("/spec/strategy", "a strategy that is `Custom` has no hooks")),
            kind => Ok(block_of(kind)),
        }
    }

    /// The text of the file with changes at pointers of this one.
    pub(in crate::manifest) fn with(&self, text: &str, changes: Vec<Change>) -> Result<String, Box<Problem>> {
        let inside = |change: Change| Change { pointer: format!("{}{}", self.pointer, change.pointer), ..change };
        let changes: Vec<Change> = changes.into_iter().map(inside).collect();
        edit(&self.location.file, text, self.document, &changes)
    }

    /// The text of an annotation, unless there is none.
    pub(super) fn annotation(&self, name: &str) -> Option<&str> {
        let text = self.value().pointer(&below("/metadata/annotations", name))?.as_str()?;
        Some(text).filter(|text| !text.trim().is_empty())
    }

    /// What an annotation says; null if there is none.
    pub(super) fn said(&self, name: &str) -> Result<Value, Box<Problem>> {
        let Some(text) = self.annotation(name) else { return Ok(Value::Null) };
        let mut reading = yaml::read(text.as_bytes());
        let pointer = below("/metadata/annotations", name);
        match (reading.errors.first(), reading.documents.pop()) {
            (Some(error), _) => Err(self.problem(&pointer, error.message.clone())),
            (None, found) => Ok(found.map(|document| document.value).unwrap_or_default()),
        }
    }

    /// Changes of what an annotation says as one of its text, which is `absent` where there is none.
    pub(super) fn in_annotation(
        &self,
        name: &str,
        absent: &str,
        changes: &[Change],
    ) -> Result<Option<Change>, Box<Problem>> {
        let pointer = below("/metadata/annotations", name);
        let text = self.annotation(name).unwrap_or(absent);
        let new = edit(&self.location.file, text, 0, changes).map_err(|problem| {
            let inner = yaml::Position { line: problem.line, column: problem.column };
            let yaml::Position { line, column } =
                self.read.position_within(&format!("{}{pointer}", self.pointer), inner);
            Box::new(Problem { line, column, ..*problem })
        })?;
        Ok((new != text).then(|| Change::set(pointer, new)))
    }
}
