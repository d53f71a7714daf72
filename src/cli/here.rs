//! The Git repository that a command is typed in.

use std::path::Path;

use crate::server::view::RepositoryView;
use crate::source::{Limits, RemoteUrl, Repository};

/// The repository around the folder that the command was started in, if there is one.
pub(super) fn repository() -> Option<Repository> {
    Repository::around(Path::new("."), Limits::default()).ok()
}

/// What Git here calls `revision`, such as `HEAD~1`; as it is, where Git has no such name.
pub(super) fn commit(revision: &str) -> String {
    let commit = repository().and_then(|here| here.resolve(revision).ok());
    commit.map_or_else(|| revision.to_owned(), |commit| commit.to_string())
}

/// Whether a repository on this machine is the one that is watched, or a clone of it: its `origin` is.
pub(super) fn belongs_to(repository: &Repository, watched: &RepositoryView) -> bool {
    let Ok(url) = RemoteUrl::parse(&watched.url, true) else { return false };
    let is_origin = |origin: String| RemoteUrl::parse(&origin, true).is_ok_and(|origin| origin.leads_where(&url));
    url.local_path().is_some_and(|path| is_at(repository, path)) || repository.origin().is_some_and(is_origin)
}

/// Whether a repository on this machine is the one at a path.
pub(super) fn is_at(repository: &Repository, path: &Path) -> bool {
    [path.join(".git").as_path(), path].iter().any(|it| is_same(it, &repository.git_dir()))
}

/// Those of the watched repositories that a repository on this machine belongs to, and the others.
pub(super) fn owned(
    repository: &Repository,
    watched: Vec<RepositoryView>,
) -> (Vec<RepositoryView>, Vec<RepositoryView>) {
    watched.into_iter().partition(|watched| belongs_to(repository, watched))
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
