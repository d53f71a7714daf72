//! The difference of two texts, line by line.

use std::fmt::Write as _;

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::udiff::UnifiedHunkHeader;
use similar::{Change, ChangeTag, DiffOp, group_diff_ops};

/// How many lines are shown around what differs.
const CONTEXT: usize = 3;

/// Two texts, and what makes one of the other.
#[derive(Debug)]
pub struct LineDiff<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    operations: Vec<DiffOp>,
}

impl<'a> LineDiff<'a> {
    /// Compares two texts. `similar::TextDiff` chooses its algorithm as it runs, and so brings all of them into the program.
    pub fn of(old: &'a str, new: &'a str) -> Self {
        let (old, new): (Vec<&str>, Vec<&str>) =
            (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
        let mut found = Compact::new(Replace::new(Capture::new()), &old[..], &new[..]);
        let Ok(()) = myers::diff(&mut found, &old[..], 0..old.len(), &new[..], 0..new.len());
        let operations = found.into_inner().into_inner().into_ops();
        Self { old, new, operations }
    }

    /// All lines of both, each with its end and a sign: `-` of what only the old text has, `+` of what only the new one has, or a
    /// space.
    pub fn lines(&self) -> impl Iterator<Item = (char, &'a str)> {
        self.lines_of(&self.operations)
    }

    fn lines_of(&self, operations: &[DiffOp]) -> impl Iterator<Item = (char, &'a str)> {
        let changes = operations.iter().flat_map(|operation| operation.iter_changes(&self.old[..], &self.new[..]));
        changes.map(|change: Change<&'a str>| {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            (sign, change.value())
        })
    }

    /// What differs, as `diff --unified` prints it and `patch` reads it; nothing, if nothing does.
    pub fn unified(&self, old_name: &str, new_name: &str) -> String {
        let mut text = String::new();
        for hunk in group_diff_ops(self.operations.clone(), CONTEXT) {
            if text.is_empty() {
                text = format!("--- {old_name}\n+++ {new_name}\n");
            }
            _ = writeln!(text, "{}", UnifiedHunkHeader::new(&hunk));
            for (sign, line) in self.lines_of(&hunk) {
                _ = write!(text, "{sign}{line}");
                if !line.ends_with('\n') {
                    text.push_str("\n\\ No newline at end of file\n");
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_printed_with_what_is_around_it() {
        let old: String = (1..=20).map(|number| format!("line {number}\n")).collect();
        let new = old.replace("line 2\n", "").replace("line 15\n", "line 15\nline 15b\n").replace("20\n", "20");
        let expected = "\
--- a
+++ b
@@ -1,5 +1,4 @@
 line 1
-line 2
 line 3
 line 4
 line 5
@@ -13,8 +12,9 @@
 line 13
 line 14
 line 15
+line 15b
 line 16
 line 17
 line 18
 line 19
-line 20
+line 20
\\ No newline at end of file
";
        assert_eq!(LineDiff::of(&old, &new).unified("a", "b"), expected);
    }

    #[test]
    fn texts_that_are_alike_do_not_differ() {
        for text in ["", "one\n", "one"] {
            assert_eq!(LineDiff::of(text, text).unified("a", "b"), "");
            let lines: Vec<&str> = LineDiff::of(text, text).lines().map(|(_, line)| line).collect();
            assert_eq!(lines.concat(), text);
        }
        assert_eq!(LineDiff::of("", "one\n").unified("a", "b"), "--- a\n+++ b\n@@ -0,0 +1 @@\n+one\n");
    }
}
