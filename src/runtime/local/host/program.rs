//! Which program shims run: the small one beside the running one, if it is of the same build.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::runtime::local::host::open_files;
use crate::runtime::local::pod::launch::OWN_PROGRAM;

/// The small program's name; it lies in the same folder as `launchway`.
const SMALL_PROGRAM: &str = "launchway-shim";
/// What this build is called.
pub(crate) const BUILD: &str = env!("LAUNCHWAY_BUILD");
/// The verb by which a program tells its build.
pub(crate) const BUILD_VERB: &str = "build-name";

/// The program that shims run, whatever happens to its file.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
    /// How many files what it runs may have open, if that is fewer than this process may.
    open_files: Option<u64>,
    /// Keeps `path` valid if it leads through this process' open files.
    _file: Option<File>,
}

impl Program {
    /// The program at `path`, whose [`crate::runtime::local::process_entry`] is this one.
    pub fn at(path: PathBuf) -> Self {
        Self { path, open_files: None, _file: None }
    }

    /// The same; what it runs may have so many files open.
    #[must_use]
    pub fn with_open_files(self, open_files: Option<u64>) -> Self {
        Self { open_files, ..self }
    }

    /// `launchway-shim` beside the running program, or the running program itself.
    pub fn smallest() -> Self {
        small_program().unwrap_or_else(|| Self::at(PathBuf::from(OWN_PROGRAM)))
    }

    /// A command with nothing of this process' environment.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        let limit = self.open_files.map(|limit| (open_files::VARIABLE, limit.to_string()));
        command.arg0("launchway").env_clear().envs(limit);
        command
    }

    /// What to execute.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// The small program, held open: an upgrade that replaces its file changes nothing for this process.
fn small_program() -> Option<Program> {
    let beside = std::env::current_exe().ok()?.with_file_name(SMALL_PROGRAM);
    let file = File::open(beside).ok()?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let output = Command::new(&path).arg(BUILD_VERB).env_clear().stdin(Stdio::null()).output().ok()?;
    (output.stdout == BUILD.as_bytes()).then_some(Program { path, open_files: None, _file: Some(file) })
}

/// Runs the verb by which a program tells its build.
pub(crate) fn tell_build() -> ExitCode {
    match io::stdout().write_all(BUILD.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
