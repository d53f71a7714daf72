//! What a process sees of the file system, for that process alone: in a mount namespace of its own, folders are hidden from
//! it, and volumes are where its container's mounts say.
//!
//! The rest of the machine stays as it is. A mount point that does not exist is never made on the machine: the folder
//! that lacks it is covered by a small one in memory, which shows everything of the covered folder and the new one.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, mount_bind,
    mount_bind_recursive, mount_change, mount_move, mount_remount, move_mount, open_tree, unmount,
};
use rustix::process::{getgid, getuid, pivot_root};
use rustix::thread::{UnshareFlags, set_no_new_privs};

use super::beneath;
use super::isolation::Own;

/// The most entries that a covered folder may have.
const MAX_ENTRIES: usize = 10_000;
/// What a covering folder may take of memory: it holds names only.
const COVER_OPTIONS: &CStr = c"size=8m,mode=0755";

/// A volume, or a part of it, at a place in the file system.
#[derive(Clone, Debug)]
pub(crate) struct MountPoint<'a> {
    /// Where it appears.
    pub(crate) target: PathBuf,
    /// What appears there.
    pub(crate) source: &'a OwnedFd,
    /// Whether writing is refused.
    pub(crate) read_only: bool,
}

/// Leaves the machine's mount namespace for one of this process' own, as root or as any user where the machine allows
/// users their own namespaces.
fn enter_own_namespace() -> io::Result<()> {
    if leave(UnshareFlags::NEWNS).is_err() {
        let (user, group) = (getuid().as_raw(), getgid().as_raw());
        leave(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
        // It stays the same user; a process without privileges may map a group only if it gives up setting others.
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    }
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    // What it mounts may replace files that programs with more privileges trust: so it never gets more than it has.
    Ok(set_no_new_privs(true)?)
}

#[expect(deprecated, reason = "it is unsafe for open files that threads share; these namespaces are something else")]
fn leave(namespaces: UnshareFlags) -> Result<(), Errno> {
    rustix::thread::unshare(namespaces)
}

/// The file system as this process and those that it becomes or starts see it.
#[derive(Debug)]
pub(crate) struct Space<'a> {
    scratch: &'a Path,
    /// The file systems in memory that cover folders: mount points can be added to them.
    covers: BTreeSet<u64>,
    /// Where volumes appear already: a mount point inside a volume is a folder of that volume.
    mounted: Vec<PathBuf>,
}

impl<'a> Space<'a> {
    /// Leaves the machine's mount namespace. The process must have one thread; `scratch` is an empty folder for its own
    /// use. Fails with what is wrong.
    pub(crate) fn enter(scratch: &'a Path) -> Result<Self, String> {
        enter_own_namespace().map_err(|error| format!("this machine allows no mounts of one's own: {error}"))?;
        Ok(Self { scratch, covers: BTreeSet::new(), mounted: Vec::new() })
    }

    /// Covers a folder by an empty one in which, of all that it holds, only `own` appears.
    pub(super) fn hide(&self, folder: &Path, own: &[Own]) -> io::Result<()> {
        mount("launchway", self.scratch, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, COVER_OPTIONS)?;
        let mut ordered: Vec<&Own> = own.iter().collect();
        ordered.sort_by(|one, other| one.path.cmp(&other.path));
        for own in ordered {
            let Ok(inside) = own.path.strip_prefix(folder) else { continue };
            let (place, source) = (self.scratch.join(inside), beneath::path_of(&own.file));
            make_point(&place, source.is_dir())?;
            mount_bind_recursive(source, &place)?;
            if own.read_only {
                make_read_only(&place)?;
            }
        }
        // What is mounted from now on is put together where the process knows that folder to be.
        if let Ok(inside) = self.scratch.strip_prefix(folder) {
            fs::create_dir_all(self.scratch.join(inside))?;
        }
        make_read_only(self.scratch)?;
        Ok(mount_move(self.scratch, folder)?)
    }

    /// Covers a file by an empty one.
    pub(super) fn hide_file(&self, file: &Path) -> io::Result<()> {
        mount("launchway", self.scratch, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, COVER_OPTIONS)?;
        let empty = self.scratch.join("empty");
        fs::OpenOptions::new().write(true).create_new(true).mode(0o000).open(&empty)?;
        mount_bind(&empty, file)?;
        make_read_only(file)?;
        Ok(unmount(self.scratch, UnmountFlags::DETACH)?)
    }

    /// Keeps a folder where it is: a mount point is neither moved nor removed. It shows what it holds, with all that is mounted
    /// in it.
    pub(super) fn hold(&self, folder: &Path) -> io::Result<()> {
        Ok(mount_bind_recursive(folder, folder)?)
    }

    /// Refuses writing to control groups: a process that may move itself out of its own has no limits. Where the machine does
    /// not allow that, limits hold for who keeps them.
    pub(super) fn close_groups(&self) {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        for mount in fields.filter(|fields| fields.get(2).is_some_and(|kind| kind.starts_with("cgroup"))) {
            mount.get(1).map(|place| make_read_only(Path::new(place)).ok());
        }
    }

    /// Mounts volumes, outer mount points first. Fails with what is wrong.
    pub(crate) fn mount_all(&mut self, mut points: Vec<MountPoint<'_>>) -> Result<(), String> {
        points.sort_by(|one, other| one.target.cmp(&other.target));
        let wrong = |point: &MountPoint<'_>, error: &dyn std::fmt::Display| {
            format!("cannot mount a volume at `{}`: {error}", point.target.display())
        };
        // All are taken before the first is put in place: that may give the process another root, without what was below.
        let taken = points.iter().map(|point| take(point.source).map_err(|error| wrong(point, &error)));
        let trees: Vec<OwnedFd> = taken.collect::<Result<_, _>>()?;
        points
            .iter()
            .zip(trees)
            .try_for_each(|(point, tree)| self.mount(point, &tree).map_err(|error| wrong(point, &error)))
    }

    fn mount(&mut self, point: &MountPoint<'_>, tree: &OwnedFd) -> io::Result<()> {
        let target = self.make_target(&point.target, beneath::path_of(point.source).is_dir())?;
        move_mount(tree, "", CWD, &target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
        if point.read_only {
            make_read_only(&target)?;
        }
        self.mounted.push(target);
        Ok(())
    }

    /// The place to mount at; it exists afterwards.
    fn make_target(&mut self, target: &Path, is_folder: bool) -> io::Result<PathBuf> {
        let existing = target.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
        let missing = target.strip_prefix(existing).map_err(io::Error::other)?;
        let base = existing.canonicalize()?;
        if missing.as_os_str().is_empty() {
            return Ok(base);
        }
        let ours = self.covers.contains(&fs::metadata(&base)?.dev());
        if !ours && !self.mounted.iter().any(|volume| base.starts_with(volume)) {
            self.cover(&base)?;
        }
        let real = base.join(missing);
        make_point(&real, is_folder)?;
        Ok(real)
    }

    /// Puts a folder in memory over one of the machine.
    fn cover(&mut self, folder: &Path) -> io::Result<()> {
        let covered = fs::metadata(folder)?;
        mount("launchway", self.scratch, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, COVER_OPTIONS)?;
        let cover = fs::metadata(self.scratch)?.dev();
        // Who may write to the folder still may. In a user's own namespace all belongs to that one user.
        fs::set_permissions(self.scratch, covered.permissions())?;
        chown(self.scratch, Some(covered.uid()), Some(covered.gid())).ok();
        for (count, entry) in fs::read_dir(folder)?.enumerate() {
            if count == MAX_ENTRIES {
                return Err(io::Error::other(format!("`{}` holds too much to add to it", folder.display())));
            }
            match show(&entry?, self.scratch) {
                // It went away meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                shown => shown?,
            }
        }
        if folder == Path::new("/") {
            become_root(self.scratch)?;
        } else {
            mount_move(self.scratch, folder)?;
        }
        self.covers.insert(cover);
        Ok(())
    }
}

/// What is open as something to mount, with what is mounted below it: a folder of the machine must not show what is hidden
/// in it.
fn take(source: &OwnedFd) -> io::Result<OwnedFd> {
    let whole = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::AT_RECURSIVE | OpenTreeFlags::AT_EMPTY_PATH;
    Ok(open_tree(source, "", whole | OpenTreeFlags::OPEN_TREE_CLOEXEC)?)
}

/// Makes an empty folder or file to mount at.
fn make_point(place: &Path, is_folder: bool) -> io::Result<()> {
    if is_folder {
        return fs::create_dir_all(place);
    }
    place.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::OpenOptions::new().create(true).append(true).open(place).map(drop)
}

/// Makes an entry of a folder visible in another one.
fn show(entry: &fs::DirEntry, folder: &Path) -> io::Result<()> {
    let (from, to, kind) = (entry.path(), folder.join(entry.file_name()), entry.file_type()?);
    if kind.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if kind.is_dir() {
        fs::create_dir(&to)?;
    } else {
        fs::File::create(&to)?;
    }
    Ok(mount_bind_recursive(from, to)?)
}

/// Makes a folder the root of the file system, and forgets the old root.
fn become_root(folder: &Path) -> io::Result<()> {
    std::env::set_current_dir(folder)?;
    // Both at the same place: the old root then lies over the new one, and is taken off.
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    std::env::set_current_dir("/")
}

/// Refuses writing. Without privileges, what the file system refuses already must be refused again.
fn make_read_only(target: &Path) -> io::Result<()> {
    let refuse = MountFlags::BIND | MountFlags::RDONLY;
    let more = refuse | MountFlags::NOSUID | MountFlags::NODEV;
    let last = |_: Errno| mount_remount(target, more | MountFlags::NOEXEC, c"");
    Ok(mount_remount(target, refuse, c"").or_else(|_: Errno| mount_remount(target, more, c"")).or_else(last)?)
}
