//! What is wrong in a file, and where: the one shape of every message of this room.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::object::{Location, ObjectKey};

/// The code of a document that is read and left to other runtimes.
pub const NOT_APPLIED: &str = "not-applied";

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The revision is refused.
    Error,
    /// The revision is deployed all the same.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        })
    }
}

/// One finding. Sorted by place, the order in which people read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Problem {
    /// Path from the repository's root.
    pub file: String,
    /// Counts from 1.
    pub line: u32,
    /// Counts from 1.
    pub column: u32,
    /// How bad it is.
    pub severity: Severity,
    /// A short stable word for programs, such as `unknown-key`.
    pub code: String,
    /// What is wrong: a lower-case fragment.
    pub message: String,
    /// What the reader can do, if anything is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hint: Option<String>,
    /// JSON pointer from the document's root.
    pub pointer: String,
    /// Upstream's path from the object's root, such as `spec.strategy.rollingParams.maxSurge`.
    pub field: String,
    /// What a document that is not applied may have declared before, when its kind was another.
    #[serde(skip)]
    pub may_stand_for: Vec<ObjectKey>,
    /// Whether nothing of its file could be read, so that it may declare anything.
    #[serde(skip)]
    pub is_unread: bool,
}

impl Problem {
    /// An error about a place in a file, not about a field.
    pub fn error(location: &Location, code: &str, message: impl Into<String>) -> Self {
        Self {
            file: location.file.clone(),
            line: location.line,
            column: location.column,
            severity: Severity::Error,
            code: code.to_owned(),
            message: message.into(),
            hint: None,
            pointer: String::new(),
            field: String::new(),
            may_stand_for: Vec::new(),
            is_unread: false,
        }
    }

    /// An error about a whole file.
    pub fn in_file(file: &str, code: &str, message: impl Into<String>) -> Self {
        Self::error(&Location { file: file.to_owned(), line: 1, column: 1 }, code, message)
    }

    /// Makes it a warning.
    #[must_use]
    pub fn warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    /// Says that nothing of its file could be read.
    #[must_use]
    pub fn unread(mut self) -> Self {
        self.is_unread = true;
        self
    }

    /// Adds what the reader can do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether the revision must be refused.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Problem {
    /// `file:line:col: error: message`, and with `{:#}` the hint on a line of its own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}: ", self.file, self.line, self.column, self.severity)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) if f.alternate() => write!(f, "\n  hint: {hint}"),
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// `/spec/triggers/0/type` as upstream writes it: `spec.triggers[0].type`.
pub fn field_path(pointer: &str) -> String {
    let mut path = String::with_capacity(pointer.len());
    for segment in pointer.split('/').skip(1) {
        if !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit()) {
            path.push('[');
            path.push_str(segment);
            path.push(']');
            continue;
        }
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(&segment.replace("~1", "/").replace("~0", "~"));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_becomes_upstreams_path() {
        let table = [
            ("", ""),
            ("/spec/replicas", "spec.replicas"),
            ("/spec/triggers/0/type", "spec.triggers[0].type"),
            ("/metadata/labels/a~1b", "metadata.labels.a/b"),
        ];
        for (pointer, field) in table {
            assert_eq!(field_path(pointer), field);
        }
    }

    #[test]
    fn a_problem_reads_like_a_compilers() {
        let place = Location { file: "a.yaml".into(), line: 3, column: 5 };
        let problem = Problem::error(&place, "invalid", "must be text").hint("quote it");
        assert_eq!(problem.to_string(), "a.yaml:3:5: error: must be text (quote it)");
        assert_eq!(format!("{problem:#}"), "a.yaml:3:5: error: must be text\n  hint: quote it");
    }
}
