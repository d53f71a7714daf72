//! `launchway demo` tells the whole story, every claim is seen, and nothing of it is left, also if it is interrupted.

#![expect(clippy::unwrap_used, reason = "a failing test panics")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A word or two from what each chapter claims.
const CLAIMS: [&str; 24] = [
    "three services serve in both stages",
    "production took only what dev had passed",
    "every hook ran once, in its order",
    "the catalog of production reads what the migration in its mid hook wrote",
    "only web got a version 2",
    "nothing was started",
    "the commit says so",
    "the deployment was aborted in dev",
    "the commit carries the failure and the hook's last lines",
    "production was never touched",
    "without a daemon, customers are served",
    "the deployment went on and came to its end",
    "no hook ran twice",
    "every pod kept its process, from its start to its end",
    "customers see ten times the price",
    "they pay the old price again",
    "production runs that already, and is left alone",
    "dev follows",
    "the host's signed call was taken",
    "the host shows that it fails",
    "a pull request goes back, opened by launchway",
    "the merge is deployed, and passes the smoke test",
    "there was one pull request, which is merged",
    "taken down, it is gone",
];

/// The demo, with a folder of its own for everything it makes.
fn demo(folder: &TempDir) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_launchway"));
    command.arg("demo").env("TMPDIR", folder.path()).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn assert_nothing_is_left(folder: &TempDir) {
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.is_empty(), "{files:?}");
    let processes: Vec<_> =
        fs::read_dir("/proc").unwrap().flatten().filter(|entry| mentions(&entry.path(), folder)).collect();
    assert!(processes.is_empty(), "{processes:?}");
}

/// Whether a process was started with the folder in its arguments or its environment.
fn mentions(process: &Path, folder: &TempDir) -> bool {
    let folder = folder.path().to_str().unwrap();
    let read = |file: &str| fs::read(process.join(file)).unwrap_or_default();
    ["cmdline", "environ"].iter().any(|file| String::from_utf8_lossy(&read(file)).contains(folder))
}

#[test]
fn everything_is_observed_as_told_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let output = demo(&folder).wait_with_output().unwrap();
    let (told, complaint) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}\n{complaint}");
    for claim in CLAIMS {
        assert!(told.contains(&format!("✓ {claim}")), "{claim}: {told}");
    }
    for shown in include_str!("../docs/demo.md").lines().filter(|line| line.trim().starts_with('✓')) {
        assert!(told.contains(shown), "docs/demo.md: {shown}: {told}");
    }
    assert_eq!(told.matches("✓ not one request failed").count(), 4, "{told}");
    assert!(!told.contains('✗'), "{told}");
    assert_nothing_is_left(&folder);
}

#[test]
fn interrupted_it_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut demo = demo(&folder);
    let mut told = BufReader::new(demo.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("(b)") {
        line.clear();
        assert_ne!(told.read_line(&mut line).unwrap(), 0, "it ended before it was interrupted");
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&demo), rustix::process::Signal::INT).unwrap();
    told.read_to_string(&mut line).unwrap();
    assert_eq!(demo.wait().unwrap().code(), Some(1), "{line}");
    assert_nothing_is_left(&folder);
}
