//! Walks a document: each value is asked for by its key and type, and whatever is missing is reported once, with its place.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::files::{Holds, NamedFile};
use crate::manifest::yaml::{Document, Position, push_segment};
use crate::manifest::{Problem, nearest};
use crate::model::object::Location;

/// What is wrong so far.
pub(super) struct Problems<'a> {
    file: &'a str,
    document: &'a Document,
    found: RefCell<Vec<Problem>>,
    files: RefCell<Vec<NamedFile>>,
}

impl<'a> Problems<'a> {
    pub(super) fn new(file: &'a str, document: &'a Document) -> Self {
        Self { file, document, found: RefCell::default(), files: RefCell::default() }
    }

    /// All of them, and the files that are named.
    pub(super) fn into_parts(self) -> (Vec<Problem>, Vec<NamedFile>) {
        (self.found.into_inner(), self.files.into_inner())
    }

    fn add(&self, position: Position, pointer: &str, code: &str, message: String, hint: &str) {
        let mut problem = Problem::error(&self.location(position), code, message);
        problem.pointer = pointer.to_owned();
        if !hint.is_empty() {
            problem = problem.hint(hint);
        }
        self.found.borrow_mut().push(problem);
    }

    fn location(&self, position: Position) -> Location {
        Location { file: self.file.to_owned(), line: position.line, column: position.column }
    }
}

/// In the file's order; a value that is asked for twice is wrong once.
pub(super) fn sorted(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort();
    problems.dedup();
    problems
}

/// A place in the document, and its value if there is one.
pub(super) struct Field<'a> {
    problems: &'a Problems<'a>,
    pointer: String,
    value: Option<&'a Value>,
}

impl<'a> Field<'a> {
    pub(super) fn root(problems: &'a Problems<'a>, document: &'a Document) -> Self {
        Self { problems, pointer: String::new(), value: Some(&document.value) }
    }

    /// Says what is wrong with the value. `hint` may be empty.
    pub(super) fn error(&self, code: &str, message: impl Into<String>, hint: &str) {
        let position = self.problems.document.position(&self.pointer);
        self.problems.add(position, &self.pointer, code, message.into(), hint);
    }

    pub(super) fn is_given(&self) -> bool {
        self.value.is_some_and(|value| !value.is_null())
    }

    /// Whether the value is there; its lack is a problem.
    pub(super) fn required(&self) -> bool {
        if !self.is_given() {
            let key = self.key();
            self.error("missing", format!("`{key}` is missing"), "");
        }
        self.is_given()
    }

    fn key(&self) -> &str {
        self.pointer.rsplit('/').next().unwrap_or_default()
    }

    /// Checks that the value is a mapping with no other keys than these.
    pub(super) fn known(&self, keys: &[&str]) {
        let Some(value) = self.value.filter(|value| !value.is_null()) else { return };
        let Some(map) = value.as_object() else {
            return self.mismatch(value, "a mapping");
        };
        for key in map.keys().filter(|key| !keys.contains(&key.as_str())) {
            let field = self.field(key);
            let position = self.problems.document.key_position(&field.pointer);
            let begun = || keys.iter().copied().find(|known| known.starts_with(key.as_str()));
            let hint = match nearest(key, keys.iter().copied()).or_else(begun) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known here: {}", keys.join(", ")),
            };
            self.problems.add(position, &field.pointer, "unknown-key", format!("unknown key `{key}`"), &hint);
        }
    }

    /// The value of a key; of what is no mapping, nothing.
    pub(super) fn field(&self, key: &str) -> Field<'a> {
        let mut pointer = self.pointer.clone();
        push_segment(&mut pointer, key);
        Field { problems: self.problems, pointer, value: self.value.and_then(|value| value.get(key)) }
    }

    /// The values of a list; none if it is not given.
    pub(super) fn items(&self) -> Vec<Field<'a>> {
        let Some(value) = self.value.filter(|value| !value.is_null()) else { return Vec::new() };
        let Some(items) = value.as_array() else {
            self.mismatch(value, "a list");
            return Vec::new();
        };
        let item = |(index, value)| Field {
            problems: self.problems,
            pointer: format!("{}/{index}", self.pointer),
            value: Some(value),
        };
        items.iter().enumerate().map(item).collect()
    }

    pub(super) fn text(&self) -> Option<&'a str> {
        self.typed("text", Value::as_str)
    }

    pub(super) fn flag(&self) -> Option<bool> {
        self.typed("true or false", Value::as_bool)
    }

    pub(super) fn path(&self, folder: &Path) -> Option<PathBuf> {
        self.text().map(|path| folder.join(path))
    }

    /// The path of a file, which is checked when the configuration is loaded.
    pub(super) fn file(&self, folder: &Path, holds: Holds) -> Option<PathBuf> {
        let path = self.path(folder)?;
        self.look_at(path.clone(), holds);
        Some(path)
    }

    /// It is a secret itself, so the configuration is as private as a file that holds nothing else.
    pub(super) fn makes_private(&self) {
        self.look_at(PathBuf::from(self.problems.file), Holds::Key);
    }

    fn look_at(&self, path: PathBuf, holds: Holds) {
        let location = self.problems.location(self.problems.document.position(&self.pointer));
        self.problems.files.borrow_mut().push(NamedFile { path, holds, location, pointer: self.pointer.clone() });
    }

    /// A whole number above zero.
    pub(super) fn count(&self) -> Option<u64> {
        self.typed("a whole number above 0", |value| value.as_u64().filter(|count| *count > 0))
    }

    /// The same where nobody needs more than fit into 32 bits: what is larger stands for the most that do.
    pub(super) fn small_count(&self) -> Option<u32> {
        self.count().map(|count| u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// One of the words, with what it stands for.
    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Option<T> {
        let text = self.text()?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            self.error("invalid", format!("`{text}` is not known"), &format!("one of {}", known.join(", ")));
        }
        found
    }

    /// A time such as `10s`, `5m`, `1h30m`.
    pub(super) fn duration(&self) -> Option<Duration> {
        self.unit("a duration", "such as `10s`, `5m` or `1h30m`", |text| {
            let duration = text.parse::<jiff::SignedDuration>().ok()?;
            Duration::try_from(duration).ok()
        })
    }

    /// Bytes such as `4MiB`.
    pub(super) fn size(&self) -> Option<u64> {
        self.unit("a size", "such as `512KiB`, `4MiB` or `2GiB`", parse_size)
    }

    fn unit<T>(&self, what: &str, hint: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let value = self.value.filter(|value| !value.is_null())?;
        let parsed = value.as_str().and_then(parse);
        if parsed.is_none() {
            self.error("invalid", format!("{value} is not {what}"), hint);
        }
        parsed
    }

    fn typed<T>(&self, wanted: &str, get: impl Fn(&'a Value) -> Option<T>) -> Option<T> {
        let value = self.value.filter(|value| !value.is_null())?;
        let typed = get(value);
        if typed.is_none() {
            self.mismatch(value, wanted);
        }
        typed
    }

    /// The value itself is not shown: it may be a secret.
    fn mismatch(&self, value: &Value, wanted: &str) {
        let (found, hint) = match value {
            Value::Null => ("nothing", ""),
            Value::Bool(_) => ("true or false", "put text in quotes"),
            Value::Number(_) => ("a number", "put text in quotes"),
            Value::String(_) => ("text", ""),
            Value::Array(_) => ("a list", ""),
            Value::Object(_) => ("a mapping", ""),
        };
        let hint = if wanted == "text" { hint } else { "" };
        self.error("type", format!("this is {found}, and should be {wanted}"), hint);
    }
}

/// Bytes in a unit; the longest names first where one ends like another.
const UNITS: [(&str, u64); 5] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40), ("B", 1)];

fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    let bytes = number.parse::<u64>().ok().filter(|_| is_number)?.checked_mul(*unit)?;
    Some(bytes).filter(|bytes| *bytes > 0)
}
