//! From files to declared objects: reading, defaults, validation. Pure.
//!
//! ```text
//!  files ─▶ discover ─▶ yaml ─▶ template ─▶ shape ─▶ deployment_config, core, task, … ─▶ snapshot ─▶ Project
//!           (which)     (value   (values    (keys,    (defaults, rules)                   (stages, services,
//!                        + place) of a stage) types)                                       images, duplicates)
//! ```

pub mod digest;
pub mod migrate;
pub mod project;
pub mod rollback;
pub mod service;
pub mod task;
pub mod yaml;

mod autoscaler;
mod code;
mod content_trigger;
mod core;
mod deployment;
mod deployment_config;
mod discover;
pub mod edit;
pub mod environment;
mod files;
mod findings;
mod foreign;
pub(crate) mod generated;
mod globs;
mod image;
mod image_circle;
mod image_stream;
pub mod image_trigger;
pub(crate) mod metadata;
pub(crate) mod names;
mod need;
mod object;
mod pod_template;
mod previews;
mod problem;
mod program;
mod quantity;
pub(crate) mod replication_controller;
mod shape;
mod shipyard;
mod slip;
mod snapshot;
mod stage_context;
mod template;

pub(crate) use object::{read_by_pods, referenced};
#[cfg(test)]
pub(crate) use shipyard::{shipyard_of, shipyard_problems};

pub use files::{Absence, Content, FileEntry, FileKind, Files, LARGEST};
pub use problem::{NOT_APPLIED, Problem, Severity, field_path};
pub(crate) use shape::nearest;
pub use snapshot::{Changed, Options, Outcome, Snapshot};

use serde_json::Value;

use crate::model::object::Kind;

/// Where a file of a kind says what an object's content has at a JSON pointer.
pub fn as_written(kind: &Kind, pointer: &str) -> String {
    match kind {
        Kind::Deployment => deployment::as_written(pointer),
        _ => pointer.to_owned(),
    }
}

/// Whether a file holds nothing but a shipyard, whatever it is called.
pub fn is_shipyard(bytes: &[u8]) -> bool {
    let documents = yaml::read(bytes).documents;
    !documents.is_empty() && documents.iter().all(|document| shipyard::is_one(&document.value))
}

/// The JSON Schema of a kind that users write, for editors; by its name in any case.
pub fn schema(kind: &str) -> Option<Value> {
    use shape::{
        deployment::DEPLOYMENT, deployment_config::DEPLOYMENT_CONFIG, image_stream::IMAGE_STREAM, own,
        replication_controller::REPLICATION_CONTROLLER, schema, template::TEMPLATE,
    };
    const OWN: [&str; 1] = ["launchway.dev/v1"];
    Some(match kind.to_ascii_lowercase().as_str() {
        "project" => schema::of(&own::PROJECT, "Project", &OWN),
        "task" => schema::of(&own::TASK, "Task", &OWN),
        "shipyard" => shipyard::schema(),
        "deploymentconfig" => schema::of(&DEPLOYMENT_CONFIG, "DeploymentConfig", &["apps.openshift.io/v1", "v1"]),
        "deployment" => schema::of(&DEPLOYMENT, "Deployment", &["apps/v1"]),
        "replicationcontroller" => schema::of(&REPLICATION_CONTROLLER, "ReplicationController", &["v1"]),
        "imagestream" => schema::of(&IMAGE_STREAM, "ImageStream", &["image.openshift.io/v1", "v1"]),
        "template" => schema::of(&TEMPLATE, "Template", &template::API_VERSIONS),
        _ => return None,
    })
}
