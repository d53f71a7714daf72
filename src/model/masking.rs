//! Which values of Secrets are masked in what pods print. Whoever masks and whoever warns of what is not masked ask the
//! same function.

use std::net::IpAddr;

/// Shorter texts, in bytes, stand in too much output that has nothing to do with a secret.
pub const SHORTEST: usize = 6;
/// Longer values, in bytes, are files that nobody prints, and cost memory for each pod.
pub const LONGEST: usize = 16 << 10;
/// Words that configurations are full of.
const COMMON: [&str; 18] = [
    "default",
    "disable",
    "disabled",
    "enable",
    "enabled",
    "localhost",
    "development",
    "production",
    "staging",
    "public",
    "private",
    "primary",
    "replica",
    "username",
    "password",
    "postgres",
    "require",
    "example",
];
/// More digits, as of a card, are no port, size or time.
const MOST_DIGITS: usize = 11;

/// The lines of a value that are masked, without the white space around them.
pub fn lines(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = if value.len() > LONGEST { &[] } else { value };
    whole.split(|byte| matches!(byte, b'\n' | b'\r')).map(<[u8]>::trim_ascii).filter(|line| is_telling(line))
}

/// Why nothing of a value is masked, if so: what it is, for people. An empty one needs no masking.
pub fn why_not(value: &[u8]) -> Option<&'static str> {
    let text = value.trim_ascii();
    if text.is_empty() || lines(value).next().is_some() {
        None
    } else if value.len() > LONGEST {
        Some("too long")
    } else if text.len() < SHORTEST {
        Some("too short")
    } else {
        Some("too common")
    }
}

/// Whether a line, where it is printed, gives the secret away rather than being there by chance.
fn is_telling(line: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(line) else { return line.len() >= SHORTEST };
    line.len() >= SHORTEST
        && !is_number(text)
        && !is_host(text)
        && !COMMON.iter().any(|common| common.eq_ignore_ascii_case(text))
        && text.chars().any(char::is_alphanumeric)
}

fn is_number(text: &str) -> bool {
    text.len() <= MOST_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+'))
}

/// An address, or lower-case labels with dots between them, the last of letters alone.
fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty() && label.bytes().all(plain)
    };
    let letters = |label: &str| label.len() > 1 && label.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_name = text.rsplit_once('.').is_some_and(|(before, last)| letters(last) && before.split('.').all(is_label));
    is_name || text.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_masked_by_chance_is_not_masked() {
        for (value, expected) in [
            ("hunter2", None),
            ("correct horse", None),
            ("4929 1234 5678 9012", None),
            ("postgres://shop:x@db/shop", None),
            ("", None),
            ("  \n", None),
            ("admin\n", Some("too short")),
            ("true", Some("too short")),
            ("5432", Some("too short")),
            ("1234567890", Some("too common")),
            ("Enabled", Some("too common")),
            ("------", Some("too common")),
            ("127.0.0.10", Some("too common")),
            ("smtp.example.org", Some("too common")),
            ("{\n  }\n", Some("too short")),
        ] {
            assert_eq!(why_not(value.as_bytes()), expected, "{value}");
        }
        assert_eq!(why_not(&[b'x'; LONGEST + 1]), Some("too long"));
        assert_eq!(why_not(&[0xff; SHORTEST]), None);
    }

    #[test]
    fn each_line_of_a_value_is_masked_by_itself() {
        let value = b"-----BEGIN KEY-----\r\n  MIIEvQ1\n}\n-----END KEY-----\n";
        let expected: [&[u8]; 3] = [b"-----BEGIN KEY-----", b"MIIEvQ1", b"-----END KEY-----"];
        assert_eq!(lines(value).collect::<Vec<_>>(), expected);
    }
}
