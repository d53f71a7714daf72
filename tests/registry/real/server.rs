//! A registry's process, with nothing of the surroundings of who runs the test.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::tokens::{ISSUER, SERVICE, Tokens};

pub(super) const USER: &str = "ci";
pub(super) const PASSWORD: &str = "hunter2";
/// The password as `htpasswd -B` writes it, cheaply.
const HTPASSWD: &str = "ci:$2b$04$d3wCu6Wjl0s5LhqWOTy.AO18U8H3DvayL5qMYE6omI3kQwzHWmNhO\n";

const PATIENCE: Duration = Duration::from_secs(60);

/// To whom it opens.
#[derive(Debug)]
pub(super) enum Access<'a> {
    Anybody,
    /// To who says a name and a password.
    Password,
    /// To who has a token that these have given.
    Token(&'a Tokens),
}

/// A running registry; it ends when dropped.
pub(super) struct Real {
    pub(super) address: String,
    process: Child,
    folder: tempfile::TempDir,
}

impl Drop for Real {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Real {
    /// Starts one that has no image yet, on a port that it chooses.
    pub(super) async fn start(access: &Access<'_>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (file, htpasswd) = (folder.path().join("config.yml"), folder.path().join("htpasswd"));
        fs::write(&htpasswd, HTPASSWD).unwrap();
        let auth = match access {
            Access::Anybody => String::new(),
            Access::Password => format!("auth: {{htpasswd: {{realm: test, path: {}}}}}\n", htpasswd.display()),
            Access::Token(tokens) => format!(
                "auth: {{token: {{realm: '{}', service: {SERVICE}, issuer: {ISSUER}, rootcertbundle: {}}}}}\n",
                tokens.realm,
                tokens.certificate().display()
            ),
        };
        let config = format!(
            "version: 0.1\nlog: {{level: info, accesslog: {{disabled: false}}}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\n\
             http: {{addr: '127.0.0.1:0', secret: test}}\n{auth}",
            folder.path().join("data").display()
        );
        fs::write(&file, config).unwrap();
        // Its own variables would be settings to it.
        let program = std::env::var("REGISTRY").unwrap_or_else(|_| "docker-registry".to_owned());
        let log = fs::File::create(log(&folder)).unwrap();
        let mut command = Command::new(program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).arg("serve").arg(&file);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let process = command.spawn().expect("docker-registry, of which there is a package by its name");
        let mut real = Self { address: String::new(), process, folder };
        real.address = real.listens().await;
        real
    }

    /// Waits until it says where.
    async fn listens(&mut self) -> String {
        let since = Instant::now();
        loop {
            let log = self.log();
            if let Some((address, _)) = log.split_once("listening on ").and_then(|(_, rest)| rest.split_once('"')) {
                return address.to_owned();
            }
            assert!(self.process.try_wait().unwrap().is_none(), "it has ended: {log}");
            assert!(since.elapsed() < PATIENCE, "it does not start: {log}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(log(&self.folder)).unwrap()
    }

    /// Waits until its log says that it has answered a request so, as `<method> <status>`.
    pub(super) async fn has_answered(&self, expected: &str) {
        let since = Instant::now();
        while !self.log().lines().filter_map(request).any(|request| request == expected) {
            assert!(since.elapsed() < PATIENCE, "it has answered nothing by {expected}: {}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Of a line of the log, what was asked and how it was answered.
fn request(line: &str) -> Option<String> {
    let (request, rest) = line.split_once(" \"")?.1.split_once("\" ")?;
    let (method, status) = (request.split(' ').next()?, rest.split(' ').next()?);
    request.ends_with(" HTTP/1.1").then(|| format!("{method} {status}"))
}

fn log(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("log")
}

/// What opens one to who has the password.
pub(super) fn basic() -> String {
    format!("Basic {}", STANDARD.encode(format!("{USER}:{PASSWORD}")))
}
