//! Whether what a trigger asks holds, on facts: what ended, how, and what it has told.

use serde_json::{Map, Value, json};

use crate::model::outcome::{Outcome, TaskResult};
use crate::model::run::SequenceRun;
use crate::model::shipyard::Selector;

/// How something ended, as keys say it.
pub const RESULT: &str = "result";
/// What became of running it, as keys say it.
pub const STATUS: &str = "status";

/// What is known of a sequence that ended: `result` and `status`, and under the name of each task that ended its own, with
/// its part of the data.
pub fn facts(run: &SequenceRun, outcome: Outcome) -> Value {
    told(outcome, tasks(run, run.tasks.len()))
}

/// The same of a task that ended, and of those before it.
pub fn facts_of_task(run: &SequenceRun, index: usize) -> Option<Value> {
    Some(told(run.tasks.get(index)?.outcome?, tasks(run, index + 1)))
}

fn told(outcome: Outcome, mut facts: Map<String, Value>) -> Value {
    facts.insert(RESULT.to_owned(), json!(outcome.result.as_str()));
    facts.insert(STATUS.to_owned(), json!(outcome.status.as_str()));
    Value::Object(facts)
}

/// What the first tasks of a run have told, by name; of two of one name the later one has the last word.
fn tasks(run: &SequenceRun, count: usize) -> Map<String, Value> {
    let (mut facts, gathered) = (Map::new(), run.gathered(count));
    for (task, record) in run.procedure.sequence.tasks.iter().zip(&run.tasks).take(count) {
        let Some(outcome) = record.outcome else { continue };
        let mut known = task.properties.as_object().cloned().unwrap_or_default();
        known.extend(gathered.get(&task.name).and_then(Value::as_object).cloned().into_iter().flatten());
        known.insert(RESULT.to_owned(), json!(outcome.result.as_str()));
        known.insert(STATUS.to_owned(), json!(outcome.status.as_str()));
        facts.insert(task.name.clone(), Value::Object(known));
    }
    facts
}

/// Whether all that is asked holds. A selector that asks for nothing asks for `pass` or `warning`, as in Keptn's controller.
pub fn holds(selector: &Selector, facts: &Value) -> bool {
    if selector.is_empty() {
        let result = facts.get(RESULT).and_then(Value::as_str);
        return [TaskResult::Pass, TaskResult::Warning].iter().any(|passes| result == Some(passes.as_str()));
    }
    all_hold(selector, facts)
}

/// Whether all that is asked holds, and nothing need be.
pub fn all_hold(selector: &Selector, facts: &Value) -> bool {
    selector.requirements().iter().all(|asked| asked.allows(value_at(facts, &asked.key).as_deref()))
}

/// The value at a path of keys and positions, as text; numbers and flags as JSON writes them, `null` is none.
fn value_at(facts: &Value, path: &str) -> Option<String> {
    let inside = |value: &'_ Value, key: &str| match value {
        Value::Object(map) => map.get(key).cloned(),
        Value::Array(items) => items.get(key.parse::<usize>().ok()?).cloned(),
        _ => None,
    };
    match path.split('.').try_fold(facts.clone(), |value, key| inside(&value, key))? {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::shipyard::{Operator, Requirement};

    fn asks(key: &str, operator: Operator, values: &[&str]) -> Selector {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        [Requirement { key: key.to_owned(), operator, values }].into_iter().collect()
    }

    #[test]
    fn keys_look_into_what_is_known() {
        use Operator::{DoesNotExist, Exists, In, NotIn};
        let facts = json!({
            "result": "fail", "status": "succeeded",
            "test": {"result": "fail", "status": "timedOut", "score": 97.5, "ok": true, "none": null},
            "deployment": {"result": "pass", "status": "succeeded", "uris": ["http://a", "http://b"], "by": {"who": "ann"}},
        });
        for (key, operator, values, expected) in [
            ("result", In, vec!["fail", "warning"], true),
            ("result", NotIn, vec!["fail"], false),
            ("deployment.result", In, vec!["pass"], true),
            ("test.status", In, vec!["timedOut"], true),
            ("test.score", In, vec!["97.5"], true),
            ("test.ok", In, vec!["true"], true),
            ("deployment.by.who", In, vec!["ann"], true),
            ("deployment.uris.1", In, vec!["http://b"], true),
            ("deployment.uris", Exists, vec![], true),
            ("deployment.uris.2", Exists, vec![], false),
            ("test.none", Exists, vec![], false),
            ("test.result.deeper", DoesNotExist, vec![], true),
            ("evaluation.result", In, vec!["pass"], false),
            ("evaluation.result", NotIn, vec!["fail"], true),
            ("", Exists, vec![], false),
        ] {
            assert_eq!(holds(&asks(key, operator, &values), &facts), expected, "{key} {operator:?} {values:?}");
        }
        let both = |other: &str| [Requirement::is("result", "fail"), Requirement::is("test.status", other)];
        assert!(holds(&both("timedOut").into_iter().collect(), &facts));
        assert!(!holds(&both("errored").into_iter().collect(), &facts), "all must hold, not one of them");
    }

    #[test]
    fn nothing_asked_is_passed_by_pass_and_warning_alone() {
        for (result, expected) in [("pass", true), ("warning", true), ("fail", false), ("odd", false)] {
            assert_eq!(holds(&Selector::default(), &json!({"result": result})), expected);
        }
        assert!(!holds(&Selector::default(), &json!({})));
        assert!(all_hold(&Selector::default(), &json!({})));
    }
}
