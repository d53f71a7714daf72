//! A work tree, and the `git` program in an environment of its own.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tempfile::TempDir;

use crate::repository::Repository;

pub(crate) struct WorkTree {
    folder: TempDir,
    http_url: String,
    ssh_url: String,
    known_hosts: PathBuf,
    token: String,
}

impl WorkTree {
    /// An empty work tree on `main`, to be pushed to `repository`.
    pub(crate) fn create(repository: &Repository) -> Self {
        let tree = Self {
            folder: tempfile::tempdir().unwrap(),
            http_url: repository.http_url(),
            ssh_url: repository.ssh_url(),
            known_hosts: repository.server.known_hosts(),
            token: repository.server.admin_token().to_owned(),
        };
        // An empty file, never /dev/null: a program that rewrites it would replace the device.
        std::fs::write(tree.folder.path().join("gitconfig"), "").unwrap();
        std::fs::create_dir(tree.path()).unwrap();
        tree.git(&["init", "--quiet", "--initial-branch=main"]);
        tree
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    /// Commits a file; the commit's id.
    pub(crate) fn commit(&self, file: &str, content: &str) -> String {
        self.commit_all(&[(file, content)])
    }

    /// Commits files, those in a `bin` folder as programs; the commit's id.
    pub(crate) fn commit_all(&self, files: &[(&str, &str)]) -> String {
        for (file, content) in files {
            let path = self.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, content).unwrap();
            let mode = if file.contains("bin/") { 0o755 } else { 0o644 };
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            self.git(&["add", file]);
        }
        self.git(&["commit", "--quiet", "--message", files[0].0]);
        self.head()
    }

    /// The id of the commit that is checked out.
    pub(crate) fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// Runs `git` with these arguments; what it prints.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        run(self.command().args(arguments))
    }

    /// Pushes with the administrator's token.
    pub(crate) async fn push_over_http(&self, refspec: &str) {
        let credentials = STANDARD.encode(format!("x-access-token:{}", self.token));
        let mut command = self.command();
        command
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "http.extraHeader")
            .env("GIT_CONFIG_VALUE_0", format!("Authorization: Basic {credentials}"))
            .args(["push", "--quiet", &self.http_url, refspec]);
        run_aside(command).await;
    }

    /// Pushes with a key.
    pub(crate) async fn push_over_ssh(&self, key: &Path, refspec: &str) {
        let ssh = format!(
            "ssh -F none -o IdentitiesOnly=yes -o StrictHostKeyChecking=yes -o UserKnownHostsFile={} -i {}",
            self.known_hosts.display(),
            key.display()
        );
        let mut command = self.command();
        command.env("GIT_SSH_COMMAND", ssh).args(["push", "--quiet", &self.ssh_url, refspec]);
        run_aside(command).await;
    }

    /// Makes a key; the private part's file and the public part.
    pub(crate) fn make_key(&self) -> (PathBuf, String) {
        let file = self.folder.path().join("key");
        run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&file));
        let public = std::fs::read_to_string(file.with_extension("pub")).unwrap();
        (file, public.trim().to_owned())
    }

    fn command(&self) -> Command {
        let mut command = Command::new("git");
        command.env_clear().current_dir(self.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.folder.path());
        command.env("GIT_CONFIG_GLOBAL", self.folder.path().join("gitconfig")).env("GIT_CONFIG_NOSYSTEM", "1");
        command.env("GIT_TERMINAL_PROMPT", "0");
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "Ann").env(format!("GIT_{role}_EMAIL"), "ann@example.com");
            command.env(format!("GIT_{role}_DATE"), "2026-01-02T03:04:05Z");
        }
        command
    }
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Runs a command without holding up what it may call back.
async fn run_aside(mut command: Command) {
    tokio::task::spawn_blocking(move || run(&mut command)).await.unwrap();
}
