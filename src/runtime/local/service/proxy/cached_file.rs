//! A small file that is read again only when it was replaced.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::super::record;
use super::folders::{Folders, Look};

/// What tells one version of a file that is replaced by renames from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    inode: u64,
    modified: (i64, i64),
    size: u64,
}

/// The last value read of a file.
#[derive(Debug)]
pub(super) struct CachedFile<T> {
    path: PathBuf,
    folders: Arc<Folders>,
    look: Option<Look>,
    version: Option<Version>,
    value: Option<Arc<T>>,
}

impl<T: DeserializeOwned> CachedFile<T> {
    pub(super) fn new(path: PathBuf, folders: Arc<Folders>) -> Self {
        Self { path, folders, look: None, version: None, value: None }
    }

    /// The value at the time to which its folder was caught up; `None` if the file is not there. One that cannot be
    /// understood leaves the last value.
    pub(super) fn read(&mut self) -> Option<Arc<T>> {
        if self.look.as_ref().is_some_and(Look::holds) {
            return self.value.clone();
        }
        // Before looking, so that what changes meanwhile is seen the next time.
        self.look = self.path.parent().and_then(|folder| self.folders.look(folder));
        let Some(version) = version(&self.path) else {
            (self.version, self.value) = (None, None);
            return None;
        };
        if self.version != Some(version) {
            match record::read(&self.path) {
                Ok(value) => self.value = value.map(Arc::new),
                Err(error) => super::super::shim::complain(&format!("cannot read {}: {error}", self.path.display())),
            }
            self.version = Some(version);
        }
        self.value.clone()
    }

    /// Whether it was not there when it was read last; one that could not be understood was.
    pub(super) fn is_missing(&self) -> bool {
        self.version.is_none()
    }
}

fn version(path: &Path) -> Option<Version> {
    let file = fs::metadata(path).ok()?;
    Some(Version { inode: file.ino(), modified: (file.mtime(), file.mtime_nsec()), size: file.size() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_never_was_whole_is_there_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        fs::write(&path, "[").unwrap();
        let mut cached = CachedFile::<Vec<u32>>::new(path, Folders::new());
        assert!(cached.read().is_none() && !cached.is_missing());
    }

    #[test]
    fn a_replaced_file_is_read_again_and_a_removed_one_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let (path, folders) = (folder.path().join("list"), Folders::new());
        let mut cached = CachedFile::<Vec<u32>>::new(path.clone(), folders.clone());
        let mut read = || {
            folders.catch_up();
            cached.read()
        };
        assert!(read().is_none());
        for content in ["[1]", "[1,2]"] {
            let draft = folder.path().join("draft");
            fs::write(&draft, content).unwrap();
            fs::rename(&draft, &path).unwrap();
            let value = read().unwrap();
            assert_eq!(serde_json::to_string(&*value).unwrap(), content);
            assert!(Arc::ptr_eq(&value, &read().unwrap()));
        }
        fs::write(&path, "no list").unwrap();
        assert_eq!(*read().unwrap(), [1, 2]);
        fs::remove_file(&path).unwrap();
        assert!(read().is_none() && cached.is_missing());
    }
}
