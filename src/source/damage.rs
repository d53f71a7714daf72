//! Whether a mirror is damaged: a disk that failed, files that a power failure left empty, somebody who deleted some.
//!
//! It is asked after a failure only, because all that references lead to is read.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;

use flate2::read::ZlibDecoder;
use git2::{Error, ErrorClass, ObjectType, Oid};

use super::git::existing;
use super::notes::{MAX_NOTE_BYTES, NOTES_REF};

/// What is wrong with the mirror at `path`, if anything is. What the machine refuses (memory, open files, permissions)
/// says nothing about the mirror.
pub(super) fn find(path: &Path, largest: u64) -> Option<String> {
    if let Some(object) = cut_short(path) {
        return Some(format!("the object `{object}` is cut short"));
    }
    let whole = git2::Repository::open_bare(path).and_then(|mirror| read_all(&mirror, largest));
    whole.err().filter(is_damage).map(|error| error.message().to_owned())
}

/// A loose object that ends too early, as a power failure may leave it. libgit2 reads on in such a one for ever, so this
/// must be known before it reads any.
pub(super) fn cut_short(mirror: &Path) -> Option<String> {
    let files = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let folders = files(&mirror.join("objects")).filter(|path| path.file_name().is_some_and(|name| name.len() == 2));
    let ends_early = |path: &Path| {
        let read = fs::File::open(path).and_then(|file| io::copy(&mut ZlibDecoder::new(file), &mut io::sink()));
        read.is_err_and(|error| error.kind() == io::ErrorKind::UnexpectedEof)
    };
    folders
        .flat_map(|folder| files(&folder).collect::<Vec<_>>())
        .find(|path| ends_early(path))
        .map(|path| path.display().to_string())
}

fn is_damage(error: &Error) -> bool {
    // libgit2 gives a pack that does not fit its index the class of the machine's own errors.
    let is_pack = error.message().contains("invalid packfile");
    is_pack || !matches!(error.class(), ErrorClass::Os | ErrorClass::NoMemory)
}

/// Reads the whole history, and all files of the commits that references point at.
fn read_all(mirror: &git2::Repository, largest: u64) -> Result<(), Error> {
    let mut walk = mirror.revwalk()?;
    let mut files = Files { mirror, database: mirror.odb()?, largest: 0, seen: HashSet::new() };
    for name in reference_names(mirror.path())? {
        // One may be gone by now.
        let Some(tip) = existing(mirror.refname_to_id(&name))? else { continue };
        files.largest = if name == NOTES_REF { MAX_NOTE_BYTES } else { largest };
        files.read(mirror.find_commit(tip)?.tree_id())?;
        walk.push(tip)?;
    }
    walk.try_for_each(|commit| commit.map(drop))
}

/// Every reference that has a file: libgit2 leaves those out that it cannot read.
fn reference_names(mirror: &Path) -> Result<Vec<String>, Error> {
    let refused = |error: std::io::Error| Error::new(git2::ErrorCode::GenericError, ErrorClass::Os, error.to_string());
    let (mut names, mut open) = (Vec::new(), vec!["refs".to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(mirror.join(&folder)).map_err(refused)? {
            let entry = entry.map_err(refused)?;
            let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
            match entry.file_type().map_err(refused)?.is_dir() {
                true => open.push(name),
                false if !name.ends_with(".lock") => names.push(name),
                false => {}
            }
        }
    }
    Ok(names)
}

struct Files<'a> {
    mirror: &'a git2::Repository,
    database: git2::Odb<'a>,
    /// Files of more bytes are never read.
    largest: u64,
    seen: HashSet<Oid>,
}

impl Files<'_> {
    fn read(&mut self, tree: Oid) -> Result<(), Error> {
        let mut open = vec![tree];
        while let Some(tree) = open.pop() {
            for entry in &self.mirror.find_tree(tree)? {
                if !self.seen.insert(entry.id()) {
                    continue;
                }
                match entry.kind() {
                    Some(ObjectType::Tree) => open.push(entry.id()),
                    Some(ObjectType::Blob) => self.read_file(entry.id())?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn read_file(&self, file: Oid) -> Result<(), Error> {
        let (bytes, _kind) = self.database.read_header(file)?;
        let is_read = u64::try_from(bytes).is_ok_and(|bytes| bytes <= self.largest);
        if is_read { self.database.read(file).map(drop) } else { Ok(()) }
    }
}
