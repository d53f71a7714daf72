//! Deployment configs in the shape of OpenShift's API. Source: `apps.openshift.io/v1`, and the older `v1` of the same.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::condition::ConditionView;
use super::config_detail::{shown_spec, stalled};
use super::deployment::DetailsView;
use crate::engine::deployment::observed::{Count, Observed};
use crate::manifest::field_path;
use crate::model::deployment_config::{AUTOSCALER, CONTROLLER_OF, CONTROLLERS};
use crate::model::object::{CONTENT, Object};
use crate::model::pod::{ObservedPod, PodPhase};
use crate::model::run::DeploymentRun;
use crate::model::state::ConfigState;
use crate::plan::{diff, generated};

/// The annotation of a generated deployment config that says which rollback it is.
pub const ROLLBACK: &str = "launchway.dev/rollback";

/// Which of its fields only launchway has, and which say nothing of what is declared.
const OWN: [&str; 3] = [AUTOSCALER, CONTROLLERS, CONTROLLER_OF];

/// What of an earlier version comes back, and which one that is. Source: `DeploymentConfigRollbackSpec`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct RollbackSpec {
    /// The version as an object, as the older of the two calls names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<ObjectReference>,
    /// The version; without one, the last complete one.
    pub revision: i64,
    /// Whether the triggers come back.
    pub include_triggers: bool,
    /// Whether the template comes back.
    pub include_template: bool,
    /// Whether the number of pods and the selector come back.
    pub include_replication_meta: bool,
    /// Whether the strategy comes back.
    pub include_strategy: bool,
}

/// An object, by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectReference {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Where it is.
    pub namespace: String,
    /// In which version of the API.
    pub api_version: String,
    /// Its identity.
    pub uid: String,
    /// Which state of it.
    pub resource_version: String,
    /// Which part of it.
    pub field_path: String,
}

/// A deployment config with everything that its shape tells.
#[derive(Clone, Debug)]
pub struct Described {
    /// It.
    pub state: ConfigState,
    /// The version of its record.
    pub record: u64,
    /// Whether nothing of it starts, because its file or a person says so.
    pub is_paused: bool,
    /// Its last deployment.
    pub run: Option<DeploymentRun>,
    /// Its pods, if a runtime can be asked.
    pub pods: Option<(Observed, u32)>,
}

impl Described {
    /// How many of its pods are ready.
    pub fn ready(pods: &[ObservedPod]) -> u32 {
        let ready = pods.iter().filter(|pod| matches!(pod.phase, PodPhase::Ready { .. })).count();
        u32::try_from(ready).unwrap_or(u32::MAX)
    }

    /// As it is.
    pub fn shown(&self, api_version: &str) -> Value {
        self.shape(api_version, &self.state.object, self.status())
    }

    /// As it would be, as version `version`; `rollback` is the one that it is.
    pub fn generated(
        &self,
        api_version: &str,
        object: &Object,
        version: u32,
        rollback: Option<&RollbackSpec>,
    ) -> Value {
        let mut status = self.status();
        status["latestVersion"] = json!(version);
        let mut shape = self.shape(api_version, object, status);
        if let Some(rollback) = rollback {
            shape["metadata"]["annotations"][ROLLBACK] = json!(json!(rollback).to_string());
        }
        shape
    }

    fn shape(&self, api_version: &str, object: &Object, status: Value) -> Value {
        let mut content = generated::shown(&object.content.value());
        let mut metadata = content.get_mut("metadata").map(Value::take).unwrap_or_default();
        metadata["name"] = json!(self.state.key.name);
        metadata["namespace"] = json!(self.state.destination.namespace.as_str());
        metadata["resourceVersion"] = json!(self.record.to_string());
        metadata["generation"] = json!(self.record);
        let mut spec = content.get_mut("spec").map(Value::take).unwrap_or_default();
        self.declare(&mut spec, object);
        json!({"kind": "DeploymentConfig", "apiVersion": api_version, "metadata": metadata, "spec": spec, "status": status})
    }

    /// Leaves of a spec what upstream has too, as it counts now.
    fn declare(&self, spec: &mut Value, object: &Object) {
        let Some(fields) = spec.as_object_mut() else { return };
        OWN.iter().for_each(|own| drop(fields.shift_remove(*own)));
        fields.insert("paused".to_owned(), json!(self.is_paused));
        // Who scaled it has said another number of pods than its file does.
        let declared = |object: &Object| object.content.at("/spec/replicas");
        if declared(object) == declared(&self.state.object)
            && let Ok(known) = self.state.spec()
        {
            fields.insert("replicas".to_owned(), json!(self.state.replicas(&known)));
        }
        let annotations = spec.pointer_mut("/template/metadata/annotations").and_then(Value::as_object_mut);
        annotations.map(|annotations| annotations.shift_remove(CONTENT)); // worked out from what Secrets hold
    }

    fn status(&self) -> Value {
        let state = &self.state;
        let mut status = json!({"latestVersion": state.latest_version, "observedGeneration": self.record});
        let spec = shown_spec(state).unwrap_or_default();
        let observed = self.pods.as_ref().map(|(observed, _)| observed);
        let available = ConditionView::available(&spec, &state.wanted, observed);
        let progressing = self.run.as_ref().map(|run| ConditionView::progressing(run, stalled(run, state, observed)));
        status["conditions"] = json!([available].into_iter().chain(progressing).collect::<Vec<_>>());
        if let Some(run) = &self.run {
            status["details"] = json!(DetailsView::from(run));
        }
        if let Some((observed, ready)) = &self.pods {
            let sum = |count: fn(&Count) -> u32| -> u32 { observed.versions.values().map(count).sum() };
            let available = sum(|count| count.available);
            status["replicas"] = json!(sum(|count| count.living));
            status["updatedReplicas"] = json!(observed.of(state.latest_version).living);
            status["readyReplicas"] = json!(ready);
            status["availableReplicas"] = json!(available);
            status["unavailableReplicas"] = json!(state.wanted.desired().saturating_sub(available));
        }
        status
    }
}

/// What differs between a deployment config as it is shown and as somebody wants it to be, by upstream's names; what is empty
/// counts as absent, and neither what a server says of an object nor how it is doing counts.
pub fn differences(shown: &Value, wished: &Value) -> Vec<String> {
    let declared = |config: &Value| {
        let metadata = |part: &str| config.pointer(&format!("/metadata/{part}")).cloned().unwrap_or_default();
        let spec = config.get("spec").cloned().unwrap_or_default();
        let mut declared =
            json!({"metadata": {"labels": metadata("labels"), "annotations": metadata("annotations")}, "spec": spec});
        prune(&mut declared);
        declared
    };
    let found = diff::diff(&declared(shown), &declared(wished));
    found.into_iter().map(|difference| field_path(&difference.pointer)).collect()
}

/// Leaves out what says nothing.
fn prune(value: &mut Value) {
    let says_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    match value {
        Value::Array(items) => items.iter_mut().for_each(prune),
        Value::Object(map) => {
            map.values_mut().for_each(prune);
            map.retain(|_, value| !says_nothing(value));
        }
        _ => {}
    }
}

/// Several deployment configs.
pub fn listed(api_version: &str, items: &[Described]) -> Value {
    let items: Vec<Value> = items
        .iter()
        .map(|config| {
            let mut shown = config.shown(api_version);
            // A list says once what all of it is.
            shown
                .as_object_mut()
                .map(|shown: &mut Map<String, Value>| (shown.shift_remove("kind"), shown.shift_remove("apiVersion")));
            shown
        })
        .collect();
    json!({"kind": "DeploymentConfigList", "apiVersion": api_version, "metadata": {}, "items": items})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_declared_is_compared_and_nothing_is_as_good_as_empty() {
        let shown = json!({
            "kind": "DeploymentConfig",
            "metadata": {"name": "web", "resourceVersion": "3", "labels": {"tier": "a"}},
            "spec": {"replicas": 2, "triggers": [], "template": {"spec": {"containers": [{"name": "main", "image": "a"}]}}},
            "status": {"latestVersion": 1},
        });
        let with = |pointer: &str, value: Value| {
            let mut changed = shown.clone();
            *changed.pointer_mut(pointer).expect("it is there") = value;
            changed
        };
        for (wished, expected) in [
            (with("/metadata/resourceVersion", json!("7")), vec![]),
            (with("/status", Value::Null), vec![]),
            (with("/spec/triggers", Value::Null), vec![]),
            (with("/spec/replicas", json!(3)), vec!["spec.replicas"]),
            (with("/metadata/labels/tier", json!("b")), vec!["metadata.labels.tier"]),
            (
                with("/spec/template/spec/containers/0/image", json!("b")),
                vec!["spec.template.spec.containers[0].image"],
            ),
        ] {
            assert_eq!(differences(&shown, &wished), expected, "{wished}");
        }
    }
}
