//! Changes of users' files: text in, text out, everything else in it as it was.
//!
//! Text is replaced by the positions that the one reader has, because a second parser would have to agree with it on what is
//! read in words of YAML 1.1, in JSON one after another, and in texts of annotations; what moves takes its comments along,
//! which no crate does. However the text is changed, it is read again: unless exactly the intended values changed, the
//! file stays as it is, and the user is told what to write.

mod change;
mod flow;
mod hook;
mod object;
mod page;
mod render;
mod splice;
mod trigger;

use serde_json::Value;

use super::problem::{Problem, field_path};
use super::snapshot::problem;
use super::yaml::{self, Document, Position};
use crate::model::object::Location;
use page::Page;

pub use change::{Change, below, difference};
pub use hook::{HookPoint, HookRequest, hooks};
pub use object::{Config, configs};
pub use trigger::{TriggerRequest, TriggerRow, TriggerSource, Wish, listed, triggers};

/// Why a file cannot be changed at a place, in bytes, and why.
struct Refusal {
    at: usize,
    message: String,
}

/// The text of a file with changes in one of its documents, counted from 0 without those that are empty. They are made one
/// after the other; those that change nothing leave the text as it is.
///
/// # Errors
/// What is wrong with the file, or why it cannot be changed so, with what to write by hand.
pub fn edit(file: &str, text: &str, document: usize, changes: &[Change]) -> Result<String, Box<Problem>> {
    let before = read(file, text)?;
    let old = found(file, &before, document)?;
    let mut wanted = old.value.clone();
    let mut edited = text.to_owned();
    for change in changes {
        let known = wanted.clone();
        change.apply(&mut wanted);
        if wanted == known && change.value().is_none_or(|value| known.pointer(&change.pointer) == Some(value)) {
            continue;
        }
        let made = Page::new(&edited, document).and_then(|page| page.with(change));
        edited = made.map_err(|refusal| refused(file, &edited, refusal, change))?;
    }
    let Some(last) = changes.last().filter(|_| edited != text) else { return Ok(edited) };
    if says(&edited, &before, document, &wanted) {
        return Ok(edited);
    }
    let Position { line, column } = old.position(&last.pointer);
    let message = "this cannot be changed here without changing something else";
    Err(by_hand(Problem::error(&Location { file: file.to_owned(), line, column }, "edit", message), last))
}

/// Whether a text has the documents that were there, but for one, which is as wanted.
fn says(text: &str, before: &[Document], document: usize, wanted: &Value) -> bool {
    let after = yaml::read(text.as_bytes());
    let is_as_before = |(index, (before, after)): (usize, (&Document, &Document))| {
        after.value == *if index == document { wanted } else { &before.value }
    };
    after.errors.is_empty()
        && after.documents.len() == before.len()
        && before.iter().zip(&after.documents).enumerate().all(is_as_before)
}

/// The words of a value as they can be written elsewhere: the lines of a block from the first column on, with the comments
/// that stand among them, and `with_key` its key and the comments right above it. Nothing where it stands in brackets, or
/// says nothing without the rest of its file.
pub(super) fn words(text: &str, document: usize, pointer: &str, with_key: bool) -> Option<String> {
    let page = Page::new(text, document).ok()?;
    let words = page.words(&change::segments(pointer), with_key)?;
    let reading = yaml::read(words.as_bytes());
    let is_whole = reading.errors.is_empty() && reading.documents.len() == 1;
    is_whole.then_some(words)
}

/// A value as the lines of a block.
pub(super) fn in_lines(value: &Value) -> String {
    let indentation = render::Indentation { step: 2, dash: 0 };
    render::block(value, 0, indentation).join("\n") + "\n"
}

/// The documents of a file.
pub(super) fn read(file: &str, text: &str) -> Result<Vec<Document>, Box<Problem>> {
    let reading = yaml::read(text.as_bytes());
    match reading.errors.first() {
        Some(error) => Err(Box::new(problem(file, error))),
        None => Ok(reading.documents),
    }
}

fn found<'a>(file: &str, documents: &'a [Document], document: usize) -> Result<&'a Document, Box<Problem>> {
    let missing =
        || Box::new(Problem::in_file(file, "edit", format!("there is no document {} in this file", document + 1)));
    documents.get(document).ok_or_else(missing)
}

fn refused(file: &str, text: &str, refusal: Refusal, change: &Change) -> Box<Problem> {
    let Position { line, column } = yaml::position(text, refusal.at);
    by_hand(Problem::error(&Location { file: file.to_owned(), line, column }, "edit", refusal.message), change)
}

/// What a person can write where nothing was changed.
fn by_hand(problem: Problem, change: &Change) -> Box<Problem> {
    let (field, value) = (field_path(&change.pointer), change.value());
    Box::new(match value {
        Some(value) => problem.hint(format!("write it by hand: `{field}` is to be `{}`", render::flow(value))),
        None => problem.hint(format!("write it by hand: `{field}` is to go")),
    })
}

impl Change {
    fn value(&self) -> Option<&Value> {
        match &self.to {
            change::To::Value(value) | change::To::Written(value, _) => Some(value),
            change::To::Nothing | change::To::Moved => None,
        }
    }
}

#[cfg(test)]
mod tests;
