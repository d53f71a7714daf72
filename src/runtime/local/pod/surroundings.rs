//! What a container's processes find of the machine: volumes where the mounts say, and of the daemon's state only what is
//! their own.

use std::path::PathBuf;

use super::paths::PodDir;
use super::record::PodRecord;
use super::volume::Mount;
use crate::runtime::local::host::isolation::{Hiding, Isolation, Own};
use crate::runtime::local::host::mount::{MountPoint, Space};

/// What a container has.
#[derive(Debug)]
pub(super) struct Surroundings {
    /// The pod.
    pub(super) record: PodRecord,
    /// Its folder.
    pub(super) dir: PodDir,
    /// The container's launchable; none for `host`.
    pub(super) image: Option<PathBuf>,
    /// The working directory, from which mount points count.
    pub(super) folder: PathBuf,
    /// Its volumes.
    pub(super) mounts: Vec<Mount>,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Entered {
    /// What is to be held on to until the command runs.
    pub(super) isolation: Isolation,
    /// How far that is.
    pub(super) hiding: Hiding,
    /// What the machine does not allow, for people.
    pub(super) lacking: Option<String>,
}

impl Surroundings {
    /// Makes them so for this process, which must have one thread. Fails if a volume is not what it should be; what the
    /// machine does not allow is no failure.
    pub(super) fn enter(&self) -> Result<Entered, String> {
        let scratch = self.dir.scratch();
        // What is opened outside of the namespace cannot be mounted inside.
        let space = Space::enter(&scratch);
        let home = Own::at(self.dir.home(), false)?;
        let isolation = Isolation::new(self.record.hidden.clone(), home, self.own()?)?;
        let (hiding, mounted) = match space.and_then(|space| isolation.hide(&space).map(|()| space)) {
            Ok(mut space) => (Hiding::Covered, space.mount_all(self.mount_points(&isolation.own))),
            Err(problem) => (Hiding::Visible, Err(problem)),
        };
        let lacking = mounted.err().filter(|_| !self.mounts.is_empty());
        Ok(Entered { isolation, hiding, lacking: lacking.map(|problem| self.without_mounts(&problem)) })
    }

    /// Beside the home: volumes in the order of their mounts, then what nobody changes: the launchable, and a deployer's way to
    /// the daemon.
    fn own(&self) -> Result<Vec<Own>, String> {
        let volume =
            |mount: &Mount| Ok(Own { path: mount.path.clone(), file: mount.open(&self.record)?, read_only: false });
        let launchable = self.image.iter().chain(&self.record.api).map(|path| Own::at(path.clone(), true));
        self.mounts.iter().map(volume).chain(launchable).collect()
    }

    fn mount_points<'a>(&self, own: &'a [Own]) -> Vec<MountPoint<'a>> {
        let point = |(mount, own): (&Mount, &'a Own)| MountPoint {
            target: self.folder.join(&mount.mount_path),
            source: &own.file,
            read_only: mount.read_only,
        };
        self.mounts.iter().zip(own).map(point).collect()
    }

    fn without_mounts(&self, problem: &str) -> String {
        let place = |mount: &Mount| format!("{}={}", mount.variable, mount.path.display());
        let places: Vec<String> = self.mounts.iter().map(place).collect();
        format!("volumes are not mounted ({problem}); they are at {}", places.join(" "))
    }
}
