//! Collects what is wrong with one object, with the places that its document knows.

use std::sync::Arc;

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
    /// Values that a file says elsewhere than the object as it is read, in the order in which they were put there.
    elsewhere: Vec<Elsewhere>,
    pub(crate) problems: Vec<Problem>,
}

/// A part of an object that stands elsewhere in its document. Both pointers are relative to the object.
#[derive(Clone, Debug)]
pub(crate) struct Moved {
    pub(crate) from: String,
    pub(crate) to: String,
}

/// Values that stand elsewhere in the file.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    /// The pointer of what is read.
    pub(crate) read: String,
    /// Where it stands.
    pub(crate) written: String,
    /// Whether that is the name of the field too: it is not, where another word for the field is written.
    pub(crate) is_field: bool,
    /// If the text there is a document of its own: that, and the pointer of the value in it.
    pub(crate) within: Option<(Arc<Document>, &'static str)>,
}

/// Where a value of an object stands.
struct Spot<'a> {
    /// In the file's document, relative to the object.
    pointer: String,
    /// The field, as a pointer.
    field: String,
    /// In the document that the text there is, if it is one.
    within: Option<(&'a Document, String)>,
}

impl<'a> Findings<'a> {
    pub(crate) fn new(file: &'a str, document: &'a Document, base: &str) -> Self {
        Self { file, document, base: base.to_owned(), elsewhere: Vec::new(), problems: Vec::new() }
    }

    /// From now on, places of values that are said elsewhere are told as they are written; also of a part of what was said
    /// elsewhere before.
    pub(crate) fn said_elsewhere(&mut self, elsewhere: Elsewhere) {
        self.elsewhere.push(elsewhere);
    }

    /// Notes that a part of the object is written in another place than where it belongs.
    pub(crate) fn moved(&mut self, from: &str, to: &str) {
        let (read, written) = (to.to_owned(), from.to_owned());
        self.said_elsewhere(Elsewhere { read, written, is_field: false, within: None });
    }

    /// Adds an error about a value; the result takes a hint.
    pub(crate) fn error(&mut self, pointer: &str, code: &str, message: impl Into<String>) -> &mut Problem {
        self.add(pointer, Document::position, code, message.into())
    }

    /// Adds an error about a key rather than its value.
    pub(crate) fn error_at_key(&mut self, pointer: &str, code: &str, message: impl Into<String>) -> &mut Problem {
        self.add(pointer, Document::key_position, code, message.into())
    }

    /// Adds a warning about a value.
    pub(crate) fn warning(&mut self, pointer: &str, code: &str, message: impl Into<String>) -> &mut Problem {
        let problem = self.error_at_key(pointer, code, message);
        problem.severity = Severity::Warning;
        problem
    }

    /// Adds an error about something at `inner` of a text.
    pub(crate) fn error_within(
        &mut self,
        pointer: &str,
        inner: Position,
        code: &str,
        message: impl Into<String>,
    ) -> &mut Problem {
        let position = self.document.position_within(&self.absolute(pointer), inner);
        let place = self.place(position);
        let problem = self.error(pointer, code, message);
        (problem.line, problem.column) = (place.line, place.column);
        problem
    }

    /// Where a value stands.
    pub(crate) fn location(&self, pointer: &str) -> Location {
        self.place(self.position(&self.spot(pointer), Document::position))
    }

    /// Where the key of a value stands.
    pub(crate) fn key_location(&self, pointer: &str) -> Location {
        self.place(self.position(&self.spot(pointer), Document::key_position))
    }

    /// How a number or boolean was written.
    pub(crate) fn written(&self, pointer: &str) -> Option<&str> {
        let spot = self.spot(pointer);
        match &spot.within {
            Some((document, inner)) => document.written(inner),
            None => self.document.written(&self.absolute(&spot.pointer)),
        }
    }

    /// Whether an error, not only warnings, was found.
    pub(crate) fn has_errors(&self) -> bool {
        self.problems.iter().any(Problem::is_error)
    }

    fn absolute(&self, pointer: &str) -> String {
        format!("{}{pointer}", self.base)
    }

    /// What was put there last was put over what was there before.
    fn spot(&self, pointer: &str) -> Spot<'_> {
        let mut spot = Spot { pointer: pointer.to_owned(), field: pointer.to_owned(), within: None };
        for Elsewhere { read, written, is_field, within } in self.elsewhere.iter().rev() {
            let rest = spot.pointer.strip_prefix(read).filter(|rest| rest.is_empty() || rest.starts_with('/'));
            let Some(rest) = rest.map(str::to_owned) else { continue };
            match within {
                Some((document, inner)) => {
                    spot.field = format!("{written}{inner}{rest}");
                    spot.within = Some((document, format!("{inner}{rest}")));
                    spot.pointer.clone_from(written);
                }
                None => spot.pointer = format!("{written}{rest}"),
            }
            if *is_field && within.is_none() {
                spot.field.clone_from(&spot.pointer);
            }
        }
        spot
    }

    fn position(&self, spot: &Spot<'_>, find: fn(&Document, &str) -> Position) -> Position {
        let outer = self.absolute(&spot.pointer);
        match &spot.within {
            Some((document, inner)) => self.document.position_within(&outer, find(document, inner)),
            None => find(self.document, &outer),
        }
    }

    fn place(&self, position: Position) -> Location {
        Location { file: self.file.to_owned(), line: position.line, column: position.column }
    }

    fn add(
        &mut self,
        pointer: &str,
        find: fn(&Document, &str) -> Position,
        code: &str,
        message: String,
    ) -> &mut Problem {
        let spot = self.spot(pointer);
        let mut problem = Problem::error(&self.place(self.position(&spot, find)), code, message);
        problem.pointer = self.absolute(&spot.pointer);
        problem.field = field_path(&spot.field);
        self.problems.push_mut(problem)
    }
}
