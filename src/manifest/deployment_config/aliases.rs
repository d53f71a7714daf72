//! The words of the proposals that OpenShift's deployments come from, in the places of those that were shipped.
//!
//! Source: "deployment hooks" (`lifecycle` on the strategy) and "deployments" (no `spec`, `controllerTemplate`, and the
//! repository and tag of an image trigger). The policy `Continue` is among the defaults.

use serde_json::{Map, Value, json};

use crate::manifest::findings::Findings;
use crate::manifest::pod_template::text_at;

/// Moves what is written under an older name; a second time changes nothing.
pub(super) fn exchange(value: &mut Value, findings: &mut Findings<'_>) {
    without_spec(value, findings);
    if value.get("spec").is_none_or(|spec| !spec.is_object()) {
        return;
    }
    strategy_in_template(value, findings);
    for holder in ["/spec/controllerTemplate", "/spec/template/controllerTemplate"] {
        controller_template(value, holder, findings);
    }
    lifecycle(value, findings);
    let triggers = value.pointer("/spec/triggers").and_then(Value::as_array).map_or(0, Vec::len);
    for index in 0..triggers {
        image_trigger(value, &format!("/spec/triggers/{index}/imageChangeParams"), findings);
    }
}

/// Where the proposal's words are in a deployment config, if any are by which its fields are in other places than now.
pub(crate) fn in_words_of_the_proposal(value: &Value) -> Option<&'static str> {
    let places = [("/spec/controllerTemplate", "/spec"), ("/spec/template/controllerTemplate", "/spec")];
    let place = places.into_iter().find(|(old, _)| value.pointer(old).is_some()).map(|(_, place)| place);
    place.or_else(|| has_no_spec(value).then_some("/template"))
}

/// Whether it is as in the proposal, which has no `spec`; what lacks one by mistake is not.
fn has_no_spec(value: &Value) -> bool {
    value.get("spec").is_none_or(Value::is_null) && value.pointer("/template/controllerTemplate").is_some()
}

/// The proposal has what is declared beside the name and not in a `spec`, and how far it is beside that.
fn without_spec(value: &mut Value, findings: &mut Findings<'_>) {
    if !has_no_spec(value) {
        return;
    }
    let Some(fields) = value.as_object_mut() else { return };
    for reported in ["latestVersion", "details"] {
        fields.remove(reported);
    }
    fields.insert("spec".to_owned(), json!({}));
    fields.entry("metadata").or_insert_with(|| json!({}));
    for (from, to) in [
        ("/id", "/metadata/name"),
        ("/labels", "/metadata/labels"),
        ("/template", "/spec/template"),
        ("/triggers", "/spec/triggers"),
    ] {
        move_to(value, from, to, findings);
    }
}

/// The proposal's `template` holds the strategy beside what is deployed.
fn strategy_in_template(value: &mut Value, findings: &mut Findings<'_>) {
    if value.pointer("/spec/template/controllerTemplate").is_some() {
        move_to(value, "/spec/template/strategy", "/spec/strategy", findings);
    }
}

/// The replication controller that is deployed: replicas, selector and pod template in one.
fn controller_template(value: &mut Value, holder: &str, findings: &mut Findings<'_>) {
    let Some(controller) = value.pointer_mut(holder).filter(|controller| controller.is_object()).map(Value::take)
    else {
        return;
    };
    // What it is put into may be what it was in.
    remove(value, holder);
    if holder.starts_with("/spec/template/") {
        remove(value, "/spec/template");
    }
    let Value::Object(controller) = controller else { return };
    for (key, part) in controller {
        let from = format!("{holder}/{key}");
        let to = match key.as_str() {
            "replicaSelector" => "/spec/selector".to_owned(),
            "podTemplate" => "/spec/template".to_owned(),
            key => format!("/spec/{key}"),
        };
        put(value, part, &from, &to, findings);
    }
}

/// Hooks beside the strategy's parameters, whatever its type.
fn lifecycle(value: &mut Value, findings: &mut Findings<'_>) {
    let block = if text_at(value, "/spec/strategy/type") == "Recreate" { "recreateParams" } else { "rollingParams" };
    for point in ["pre", "mid", "post"] {
        let to = format!("/spec/strategy/{block}/{point}");
        move_to(value, &format!("/spec/strategy/lifecycle/{point}"), &to, findings);
    }
    let is_empty = |lifecycle: &Value| lifecycle.as_object().is_some_and(Map::is_empty);
    if value.pointer("/spec/strategy/lifecycle").is_some_and(is_empty) {
        remove(value, "/spec/strategy/lifecycle");
    }
}

fn image_trigger(value: &mut Value, params: &str, findings: &mut Findings<'_>) {
    let from = format!("{params}/repositoryName");
    let Some(Value::String(repository)) = value.pointer(&from).cloned() else { return };
    let tag = match text_at(value, &format!("{params}/tag")) {
        "" => "latest".to_owned(),
        tag => tag.to_owned(),
    };
    for key in ["repositoryName", "tag"] {
        remove(value, &format!("{params}/{key}"));
    }
    let source = json!({"kind": "ImageStreamTag", "name": format!("{repository}:{tag}")});
    put(value, source, &from, &format!("{params}/from"), findings);
}

fn move_to(value: &mut Value, from: &str, to: &str, findings: &mut Findings<'_>) {
    if let Some(part) = value.pointer_mut(from).map(Value::take) {
        remove(value, from);
        put(value, part, from, to, findings);
    }
}

/// Puts a part where it belongs, unless something stands there.
fn put(value: &mut Value, part: Value, from: &str, to: &str, findings: &mut Findings<'_>) {
    if part.is_null() {
        return;
    }
    if value.pointer(to).is_some_and(|other| !other.is_null()) {
        let message = format!("this is `{}`, which is there too", crate::manifest::problem::field_path(to));
        findings.error_at_key(from, "duplicate", message).hint = Some("remove one of the two".to_owned());
        return;
    }
    let Some((parent, key)) = to.rsplit_once('/') else { return };
    if value.pointer(parent).is_none_or(Value::is_null) {
        put(value, json!({}), from, parent, findings);
    }
    if let Some(parent) = value.pointer_mut(parent).and_then(Value::as_object_mut) {
        parent.insert(key.to_owned(), part);
        findings.moved(from, to);
    }
}

fn remove(value: &mut Value, pointer: &str) {
    let Some((parent, key)) = pointer.rsplit_once('/') else { return };
    if let Some(parent) = value.pointer_mut(parent).and_then(Value::as_object_mut) {
        parent.remove(key);
    }
}
