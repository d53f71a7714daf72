//! Somebody's terminals: one in which `launchway up` tells its story, and one for all the rest.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::page::{Page, Step};

/// Long, because machines that run tests are busy.
const PATIENCE: Duration = Duration::from_secs(120);

const PERIOD: Duration = Duration::from_millis(100);
/// What only looks, and later than a test does: notes are written a moment after what they tell of.
const LOOKS: [&str; 3] = ["git log", "launchway get", "launchway history"];

/// An account with nothing in it but a Git that knows its user's name.
pub(crate) struct Session {
    home: TempDir,
    folder: PathBuf,
    up: Option<Child>,
    /// The addresses that a page shows, and what they are here.
    addresses: BTreeMap<String, String>,
}

impl Session {
    /// `folder` is where it begins.
    pub(crate) fn new(folder: &Path) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(".gitconfig"), "[user]\nname = Ada\nemail = ada@example.org\n").unwrap();
        // What a page copies is copied from here, and what it makes is made elsewhere.
        let folder = folder.to_owned();
        Self { home, folder, up: None, addresses: BTreeMap::new() }
    }

    /// Does what a step says. Panics unless all is seen that the page shows.
    pub(crate) fn take(&mut self, page: &Page, step: &Step) {
        let mut typed = step.typed.clone();
        self.addresses.iter().for_each(|(shown, here)| typed = typed.replace(shown, here));
        let place = format!("{}:{}: {typed}", page.name, step.line);
        if typed.starts_with("launchway up") {
            return self.watch(&typed, &place, &step.shown);
        }
        let script = format!("{typed}\ncode=$?; pwd > \"$HOME/folder\"; exit $code");
        let strict = if step.shown.is_empty() { "-ec" } else { "-c" };
        let since = Instant::now();
        loop {
            let done = self.shell(&["timeout", "120", "sh", strict, &script]).output().unwrap();
            let answer = String::from_utf8_lossy(&done.stdout).into_owned();
            let complaint = String::from_utf8_lossy(&done.stderr).into_owned();
            // Where the page shows what is said, a failure may be what it tells of.
            assert!(done.status.success() || !step.shown.is_empty(), "{place}: {:?}: {complaint}{answer}", done.status);
            let Some(unseen) = self.unseen(&step.shown, &answer) else { break };
            let may_come = LOOKS.iter().any(|look| typed.starts_with(look)) && since.elapsed() < PATIENCE;
            assert!(may_come, "{place}: not seen: {unseen:?}\nin: {answer}{complaint}");
            std::thread::sleep(PERIOD);
        }
        if let Ok(folder) = fs::read_to_string(self.home.path().join("folder")) {
            self.folder = PathBuf::from(folder.trim_end());
        }
    }

    /// Starts `launchway up` in the first terminal, after Ctrl-C there.
    fn watch(&mut self, typed: &str, place: &str, shown: &[String]) {
        self.interrupt();
        let story = self.home.path().join("story");
        let both = File::create(&story).unwrap();
        let mut command = self.shell(&["sh", "-c", &format!("exec {typed}")]);
        self.up = Some(command.stdout(both.try_clone().unwrap()).stderr(both).spawn().unwrap());
        let since = Instant::now();
        while let Some(unseen) = self.unseen(shown, &fs::read_to_string(&story).unwrap()) {
            let late = since.elapsed() > PATIENCE;
            assert!(!late, "{place}: not seen: {unseen}\nin: {}", fs::read_to_string(&story).unwrap());
            std::thread::sleep(PERIOD);
        }
    }

    /// Ctrl-C in the first terminal.
    pub(crate) fn interrupt(&mut self) {
        if let Some(mut up) = self.up.take() {
            kill_process(Pid::from_child(&up), Signal::INT).ok();
            up.wait().unwrap();
        }
    }

    fn shell(&self, words: &[&str]) -> Command {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(&self.folder).env_clear().stdin(Stdio::null());
        let programs = Path::new(env!("CARGO_BIN_EXE_launchway")).parent().unwrap().display().to_string();
        let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
        // An editor that opens would wait for a person.
        let settings = [("GIT_EDITOR", "false"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_CONFIG_NOSYSTEM", "1")];
        command.env("HOME", self.home.path()).env("PATH", path).envs(settings);
        command
    }

    /// The first line of what is shown that is not in an answer, in its order; remembers what addresses are here.
    fn unseen(&mut self, shown: &[String], answer: &str) -> Option<String> {
        let mut lines = answer.lines();
        for shown in shown.iter().filter(|line| !matches!(line.trim(), "" | "…")) {
            let pairs = lines.by_ref().find_map(|line| pairs(shown, line));
            let Some(pairs) = pairs else { return Some(shown.clone()) };
            let addresses = pairs.into_iter().filter_map(|(shown, here)| Some((address(shown)?, address(here)?)));
            self.addresses.extend(addresses.map(|(shown, here)| (shown.to_owned(), here.to_owned())));
        }
        None
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.interrupt();
        for repository in ["shop", "hello"] {
            // Which of them there are depends on how far it came.
            drop(self.shell(&["launchway", "down", repository]).output());
        }
    }
}

/// The words of a line that is shown beside those of one that is seen, if they tell the same.
fn pairs<'a>(shown: &'a str, seen: &'a str) -> Option<Vec<(&'a str, &'a str)>> {
    let (shown, is_whole) = shown.trim_end().strip_suffix('…').map_or((shown, true), |start| (start, false));
    let (shown, seen) = (shown.split_whitespace(), seen.split_whitespace().collect::<Vec<_>>());
    let shown: Vec<&str> = shown.collect();
    let fits = if is_whole { shown.len() == seen.len() } else { shown.len() <= seen.len() };
    let pairs: Vec<_> = shown.into_iter().zip(seen).collect();
    (fits && pairs.iter().all(|(shown, seen)| shown == seen || is_another_each_time(shown))).then_some(pairs)
}

/// Times, ids, addresses, and whose folder it is. Plain numbers are the same, unless they are an id.
fn is_another_each_time(word: &str) -> bool {
    let has_digit = word.contains(|c: char| c.is_ascii_digit());
    let number = word.trim_matches([';', ',', ':']);
    let is_number = number.len() < 7 && number.chars().all(|c| c.is_ascii_digit());
    has_digit && !is_number || word.starts_with("/home/") || word == "ann"
}

/// With its port.
fn address(word: &str) -> Option<&str> {
    let word = word.strip_prefix("http://").unwrap_or(word);
    word.split('/').next().filter(|word| word.starts_with("127."))
}
