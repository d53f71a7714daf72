//! A real daemon: the program itself, watching one repository on its own state folder.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The program that is measured.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_launchway");

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// How often a daemon's pods are asked to end, which takes two minutes each time.
const DOWN_TRIES: u32 = 5;

/// A daemon; with it goes what it runs.
pub(crate) struct Daemon {
    /// Its process.
    pub(crate) process: Child,
    /// Where its configuration and its state lie.
    pub(crate) folder: PathBuf,
    /// Where it listens.
    pub(crate) address: String,
}

impl Daemon {
    /// Starts it in `folder` on the repository there, which it syncs only when its files say that a push came; until
    /// it has synced it once.
    pub(crate) fn start(folder: &Path, repository: &Path) -> Self {
        Self::start_with(folder, &format!("url: {}", repository.display()))
    }

    /// The same with what the configuration says of the repository, its address among that.
    pub(crate) fn start_with(folder: &Path, repository: &str) -> Self {
        let config = folder.join("launchway.yaml");
        let text = format!(
            "listen: 127.0.0.1:0\nstate: {}\nrepositories:\n- {{name: shop, branch: main, poll: 0s, {repository}}}\n",
            folder.join("state").display()
        );
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new(PROGRAM);
        command.args(["serve", "--config"]).arg(&config).stdout(Stdio::piped());
        let mut process = command.stderr(Stdio::null()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let address = said.trim().strip_prefix("serving http://").unwrap().to_owned();
        let daemon = Self { process, folder: folder.to_owned(), address };
        wait_until("the daemon is ready", || daemon.get("/readyz").is_some());
        daemon
    }

    /// What it answers, if that is an answer.
    pub(crate) fn get(&self, path: &str) -> Option<String> {
        let mut connection = TcpStream::connect(&self.address).ok()?;
        let mut answer = String::new();
        write!(connection, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address).unwrap();
        connection.read_to_string(&mut answer).ok()?;
        answer.starts_with("HTTP/1.1 200").then_some(answer)
    }

    /// Kills it; its pods go on.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// A command about what it watches; whether it went well.
    pub(crate) fn ask(&self, arguments: &[&str]) -> bool {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).arg("--state").arg(self.folder.join("state"));
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
        // Without a daemon, `down` returns when the last pod is gone, or tells after a while which are not.
        let gone = (0..DOWN_TRIES).any(|_| self.ask(&["down"]));
        assert!(gone || std::thread::panicking(), "pods are left behind");
    }
}

/// Looks every half millisecond.
pub(crate) fn wait_until(what: &str, holds: impl Fn() -> bool) {
    wait(what, Duration::from_micros(500), holds);
}

/// Looks at such intervals.
pub(crate) fn wait(what: &str, pause: Duration, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "still not: {what}");
        std::thread::sleep(pause);
    }
}
