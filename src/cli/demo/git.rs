//! The real `git` program on a bare repository and a work tree, untouched by the configuration of whoever runs it.

use std::fs;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::error::{Context, Failure, Result};

/// The branch of the story.
pub(super) const BRANCH: &str = "main";
/// Where results are, on both sides.
const NOTES_REF: &str = "refs/notes/launchway";

/// Who pushes: a name and an address.
const AUTHOR: (&str, &str) = ("Ada", "ada@example.org");

/// A bare repository, and a work tree that pushes to it.
#[derive(Debug)]
pub(super) struct Git {
    folder: PathBuf,
}

impl Git {
    /// Makes both in `folder`.
    ///
    /// # Errors
    /// If there is no `git`, or the folder cannot be written.
    pub(super) async fn prepare(folder: &Path) -> Result<Self> {
        let git = Self { folder: folder.to_owned() };
        // An empty file: Git refuses other kinds of files when it writes.
        let configuration = git.configuration();
        fs::write(&configuration, "").or_stalled(|| format!("cannot write `{}`", configuration.display()))?;
        let (bare, work) = (git.bare().display().to_string(), git.work().display().to_string());
        let branch = format!("--initial-branch={BRANCH}");
        git.run_in(folder, &["init", "--quiet", "--bare", &branch, &bare]).await?;
        git.run_in(folder, &["init", "--quiet", &branch, &work]).await?;
        git.run(&["remote", "add", "origin", &bare]).await?;
        // For whoever goes on by hand and is nobody to Git yet.
        git.run(&["config", "user.name", AUTHOR.0]).await?;
        git.run(&["config", "user.email", AUTHOR.1]).await?;
        Ok(git)
    }

    /// The folder that holds everything.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The bare repository, which is watched.
    pub(super) fn bare(&self) -> PathBuf {
        self.folder.join("shop.git")
    }

    /// The work tree.
    pub(super) fn work(&self) -> PathBuf {
        self.folder.join("shop")
    }

    fn configuration(&self) -> PathBuf {
        self.folder.join("gitconfig")
    }

    /// Replaces text that stands in a file of the work tree.
    ///
    /// # Errors
    /// If it does not stand there.
    pub(super) fn edit(&self, file: &str, old: &str, new: &str) -> Result<()> {
        let path = self.work().join(file);
        let text = fs::read_to_string(&path).or_stalled(|| format!("cannot read `{}`", path.display()))?;
        if !text.contains(old) {
            return Err(Failure::stalled(format!("`{file}` of the example does not say `{old}`")));
        }
        fs::write(&path, text.replace(old, new)).or_stalled(|| format!("cannot write `{}`", path.display()))
    }

    /// Commits everything and pushes it; gives the commit's id.
    ///
    /// # Errors
    /// If `git` fails.
    pub(super) async fn push(&self, message: &str) -> Result<String> {
        self.run(&["add", "--all"]).await?;
        self.run(&["commit", "--quiet", "-m", message]).await?;
        self.run(&["push", "--quiet", "origin", BRANCH]).await?;
        Ok(self.run(&["rev-parse", "HEAD"]).await?.trim().to_owned())
    }

    /// Merges a branch of the watched repository and pushes that; gives the commit's id.
    ///
    /// # Errors
    /// If it is not there, or `git` fails.
    pub(super) async fn merge(&self, branch: &str) -> Result<String> {
        self.run(&["fetch", "--quiet", "origin"]).await?;
        self.run(&["merge", "--quiet", "--no-edit", &format!("origin/{branch}")]).await?;
        self.run(&["push", "--quiet", "origin", BRANCH]).await?;
        Ok(self.run(&["rev-parse", "HEAD"]).await?.trim().to_owned())
    }

    /// The results that stand on a commit in the watched repository, a line each.
    ///
    /// # Errors
    /// If there are none yet.
    pub(super) async fn notes(&self, commit: &str) -> Result<String> {
        self.fetch_notes().await?;
        self.run(&["notes", "--ref=launchway", "show", commit]).await
    }

    /// The history with the results on it, as `git` shows it.
    ///
    /// # Errors
    /// If `git` fails.
    pub(super) async fn log(&self) -> Result<String> {
        self.fetch_notes().await?;
        self.run(&["log", "--notes=launchway"]).await
    }

    async fn fetch_notes(&self) -> Result<()> {
        self.run(&["fetch", "--quiet", "origin", &format!("+{NOTES_REF}:{NOTES_REF}")]).await.map(|_| ())
    }

    async fn run(&self, arguments: &[&str]) -> Result<String> {
        self.run_in(&self.work(), arguments).await
    }

    async fn run_in(&self, folder: &Path, arguments: &[&str]) -> Result<String> {
        let failed = || format!("`git {}` fails", arguments.join(" "));
        let mut command = Command::new("git");
        command.current_dir(folder).args(arguments).env_clear().envs(self.environment()).kill_on_drop(true);
        let output = command.output().await.map_err(|error| {
            Failure::transient("cannot run `git`").because(error).hint("install it: apt install git")
        })?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Failure::transient(format!("{}: {complaint}", failed())));
        }
        String::from_utf8(output.stdout).or_stalled(failed)
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        let (name, address) = (AUTHOR.0.to_owned(), AUTHOR.1.to_owned());
        vec![
            ("PATH", std::env::var("PATH").unwrap_or_default()),
            ("HOME", self.folder.display().to_string()),
            ("GIT_CONFIG_GLOBAL", self.configuration().display().to_string()),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
            ("GIT_TERMINAL_PROMPT", "0".to_owned()),
            ("GIT_AUTHOR_NAME", name.clone()),
            ("GIT_AUTHOR_EMAIL", address.clone()),
            ("GIT_COMMITTER_NAME", name),
            ("GIT_COMMITTER_EMAIL", address),
        ]
    }
}
