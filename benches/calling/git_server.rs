//! Git's own server, which has no file events to tell.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::daemon::wait_until;

/// A running `git daemon`; it ends when dropped.
pub(crate) struct GitServer {
    process: Child,
    port: u16,
}

impl GitServer {
    /// Serves what is in a folder.
    pub(crate) fn start(folder: &Path) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        // `git daemon` would start it, and not end it.
        let place = Command::new("git").arg("--exec-path").output().unwrap();
        let program = PathBuf::from(String::from_utf8(place.stdout).unwrap().trim()).join("git-daemon");
        let mut command = Command::new(program);
        command.args(["--listen=127.0.0.1", "--export-all", "--reuseaddr"]).env("HOME", folder);
        command.arg(format!("--port={port}")).arg(format!("--base-path={}", folder.display()));
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let server = Self { process, port };
        wait_until("Git's server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        server
    }

    /// The address of a repository.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("git://127.0.0.1:{}/{path}", self.port)
    }
}

impl Drop for GitServer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
