//! The files that a configuration names. They are checked when it is loaded, so that whoever starts a daemon hears of all
//! that is wrong with them at once, not of each when it is used.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::manifest::Problem;
use crate::model::object::Location;
use crate::secret::SecretSource;

/// What others may not do with a file that is for this user, in its mode's bits: read and write.
const PRIVATE: u32 = 0o066;
/// And with one that tells whom to trust: write.
const TRUSTED: u32 = 0o022;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// A token, a password or a shared secret.
    Secret,
    /// A private key, which another program reads, or the configuration with a secret in it.
    Key,
    /// Whom to trust, or a name: no secret.
    Public,
}

/// A file that the configuration names, with the place where it does.
#[derive(Clone, Debug)]
pub(super) struct NamedFile {
    pub(super) path: PathBuf,
    pub(super) holds: Holds,
    pub(super) location: Location,
    pub(super) pointer: String,
}

impl NamedFile {
    /// What is wrong with it now.
    pub(super) fn problem(&self) -> Option<Problem> {
        let (code, message, hint) = self.complaint()?;
        let mut problem = Problem::error(&self.location, code, message);
        problem.pointer.clone_from(&self.pointer);
        Some(if hint.is_empty() { problem } else { problem.hint(hint) })
    }

    fn complaint(&self) -> Option<(&'static str, String, String)> {
        let shown = self.path.display();
        let metadata = match fs::metadata(&self.path) {
            Ok(metadata) => metadata,
            Err(error) => return Some(("unreadable", format!("cannot read `{shown}`: {error}"), String::new())),
        };
        // A pipe would keep whoever reads it waiting, and a device may never end.
        if !metadata.is_file() {
            return Some(("unusable", format!("`{shown}` is no regular file"), String::new()));
        }
        let refused = if self.holds == Holds::Public { TRUSTED } else { PRIVATE };
        // A group that is this process' own may read, as it does what a system's administrator gives to a service.
        let own_group = metadata.gid() == rustix::process::getegid().as_raw();
        let refused = if own_group { refused & !0o060 } else { refused };
        if metadata.mode() & refused != 0 {
            let can = if metadata.mode() & refused & 0o044 != 0 { "read" } else { "change" };
            return Some(("exposed", format!("others can {can} `{shown}`"), format!("chmod 600 {shown}")));
        }
        if self.holds != Holds::Secret {
            return None;
        }
        match SecretSource::File(self.path.clone()).read() {
            Err(failure) => Some(("unusable", failure.one_line(), String::new())),
            Ok(secret) if secret.is_guessed() => {
                let hint = "make one with `openssl rand -hex 32`".to_owned();
                Some(("weak", format!("the secret in `{shown}` is a single character"), hint))
            }
            Ok(_) => None,
        }
    }
}
