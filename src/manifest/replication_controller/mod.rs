//! Kubernetes' `ReplicationController`, where its labels say which `DeploymentConfig` deploys it: its keys, rules and defaults,
//! then the deployment config without triggers and strategy that it is. Its template becomes a part of what deploys it, so that a
//! change of one is a change of the other. Source of the label: OpenShift, which gives it to the controllers that it makes.

mod leader;

use serde_json::{Value, json};

use super::deployment_config;
use super::findings::Findings;
use super::pod_template::defaults::set_absent;
use super::shape::replication_controller::REPLICATION_CONTROLLER;
use super::shape::{Strictness, check};
use super::stage_context::Terms;
use super::yaml::push_segment;
use super::{metadata, names};
use crate::model::deployment_config::{CONTROLLER_OF, CONTROLLERS_POINTER};
use crate::model::object::{Kind, Location, ObjectKey};

pub(crate) use leader::{led, with_controllers};

/// The label that says which deployment config deploys a replication controller.
const LABEL: &str = "openshift.io/deployment-config.name";
/// Where it stands.
const LABEL_POINTER: &str = "/metadata/labels/openshift.io~1deployment-config.name";
/// What is read of a spec; what else a file says there has no effect.
const KEYS: [&str; 4] = ["replicas", "selector", "minReadySeconds", "template"];

/// To which deployment config a replication controller belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Belongs {
    /// Its name.
    pub(crate) to: String,
    /// Where it says so.
    pub(crate) said_at: Location,
    /// Where its selector stands, or would.
    pub(crate) selector_at: Location,
    /// The label of another service, if it has one.
    pub(crate) service: Option<(String, Location)>,
}

impl Belongs {
    /// The identity of the deployment config.
    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey { kind: Kind::DeploymentConfig, name: self.to.clone() }
    }
}

/// Whether an object's own labels say that a deployment config deploys it.
pub(crate) fn names_its_own(value: &Value) -> bool {
    metadata::label(value, LABEL).is_some()
}

/// Checks a document, applies every default, and leaves the content that is compared: that of a deployment config which starts
/// nothing by itself, with the kind in which it is declared.
pub(crate) fn normalise(value: &mut Value, terms: Terms, findings: &mut Findings<'_>) {
    check(value, &REPLICATION_CONTROLLER, Strictness::Users, findings);
    metadata::normalise(value, names::config, findings);
    let leader = metadata::label(value, LABEL).unwrap_or_default();
    if let Err(wrong) = names::config(&leader) {
        findings.error(LABEL_POINTER, "invalid", format!("`{leader}` {wrong}"));
    }
    if value.pointer("/metadata/name") == Some(&json!(leader)) {
        findings.error(LABEL_POINTER, "invalid", "a replication controller does not deploy itself").hint =
            Some("name the DeploymentConfig that deploys it, and give the two names of their own".to_owned());
    }
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
        spec.retain(|key, _| KEYS.contains(&key.as_str()));
        set_absent(spec, [("replicas", json!(1)), ("triggers", json!([]))]);
    }
    deployment_config::complete(value, Terms { strategy: None, ..terms }, findings);
    if let Some(content) = value.as_object_mut() {
        content.insert("kind".to_owned(), json!(Kind::ReplicationController.name()));
    }
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert(CONTROLLER_OF.to_owned(), json!(leader));
    }
}

/// To which deployment config a checked object belongs, if it is a replication controller.
pub(crate) fn belongs(content: &Value, findings: &Findings<'_>) -> Option<Belongs> {
    let is_one = content.get("kind").and_then(Value::as_str) == Some(Kind::ReplicationController.name());
    let leader = content.get("spec").filter(|_| is_one)?.get(CONTROLLER_OF)?.as_str()?;
    let service = metadata::label(content, metadata::SERVICE_LABEL);
    let place = "/metadata/labels/launchway.dev~1service";
    Some(Belongs {
        to: leader.to_owned(),
        said_at: findings.location(LABEL_POINTER),
        selector_at: findings.location("/spec/selector"),
        service: service.map(|service| (service, findings.location(place))),
    })
}

/// Where the template of a replication controller stands in the content of its deployment config.
pub(crate) fn place(name: &str) -> String {
    let mut pointer = CONTROLLERS_POINTER.to_owned();
    push_segment(&mut pointer, name);
    pointer
}

/// The replication controller that a pointer into the content of its deployment config is about, and where that stands in its
/// own.
pub(crate) fn inside(pointer: &str) -> Option<(String, String)> {
    let rest = pointer.strip_prefix(CONTROLLERS_POINTER)?.strip_prefix('/')?;
    let (name, rest) = rest.split_once('/').map_or((rest, String::new()), |(name, rest)| (name, format!("/{rest}")));
    Some((name.replace("~1", "/").replace("~0", "~"), format!("/spec/template{rest}")))
}

#[cfg(test)]
mod tests;
