//! Which folder has a name: another one may get it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

/// A folder, whatever its name: its device and number, and, where the file system says so, when it was made, because one that
/// takes another's place often gets its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FolderId {
    device: u64,
    number: u64,
    made: Option<SystemTime>,
}

impl FolderId {
    /// The one that has this name now.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        Ok(Self { device: found.dev(), number: found.ino(), made: found.created().ok() })
    }
}
