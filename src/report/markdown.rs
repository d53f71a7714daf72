//! Markdown that what users have written does not end: it stands in code, where it neither links nor calls anybody.

/// The most characters of a value.
const MOST_OF_A_VALUE: usize = 120;
/// The most lines of one kind.
const MOST_LINES: usize = 40;

/// A list; what is too much is counted.
pub(super) fn lines(all: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = all.collect();
    let mut text: String = all.iter().take(MOST_LINES).map(|line| format!("- {line}\n")).collect();
    if all.len() > MOST_LINES {
        text.push_str(&format!("- and {} more\n", all.len() - MOST_LINES));
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
