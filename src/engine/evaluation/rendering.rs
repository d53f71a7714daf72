//! What is said of an evaluation: to tasks and executors in Keptn's shape, to people in a line.

use serde_json::{Value, json};

use super::judge::{Checked, Evaluation, Judged};
use crate::clock::rfc3339;
use crate::model::evaluation::{Earlier, Reading};
use crate::model::outcome::TaskResult;
use crate::model::time::Timestamp;

/// How many objectives are named to people.
const NAMED: usize = 3;

/// Its data, about the time from `from` to `to`. Source: `evaluation` of Keptn's `evaluation.finished`.
pub(super) fn data(evaluation: &Evaluation, (from, to): (Timestamp, Timestamp), earlier: &[Earlier]) -> Value {
    let indicators: Vec<Value> = evaluation.indicators.iter().map(indicator).collect();
    let compared: Vec<&str> = earlier.iter().map(|earlier| earlier.event.as_str()).collect();
    json!({
        "timeStart": rfc3339(from),
        "timeEnd": rfc3339(to),
        "result": evaluation.result.as_str(),
        "score": rounded(evaluation.score),
        "indicatorResults": indicators,
        "comparedEvents": compared,
    })
}

fn indicator(judged: &Judged) -> Value {
    let objective = &judged.objective;
    let mut value = match &judged.reading {
        Reading::Value(value) => json!({"metric": objective.sli, "value": value, "success": true}),
        Reading::Missing(why) => json!({"metric": objective.sli, "value": 0, "success": false, "message": why}),
    };
    if let Some(compared) = judged.compared {
        value["comparedValue"] = json!(compared);
    }
    json!({
        "displayName": objective.display_name.as_deref().unwrap_or(&objective.sli),
        "value": value,
        "passTargets": judged.pass.iter().map(target).collect::<Vec<_>>(),
        "warningTargets": judged.warning.iter().map(target).collect::<Vec<_>>(),
        "score": rounded(judged.score),
        "status": judged.result.map_or("info", TaskResult::as_str),
        "keySli": objective.key_sli,
    })
}

fn target(checked: &Checked) -> Value {
    let mut target = json!({"criteria": checked.criterion, "violated": checked.violated});
    if let Some(value) = checked.target {
        target["targetValue"] = json!(value);
    }
    target
}

/// What came of it and why, in a line.
pub(super) fn line(evaluation: &Evaluation) -> String {
    let short = |judged: &&Judged| judged.result.is_some_and(|result| result != TaskResult::Pass);
    let missed: Vec<String> = evaluation.indicators.iter().filter(short).map(missed).collect();
    let score = format!("{}, score {} %", evaluation.result.as_str(), rounded(evaluation.score));
    match missed.len() {
        0 => score,
        count if count > NAMED => format!("{score}: {}; and {} more", missed[..NAMED].join("; "), count - NAMED),
        _ => format!("{score}: {}", missed.join("; ")),
    }
}

fn missed(judged: &Judged) -> String {
    let name = &judged.objective.sli;
    let key = if judged.objective.key_sli { ", which is key," } else { "" };
    match &judged.reading {
        Reading::Missing(why) => format!("{name}{key} has no value: {why}"),
        Reading::Value(value) => {
            let value = value.to_string();
            format!("{name}{key} is {}, not {}", value.trim_end_matches(".0"), wanted(&judged.pass))
        }
    }
}

/// What would have had to hold: of each group what does not.
fn wanted(checked: &[Checked]) -> String {
    let groups = checked.chunk_by(|one, other| one.group == other.group).map(|group| {
        let violated = group.iter().filter(|checked| checked.violated);
        violated.map(one_wanted).collect::<Vec<_>>().join(" and ")
    });
    groups.collect::<Vec<_>>().join(" or ")
}

fn one_wanted(checked: &Checked) -> String {
    match checked.target.filter(|_| checked.is_relative) {
        Some(target) => format!("{} ({})", checked.criterion, rounded(target)),
        None => checked.criterion.clone(),
    }
}

/// To hundredths; a whole number has no point.
fn rounded(value: f64) -> Value {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    serde_json::from_str(text).unwrap_or_else(|_| json!(value))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::engine::evaluation::judge::judge;
    use crate::model::evaluation::Objectives;

    fn judged(objectives: &Value, values: &[(&str, f64)], before: Option<f64>) -> (Evaluation, Vec<Earlier>) {
        let objectives = Objectives::of(&json!({ "objectives": objectives })).unwrap().unwrap();
        let readings = values.iter().map(|(sli, value)| ((*sli).to_owned(), Reading::of(&value.to_string()))).collect();
        let earlier = before.map(|before| Earlier {
            event: "r0.0.1.finished".into(),
            values: BTreeMap::from([("time".to_owned(), serde_json::Number::from_f64(before).unwrap())]),
        });
        let earlier: Vec<Earlier> = earlier.into_iter().collect();
        (judge(&objectives, &readings, &earlier), earlier)
    }

    #[test]
    fn people_read_what_failed_and_what_was_wanted() {
        let time = json!({"sli": "time", "pass": [{"criteria": ["<600"]}]});
        let errors = json!({"sli": "errors", "pass": [{"criteria": ["=0"]}], "key_sli": true});
        let relative = json!({"sli": "time", "pass": [{"criteria": ["<=+10%", "<600"]}, {"criteria": ["<100"]}]});
        let half = json!({"sli": "time", "pass": [{"criteria": ["<600"]}], "warning": [{"criteria": ["<900"]}]});
        let named = |name: &str| json!({"sli": name, "pass": [{"criteria": ["<1"]}]});
        for (objectives, values, before, line) in [
            (json!([time]), &[("time", 5.0)][..], None, "pass, score 100 %"),
            (
                json!([time, errors]),
                &[("time", 812.0), ("errors", 0.0)],
                None,
                "fail, score 50 %: time is 812, not <600",
            ),
            (
                json!([time, errors]),
                &[("time", 5.0), ("errors", 2.0)],
                None,
                "fail, score 50 %: errors, which is key, is 2, not =0",
            ),
            (
                json!([relative]),
                &[("time", 580.0)],
                Some(500.0),
                "fail, score 0 %: time is 580, not <=+10% (550) or <100",
            ),
            (
                json!([half, named("a"), named("b")]),
                &[("time", 800.0), ("a", 0.0), ("b", 0.0)],
                None,
                "warning, score 83.33 %: time is 800, not <600",
            ),
            (
                json!([time]),
                &[],
                None,
                "fail, score 0 %: time has no value: nobody has given a value, and no query measures it",
            ),
            (
                json!([named("a"), named("b"), named("c"), named("d")]),
                &[("a", 1.0), ("b", 1.0), ("c", 1.0), ("d", 1.0)],
                None,
                "fail, score 0 %: a is 1, not <1; b is 1, not <1; c is 1, not <1; and 1 more",
            ),
        ] {
            assert_eq!(super::line(&judged(&objectives, values, before).0), line);
        }
    }

    #[test]
    fn executors_read_keptns_shape() {
        let objectives = json!([
            {"sli": "time", "displayName": "Response time", "pass": [{"criteria": ["<=+10%"]}], "key_sli": true},
            {"sli": "users"},
        ]);
        let (evaluation, earlier) = judged(&objectives, &[("time", 580.0)], Some(500.0));
        let told = data(&evaluation, (Timestamp(0), Timestamp(300_000)), &earlier);
        assert_eq!(
            told,
            json!({
                "timeStart": "1970-01-01T00:00:00Z",
                "timeEnd": "1970-01-01T00:05:00Z",
                "result": "fail",
                "score": 0,
                "indicatorResults": [
                    {
                        "displayName": "Response time",
                        "value": {"metric": "time", "value": 580, "success": true, "comparedValue": 500.0},
                        "passTargets": [{"criteria": "<=+10%", "targetValue": 550.0, "violated": true}],
                        "warningTargets": [],
                        "score": 0,
                        "status": "fail",
                        "keySli": true,
                    },
                    {
                        "displayName": "users",
                        "value": {
                            "metric": "users", "value": 0, "success": false,
                            "message": "nobody has given a value, and no query measures it",
                        },
                        "passTargets": [],
                        "warningTargets": [],
                        "score": 0,
                        "status": "info",
                        "keySli": false,
                    },
                ],
                "comparedEvents": ["r0.0.1.finished"],
            })
        );
    }
}
