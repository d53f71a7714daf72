//! Where the documents of a file are in its text: what a document is exchanged by, with all its comments.

use std::ops::Range;

use super::split::{Part, json_parts};

/// The texts of a file's documents, in order, without the lines `---` between them: comments, and what has no content, go
/// with the document that they stand before or after.
pub fn documents(text: &str) -> Vec<Range<usize>> {
    json(text).unwrap_or_else(|| yaml(text))
}

/// The document that a line of a file, counted from 1, is in.
pub fn document_at(text: &str, line: u32) -> Option<Range<usize>> {
    let before = usize::try_from(line).ok()?.checked_sub(1)?;
    let offset = match before {
        0 => 0,
        before => text.match_indices('\n').nth(before - 1)?.0 + 1,
    };
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

/// A line that begins with `---` ends a document wherever it stands: YAML allows it in no scalar.
fn yaml(text: &str) -> Vec<Range<usize>> {
    let (mut ranges, mut start, mut at) = (Vec::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        let rest = line.strip_prefix("---");
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
        !line.is_empty() && !line.starts_with(['#', '%']) && line != "..."
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
        ] {
            assert_eq!(texts(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_line_is_in_one_document() {
        let text = "# one\na: 1\n---\n# two\nb: 2\n";
        for (line, expected) in [(1, "# one\na: 1\n"), (2, "# one\na: 1\n"), (4, "# two\nb: 2\n"), (5, "# two\nb: 2\n")]
        {
            assert_eq!(document_at(text, line).map(|range| &text[range]), Some(expected), "{line}");
        }
        assert_eq!(document_at(text, 9), None);
        assert_eq!(document_at("{\"a\": 1}", 1), Some(0..8));
    }
}
