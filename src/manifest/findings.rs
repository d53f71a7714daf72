//! Collects what is wrong with one object, with the places that its document knows.

use crate::model::object::Location;

use super::problem::{Problem, Severity, field_path};
use super::yaml::{Document, Position};

/// The problems of one object. Pointers are relative to the object.
#[derive(Debug)]
pub(crate) struct Findings<'a> {
    file: &'a str,
    document: &'a Document,
    /// Where the object stands in its document: empty, or inside a `List`.
    base: String,
    pub(crate) problems: Vec<Problem>,
}

impl<'a> Findings<'a> {
    pub(crate) fn new(file: &'a str, document: &'a Document, base: &str) -> Self {
        Self { file, document, base: base.to_owned(), problems: Vec::new() }
    }

    /// Adds an error about a value; the result takes a hint.
    pub(crate) fn error(&mut self, pointer: &str, code: &str, message: impl Into<String>) -> &mut Problem {
        let position = self.document.position(&self.absolute(pointer));
        self.add(pointer, position, code, message.into())
    }

    /// Adds an error about a key rather than its value.
    pub(crate) fn error_at_key(&mut self, pointer: &str, code: &str, message: impl Into<String>) -> &mut Problem {
        let position = self.document.key_position(&self.absolute(pointer));
        self.add(pointer, position, code, message.into())
    }

    /// Adds a warning about a value.
    pub(crate) fn warning(&mut self, pointer: &str, code: &str, message: impl Into<String>) -> &mut Problem {
        let problem = self.error_at_key(pointer, code, message);
        problem.severity = Severity::Warning;
        problem
    }

    /// Where a value stands.
    pub(crate) fn location(&self, pointer: &str) -> Location {
        self.place(self.document.position(&self.absolute(pointer)))
    }

    /// Where the key of a value stands.
    pub(crate) fn key_location(&self, pointer: &str) -> Location {
        self.place(self.document.key_position(&self.absolute(pointer)))
    }

    /// How a number or boolean was written.
    pub(crate) fn written(&self, pointer: &str) -> Option<&'a str> {
        self.document.written(&self.absolute(pointer))
    }

    /// Whether an error, not only warnings, was found.
    pub(crate) fn has_errors(&self) -> bool {
        self.problems.iter().any(Problem::is_error)
    }

    fn absolute(&self, pointer: &str) -> String {
        format!("{}{pointer}", self.base)
    }

    fn place(&self, position: Position) -> Location {
        Location { file: self.file.to_owned(), line: position.line, column: position.column }
    }

    fn add(&mut self, pointer: &str, position: Position, code: &str, message: String) -> &mut Problem {
        let mut problem = Problem::error(&self.place(position), code, message);
        problem.pointer = self.absolute(pointer);
        problem.field = field_path(pointer);
        self.problems.push_mut(problem)
    }
}
