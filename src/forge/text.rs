//! Text from users' programs and files, made fit for one line on somebody else's page.

/// One line of at most `limit` characters: white space and line breaks become single spaces, control characters and
/// those that change the direction of the text around them are dropped, and a cut shows as `…`.
pub fn one_line(text: &str, limit: usize) -> String {
    let visible: String =
        text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(|&c| !is_unsafe(c)).collect();
    let line = visible.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    cut(line, limit)
}

/// Shortens to `limit` characters, the last of which is then `…`.
pub(super) fn cut(mut line: String, limit: usize) -> String {
    if line.chars().count() <= limit {
        return line;
    }
    let kept = limit.saturating_sub(1);
    let end = line.char_indices().nth(kept).map_or(line.len(), |(index, _)| index);
    line.truncate(end);
    line.truncate(line.trim_end().len());
    if limit > 0 {
        line.push('…');
    }
    line
}

/// How something stands in Markdown that nobody sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hidden {
    /// As a remark of HTML.
    Html,
    /// As an address that nothing leads to, where HTML is shown as it is written.
    Address,
}

impl Hidden {
    /// What stands before and behind it.
    fn around(self) -> [&'static str; 2] {
        match self {
            Hidden::Html => ["<!-- ", " -->"],
            Hidden::Address => ["[//]: # (", ")"],
        }
    }

    /// Something of one line, hidden.
    pub(super) fn hide(self, text: &str) -> String {
        let [before, behind] = self.around();
        format!("{before}{text}{behind}")
    }

    /// A text from what is hidden at its beginning on, in whatever way that is.
    pub(super) fn found(text: &str) -> Option<&str> {
        [Self::Html, Self::Address].iter().find_map(|hidden| text.trim_start().strip_prefix(hidden.around()[0]))
    }
}

/// Control characters, and Unicode's marks, embeddings, overrides and isolates of direction.
pub(crate) fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_becomes_one_visible_line() {
        let cases = [
            ("deployed version 3", 255, "deployed version 3"),
            ("  two\r\nlines\tand\u{2028}more  ", 255, "two lines and more"),
            ("red \u{1b}[31malert\u{7} \0nul", 255, "red [31malert nul"),
            ("\u{202e}drawkcab\u{2066}", 255, "drawkcab"),
            ("", 255, ""),
            ("anything", 0, ""),
            ("anything", 1, "…"),
            ("four", 4, "four"),
            ("fives", 4, "fiv…"),
            ("cut at a space", 5, "cut…"),
            ("naïve 🚢🚢🚢", 8, "naïve 🚢…"),
        ];
        for (text, limit, expected) in cases {
            assert_eq!(one_line(text, limit), expected, "{text:?} in {limit}");
        }
    }

    proptest! {
        #[test]
        fn a_line_is_bounded_visible_and_stable(text in any::<String>(), limit in 0_usize..40) {
            let line = one_line(&text, limit);
            prop_assert!(line.chars().count() <= limit);
            prop_assert!(!line.chars().any(is_unsafe));
            prop_assert_eq!(one_line(&line, limit), line);
        }
    }
}
