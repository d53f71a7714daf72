//! JSON files as users have them: objects one after another, indented with tabs. YAML knows neither.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::{Position, START};

/// A stretch of a file that the YAML parser can read by itself.
pub(super) struct Part<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) start: Position,
    /// The bytes before it.
    pub(super) offset: usize,
}

/// The objects of a JSON file, or the whole file if it is not JSON.
pub(super) fn parts(text: &str) -> Vec<Part<'_>> {
    json_parts(text).unwrap_or_else(|| vec![Part { text: Cow::Borrowed(text), start: START, offset: 0 }])
}

/// The objects of a JSON file; nothing, if it is not JSON.
pub(super) fn json_parts(text: &str) -> Option<Vec<Part<'_>>> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let (mut parts, mut from, mut start) = (Vec::new(), 0, START);
    while let Some(value) = stream.next() {
        value.ok()?;
        let piece = &text[from..stream.byte_offset()];
        // A tab can only be white space here: JSON's strings hold none.
        let readable = if piece.contains('\t') { Cow::Owned(piece.replace('\t', " ")) } else { Cow::Borrowed(piece) };
        parts.push(Part { text: readable, start, offset: from });
        start = end_of(start, piece);
        from = stream.byte_offset();
    }
    Some(parts)
}

/// Where one is after reading `text` from `start`.
pub(super) fn end_of(start: Position, text: &str) -> Position {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    match text.rfind('\n') {
        None => Position { line: start.line, column: start.column + count(text.chars().count()) },
        Some(newline) => Position {
            line: start.line + count(text.matches('\n').count()),
            column: 1 + count(text[newline + 1..].chars().count()),
        },
    }
}
