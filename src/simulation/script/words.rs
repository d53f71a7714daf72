//! The words of a line, each with its place.

use super::Wrong;

/// A word of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Without quotes.
    pub(super) text: String,
    /// Where it begins, in characters from 1.
    pub(super) column: u32,
    /// Where it ends in the line, in bytes.
    pub(super) end: usize,
    /// Whether a part of it stood in quotes.
    pub(super) is_quoted: bool,
}

/// The words of a line up to a comment. Spaces in double quotes part none.
pub(super) fn words(line: &str) -> Result<Vec<Word>, Wrong> {
    let (mut words, mut word) = (Vec::new(), None::<Word>);
    let mut open = None::<u32>;
    for (column, (place, letter)) in (1..).zip(line.char_indices()) {
        let end = place + letter.len_utf8();
        match letter {
            '#' if word.is_none() => break,
            letter if letter.is_whitespace() && open.is_none() => words.extend(word.take()),
            letter => {
                let new = || Word { text: String::new(), column, end, is_quoted: false };
                let word = word.get_or_insert_with(new);
                word.end = end;
                if letter == '"' {
                    word.is_quoted = true;
                    open = if open.is_some() { None } else { Some(column) };
                } else {
                    word.text.push(letter);
                }
            }
        }
    }
    if let Some(column) = open {
        let (message, hint) = ("a quote is not closed".to_owned(), "end it with `\"` in the same line".to_owned());
        return Err(Wrong { column, message, hint });
    }
    words.extend(word);
    Ok(words)
}
