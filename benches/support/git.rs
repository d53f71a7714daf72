//! A real bare repository that a benchmark pushes to.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A `git` command in `folder`, untouched by the configuration of whoever runs it.
pub(crate) fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let person = [("GIT_AUTHOR_NAME", "Ada"), ("GIT_AUTHOR_EMAIL", "ada@example.org")];
    let committer = [("GIT_COMMITTER_NAME", "Ada"), ("GIT_COMMITTER_EMAIL", "ada@example.org")];
    command.envs(person).envs(committer).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", folder);
    command
}

/// Runs `git` to its end.
pub(crate) fn run(folder: &Path, arguments: &[&str]) {
    let output = git(folder).args(arguments).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// An empty bare repository in `folder`.
pub(crate) fn bare(folder: &Path) -> PathBuf {
    run(folder, &["init", "--quiet", "--bare", "--initial-branch=main", "origin.git"]);
    folder.join("origin.git")
}
