//! Values that must never be printed: tokens, passwords, shared secrets. Their files are read at each use, so that a
//! changed one counts at once.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use crate::error::{Context, Failure, Result};

/// No token, password or shared secret is longer; a larger file is something else.
const MAX_BYTES: u64 = 64 << 10;

/// A value that neither `Debug` nor anything else prints.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// Whether whoever tries every character finds it.
    pub fn is_guessed(&self) -> bool {
        self.0.chars().nth(1).is_none()
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
    /// A file of one line, read at each use; white space around the line is not part of it.
    File(PathBuf),
    /// A known value, such as one from the configuration or the environment.
    Value(Secret),
    /// A part of this program, which gets one for itself.
    Given(Given),
}

/// Gets a secret whenever one is needed.
pub trait Giver: fmt::Debug + Send + Sync {
    /// The secret as it is now; may wait for another machine.
    ///
    /// # Errors
    /// `Transient` if that is out of reach, `Stalled` if a person has to act.
    fn give(&self) -> Result<Secret>;
}

/// Somebody who gives a secret.
#[derive(Clone, Debug)]
pub struct Given(pub Arc<dyn Giver>);

impl PartialEq for Given {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Given {}

impl SecretSource {
    /// The file that it is in, if it is in one.
    pub fn file(&self) -> Option<PathBuf> {
        match self {
            SecretSource::File(path) => Some(path.clone()),
            SecretSource::Value(_) | SecretSource::Given(_) => None,
        }
    }

    /// The secret as it is now.
    ///
    /// # Errors
    /// `Stalled` if the file cannot be read, is empty, too large, or no text of one line; the content is not told. Else as
    /// [`Giver::give`].
    pub fn read(&self) -> Result<Secret> {
        match self {
            SecretSource::File(path) => read_file(path),
            SecretSource::Value(secret) => Ok(secret.clone()),
            SecretSource::Given(given) => given.0.give(),
        }
    }
}

/// The secret of several lines, such as a private key, that is in a file now.
///
/// # Errors
/// `Stalled` if the file cannot be read, is empty, too large, or no text; the content is not told.
pub fn read_lines(path: &Path) -> Result<Secret> {
    read_text(path).map(Secret::new)
}

fn read_file(path: &Path) -> Result<Secret> {
    let text = read_text(path)?;
    if text.chars().any(char::is_control) {
        return Err(unusable(path, "is not one line of text"));
    }
    Ok(Secret::new(text))
}

fn unusable(path: &Path, what: &str) -> Failure {
    Failure::stalled(format!("the secret file `{}` {what}", path.display()))
}

fn read_text(path: &Path) -> Result<String> {
    let unusable = |what: &str| unusable(path, what);
    let unreadable = || format!("cannot read the secret file `{}`", path.display());
    // A pipe would keep us waiting for whoever writes to it.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).map(File::from).or_stalled(unreadable)?;
    if !file.metadata().or_stalled(unreadable)?.is_file() {
        return Err(unusable("is no regular file"));
    }
    let mut content = Vec::new();
    let length = file.take(MAX_BYTES + 1).read_to_end(&mut content).or_stalled(unreadable)?;
    if length as u64 > MAX_BYTES {
        return Err(unusable(&format!("is larger than {MAX_BYTES} bytes")));
    }
    let text = str::from_utf8(&content).map_err(|_binary| unusable("is not text"))?.trim();
    if text.is_empty() {
        return Err(unusable("is empty"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", SecretSource::Value(Secret::new("hunter2"))), "Value(Secret(…))");
    }

    #[test]
    fn a_changed_file_counts_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let source = SecretSource::File(path.clone());
        let missing = source.read().unwrap_err().one_line();
        assert!(missing.starts_with("cannot read the secret file `"), "{missing}");
        for (content, value) in [("one\n", "one"), (" two \r\n\n", "two")] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(source.read().unwrap().reveal(), value);
        }
    }

    #[test]
    fn a_file_that_is_no_secret_is_named_and_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        for content in [&b""[..], b" \n", b"hunter2\nhunter3", b"hunter2\xff", &[b'h'; 70_000]] {
            std::fs::write(&path, content).unwrap();
            let problem = SecretSource::File(path.clone()).read().unwrap_err().one_line();
            assert!(problem.contains("token`") && !problem.contains("hunter"), "{problem}");
        }
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        for path in [pipe, folder.path().to_owned(), "/dev/zero".into()] {
            let problem = SecretSource::File(path.clone()).read().unwrap_err().one_line();
            assert_eq!(problem, format!("the secret file `{}` is no regular file", path.display()));
        }
    }
}
