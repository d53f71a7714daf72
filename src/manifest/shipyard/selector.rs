//! What a trigger asks of the end that it waits for: Keptn's `match`, and Kubernetes' `matchExpressions`.

use serde_json::Value;

use super::{as_meant, texts};
use crate::manifest::findings::Findings;
use crate::manifest::pod_template::{items, text_at};
use crate::manifest::yaml::push_segment;
use crate::model::outcome::TaskResult;
use crate::model::shipyard::{Operator, Requirement};

/// Keptn's documents say it, and its controller `fail`.
const FAILED: &str = "failed";

/// A requirement, and where it is written.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) asked: Requirement,
    /// Of all of it.
    pub(super) pointer: String,
    /// Whether it is a plain `key: value`.
    is_plain: bool,
    /// Which values say `failed` for `fail`.
    failed: Vec<usize>,
}

impl Written {
    /// Where its value at `index` stands.
    pub(super) fn value(&self, index: usize) -> String {
        if self.is_plain { self.pointer.clone() } else { format!("{}/values/{index}", self.pointer) }
    }

    /// Where its key stands.
    pub(super) fn key(&self) -> String {
        if self.is_plain { self.pointer.clone() } else { format!("{}/key", self.pointer) }
    }
}

/// Whether a key is the result of a sequence or a task.
pub(super) fn is_result(key: &str) -> bool {
    key == "result" || key.strip_suffix(".result").is_some_and(|task| !task.contains('.'))
}

/// What a trigger that stands at `at` asks, in the order of the file.
pub(super) fn written(trigger: &Value, at: &str) -> Vec<Written> {
    let plain = trigger.pointer("/selector/match").and_then(Value::as_object).into_iter().flatten();
    let plain = plain.map(|(key, value)| {
        let mut pointer = format!("{at}/selector/match");
        push_segment(&mut pointer, key);
        let asked = Requirement::is(key, value.as_str().unwrap_or_default());
        Written { asked, pointer, is_plain: true, failed: Vec::new() }
    });
    let expressions = items(trigger, "/selector/matchExpressions").filter_map(|(index, value)| {
        let operator = Operator::named(text_at(value, "/operator"))?;
        let asked = Requirement { key: text_at(value, "/key").to_owned(), operator, values: texts(value, "/values") };
        let pointer = format!("{at}/selector/matchExpressions/{index}");
        Some(Written { asked, pointer, is_plain: false, failed: Vec::new() })
    });
    // What events from outside carry is their own.
    let is_of_an_end = text_at(trigger, "/event").ends_with(".finished");
    plain.chain(expressions).map(|written| if is_of_an_end { as_it_is_meant(written) } else { written }).collect()
}

fn as_it_is_meant(mut written: Written) -> Written {
    let asked = &mut written.asked;
    if let Some((task, rest)) = asked.key.split_once('.') {
        asked.key = format!("{}.{rest}", as_meant(task));
    }
    let is_result = is_result(&asked.key);
    for (index, value) in asked.values.iter_mut().enumerate().filter(|(_, value)| is_result && *value == FAILED) {
        TaskResult::Fail.as_str().clone_into(value);
        written.failed.push(index);
    }
    written
}

/// Tells what is wrong with requirements by themselves.
pub(super) fn check(written: &[Written], findings: &mut Findings<'_>) {
    for it in written {
        let values = format!("{}/values", it.pointer);
        match (it.asked.operator.takes_values(), it.asked.values.is_empty()) {
            (true, true) => {
                findings.error(&values, "required", "`In` and `NotIn` compare with values");
            }
            (false, false) => {
                findings.error(&values, "invalid", "`Exists` and `DoesNotExist` take no values");
            }
            _ => {}
        }
        for index in &it.failed {
            let message = "the result of a sequence is `fail`; `failed` is read as that";
            findings.warning(&it.value(*index), "shipyard", message);
        }
    }
}
