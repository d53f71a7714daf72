//! Writing a folder of a revision to disk, for a launchable: files and links, nothing that reaches outside.

use std::fs::{self, DirBuilder};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::git::ObjectId;
use super::history::Repository;
use super::tree::{self, Child, ChildKind, Entry, EntryKind, Tree};
use crate::error::{Context as _, Failure, Result};

/// Longer targets are not paths on Linux.
const MAX_LINK_BYTES: u64 = 4095;

/// What an export wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Bytes of all files.
    pub bytes: u64,
    /// Files, folders and links.
    pub entries: usize,
}

impl Tree<'_> {
    /// Writes the folder at `path` into `into`, as [`Repository::export_tree`] does.
    pub fn export(&self, path: &str, into: &Path) -> Result<Exported> {
        match self.folder(path)? {
            Some(folder) => self.repository.export_tree(folder.id(), into),
            None => Err(Failure::stalled(format!("there is no folder `{path}` in this revision"))),
        }
    }
}

impl Repository {
    /// Writes all files of a tree into `into`, which is empty or is made. Executable bits are kept, symbolic
    /// links only if they are relative and stay inside. Submodules, odd names, Git LFS pointers and trees beyond the
    /// limits are refused with their path; what was written before the refusal stays for the caller to remove.
    pub fn export_tree(&self, tree: ObjectId, into: &Path) -> Result<Exported> {
        let mut export = Export { repository: self, root: into, links: Vec::new(), done: Exported::default() };
        fs::create_dir_all(into).or_transient(|| format!("cannot create `{}`", into.display()))?;
        export.folder(tree, "", 0)?;
        export.write_links()?;
        Ok(export.done)
    }
}

struct Export<'a> {
    repository: &'a Repository,
    root: &'a Path,
    /// Made last, so that no file is ever written through one.
    links: Vec<(PathBuf, String)>,
    done: Exported,
}

impl Export<'_> {
    fn folder(&mut self, id: ObjectId, path: &str, depth: usize) -> Result<()> {
        let limits = self.repository.limits;
        tree::check_depth(limits, depth, path)?;
        if !path.is_empty() {
            let target = self.root.join(path);
            DirBuilder::new()
                .mode(0o755)
                .create(&target)
                .or_transient(|| format!("cannot create `{}`", target.display()))?;
        }
        for child in tree::children(self.repository, id.oid()?, path)? {
            self.done.entries += 1;
            tree::check_count(limits, self.done.entries)?;
            self.child(&child, path, depth)?;
        }
        Ok(())
    }

    fn child(&mut self, child: &Child, folder: &str, depth: usize) -> Result<()> {
        let name = String::from_utf8_lossy(&child.name);
        let path = if folder.is_empty() { name.into_owned() } else { format!("{folder}/{name}") };
        match child.kind {
            ChildKind::Folder => self.folder(child.id.into(), &path, depth + 1),
            ChildKind::Leaf(kind) => self.leaf(&Entry { path, kind, id: child.id.into() }, depth),
        }
    }

    fn leaf(&mut self, entry: &Entry, depth: usize) -> Result<()> {
        if entry.kind == EntryKind::Symlink {
            let target = self.link_target(entry, depth)?;
            self.links.push((self.root.join(&entry.path), target));
            return Ok(());
        }
        let rest = self.repository.limits.launchable - self.done.bytes;
        let content = tree::read_file(self.repository, entry, rest)?;
        self.done.bytes += tree::size(&content);
        let mode = if entry.kind == EntryKind::Executable { 0o755 } else { 0o644 };
        write_new(&self.root.join(&entry.path), &content, mode)
    }

    fn link_target(&self, entry: &Entry, depth: usize) -> Result<String> {
        let content = tree::read_blob(self.repository, entry.id, MAX_LINK_BYTES, &entry.path)?;
        match String::from_utf8(content) {
            Ok(target) if stays_inside(&target, depth) => Ok(target),
            _ => Err(Failure::stalled(format!("the symbolic link `{}` leads out of its launchable", entry.path))
                .hint("use a relative link that begins with at most as many `..` as there are folders above it")),
        }
    }

    fn write_links(&mut self) -> Result<()> {
        for (path, target) in self.links.drain(..) {
            symlink(target, &path).or_transient(|| format!("cannot create `{}`", path.display()))?;
        }
        Ok(())
    }
}

fn write_new(path: &Path, content: &[u8], mode: u32) -> Result<()> {
    let describe = || format!("cannot write `{}`", path.display());
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path).or_transient(describe)?;
    file.write_all(content).or_transient(describe)
}

/// Whether a link in a folder `depth` levels below the root stays inside it. `..` may only stand in front: behind a
/// name it would be taken from where that name leads, which may be another link.
fn stays_inside(target: &str, depth: usize) -> bool {
    if target.is_empty() || target.starts_with('/') || target.chars().any(char::is_control) {
        return false;
    }
    let mut parts = target.split('/').filter(|part| !part.is_empty() && *part != ".").peekable();
    let mut ups = 0;
    while parts.next_if(|part| *part == "..").is_some() {
        ups += 1;
    }
    ups <= depth && parts.all(|part| part != "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_stay_inside_or_are_refused() {
        for (target, depth, inside) in [
            ("a", 0, true),
            ("./a/b", 0, true),
            ("../a", 1, true),
            ("../../a", 2, true),
            ("..", 1, true),
            ("", 3, false),
            ("/etc/passwd", 3, false),
            ("..", 0, false),
            ("../../a", 1, false),
            ("a/../b", 3, false),
            (".././../a", 1, false),
            ("a\nb", 0, false),
        ] {
            assert_eq!(stays_inside(target, depth), inside, "{target:?} at {depth}");
        }
    }
}
