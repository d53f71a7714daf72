//! What may reach a terminal: our own styles, and everything else in characters that show as what they are. Commits,
//! files and programs of others are quoted in nearly every line, and must not move the cursor or turn text around.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::LazyLock;

use clap::builder::styling::Style;

use crate::forge::text::is_unsafe;

/// Stands around each of our own escape sequences until they are printed. Nobody else can know it.
static MARK: LazyLock<String> = LazyLock::new(|| format!("\u{fdd0}{:016x}\u{fdd0}", RandomState::new().hash_one(0)));

/// Text in a style, to be [`shown`].
pub(super) fn styled(style: Style, text: &str) -> String {
    if style == Style::new() {
        return text.to_owned();
    }
    let mark = MARK.as_str();
    format!("{mark}{style}{mark}{text}{mark}{style:#}{mark}")
}

/// Text for a terminal: our own styles as they are; of everything else what is no visible character is spelled out, but
/// for the ends of lines and tabs.
pub(super) fn shown(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_spelled_out) && !text.contains(MARK.as_str()) {
        return Cow::Borrowed(text);
    }
    let pieces = text.split(MARK.as_str()).enumerate();
    let pieces = pieces.map(|(at, piece)| if at % 2 == 1 { piece.to_owned() } else { spelled_out(piece) });
    Cow::Owned(pieces.collect())
}

/// JSON for a terminal: the same values, with such characters escaped.
pub(super) fn shown_json(json: &str) -> String {
    let escaped = |c: char| match is_spelled_out(c) {
        true => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
        false => c.to_string(),
    };
    json.chars().map(escaped).collect()
}

fn spelled_out(text: &str) -> String {
    let spell = |c: char| match is_spelled_out(c) {
        true => c.escape_unicode().to_string(),
        false => c.to_string(),
    };
    // A line may end as on Windows: a difference of such a file is to be a patch.
    let lines = text.split("\r\n").map(|line| line.chars().map(spell).collect::<String>());
    lines.collect::<Vec<_>>().join("\r\n")
}

/// What is no visible character, but for the ends of lines and tabs.
fn is_spelled_out(c: char) -> bool {
    is_unsafe(c) && !matches!(c, '\n' | '\t')
}

#[cfg(test)]
mod tests {
    use clap::builder::styling::AnsiColor;

    use super::*;

    #[test]
    fn only_our_own_styles_reach_a_terminal() {
        let red = AnsiColor::Red.on_default();
        for (text, expected) in [
            ("plain, ünïcode 🚢\n\tand lines".to_owned(), "plain, ünïcode 🚢\n\tand lines"),
            ("a line\r\nover\rwritten\r".to_owned(), "a line\r\nover\\u{d}written\\u{d}"),
            (styled(red, "failed"), "\u{1b}[31mfailed\u{1b}[0m"),
            (styled(red, "\u{1b}[2Jgone"), "\u{1b}[31m\\u{1b}[2Jgone\u{1b}[0m"),
            ("a\u{1b}]0;title\u{7}b\rc".to_owned(), "a\\u{1b}]0;title\\u{7}b\\u{d}c"),
            ("\u{9b}31m \u{202e}drawkcab".to_owned(), "\\u{9b}31m \\u{202e}drawkcab"),
            ("\u{fdd0}0000000000000000\u{fdd0}\u{1b}[31m".to_owned(), "\u{fdd0}0000000000000000\u{fdd0}\\u{1b}[31m"),
        ] {
            assert_eq!(shown(&text), expected, "{text:?}");
        }
    }

    #[test]
    fn json_says_the_same_in_visible_characters() {
        let value = serde_json::json!({"subject": "a\u{1b}[31m\u{202e}b\u{9b}", "lines": "c\nd"});
        let shown = shown_json(&serde_json::to_string_pretty(&value).expect("a value"));
        assert!(!shown.chars().any(|c| is_unsafe(c) && c != '\n'), "{shown:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).expect("still JSON"), value);
    }
}
