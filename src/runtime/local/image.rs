//! What pods need of images: that they are installed, and where.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::error::Result;
use crate::model::ids::RepositoryName;
use crate::runtime::ImageUse;

/// Images on this machine. All of it may block for the time of a file operation, not for that of a download.
pub trait Images: Send + Sync {
    /// Makes an image runnable by a user of this machine. Fails as `Waiting` while it is being installed or built (the
    /// end is announced as [`crate::runtime::RuntimeChange::Image`]), as `Stalled` if that cannot be done.
    fn prepare(&self, repository: &RepositoryName, image: &str, run_as: Option<u32>) -> Result<()>;

    /// The sealed folder of an installed image; `None` for `host`, which is the machine itself. Fails as `Waiting` if
    /// it is not installed.
    fn path(&self, repository: &RepositoryName, image: &str) -> Result<Option<PathBuf>>;

    /// Deletes what is neither among `keep` nor in one of the folders that pods use.
    fn collect_garbage(&self, keep: &[ImageUse], used: &BTreeSet<PathBuf>) -> Result<()>;
}
