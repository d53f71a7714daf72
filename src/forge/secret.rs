//! Values that must never be printed.

use std::fmt;
use std::path::Path;

use tokio::io::AsyncReadExt;

use crate::error::{Context, Failure, Result};

/// No token or shared secret is longer; a larger file is something else.
const FILE_LIMIT: u64 = 64 * 1024;

/// A token or shared secret. Neither `Debug` nor anything else prints it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// Reads a secret from a file: its content without white space at the end.
    ///
    /// Files are read whenever they are needed, so that a new secret is taken without a restart. `Stalled` if the file
    /// cannot be read, is empty, or is no text of one line.
    pub async fn read(path: &Path) -> Result<Self> {
        let mut content = String::new();
        let file = tokio::fs::File::open(path).await.or_stalled(|| cannot_read(path))?;
        file.take(FILE_LIMIT + 1).read_to_string(&mut content).await.or_stalled(|| cannot_read(path))?;
        let value = content.trim();
        if value.is_empty() {
            return Err(Failure::stalled(format!("the secret file `{}` is empty", path.display())));
        }
        if content.len() as u64 > FILE_LIMIT || value.chars().any(char::is_control) {
            return Err(Failure::stalled(format!("the secret file `{}` is not one line of text", path.display())));
        }
        Ok(Self(value.to_owned()))
    }

    /// The secret itself, for the one place that sends or compares it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

fn cannot_read(path: &Path) -> String {
    format!("cannot read the secret file `{}`", path.display())
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "Secret(…)");
    }

    #[tokio::test]
    async fn a_secret_file_holds_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        for (content, expected) in [("abc\n", Some("abc")), (" abc\r\n\n", Some("abc")), ("", None), ("a\nb", None)] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(Secret::read(&path).await.ok().as_ref().map(Secret::expose), expected, "{content:?}");
        }
        std::fs::write(&path, "x".repeat(70_000)).unwrap();
        assert!(Secret::read(&path).await.is_err());
        let missing = Secret::read(&folder.path().join("none")).await.unwrap_err();
        assert!(missing.one_line().starts_with("cannot read the secret file `"), "{missing}");
    }
}
