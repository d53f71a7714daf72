//! What a trigger asks of the end that it waits for. The operators are those of Kubernetes' label selectors.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::outcome::Outcome;

/// Requirements that must all hold; without any, `result` must be `pass` or `warning`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Selector {
    /// Sorted, and none twice: their order means nothing.
    requirements: Vec<Requirement>,
}

/// What must hold of one value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Requirement {
    /// `result`, `status`, `<task>.result`, `<task>.status`, or `<task>.<path>` of what the task has told.
    pub key: String,
    /// How the value is compared.
    pub operator: Operator,
    /// What it is compared with; nothing, if only its presence counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// How a value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Operator {
    /// It is one of the values.
    In,
    /// It is none of the values, or absent.
    NotIn,
    /// It is there.
    Exists,
    /// It is absent.
    DoesNotExist,
}

impl Operator {
    /// All of them, as they are written.
    pub const WORDS: [&'static str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];

    /// The operator of that word.
    pub fn named(word: &str) -> Option<Self> {
        let all = [Self::In, Self::NotIn, Self::Exists, Self::DoesNotExist];
        all.into_iter().zip(Self::WORDS).find(|(_, known)| *known == word).map(|(operator, _)| operator)
    }

    /// Whether it compares with values at all.
    pub fn takes_values(self) -> bool {
        matches!(self, Self::In | Self::NotIn)
    }
}

impl Requirement {
    /// One value and no other.
    pub fn is(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self { key: key.into(), operator: Operator::In, values: vec![value.into()] }
    }

    /// Whether a value meets it, or the absence of one.
    pub fn allows(&self, value: Option<&str>) -> bool {
        let is_listed = |value: &str| self.values.iter().any(|listed| listed == value);
        match self.operator {
            Operator::In => value.is_some_and(is_listed),
            Operator::NotIn => !value.is_some_and(is_listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }

    /// The only value that it allows, if it is a plain `key: value`.
    fn plain(&self) -> Option<&String> {
        match (self.operator, &self.values[..]) {
            (Operator::In, [value]) => Some(value),
            _ => None,
        }
    }
}

impl fmt::Display for Requirement {
    /// As people are told: `result fail`, `test.result not in pass, warning`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(", "));
        match self.operator {
            Operator::In if self.values.len() == 1 => write!(f, "{key} {values}"),
            Operator::In => write!(f, "{key} in {values}"),
            Operator::NotIn => write!(f, "{key} not in {values}"),
            Operator::Exists => write!(f, "{key} there"),
            Operator::DoesNotExist => write!(f, "{key} absent"),
        }
    }
}

impl Selector {
    /// The requirements, in an order of their own.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether nothing is asked, so that passing is enough.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether it holds on whatever passes: it asks for nothing but results and statuses.
    pub fn holds_when_passed(&self) -> bool {
        self.holds_when_all_end(Outcome::PASS)
    }

    /// Whether it holds where all fails in one way: it asks for nothing but results and statuses, and is there.
    pub fn holds_when_failed(&self) -> bool {
        let fails = [Outcome::FAIL, Outcome::ERRORED, Outcome::ABORTED, Outcome::TIMED_OUT, Outcome::UNKNOWN];
        !self.is_empty() && fails.into_iter().any(|outcome| self.holds_when_all_end(outcome))
    }

    fn holds_when_all_end(&self, outcome: Outcome) -> bool {
        self.requirements.iter().all(|asked| match asked.key.split('.').collect::<Vec<_>>()[..] {
            ["result"] | [_, "result"] => asked.allows(Some(outcome.result.as_str())),
            ["status"] | [_, "status"] => asked.allows(Some(outcome.status.as_str())),
            _ => false,
        })
    }
}

impl FromIterator<Requirement> for Selector {
    fn from_iter<I: IntoIterator<Item = Requirement>>(requirements: I) -> Self {
        let mut requirements: Vec<Requirement> = requirements.into_iter().collect();
        requirements.sort();
        requirements.dedup();
        Self { requirements }
    }
}

/// How a selector is stored. Plain ones stay the mapping that they were before there were operators: shipyards keep their
/// digests.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Plain(BTreeMap<String, String>),
    Requirements(Vec<Requirement>),
}

impl From<Written> for Selector {
    fn from(written: Written) -> Self {
        match written {
            Written::Plain(values) => values.into_iter().map(|(key, value)| Requirement::is(key, value)).collect(),
            Written::Requirements(requirements) => requirements.into_iter().collect(),
        }
    }
}

impl From<Selector> for Written {
    fn from(selector: Selector) -> Self {
        let plain = |requirement: &Requirement| Some((requirement.key.clone(), requirement.plain()?.clone()));
        let values: Option<BTreeMap<String, String>> = selector.requirements.iter().map(plain).collect();
        match values.filter(|values| values.len() == selector.requirements.len()) {
            Some(values) => Self::Plain(values),
            None => Self::Requirements(selector.requirements),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn requirement(key: &str, operator: Operator, values: &[&str]) -> Requirement {
        Requirement { key: key.to_owned(), operator, values: values.iter().map(|value| (*value).to_owned()).collect() }
    }

    #[test]
    fn what_is_stored_is_read_as_it_was_written() {
        let plain = [Requirement::is("test.result", "fail"), Requirement::is("result", "pass")];
        let twice = [requirement("result", Operator::NotIn, &["pass"]), requirement("result", Operator::Exists, &[])];
        let table: [(Selector, Value); 4] = [
            (Selector::default(), json!({})),
            (plain.into_iter().collect(), json!({"result": "pass", "test.result": "fail"})),
            (
                [requirement("result", Operator::In, &["fail", "warning"])].into_iter().collect(),
                json!([{"key": "result", "operator": "In", "values": ["fail", "warning"]}]),
            ),
            (
                twice.into_iter().collect(),
                json!([
                    {"key": "result", "operator": "NotIn", "values": ["pass"]},
                    {"key": "result", "operator": "Exists"},
                ]),
            ),
        ];
        for (selector, written) in table {
            assert_eq!(serde_json::to_value(&selector).unwrap(), written);
            assert_eq!(serde_json::from_value::<Selector>(written).unwrap(), selector);
        }
    }

    #[test]
    fn operators_compare_as_those_of_kubernetes() {
        for (operator, values, allowed) in [
            (Operator::In, vec!["a", "b"], [true, false, false]),
            (Operator::NotIn, vec!["a", "b"], [false, true, true]),
            (Operator::Exists, vec![], [true, true, false]),
            (Operator::DoesNotExist, vec![], [false, false, true]),
        ] {
            let requirement = requirement("key", operator, &values);
            assert_eq!([Some("a"), Some("c"), None].map(|value| requirement.allows(value)), allowed, "{operator:?}");
            let word = serde_json::to_value(operator).unwrap();
            assert_eq!(word.as_str().and_then(Operator::named), Some(operator));
        }
    }

    #[test]
    fn what_asks_for_more_than_results_is_not_sure_to_hold() {
        use Operator::{Exists, In, NotIn};
        let selector = |key: &str, operator, values: &[&str]| -> Selector {
            [requirement(key, operator, values)].into_iter().collect()
        };
        for (asked, expected) in [
            (Selector::default(), [true, false]),
            (selector("result", In, &["pass"]), [true, false]),
            (selector("result", NotIn, &["fail"]), [true, false]),
            (selector("test.result", In, &["pass", "warning"]), [true, false]),
            (selector("status", NotIn, &["aborted"]), [true, true]),
            (selector("result", In, &["fail"]), [false, true]),
            (selector("result", In, &["warning"]), [false, false]),
            (selector("status", In, &["aborted"]), [false, true]),
            (selector("test.status", In, &["timedOut"]), [false, true]),
            (selector("deployment.uri", Exists, &[]), [false, false]),
            (selector("deployment.uri.result", In, &["pass"]), [false, false]),
        ] {
            assert_eq!([asked.holds_when_passed(), asked.holds_when_failed()], expected, "{asked:?}");
        }
    }
}
