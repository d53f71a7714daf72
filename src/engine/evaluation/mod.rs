//! The built-in `evaluation` task: what has to be measured for it, and what was measured, judged by its objectives and by what
//! the same sequence was before.

mod judge;
mod rendering;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::engine::records::{Lookup, Undecided};
use crate::engine::transition::Transition;
use crate::model::evaluation::{Measurement, Objectives, Reading};
use crate::model::event::Event;
use crate::model::ids::RunId;
use crate::model::outcome::{Outcome, Status};
use crate::model::run::{Run, SequenceRun};
use crate::model::shipyard::EVALUATION_TASK;
use crate::model::time::Timestamp;

pub use judge::{Checked, Evaluation, Judged, judge};

/// What events and earlier tasks have given for the indicators of a task, also as text, which is all that command lines have.
fn given(run: &SequenceRun, task: usize) -> BTreeMap<String, Reading> {
    let gathered = run.gathered(task);
    let values = gathered.get(EVALUATION_TASK).and_then(|space| space.get("values")).and_then(Value::as_object);
    let reading = |value: &Value| match value {
        Value::String(text) => Reading::of(text),
        other => Reading::of(&other.to_string()),
    };
    values.into_iter().flatten().map(|(sli, value)| (sli.clone(), reading(value))).collect()
}

/// What has to be measured for a task of what nobody has given; nothing, if nothing can be.
pub fn measurement(run: &SequenceRun, (task, objectives): (usize, &Objectives), at: Timestamp) -> Option<Measurement> {
    let prometheus = objectives.prometheus.as_ref()?;
    let given = given(run, task);
    let wanted = objectives.objectives.iter().map(|objective| &objective.sli).filter(|sli| !given.contains_key(*sli));
    let query = |sli: &String| {
        let query = prometheus.queries.get(sli)?;
        Some((sli.clone(), filled(query, run, objectives)))
    };
    let queries: BTreeMap<String, String> = wanted.filter_map(query).collect();
    (!queries.is_empty()).then(|| Measurement { url: prometheus.url.clone(), queries, at })
}

/// A query about the service and the time that are judged. Source: Keptn's prometheus-service, by which
/// `$DURATION_SECONDS` has its unit, and a filter comes first and without quotes.
fn filled(query: &str, run: &SequenceRun, objectives: &Objectives) -> String {
    let service = &run.service;
    let seconds = format!("{}s", objectives.timeframe.0.as_secs());
    let places = [
        ("$DURATION_SECONDS", seconds.as_str()),
        ("$PROJECT", service.project.as_str()),
        ("$STAGE", service.stage.as_str()),
        ("$SERVICE", service.service.as_str()),
    ];
    let mut filter: Vec<(&String, String)> =
        objectives.filter.iter().map(|(key, value)| (key, value.replace(['\'', '"'], ""))).collect();
    filter.sort_by_key(|(key, _)| Reverse(key.len())); // one may begin with another
    let query = filter.iter().fold(query.to_owned(), |query, (key, value)| {
        query.replace(&format!("${key}"), value).replace(&format!("${}", key.to_uppercase()), value)
    });
    places.iter().fold(query, |query, (name, value)| query.replace(name, value))
}

/// Judges a task of a run by what was measured for a time; the run hears what came of it.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn of_run(
    transition: &mut Transition<'_>,
    by: &RunId,
    (task, at): (usize, Timestamp),
    measured: BTreeMap<String, Reading>,
) -> Result<(), Undecided> {
    let Some(run) = transition.records.runs.get(by)?.and_then(Run::sequence).cloned() else { return Ok(()) };
    let Some(Ok(objectives)) = run.objectives(task) else { return Ok(()) };
    transition.records.slots.get(&run.service)?; // whoever ends in it makes another comparison
    let comparison = objectives.comparison;
    let (included, most) = (comparison.include_result_with_score, comparison.most());
    let lookup = Lookup::Evaluations(run.service.clone(), run.sequence().to_owned(), included, most);
    let earlier = transition.records.evaluations(lookup)?.to_vec();
    let mut readings = measured;
    readings.extend(given(&run, task));
    let evaluation = judge(&objectives, &readings, &earlier);
    let from = Timestamp(at.0 - i64::try_from(objectives.timeframe.0.as_millis()).unwrap_or_default());
    let event = Event::Evaluated {
        task,
        outcome: Outcome { status: Status::Succeeded, result: evaluation.result },
        message: rendering::line(&evaluation),
        evaluation: rendering::data(&evaluation, (from, at), &earlier),
    };
    transition.tell(by.clone(), event);
    Ok(())
}

#[cfg(test)]
mod tests;
