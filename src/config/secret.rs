//! Values that must never be printed.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::{Context, Failure, Result};

/// No token or shared secret is longer; a larger file is something else.
const MAX_BYTES: u64 = 64 << 10;

/// A token, password or shared secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, for the one place that sends or compares it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Where a secret comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// A file of one line, read at each use.
    File(PathBuf),
    /// The configuration itself.
    Text(Secret),
}

impl SecretSource {
    /// The secret as it is now.
    ///
    /// # Errors
    /// If the file cannot be read, is empty, or is no text of one line.
    pub fn read(&self) -> Result<Secret> {
        match self {
            SecretSource::File(path) => read(path),
            SecretSource::Text(secret) => Ok(secret.clone()),
        }
    }
}

fn read(path: &Path) -> Result<Secret> {
    let unusable = |what: &str| Failure::stalled(format!("the secret file `{}` {what}", path.display()));
    let mut content = Vec::new();
    let opened = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut content));
    opened.or_stalled(|| format!("cannot read the secret file `{}`", path.display()))?;
    let text = str::from_utf8(&content).map_err(|_binary| unusable("is not text"))?.trim();
    if text.is_empty() {
        return Err(unusable("is empty"));
    }
    if content.len() as u64 > MAX_BYTES || text.chars().any(char::is_control) {
        return Err(unusable("is not one line of text"));
    }
    Ok(Secret::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", SecretSource::Text(Secret::new("hunter2"))), "Text(Secret(…))");
    }

    #[test]
    fn a_changed_file_counts_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let source = SecretSource::File(path.clone());
        assert!(source.read().unwrap_err().to_string().contains("cannot read the secret file"));
        for (content, value) in [("one\n", "one"), (" two \r\n", "two")] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(source.read().unwrap().reveal(), value);
        }
    }

    #[test]
    fn a_file_that_is_no_secret_is_named_and_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        for content in [&b" \n"[..], b"hunter2\nhunter3", b"hunter2\xff", &[b'h'; 70_000]] {
            std::fs::write(&path, content).unwrap();
            let problem = SecretSource::File(path.clone()).read().unwrap_err().one_line();
            assert!(problem.contains("token`") && !problem.contains("hunter"), "{problem}");
        }
    }
}
