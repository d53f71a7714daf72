//! What flows from task to task: every executor finds what those before it have left.

use serde_json::{Map, Value, json};

use crate::model::data::merge;
use crate::model::outcome::{Outcome, Status};
use crate::model::run::{DoneBy, SequenceRun};

/// What whoever does the task at `index` is told: what came so far, its own space with the properties that the shipyard gives
/// it, and of which service this is.
pub fn of_triggered(run: &SequenceRun, index: usize) -> Value {
    let mut data = scoped(run, with_properties(run, index));
    let before = run.tasks[..index].iter().rev().find_map(|task| task.outcome);
    if let Some(outcome) = before {
        data = merge(data, told(outcome));
    }
    if let (Some(fields), Some(task)) = (data.as_object_mut(), run.declared(index)) {
        if let Some(message) = fields.get_mut("message") {
            *message = Value::String(String::new());
        }
        let space = fields.remove(&task.name).unwrap_or_default();
        let properties = if task.properties.is_null() { Value::Object(Map::new()) } else { task.properties.clone() };
        fields.insert(task.name.clone(), merge(space, properties));
    }
    data
}

/// What the sequences find that a run leads to.
pub fn carried(run: &SequenceRun) -> Value {
    let gathered = run.gathered(run.tasks.len());
    if gathered.is_null() && !run.is_foreign { gathered } else { with_properties(run, run.tasks.len()) }
}

/// What was gathered, with what the shipyard gave to those of the first tasks that have begun; but objectives that launchway
/// judges itself are for nobody else.
fn with_properties(run: &SequenceRun, tasks: usize) -> Value {
    let gathered = run.gathered(tasks);
    let mut data = gathered.as_object().cloned().unwrap_or_default();
    for (index, (task, record)) in run.procedure.sequence.tasks.iter().zip(&run.tasks).enumerate().take(tasks) {
        let is_for_others = !task.properties.is_null() && run.done_by(index) != DoneBy::Evaluation;
        if record.started_at.is_some() && is_for_others {
            let left = data.remove(&task.name).unwrap_or_default();
            data.insert(task.name.clone(), merge(task.properties.clone(), left));
        }
    }
    Value::Object(data)
}

/// What all events about a sequence have: of which service it is, and its labels.
pub fn about(run: &SequenceRun) -> Value {
    let labels = run.gathered(run.tasks.len()).get("labels").cloned();
    scoped(run, labels.map_or(Value::Null, |labels| json!({ "labels": labels })))
}

/// What is said of a sequence as a whole: also how it ended, if it did.
pub fn of_sequence(run: &SequenceRun) -> Value {
    let data = about(run);
    let Some(outcome) = run.outcome else { return data };
    merge(merge(data, told(outcome)), json!({ "message": run.message }))
}

/// `status` and `result` as events have them.
pub fn told(outcome: Outcome) -> Value {
    json!({ "status": status(outcome.status), "result": outcome.result.as_str() })
}

/// Keptn's word for a status, which knows four.
pub fn status(status: Status) -> &'static str {
    match status {
        Status::Succeeded => "succeeded",
        Status::Errored | Status::TimedOut => "errored",
        Status::Aborted | Status::Superseded => "aborted",
        Status::Unknown => "unknown",
    }
}

/// Data of a run's own project, stage and service, whatever was said before.
fn scoped(run: &SequenceRun, data: Value) -> Value {
    let service = &run.service;
    let scope = json!({ "project": service.project, "stage": service.stage, "service": service.service });
    merge(data, scope)
}
