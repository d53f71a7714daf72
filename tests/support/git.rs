//! Real repositories for tests, driven by the real `git` program, untouched by the configuration of whoever runs them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A bare repository with a work tree that pushes to it.
pub(crate) struct GitFixture {
    folder: TempDir,
}

impl GitFixture {
    /// An empty bare repository, and a work tree on the branch `main`.
    pub(crate) fn new() -> Self {
        let fixture = Self { folder: tempfile::tempdir().expect("a folder for the fixture") };
        // An empty file: Git treats other kinds of files as an error when it writes.
        std::fs::write(fixture.path("gitconfig"), "").expect("an empty configuration");
        fixture.git_in(fixture.root(), &["init", "--quiet", "--bare", "--initial-branch=main", "origin.git"]);
        fixture.git_in(fixture.root(), &["init", "--quiet", "--initial-branch=main", "work"]);
        fixture.git_in(&fixture.bare(), &["config", "http.receivepack", "true"]);
        fixture.git(&["remote", "add", "origin", &fixture.bare().display().to_string()]);
        fixture
    }

    /// The folder that holds everything; removed with the fixture.
    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    /// A path in that folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// The bare repository.
    pub(crate) fn bare(&self) -> PathBuf {
        self.path("origin.git")
    }

    /// The work tree.
    pub(crate) fn work(&self) -> PathBuf {
        self.path("work")
    }

    /// Runs `git` in the work tree and gives what it prints. Panics if it fails.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.work(), arguments)
    }

    /// Runs `git` in `folder`. Panics if it fails.
    pub(crate) fn git_in(&self, folder: &Path, arguments: &[&str]) -> String {
        let output = self.try_git_in(folder, arguments);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?} failed: {complaint}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Runs `git` in `folder`, whatever becomes of it.
    pub(crate) fn try_git_in(&self, folder: &Path, arguments: &[&str]) -> Output {
        self.command(folder).args(arguments).output().expect("the program git")
    }

    /// A `git` command in `folder` with a fixed author, a fixed time and no foreign configuration.
    pub(crate) fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new("git");
        command.current_dir(folder).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        for (name, value) in self.environment() {
            command.env(name, value);
        }
        command
    }

    /// The variables that make any `git` process hermetic.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let date = "2026-01-02T03:04:05Z".to_owned();
        vec![
            ("HOME", self.root().display().to_string()),
            ("GIT_CONFIG_GLOBAL", self.path("gitconfig").display().to_string()),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
            ("GIT_TERMINAL_PROMPT", "0".to_owned()),
            ("GIT_AUTHOR_NAME", "Ada".to_owned()),
            ("GIT_AUTHOR_EMAIL", "ada@example.org".to_owned()),
            ("GIT_AUTHOR_DATE", date.clone()),
            ("GIT_COMMITTER_NAME", "Ada".to_owned()),
            ("GIT_COMMITTER_EMAIL", "ada@example.org".to_owned()),
            ("GIT_COMMITTER_DATE", date),
        ]
    }

    /// Writes files into the work tree and commits them; gives the commit's id. Works without changes too.
    pub(crate) fn commit_files(&self, files: &[(&str, &str)]) -> String {
        for (path, content) in files {
            self.write(path, content);
        }
        self.commit(&files.first().map_or("nothing".to_owned(), |(path, _)| format!("Change {path}")))
    }

    /// Commits everything that changed in the work tree; gives the commit's id.
    pub(crate) fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", message]);
        self.head()
    }

    /// Writes a file into the work tree.
    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.work().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        std::fs::write(path, content).expect("a file");
    }

    /// Makes a program of a script. Another process writes it: a file that this one still has open for writing, in
    /// some child of a parallel test, could not be run.
    pub(crate) fn write_program(&self, path: &Path, script: &str) {
        let text = self.path("script");
        std::fs::write(&text, script).expect("a script");
        let status = Command::new("install").args(["-D", "-m", "755"]).arg(text).arg(path).status().expect("install");
        assert!(status.success());
    }

    /// Puts `count` commits without files onto `main` of the bare repository at once; gives their ids, oldest first.
    pub(crate) fn import_commits(&self, count: usize) -> Vec<String> {
        let stream: String = (0..count)
            .map(|_| "commit refs/heads/main\ncommitter Ada <ada@example.org> 1767323045 +0000\ndata 2\nx\n\n")
            .collect();
        let file = self.path("stream");
        std::fs::write(&file, stream).expect("a stream");
        let input = std::fs::File::open(file).expect("the stream");
        let status = self.command(&self.bare()).args(["fast-import", "--quiet"]).stdin(input).status().expect("git");
        assert!(status.success());
        let list = self.git_in(&self.bare(), &["rev-list", "--reverse", "main"]);
        list.lines().map(str::to_owned).collect()
    }

    /// The commit that the work tree is at.
    pub(crate) fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// Pushes the current branch.
    pub(crate) fn push(&self) {
        self.git(&["push", "--quiet", "origin", "HEAD"]);
    }

    /// Commits files and pushes them; gives the commit's id.
    pub(crate) fn push_files(&self, files: &[(&str, &str)]) -> String {
        let commit = self.commit_files(files);
        self.push();
        commit
    }
}
