//! `launchway build`: runs a launchable's `bin/build` once, and outlives the daemon while it does.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, set_child_subreaper};

use super::disk;
use super::folder::{BuildFailure, Folder, Order};
use super::limits::BuildLimits;
use super::processes::{self, end_children};
use super::{step, watch};
use crate::runtime::local::host::files::{self, remove_folder_if_there};
use crate::runtime::local::host::open_files;
use crate::runtime::local::host::program::Program;
use crate::runtime::local::pod::launch::{OWN_PROGRAM, failure_pipe};

/// What a build sees of the daemon's environment: where programs and mirrors are, and no secret of the daemon's.
const PASSED_ON: [&str; 12] = [
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];
/// The most of a build's output that is kept from its start, in bytes.
const LOG_HEAD: u64 = 4 << 20;
/// And from its end.
const LOG_TAIL: usize = 16 << 10;
/// The lines that a failure shows.
const SHOWN_LINES: usize = 20;
/// The most bytes of them.
const SHOWN_BYTES: usize = 2 << 10;

/// Starts a builder for a folder that holds an order.
pub(super) fn spawn(program: &Program, folder: &Folder) -> io::Result<Child> {
    let passed = PASSED_ON.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    let mut command = program.command();
    command.arg("build").arg(folder.path()).envs(passed).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// How long what a build has left may resist.
const SWEEP_PATIENCE: Duration = Duration::from_secs(5);

/// Builds. What comes of it is in the folder: sealed, failed, or neither if the machine is in the way.
pub(super) fn run(folder: &Folder) -> ExitCode {
    open_files::restore();
    // Fails only for the leader of a group, who is out of the daemon's group already.
    rustix::process::setsid().ok();
    match build(folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let told = files::make_file(&folder.log()).and_then(|mut log| writeln!(log, "the builder failed: {error}"));
            // Nobody else is left to tell.
            told.ok();
            ExitCode::FAILURE
        }
    }
}

fn build(folder: &Folder) -> io::Result<()> {
    let (Some(order), false) = (folder.read_order()?, folder.is_sealed()) else { return Ok(()) };
    let Some(_lock) = folder.take_lock()? else { return Ok(()) };
    // Whatever the build leaves running becomes a child of this process, and ends with it.
    set_child_subreaper(Some(rustix::process::getpid()))?;
    let groups = step::groups(folder, Some(rustix::process::getpid()), &order.limits.build);
    let (result, last_lines) = run_build(folder, &order)?;
    end_children()?;
    groups.sweep(None, SWEEP_PATIENCE);
    groups.remove();
    remove_folder_if_there(&folder.home())?;
    remove_folder_if_there(&folder.scratch())?;
    let left = result.and_then(|()| {
        disk::measure(&folder.tree(), order.limits).map_err(|failure| format!("left too much: {}", failure.one_line()))
    });
    match left {
        Ok(()) => {
            let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
            disk::give(&folder.tree(), order.user.and(Some(user)), order.group.and(Some(group)))?;
            folder.seal()
        }
        Err(what) => folder.write_failure(&BuildFailure { what, last_lines }),
    }
}

/// Runs the program to its end; the inner error says why it is no success.
fn run_build(folder: &Folder, order: &Order) -> io::Result<(Result<(), String>, String)> {
    let home = folder.home();
    for made in [&home, &folder.scratch()] {
        files::make_folder(made, 0o700)?;
    }
    disk::give(&home, order.user, order.group)?;
    disk::give(&folder.tree(), order.user, order.group)?;
    let (output, input) = io::pipe()?;
    let (problem, problem_writer) = failure_pipe()?;
    let mut command = Command::new(OWN_PROGRAM);
    command.arg0("launchway").arg(step::VERB).arg(folder.path()).current_dir("/").process_group(0);
    command.env("HOME", &home).env("TMPDIR", &home);
    command.env(processes::MARK, folder.path()).env_remove(open_files::VARIABLE);
    command.stdin(problem_writer).stdout(input.try_clone()?).stderr(input);
    let started = command.spawn();
    // The command holds the writing ends of the pipe: the log ends when the build's processes have closed theirs.
    drop(command);
    let child = match started {
        Ok(child) => child,
        Err(error) => return Ok((Err(format!("cannot be started: {error}")), String::new())),
    };
    let mut log = Log::new(files::make_file(&folder.log())?);
    let reader = thread::spawn(move || log.copy(output).map(|()| log.last_lines()));
    let result = watch::wait(child, folder, &order.limits.build)?;
    // What still runs keeps the pipe open.
    end_children()?;
    let last_lines = reader.join().unwrap_or_else(|_| Err(io::Error::other("the log's reader failed")))?;
    let mut told = String::new();
    // The process is gone, so this is all there will be; nothing at all if the build ran.
    File::from(problem).read_to_string(&mut told).ok();
    let result = if told.is_empty() { result } else { Err(format!("cannot be started: {told}")) };
    Ok((result, last_lines))
}

/// How a build ended. What ends it for its size says so by a signal.
pub(super) fn judge(status: ExitStatus, limits: &BuildLimits) -> Result<(), String> {
    let signal = status.signal().unwrap_or_default();
    match (status.code(), signal) {
        (Some(0), _) => Ok(()),
        (Some(code), _) => Err(format!("ended with exit code {code}")),
        (None, signal) if signal == Signal::XFSZ.as_raw() => {
            Err(format!("wrote a file of more than {} bytes: its `limits.build.disk`", limits.disk))
        }
        (None, signal) if signal == Signal::KILL.as_raw() => Err(format!(
            "was killed, as happens to what takes more than {} bytes of memory: its `limits.build.memory`",
            limits.memory
        )),
        (None, signal) => Err(format!("was ended by signal {signal}")),
    }
}

/// A build's output: its start goes to the file, its end is kept to be shown.
struct Log {
    file: File,
    room: u64,
    tail: VecDeque<u8>,
    skipped: u64,
}

impl Log {
    fn new(file: File) -> Self {
        Self { file, room: LOG_HEAD, tail: VecDeque::new(), skipped: 0 }
    }

    fn copy(&mut self, mut output: PipeReader) -> io::Result<()> {
        let mut buffer = vec![0; 16 << 10];
        loop {
            let count = output.read(&mut buffer)?;
            let piece = buffer.get(..count).unwrap_or_default();
            if piece.is_empty() {
                return self.finish();
            }
            self.take(piece)?;
        }
    }

    fn take(&mut self, piece: &[u8]) -> io::Result<()> {
        let fits = piece.len().min(usize::try_from(self.room).unwrap_or(usize::MAX));
        self.file.write_all(piece.get(..fits).unwrap_or_default())?;
        self.room -= fits as u64;
        self.skipped += (piece.len() - fits) as u64;
        self.tail.extend(piece);
        self.tail.drain(..self.tail.len().saturating_sub(LOG_TAIL));
        Ok(())
    }

    /// Adds the end of an output that did not fit.
    fn finish(&mut self) -> io::Result<()> {
        let shown = usize::try_from(self.skipped).unwrap_or(usize::MAX).min(self.tail.len());
        let left_out = self.skipped - shown as u64;
        if left_out > 0 {
            writeln!(self.file, "\n… {left_out} bytes are left out …")?;
        }
        let end = self.tail.make_contiguous();
        self.file.write_all(end.get(end.len() - shown..).unwrap_or_default())
    }

    fn last_lines(&self) -> String {
        let bytes: Vec<u8> = self.tail.iter().copied().collect();
        last_lines(&String::from_utf8_lossy(&bytes))
    }
}

/// The last lines of a text, within bounds.
fn last_lines(text: &str) -> String {
    let mut room = SHOWN_BYTES;
    let mut lines: Vec<&str> = Vec::new();
    for line in text.trim_end().lines().rev().take(SHOWN_LINES) {
        if line.len() >= room {
            break;
        }
        room -= line.len() + 1;
        lines.push(line);
    }
    lines.reverse();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_last_lines_are_few_and_whole() {
        let many: String = (0..100).map(|number| format!("line {number}\n")).collect();
        let shown = last_lines(&many);
        assert!(shown.starts_with("line 80\n") && shown.ends_with("line 99"));
        assert_eq!(last_lines(&format!("{}\nshort\n", "x".repeat(SHOWN_BYTES))), "short");
        assert_eq!(last_lines(""), "");
    }

    #[test]
    fn a_flood_keeps_its_start_and_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = Log::new(File::create(&path).unwrap());
        log.take(b"first\n").unwrap();
        let line = "x".repeat(1023) + "\n";
        (0..LOG_HEAD / 1024 + 100).for_each(|_| log.take(line.as_bytes()).unwrap());
        log.take(b"last\n").unwrap();
        log.finish().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("first\n") && text.ends_with("last\n"), "{}", text.len());
        assert!(text.contains("bytes are left out"));
        assert!((text.len() as u64) < LOG_HEAD + 2 * LOG_TAIL as u64);
    }

    #[test]
    fn an_output_that_fits_is_kept_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = Log::new(File::create(&path).unwrap());
        log.take(b"only\n").unwrap();
        log.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "only\n");
    }
}
