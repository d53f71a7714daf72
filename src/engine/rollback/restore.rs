//! What a deployment config becomes that goes back: which of its fields come from the earlier version, and which stay as
//! they are declared now. Source: OpenShift's proposal "Deployments", section "Rollbacks", table "Field Details".
//!
//! | field | comes back with |
//! |---|---|
//! | kind and API version, name, triggers, and everything that is not below | nothing |
//! | labels, strategy | the configuration |
//! | template and those of its replication controllers, number of pods, selector | the application |
//!
//! How many pods there are does not come back where an autoscaler says it. Triggers are the one deviation: the proposal has
//! them set to "non-auto" or suspended by a switch for all of them; they stay as they are, and the hold of the rollback is
//! that switch. The label that says which service it is delivered with stays too, or a rollback would move it.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::manifest::digest;
use crate::manifest::metadata::SERVICE_LABEL;
use crate::model::deployment_config::{AUTOSCALER, AUTOSCALER_POINTER, CONTROLLERS};
use crate::model::object::Object;
use crate::model::rollback::RollbackParts;
use crate::plan::generated;

/// What the pods look like, below `spec`.
const TEMPLATE: [&str; 2] = ["template", CONTROLLERS];
/// How many there are, and which.
const REPLICATION: [&str; 3] = ["replicas", "selector", "selectorExpressions"];

/// What is declared now, with parts of an earlier version.
pub(super) fn restore(now: &Object, earlier: &Object, parts: RollbackParts) -> Object {
    let (mut content, before) = (now.content.value(), earlier.content.value());
    if parts.template {
        TEMPLATE.iter().for_each(|field| take(&mut content, &before, "spec", field));
    }
    if parts.replication {
        let is_autoscaled = content.pointer(AUTOSCALER_POINTER).is_some();
        let is_left = |field: &&&str| is_autoscaled && **field == "replicas";
        let fields = REPLICATION.iter().filter(|field| !is_left(field));
        fields.for_each(|field| take(&mut content, &before, "spec", field));
    }
    if parts.strategy {
        take(&mut content, &before, "spec", "strategy");
    }
    if parts.labels {
        take_labels(&mut content, &before);
    }
    generated::mark_as_in(&mut content, &before);
    let mut object = now.clone();
    digest::exchange(&mut object, content);
    object
}

/// What was declared earlier, all of it, but for what says now how many pods there are.
pub(super) fn whole(now: &Object, earlier: &Arc<Object>) -> Arc<Object> {
    let autoscaler = now.content.at(AUTOSCALER_POINTER);
    if autoscaler == earlier.content.at(AUTOSCALER_POINTER) {
        return Arc::clone(earlier);
    }
    let mut content = earlier.content.value();
    take(&mut content, &now.content.value(), "spec", AUTOSCALER);
    let mut object = Object { autoscaled_at: now.autoscaled_at.clone(), ..Object::clone(earlier) };
    digest::exchange(&mut object, content);
    Arc::new(object)
}

/// A field as it was, absence included.
fn take(content: &mut Value, before: &Value, parent: &str, field: &str) {
    let was = before.get(parent).and_then(|parent| parent.get(field)).cloned();
    let Some(parent) = content.get_mut(parent).and_then(Value::as_object_mut) else { return };
    match was {
        Some(was) => drop(parent.insert(field.to_owned(), was)),
        None => drop(parent.remove(field)),
    }
}

fn take_labels(content: &mut Value, before: &Value) {
    let service = content.pointer("/metadata/labels").and_then(|labels| labels.get(SERVICE_LABEL)).cloned();
    take(content, before, "metadata", "labels");
    let Some(metadata) = content.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
        labels.remove(SERVICE_LABEL);
    }
    let Some(service) = service else { return };
    let labels = metadata.entry("labels").or_insert_with(|| Value::Object(Map::new()));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(SERVICE_LABEL.to_owned(), service);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::fixtures::object;
    use crate::model::object::GENERATED;

    fn with(content: Value) -> Object {
        let mut made = Object::clone(&object("a"));
        digest::exchange(&mut made, content);
        made
    }

    /// Every field of the table, with what its value says of its age.
    fn declared(age: &str) -> Value {
        json!({
            "kind": "DeploymentConfig",
            "metadata": {"name": "web", "labels": {"tier": age, SERVICE_LABEL: age}, "annotations": {"note": age}},
            "spec": {
                "replicas": age.len(),
                "selector": {"app": age},
                "strategy": {"type": age},
                "template": {"metadata": {"labels": {"app": age}}},
                "triggers": [{"type": age}],
                "minReadySeconds": age.len(),
                "revisionHistoryLimit": age.len(),
                "paused": false,
            },
        })
    }

    #[test]
    fn every_field_comes_back_with_its_part_and_with_no_other() {
        let (now, earlier) = (with(declared("new")), with(declared("earlier")));
        let (none, labels) = (RollbackParts { strategy: false, ..RollbackParts::CONFIG }, ["/metadata/labels/tier"]);
        let strategy = ["/spec/strategy/type"];
        let application = ["/spec/replicas", "/spec/selector/app", "/spec/template/metadata/labels/app"];
        let all = [&labels[..], &strategy, &application].concat();
        for (parts, come_back) in [
            (RollbackParts::ALL, &all[..]),
            (RollbackParts::CONFIG, &[labels[0], strategy[0]]),
            (RollbackParts::APPLICATION, &application),
            (RollbackParts { template: true, ..RollbackParts::NOTHING }, &application[2..]),
            (RollbackParts { replication: true, ..RollbackParts::NOTHING }, &application[..2]),
            (none, &labels),
        ] {
            let mut expected = declared("new");
            for pointer in come_back {
                let was = earlier.content.at(pointer).expect("it is declared");
                *expected.pointer_mut(pointer).expect("it is declared") = was;
            }
            let restored = restore(&now, &earlier, parts);
            assert_eq!(restored.content.value(), expected, "{parts:?}");
            assert_eq!(restored.digest, digest::of(&expected), "{parts:?}");
            assert_eq!((&restored.service, &restored.location), (&now.service, &now.location));
        }
    }

    #[test]
    fn what_an_autoscaler_says_never_comes_back() {
        let mut now = declared("new");
        now["spec"]["autoscaler"] = "hpa".into();
        let (now, earlier) = (with(now), Arc::new(with(declared("earlier"))));
        let restored = restore(&now, &earlier, RollbackParts::ALL);
        for (object, replicas) in [(&restored, 3), (&*whole(&now, &earlier), 7)] {
            assert_eq!(object.content.at("/spec/autoscaler"), Some("hpa".into()));
            assert_eq!(object.content.at("/spec/replicas"), Some(replicas.into()));
            assert_eq!(object.content.at("/spec/selector/app"), Some("earlier".into()));
        }
        assert_eq!(whole(&earlier, &Arc::new(now)).content.at("/spec/autoscaler"), None);
        assert!(Arc::ptr_eq(&whole(&earlier, &earlier), &earlier));
    }

    #[test]
    fn what_was_generated_stays_hidden() {
        let mut before = declared("earlier");
        before["metadata"]["annotations"][GENERATED] = "/spec/selector/app".into();
        let restored = restore(&with(declared("new")), &with(before), RollbackParts::ALL).content.value();
        let marks = restored["metadata"]["annotations"][GENERATED].as_str().expect("it is marked");
        assert!(marks.lines().any(|pointer| pointer == "/spec/selector/app"), "{marks}");
    }

    #[test]
    fn what_was_not_said_before_is_not_said_any_more() {
        let mut before = declared("earlier");
        before["metadata"] = json!({"name": "web"});
        before["spec"].as_object_mut().expect("a spec").remove("replicas");
        let restored = restore(&with(declared("new")), &with(before), RollbackParts::ALL).content.value();
        assert_eq!(restored["metadata"]["labels"], json!({SERVICE_LABEL: "new"}), "it stays where it is delivered");
        assert_eq!(restored["spec"].get("replicas"), None);
        assert_eq!(restored["metadata"]["annotations"], json!({"note": "new"}));
    }
}
