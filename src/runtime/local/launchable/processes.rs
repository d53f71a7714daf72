//! Ending processes that nobody waits for: those that a build left, and those of a builder that was killed.

use std::fs;
use std::io;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process};

/// The variable by which a build's processes are found: it holds the launchable's folder.
pub(super) const MARK: &str = "LAUNCHWAY_BUILD";
/// The number of times that killed processes are searched for until they have disappeared, and the pause between.
const SWEEPS: u32 = 500;
const PAUSE: Duration = Duration::from_millis(10);

/// Ends everything that this process has started or, as a subreaper, adopted.
pub(super) fn end_children() -> io::Result<()> {
    let me = rustix::process::getpid().as_raw_nonzero().get();
    end_all(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| living_parent(&stat) == Some(me)))?;
    // In a container nobody else may take away the dead.
    while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
    Ok(())
}

/// Ends everything that was started with a mark.
pub(super) fn end_marked(mark: &str) -> io::Result<()> {
    let entry = format!("{MARK}={mark}").into_bytes();
    let has_mark = |environment: Vec<u8>| environment.split(|byte| *byte == 0).any(|found| found == entry);
    // Other users' environments cannot be read, and are none of ours.
    end_all(|pid| fs::read(format!("/proc/{pid}/environ")).is_ok_and(has_mark))
}

fn end_all(belongs: impl Fn(i32) -> bool) -> io::Result<()> {
    for _ in 0..SWEEPS {
        let found = processes()?.into_iter().filter(|pid| belongs(*pid)).filter_map(Pid::from_raw);
        let mut none = true;
        for pid in found {
            none = false;
            // It may have ended by itself in the meantime.
            kill_process(pid, Signal::KILL).ok();
        }
        if none {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
    Err(io::Error::other("processes of a build cannot be ended"))
}

fn processes() -> io::Result<Vec<i32>> {
    let names = fs::read_dir("/proc")?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
    Ok(names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect())
}

/// The parent in a line of `/proc/<pid>/stat`, unless the process is dead already: the two fields after the name, which
/// may hold anything.
fn living_parent(stat: &str) -> Option<i32> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    fields.next().filter(|state| !matches!(*state, "Z" | "X"))?;
    fields.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_behind_any_name() {
        assert_eq!(living_parent("12 (a) b) S 7 12 12 0"), Some(7));
        assert_eq!(living_parent("12 (a) Z 7 12 12 0"), None);
        assert_eq!(living_parent("12"), None);
    }

    #[test]
    fn what_has_the_mark_is_ended_and_nothing_else() {
        let start = |mark: &str| std::process::Command::new("sleep").arg("1000").env(MARK, mark).spawn().unwrap();
        let own = format!("/test/{}", std::process::id());
        let (mut marked, mut other) = (start(&own), start(&format!("{own}/other")));
        // Right after its start, a process does not show its environment yet.
        while fs::read(format!("/proc/{}/environ", marked.id())).unwrap().is_empty() {
            thread::yield_now();
        }
        end_marked(&own).unwrap();
        assert!(marked.wait().is_ok_and(|status| !status.success()));
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
