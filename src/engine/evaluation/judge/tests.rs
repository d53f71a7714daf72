//! Objectives with what was measured, and what comes of them.

use serde_json::{Value, json};

use super::*;

fn objectives(properties: &Value) -> Objectives {
    Objectives::of(properties).unwrap().unwrap()
}

/// Readings of the indicators `a`, `b` and `c`, as far as there are so many.
fn readings(values: &[f64]) -> BTreeMap<String, Reading> {
    ["a", "b", "c"]
        .map(str::to_owned)
        .into_iter()
        .zip(values.iter().map(|value| Reading::of(&value.to_string())))
        .collect()
}

fn earlier(values: &[f64]) -> Vec<Earlier> {
    let one = |(number, value): (usize, &f64)| Earlier {
        event: format!("e{number}"),
        values: [("a".to_owned(), serde_json::Number::from_f64(*value).unwrap())].into(),
    };
    values.iter().enumerate().map(one).collect()
}

/// An objective about `a` with these groups.
fn about_a(pass: &Value, warning: &Value) -> Value {
    let groups = |groups: &Value| -> Value {
        groups.as_array().unwrap().iter().map(|group| json!({ "criteria": group })).collect()
    };
    json!({"objectives": [{"sli": "a", "pass": groups(pass), "warning": groups(warning)}]})
}

#[test]
fn groups_are_alternatives_and_all_criteria_of_one_must_hold() {
    use TaskResult::{Fail, Pass, Warning};
    for (pass, warning, value, result) in [
        (json!([["<600"]]), json!([]), 599.0, Pass),
        (json!([["<600"]]), json!([]), 600.0, Fail),
        (json!([["<600"]]), json!([["<=800"]]), 800.0, Warning),
        (json!([["<600"]]), json!([["<=800"]]), 801.0, Fail),
        (json!([[">10", "<20"]]), json!([]), 15.0, Pass),
        (json!([[">10", "<20"]]), json!([]), 25.0, Fail),
        (json!([["<10"], [">20"]]), json!([]), 25.0, Pass),
        (json!([["<10"], [">20"]]), json!([]), 15.0, Fail),
        (json!([["<10"]]), json!([["<12"], [">100", "<200"]]), 150.0, Warning),
        (json!([["=0"]]), json!([]), 0.0, Pass),
    ] {
        let found = judge(&objectives(&about_a(&pass, &warning)), &readings(&[value]), &[]);
        assert_eq!(found.indicators[0].result, Some(result), "{value}: {pass} {warning}");
    }
}

#[test]
fn relative_criteria_compare_with_what_was_before_and_hold_where_nothing_was() {
    let all = [300.0, 100.0, 200.0];
    for (criterion, aggregate, before, value, passes) in [
        ("<=+10%", "avg", &all[..], 220.0, true),
        ("<=+10%", "avg", &all[..], 221.0, false),
        (">=-5%", "avg", &all[..], 190.0, true),
        (">=-5%", "avg", &all[..], 189.0, false),
        ("<=+10", "avg", &all[..], 210.0, true),
        ("<=+10", "avg", &all[..], 211.0, false),
        ("<=+0%", "p50", &[100.0, 900.0, 200.0], 200.0, true),
        ("<=+0%", "p50", &[100.0, 900.0, 200.0], 201.0, false),
        ("<=+0%", "p90", &all[..], 300.0, true),
        ("<=+0%", "p95", &all[..], 301.0, false),
        ("<=+0%", "p50", &[100.0, 200.0], 150.0, true),
        ("<=+0%", "p50", &[100.0, 200.0], 151.0, false),
        ("<=+10%", "avg", &[], 1e9, true),
    ] {
        let mut properties = about_a(&json!([[criterion]]), &json!([]));
        properties["comparison"] = json!({"compare_with": "several_results", "aggregate_function": aggregate});
        let found = judge(&objectives(&properties), &readings(&[value]), &earlier(before));
        let result = if passes { TaskResult::Pass } else { TaskResult::Fail };
        assert_eq!(found.indicators[0].result, Some(result), "{value} {criterion} of {aggregate} {before:?}");
    }
    let properties = about_a(&json!([["<=+10%"]]), &json!([]));
    let other = vec![Earlier { event: "e".into(), values: BTreeMap::new() }];
    let found = judge(&objectives(&properties), &readings(&[5.0]), &other);
    assert_eq!((found.result, found.indicators[0].compared), (TaskResult::Pass, None), "it did not know the indicator");
}

#[test]
fn the_score_is_the_part_of_the_weights_that_was_reached() {
    use TaskResult::{Fail, Pass, Warning};
    let one = |sli: &str, more: &Value| {
        let (pass, warning) = (json!([{"criteria": ["<10"]}]), json!([{"criteria": ["<20"]}]));
        let mut objective = json!({"sli": sli, "pass": pass, "warning": warning});
        more.as_object().unwrap().iter().for_each(|(key, value)| objective[key] = value.clone());
        objective
    };
    let (plain, heavy, key) = (json!({}), json!({"weight": 3}), json!({"key_sli": true}));
    let shown = json!({"pass": [], "warning": []});
    let low = json!({"pass": "50%", "warning": 25});
    for (objectives, total, values, score, result) in [
        (vec![one("a", &plain), one("b", &plain)], Value::Null, &[1.0, 1.0][..], 100.0, Pass),
        (vec![one("a", &plain), one("b", &plain)], Value::Null, &[1.0, 15.0], 75.0, Warning),
        (vec![one("a", &plain), one("b", &plain)], Value::Null, &[1.0, 25.0], 50.0, Fail),
        (vec![one("a", &plain), one("b", &plain)], low.clone(), &[1.0, 25.0], 50.0, Pass),
        (vec![one("a", &plain), one("b", &plain)], low.clone(), &[15.0, 25.0], 25.0, Warning),
        (vec![one("a", &heavy), one("b", &plain)], low.clone(), &[1.0, 25.0], 75.0, Pass),
        (vec![one("a", &heavy), one("b", &plain)], low.clone(), &[25.0, 1.0], 25.0, Warning),
        (vec![one("a", &plain), one("b", &key)], low.clone(), &[1.0, 25.0], 50.0, Fail),
        (vec![one("a", &plain), one("b", &key)], low.clone(), &[1.0, 15.0], 75.0, Pass),
        (vec![one("a", &plain), one("b", &plain)], json!({"pass": "90%"}), &[1.0, 15.0], 75.0, Fail),
        (vec![one("a", &plain), one("b", &shown)], Value::Null, &[1.0, 1e9], 100.0, Pass),
        (vec![one("a", &shown)], Value::Null, &[1e9], 100.0, Pass),
        (vec![one("a", &plain), one("b", &plain)], low, &[1.0], 50.0, Pass),
    ] {
        let mut properties = json!({ "objectives": objectives });
        if !total.is_null() {
            properties["total_score"] = total;
        }
        let found = judge(&self::objectives(&properties), &readings(values), &[]);
        assert_eq!((found.score, found.result), (score, result), "{values:?}: {properties}");
    }
}

#[test]
fn what_has_no_value_fails_its_objective_and_everything_if_that_is_key() {
    let missing = || BTreeMap::from([("a".to_owned(), Reading::Missing("nothing found".into()))]);
    for (properties, result, overall) in [
        (json!({"sli": "a", "pass": [{"criteria": ["<=+10%"]}]}), Some(TaskResult::Fail), TaskResult::Fail),
        (
            json!({"sli": "a", "pass": [{"criteria": ["<5"]}], "key_sli": true}),
            Some(TaskResult::Fail),
            TaskResult::Fail,
        ),
        (json!({"sli": "a"}), None, TaskResult::Pass),
    ] {
        let found = judge(&objectives(&json!({"objectives": [properties]})), &missing(), &[]);
        assert_eq!((found.indicators[0].result, found.result), (result, overall), "{properties}");
    }
}

#[test]
fn criteria_say_what_they_were_compared_with_and_which_of_them_are_violated() {
    let properties = about_a(&json!([["<600", "<=+10%"]]), &json!([]));
    let found = judge(&objectives(&properties), &readings(&[580.0]), &earlier(&[500.0]));
    let told: Vec<(&str, Option<f64>, bool)> =
        found.indicators[0].pass.iter().map(|it| (it.criterion.as_str(), it.target, it.violated)).collect();
    assert_eq!(told, [("<600", Some(600.0), false), ("<=+10%", Some(550.0), true)]);
    assert_eq!(found.indicators[0].compared, Some(500.0));
}
