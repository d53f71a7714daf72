//! The real `git` program on work trees and what they push to, untouched by the configuration of whoever runs it.

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

/// A work tree, and the repository that it pushes to.
#[derive(Debug)]
pub(super) struct Git {
    program: Program,
    work: PathBuf,
    origin: String,
}

/// The program `git`, for which a folder is all that there is of a person.
#[derive(Clone, Debug)]
pub(super) struct Program {
    folder: PathBuf,
}

impl Program {
    /// At home in `folder`.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub(super) fn at_home(folder: &Path) -> Result<Self> {
        let program = Self { folder: folder.to_owned() };
        // An empty file: Git refuses other kinds of files when it writes.
        let configuration = program.configuration();
        fs::write(&configuration, "").or_stalled(|| format!("cannot write `{}`", configuration.display()))?;
        Ok(program)
    }

    /// Makes an empty bare repository.
    ///
    /// # Errors
    /// If there is no `git`, or the folder cannot be written.
    pub(super) async fn init(&self, bare: &Path) -> Result<()> {
        let (branch, bare) = (format!("--initial-branch={BRANCH}"), bare.display().to_string());
        self.run_in(&self.folder, &["init", "--quiet", "--bare", &branch, &bare]).await.map(|_| ())
    }

    /// Makes a work tree in the folder, under a name, for an empty repository.
    ///
    /// # Errors
    /// If there is no `git`, or the folder cannot be written.
    pub(super) async fn begin(&self, origin: &str, name: &str) -> Result<Git> {
        let git = Git { program: self.clone(), work: self.folder.join(name), origin: origin.to_owned() };
        let branch = format!("--initial-branch={BRANCH}");
        self.run_in(&self.folder, &["init", "--quiet", &branch, name]).await?;
        git.run(&["remote", "add", "origin", origin]).await?;
        // For whoever goes on by hand and is nobody to Git yet.
        git.run(&["config", "user.name", AUTHOR.0]).await?;
        git.run(&["config", "user.email", AUTHOR.1]).await?;
        Ok(git)
    }

    /// The folder in which it is at home.
    pub(super) fn home(&self) -> &Path {
        &self.folder
    }

    fn configuration(&self) -> PathBuf {
        self.folder.join("gitconfig")
    }

    /// What it prints when it runs in a folder.
    ///
    /// # Errors
    /// If it fails.
    pub(super) async fn run_in(&self, folder: &Path, arguments: &[&str]) -> Result<String> {
        let failed = || format!("`git {}` fails", arguments.join(" "));
        let output = self.command().current_dir(folder).args(arguments).output().await.map_err(|error| {
            Failure::transient("cannot run `git`").because(error).hint("install it: apt install git")
        })?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Failure::transient(format!("{}: {complaint}", failed())));
        }
        String::from_utf8(output.stdout).or_stalled(failed)
    }

    /// It, with nothing of the environment but this.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new("git");
        command.env_clear().envs(self.environment()).kill_on_drop(true);
        command
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

impl Git {
    /// The folder that holds everything.
    pub(super) fn folder(&self) -> &Path {
        &self.program.folder
    }

    /// Where it is pushed to, which is watched.
    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    /// The work tree.
    pub(super) fn work(&self) -> &Path {
        &self.work
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

    /// Where the branch is in the repository that is pushed to.
    ///
    /// # Errors
    /// If `git` fails.
    pub(super) async fn remote_head(&self) -> Result<String> {
        let printed = self.run(&["ls-remote", "origin", &format!("refs/heads/{BRANCH}")]).await?;
        Ok(printed.split_whitespace().next().unwrap_or_default().to_owned())
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
        self.program.run_in(&self.work, arguments).await
    }
}
