//! The shapes of files that processes of different versions share: a shim runs on with the program that it was started
//! with, whatever the daemon's is by now.
//!
//! Such a file says in `v` which version of its shape it has; without it, the first. A change that readers of before may
//! leave unread needs no other version, and they do leave unread what they do not know. Any other change does; then
//! readers take the older shapes too, and whoever writes for a process of before writes what that one reads. What is newer
//! is refused and never guessed at.

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The version of a file that does not say which it has.
pub(crate) const FIRST: u32 = 1;

/// The part of a file that every version has.
#[derive(Deserialize)]
struct Header {
    #[serde(default = "first")]
    v: u32,
}

/// For `serde(default)`.
pub(crate) fn first() -> u32 {
    FIRST
}

/// Why the content of a file is not understood.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    /// A later program wrote it.
    #[error(
        "a newer launchway wrote it: it has version {found}, this one reads versions up to {newest}; run that one, or a newer one"
    )]
    Newer {
        /// The version that it has.
        found: u32,
        /// The last that is understood.
        newest: u32,
    },
    /// It is not what its version says.
    #[error("it is damaged: {0}")]
    Damaged(#[from] serde_json::Error),
}

/// Whether something failed because a file is not what it says it is: nobody will ever read it.
pub(crate) fn is_damage(error: &(dyn std::error::Error + 'static)) -> bool {
    crate::error::causes(error)
        .filter_map(|error| error.downcast_ref())
        .any(|problem| matches!(problem, Problem::Damaged(_)))
}

/// Reads the content of a file whose shape is understood up to version `newest`.
pub(crate) fn parse<T: DeserializeOwned>(content: &[u8], newest: u32) -> Result<T, Problem> {
    // A bare list has no place for a version.
    let is_object = content.trim_ascii_start().starts_with(b"{");
    let found = if is_object { serde_json::from_slice::<Header>(content)?.v } else { FIRST };
    if found > newest {
        return Err(Problem::Newer { found, newest });
    }
    Ok(serde_json::from_slice(content)?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_does_not_say_its_version_has_the_first() {
        assert_eq!(parse::<BTreeMap<String, u32>>(br#"{"x":7}"#, FIRST).unwrap()["x"], 7);
        assert_eq!(parse::<Vec<u32>>(b" [7]", FIRST).unwrap(), [7]);
    }

    #[test]
    fn what_is_newer_is_refused_with_what_to_do_whatever_its_shape() {
        for content in [r#"{"v":2,"x":7}"#, r#"{"x":[],"v":2}"#] {
            let problem = parse::<BTreeMap<String, u32>>(content.as_bytes(), 1).unwrap_err().to_string();
            assert!(problem.contains("version 2") && problem.contains("run that one"), "{problem}");
        }
        assert!(parse::<BTreeMap<String, u32>>(br#"{"v":2}"#, 3).is_ok());
    }

    #[test]
    fn what_is_damaged_says_so() {
        for content in ["", "{", r#"{"v":"one"}"#, r#"{"v":1,"x":[]}"#] {
            let problem = parse::<BTreeMap<String, u32>>(content.as_bytes(), 1).unwrap_err().to_string();
            assert!(problem.contains("damaged"), "{problem}");
        }
    }
}
