//! Processes as `/proc` shows them: who they are, whose they are, and how to end all of a pod.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// The variable by which the processes of a pod are found, wherever they went: `<namespace>/<name>:<uid>`.
pub(crate) const POD_MARK: &str = "LAUNCHWAY_POD";
/// The variable that names the container of a process.
pub(crate) const CONTAINER_MARK: &str = "LAUNCHWAY_CONTAINER";
/// The most that is read of a process' environment; more than the kernel lets `execve` pass.
const MAX_ENVIRONMENT: u64 = 8 << 20;

/// A process that cannot be confused with a later one of the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProcessId {
    /// Its id.
    pub(crate) pid: i32,
    /// When it started, in clock ticks since the machine did.
    pub(crate) start_time: u64,
}

impl ProcessId {
    /// The process that has this id now.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        stat(pid).map(|stat| Self { pid, start_time: stat.start_time })
    }

    /// Whether it still runs.
    pub(crate) fn lives(self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.start_time == self.start_time && !stat.dead)
    }
}

struct Stat {
    dead: bool,
    parent: i32,
    start_time: u64,
}

fn stat(pid: i32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads the line of `/proc/<pid>/stat`; the name in it may hold anything, so it is read from its last bracket on.
fn parse_stat(line: &str) -> Option<Stat> {
    let fields: Vec<&str> = line.get(line.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
    let dead = matches!(*fields.first()?, "Z" | "X" | "x");
    Some(Stat { dead, parent: fields.get(1)?.parse().ok()?, start_time: fields.get(19)?.parse().ok()? })
}

/// The id of the machine's run: another one after every boot.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

/// What tells a process of a pod from all others.
#[derive(Clone, Debug)]
pub(crate) struct Belonging {
    /// `NAME=value` entries that must all be in its environment.
    marks: Vec<Vec<u8>>,
    /// A process of which it may also be a descendant.
    ancestor: Option<i32>,
}

impl Belonging {
    /// The processes of a pod; also those that this process started or adopted, if it is the pod's shim.
    pub(crate) fn of_pod(mark: &str, shim: Option<i32>) -> Self {
        Self { marks: vec![format!("{POD_MARK}={mark}").into_bytes()], ancestor: shim }
    }

    /// The processes of one container of a pod.
    pub(crate) fn of_container(mark: &str, container: &str) -> Self {
        let entries = [format!("{POD_MARK}={mark}"), format!("{CONTAINER_MARK}={container}")];
        Self { marks: entries.map(String::into_bytes).to_vec(), ancestor: None }
    }

    /// The ids of all that run now.
    fn members(&self) -> Vec<ProcessId> {
        let running = running();
        let family = self.ancestor.map(|ancestor| descendants(ancestor, &running)).unwrap_or_default();
        let ours = |pid: i32| family.contains(&pid) || self.is_marked(pid);
        let not_self = |pid: i32| Some(pid) != self.ancestor && pid != own_pid();
        running
            .iter()
            .filter(|(pid, _)| not_self(**pid) && ours(**pid))
            .map(|(pid, stat)| ProcessId { pid: *pid, start_time: stat.start_time })
            .collect()
    }

    fn is_marked(&self, pid: i32) -> bool {
        let environment = environment(pid);
        let entries: Vec<&[u8]> = environment.split(|byte| *byte == 0).collect();
        self.marks.iter().all(|mark| entries.contains(&mark.as_slice()))
    }
}

/// The processes whose pod's mark begins so.
pub(crate) fn marked(beginning: &str) -> Vec<i32> {
    let beginning = format!("{POD_MARK}={beginning}").into_bytes();
    let is_marked = |pid: &i32| environment(*pid).split(|byte| *byte == 0).any(|entry| entry.starts_with(&beginning));
    running().into_keys().filter(is_marked).collect()
}

/// The environment that a process was started with; nothing if it may not be read.
fn environment(pid: i32) -> Vec<u8> {
    let mut environment = Vec::new();
    let file = fs::File::open(format!("/proc/{pid}/environ"));
    let read = file.and_then(|file| file.take(MAX_ENVIRONMENT).read_to_end(&mut environment));
    read.map(|_| environment).unwrap_or_default()
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

fn running() -> BTreeMap<i32, Stat> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some((pid, stat(pid)?))).filter(|(_, stat)| !stat.dead).collect()
}

fn descendants(ancestor: i32, running: &BTreeMap<i32, Stat>) -> BTreeSet<i32> {
    let mut found = BTreeSet::from([ancestor]);
    loop {
        let children = running.iter().filter(|(pid, stat)| found.contains(&stat.parent) && !found.contains(pid));
        let new: Vec<i32> = children.map(|(pid, _)| *pid).collect();
        if new.is_empty() {
            return found;
        }
        found.extend(new);
    }
}

/// Sends SIGKILL to every process that belongs; how many were still there.
pub(crate) fn kill_all(belonging: &Belonging) -> usize {
    let members = belonging.members();
    members.iter().for_each(|process| kill(*process, Signal::KILL));
    members.len()
}

/// Kills until nothing is left, at most for `patience`; whether it is all gone.
pub(crate) fn sweep(belonging: &Belonging, patience: Duration) -> bool {
    let since = Instant::now();
    while kill_all(belonging) > 0 {
        if since.elapsed() > patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Sends a signal to this very process, never to a later one that was given its id.
pub(crate) fn kill(process: ProcessId, signal: Signal) {
    let Some(pid) = Pid::from_raw(process.pid) else { return };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    if process.lives() {
        // It may end at any moment; then there is nothing left to signal.
        pidfd_send_signal(&handle, signal).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_is_read_right() {
        let rest = "S 7 8 8 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 1";
        let stat = parse_stat(&format!("12 (a) b (c)) {rest}")).unwrap();
        assert_eq!((stat.parent, stat.start_time, stat.dead), (7, 4711, false));
        assert!(parse_stat("12 (a").is_none());
        assert!(parse_stat("12 (a) Z").is_none());
    }

    #[test]
    fn a_process_is_known_by_its_start_too() {
        let own = ProcessId::of(own_pid()).unwrap();
        assert!(own.lives());
        assert!(!ProcessId { start_time: own.start_time + 1, ..own }.lives());
    }

    #[test]
    fn descendants_are_found_across_generations() {
        let stat = |parent| Stat { dead: false, parent, start_time: 0 };
        let running = BTreeMap::from([(2, stat(1)), (3, stat(2)), (4, stat(3)), (5, stat(1))]);
        assert_eq!(descendants(2, &running), BTreeSet::from([2, 3, 4]));
    }
}
