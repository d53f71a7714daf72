//! What pods need of images: that they are installed, and where.

use std::path::PathBuf;

use crate::error::Result;
use crate::model::ids::RepositoryName;
use crate::model::pod::SecurityContext;
use crate::runtime::ImageUse;
use crate::runtime::local::launchable::Launchables;

/// Images on this machine. All of it may block for the time of a file operation, not for that of a download.
pub trait Images: Send + Sync {
    /// Makes an image runnable by a user of this machine. Fails as `Waiting` while it is being installed or built (the
    /// end is announced as [`crate::runtime::RuntimeChange::Image`]), as `Stalled` if that cannot be done.
    fn prepare(&self, repository: &RepositoryName, image: &str, run_as: SecurityContext) -> Result<()>;

    /// The sealed folder of an installed image; `None` for `host`, which is the machine itself. Fails as `Waiting` if
    /// it is not installed.
    fn path(&self, repository: &RepositoryName, image: &str) -> Result<Option<PathBuf>>;

    /// Forgets that an image could not be made runnable, so that it is tried again.
    fn forget_failure(&self, repository: &RepositoryName, image: &str) -> Result<()>;

    /// Deletes what is not among `keep`, or only counts it; says how much.
    fn collect(&self, keep: &[ImageUse], dry_run: bool) -> Result<u64>;
}

impl Images for Launchables {
    fn prepare(&self, repository: &RepositoryName, image: &str, run_as: SecurityContext) -> Result<()> {
        Launchables::prepare(self, repository, image, run_as)
    }

    fn path(&self, repository: &RepositoryName, image: &str) -> Result<Option<PathBuf>> {
        Launchables::path(self, repository, image)
    }

    fn forget_failure(&self, repository: &RepositoryName, image: &str) -> Result<()> {
        Launchables::forget_failure(self, repository, image)
    }

    fn collect(&self, keep: &[ImageUse], dry_run: bool) -> Result<u64> {
        Launchables::collect(self, keep, dry_run)
    }
}
