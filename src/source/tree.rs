//! Trees: what files a revision has, read from the object database.

use std::fmt;

use git2::{ErrorCode, ObjectType, Oid};

use super::git::failed;
use super::history::Repository;
use super::{Limits, ObjectId};
use crate::error::{Failure, Result};

/// How every Git LFS pointer begins.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";
/// The specification bounds pointers to less than this many bytes.
const LFS_POINTER_MAX: u64 = 1024;

/// A tree of a repository.
#[derive(Clone, Copy)]
pub struct Tree<'r> {
    pub(super) repository: &'r Repository,
    pub(super) id: ObjectId,
}

/// One file of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The path from the tree's root, with `/`. Text that is not UTF-8 is shown with replacement characters.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
    /// Its content; of a submodule, its commit.
    pub id: ObjectId,
}

/// What an entry of a tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A file.
    File,
    /// A file with the executable bit.
    Executable,
    /// A symbolic link.
    Symlink,
    /// A commit of another repository.
    Submodule,
    /// Something that must not be read, and why: the rest of a sentence that begins with the path. A folder of this
    /// kind stands for all that is in it.
    Refused(&'static str),
}

/// An entry of one folder.
pub(super) struct Child {
    pub(super) name: Vec<u8>,
    pub(super) kind: ChildKind,
    pub(super) id: Oid,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ChildKind {
    Folder,
    Leaf(EntryKind),
}

impl fmt::Debug for Tree<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tree").field(&self.id).finish()
    }
}

impl<'r> Tree<'r> {
    pub(super) fn new(repository: &'r Repository, id: ObjectId) -> Self {
        Self { repository, id }
    }

    /// Its own id, which names its whole content.
    pub fn id(&self) -> ObjectId {
        self.id
    }

    /// All files, sorted as Git sorts them. Nothing is refused here but trees beyond the limits: what must not be
    /// read is in the list, as what it is.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        let mut found = Listing { limits: self.repository.limits, seen: 0, entries: Vec::new() };
        found.add_folder(self.repository, self.id.oid()?, "", 0)?;
        Ok(found.entries)
    }

    /// The id of the file or folder at `path`; `None` if there is nothing.
    pub fn id_of(&self, path: &str) -> Result<Option<ObjectId>> {
        Ok(self.find(path)?.map(|child| ObjectId::from(child.id)))
    }

    /// The folder at `path` (the root for `""` or `.`); `None` if there is none.
    pub fn folder(&self, path: &str) -> Result<Option<Tree<'r>>> {
        let path = path.trim_matches('/');
        if path.is_empty() || path == "." {
            return Ok(Some(*self));
        }
        let child = self.find(path)?.filter(|child| child.kind == ChildKind::Folder);
        Ok(child.map(|child| Tree::new(self.repository, ObjectId::from(child.id))))
    }

    /// The file at `path`; `None` if there is none or it is a folder.
    pub fn entry(&self, path: &str) -> Result<Option<Entry>> {
        let child = self.find(path)?;
        Ok(child.and_then(|child| match child.kind {
            ChildKind::Folder => None,
            ChildKind::Leaf(kind) => Some(Entry { path: path.to_owned(), kind, id: ObjectId::from(child.id) }),
        }))
    }

    /// The content of a file of at most `limit` bytes. Refuses everything else than files, and Git LFS pointers.
    pub fn read(&self, entry: &Entry, limit: u64) -> Result<Vec<u8>> {
        read_file(self.repository, entry, limit)
    }

    /// A blob, the content if it has at most `limit` bytes; `path` is for messages.
    pub fn read_blob(&self, id: ObjectId, path: &str, limit: u64) -> Result<Blob> {
        blob(self.repository, id, limit, path)
    }

    fn find(&self, path: &str) -> Result<Option<Child>> {
        let mut names = path.split('/').filter(|name| !name.is_empty() && *name != ".").peekable();
        let mut folder = self.id.oid()?;
        let mut depth = 0;
        while let Some(name) = names.next() {
            depth += 1;
            check_depth(self.repository.limits, depth, path)?;
            let Some(child) = child(self.repository, folder, name)? else { return Ok(None) };
            if names.peek().is_none() {
                return Ok(Some(child));
            }
            if child.kind != ChildKind::Folder {
                return Ok(None);
            }
            folder = child.id;
        }
        Ok(None)
    }
}

/// What is read of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blob {
    /// All of it.
    Content(Vec<u8>),
    /// Nothing: it has so many bytes.
    TooLarge(u64),
}

struct Listing {
    limits: Limits,
    seen: usize,
    entries: Vec<Entry>,
}

impl Listing {
    fn add_folder(&mut self, repository: &Repository, id: Oid, path: &str, depth: usize) -> Result<()> {
        check_depth(self.limits, depth, path)?;
        for child in children(repository, id, path)? {
            self.seen += 1;
            check_count(self.limits, self.seen)?;
            self.add(repository, &child, &joined(path, &child.name), depth)?;
        }
        Ok(())
    }

    fn add(&mut self, repository: &Repository, child: &Child, path: &str, depth: usize) -> Result<()> {
        match child.kind {
            ChildKind::Folder => self.add_folder(repository, child.id, path, depth + 1),
            ChildKind::Leaf(kind) => {
                self.entries.push(Entry { path: path.to_owned(), kind, id: ObjectId::from(child.id) });
                Ok(())
            }
        }
    }
}

pub(super) fn check_count(limits: Limits, count: usize) -> Result<()> {
    if count <= limits.entries {
        return Ok(());
    }
    Err(Failure::stalled(format!("the tree has more than {} entries", limits.entries))
        .hint("raise `limits.entries` if that is meant"))
}

pub(super) fn check_depth(limits: Limits, depth: usize, path: &str) -> Result<()> {
    if depth <= limits.depth {
        return Ok(());
    }
    let start: String = path.chars().take(80).collect();
    Err(Failure::stalled(format!("`{start}…` is nested deeper than {} folders", limits.depth))
        .hint("raise `limits.depth` if that is meant"))
}

/// The entries of one folder, in Git's order.
pub(super) fn children(repository: &Repository, id: Oid, path: &str) -> Result<Vec<Child>> {
    let tree = repository.git.find_tree(id).map_err(failed(|| format!("cannot read the folder `{path}`")))?;
    Ok(tree.iter().map(|entry| to_child(&entry)).collect())
}

fn child(repository: &Repository, folder: Oid, name: &str) -> Result<Option<Child>> {
    let tree = repository.git.find_tree(folder).map_err(failed(|| format!("cannot read the folder of `{name}`")))?;
    Ok(tree.get_name(name).map(|entry| to_child(&entry)))
}

fn to_child(entry: &git2::TreeEntry<'_>) -> Child {
    let name = entry.name_bytes().to_vec();
    let kind = match (name_fault(&name), entry.filemode_raw()) {
        (Some(fault), _) => ChildKind::Leaf(EntryKind::Refused(fault)),
        (None, 0o040_000) => ChildKind::Folder,
        (None, 0o100_644 | 0o100_664) => ChildKind::Leaf(EntryKind::File),
        (None, 0o100_755) => ChildKind::Leaf(EntryKind::Executable),
        (None, 0o120_000) => ChildKind::Leaf(EntryKind::Symlink),
        (None, 0o160_000) => ChildKind::Leaf(EntryKind::Submodule),
        (None, _) => ChildKind::Leaf(EntryKind::Refused("has a mode that Git does not write")),
    };
    Child { name, kind, id: entry.id() }
}

/// Why a name must not become a file's name, if so. Checked as Git checks them before a checkout, and stricter: Git
/// itself stores any of these when told to.
fn name_fault(name: &[u8]) -> Option<&'static str> {
    let Ok(name) = std::str::from_utf8(name) else { return Some("is not UTF-8") };
    if name.is_empty() || name == "." || name == ".." {
        return Some("is not a name of its own");
    }
    if name.contains(['/', '\\']) {
        return Some("has a slash or backslash in one name");
    }
    if name.chars().any(char::is_control) {
        return Some("has control characters in its name");
    }
    is_git_dir(name).then_some("would be read as a repository of its own")
}

/// `.git` in any of the spellings that some file system takes for it: other case, `git~1`, invisible characters.
fn is_git_dir(name: &str) -> bool {
    let invisible = |c: &char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let visible: String = name.chars().filter(|character| !invisible(character)).collect();
    let visible = visible.trim_end_matches(['.', ' ']);
    visible.eq_ignore_ascii_case(".git") || visible.eq_ignore_ascii_case("git~1")
}

pub(super) fn joined(folder: &str, name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    if folder.is_empty() { name.into_owned() } else { format!("{folder}/{name}") }
}

/// Why an entry is not read as a file, if so.
pub(super) fn refusal(entry: &Entry) -> Option<Failure> {
    let path = &entry.path;
    match entry.kind {
        EntryKind::File | EntryKind::Executable => None,
        EntryKind::Symlink => Some(
            Failure::stalled(format!("`{path}` is a symbolic link")).hint("commit the file itself instead of a link"),
        ),
        EntryKind::Submodule => Some(
            Failure::stalled(format!("`{path}` is a submodule, and those are not read"))
                .hint("commit the files themselves (git subtree does that)"),
        ),
        EntryKind::Refused(why) => Some(Failure::stalled(format!("`{}` {why}", path.escape_debug()))),
    }
}

pub(super) fn read_file(repository: &Repository, entry: &Entry, limit: u64) -> Result<Vec<u8>> {
    if let Some(refusal) = refusal(entry) {
        return Err(refusal);
    }
    let content = read_blob(repository, entry.id, limit, &entry.path)?;
    if content.starts_with(LFS_POINTER) && size(&content) < LFS_POINTER_MAX {
        return Err(Failure::stalled(format!("`{}` is a Git LFS pointer, and its content is not in Git", entry.path))
            .hint("take it out of Git LFS with `git lfs migrate export`"));
    }
    Ok(content)
}

/// The content of a blob that must not have more than `limit` bytes.
pub(super) fn read_blob(repository: &Repository, id: ObjectId, limit: u64, path: &str) -> Result<Vec<u8>> {
    match blob(repository, id, limit, path)? {
        Blob::Content(content) => Ok(content),
        Blob::TooLarge(size) => {
            Err(Failure::stalled(format!("`{path}` has {size} bytes, more than the limit of {limit}")))
        }
    }
}

/// Looks at the size first: what is too large is never unpacked.
fn blob(repository: &Repository, id: ObjectId, limit: u64, path: &str) -> Result<Blob> {
    let id = id.oid()?;
    let missing = |error: git2::Error| {
        let absent = error.code() == ErrorCode::NotFound;
        let failure = failed(|| format!("cannot read `{path}`"))(error);
        if absent { failure.hint("a partial clone lacks content; use a full one") } else { failure }
    };
    let database = repository.git.odb().map_err(failed(|| "cannot open the object database".to_owned()))?;
    let (length, kind) = database.read_header(id).map_err(missing)?;
    if kind != ObjectType::Blob {
        return Err(Failure::stalled(format!("`{path}` is not a file")));
    }
    let size = u64::try_from(length).unwrap_or(u64::MAX);
    if size > limit {
        return Ok(Blob::TooLarge(size));
    }
    Ok(Blob::Content(database.read(id).map_err(missing)?.data().to_vec()))
}

pub(super) fn size(content: &[u8]) -> u64 {
    u64::try_from(content.len()).unwrap_or(u64::MAX)
}

/// The trees and files that the tree `new` has and `old`, which is known whole, has not at the same path. `take` says whether
/// one was not there before; what was there is not looked into.
pub(super) fn each_new_object(
    repository: &git2::Repository,
    old: Option<Oid>,
    new: Oid,
    mut take: impl FnMut(Oid) -> bool,
) -> Result<(), git2::Error> {
    let tree_id = |entry: git2::TreeEntry<'_>| (entry.kind() == Some(ObjectType::Tree)).then(|| entry.id());
    let mut open = vec![(old, new)];
    while let Some((old, new)) = open.pop() {
        if old == Some(new) || !take(new) {
            continue;
        }
        let old = old.map(|id| repository.find_tree(id)).transpose()?;
        for entry in &repository.find_tree(new)? {
            let before = old.as_ref().and_then(|old| old.get_name_bytes(entry.name_bytes()));
            let is_same = before.as_ref().is_some_and(|before| before.id() == entry.id());
            match entry.kind() {
                Some(ObjectType::Tree) => open.push((before.and_then(tree_id), entry.id())),
                Some(ObjectType::Blob) if !is_same => drop(take(entry.id())),
                _ => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_have_a_fault() {
        for name in
            ["", ".", "..", ".git", ".GIT", ".g\u{200c}it", "git~1", ".git. ", "a/b", "a\\b", "a\nb", "a\0b", "\u{7f}"]
        {
            assert!(name_fault(name.as_bytes()).is_some(), "{name:?}");
        }
        assert!(name_fault(b"\xff").is_some());
    }

    #[test]
    fn usual_names_have_none() {
        for name in ["a", ".gitignore", ".github", "git", "...", "a b", "ü", "日本", "-x", "a.git", "👩\u{200d}💻"]
        {
            assert_eq!(name_fault(name.as_bytes()), None, "{name:?}");
        }
    }
}
