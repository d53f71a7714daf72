//! How a shim is started, and where it says what goes wrong.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::super::record::ServicesDir;
use super::proxy_process::THIS_PROGRAM;
use std::os::unix::process::CommandExt;

/// The log's size from which on the next shim starts it anew.
const MAX_LOG: u64 = 1 << 20;
/// The option of one that takes another's place.
pub(in super::super) const SUCCEED: &str = "--succeed";

/// What a shim does first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Start {
    /// It opens the sockets, if no shim lives.
    Alone,
    /// It takes over from the one that lives.
    Succeeding,
}

/// Starts `launchway service-shim` as a process of its own.
pub(in super::super) fn spawn(program: &Path, dir: &ServicesDir, start: Start) -> io::Result<Child> {
    let log = open_log(dir)?;
    let mut command = Command::new(program);
    command.arg0("launchway").arg("service-shim").arg(dir.path());
    command.args((start == Start::Succeeding).then_some(SUCCEED));
    command.env_clear().current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()
}

/// The same by a proxy whose shim died, with the program that both have.
pub(in super::super) fn spawn_again(dir: &ServicesDir) -> io::Result<Child> {
    spawn(Path::new(THIS_PROGRAM), dir, Start::Alone)
}

/// The log, started anew when it has grown.
fn open_log(dir: &ServicesDir) -> io::Result<File> {
    let path = dir.log();
    let grown = std::fs::metadata(&path).is_ok_and(|file| file.len() > MAX_LOG);
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600);
    if grown { options.write(true).truncate(true) } else { options.append(true) }.open(path)
}

/// Writes a line to the log.
pub(in super::super) fn complain(text: &str) {
    // There is nobody left to tell if the log cannot be written.
    writeln!(io::stderr(), "{text}").ok();
}
