//! Paths inside a folder to which others write: a link that they have made is never followed out of it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, ResolveFlags, Uid, chownat, mkdirat, openat2};
use rustix::io::Errno;

/// Opens something for its place alone.
pub(crate) fn open_place(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

/// The same below an open folder. Fails with `CrossesDevices` if the path leads out of it.
pub(crate) fn open_below(folder: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let inside = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    loop {
        match openat2(folder, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), inside) {
            // Something was renamed meanwhile, so the kernel could not be sure.
            Err(Errno::AGAIN | Errno::INTR) => {}
            opened => return Ok(opened?),
        }
    }
}

/// Makes the folders of a path that are not there, in this mode; they belong to the user and the group that they are made
/// for.
pub(crate) fn make_folders(
    folder: BorrowedFd<'_>,
    path: &Path,
    mode: u32,
    (user, group): (Option<u32>, Option<u32>),
) -> io::Result<()> {
    let (mut above, mut passed) = (folder.try_clone_to_owned()?, PathBuf::new());
    for part in path {
        passed.push(part);
        let found = open_below(folder, &passed);
        let is_new = found.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        if is_new {
            mkdirat(&above, part, Mode::RWXU)?;
            chownat(&above, part, user.map(Uid::from_raw), group.map(Gid::from_raw), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        above = if is_new { open_below(folder, &passed)? } else { found? };
        if is_new {
            // What has taken its place meanwhile lies in the folder, too.
            std::fs::set_permissions(path_of(&above), std::fs::Permissions::from_mode(mode))?;
        }
    }
    Ok(())
}

/// A path by which this process gets at what it has open, and at nothing else.
pub(crate) fn path_of(file: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsFd;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_inside_are_followed_and_none_leads_out() {
        let world = tempfile::tempdir().unwrap();
        let (volume, other) = (world.path().join("volume"), world.path().join("other"));
        fs::create_dir_all(volume.join("v1/data")).unwrap();
        fs::create_dir(&other).unwrap();
        symlink("v1", volume.join("current")).unwrap();
        symlink("../other", volume.join("up")).unwrap();
        symlink(&other, volume.join("absolute")).unwrap();
        symlink("/proc/self/cwd", volume.join("magic")).unwrap();
        let folder = open_place(&volume).unwrap();
        let make = |path: &str| make_folders(folder.as_fd(), Path::new(path), 0o700, (None, None));
        make("current/data/new/deep").unwrap();
        assert!(volume.join("v1/data/new/deep").is_dir());
        let opened = open_below(folder.as_fd(), Path::new("current/data")).unwrap();
        assert_eq!(path_of(&opened).canonicalize().unwrap(), volume.join("v1/data").canonicalize().unwrap());
        for way in ["up", "absolute", "magic", ".."] {
            let refused = open_below(folder.as_fd(), Path::new(way)).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::CrossesDevices, "{way}");
            make(&format!("{way}/made")).unwrap_err();
        }
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
    }
}
