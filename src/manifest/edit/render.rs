//! Values as text that is put into a file: lines of a block, or one line in brackets.

use serde::Serialize as _;
use serde_json::{Map, Value};

use crate::manifest::yaml::{layout::Style, read_scalar};

/// How lines of a file are indented.
#[derive(Clone, Copy, Debug)]
pub(super) struct Indentation {
    /// Of a mapping inside another.
    pub(super) step: usize,
    /// Of a list's dashes inside a mapping.
    pub(super) dash: usize,
}

/// Whether a value needs lines of its own in a block.
pub(super) fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

/// The lines of a value in a block, the first one without its indentation; `column` is where they begin.
pub(super) fn block(value: &Value, column: usize, indentation: Indentation) -> Vec<String> {
    match value {
        Value::Object(map) if !map.is_empty() => {
            map.iter().flat_map(|(key, value)| entry(key, value, column, indentation)).collect()
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().flat_map(|item| dashed(item, column, indentation)).collect()
        }
        scalar => scalar_lines(scalar, Style::Plain, column),
    }
    .into_iter()
    .enumerate()
    .map(|(index, line)| if index == 0 { line.trim_start().to_owned() } else { line })
    .collect()
}

/// The lines of a key and its value, all of them with their indentation.
pub(super) fn entry(key: &str, value: &Value, column: usize, indentation: Indentation) -> Vec<String> {
    let head = format!("{}{}:", " ".repeat(column), plain_or_quoted(key, false));
    if !is_block(value) {
        return with_head(format!("{head} "), scalar_lines(value, Style::Plain, column + indentation.step));
    }
    let deeper = column + if value.is_array() { indentation.dash } else { indentation.step };
    let lines = block(value, deeper, indentation);
    std::iter::once(head).chain(indented_first(lines, deeper)).collect()
}

/// The lines of a value of a list, all of them with their indentation.
pub(super) fn dashed(item: &Value, column: usize, indentation: Indentation) -> Vec<String> {
    with_head(format!("{}- ", " ".repeat(column)), block(item, column + 2, indentation))
}

fn with_head(head: String, lines: Vec<String>) -> Vec<String> {
    let mut lines = lines.into_iter();
    let first = format!("{head}{}", lines.next().unwrap_or_default());
    std::iter::once(first).chain(lines).collect()
}

fn indented_first(lines: Vec<String>, column: usize) -> Vec<String> {
    with_head(" ".repeat(column), lines)
}

/// The lines of a scalar as it was written before, as far as that can say it; lines behind the first one begin at `column`.
pub(super) fn scalar_lines(value: &Value, before: Style, column: usize) -> Vec<String> {
    if let Some(text) = value.as_str().filter(|text| may_be_literal(text))
        && (before == Style::Literal || text.contains('\n'))
    {
        return literal(text, column);
    }
    vec![scalar(value, before, false)]
}

/// A scalar in one line.
pub(super) fn scalar(value: &Value, before: Style, is_flow: bool) -> String {
    match value {
        Value::String(text) => match before {
            Style::Double => quoted_twice(text),
            Style::Single if may_be_in_single_quotes(text) => in_single_quotes(text),
            _ => plain_or_quoted(text, is_flow),
        },
        other => flow(other),
    }
}

/// A value in one line.
pub(super) fn flow(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| format!("{}: {}", plain_or_quoted(key, true), flow(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::String(text) => plain_or_quoted(text, true),
        other => other.to_string(),
    }
}

/// A value as JSON: in lines that begin with `line` and go deeper by `step`, or in one line.
pub(super) fn json(value: &Value, lines: Option<(&str, &str)>) -> String {
    let Some((line, step)) = lines else { return compact(value) };
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(step.as_bytes());
    let mut writer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    match value.serialize(&mut writer) {
        Ok(()) => String::from_utf8_lossy(&bytes).replace('\n', &format!("\n{line}")),
        Err(_) => compact(value),
    }
}

/// JSON in one line, with the spaces that people write.
fn compact(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::Object(map) => {
            let entry = |(key, value): (&String, &Value)| format!("{}: {}", quoted_twice(key), compact(value));
            format!("{{{}}}", joined(Map::iter(map).map(entry).collect()))
        }
        Value::Array(items) => format!("[{}]", joined(items.iter().map(compact).collect())),
        other => other.to_string(),
    }
}

/// Text without quotes where it is read as just that, else with them.
pub(super) fn plain_or_quoted(text: &str, is_flow: bool) -> String {
    if is_plain(text, is_flow) {
        text.to_owned()
    } else if may_be_in_single_quotes(text) && text.contains(['"', '\\']) {
        in_single_quotes(text)
    } else {
        quoted_twice(text)
    }
}

/// Stricter than YAML: what looks like something else to some reader is quoted.
fn is_plain(text: &str, is_flow: bool) -> bool {
    let begins =
        text.starts_with(|first: char| first.is_ascii_alphanumeric() || matches!(first, '/' | '.' | '_' | '$'));
    let is_known = |character: char| {
        character.is_ascii_alphanumeric()
            || matches!(character, ' ' | '_' | '.' | '/' | '@' | '%' | '+' | '=' | '-' | '$' | '(' | ')' | '~')
            || !is_flow
                && matches!(
                    character,
                    ':' | ',' | '{' | '}' | '[' | ']' | '&' | '*' | '!' | '|' | '<' | '>' | ';' | '?'
                )
    };
    begins
        && text.chars().all(is_known)
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !matches!(text, "y" | "Y" | "n" | "N" | "=" | "<<" | "---" | "...")
        && read_scalar(text) == Value::String(text.to_owned())
}

fn may_be_in_single_quotes(text: &str) -> bool {
    !text
        .chars()
        .any(|character| character.is_control() || matches!(character, '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{85}'))
}

fn in_single_quotes(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// JSON's quotes are YAML's.
fn quoted_twice(text: &str) -> String {
    let quoted = Value::String(text.to_owned()).to_string();
    quoted.replace('\u{7f}', "\\u007f").replace('\u{85}', "\\u0085").replace('\u{feff}', "\\ufeff")
}

/// Whether lines behind a `|` say it.
fn may_be_literal(text: &str) -> bool {
    let odd = |character: char| {
        character != '\n'
            && character != '\t'
            && (character.is_control() || "\u{feff}\u{2028}\u{2029}\u{85}".contains(character))
    };
    let first = text.chars().next();
    first.is_some_and(|first| !first.is_whitespace()) && !text.chars().any(odd)
}

fn literal(text: &str, column: usize) -> Vec<String> {
    let content = text.trim_end_matches('\n');
    let header = match text.len() - content.len() {
        0 => "|-",
        1 => "|",
        _ => "|+",
    };
    let ends = text.len() - content.len();
    let lines = content
        .split('\n')
        .map(|line| if line.is_empty() { String::new() } else { format!("{}{line}", " ".repeat(column)) });
    let empty = std::iter::repeat_n(String::new(), ends.saturating_sub(1));
    std::iter::once(header.to_owned()).chain(lines).chain(empty).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::manifest::yaml;

    const USUAL: Indentation = Indentation { step: 2, dash: 0 };

    #[test]
    fn lines_are_what_people_write() {
        let value = json!({"pre": {"failurePolicy": "Abort", "execNewPod": {"command": ["sh", "-c", "a && b"],
            "env": [{"name": "A", "value": "yes"}, {"name": "B", "value": "two\nlines\n"}], "volumes": []}}});
        let expected = "\
pre:
  failurePolicy: Abort
  execNewPod:
    command:
    - sh
    - \"-c\"
    - a && b
    env:
    - name: A
      value: \"yes\"
    - name: B
      value: |
        two
        lines
    volumes: []";
        assert_eq!(block(&value, 0, USUAL).join("\n"), expected);
        let deeper = block(&json!({"a": [{"b": [1]}]}), 4, Indentation { step: 4, dash: 2 });
        assert_eq!(deeper.join("\n"), "a:\n      - b:\n          - 1");
    }

    #[test]
    fn what_reads_like_something_else_is_quoted() {
        for (text, written) in [
            ("web", "web"),
            ("git:services/web", "git:services/web"),
            ("yes", "\"yes\""),
            ("1.10", "\"1.10\""),
            ("", "\"\""),
            ("a: b", "\"a: b\""),
            ("a #b", "\"a #b\""),
            ("- a", "\"- a\""),
            ("say \"hi\"", "'say \"hi\"'"),
            ("é", "\"é\""),
            ("null", "\"null\""),
        ] {
            assert_eq!(plain_or_quoted(text, false), written);
        }
        assert_eq!(flow(&json!({"a": ["b,c", "d:e"], "f": null})), "{a: [\"b,c\", \"d:e\"], f: null}");
        assert_eq!(scalar(&json!("a"), Style::Single, false), "'a'");
        assert_eq!(scalar(&json!(7), Style::Double, false), "7");
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let text = prop_oneof!["[a-z: #-]{0,8}", "[ -~\n\té]{0,12}", "\\PC{0,6}", Just("a\n\n".to_owned())];
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            text.clone().prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec((text.clone(), inner), 0..4)
                    .prop_map(|entries| Value::Object(entries.into_iter().filter(|(key, _)| key != "<<").collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_the_same(value in any_value(), step in 1usize..5, dash in 0usize..3) {
            let holder = json!({"a": value});
            for text in [
                block(&holder, 0, Indentation { step, dash }).join("\n") + "\n",
                flow(&holder),
                json(&holder, None),
                json(&holder, Some(("", "\t"))),
            ] {
                let reading = yaml::read(text.as_bytes());
                prop_assert_eq!(&reading.errors, &[], "{}", text);
                prop_assert_eq!(&reading.documents[0].value, &holder, "{}", text);
            }
        }
    }
}
