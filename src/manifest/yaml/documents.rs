//! Where the documents of a file are in its text: what a document is exchanged by, with all its comments.

use std::ops::Range;

use super::Position;
use super::split::{Part, json_parts};

/// The texts of a file's documents, in order, without the lines `---` between them: comments, and what has no content, go
/// with the document that they stand before or after.
pub fn documents(text: &str) -> Vec<Range<usize>> {
    json(text).unwrap_or_else(|| yaml(text))
}

/// The document that a place of a file is in; nothing, if the file has no such line.
pub fn document_at(text: &str, at: Position) -> Option<Range<usize>> {
    let before = usize::try_from(at.line).ok()?.checked_sub(1)?;
    let line = match before {
        0 => 0,
        before => text.match_indices('\n').nth(before - 1)?.0 + 1,
    };
    let column = usize::try_from(at.column).ok()?.saturating_sub(1);
    let offset = text[line..].char_indices().nth(column).map_or(text.len(), |(offset, _)| line + offset);
    documents(text).into_iter().rev().find(|range| range.start <= offset)
}

/// JSON objects one after another; nothing, if it is not JSON.
fn json(text: &str) -> Option<Vec<Range<usize>>> {
    let range = |part: Part<'_>| {
        let end = part.offset + part.text.len();
        end - part.text.trim_start().len()..end
    };
    Some(json_parts(text)?.into_iter().map(range).collect())
}

/// A line that begins with `---` or `...` ends a document wherever it stands: YAML allows them in no scalar.
fn yaml(text: &str) -> Vec<Range<usize>> {
    let (mut ranges, mut start, mut at) = (Vec::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        let rest = line.strip_prefix("---").or_else(|| line.strip_prefix("..."));
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace)) {
            ranges.push(start..at);
            start = at + "---".len();
            start += usize::from(text[start..].starts_with('\r'));
            start += usize::from(text[start..].starts_with('\n'));
        }
        at += line.len();
    }
    ranges.push(start..text.len());
    ranges.retain(|range| has_content(&text[range.clone()]));
    ranges
}

/// Whether there is more than comments and directives.
fn has_content(text: &str) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines().any(|line| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with(['#', '%'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        documents(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn documents_are_found_with_their_comments() {
        for (text, expected) in [
            ("a: 1\n", &["a: 1\n"][..]),
            ("# one\na: 1\n---\n# two\nb: 2\n", &["# one\na: 1\n", "# two\nb: 2\n"]),
            ("# head\n---\na: 1\n---\n---\nb: 2", &["a: 1\n", "b: 2"]),
            ("--- {a: 1}\n--- # x\nb: 2\n", &[" {a: 1}\n", " # x\nb: 2\n"]),
            ("a: 1\r\n---\r\nb: 2\r\n", &["a: 1\r\n", "b: 2\r\n"]),
            ("a: |\n  ---\n  text\nb: ---x\n", &["a: |\n  ---\n  text\nb: ---x\n"]),
            ("{\"a\":\n1}\n\n{\"b\": 2}\n", &["{\"a\":\n1}", "{\"b\": 2}"]),
            ("# nothing\n", &[]),
            ("a: 1\n...\n---\nb: 2\n...\n", &["a: 1\n", "b: 2\n"]),
        ] {
            assert_eq!(texts(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_place_is_in_one_document() {
        let text = "# one\na: 1\n---\n# two\nb: 2\n--- {c: 3}\n--- !!map\nd: 4\n";
        let (one, two, three, four) = ("# one\na: 1\n", "# two\nb: 2\n", " {c: 3}\n", " !!map\nd: 4\n");
        let json = "{\"ä\": 1} {\"b\": 2}";
        for (text, line, column, expected) in [
            (text, 1, 1, Some(one)),
            (text, 2, 1, Some(one)),
            (text, 4, 1, Some(two)),
            (text, 5, 4, Some(two)),
            (text, 6, 5, Some(three)),
            (text, 8, 1, Some(four)),
            (text, 99, 1, None),
            ("--- {a: 1}\n", 1, 5, Some(" {a: 1}\n")),
            ("a: 1\n...\n# two\nb: 2\n", 4, 1, Some("# two\nb: 2\n")),
            (json, 1, 1, Some("{\"ä\": 1}")),
            (json, 1, 10, Some("{\"b\": 2}")),
        ] {
            let found = document_at(text, Position { line, column }).map(|range| &text[range]);
            assert_eq!(found, expected, "{text:?} {line}:{column}");
        }
    }

    #[test]
    fn documents_begin_before_what_the_reader_finds_in_them() {
        for text in ["--- {a: 1}\n--- # x\nb: 2\n---\n\n# y\nc: 3\n...\nd: 4", "{\"a\":\n1}\n{\"b\": 2} {\"c\": 3}\n"] {
            let read = crate::manifest::yaml::read(text.as_bytes());
            assert_eq!(read.errors, [], "{text}");
            let found: Vec<_> =
                read.documents.iter().map(|document| document_at(text, document.position(""))).collect();
            assert_eq!(found, documents(text).into_iter().map(Some).collect::<Vec<_>>(), "{text}");
        }
    }
}
