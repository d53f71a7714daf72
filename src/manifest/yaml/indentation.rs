//! Indentation as libyaml has it, by which `kubectl` and `oc` read: inside quotes and brackets it means nothing.
//!
//! The parser keeps to the specification there, and refuses tabs and lines that stand too far left. Where it does, and it is
//! sure that the line is inside, the line's white space is exchanged for spaces that it takes; no line moves, and what is
//! inside quotes has lost that white space anyway.

use granit_parser::ErrorKind;

/// How many bytes are read anew at most, so that no file takes long.
const MOST_BYTES: usize = 64 << 20;
/// More columns than any value that people write stands at.
const DEEPEST: usize = 1000;

/// Mends the lines of one text, time after time.
#[derive(Debug, Default)]
pub(super) struct Mender {
    bytes: usize,
}

impl Mender {
    /// The text with the line in which the parser stopped, and those that surely are inside with it, as it takes them.
    /// Nothing where others would refuse the line too.
    pub(super) fn mended(&mut self, text: &str, kind: &ErrorKind, line: usize, in_brackets: bool) -> Option<String> {
        self.bytes += text.len();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let first = line.checked_sub(1).filter(|first| *first < lines.len() && self.bytes <= MOST_BYTES)?;
        let (indent, count) = match kind {
            ErrorKind::TabInIndentation => (0, 1),
            ErrorKind::TabInBlockIndentation if in_brackets => (0, 1),
            ErrorKind::InvalidQuotedScalarIndent => (deepest(&lines[..first]) + 1, quoted(&lines[first..])),
            _ => return None,
        };
        let is_inside = |index: usize| (first..first + count).contains(&index);
        let mend =
            |(index, line): (usize, &&str)| if is_inside(index) { indented(line, indent) } else { (*line).to_owned() };
        let mended: String = lines.iter().enumerate().map(mend).collect();
        (mended != text).then_some(mended)
    }
}

/// The line with spaces for its leading tabs, and `indent` more.
fn indented(line: &str, indent: usize) -> String {
    let content = line.trim_start_matches([' ', '\t']);
    format!("{}{content}", " ".repeat(indent + line.len() - content.len()))
}

/// The column of the deepest value that could hold what follows.
fn deepest(lines: &[&str]) -> usize {
    let column = |line: &&str| line.len() - line.trim_start_matches([' ', '\t', '-', '?']).len();
    lines.iter().map(column).max().unwrap_or_default().min(DEEPEST)
}

/// How many lines are inside the quotes: one without a quote cannot end them, and nobody lets a document begin there.
fn quoted(lines: &[&str]) -> usize {
    let without_end = lines.iter().take_while(|line| !line.contains(['"', '\''])).count();
    let inside = &lines[..(without_end + 1).min(lines.len())];
    inside.iter().take_while(|line| !marks_a_document(line)).count()
}

fn marks_a_document(line: &str) -> bool {
    let rest = line.strip_prefix("---").or_else(|| line.strip_prefix("..."));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}
