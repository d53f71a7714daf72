//! A group of processes for each pod, by control groups of version 2 or 1, where this user may make them: they limit
//! memory and processor time, and the pod ends as a whole with them.

mod hierarchy;
mod limits;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use self::hierarchy::{Hierarchy, make};
pub(crate) use self::limits::Limits;
use super::process::{ProcessId, kill};
use super::wait::wait_until;

/// How long the kernel may take to let go of a group whose processes ended.
const REMOVAL_PATIENCE: Duration = Duration::from_millis(100);
/// How often the processes of a group are counted while it is being ended.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The group of a pod in each hierarchy that it needs one in; none where this user may not make groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PodGroups {
    folders: Vec<PathBuf>,
    /// Why limits of its containers cannot be enforced.
    problems: Vec<String>,
}

impl PodGroups {
    /// Makes a pod's groups, in which the limits of its containers can be enforced. Those of version 2 are preferred.
    pub(crate) fn make(pod: &str, containers: &[Limits]) -> Self {
        match Hierarchy::of_this_process() {
            Ok(hierarchies) => Self::make_in(&hierarchies, pod, containers),
            Err(error) => Self { problems: vec![error.to_string()], ..Self::default() },
        }
    }

    fn make_in(hierarchies: &[Hierarchy], pod: &str, containers: &[Limits]) -> Self {
        let needed: BTreeSet<&str> = containers.iter().flat_map(|limits| limits.controllers()).collect();
        let (mut folders, mut problems) = (Vec::new(), Vec::new());
        for controller in needed {
            let have = hierarchies.iter().find(|hierarchy| hierarchy.has(controller));
            match have.map(|hierarchy| hierarchy.make(pod, &[controller])) {
                Some(Ok(group)) => folders.push(group),
                Some(Err(error)) => problems.push(format!("{controller}: {error}")),
                None => problems.push(format!("{controller}: there is no such controller")),
            }
        }
        // Without limits a group is there for its end alone.
        let unified = hierarchies.iter().filter(|hierarchy| hierarchy.unified);
        folders.extend(unified.chain(hierarchies).find_map(|hierarchy| hierarchy.make(pod, &[]).ok()));
        folders.sort();
        folders.dedup();
        Self { folders, problems }
    }

    /// Whether the processes of the pod can be found by its groups.
    pub(crate) fn exist(&self) -> bool {
        !self.folders.is_empty()
    }

    /// Puts this process, and all it starts, into a container's group, with its limits. Hands back why they are not all
    /// enforced, if that is so.
    ///
    /// # Errors
    /// If the pod's groups are gone, as after its end, or the machine does not take a limit.
    pub(crate) fn enter(&self, container: &str, limits: Limits) -> io::Result<Option<String>> {
        let groups: Vec<PathBuf> = self.folders.iter().map(|group| group.join(container)).collect();
        groups.iter().try_for_each(|group| make(group))?;
        let mut enforced = true;
        for ways in limits.files() {
            let is_known =
                |group: &Path, files: &limits::Files| files.iter().all(|(file, _)| group.join(file).exists());
            let way = groups.iter().find_map(|group| Some((group, ways.iter().find(|files| is_known(group, files))?)));
            enforced &= way.is_some();
            for (file, value) in
                way.iter().flat_map(|(group, files)| files.iter().map(|said| (group.join(said.0), &said.1)))
            {
                fs::write(file, value)?;
            }
        }
        // 0 means the process that writes.
        groups.iter().try_for_each(|group| fs::write(group.join("cgroup.procs"), "0"))?;
        Ok((!enforced).then(|| self.problems.join("; ")))
    }

    /// Sends SIGKILL to all processes of a container, or of the whole pod; how many there were.
    pub(crate) fn kill(&self, container: Option<&str>) -> usize {
        let groups =
            self.folders.iter().map(|group| container.map_or(group.clone(), |container| group.join(container)));
        let members: BTreeSet<i32> = groups.flat_map(|group| end_group(&group)).collect();
        members.len()
    }

    /// Kills until nothing is left, at most for `patience`; whether it is all gone.
    pub(crate) fn sweep(&self, container: Option<&str>, patience: Duration) -> bool {
        wait_until(patience, LOOK_AGAIN, || self.kill(container) == 0)
    }

    /// Removes them once nothing runs in them any more.
    pub(crate) fn remove(&self) {
        self.folders.iter().for_each(|group| remove_group(group));
    }
}

/// Ends a group with those inside; hands back who was in it. Version 2 does that at once, whatever they start meanwhile.
fn end_group(group: &Path) -> BTreeSet<i32> {
    let members = members(group);
    if !members.is_empty() && fs::write(group.join("cgroup.kill"), "1").is_err() {
        members.iter().filter_map(|pid| ProcessId::of(*pid)).for_each(|process| kill(process, Signal::KILL));
    }
    members
}

/// The processes of a group and of those inside. Dead ones that nobody waited for are none of them.
fn members(group: &Path) -> BTreeSet<i32> {
    let own = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let own = own.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
    let alive = own.filter(|pid| ProcessId::of(*pid).is_some_and(ProcessId::lives));
    alive.chain(inner(group).iter().flat_map(|inner| members(inner))).collect()
}

fn inner(group: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(group).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.is_dir()).collect()
}

/// An empty group that stays costs a few kilobytes of the kernel's memory, so that giving up is no failure.
fn remove_group(group: &Path) {
    inner(group).iter().for_each(|inner| remove_group(inner));
    wait_until(REMOVAL_PATIENCE, LOOK_AGAIN, || fs::remove_dir(group).is_ok() || !group.exists());
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn limits(memory: Option<i128>, quota: Option<i128>) -> Limits {
        Limits { memory, quota }
    }

    #[test]
    fn a_group_of_either_version_ends_as_a_whole_and_goes() {
        for (number, hierarchy) in Hierarchy::of_this_process().unwrap().into_iter().enumerate() {
            let pod = format!("test-{}-{number}", std::process::id());
            let groups = PodGroups::make_in(&[hierarchy], &pod, &[]);
            // Not every hierarchy lets this user make groups, and some take no process before they were set up.
            let Some(container) = groups.folders.first().map(|group| group.join("web")) else { continue };
            make(&container).unwrap();
            let mut sleeper = Command::new("sleep").arg("1000").spawn().unwrap();
            if fs::write(container.join("cgroup.procs"), sleeper.id().to_string()).is_ok() {
                assert_eq!(groups.kill(Some("other")), 0);
                assert_eq!(groups.kill(Some("web")), 1, "{container:?}");
                sleeper.wait().unwrap();
                assert!(groups.sweep(None, Duration::ZERO));
            }
            sleeper.kill().unwrap();
            sleeper.wait().unwrap();
            groups.remove();
            assert!(!container.exists());
        }
    }

    #[test]
    fn limits_are_written_where_a_group_knows_them() {
        let folder = tempfile::tempdir().unwrap();
        let enter = |known: &[&str], limits| {
            let group = folder.path().join(known.concat());
            fs::create_dir_all(group.join("web")).unwrap();
            known.iter().for_each(|file| fs::write(group.join("web").join(file), "").unwrap());
            let groups = PodGroups { folders: vec![group.clone()], problems: vec!["cpu: not here".into()] };
            let problem = groups.enter("web", limits).unwrap();
            (problem, known.iter().map(|file| fs::read_to_string(group.join("web").join(file)).unwrap()).collect())
        };
        let both = limits(Some(1 << 20), Some(50_000));
        let said = |words: &[&str]| -> Vec<String> { words.iter().map(|word| (*word).to_owned()).collect() };
        assert_eq!(enter(&["memory.max", "cpu.max"], both), (None, said(&["1048576", "50000 100000"])));
        let first = ["memory.limit_in_bytes", "cpu.cfs_period_us", "cpu.cfs_quota_us"];
        assert_eq!(enter(&first, both), (None, said(&["1048576", "100000", "50000"])));
        assert_eq!(enter(&["memory.max"], both), (Some("cpu: not here".into()), said(&["1048576"])));
        assert_eq!(enter(&[], limits(None, None)), (None, Vec::new()));
    }

    #[test]
    fn the_groups_of_a_pod_that_ended_take_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let groups = PodGroups { folders: vec![folder.path().join("gone")], problems: Vec::new() };
        assert!(groups.exist() && groups.enter("web", Limits::default()).is_err());
        assert_eq!(PodGroups::default().enter("web", Limits::default()).unwrap(), None);
    }
}
