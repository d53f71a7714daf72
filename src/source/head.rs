//! What a remote's branch and its `HEAD` point at.

use super::Remote;
use super::git::{self, commit_id, existing, failed};
use super::ls_refs::{Asked, list};
use crate::error::{Failure, Result};
use crate::model::ids::CommitId;

/// So much of a name that is refused is repeated.
const MAX_NAME_CHARS: usize = 100;

/// What the remote's branch points at; `None` if it has no such branch.
///
/// Fails as `Transient` if it cannot be reached, and as `Stalled` if it refuses the credentials, does not exist or is of
/// a kind that is not supported.
pub fn remote_head(remote: &Remote) -> Result<Option<CommitId>> {
    let branch = remote.branch_ref()?;
    match remote.url.local_path() {
        Some(path) => local_ref(path, &branch),
        None => Ok(list(remote, Asked::Reference(&branch))?.found.map(CommitId::new)),
    }
}

/// Why the remote's branch has no head: it was deleted if it `was_there`; else it waits for the first push, to the branch
/// or to the whole repository.
pub fn without_branch(remote: &Remote, was_there: bool) -> Failure {
    let Remote { url, branch, .. } = remote;
    if was_there {
        return Failure::stalled(format!("branch `{branch}` of `{url}` was deleted"))
            .hint("push it again, or watch another branch; what runs keeps running");
    }
    match is_empty(remote) {
        Ok(true) => empty(remote),
        Ok(false) => Failure::stalled(format!("branch `{branch}` of `{url}` does not exist"))
            .hint("push it, or watch another branch"),
        Err(failure) => failure,
    }
}

/// The branch that the remote's `HEAD` names. `remote.branch` plays no part.
///
/// Fails as `Waiting` if it names none because there is none yet.
pub fn default_branch(remote: &Remote) -> Result<String> {
    match named_by_head(remote)? {
        Some(branch) => Ok(branch),
        None if is_empty(remote)? => Err(empty(remote)),
        None => Err(Failure::stalled(format!("`{}` does not say which branch is its main one", remote.url))
            .hint("name the branch")),
    }
}

/// The same; nothing, if it names none.
pub fn named_by_head(remote: &Remote) -> Result<Option<String>> {
    let target = match remote.url.local_path() {
        Some(path) => local_head(path)?,
        None => list(remote, Asked::Head)?.head,
    };
    target.map_or(Ok(None), |target| branch_of(&target))
}

/// The branch whose full name this is; none, if it is the name of something else.
fn branch_of(target: &str) -> Result<Option<String>> {
    let Some(branch) = target.strip_prefix("refs/heads/") else { return Ok(None) };
    if git::is_reference_name(target) {
        return Ok(Some(branch.to_owned()));
    }
    let name: String = branch.escape_debug().take(MAX_NAME_CHARS).collect();
    Err(Failure::stalled(format!("its main branch would be `{name}`, which is no name of a branch"))
        .hint("name the branch"))
}

fn empty(remote: &Remote) -> Failure {
    Failure::waiting(format!("`{}` has no commits yet", remote.url)).hint("push one")
}

fn is_empty(remote: &Remote) -> Result<bool> {
    match remote.url.local_path() {
        Some(path) => {
            let repository = git::open_local(path)?;
            let mut branches = repository.references_glob("refs/heads/*").map_err(failed(|| unreadable(path)))?;
            Ok(branches.next().is_none())
        }
        None => Ok(list(remote, Asked::AnyBranch)?.found.is_none()),
    }
}

fn unreadable(path: &std::path::Path) -> String {
    format!("cannot read the references of `{}`", path.display())
}

/// Reads one reference of a repository on this machine.
fn local_ref(path: &std::path::Path, name: &str) -> Result<Option<CommitId>> {
    let repository = git::open_local(path)?;
    let id = existing(repository.refname_to_id(name)).map_err(failed(|| unreadable(path)))?;
    Ok(id.map(commit_id))
}

fn local_head(path: &std::path::Path) -> Result<Option<String>> {
    let repository = git::open_local(path)?;
    let head = repository.find_reference("HEAD").map_err(failed(|| unreadable(path)))?;
    let target = head.symbolic_target().map_err(failed(|| unreadable(path)))?;
    Ok(target.map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_may_name_only_what_can_be_a_branch() {
        let branch = |target: &str| branch_of(target).map_err(|failure| failure.one_line());
        assert_eq!(branch("refs/heads/release/1.2"), Ok(Some("release/1.2".to_owned())));
        assert_eq!(branch("refs/tags/v1"), Ok(None));
        for name in ["mai\t", "a\n003a", "", "a..b", "a\u{7f}", "a\u{85}", "a b"] {
            let told = branch(&format!("refs/heads/{name}")).expect_err(name);
            assert!(told.contains(&format!("`{}`", name.escape_debug())), "{told}");
        }
    }
}
