//! `${X}` and `${{X}}` in what a template holds.
//!
//! Source of the rules: OpenShift's `templateprocessing`. `${{X}}` counts only as a whole text, and what it brings is read
//! as JSON, or else is text; `${X}` may stand anywhere in texts and keys; a name that is no parameter's stays as it is.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::manifest::findings::Moved;
use crate::manifest::yaml::push_segment;

/// The parameters' values by name.
pub(super) type Values = BTreeMap<String, String>;

/// How much values may add to what is written, in bytes; what would be beyond it is left out.
#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
    pub(super) is_spent: bool,
}

impl Budget {
    pub(super) fn new(bytes: usize) -> Self {
        Self { left: bytes, is_spent: false }
    }

    fn take<'a>(&mut self, value: &'a str) -> &'a str {
        match self.left.checked_sub(value.len()) {
            Some(left) => {
                self.left = left;
                value
            }
            None => {
                self.is_spent = true;
                ""
            }
        }
    }
}

/// An object with values in the places of parameters, and what stands under another key than it is written.
pub(super) fn substitute(value: &Value, values: &Values, budget: &mut Budget) -> (Value, Vec<Moved>) {
    let mut walk = Walk { values, budget, moved: Vec::new() };
    let mut pointers = Moved { from: String::new(), to: String::new() };
    let substituted = walk.value(value, &mut pointers);
    (substituted, walk.moved)
}

/// A text with values in the places of parameters.
pub(super) fn in_text(text: &str, values: &Values, budget: &mut Budget) -> String {
    let mut substituted = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, after) = rest.split_at(start);
        substituted.push_str(before);
        let named = after[2..].split_once('}').filter(|(name, _)| is_name(name));
        match named.and_then(|(name, after)| Some((values.get(name)?, after))) {
            Some((value, after)) => {
                substituted.push_str(budget.take(value));
                rest = after;
            }
            None => {
                substituted.push_str(&after[..2]);
                rest = &after[2..];
            }
        }
    }
    substituted.push_str(rest);
    substituted
}

/// Whether a text names a parameter in the way that upstream looks for, known or not.
pub(super) fn names_a_parameter(text: &str) -> bool {
    let mut starts = text.match_indices("${");
    starts.any(|(start, _)| text[start + 2..].split_once('}').is_some_and(|(name, _)| is_name(name)))
}

/// Upstream's rule for names of parameters.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

struct Walk<'a> {
    values: &'a Values,
    budget: &'a mut Budget,
    moved: Vec<Moved>,
}

impl Walk<'_> {
    /// `at` is where the value is written, and where it goes.
    fn value(&mut self, value: &Value, at: &mut Moved) -> Value {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => {
                let item = |(index, item): (usize, &Value)| {
                    let index = index.to_string();
                    below(at, &index, &index, |at| self.value(item, at))
                };
                Value::Array(items.iter().enumerate().map(item).collect())
            }
            Value::Object(map) => {
                let mut substituted = Map::new();
                for (key, value) in map {
                    let name = in_text(key, self.values, self.budget);
                    let value = below(at, key, &name, |at| {
                        if name != *key {
                            self.moved.push(at.clone());
                        }
                        self.value(value, at)
                    });
                    substituted.insert(name, value);
                }
                Value::Object(substituted)
            }
            other => other.clone(),
        }
    }

    fn text(&mut self, text: &str) -> Value {
        let name = text.strip_prefix("${{").and_then(|rest| rest.strip_suffix("}}"));
        match name.and_then(|name| self.values.get(name)) {
            Some(value) => {
                let value = self.budget.take(value);
                serde_json::from_str(value).unwrap_or_else(|_no_json| Value::String(value.to_owned()))
            }
            None => Value::String(in_text(text, self.values, self.budget)),
        }
    }
}

fn below<T>(at: &mut Moved, from: &str, to: &str, run: impl FnOnce(&mut Moved) -> T) -> T {
    let lengths = (at.from.len(), at.to.len());
    push_segment(&mut at.from, from);
    push_segment(&mut at.to, to);
    let result = run(at);
    at.from.truncate(lengths.0);
    at.to.truncate(lengths.1);
    result
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn budget() -> Budget {
        Budget::new(1000)
    }

    fn values() -> Values {
        let values =
            [("A", "x"), ("N", "3"), ("B", "true"), ("E", ""), ("L", "[1, \"a\"]"), ("R", "${A}"), ("Y", "yes")];
        values.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn parameters_are_exchanged_where_upstream_exchanges_them() {
        let table = [
            (json!("${A}"), json!("x")),
            (json!("a-${A}-${N}-${A}"), json!("a-x-3-x")),
            (json!("${N}"), json!("3")),
            (json!("${{N}}"), json!(3)),
            (json!("${{B}}"), json!(true)),
            (json!("${{L}}"), json!([1, "a"])),
            (json!("${{A}}"), json!("x")),
            (json!("${{Y}}"), json!("yes")),
            (json!("${{E}}"), json!("")),
            (json!("v${{N}}"), json!("v${{N}}")),
            (json!("${{X}}"), json!("${{X}}")),
            (json!("${X} ${E}."), json!("${X} .")),
            (json!("$${A} ${ ${A"), json!("$x ${ ${A")),
            (json!("${R}"), json!("${A}")),
            (json!("$(A) {{A}} ${a.b}"), json!("$(A) {{A}} ${a.b}")),
            (json!({"${A}": ["${A}", 1, null, {"k": "${{N}}"}]}), json!({"x": ["x", 1, null, {"k": 3}]})),
        ];
        for (given, expected) in table {
            assert_eq!(substitute(&given, &values(), &mut budget()).0, expected, "{given}");
        }
    }

    #[test]
    fn a_changed_key_is_found_where_it_is_written() {
        let (_, moved) = substitute(&json!({"a": {"${A}/${N}": {"${N}": 1}}, "b": 2}), &values(), &mut budget());
        let told: Vec<_> = moved.iter().map(|moved| format!("{} < {}", moved.to, moved.from)).collect();
        assert_eq!(told, ["/a/x~13 < /a/${A}~1${N}", "/a/x~13/3 < /a/${A}~1${N}/${N}"]);
    }

    #[test]
    fn a_namespace_that_names_a_parameter_is_told_from_a_fixed_one() {
        for (text, expected) in
            [("${A}", true), ("x-${UNKNOWN}", true), ("x", false), ("${a.b}", false), ("${}", false)]
        {
            assert_eq!(names_a_parameter(text), expected, "{text}");
        }
    }

    #[test]
    fn growth_is_bounded() {
        let mut budget = Budget::new(10);
        let values = Values::from([("A".to_owned(), "12345678".to_owned())]);
        let (value, _) = substitute(&json!(["${A}", "${A}"]), &values, &mut budget);
        assert_eq!((value, budget.is_spent), (json!(["12345678", ""]), true));
    }

    proptest::proptest! {
        #[test]
        fn text_without_parameters_stays(text in "[^$]{0,40}") {
            proptest::prop_assert_eq!(in_text(&text, &values(), &mut budget()), text);
        }
    }
}
