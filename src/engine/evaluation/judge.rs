//! Judges what was measured. Source: Keptn's lighthouse-service, but that what could not be measured fails like any other
//! objective, also one that is key.

use std::collections::BTreeMap;

use crate::model::evaluation::{Aggregate, Criteria, Earlier, Objective, Objectives, Reading};
use crate::model::outcome::TaskResult;

/// What was judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// The part of what could be reached, in percent.
    pub score: f64,
    /// What that comes to.
    pub result: TaskResult,
    /// Objective by objective, in their order.
    pub indicators: Vec<Judged>,
}

/// One objective, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// What was wanted.
    pub objective: Objective,
    /// What was measured.
    pub reading: Reading,
    /// What relative criteria have compared with; nothing, if there was nothing.
    pub compared: Option<f64>,
    /// What came of it; nothing, if it is only shown.
    pub result: Option<TaskResult>,
    /// What it counts for.
    pub score: f64,
    /// The criteria for passing.
    pub pass: Vec<Checked>,
    /// Those for a warning; none, if it passes without them.
    pub warning: Vec<Checked>,
}

/// A criterion that was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// As it is written.
    pub criterion: String,
    /// In which of the groups it stands, counted from 0.
    pub group: usize,
    /// Whether that depends on earlier values.
    pub is_relative: bool,
    /// What the value was compared with; nothing, if there was nothing to compare with.
    pub target: Option<f64>,
    /// Whether it does not hold.
    pub violated: bool,
}

/// Judges readings by objectives, and by earlier evaluations, of which the newest comes first.
pub fn judge(objectives: &Objectives, readings: &BTreeMap<String, Reading>, earlier: &[Earlier]) -> Evaluation {
    let judged = objectives.objectives.iter().map(|objective| {
        let missing = || Reading::Missing("nobody has given a value, and no query measures it".to_owned());
        let reading = readings.get(&objective.sli).cloned().unwrap_or_else(missing);
        let before = before(objectives.comparison.aggregate_function, &objective.sli, earlier);
        of_one(objective, reading, before)
    });
    let indicators: Vec<Judged> = judged.collect();
    let counted = indicators.iter().filter(|judged| judged.result.is_some());
    let reachable: f64 = counted.map(|judged| f64::from(judged.objective.weight)).sum();
    let reached: f64 = indicators.iter().map(|judged| judged.score).sum();
    let score = if reachable > 0.0 { 100.0 * (reached / reachable) } else { 100.0 };
    let key_failed = indicators.iter().any(|it| it.objective.key_sli && it.result == Some(TaskResult::Fail));
    let wanted = objectives.total_score;
    let result = if key_failed {
        TaskResult::Fail
    } else if reachable <= 0.0 || score >= wanted.pass.0 {
        TaskResult::Pass
    } else if wanted.warning.is_some_and(|warning| score >= warning.0) {
        TaskResult::Warning
    } else {
        TaskResult::Fail
    };
    Evaluation { score, result, indicators }
}

fn of_one(objective: &Objective, reading: Reading, compared: Option<f64>) -> Judged {
    let weight = f64::from(objective.weight);
    let (passes, pass) = check(&objective.pass, &reading, compared);
    let (warns, warning) = if passes { (false, Vec::new()) } else { check(&objective.warning, &reading, compared) };
    let (result, score) = match (passes, warns) {
        _ if objective.pass.is_empty() => (None, 0.0),
        (true, _) => (Some(TaskResult::Pass), weight),
        (false, true) => (Some(TaskResult::Warning), 0.5 * weight),
        (false, false) => (Some(TaskResult::Fail), 0.0),
    };
    Judged { objective: objective.clone(), reading, compared, result, score, pass, warning }
}

/// Whether one of the groups holds, and what became of each criterion.
fn check(groups: &[Criteria], reading: &Reading, compared: Option<f64>) -> (bool, Vec<Checked>) {
    let (mut holds, mut found) = (false, Vec::new());
    for (group, criteria) in groups.iter().enumerate() {
        let checked = criteria.criteria.iter().map(|criterion| {
            let target = criterion.target.value(compared);
            let fulfilled = match (reading.value(), target) {
                (None, _) => false,
                (Some(_), None) => true, // nothing to compare with
                (Some(value), Some(target)) => criterion.operator.holds(value, target),
            };
            let (criterion, is_relative) = (criterion.text.clone(), criterion.target.is_relative());
            Checked { criterion, group, is_relative, target, violated: !fulfilled }
        });
        let checked: Vec<Checked> = checked.collect();
        holds |= checked.iter().all(|checked| !checked.violated);
        found.extend(checked);
    }
    (holds, found)
}

/// What an indicator was before; nothing, if no earlier evaluation has a value.
fn before(aggregate: Aggregate, sli: &str, earlier: &[Earlier]) -> Option<f64> {
    let mut values: Vec<f64> = earlier.iter().filter_map(|it| it.values.get(sli)?.as_f64()).collect();
    values.sort_by(f64::total_cmp);
    if values.is_empty() {
        return None;
    }
    let count = f64::from(u32::try_from(values.len()).unwrap_or(u32::MAX));
    match aggregate {
        Aggregate::Avg => Some(values.iter().sum::<f64>() / count),
        Aggregate::P50 => percentile(&values, 0.5),
        Aggregate::P90 => percentile(&values, 0.9),
        Aggregate::P95 => percentile(&values, 0.95),
    }
}

/// A percentile of sorted values: it stands at that part of one place more than there are, and between two of them in
/// proportion.
fn percentile(values: &[f64], part: f64) -> Option<f64> {
    let count = f64::from(u32::try_from(values.len()).unwrap_or(u32::MAX));
    let mut behind = part * (count + 1.0) - 1.0; // the first one
    let (mut lower, rest) = values.split_first().map(|(first, rest)| (*first, rest))?;
    if behind <= 0.0 {
        return Some(lower);
    }
    for upper in rest {
        if behind < 1.0 {
            return Some(lower + behind * (upper - lower));
        }
        (lower, behind) = (*upper, behind - 1.0);
    }
    Some(lower)
}

#[cfg(test)]
mod tests;
