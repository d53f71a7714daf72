//! The daemon of the story: `launchway serve` as a process of its own, that can be killed like any other.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::git::BRANCH;
use super::story::eventually;
use crate::cli::arguments::Global;
use crate::cli::client::Client;
use crate::cli::output::{Format, Outcome};
use crate::error::{Context, Failure, Result};
use crate::server::presence::Presence;

/// The name under which the story's repository is watched.
pub(super) const REPOSITORY: &str = "shop";
/// How long the daemon may take to begin and to end.
const PATIENCE: Duration = Duration::from_secs(20);
/// How much of the daemon's log is shown where something went wrong.
const LINES_SHOWN: usize = 10;

/// Where the daemon's files are, and its process while it runs.
#[derive(Debug)]
pub(super) struct Server {
    program: PathBuf,
    folder: PathBuf,
    process: Option<Child>,
}

impl Server {
    /// Writes the configuration; nothing runs yet.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn prepare(folder: &Path, url: &str) -> Result<Self> {
        let program = std::env::current_exe().or_stalled(|| "cannot tell where this program is".to_owned())?;
        let server = Self { program, folder: folder.to_owned(), process: None };
        let path = server.configuration();
        fs::write(&path, "listen: 127.0.0.1:0\nrepositories:\n")
            .or_stalled(|| format!("cannot write `{}`", path.display()))?;
        server.watch(REPOSITORY, url, &["allow: {hostImage: true}"])?;
        Ok(server)
    }

    /// Has the configuration name a repository, which is watched from the next start on.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn watch(&self, name: &str, url: &str, settings: &[&str]) -> Result<()> {
        let (path, branch) = (self.configuration(), format!("branch: {BRANCH}"));
        let mut text = format!("  - name: {name}\n    url: \"{url}\"\n");
        for setting in [&*branch].iter().chain(settings) {
            text.push_str(&format!("    {setting}\n"));
        }
        let file = File::options().append(true).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .or_stalled(|| format!("cannot write `{}`", path.display()))
    }

    /// This program.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// What `--config` names.
    pub(super) fn configuration(&self) -> PathBuf {
        self.folder.join("serve.yaml")
    }

    /// What `--state` names.
    pub(super) fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    /// What it says.
    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("serve.log")
    }

    /// The last lines of what it says.
    pub(super) fn last_words(&self) -> String {
        let text = fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")
    }

    /// The daemon's process while it runs.
    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().and_then(Child::id)
    }

    /// Starts it, and waits until it has synced the repository.
    ///
    /// # Errors
    /// If it does not begin in time.
    pub(super) async fn start(&mut self) -> Result<()> {
        let log = self.log();
        let unwritable = || format!("cannot write `{}`", log.display());
        let out = File::options().create(true).append(true).open(&log).or_stalled(unwritable)?;
        let err = out.try_clone().or_stalled(unwritable)?;
        let mut command = self.launchway(&["serve", "--config"]);
        command.arg(self.configuration()).stdin(Stdio::null()).stdout(out).stderr(err);
        // Ctrl-C at the terminal is for the story, which then ends the daemon itself.
        command.process_group(0);
        let child = command.spawn().or_transient(|| format!("cannot start `{}`", self.program.display()))?;
        self.process = Some(child);
        eventually(PATIENCE, async || self.ready().await).await.map_err(|instead| {
            Failure::transient(format!("the daemon is not ready: {instead}; it says: {}", self.last_words()))
        })
    }

    /// This program on the story's state, whatever the environment says.
    pub(super) fn launchway(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.env_remove("LAUNCHWAY_STATE").env_remove("LAUNCHWAY_SERVER");
        command.args(["--no-color", "--state"]).arg(self.state()).args(arguments);
        command
    }

    /// Where it answers.
    pub(super) fn url(&self) -> Result<String, String> {
        let presence = Presence::read(&self.state()).map_err(|failure| failure.one_line())?;
        let mine = presence.filter(|presence| Some(presence.pid) == self.pid());
        mine.map(|presence| presence.url).ok_or_else(|| "it has not said where it answers".to_owned())
    }

    async fn ready(&self) -> Result<(), String> {
        let url = format!("{}/readyz", self.url()?);
        super::visitors::get(&url).await.map(|_| ())
    }

    /// Its API.
    ///
    /// # Errors
    /// If it does not answer.
    pub(super) async fn api(&self) -> Outcome<Client> {
        let global = Global {
            state: Some(self.state()),
            server: None,
            repository: None,
            stage: None,
            output: Format::Json,
            no_color: true,
        };
        Client::to_act(&global).await
    }

    /// Kills it as `kill -9` does; says which process it was.
    ///
    /// # Errors
    /// If it does not run.
    pub(super) async fn kill(&mut self) -> Result<u32> {
        let gone = || Failure::stalled("the daemon does not run");
        let (pid, mut child) = (self.pid().ok_or_else(gone)?, self.process.take().ok_or_else(gone)?);
        child.kill().await.or_transient(|| format!("cannot kill process {pid}"))?;
        Ok(pid)
    }

    /// Asks it to end, and kills it if it does not.
    ///
    /// # Errors
    /// If it cannot be ended.
    pub(super) async fn stop(&mut self) -> Result<()> {
        let pid = self.pid().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let (Some(pid), Some(mut child)) = (pid, self.process.take()) else { return Ok(()) };
        let failed = || "cannot end the daemon".to_owned();
        kill_process(pid, Signal::TERM).or_transient(failed)?;
        match tokio::time::timeout(PATIENCE, child.wait()).await {
            Ok(ended) => ended.or_transient(failed).map(|_| ()),
            Err(_) => child.kill().await.or_transient(failed),
        }
    }
}
