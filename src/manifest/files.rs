//! The tree of a revision, as the caller hands it in.

use super::problem::Problem;
use crate::error::Result;

/// A tree at a revision. Nothing here follows symlinks.
pub trait Files {
    /// Every blob, symlink and submodule of the tree.
    ///
    /// # Errors
    /// If the tree cannot be read.
    fn entries(&self) -> Result<Vec<FileEntry>>;

    /// The content of a file, also of one beyond the limit: what it is about decides whether that is a mistake.
    ///
    /// # Errors
    /// `Stalled` if the file itself is refused: that becomes a problem of the file. Anything else ends the reading.
    fn read(&self, entry: &FileEntry) -> Result<Content>;

    /// The most bytes of a file that may declare something.
    fn limit(&self) -> u64;

    /// The id of the folder at a path, the empty path being the root: the digest of a `git:` image. `None` if there
    /// is no folder.
    ///
    /// # Errors
    /// If the tree cannot be read.
    fn tree_id(&self, path: &str) -> Result<Option<String>>;

    /// What is at a path that is no folder; `None` also where a symlink would have to be followed.
    ///
    /// # Errors
    /// If the tree cannot be read.
    fn kind(&self, path: &str) -> Result<Option<FileKind>>;

    /// Where the symlink at a path leads, as it says itself; `None` where that is not known.
    ///
    /// # Errors
    /// If the tree cannot be read.
    fn link_target(&self, _path: &str) -> Result<Option<String>> {
        Ok(None)
    }

    /// The interpreter that a program names by its `#!` line, where it is known to be missing on the machine that runs pods.
    fn missing_interpreter(&self, _path: &str) -> Option<String> {
        None
    }
}

/// No file with more bytes is read, whatever the limit.
pub const LARGEST: u64 = super::yaml::MAX_BYTES as u64;

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// All of it.
    Whole(Vec<u8>),
    /// More bytes than [`LARGEST`]: so many.
    TooLarge(u64),
}

/// What is in the place of a folder, or of one that it is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Absence {
    /// Nothing that would tell why, or a file.
    #[default]
    Nothing,
    /// Another repository's commit, at this path.
    Submodule(String),
    /// A symbolic link, at this path.
    Symlink(String),
}

impl Absence {
    /// Why a folder is not there.
    ///
    /// # Errors
    /// If the tree cannot be read.
    pub(crate) fn of(folder: &str, files: &dyn Files) -> Result<Self> {
        let parents = folder.match_indices('/').filter_map(|(end, _)| folder.get(..end));
        for place in parents.chain([folder]).filter(|place| !place.is_empty()) {
            match files.kind(place)? {
                None => {}
                Some(FileKind::Submodule) => return Ok(Self::Submodule(place.to_owned())),
                Some(FileKind::Symlink) => return Ok(Self::Symlink(place.to_owned())),
                Some(FileKind::File { .. } | FileKind::Refused(_)) => return Ok(Self::Nothing),
            }
        }
        Ok(Self::Nothing)
    }

    /// What is wrong with `folder`, and what to do.
    pub(crate) fn explain(&self, folder: &str) -> (String, &'static str) {
        match self {
            Absence::Nothing => (format!("the repository has no folder `{folder}`"), "Git keeps no empty folders"),
            Absence::Submodule(path) => (
                format!("`{path}` is a submodule, and nothing is read through those"),
                "commit the files themselves, as `git subtree` does, or watch the other repository",
            ),
            Absence::Symlink(path) => (
                format!("`{path}` is a symbolic link, and nothing is read through those"),
                "name the folder that it leads to",
            ),
        }
    }
}

/// Why a file is not read that is larger than the limit. The hint is true for whoever reads: verbs in a work tree know no
/// daemon's configuration.
pub(super) fn too_large(path: &str, size: u64, limit: u64) -> Problem {
    Problem::in_file(path, "too-large", format!("the file has {size} bytes, more than the limit of {limit}")).hint(
        "split it; only a daemon reads more, up to 16MiB: as much as `limits: {manifest: …}` of its repository says",
    )
}

/// An entry of a tree that is no folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// From the root, with `/`.
    pub path: String,
    /// What it is.
    pub kind: FileKind,
    /// The object's id; equal ids are equal content.
    pub id: String,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A file.
    File {
        /// Whether it may be run.
        executable: bool,
    },
    /// A symlink; its content is the target.
    Symlink,
    /// Another repository's commit.
    Submodule,
    /// Something that must not be read, and why: the rest of a sentence that begins with the path.
    Refused(&'static str),
}
