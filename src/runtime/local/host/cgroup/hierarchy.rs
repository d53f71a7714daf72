//! The hierarchies of control groups that this process is in, and where in each the groups of pods belong: below its own
//! group, which is all that a service manager delegates.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The subgroup into which systemd puts the daemon itself (`DelegateSubgroup=daemon`), so that the unit's group may hold
/// limited ones beside it.
const DAEMON: &str = "daemon";
/// The group of all pods' groups.
const PODS: &str = "launchway-pods";

/// One hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hierarchy {
    /// Its controllers; of version 2, which says them in a file, none.
    controllers: Vec<String>,
    /// Whether it is of version 2.
    pub(super) unified: bool,
    /// Where it is mounted.
    mount: PathBuf,
    /// The group below which pods' groups belong.
    own: PathBuf,
}

impl Hierarchy {
    /// All that this process is in and that are mounted, version 2 first.
    pub(super) fn of_this_process() -> io::Result<Vec<Self>> {
        let (groups, mounts) = ("/proc/self/cgroup", "/proc/self/mountinfo");
        Ok(parse(&fs::read_to_string(groups)?, &fs::read_to_string(mounts)?))
    }

    /// Whether groups in it can be limited by a controller.
    pub(super) fn has(&self, controller: &str) -> bool {
        if !self.unified {
            return self.controllers.iter().any(|known| known == controller);
        }
        let known = fs::read_to_string(self.own.join("cgroup.controllers")).unwrap_or_default();
        known.split_ascii_whitespace().any(|known| known == controller)
    }

    /// Makes a pod's group that can be limited by these controllers: below this process' own group, or, for a user who may
    /// do that, at the top, because a group that holds processes of its own cannot have limited ones below it (version 2).
    pub(super) fn make(&self, pod: &str, controllers: &[&str]) -> io::Result<PathBuf> {
        let made = self.make_below(&self.own, pod, controllers);
        if self.own == self.mount { made } else { made.or_else(|_| self.make_below(&self.mount, pod, controllers)) }
    }

    fn make_below(&self, base: &Path, pod: &str, controllers: &[&str]) -> io::Result<PathBuf> {
        let all = base.join(PODS);
        let group = all.join(pod);
        self.delegate(base, controllers)?;
        make(&all).and_then(|()| self.delegate(&all, controllers))?;
        make(&group).and_then(|()| self.delegate(&group, controllers))?;
        Ok(group)
    }

    /// Lets the groups inside one be limited; those of version 1 always can.
    fn delegate(&self, group: &Path, controllers: &[&str]) -> io::Result<()> {
        if !self.unified || controllers.is_empty() {
            return Ok(());
        }
        let words: Vec<String> = controllers.iter().map(|controller| format!("+{controller}")).collect();
        fs::write(group.join("cgroup.subtree_control"), words.join(" "))
    }
}

/// Makes a group; one that is there is as good.
pub(super) fn make(group: &Path) -> io::Result<()> {
    match fs::create_dir(group) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Reads `/proc/<pid>/cgroup` (`<id>:<controllers>:<group>`) and `/proc/<pid>/mountinfo`: see cgroups(7) and
/// proc_pid_mountinfo(5).
fn parse(groups: &str, mounts: &str) -> Vec<Hierarchy> {
    let mut found: Vec<Hierarchy> = groups.lines().filter_map(|line| parse_group(line, mounts)).collect();
    found.sort_by_key(|hierarchy| !hierarchy.unified);
    found
}

fn parse_group(line: &str, mounts: &str) -> Option<Hierarchy> {
    let [_, controllers, group] = line.splitn(3, ':').collect::<Vec<_>>().try_into().ok()?;
    let controllers: Vec<String> = controllers.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let (root, mount) = mounts.lines().find_map(|mount| parse_mount(mount, &controllers))?;
    // A group outside of what is mounted, as in a namespace that came later, cannot be reached.
    let own = mount.join(Path::new(group).strip_prefix(root).ok()?);
    let own = if own.ends_with(DAEMON) { own.parent()?.to_owned() } else { own };
    Some(Hierarchy { unified: controllers.is_empty(), controllers, mount, own })
}

/// The root and the place of a mount, if it shows the hierarchy of these controllers, or of version 2 without any.
fn parse_mount(line: &str, controllers: &[String]) -> Option<(PathBuf, PathBuf)> {
    let (place, kind) = line.split_once(" - ")?;
    let [_, _, _, root, mount, ..] = *place.split(' ').collect::<Vec<_>>() else { return None };
    let [kind, _, options, ..] = *kind.split(' ').collect::<Vec<_>>() else { return None };
    let shows = match controllers {
        [] => kind == "cgroup2",
        [first, ..] => kind == "cgroup" && options.split(',').any(|option| option == first),
    };
    shows.then(|| (root.into(), mount.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEMD: &str = "25 18 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
    const HYBRID: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
        32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";

    fn own(groups: &str, mounts: &str) -> Vec<String> {
        parse(groups, mounts).iter().map(|found| found.own.display().to_string()).collect()
    }

    #[test]
    fn pods_belong_below_the_group_of_the_daemon_or_beside_it_where_it_has_one_for_itself() {
        let cases = [
            ("0::/", "/sys/fs/cgroup/"),
            ("0::/system.slice/launchway.service", "/sys/fs/cgroup/system.slice/launchway.service"),
            ("0::/system.slice/launchway.service/daemon", "/sys/fs/cgroup/system.slice/launchway.service"),
        ];
        for (group, expected) in cases {
            assert_eq!(own(group, SYSTEMD), [expected], "{group}");
        }
        let container = "25 18 0:22 /docker/1a2b /sys/fs/cgroup ro - cgroup2 cgroup rw";
        assert_eq!(own("0::/docker/1a2b/main", container), ["/sys/fs/cgroup/main"]);
        assert_eq!(own("0::/elsewhere", container), [""; 0]);
        assert_eq!(own("0::/", ""), [""; 0]);
    }

    #[test]
    fn hierarchies_of_both_versions_stand_side_by_side() {
        let groups = "4:memory:/a\n1:cpu,cpuacct:/\n9:name=systemd:/\n0::/b";
        let found = parse(groups, HYBRID);
        assert_eq!(
            own(groups, HYBRID),
            ["/sys/fs/cgroup/unified/b", "/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/cpu,cpuacct/"]
        );
        assert!(found.iter().any(|it| it.has("cpu")) && !found.iter().any(|it| it.has("pids")));
    }

    #[test]
    fn groups_are_made_down_to_the_pods_and_let_theirs_be_limited() {
        let folder = tempfile::tempdir().unwrap();
        let path = |inner: &str| folder.path().join(inner);
        let hierarchy = |unified, own: &str| Hierarchy {
            controllers: vec!["memory".into()],
            unified,
            mount: folder.path().to_owned(),
            own: path(own),
        };
        std::fs::create_dir(path("unit")).unwrap();
        let group = hierarchy(true, "unit").make("uid", &["memory", "cpu"]).unwrap();
        assert_eq!(group, path("unit/launchway-pods/uid"));
        for group in ["unit", "unit/launchway-pods", "unit/launchway-pods/uid"] {
            let file = path(group).join("cgroup.subtree_control");
            assert_eq!(std::fs::read_to_string(file).unwrap(), "+memory +cpu", "{group}");
        }
        // What is not there cannot be written to, as what one may not write to.
        assert_eq!(hierarchy(false, "gone").make("uid", &["memory"]).unwrap(), path("launchway-pods/uid"));
        assert!(!path("launchway-pods/cgroup.subtree_control").exists());
    }
}
