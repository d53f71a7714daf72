//! Checks a value against its table and normalises it: what is null or empty without meaning anything goes, amounts
//! are written in one way. Two files that say the same become the same value.

use serde_json::{Map, Value};

use super::nearest::nearest;
use super::{Field, Shape, Type};
use crate::manifest::findings::Findings;
use crate::manifest::problem::Severity;
use crate::manifest::quantity;
use crate::manifest::yaml::push_segment;

/// What an unknown key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// A warning, and the key is dropped: upstream ignores it too.
    Users,
    /// An error: in launchway's own kinds.
    Own,
}

/// Checks and normalises an object.
pub(crate) fn check(value: &mut Value, shape: &'static Shape, strictness: Strictness, findings: &mut Findings<'_>) {
    check_at("", value, Type::Object(shape), strictness, findings);
}

/// The same for a value that stands at `pointer` of its object.
pub(crate) fn check_at(
    pointer: &str,
    value: &mut Value,
    kind: Type,
    strictness: Strictness,
    findings: &mut Findings<'_>,
) {
    Walk { strictness, findings, pointer: pointer.to_owned() }.value(value, kind);
}

struct Walk<'a, 'b> {
    strictness: Strictness,
    findings: &'a mut Findings<'b>,
    pointer: String,
}

impl Walk<'_, '_> {
    fn value(&mut self, value: &mut Value, kind: Type) {
        match (kind, &mut *value) {
            (Type::Any, _)
            | (Type::Text | Type::Secret, Value::String(_))
            | (Type::Flag, Value::Bool(_))
            | (Type::IntegerOrText, Value::String(_)) => {}
            (Type::Word(words), Value::String(text)) => self.word(text, words),
            (Type::Integer(from, to), Value::Number(number)) if number.is_i64() || number.is_u64() => {
                if number.as_i64().is_none_or(|number| number < from || number > to) {
                    let number = number.to_string();
                    self.out_of_range(&number, from, to);
                }
            }
            (Type::IntegerOrText, Value::Number(number)) if number.is_i64() => {}
            (Type::Quantity, Value::String(_) | Value::Number(_)) => self.quantity(value),
            (Type::List(item), Value::Array(items)) => self.items(items, *item),
            (Type::Map(item), Value::Object(map)) => self.entries(map, *item),
            (Type::Object(shape), Value::Object(map)) => self.fields(map, shape),
            _ => self.mismatch(kind, value),
        }
    }

    fn items(&mut self, items: &mut [Value], kind: Type) {
        for (index, item) in items.iter_mut().enumerate() {
            self.inside(&index.to_string(), |walk| walk.value(item, kind));
        }
    }

    fn entries(&mut self, map: &mut Map<String, Value>, kind: Type) {
        for (key, value) in map.iter_mut() {
            if value.is_null() && matches!(kind, Type::Text | Type::Secret) {
                *value = Value::String(String::new());
            }
            self.inside(key, |walk| walk.value(value, kind));
        }
    }

    fn fields(&mut self, map: &mut Map<String, Value>, shape: &'static Shape) {
        map.retain(|key, value| {
            let Some(field) = shape.fields.iter().find(|field| field.name == key) else {
                self.unknown(key, shape);
                // Another runtime may know what this program does not.
                return self.strictness == Strictness::Users && !value.is_null();
            };
            if value.is_null() || field.forgotten {
                return false;
            }
            self.inside(key, |walk| walk.value(value, field.kind));
            // An object that must be there complains itself about what it lacks.
            let is_kept = field.kept || field.required && matches!(field.kind, Type::Object(_));
            is_kept || !is_empty(value)
        });
        for field in shape.fields.iter().filter(|field| field.required && !map.contains_key(field.name)) {
            self.missing(field);
        }
    }

    fn inside(&mut self, segment: &str, run: impl FnOnce(&mut Self)) {
        let length = self.pointer.len();
        push_segment(&mut self.pointer, segment);
        run(self);
        self.pointer.truncate(length);
    }

    fn missing(&mut self, field: &Field) {
        self.inside(field.name, |walk| {
            walk.findings.error(&walk.pointer, "required", "this is required");
        });
    }

    fn unknown(&mut self, key: &str, shape: &Shape) {
        let known = nearest(key, shape.fields.iter().map(|field| field.name));
        let mut pointer = self.pointer.clone();
        push_segment(&mut pointer, key);
        let problem = self.findings.error_at_key(&pointer, "unknown-key", format!("the key `{key}` is not known"));
        problem.hint = known.map(|known| format!("did you mean `{known}`?"));
        if self.strictness == Strictness::Users {
            problem.severity = Severity::Warning;
        }
    }

    fn word(&mut self, text: &str, words: &'static [&'static str]) {
        if words.contains(&text) || text.is_empty() {
            return;
        }
        let message = format!("`{text}` is not supported");
        let problem = self.findings.error(&self.pointer, "unsupported-value", message);
        problem.hint = Some(match nearest(text, words.iter().copied()) {
            Some(known) => format!("did you mean `{known}`?"),
            None => format!("supported: {}", words.join(", ")),
        });
    }

    fn out_of_range(&mut self, number: &str, from: i64, to: i64) {
        let message = match to {
            i64::MAX => format!("must be {from} or more, not {number}"),
            _ => format!("must be between {from} and {to}, not {number}"),
        };
        self.findings.error(&self.pointer, "invalid", message);
    }

    fn quantity(&mut self, value: &mut Value) {
        let text = match &*value {
            Value::String(text) => text.clone(),
            other => self.findings.written(&self.pointer).map_or_else(|| other.to_string(), str::to_owned),
        };
        match quantity::canonical(&text) {
            Some(canonical) => *value = Value::String(canonical),
            None => {
                let message = format!("`{text}` is not an amount");
                self.findings.error(&self.pointer, "invalid", message).hint = Some("such as 250m, 2 or 64Mi".into());
            }
        }
    }

    fn mismatch(&mut self, kind: Type, value: &Value) {
        let wanted = match kind {
            Type::Text | Type::Secret | Type::Word(_) => "text",
            Type::Integer(..) => "a whole number",
            Type::Flag => "true or false",
            Type::IntegerOrText => "a whole number or text",
            Type::Quantity => "an amount",
            Type::List(_) => "a list",
            Type::Map(_) | Type::Object(_) | Type::Any => "a mapping",
        };
        let found = match value {
            Value::Null => "empty",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "text",
            Value::Array(_) => "a list",
            Value::Object(_) => "a mapping",
        };
        let written = self.findings.written(&self.pointer).filter(|_| !matches!(kind, Type::Secret));
        let wants_text = matches!(kind, Type::Text | Type::Secret | Type::Word(_));
        let message = match written {
            Some(written) => format!("must be {wanted}, but `{written}` is read as {found}"),
            None => format!("must be {wanted}, but this is {found}"),
        };
        let hint = match (written, value) {
            (Some(written), _) if wants_text => Some(format!("put it in quotes: \"{written}\"")),
            (None, Value::Bool(_) | Value::Number(_)) if wants_text => Some("put it in quotes".to_owned()),
            (_, Value::String(text)) => without_quotes(kind, text),
            _ => None,
        };
        self.findings.error(&self.pointer, "type", message).hint = hint;
    }
}

/// What text in the place of a number or a flag should be.
fn without_quotes(kind: Type, text: &str) -> Option<String> {
    match kind {
        Type::Integer(..) if text.parse::<i64>().is_ok() => Some(format!("remove the quotes: {text}")),
        Type::Integer(..) => Some("write it in digits, without quotes, such as 2".to_owned()),
        Type::Flag if matches!(text, "true" | "false") => Some(format!("remove the quotes: {text}")),
        Type::Flag => Some("write true or false, without quotes".to_owned()),
        _ => None,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_wrote_text_is_told_what_to_write() {
        let integer = Type::Integer(0, 9);
        for (kind, text, hint) in [
            (integer, "2", Some("remove the quotes: 2")),
            (integer, "two", Some("write it in digits, without quotes, such as 2")),
            (Type::Flag, "true", Some("remove the quotes: true")),
            (Type::Flag, "ja", Some("write true or false, without quotes")),
            (Type::List(&Type::Text), "a", None),
        ] {
            assert_eq!(without_quotes(kind, text).as_deref(), hint, "{text}");
        }
    }
}
