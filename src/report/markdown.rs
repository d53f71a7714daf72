//! Markdown that what users have written does not end: it stands in code, where it neither links nor calls anybody.

use serde_json::{Value, json};

use crate::manifest::digest::{self, hex};
use crate::model::seed::Seed;

/// The most characters of a value.
const MOST_OF_A_VALUE: usize = 120;
/// The most lines of one kind.
const MOST_LINES: usize = 40;

/// What is hidden at the beginning of a comment about something, by which it is found again. Whoever does not know the seed
/// cannot have begun one so before it was there. What begins so is not taken for a person's comment.
pub(super) fn remark(what: &str, seed: &Seed, about: &[Value]) -> String {
    let about: Vec<Value> = std::iter::once(json!(hex(seed.reveal()))).chain(about.iter().cloned()).collect();
    let digest = digest::of(&Value::Array(about));
    let tag: String = digest.as_str().trim_start_matches("sha256:").chars().take(16).collect();
    format!("launchway/{what} {tag}")
}

/// A list; what is too much is counted.
pub(super) fn lines(all: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = all.collect();
    let mut text: String = all.iter().take(MOST_LINES).map(|line| format!("- {line}\n")).collect();
    if all.len() > MOST_LINES {
        text.push_str(&format!("- and {} more\n", all.len() - MOST_LINES));
    }
    text
}

/// The most characters of a line of a block.
const MOST_OF_A_LINE: usize = 500;

/// Lines as they are: what is indented is code, whatever is in it. What is too much is counted.
pub(crate) fn block(all: &[String]) -> String {
    let shown = |line: &String| {
        let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MOST_OF_A_LINE).collect();
        format!("    {line}\n")
    };
    let mut text: String = all.iter().take(MOST_LINES).map(shown).collect();
    if all.len() > MOST_LINES {
        text.push_str(&format!("    and {} more\n", all.len() - MOST_LINES));
    }
    text
}

/// Text as code in a line: whatever stands in it is shown as it is.
pub(super) fn code(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MOST_OF_A_VALUE).collect();
    let cut = if text.chars().count() > MOST_OF_A_VALUE { "…" } else { "" };
    let longest = line.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let space = if line.starts_with('`') || line.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{line}{cut}{space}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_write_is_code_that_nothing_ends() {
        for (text, expected) in
            [("web", "`web`"), ("a `b` c", "``a `b` c``"), ("`b", "`` `b ``"), ("two\nlines @ann", "`two lines @ann`")]
        {
            assert_eq!(code(text), expected);
        }
    }
}
