//! The folder in which a daemon keeps everything: one daemon at a time, found by commands through files in it.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::error::{Context, Failure, Result};

/// Where a daemon's files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateFolder {
    root: PathBuf,
}

/// The proof that this process is the folder's only daemon; given back when dropped.
#[derive(Debug)]
pub struct Ownership {
    _lock: File,
    announcement: PathBuf,
}

/// How commands reach the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// Its address, such as `http://127.0.0.1:8787`.
    pub url: String,
    /// Its process.
    pub pid: u32,
}

impl StateFolder {
    /// The folder at `root`, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The store.
    pub fn store(&self) -> PathBuf {
        self.root.join("store.db")
    }

    /// The objects of a repository.
    pub fn mirror(&self, repository: &str) -> PathBuf {
        self.root.join("mirrors").join(format!("{repository}.git"))
    }

    /// What the local runtime keeps.
    pub fn local_runtime(&self) -> PathBuf {
        self.root.join("local")
    }

    /// The secret by which the folder's owner acts on the daemon.
    pub fn operator_token(&self) -> PathBuf {
        self.root.join("operator-token")
    }

    fn announcement(&self) -> PathBuf {
        self.root.join("daemon.json")
    }

    /// Makes the folder, for its owner's eyes only, and takes it.
    ///
    /// # Errors
    /// If it cannot be made or written, or another daemon has it.
    pub fn take(&self) -> Result<Ownership> {
        let unusable = || format!("cannot use state folder `{}`", self.root.display());
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.root).or_stalled(unusable)?;
        let path = self.root.join("daemon.lock");
        let options = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).clone();
        let lock = options.open(&path).map_err(|error| {
            Failure::stalled(unusable()).because(error).hint("choose another with --state, or make it writable")
        })?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
            let running = self.daemon().map(|daemon| format!(" (process {}, {})", daemon.pid, daemon.url));
            let message =
                format!("another daemon uses state folder `{}`{}", self.root.display(), running.unwrap_or_default());
            Failure::stalled(message).because(error).hint("stop it, or choose another folder with --state")
        })?;
        Ok(Ownership { _lock: lock, announcement: self.announcement() })
    }

    /// The daemon that runs on this folder, as far as it has said where it is.
    pub fn daemon(&self) -> Option<Announcement> {
        serde_json::from_slice(&fs::read(self.announcement()).ok()?).ok()
    }

    /// The operator's token; made if there is none yet.
    ///
    /// # Errors
    /// If it can be neither read nor written.
    pub fn operator_secret(&self) -> Result<String> {
        let path = self.operator_token();
        let unreadable = || format!("cannot read the operator's token `{}`", path.display());
        match File::open(&path) {
            Ok(mut file) => {
                let mut token = String::new();
                file.read_to_string(&mut token).or_stalled(unreadable)?;
                Ok(token.trim().to_owned())
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let token = fresh_token()?;
                write_private(&path, token.as_bytes())?;
                Ok(token)
            }
            Err(error) => Err(Failure::stalled(unreadable()).because(error)),
        }
    }
}

impl Ownership {
    /// Tells commands where the daemon is.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn announce(&self, url: &str) -> Result<()> {
        let announcement = Announcement { url: url.to_owned(), pid: std::process::id() };
        let text = serde_json::to_vec(&announcement).or_stalled(|| "cannot encode the daemon's address".into())?;
        write_private(&self.announcement, &text)
    }
}

impl Drop for Ownership {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.announcement)); // it may never have been written
    }
}

/// 256 bits in hex.
fn fresh_token() -> Result<String> {
    let mut bytes = [0; 32];
    aws_lc_rs::rand::fill(&mut bytes).or_stalled(|| "cannot draw a random token".into())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Replaces a file in one step, for its owner's eyes only.
fn write_private(path: &Path, content: &[u8]) -> Result<()> {
    let unwritable = || format!("cannot write `{}`", path.display());
    let fresh = path.with_extension("new");
    let mut file =
        OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&fresh).or_stalled(unwritable)?;
    file.write_all(content).or_stalled(unwritable)?;
    file.sync_all().or_stalled(unwritable)?;
    fs::rename(&fresh, path).or_stalled(unwritable)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_second_daemon_is_refused_and_told_who_has_the_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateFolder::new(folder.path().join("state"));
        let first = state.take().expect("the folder is free");
        first.announce("http://127.0.0.1:1").expect("writable");
        let refused = state.take().expect_err("it is taken").one_line();
        assert!(refused.contains("another daemon") && refused.contains("http://127.0.0.1:1"), "{refused}");
        drop(first);
        assert!(state.take().is_ok() && state.daemon().is_none());
    }

    #[test]
    fn the_operators_token_stays_and_is_private() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateFolder::new(folder.path());
        let token = state.operator_secret().expect("made");
        assert_eq!((token.len(), state.operator_secret().expect("read")), (64, token));
        let mode = fs::metadata(state.operator_token()).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
