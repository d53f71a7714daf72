//! Opening repositories, object ids, and what libgit2's errors mean.

use std::fmt;
use std::path::Path;

use git2::{ErrorClass, Oid};

use super::process;
use crate::error::{Failure, Result};
use crate::model::ids::CommitId;

/// The id of a blob or a tree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId([u8; 20]);

impl ObjectId {
    /// Reads forty hex digits.
    pub fn parse(text: &str) -> Result<Self> {
        oid(text).map(Self::from)
    }

    pub(super) fn oid(self) -> Result<Oid> {
        Oid::from_bytes(&self.0).map_err(failed(|| format!("`{self}` is not an object id")))
    }
}

impl From<Oid> for ObjectId {
    fn from(oid: Oid) -> Self {
        let mut bytes = [0; 20];
        for (target, source) in bytes.iter_mut().zip(oid.as_bytes()) {
            *target = *source;
        }
        Self(bytes)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Reads a full id in hex.
pub(super) fn oid(text: &str) -> Result<Oid> {
    let whole = text.len() == 40;
    Oid::from_str(text)
        .ok()
        .filter(|_| whole)
        .ok_or_else(|| Failure::stalled(format!("`{text}` is not a full object id")))
}

/// Whether this may be a reference's full name: what Git allows, without the control characters beyond ASCII, which have no business
/// in messages.
pub(super) fn is_reference_name(name: &str) -> bool {
    git2::Reference::is_valid_name(name) && !name.contains(char::is_control)
}

pub(super) fn commit_id(oid: Oid) -> CommitId {
    CommitId::new(oid.to_string())
}

/// Makes a failure of a libgit2 error: what was attempted, caused by what libgit2 says.
pub(super) fn failed(attempt: impl FnOnce() -> String) -> impl FnOnce(git2::Error) -> Failure {
    move |error| {
        let passes = matches!(error.class(), ErrorClass::Os | ErrorClass::Net | ErrorClass::NoMemory);
        let forbidden =
            ["Permission denied", "Read-only file system"].iter().any(|words| error.message().contains(words));
        let failure = if passes && !forbidden { Failure::transient(attempt()) } else { Failure::stalled(attempt()) };
        failure.because(error.message().to_owned())
    }
}

/// `None` for what is not there; other errors stay.
pub(super) fn existing<T>(result: std::result::Result<T, git2::Error>) -> std::result::Result<Option<T>, git2::Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether an object is a commit.
pub(super) fn is_commit(repository: &git2::Repository, id: Oid) -> std::result::Result<bool, git2::Error> {
    Ok(repository.odb()?.read_header(id)?.1 == git2::ObjectType::Commit)
}

/// Opens a person's repository: bare, or the one of a work tree.
pub(super) fn open_local(path: &Path) -> Result<git2::Repository> {
    process::configure()?;
    git2::Repository::open(path).map_err(|error| explain_unopened(path, error))
}

/// Opens the repository that `path` is in.
pub(super) fn discover(path: &Path) -> Result<git2::Repository> {
    process::configure()?;
    git2::Repository::discover(path).map_err(|error| explain_unopened(path, error))
}

fn explain_unopened(path: &Path, error: git2::Error) -> Failure {
    if !path.exists() {
        return Failure::stalled(format!("`{}` does not exist", path.display())).hint("check the repository's path");
    }
    if error.message().contains("sha256") {
        return sha256(&path.display().to_string());
    }
    if error.code() == git2::ErrorCode::NotFound {
        return Failure::stalled(format!("`{}` is not a Git repository", path.display()))
            .hint("name a bare repository or the root of a work tree");
    }
    failed(|| format!("cannot open the repository `{}`", path.display()))(error)
}

/// The refusal of repositories with SHA-256 ids.
pub(super) fn sha256(repository: &str) -> Failure {
    Failure::stalled(format!("`{repository}` uses SHA-256 object ids, which are not supported"))
        .hint("create it with `git init --object-format=sha1`")
}

/// Opens a repository of our own, or makes it; one that was cut short while being made is completed.
pub(super) fn open_or_create_bare(path: &Path) -> Result<git2::Repository> {
    process::configure()?;
    if let Ok(repository) = git2::Repository::open_bare(path) {
        return Ok(repository);
    }
    let describe = || format!("cannot create the mirror `{}`", path.display());
    let mut options = git2::RepositoryInitOptions::new();
    options.bare(true).mkpath(true).external_template(false);
    let repository = git2::Repository::init_opts(path, &options).map_err(failed(describe))?;
    // What a status was written about must still be there after a power failure.
    let mut config = repository.config().map_err(failed(describe))?;
    config.set_bool("core.fsyncObjectFiles", true).map_err(failed(describe))?;
    Ok(repository)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_full_hex() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(ObjectId::parse(id).expect("an id").to_string(), id);
        for text in ["", "0123", "0123456789abcdef0123456789abcdef0123456z", "HEAD"] {
            assert!(ObjectId::parse(text).is_err(), "{text}");
        }
    }
}
