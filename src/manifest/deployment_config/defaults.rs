//! Defaults of `apps.openshift.io/v1`, which hold for the spelling `v1` too: the two are one object.

use serde_json::{Map, Value, json};

use super::strategy::BLOCKS;
use super::trigger::names_container;
use crate::manifest::pod_template::defaults::{apply as apply_to_template, apply_to_variable, objects, set_absent};
use crate::manifest::pod_template::{CONTAINER_LISTS, items, text_at};
use crate::model::deployment_config::{DEFAULT_ACTIVE_DEADLINE, DEFAULT_STRATEGY_TIMEOUT};

/// How many pods there are unless the file says it.
pub(crate) fn apply_to_replicas(spec: &mut Map<String, Value>) {
    set_absent(spec, [("replicas", json!(0))]);
}

/// Applies all others; a second time changes nothing.
pub(crate) fn apply(value: &mut Value) {
    apply_to_followers(value);
    let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if let Some(template) = spec.get_mut("template") {
        apply_to_template(template);
    }
    let defaults = [
        ("test", json!(false)),
        ("paused", json!(false)),
        ("minReadySeconds", json!(0)),
        ("triggers", json!([{"type": "ConfigChange"}])),
        ("strategy", json!({})),
        ("revisionHistoryLimit", json!(10)),
    ];
    set_absent(spec, defaults);
    if let Some(labels) = spec.get("template").and_then(|template| template.pointer("/metadata/labels")).cloned() {
        set_absent(spec, [("selector", labels)]);
    }
    for trigger in objects(spec.get_mut("triggers")) {
        apply_to_trigger(trigger);
    }
    let only_container = only_container(spec);
    if let Some(strategy) = spec.get_mut("strategy").and_then(Value::as_object_mut) {
        apply_to_strategy(strategy, only_container.as_deref());
    }
}

/// What an image trigger brings is named by its digest, whatever the file says there: the policy does not change with that.
fn apply_to_followers(value: &mut Value) {
    let spec = value.get("spec").unwrap_or(&Value::Null);
    let template = spec.get("template").unwrap_or(&Value::Null);
    let follower = |list: &str, (index, container): (usize, &Value)| {
        names_container(spec, text_at(container, "/name")).then(|| format!("/spec/template{list}/{index}"))
    };
    let of_list = |list: &'static str| items(template, list).filter_map(move |it| follower(list, it));
    let followers: Vec<String> = CONTAINER_LISTS.into_iter().flat_map(of_list).collect();
    for place in followers {
        if let Some(container) = value.pointer_mut(&place).and_then(Value::as_object_mut) {
            set_absent(container, [("imagePullPolicy", json!("IfNotPresent"))]);
        }
    }
}

fn only_container(spec: &Map<String, Value>) -> Option<String> {
    match spec.get("template")?.pointer("/spec/containers")?.as_array()?.as_slice() {
        [container] => container.get("name")?.as_str().map(str::to_owned),
        _ => None,
    }
}

fn apply_to_trigger(trigger: &mut Map<String, Value>) {
    let from = trigger.get_mut("imageChangeParams").and_then(|params| params.get_mut("from"));
    let Some(from) = from.and_then(Value::as_object_mut) else { return };
    set_absent(from, [("kind", json!("ImageStreamTag"))]);
    if matches!(from.get("kind").and_then(Value::as_str), Some("ImageStream" | "ImageRepository")) {
        from.insert("kind".to_owned(), json!("ImageStreamTag"));
        if let Some(name) = from.get("name").and_then(Value::as_str).filter(|name| !name.contains(':')) {
            let tagged = format!("{name}:latest");
            from.insert("name".to_owned(), json!(tagged));
        }
    }
}

fn apply_to_strategy(strategy: &mut Map<String, Value>, only_container: Option<&str>) {
    let defaults = [("type", json!("Rolling")), ("activeDeadlineSeconds", json!(DEFAULT_ACTIVE_DEADLINE.as_secs()))];
    set_absent(strategy, defaults);
    match strategy.get("type").and_then(Value::as_str) {
        Some("Rolling") => set_absent(strategy, [("rollingParams", json!({}))]),
        Some("Recreate") => set_absent(strategy, [("recreateParams", json!({}))]),
        Some("BlueGreen") => set_absent(strategy, [("blueGreenParams", json!({}))]),
        _ => {}
    }
    if let Some(params) = strategy.get_mut("rollingParams").and_then(Value::as_object_mut) {
        set_absent(params, [("updatePeriodSeconds", json!(1)), ("intervalSeconds", json!(1))]);
    }
    if let Some(params) = strategy.get_mut("blueGreenParams").and_then(Value::as_object_mut) {
        set_absent(params, [("keep", json!("10m"))]);
    }
    for block in ["rollingParams", "canaryParams", "abParams"] {
        if let Some(params) = strategy.get_mut(block).and_then(Value::as_object_mut) {
            apply_to_limits(params);
        }
    }
    for block in BLOCKS {
        if let Some(params) = strategy.get_mut(block).and_then(Value::as_object_mut) {
            set_absent(params, [("timeoutSeconds", json!(DEFAULT_STRATEGY_TIMEOUT.as_secs()))]);
            for point in ["pre", "mid", "post"] {
                if let Some(hook) = params.get_mut(point).and_then(Value::as_object_mut) {
                    apply_to_hook(hook, only_container);
                }
            }
            apply_to_analyses(params, only_container);
        }
    }
}

/// What judges a new version fails its deployment, unless it says otherwise.
fn apply_to_analyses(params: &mut Map<String, Value>, only_container: Option<&str>) {
    let judge = |analysis: Option<&mut Value>| {
        if let Some(analysis) = analysis.and_then(Value::as_object_mut) {
            set_absent(analysis, [("failurePolicy", json!("Abort"))]);
            apply_to_hook(analysis, only_container);
        }
    };
    judge(params.get_mut("analysis"));
    for step in objects(params.get_mut("steps")) {
        judge(step.get_mut("analysis"));
    }
}

/// A pause without a length waits for a person, also where it was left empty: elsewhere that would be as if it were not there.
pub(crate) fn write_out_pauses(strategy: &mut Value) {
    let params = strategy.get_mut("canaryParams");
    for step in objects(params.and_then(|params| params.get_mut("steps"))) {
        if let Some(pause) = step.get_mut("pause").filter(|pause| pause.is_null()) {
            *pause = json!({});
        }
    }
}

/// `maxUnavailable` and `maxSurge`: a quarter each; if one is given, the other is 0, but never both.
fn apply_to_limits(params: &mut Map<String, Value>) {
    let is_zero = |value: &Value| *value == json!(0) || *value == json!("0%");
    let other = |given: &Value| if is_zero(given) { json!("25%") } else { json!(0) };
    match (params.get("maxUnavailable"), params.get("maxSurge")) {
        (None, None) => set_absent(params, [("maxUnavailable", json!("25%")), ("maxSurge", json!("25%"))]),
        (None, Some(surge)) => {
            let unavailable = other(surge);
            set_absent(params, [("maxUnavailable", unavailable)]);
        }
        (Some(unavailable), None) => {
            let surge = other(unavailable);
            set_absent(params, [("maxSurge", surge)]);
        }
        (Some(_), Some(_)) => {}
    }
}

fn apply_to_hook(hook: &mut Map<String, Value>, only_container: Option<&str>) {
    if hook.get("failurePolicy").and_then(Value::as_str) == Some("Continue") {
        hook.insert("failurePolicy".to_owned(), json!("Ignore"));
    }
    if let Some(exec) = hook.get_mut("execNewPod").and_then(Value::as_object_mut) {
        name_container(exec, only_container);
        for variable in objects(exec.get_mut("env")) {
            apply_to_variable(variable);
        }
    }
    for image in objects(hook.get_mut("tagImages")) {
        name_container(image, only_container);
    }
}

fn name_container(holder: &mut Map<String, Value>, only_container: Option<&str>) {
    if let Some(name) = only_container {
        set_absent(holder, [("containerName", json!(name))]);
    }
}
