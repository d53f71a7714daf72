//! Values of `generate: expression`: text in which `[a-z]{8}` stands for eight characters of a range.
//!
//! Source of the notation: OpenShift's `ExpressionValueGenerator`, but for a range's last character, which belongs to it
//! here. A value follows from the seed and from what it is for, so that it stays the same for as long as both do.

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};

use crate::model::seed::Seed;

const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &str = "0123456789";
const SYMBOLS: &str = "~!@#$%^&*()-_+={}[]\\|<,>.?/\"';:`";
/// Upstream's limit for the characters of one range.
const LONGEST: usize = 255;

/// The value for an expression. `purpose` tells values apart that have the same expression.
///
/// # Errors
/// What is wrong with the expression.
pub(super) fn generate(expression: &str, purpose: &[&str], seed: &Seed) -> Result<String, String> {
    let mut source = Source::new(purpose, seed);
    let mut value = String::new();
    let mut rest = expression;
    while let Some(range) = next_range(rest) {
        value.push_str(&rest[..range.start]);
        let characters = characters(range.letters)?;
        let length: usize = range.length.parse().unwrap_or(usize::MAX);
        if !(1..=LONGEST).contains(&length) {
            return Err(format!("`{}` must be between 1 and {LONGEST} characters", range.length));
        }
        value.extend((0..length).filter_map(|_| characters.get(source.below(characters.len()))));
        rest = &rest[range.end..];
    }
    value.push_str(rest);
    Ok(value)
}

/// A `[…]{n}` in an expression.
struct Range<'a> {
    start: usize,
    end: usize,
    letters: &'a str,
    length: &'a str,
}

fn next_range(text: &str) -> Option<Range<'_>> {
    text.match_indices('[').find_map(|(start, _)| {
        let (letters, rest) = text[start + 1..].split_once("]{")?;
        let (length, _) = rest.split_once('}')?;
        let is_letters = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'\\');
        let is_range = !letters.is_empty() && letters.bytes().all(is_letters);
        let is_length = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        let end = start + 1 + letters.len() + 2 + length.len() + 1;
        (is_range && is_length).then_some(Range { start, end, letters, length })
    })
}

/// The characters that a range names, each once.
fn characters(range: &str) -> Result<Vec<char>, String> {
    let mut found: Vec<char> = Vec::new();
    let mut rest = range;
    while let Some(first) = rest.chars().next() {
        let class = match rest.get(..2) {
            Some("\\w") => Some(format!("{LETTERS}{DIGITS}_")),
            Some("\\d") => Some(DIGITS.to_owned()),
            Some("\\a") => Some(format!("{LETTERS}{DIGITS}")),
            Some("\\A") => Some(SYMBOLS.to_owned()),
            _ => None,
        };
        let mut following = rest.chars().skip(1);
        let (named, length) = match (class, following.next(), following.next()) {
            (Some(class), ..) => (class, 2),
            (None, Some('-'), Some(last)) if last.is_ascii_alphanumeric() => (between(first, last)?, 3),
            _ if first.is_ascii_alphanumeric() => (first.to_string(), 1),
            _ => return Err(format!("`[{range}]` is no range of letters and digits, such as `[a-zA-Z0-9]`")),
        };
        for character in named.chars().filter(|character| !found.contains(character)).collect::<Vec<_>>() {
            found.push(character);
        }
        rest = &rest[length..];
    }
    Ok(found)
}

fn between(first: char, last: char) -> Result<String, String> {
    let kind: fn(&char) -> bool = match first {
        'a'..='z' => char::is_ascii_lowercase,
        'A'..='Z' => char::is_ascii_uppercase,
        '0'..='9' => char::is_ascii_digit,
        _ => |_| false,
    };
    if kind(&first) && kind(&last) && first <= last {
        return Ok((first..=last).collect());
    }
    // As `A-z`, in upstream's order: small letters, large ones, digits.
    let all = format!("{LETTERS}{DIGITS}");
    match (all.find(first), all.find(last)) {
        (Some(from), Some(to)) if from <= to => Ok(all[from..=to].to_owned()),
        _ => Err(format!("`{first}-{last}` is no range: its end comes first")),
    }
}

/// Numbers that look like chance, and are the same for the same purpose.
struct Source {
    key: Key,
    purpose: Vec<u8>,
    block: Vec<u8>,
    blocks: u32,
}

impl Source {
    fn new(purpose: &[&str], seed: &Seed) -> Self {
        let mut message = Vec::new();
        for part in purpose {
            message.extend((part.len() as u64).to_be_bytes());
            message.extend(part.as_bytes());
        }
        Self { key: Key::new(HMAC_SHA256, seed.reveal()), purpose: message, block: Vec::new(), blocks: 0 }
    }

    fn byte(&mut self) -> u8 {
        if self.block.is_empty() {
            let mut message = self.purpose.clone();
            message.extend(self.blocks.to_be_bytes());
            self.block = sign(&self.key, &message).as_ref().to_vec();
            self.blocks += 1;
        }
        self.block.pop().unwrap_or_default()
    }

    /// A number below `bound`, each as likely as the others; `bound` is at most 128.
    fn below(&mut self, bound: usize) -> usize {
        let bound = bound.max(1);
        let fair = 256 - 256 % bound;
        loop {
            let byte = usize::from(self.byte());
            if byte < fair {
                return byte % bound;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(expression: &str) -> Result<String, String> {
        generate(expression, &["shop", "dev", "db", "PASSWORD"], &Seed::new([7; 32]))
    }

    #[test]
    fn a_value_has_the_shape_that_its_expression_says() {
        type Rule = fn(char) -> bool;
        let table: [(&str, usize, &str, Rule); 8] = [
            ("[a-z]{40}", 40, "", |c| c.is_ascii_lowercase()),
            ("[a-zA-Z0-9]{255}", 255, "", |c| c.is_ascii_alphanumeric()),
            ("0x[A-F0-9]{4}", 6, "0x", |c| matches!(c, 'A'..='F' | '0'..='9' | 'x')),
            ("test[0-1]{8}", 12, "test", |c| matches!(c, '0' | '1' | 't' | 'e' | 's')),
            ("[\\w]{16}", 16, "", |c| c.is_ascii_alphanumeric() || c == '_'),
            ("[\\d]{6}-[\\a]{6}", 13, "", |c| c.is_ascii_alphanumeric() || c == '-'),
            ("[\\A]{16}", 16, "", |c| c.is_ascii_punctuation()),
            ("[xyz]{9}", 9, "", |c| matches!(c, 'x'..='z')),
        ];
        for (expression, length, start, rule) in table {
            let value = value(expression).expect(expression);
            assert_eq!(value.len(), length, "{expression}: {value}");
            assert!(value.starts_with(start) && value.chars().all(rule), "{expression}: {value}");
        }
        for plain in ["", "secret", "[a-z]", "{3}", "[a b]{3}", "[a-z]{x}", "[]{3}"] {
            assert_eq!(value(plain).as_deref(), Ok(plain), "nothing to generate");
        }
    }

    #[test]
    fn a_range_that_cannot_be_is_refused() {
        for wrong in ["[a-z]{0}", "[a-z]{256}", "[z-a]{3}", "[a-]{3}", "[\\x]{3}", "[a-z]{99999999999999999999}"] {
            assert!(value(wrong).is_err(), "{wrong}: {:?}", value(wrong));
        }
    }

    #[test]
    fn a_value_stays_and_another_purpose_or_seed_has_another() {
        let expression = "[a-zA-Z0-9]{16}";
        let of = |purpose: &[&str], seed| generate(expression, purpose, &Seed::new([seed; 32])).expect("good");
        let one = of(&["shop", "dev"], 7);
        assert_eq!(of(&["shop", "dev"], 7), one);
        for other in [of(&["shop", "live"], 7), of(&["shopd", "ev"], 7), of(&["shop", "dev"], 8)] {
            assert_ne!(other, one);
        }
        let all = of(&["all"], 1) + &of(&["of"], 1) + &of(&["these"], 1);
        assert!(all.chars().collect::<std::collections::BTreeSet<_>>().len() > 20, "{all}");
    }

    proptest::proptest! {
        #[test]
        fn no_expression_panics(expression in ".{0,60}|[\\[\\]{}a-zA-Z0-9\\\\-]{0,40}") {
            let _value = value(&expression);
        }
    }
}
