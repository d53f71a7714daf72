//! What pods do not start without: objects, and keys of them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::findings::Findings;
use super::object::Declared;
use super::pod_template::references::Reference;
use super::problem::Problem;
use super::shape::nearest;
use crate::model::ids::StageName;
use crate::model::object::{Kind, Location, ObjectKey};
use crate::model::project::StageObjects;

/// An object without which pods do not start.
#[derive(Debug)]
pub(crate) struct Need {
    pub(crate) key: ObjectKey,
    /// Where it is named first.
    location: Location,
    /// The keys of it that pods do not start without either, and where each is named first.
    entries: BTreeMap<String, Location>,
}

impl Need {
    /// Whether the same is needed, wherever it is named.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.key == other.key && self.entries.keys().eq(other.entries.keys())
    }
}

/// Each object that pods do not start without, once.
pub(crate) fn needs(references: &[Reference], findings: &Findings<'_>) -> Vec<Need> {
    let mut needs: Vec<Need> = Vec::new();
    for Reference { key, pointer, entries, .. } in references.iter().filter(|reference| !reference.optional) {
        let place = needs.iter().position(|need| need.key == *key).unwrap_or_else(|| {
            let location = findings.location(pointer);
            needs.push(Need { key: key.clone(), location, entries: BTreeMap::new() });
            needs.len() - 1
        });
        for (entry, at) in entries {
            needs[place].entries.entry(entry.clone()).or_insert_with(|| findings.location(at));
        }
    }
    needs
}

/// The keys of a ConfigMap or Secret.
pub(crate) fn entries(content: &Value, kind: &Kind) -> BTreeSet<String> {
    let fields: &[&str] = match kind {
        Kind::ConfigMap => &["data", "binaryData"],
        Kind::Secret => &["data", "stringData"],
        _ => &[],
    };
    fields.iter().filter_map(|field| content.get(field)?.as_object()).flat_map(|map| map.keys().cloned()).collect()
}

/// What pods need and nothing brings: on the local runtime only files declare objects.
pub(crate) fn missing<'a>(
    stage: &StageName,
    needs: impl Iterator<Item = &'a Need>,
    objects: &StageObjects,
    declared: &[&Declared],
) -> Vec<Problem> {
    let entries: BTreeMap<&ObjectKey, &BTreeSet<String>> =
        declared.iter().map(|declared| (&declared.key, &declared.entries)).collect();
    let mut problems = Vec::new();
    for need in needs {
        match (objects.get(&need.key), entries.get(&need.key)) {
            (None, _) => problems.push(undeclared(stage, need, objects)),
            (Some(object), Some(entries)) => {
                let absent = need.entries.iter().filter(|(entry, _)| !entries.contains(*entry));
                problems
                    .extend(absent.map(|(entry, at)| without_entry((&need.key, &object.location), entry, at, entries)));
            }
            (Some(_), None) => {}
        }
    }
    problems
}

fn undeclared(stage: &StageName, Need { key, location, .. }: &Need, objects: &StageObjects) -> Problem {
    let (kind, name) = (key.kind.name(), &key.name);
    let message = format!("stage `{stage}` declares no {kind}/{name}, without which no pod starts here");
    let alike = objects.iter().filter(|object| object.key.kind == key.kind);
    let hint = match nearest(name, alike.map(|object| object.key.name.as_str())) {
        Some(near) => format!("did you mean `{near}`?"),
        None if key.kind == Kind::PersistentVolumeClaim => "declare it".to_owned(),
        None => "declare it, or write `optional: true` beside its name".to_owned(),
    };
    Problem::error(location, "not-found", message).warning().hint(hint)
}

fn without_entry(
    (key, declared): (&ObjectKey, &Location),
    entry: &str,
    at: &Location,
    entries: &BTreeSet<String>,
) -> Problem {
    let (kind, name) = (key.kind.name(), &key.name);
    let message = format!("{kind}/{name} has no key `{entry}`, without which no pod starts here");
    let hint = match nearest(entry, entries.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`? It is declared at {declared}"),
        None => format!("it is declared at {declared}: add the key there, or write `optional: true` beside its name"),
    };
    Problem::error(at, "not-found", message).warning().hint(hint)
}
