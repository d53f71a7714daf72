//! Processes as `/proc` shows them: who they are, whose they are, and how to end all of a pod.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::iter;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::LazyLock;
use std::time::Duration;

use super::files::read_bounded;
use super::wait::wait_until;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// The variable by which the processes of a pod are found, wherever they went: `<namespace>/<name>:<uid>`.
pub(crate) const POD_MARK: &str = "LAUNCHWAY_POD";
/// The variable that names the container of a process.
pub(crate) const CONTAINER_MARK: &str = "LAUNCHWAY_CONTAINER";
/// The pause between two looks at what is left of processes that are killed.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// The most that is read of a process' environment; more than the kernel lets `execve` pass.
const MAX_ENVIRONMENT: u64 = 8 << 20;
/// The same of the line that sums a process up: numbers, and a name of sixteen bytes.
const MAX_STAT: u64 = 4 << 10;
/// The number of the namespace that has all processes of a kernel (`PROC_PID_INIT_INO`).
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

/// A process that cannot be confused with a later one of the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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

/// How often an ancestry that changed meanwhile is read again.
const READINGS: usize = 10;
/// The most of a command line that is read.
const MAX_COMMAND: u64 = 64 << 10;

/// Whether a process is one of a pod's whose folder is below `pods`: a shim adopts the orphans among its descendants, so it
/// is above all of them. A process that is gone counts as one, because nobody can tell any more.
pub(crate) fn is_of_a_pod(pid: i32, pods: &Path) -> bool {
    for _ in 0..READINGS {
        let mut next = pid;
        loop {
            // The first process of all, or one that this machine does not show.
            if next <= 1 {
                return false;
            }
            let Some(Stat { parent, .. }) = stat(next) else { break };
            if is_shim(next, pods) {
                return true;
            }
            next = parent;
        }
    }
    true
}

fn is_shim(pid: i32, pods: &Path) -> bool {
    let command = read_bounded(Path::new(&format!("/proc/{pid}/cmdline")), MAX_COMMAND).ok().flatten();
    let command = command.unwrap_or_default();
    let mut words = command.split(|byte| *byte == 0);
    let is_ours = words.next() == Some(b"launchway") && words.next() == Some(b"shim");
    is_ours && words.next().is_some_and(|folder| Path::new(OsStr::from_bytes(folder)).starts_with(pods))
}

struct Stat {
    dead: bool,
    parent: i32,
    start_time: u64,
}

fn stat(pid: i32) -> Option<Stat> {
    let line = read_bounded(Path::new(&format!("/proc/{pid}/stat")), MAX_STAT).ok()??;
    parse_stat(&String::from_utf8_lossy(&line))
}

/// Reads the line of `/proc/<pid>/stat`; the name in it may hold anything, so it is read from its last bracket on.
fn parse_stat(line: &str) -> Option<Stat> {
    let fields: Vec<&str> = line.get(line.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
    let dead = matches!(*fields.first()?, "Z" | "X" | "x");
    Some(Stat { dead, parent: fields.get(1)?.parse().ok()?, start_time: fields.get(19)?.parse().ok()? })
}

/// The id of the machine's run: another one after every boot, and after every start of a container.
pub(crate) fn boot_id() -> String {
    static BOOT_ID: LazyLock<String> = LazyLock::new(|| {
        let kernel = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let first = is_container().then(|| stat(1)).flatten();
        format!("{}{}", kernel.trim(), first.map(|first| format!("-{}", first.start_time)).unwrap_or_default())
    });
    BOOT_ID.clone()
}

/// Whether the processes that are seen here are not all that the kernel has.
fn is_container() -> bool {
    fs::metadata("/proc/self/ns/pid").is_ok_and(|namespace| namespace.ino() != FIRST_PID_NAMESPACE)
}

/// What tells a process of a pod from all others.
#[derive(Clone, Debug)]
pub(crate) struct Belonging {
    /// `NAME=value` entries that must all be in its environment.
    marks: Vec<Vec<u8>>,
    /// The shim among whose descendants it is, because that adopts their orphans; with `None`, any process may be one.
    shim: Option<i32>,
    /// Whether a descendant of the shim belongs also without the marks.
    whole_family: bool,
}

impl Belonging {
    /// The processes of a pod, wherever they are.
    pub(crate) fn of_pod(mark: &str) -> Self {
        Self { marks: vec![pod_entry(mark)], shim: None, whole_family: false }
    }

    /// The processes of a pod whose shim this is: all that it started or adopted. What was started from elsewhere is no
    /// descendant: all processes of the machine are searched for it, if there may be any.
    pub(crate) fn of_own_pod(mark: &str, also_elsewhere: bool) -> Vec<Self> {
        let family = Self { marks: vec![pod_entry(mark)], shim: Some(own_pid()), whole_family: true };
        iter::once(family).chain(also_elsewhere.then(|| Self::of_pod(mark))).collect()
    }

    /// The same of one container.
    pub(crate) fn of_own_container(mark: &str, container: &str, also_elsewhere: bool) -> Vec<Self> {
        let marks = vec![pod_entry(mark), format!("{CONTAINER_MARK}={container}").into_bytes()];
        let shim = (!also_elsewhere).then(own_pid);
        vec![Self { marks, shim, whole_family: false }]
    }

    /// The ids of all that run now.
    fn members(&self) -> Vec<ProcessId> {
        let pids = self.shim.map_or_else(running, descendants);
        let ours = pids.into_iter().filter(|pid| *pid != own_pid() && (self.whole_family || self.is_marked(*pid)));
        ours.filter_map(|pid| Some((pid, stat(pid)?)))
            .filter(|(_, stat)| !stat.dead)
            .map(|(pid, stat)| ProcessId { pid, start_time: stat.start_time })
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
    running().into_iter().filter(is_marked).collect()
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

fn pod_entry(mark: &str) -> Vec<u8> {
    format!("{POD_MARK}={mark}").into_bytes()
}

fn running() -> BTreeSet<i32> {
    numbered(Path::new("/proc"))
}

/// The descendants of a process. What a pod's end takes is in proportion to the pod, however many there are.
pub(crate) fn descendants(ancestor: i32) -> BTreeSet<i32> {
    let (mut found, mut next) = (BTreeSet::new(), vec![ancestor]);
    while let Some(pid) = next.pop() {
        let Some(children) = children(pid) else {
            return descendants_among(ancestor, &parents(running()));
        };
        next.extend(children.into_iter().filter(|child| found.insert(*child)));
    }
    found
}

/// The children of a process, dead ones included; `None` if the kernel does not list them. Those of a thread that ends go
/// to the first one, which is therefore asked last.
fn children(pid: i32) -> Option<Vec<i32>> {
    let of_process = format!("/proc/{pid}/task");
    let threads = numbered(Path::new(&of_process));
    let mut children = Vec::new();
    for thread in threads.iter().filter(|thread| **thread != pid).chain(threads.get(&pid)) {
        let listed = match fs::read_to_string(format!("{of_process}/{thread}/children")) {
            Ok(listed) => listed,
            Err(_) if stat(*thread).is_some_and(|stat| !stat.dead) => return None,
            Err(_) => continue, // it has ended meanwhile
        };
        children.extend(listed.split_ascii_whitespace().filter_map(|child| child.parse::<i32>().ok()));
    }
    Some(children)
}

fn parents(pids: BTreeSet<i32>) -> BTreeMap<i32, i32> {
    pids.into_iter().filter_map(|pid| Some((pid, stat(pid)?.parent))).collect()
}

/// The same by the parents of all processes.
fn descendants_among(ancestor: i32, parents: &BTreeMap<i32, i32>) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    loop {
        let is_child = |parent: i32| parent == ancestor || found.contains(&parent);
        let children = parents.iter().filter(|(pid, parent)| is_child(**parent) && !found.contains(*pid));
        let new: Vec<i32> = children.map(|(pid, _)| *pid).collect();
        if new.is_empty() {
            return found;
        }
        found.extend(new);
    }
}

/// The entries of a folder whose names are numbers.
fn numbered(folder: &Path) -> BTreeSet<i32> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).collect()
}

/// The exit code of a process, or 128 + the number of the signal that ended it, as shells have it.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

/// Sends SIGKILL to every process that belongs; how many were still there.
pub(crate) fn kill_all(belonging: &[Belonging]) -> usize {
    let members: BTreeSet<ProcessId> = belonging.iter().flat_map(Belonging::members).collect();
    members.iter().for_each(|process| kill(*process, Signal::KILL));
    members.len()
}

/// Kills until nothing is left, at most for `patience`; whether it is all gone.
pub(crate) fn sweep(belonging: &[Belonging], patience: Duration) -> bool {
    wait_until(patience, LOOK_AGAIN, || kill_all(belonging) == 0)
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
    use std::process::Stdio;

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
    fn a_process_below_a_shim_is_its_pods_and_no_other_is() {
        use std::os::unix::process::CommandExt;
        let mut command = std::process::Command::new("sh");
        command.arg0("launchway").args(["-c", "sleep 1000 & echo; wait"]);
        let mut other = command.stdout(Stdio::piped()).spawn().unwrap();
        other.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let child = *descendants(i32::try_from(other.id()).unwrap()).first().unwrap();
        assert!(!is_of_a_pod(child, Path::new("/state/pods")) && !is_of_a_pod(own_pid(), Path::new("/state/pods")));
        kill(ProcessId::of(child).unwrap(), Signal::KILL);
        other.wait().unwrap();
        assert!(is_of_a_pod(child, Path::new("/state/pods")), "it is gone");
    }

    #[test]
    fn descendants_are_found_across_generations() {
        let tree = BTreeMap::from([(2, 1), (3, 2), (4, 3), (5, 1)]);
        assert_eq!(descendants_among(2, &tree), BTreeSet::from([3, 4]));
        let mut command = std::process::Command::new("sh");
        let mut shell = command.args(["-c", "sleep 1000 & echo; wait"]).stdout(Stdio::piped()).spawn().unwrap();
        shell.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let pid = i32::try_from(shell.id()).unwrap();
        let found = descendants(pid);
        assert_eq!(found, descendants_among(pid, &parents(running())));
        assert_eq!(found.len(), 1, "the shell waits for its only child");
        let child = ProcessId::of(*found.first().unwrap()).unwrap();
        assert!(descendants(own_pid()).is_superset(&BTreeSet::from([pid, child.pid])));
        kill(child, Signal::KILL);
        shell.wait().unwrap();
        assert_eq!(descendants(pid), BTreeSet::new());
    }
}
