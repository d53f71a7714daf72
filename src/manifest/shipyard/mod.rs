//! Keptn's shipyard: versions, keys, rules.

mod doubt;
pub(super) mod evaluation;
mod idle;
mod lint;
mod selector;

use serde_json::{Value, json};

pub(crate) use self::doubt::{Doubt, doubts};
use super::findings::Findings;
use super::pod_template::{items, text_at};
use super::shape::shipyard::{SHIPYARD, STAGE_KEYS_0_1};
use super::shape::{Strictness, check, schema};
use crate::model::cloud_event;
use crate::model::duration;
use crate::model::evaluation::are_declared;
use crate::model::ids::StageName;
use crate::model::shipyard::{
    Condition, DEPLOYMENT_TASK, DeploymentStrategy, EVALUATION_TASK, QueuePolicy, Sequence, SequenceTrigger, Shipyard,
    Stage, Task,
};

/// What is read, with the group before the version or without it.
pub(crate) const API_VERSIONS: [&str; 5] =
    ["spec.keptn.sh/0.2.0", "spec.keptn.sh/0.2.1", "spec.keptn.sh/0.2.2", "spec.keptn.sh/0.2.3", "spec.keptn.sh/0.2.4"];
const GROUP: &str = "spec.keptn.sh/";
/// The last draft's key for `triggeredOn`.
const DRAFT: &str = "/triggers";

/// Reads the shipyard's document; `None` if there are errors, which then are among the findings.
pub(crate) fn read(value: &Value, findings: &mut Findings<'_>) -> Option<Shipyard> {
    if is_of_0_1(value) {
        findings.error("", "shipyard-version", "this shipyard is of version 0.1, which is not supported").hint =
            Some("`launchway migrate shipyard FILE --write` makes it one of 0.2".to_owned());
        return None;
    }
    version(value, findings);
    let written = written_version(value).unwrap_or_default().to_owned();
    let mut value = value.clone();
    write_events_out(&mut value, findings);
    check(&mut value, &SHIPYARD, Strictness::Users, findings);
    for problem in findings.problems.iter_mut().filter(|it| it.code == "unknown-key" && it.pointer.ends_with(DRAFT)) {
        problem.hint = Some("since 0.2.0 it is `triggeredOn`, a list of `event`s".to_owned());
    }
    let mut shipyard = shipyard(&value, findings);
    read_events_as_meant(&mut shipyard, findings);
    lint::validate(&shipyard, &value, findings);
    (!findings.has_errors()).then_some(Shipyard { version: written, ..shipyard })
}

/// Whether a document is a shipyard of the format before this one.
pub(crate) fn is_of_0_1(value: &Value) -> bool {
    let version = version_of(value).unwrap_or_default();
    let has_old_keys = |stage: &Value| STAGE_KEYS_0_1.iter().any(|key| stage.get(*key).is_some());
    version.starts_with("0.1")
        || (value.get("spec").is_none() && value.get("stages").is_some())
        || items(value, "/spec/stages").any(|(_, stage)| has_old_keys(stage))
}

/// Whether a document is recognisably a shipyard, whatever its file is called.
pub(crate) fn is_one(value: &Value) -> bool {
    let is_of_keptn = written_version(value).is_none_or(|version| version.starts_with(GROUP) || !version.contains('/'));
    let says = |stage: &Value, key: &str| stage.get(key).is_some();
    let is_a_stage = |stage: &Value| says(stage, "sequences") || STAGE_KEYS_0_1.iter().any(|key| says(stage, key));
    let stages = || items(value, "/spec/stages").chain(items(value, "/stages"));
    is_of_keptn
        && match value.get("kind") {
            Some(kind) => kind == "Shipyard",
            None => stages().any(|(_, stage)| is_a_stage(stage)),
        }
}

/// Its JSON Schema for editors. Whatever is read without an error is none there.
pub(crate) fn schema() -> Value {
    let bare = API_VERSIONS.iter().filter_map(|version| version.strip_prefix(GROUP));
    let versions: Vec<&str> = API_VERSIONS.into_iter().chain(bare).collect();
    let mut schema = schema::of(&SHIPYARD, "Shipyard", &versions);
    schema["properties"]["version"] =
        json!({"enum": versions, "description": "The first draft's word for `apiVersion`."});
    schema["required"] = json!(["kind"]);
    schema["anyOf"] = json!([{"required": ["apiVersion"]}, {"required": ["version"]}]);
    let trigger = "/properties/spec/properties/stages/items/properties/sequences/items/properties/triggeredOn/items";
    if let Some(trigger) = schema.pointer_mut(trigger) {
        let event = json!({"type": "string", "description": "The first draft's word for `event`."});
        *trigger = json!({"anyOf": [trigger.take(), event]});
    }
    schema
}

/// The specification's version, from `apiVersion` or the first draft's `version`.
fn version_of(value: &Value) -> Option<&str> {
    let text = written_version(value)?;
    Some(text.strip_prefix(GROUP).unwrap_or(text))
}

fn written_version(value: &Value) -> Option<&str> {
    value.get("apiVersion").or_else(|| value.get("version"))?.as_str()
}

fn version(value: &Value, findings: &mut Findings<'_>) {
    let key =
        if value.get("version").is_some() && value.get("apiVersion").is_none() { "version" } else { "apiVersion" };
    let pointer = format!("/{key}");
    match version_of(value) {
        Some(version) if API_VERSIONS.iter().any(|known| known.strip_prefix(GROUP) == Some(version)) => {}
        Some(version) => {
            let message = format!("`{version}` is no supported version of the shipyard");
            findings.error(&pointer, "shipyard-version", message).hint =
                Some("write `apiVersion: spec.keptn.sh/0.2.2`; 0.2.0 to 0.2.4 are read".to_owned());
        }
        None => {
            findings.error(&pointer, "required", "this is required").hint =
                Some("write `apiVersion: spec.keptn.sh/0.2.2`".to_owned());
        }
    }
    if text_at(value, "/kind") != "Shipyard" {
        findings.error("/kind", "unsupported-value", "must be `Shipyard`");
    }
}

/// An entry of `triggeredOn` that is only a text means its event.
fn write_events_out(value: &mut Value, findings: &mut Findings<'_>) {
    let stages = value.pointer_mut("/spec/stages").and_then(Value::as_array_mut).into_iter().flatten();
    for (stage, value) in stages.enumerate() {
        let sequences = value.get_mut("sequences").and_then(Value::as_array_mut).into_iter().flatten();
        for (sequence, value) in sequences.enumerate() {
            let triggers = value.get_mut("triggeredOn").and_then(Value::as_array_mut).into_iter().flatten();
            for (index, trigger) in triggers.enumerate().filter(|(_, trigger)| trigger.is_string()) {
                let pointer = format!("/spec/stages/{stage}/sequences/{sequence}/triggeredOn/{index}");
                findings.warning(&pointer, "shipyard", "an entry of triggeredOn has the key `event`");
                *trigger = json!({"event": trigger});
            }
        }
    }
}

/// The end of a task that is called otherwise is meant as the end of the task, unless a sequence has that name.
fn read_events_as_meant(shipyard: &mut Shipyard, findings: &mut Findings<'_>) {
    let meant = |event: &str| {
        let (stage, name) = event.strip_suffix(".finished")?.split_once('.')?;
        let stage = shipyard.stages.iter().find(|known| known.name.as_str() == stage)?;
        let task = Some(as_meant(name)).filter(|task| *task != name && stage.sequence(name).is_none())?;
        let is_there = stage.sequences.iter().any(|sequence| sequence.has_task(task));
        is_there.then(|| format!("{}.{task}.finished", stage.name))
    };
    let mut read = Vec::new();
    for (stage, declared) in shipyard.stages.iter().enumerate() {
        for (sequence, value) in declared.sequences.iter().enumerate() {
            for (index, trigger) in value.triggered_on.iter().enumerate() {
                read.extend(meant(&trigger.event).map(|event| ((stage, sequence, index), event)));
            }
        }
    }
    for ((stage, sequence, index), event) in read {
        let trigger = &mut shipyard.stages[stage].sequences[sequence].triggered_on[index];
        let message = format!("the task is called `{EVALUATION_TASK}`; `{}` is read as `{event}`", trigger.event);
        let at = format!("{}/triggeredOn/{index}/event", place(stage, sequence));
        findings.warning(&at, "shipyard", message);
        trigger.event = event;
    }
}

fn shipyard(value: &Value, findings: &mut Findings<'_>) -> Shipyard {
    let stages = items(value, "/spec/stages").map(|(index, stage)| Stage {
        name: StageName::new(text_at(stage, "/name")),
        sequences: items(stage, "/sequences")
            .map(|(sequence, value)| self::sequence(value, &place(index, sequence), findings))
            .collect(),
    });
    let stages = stages.collect();
    Shipyard { name: text_at(value, "/metadata/name").to_owned(), stages, ..Shipyard::default() }
}

/// Where a sequence stands.
fn place(stage: usize, sequence: usize) -> String {
    format!("/spec/stages/{stage}/sequences/{sequence}")
}

fn sequence(value: &Value, at: &str, findings: &mut Findings<'_>) -> Sequence {
    let triggers = items(value, "/triggeredOn");
    let triggered_on =
        triggers.map(|(index, value)| trigger(value, &format!("{at}/triggeredOn/{index}"), findings)).collect();
    let tasks =
        items(value, "/tasks").map(|(index, value)| task(value, &format!("{at}/tasks/{index}"), findings)).collect();
    let timeout_ms = limit(value, at, "timeout", findings);
    let queue = QueuePolicy::named(text_at(value, "/queue"));
    Sequence { name: text_at(value, "/name").to_owned(), triggered_on, tasks, timeout_ms, queue }
}

fn trigger(value: &Value, at: &str, findings: &mut Findings<'_>) -> SequenceTrigger {
    let event = text_at(value, "/event");
    let written = selector::written(value, at);
    selector::check(&written, findings);
    let selector = written.into_iter().map(|written| written.asked).collect();
    SequenceTrigger { event: cloud_event::short(event).to_owned(), selector }
}

fn task(value: &Value, at: &str, findings: &mut Findings<'_>) -> Task {
    let mut properties = value.get("properties").cloned().unwrap_or(Value::Null);
    if !properties.is_null() && !properties.is_object() {
        findings.error(&format!("{at}/properties"), "type", "must be a mapping");
    }
    let name = text_at(value, "/name");
    if as_meant(name) != name {
        let message = format!("the task is called `{}`; `{name}` is read as that", as_meant(name));
        findings.warning(&format!("{at}/name"), "shipyard", message);
    }
    if as_meant(name) == EVALUATION_TASK && are_declared(&properties) {
        evaluation::read(&mut properties, &format!("{at}/properties"), findings);
    }
    let retries = value.get("retries").and_then(Value::as_u64).unwrap_or_default();
    Task {
        triggered_after_ms: milliseconds(value, at, "triggeredAfter", findings).unwrap_or_default(),
        properties,
        condition: Condition::named(text_at(value, "/condition")).unwrap_or_default(),
        timeout_ms: limit(value, at, "timeout", findings),
        start_timeout_ms: limit(value, at, "startTimeout", findings),
        heartbeat_ms: limit(value, at, "heartbeat", findings),
        retries: u32::try_from(retries).unwrap_or(u32::MAX),
        executors: texts(value, "/executors"),
        holds_slot: value.get("holdSlot").and_then(Value::as_bool).unwrap_or(true),
        ..Task::named(as_meant(name))
    }
}

/// The task that is meant by a name: the proposal of the format once said `evaluate`.
fn as_meant(task: &str) -> &str {
    if task == "evaluate" { EVALUATION_TASK } else { task }
}

/// Whether launchway deploys in a task: a `Task` object of its name changes nothing.
fn is_built_in_deployment(task: &Task) -> bool {
    task.name == DEPLOYMENT_TASK && task.deployment_strategy() != Some(DeploymentStrategy::UserManaged)
}

/// A duration within which something has to be done.
fn limit(value: &Value, at: &str, key: &str, findings: &mut Findings<'_>) -> Option<u64> {
    let limit = milliseconds(value, at, key, findings);
    if limit == Some(0) {
        findings.error(&format!("{at}/{key}"), "invalid", "must be a millisecond or more").hint =
            Some("without it there is no such limit".to_owned());
    }
    limit
}

fn milliseconds(value: &Value, at: &str, key: &str, findings: &mut Findings<'_>) -> Option<u64> {
    let text = value.get(key).and_then(Value::as_str)?;
    let duration = duration::parse(text);
    if duration.is_none() {
        findings.error(&format!("{at}/{key}"), "invalid", format!("`{text}` is not a duration")).hint =
            Some("such as 90s, 10m or 1h30m".to_owned());
    }
    Some(u64::try_from(duration?.as_millis()).unwrap_or(u64::MAX))
}

fn texts(value: &Value, pointer: &str) -> Vec<String> {
    items(value, pointer).filter_map(|(_, text)| text.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
pub(crate) use tests::{shipyard_of, shipyard_problems};

#[cfg(test)]
mod tests;
