//! What a daemon leaves in its state folder: for people a note of itself and the operator's token, and for itself what the
//! tokens of deployers are made from. Commands use none of it: they ask over a socket there ([`super::socket`]).

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::error::{Context, Failure, Result};
use crate::model::time::Timestamp;

/// The daemon that runs on a state folder, as `daemon.json` there describes it to whoever finds the folder in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// Where a browser finds its page.
    pub url: String,
    /// Its process.
    pub pid: u32,
    /// When it started.
    #[serde(default)]
    pub since: Option<Timestamp>,
}

impl Presence {
    /// The daemon that last said it was there; it may have ended since without a word.
    ///
    /// # Errors
    /// If the file is there and cannot be read.
    pub fn read(state: &Path) -> Result<Option<Self>> {
        let path = presence_path(state);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(Failure::stalled(format!("cannot read `{}`", path.display())).because(error));
            }
        };
        serde_json::from_slice(&text).map(Some).or_stalled(|| format!("`{}` is damaged", path.display()))
    }

    /// Whether a process of that id is there.
    pub fn is_running(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
    }

    /// Says that it is there.
    ///
    /// # Errors
    /// If the state folder cannot be written.
    pub fn announce(&self, state: &Path) -> Result<()> {
        let path = presence_path(state);
        let text = serde_json::to_vec(self).or_stalled(|| "cannot write down where the daemon answers".to_owned())?;
        replace(&path, &text)
    }

    /// Says that it is there no more.
    ///
    /// # Errors
    /// If the file cannot be deleted.
    pub fn withdraw(&self, state: &Path) -> Result<()> {
        let path = presence_path(state);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Failure::stalled(format!("cannot delete `{}`", path.display())).because(error))
            }
            _ => Ok(()),
        }
    }
}

/// Where the operator's token is, for a browser or `curl`.
fn token_path(state: &Path) -> PathBuf {
    state.join("operator-token")
}

/// The operator's token of a state folder; made if it is not there yet.
///
/// # Errors
/// If it cannot be read or made, or if others may read it.
pub fn operator_token(state: &Path) -> Result<String> {
    kept_secret(&token_path(state))
}

/// What the tokens of deployers are made from; made if it is not there yet. While it stays, they are good after a restart.
///
/// # Errors
/// As [`operator_token`].
pub fn deployer_key(state: &Path) -> Result<String> {
    kept_secret(&state.join("deployer-key"))
}

fn kept_secret(path: &Path) -> Result<String> {
    match read_token(path)? {
        Some(token) => Ok(token),
        None => {
            let mut secret = [0; 32];
            rand::fill(&mut secret).or_transient(|| "the machine gives no random numbers".to_owned())?;
            let token = URL_SAFE_NO_PAD.encode(secret);
            replace(path, token.as_bytes())?;
            Ok(token)
        }
    }
}

/// A secret of the folder, if it is there.
///
/// # Errors
/// If it cannot be read, or if others may read it.
fn read_token(path: &Path) -> Result<Option<String>> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::stalled(format!("cannot read `{}`", path.display())).because(error)),
    };
    if metadata.permissions().mode() & 0o077 != 0 {
        let hint = format!("delete it, and the daemon makes a new one at its next start: rm {}", path.display());
        return Err(Failure::stalled(format!("others may read `{}`", path.display())).hint(hint));
    }
    let token = fs::read_to_string(path).or_stalled(|| format!("cannot read `{}`", path.display()))?;
    Ok(Some(token.trim().to_owned()).filter(|token| !token.is_empty()))
}

/// Where the daemon of a state folder announces itself.
pub fn presence_path(state: &Path) -> PathBuf {
    state.join("daemon.json")
}

/// Writes a file that only its owner may read; a reader sees the old one or the new one, never a part.
fn replace(path: &Path, content: &[u8]) -> Result<()> {
    let complain = || format!("cannot write `{}`", path.display());
    let new = path.with_extension("new");
    let mut file =
        OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&new).or_stalled(complain)?;
    file.write_all(content).and_then(|()| file.sync_all()).or_stalled(complain)?;
    fs::rename(&new, path).or_stalled(complain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_is_found_until_it_withdraws() {
        let state = tempfile::tempdir().expect("a folder");
        assert_eq!(Presence::read(state.path()).expect("readable"), None);
        let presence = Presence { url: "http://127.0.0.1:8787".into(), pid: 7, since: Some(Timestamp(1)) };
        presence.announce(state.path()).expect("written");
        assert_eq!(Presence::read(state.path()).expect("readable"), Some(presence.clone()));
        presence.withdraw(state.path()).expect("deleted");
        presence.withdraw(state.path()).expect("deleting nothing is fine");
        assert_eq!(Presence::read(state.path()).expect("readable"), None);
    }

    #[test]
    fn the_token_is_made_once_and_only_its_owner_reads_it() {
        let state = tempfile::tempdir().expect("a folder");
        let token = operator_token(state.path()).expect("made");
        assert_eq!(token.len(), 43);
        assert_eq!(operator_token(state.path()).expect("read"), token);
        let mode = fs::metadata(token_path(state.path())).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_token_that_others_may_read_is_refused() {
        let state = tempfile::tempdir().expect("a folder");
        operator_token(state.path()).expect("made");
        let path = token_path(state.path());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("opened up");
        let failure = operator_token(state.path()).expect_err("refused");
        assert!(failure.hint_text().is_some_and(|hint| hint.starts_with("delete it")));
    }
}
