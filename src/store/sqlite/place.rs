//! Where a record stands: its table and the columns of its key.

use crate::model::ids::ServiceKey;
use crate::model::unique_name::UniqueName;
use crate::store::RecordKey;
use crate::store::record::kind_text;

/// A record's table, and the columns that it is found by.
pub(super) struct Place {
    /// The table.
    pub(super) table: &'static str,
    /// The columns of the key, with their values.
    pub(super) keys: Vec<(&'static str, String)>,
}

/// Where the record of a key stands.
pub(super) fn place(key: &RecordKey) -> Place {
    let at = |table, keys: Vec<(&'static str, String)>| Place { table, keys };
    match key {
        RecordKey::Run(id) => at("runs", vec![("id", id.to_string())]),
        RecordKey::Config(key) => {
            let (project, stage) = (key.project.to_string(), key.stage.to_string());
            at("configs", vec![("project", project), ("stage", stage), ("name", key.name.clone())])
        }
        RecordKey::Object(place) => {
            let (project, stage) = (place.project.to_string(), place.stage.to_string());
            let (kind, name) = (kind_text(&place.key.kind), place.key.name.clone());
            at("objects", vec![("project", project), ("stage", stage), ("kind", kind), ("name", name)])
        }
        RecordKey::Repository(name) => at("repositories", vec![("name", name.to_string())]),
        RecordKey::Slot(service) => at("slots", of_service(service)),
        RecordKey::Passed(key) => {
            let mut keys = of_service(&key.service);
            keys.push(("content", key.content.to_string()));
            at("passed", keys)
        }
        RecordKey::Holds(project) => at("holds", vec![("project", project.to_string())]),
        RecordKey::Name(key) => {
            let (kind, name) = match key {
                UniqueName::Project(name) => ("project", name.to_string()),
                UniqueName::Namespace(name) => ("namespace", name.to_string()),
            };
            at("names", vec![("kind", kind.to_owned()), ("name", name)])
        }
    }
}

fn of_service(service: &ServiceKey) -> Vec<(&'static str, String)> {
    let ServiceKey { project, stage, service } = service;
    vec![("project", project.to_string()), ("stage", stage.to_string()), ("service", service.to_string())]
}
