//! One criterion of an objective: `<600`, `<=+10%`, `>=-5`.

use std::cmp::Ordering;
use std::fmt;

use serde::Deserialize;

/// What a value must be. Source: Keptn's lighthouse-service.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Criterion {
    /// As it is written.
    pub text: String,
    /// How the value stands to the target.
    pub operator: Operator,
    /// To what.
    pub target: Target,
}

/// How a value stands to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `=`
    Equal,
    /// `>=`
    AtLeast,
    /// `>`
    More,
}

/// What a value is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// This: `600`.
    Fixed(f64),
    /// So many percent more than before, less if it is negative: `+10%`, `-5%`, `10%`.
    Percent(f64),
    /// So much more than before: `+10`, `-5`.
    Change(f64),
}

impl Operator {
    /// What begins with another one comes before that.
    const ALL: [(&'static str, Self); 5] =
        [("<=", Self::AtMost), ("<", Self::Less), (">=", Self::AtLeast), (">", Self::More), ("=", Self::Equal)];

    /// Whether it holds of a value and a target.
    pub fn holds(self, value: f64, target: f64) -> bool {
        let Some(order) = value.partial_cmp(&target) else { return false };
        match self {
            Operator::Less => order == Ordering::Less,
            Operator::AtMost => order != Ordering::Greater,
            Operator::Equal => order == Ordering::Equal,
            Operator::AtLeast => order != Ordering::Less,
            Operator::More => order == Ordering::Greater,
        }
    }
}

impl Target {
    /// The value that a value is compared with, if it was `before`; nothing, if that has to be known and is not.
    pub fn value(self, before: Option<f64>) -> Option<f64> {
        match self {
            Target::Fixed(value) => Some(value),
            Target::Percent(percent) => before.map(|before| before * (100.0 + percent) / 100.0),
            Target::Change(change) => before.map(|before| before + change),
        }
    }

    /// Whether it depends on earlier values.
    pub fn is_relative(self) -> bool {
        !matches!(self, Target::Fixed(_))
    }
}

impl TryFrom<String> for Criterion {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let wrong = || format!("`{text}` is no criterion");
        let written: String = text.chars().filter(|it| !it.is_whitespace()).collect();
        let found = Operator::ALL.into_iter().find_map(|(word, it)| Some((it, written.strip_prefix(word)?)));
        let (operator, rest) = found.ok_or_else(wrong)?;
        let (amount, is_percent) = rest.strip_suffix('%').map_or((rest, false), |amount| (amount, true));
        let (sign, amount) = match (amount.strip_prefix('+'), amount.strip_prefix('-')) {
            (Some(amount), _) => (Some(1.0), amount),
            (_, Some(amount)) => (Some(-1.0), amount),
            _ => (None, amount),
        };
        let amount = number(amount).ok_or_else(wrong)?;
        let target = match (is_percent, sign) {
            (true, sign) => Target::Percent(sign.unwrap_or(1.0) * amount),
            (false, Some(sign)) => Target::Change(sign * amount),
            (false, None) => Target::Fixed(amount),
        };
        Ok(Self { text: written, operator, target })
    }
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A number of digits with at most one point.
pub(super) fn number(text: &str) -> Option<f64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|number: &f64| is_plain && number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn criteria_are_read_as_keptn_reads_them() {
        for (text, operator, target) in [
            ("<600", Operator::Less, Target::Fixed(600.0)),
            ("<= 0.5", Operator::AtMost, Target::Fixed(0.5)),
            ("=0", Operator::Equal, Target::Fixed(0.0)),
            (">=.5", Operator::AtLeast, Target::Fixed(0.5)),
            (">1", Operator::More, Target::Fixed(1.0)),
            ("<=+10%", Operator::AtMost, Target::Percent(10.0)),
            (">=-5%", Operator::AtLeast, Target::Percent(-5.0)),
            ("<10%", Operator::Less, Target::Percent(10.0)),
            ("<=+10", Operator::AtMost, Target::Change(10.0)),
            (">-2.5", Operator::More, Target::Change(-2.5)),
        ] {
            let read = Criterion::try_from(text.to_owned()).unwrap();
            assert_eq!((read.operator, read.target), (operator, target), "{text}");
        }
        for text in
            ["", "600", "<", "<%", "<+", "=<5", "<>5", "==5", "<1e3", "<inf", "<5ms", "<+-5", "<5%%", "<1.2.3", "!=1"]
        {
            let wrong = Criterion::try_from(text.to_owned()).unwrap_err();
            assert_eq!(wrong, format!("`{text}` is no criterion"));
        }
    }

    #[test]
    fn a_value_is_compared_with_a_number_or_with_what_was_before() {
        for (text, before, value, holds) in [
            ("<600", None, 599.9, true),
            ("<600", None, 600.0, false),
            ("<=600", None, 600.0, true),
            ("=600", None, 600.0, true),
            ("=600", None, 601.0, false),
            (">=600", None, 600.0, true),
            (">600", None, 600.0, false),
            ("<=+10%", Some(100.0), 110.0, true),
            ("<=+10%", Some(100.0), 110.1, false),
            (">=-5%", Some(200.0), 190.0, true),
            (">=-5%", Some(200.0), 189.0, false),
            ("<=+10", Some(100.0), 110.0, true),
            ("<=+10", Some(100.0), 111.0, false),
            (">-5", Some(100.0), 95.0, false),
        ] {
            let read = Criterion::try_from(text.to_owned()).unwrap();
            let target = read.target.value(before).unwrap();
            assert_eq!(read.operator.holds(value, target), holds, "{value} {text} after {before:?}");
        }
        assert_eq!(Target::Percent(1.0).value(None), None);
    }
}
