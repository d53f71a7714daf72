//! The whole daemon as a process of its own, and what is seen of it from outside.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::receiver::SECRET;
use crate::repository::{Repository, ShownStatus};
use crate::server::free_ports;

/// From a push to the last status takes a few seconds; on a busy machine longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// How a daemon watches a repository.
pub(crate) struct Watching {
    /// The repository's address.
    pub(crate) url: String,
    /// Time between looks that nobody asked for.
    pub(crate) poll: &'static str,
    /// More of `credentials`, beside the token: lines such as `sshKeyFile: …`.
    pub(crate) credentials: Vec<String>,
    /// The token for the API, and for Git over HTTP.
    pub(crate) token: String,
    /// Whether people command in comments.
    pub(crate) commands: bool,
}

impl Watching {
    /// Over HTTP with the administrator's token; only told, never polling.
    pub(crate) fn over_http(repository: &Repository) -> Self {
        let (url, token) = (repository.http_url(), repository.server.admin_token().to_owned());
        Self { url, poll: "0s", credentials: Vec::new(), token, commands: false }
    }
}

/// A daemon with a state folder of its own. Its pods end with it.
pub(crate) struct Daemon {
    folder: TempDir,
    url: String,
    process: Option<Child>,
}

impl Daemon {
    /// A daemon that has synced `repository` once.
    pub(crate) async fn start(repository: &Repository, watching: &Watching) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = free_ports().0;
        let url = format!("http://127.0.0.1:{port}");
        let mut daemon = Self { folder, url, process: None };
        daemon.set_token(&watching.token);
        let configuration = daemon.configuration(&repository.server.url(""), watching);
        std::fs::write(daemon.path("launchway.yaml"), configuration).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(daemon.path("launchway.yaml"), private).unwrap();
        daemon.resume().await;
        daemon
    }

    fn configuration(&self, forge: &str, watching: &Watching) -> String {
        let mut credentials = vec!["tokenFile: token".to_owned()];
        credentials.extend(watching.credentials.iter().cloned());
        format!(
            "listen: {listen}\nstate: state\npublicUrl: {public}\nrepositories:\n\
             \x20 - name: shop\n    url: {url}\n    branch: main\n    poll: {poll}\n\
             \x20   credentials: {{{credentials}}}\n    forge: {{kind: gitea, url: \"{forge}\"}}\n\
             \x20   webhook: {{secrets: [\"{SECRET}\"]}}\n    commands: {commands}\n",
            commands = watching.commands,
            listen = self.url.trim_start_matches("http://"),
            public = self.url,
            url = watching.url,
            poll = watching.poll,
            credentials = credentials.join(", "),
        )
    }

    /// Starts the process, and waits until it has synced the repository.
    pub(crate) async fn resume(&mut self) {
        let log = File::options().create(true).append(true).open(self.path("log")).unwrap();
        let mut command = self.launchway(&["serve", "--config"]);
        command.arg(self.path("launchway.yaml")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.process = Some(command.spawn().unwrap());
        let ready = format!("{}/readyz", self.url);
        eventually("the daemon is ready", async || {
            reqwest::get(&ready).await.ok().filter(|answer| answer.status().is_success())
        })
        .await;
    }

    /// Ends the process; its pods go on.
    pub(crate) fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            kill_process(Pid::from_child(&process), Signal::TERM).unwrap();
            process.wait().unwrap();
        }
    }

    /// Where webhooks are to be sent.
    pub(crate) fn webhook_url(&self) -> String {
        format!("{}/webhooks/shop", self.url)
    }

    pub(crate) fn set_token(&self, token: &str) {
        std::fs::write(self.path("token"), token).unwrap();
        std::fs::set_permissions(self.path("token"), std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// A page, which must be there.
    pub(crate) async fn page(&self, url: &str) -> String {
        let url = if url.starts_with('/') { format!("{}{url}", self.url) } else { url.to_owned() };
        let token = std::fs::read_to_string(self.path("state/operator-token")).unwrap();
        let answer = reqwest::Client::new().get(&url).bearer_auth(token).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert_eq!(status, 200, "{url}: {text}");
        text
    }

    /// An answer of the API.
    pub(crate) async fn api(&self, path: &str) -> Value {
        serde_json::from_str(&self.page(&format!("/api/v1/{path}")).await).unwrap()
    }

    /// The statuses of a commit once nothing more will happen to it and the host shows each that the daemon tells.
    pub(crate) async fn settled(&self, repository: &Repository, commit: &str) -> Vec<ShownStatus> {
        eventually("all is told", async || {
            let shown = repository.statuses(commit).await;
            let is_shown = |context: &str| shown.iter().any(|status| status.context == context);
            if !is_shown("launchway/production") || shown.iter().any(|status| status.state == "pending") {
                return None;
            }
            let told = self.api(&format!("revisions/shop/{commit}")).await;
            let mut contexts = told["statuses"].as_array().unwrap().iter().filter_map(|told| told["context"].as_str());
            let all = contexts.all(is_shown);
            all.then_some(shown)
        })
        .await
    }

    /// The version that serves in a stage and how many pods are ready; 0 of what is not there.
    pub(crate) async fn serving(&self, stage: &str) -> (u64, u64) {
        let deployments = self.api(&format!("deployments?stage={stage}")).await;
        let number = |pointer: &str| deployments.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
        (number("/items/0/serving/version"), number("/items/0/ready"))
    }

    /// What a command of ours prints.
    pub(crate) fn command(&self, arguments: &[&str]) -> String {
        let output = self.launchway(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// What a check of the repository prints.
    pub(crate) fn check(&self, more: &[&str]) -> String {
        let config = self.path("launchway.yaml").display().to_string();
        self.command(&[&["repository", "check", "shop", "--config", &config], more].concat())
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap()
    }

    fn launchway(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_launchway"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.folder.path()).arg("--state").arg(self.path("state")).args(arguments);
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            std::io::stderr().write_all(log.as_bytes()).unwrap();
        }
        self.stop();
        self.command(&["down", "shop"]);
    }
}

/// Waits for something to be there.
pub(crate) async fn eventually<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(Instant::now() < deadline, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A file as the configuration names it.
pub(crate) fn entry(key: &str, file: &Path) -> String {
    format!("{key}: \"{}\"", file.display())
}
