//! What an unquoted scalar means: YAML 1.1's words, as Kubernetes reads them.

use serde_json::{Number, Value};

/// The value of a plain scalar.
pub(super) fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Value::Bool(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Value::Bool(false),
        _ => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

/// Whether it is one of YAML's numbers that JSON does not have.
pub(super) fn is_not_finite(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}

fn number(text: &str) -> Option<Number> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if !unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    integer(unsigned, negative).or_else(|| float(unsigned, negative))
}

fn integer(unsigned: &str, negative: bool) -> Option<Number> {
    let (digits, radix) = match unsigned.as_bytes() {
        [b'0', b'x', ..] => (&unsigned[2..], 16),
        [b'0', b'o', ..] => (&unsigned[2..], 8),
        [b'0', b'b', ..] => (&unsigned[2..], 2),
        [b'0', _, ..] => (&unsigned[1..], 8),
        _ => (unsigned, 10),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if !negative {
        return Some(magnitude.into());
    }
    0i64.checked_sub_unsigned(magnitude).map(Number::from)
}

fn float(unsigned: &str, negative: bool) -> Option<Number> {
    let is_numeric = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
    if !unsigned.bytes().all(is_numeric) || !unsigned.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let magnitude: f64 = unsigned.parse().ok()?;
    Number::from_f64(if negative { -magnitude } else { magnitude })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_and_numbers_follow_yaml_1_1() {
        let table = [
            ("yes", json!(true)),
            ("off", json!(false)),
            ("~", json!(null)),
            ("", json!(null)),
            ("y", json!("y")),
            ("0644", json!(420)),
            ("0o17", json!(15)),
            ("0x1F", json!(31)),
            ("08", json!(8.0)),
            ("-7", json!(-7)),
            ("+7", json!(7)),
            ("1.10", json!(1.1)),
            (".5", json!(0.5)),
            ("1e3", json!(1000.0)),
            ("1.2.3", json!("1.2.3")),
            ("10m", json!("10m")),
            ("-", json!("-")),
            (".", json!(".")),
            ("0x", json!("0x")),
            ("1-2", json!("1-2")),
            ("--1", json!("--1")),
            ("-9223372036854775808", json!(i64::MIN)),
            ("18446744073709551615", json!(u64::MAX)),
            ("1e999", json!("1e999")),
            ("2026-11-21", json!("2026-11-21")),
            ("25%", json!("25%")),
        ];
        for (text, value) in table {
            assert_eq!(resolve(text), value, "{text}");
        }
    }
}
