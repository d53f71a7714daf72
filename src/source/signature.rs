//! What commits say, and who has signed them, as Git itself has it: signatures by SSH keys, which the program `ssh-keygen` judges
//! by a file of allowed signers.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use git2::{ErrorCode, Sort};
use tokio::process::Command;

use super::git::{commit_id, failed, oid};
use super::history::Repository;
use super::mirror::Mirror;
use super::transport::answer;
use crate::error::{Context as _, Failure, Result};
use crate::model::ids::CommitId;

/// How long one question may take: no key is asked for, and nobody else.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// What a signature by an SSH key begins with.
const SSH: &[u8] = b"-----BEGIN SSH SIGNATURE-----";
/// A larger signature is none.
const MOST_BYTES: usize = 64 << 10;
/// For what Git has keys sign.
const NAMESPACE: &str = "git";
/// By so many names one key may be known.
const MOST_NAMES: usize = 16;

/// A commit and its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The commit.
    pub commit: CommitId,
    /// All of its message.
    pub message: String,
}

impl Repository {
    /// The commits that were made on a branch itself since a commit of it, oldest first, without those that merges brought; of
    /// more than `most`, the newest.
    pub fn said_since(&self, known: &CommitId, head: &CommitId, most: usize) -> Result<Vec<Said>> {
        let describe = || format!("cannot read the history of `{}`", head.short());
        let mut walk = self.git.revwalk().map_err(failed(describe))?;
        walk.set_sorting(Sort::TOPOLOGICAL).map_err(failed(describe))?;
        walk.simplify_first_parent().map_err(failed(describe))?;
        walk.push(oid(head.as_str())?).map_err(failed(describe))?;
        walk.hide(oid(known.as_str())?).map_err(failed(describe))?;
        let said = |id: std::result::Result<git2::Oid, git2::Error>| {
            let commit = self.git.find_commit(id?)?;
            let message = String::from_utf8_lossy(commit.message_bytes()).into_owned();
            Ok(Said { commit: commit_id(commit.id()), message })
        };
        let said = walk.take(most).map(said).collect::<std::result::Result<Vec<_>, git2::Error>>();
        Ok(said.map_err(failed(describe))?.into_iter().rev().collect())
    }
}

impl Mirror {
    /// Who of the `allowed` signers has signed a commit; in place of it, why none of them has.
    ///
    /// # Errors
    /// If that cannot be found out now, or not without a person.
    pub fn signer(&self, commit: &CommitId, allowed: &Path) -> Result<std::result::Result<String, String>> {
        let repository = self.open()?;
        let signed = match repository.git.extract_signature(&oid(commit.as_str())?, None) {
            Err(error) if error.code() == ErrorCode::NotFound => return Ok(Err("it is not signed".to_owned())),
            signed => signed.map_err(failed(|| format!("cannot read commit `{}`", commit.short()))),
        };
        let (signature, content) = signed?;
        if !signature.starts_with(SSH) || signature.len() > MOST_BYTES {
            return Ok(Err("it is not signed by an SSH key".to_owned()));
        }
        // What cannot be read now says nothing about who signs.
        let unreadable = || format!("cannot read the allowed signers in `{}`", allowed.display());
        fs::File::open(allowed).or_stalled(unreadable)?;
        let file = self.path().join("launchway-signature");
        fs::write(&file, &*signature).or_transient(|| format!("cannot write `{}`", file.display()))?;
        let names = ask(&["-Y", "find-principals"], allowed, &file, Vec::new())?.unwrap_or_default();
        for name in names.lines().map(str::trim).filter(|name| !name.is_empty()).take(MOST_NAMES) {
            let verify = ["-Y", "verify", "-n", NAMESPACE, "-I", name];
            if ask(&verify, allowed, &file, content.to_vec())?.is_some() {
                return Ok(Ok(name.to_owned()));
            }
        }
        Ok(Err("none of the allowed signers has signed it".to_owned()))
    }
}

/// What `ssh-keygen` answers, if it agrees.
fn ask(question: &[&str], allowed: &Path, signature: &Path, signed: Vec<u8>) -> Result<Option<String>> {
    let mut command = Command::new("ssh-keygen");
    command.args(question).arg("-f").arg(allowed).arg("-s").arg(signature).env("LC_ALL", "C");
    match answer(command, signed, ANSWER_LIMIT) {
        Ok((agrees, answer)) => Ok(agrees.then_some(answer)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Failure::stalled("there is no program `ssh-keygen`").hint("install OpenSSH's client"))
        }
        Err(error) => Err(Failure::transient("`ssh-keygen` does not judge a signature").because(error)),
    }
}
