//! Memory and processor limits, by control groups of version 2 or 1, where this user may make them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::model::pod::Resources;
use crate::runtime::local::pod::quantity::{div_up, thousandths};

/// Where control groups are mounted.
const ROOT: &str = "/sys/fs/cgroup";
/// The folder of all pods' groups.
const OURS: &str = "launchway";
/// The period over which processor time is counted, in microseconds (the kernel's default).
const PERIOD: i128 = 100_000;
/// The least processor time in a period that the kernel takes, in microseconds.
const LEAST_QUOTA: i128 = 1000;
/// How long the kernel may take to let go of a group whose processes ended.
const REMOVAL_PATIENCE: Duration = Duration::from_millis(100);

/// What a container may take; absent is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes.
    memory: Option<i128>,
    /// Microseconds of processor time a period.
    quota: Option<i128>,
}

impl Limits {
    /// The limits of a container; what is not a quantity limits nothing.
    pub(crate) fn of(resources: &Resources) -> Self {
        let limit = |name: &str| resources.limits.get(name).and_then(thousandths).filter(|value| *value > 0);
        Self {
            memory: limit("memory").map(|value| div_up(value, 1000)),
            quota: limit("cpu").map(|value| (value * PERIOD / 1000).max(LEAST_QUOTA)),
        }
    }

    fn of_memory(self) -> Self {
        Self { quota: None, ..self }
    }

    fn of_processor(self) -> Self {
        Self { memory: None, ..self }
    }
}

/// Puts this process, and all it starts, into a group with these limits. Fails if the machine does not let it.
pub(crate) fn join(pod: &str, container: &str, limits: Limits) -> io::Result<()> {
    if limits == Limits::default() {
        return Ok(());
    }
    let root = Path::new(ROOT);
    if root.join("cgroup.controllers").exists() {
        let all = root.join(OURS);
        delegate(root).and_then(|()| make(&all)).and_then(|()| delegate(&all)).and_then(|()| make(&all.join(pod)))?;
        delegate(&all.join(pod))?;
        return enter(&all.join(pod).join(container), &files(limits, 2));
    }
    for (controller, limits) in [("memory", limits.of_memory()), ("cpu", limits.of_processor())] {
        if limits != Limits::default() {
            let group = root.join(controller).join(OURS).join(pod);
            group.parent().map_or(Ok(()), make)?;
            make(&group)?;
            enter(&group.join(container), &files(limits, 1))?;
        }
    }
    Ok(())
}

/// Removes the groups of a pod of which nothing runs any more.
pub(crate) fn remove(pod: &str) {
    let groups = ["", "memory", "cpu"].map(|controller| Path::new(ROOT).join(controller).join(OURS).join(pod));
    for group in groups.iter().filter(|group| group.exists()) {
        let inner = fs::read_dir(group).into_iter().flatten().flatten().map(|entry| entry.path());
        let inner = inner.filter(|path| path.is_dir()).collect::<Vec<PathBuf>>();
        inner.iter().chain([group]).for_each(|group| remove_group(group));
    }
}

/// An empty group that stays costs a few kilobytes of the kernel's memory, so that giving up is no failure.
fn remove_group(group: &Path) {
    let since = std::time::Instant::now();
    while fs::remove_dir(group).is_err() && group.exists() && since.elapsed() < REMOVAL_PATIENCE {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The files of a group that say its limits, in the words of a version of control groups.
fn files(limits: Limits, version: u8) -> Vec<(&'static str, String)> {
    let mut files = Vec::new();
    match (limits.memory, version) {
        (Some(bytes), 2) => files.push(("memory.max", bytes.to_string())),
        (Some(bytes), _) => files.push(("memory.limit_in_bytes", bytes.to_string())),
        (None, _) => {}
    }
    match (limits.quota, version) {
        (Some(quota), 2) => files.push(("cpu.max", format!("{quota} {PERIOD}"))),
        (Some(quota), _) => {
            files.push(("cpu.cfs_period_us", PERIOD.to_string()));
            files.push(("cpu.cfs_quota_us", quota.to_string()));
        }
        (None, _) => {}
    }
    files
}

/// Lets the groups inside one have limits of their own (version 2).
fn delegate(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.subtree_control"), "+memory +cpu")
}

fn make(group: &Path) -> io::Result<()> {
    match fs::create_dir(group) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn enter(group: &Path, files: &[(&str, String)]) -> io::Result<()> {
    make(group)?;
    files.iter().try_for_each(|(file, value)| fs::write(group.join(file), value))?;
    // 0 means the process that writes.
    fs::write(group.join("cgroup.procs"), "0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn limits(limits: serde_json::Value) -> Limits {
        Limits::of(&serde_json::from_value(json!({"limits": limits})).unwrap())
    }

    #[test]
    fn limits_are_said_in_the_words_of_either_version() {
        let both = limits(json!({"memory": "64Mi", "cpu": "250m"}));
        let second = [("memory.max", "67108864".to_owned()), ("cpu.max", "25000 100000".to_owned())];
        assert_eq!(files(both, 2), second);
        let first =
            [("memory.limit_in_bytes", "67108864"), ("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "25000")];
        assert_eq!(files(both, 1), first.map(|(file, value)| (file, value.to_owned())));
    }

    #[test]
    fn what_limits_nothing_needs_no_group() {
        for none in [json!({}), json!({"memory": "much", "cpu": 0}), json!({"pods": 1})] {
            assert_eq!(limits(none), Limits::default());
        }
        assert_eq!(files(limits(json!({"cpu": "1m"})), 2), [("cpu.max", "1000 100000".to_owned())]);
    }
}
