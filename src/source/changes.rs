//! What differs between two trees.

use std::cmp::Ordering;

use git2::Oid;

use super::ObjectId;
use super::history::Repository;
use super::tree::{Child, ChildKind, Entry, Tree, check_count, check_depth, children, joined};
use crate::error::Result;

/// A path that differs between two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// The path from the root.
    pub path: String,
    /// What was there.
    pub old: Option<Entry>,
    /// What is there now.
    pub new: Option<Entry>,
}

/// Compares two trees; folders with the same id are not opened.
pub(super) fn changed_paths(old: &Tree<'_>, new: &Tree<'_>) -> Result<Vec<PathChange>> {
    let mut comparison = Comparison { repository: new.repository, seen: 0, changes: Vec::new() };
    comparison.folders(Some(old.id.oid()?), Some(new.id.oid()?), "", 0)?;
    comparison.changes.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(comparison.changes)
}

struct Comparison<'r> {
    repository: &'r Repository,
    seen: usize,
    changes: Vec<PathChange>,
}

impl Comparison<'_> {
    fn folders(&mut self, old: Option<Oid>, new: Option<Oid>, path: &str, depth: usize) -> Result<()> {
        if old == new {
            return Ok(());
        }
        check_depth(self.repository.limits, depth, path)?;
        let mut old = self.sorted(old, path)?.into_iter().peekable();
        let mut new = self.sorted(new, path)?.into_iter().peekable();
        loop {
            let (before, after) = match (old.peek(), new.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => (old.next(), None),
                (None, Some(_)) => (None, new.next()),
                (Some(before), Some(after)) => match before.name.cmp(&after.name) {
                    Ordering::Less => (old.next(), None),
                    Ordering::Greater => (None, new.next()),
                    Ordering::Equal => (old.next(), new.next()),
                },
            };
            self.entries(before, after, path, depth)?;
        }
    }

    fn sorted(&self, folder: Option<Oid>, path: &str) -> Result<Vec<Child>> {
        let mut entries = match folder {
            Some(id) => children(self.repository, id, path)?,
            None => Vec::new(),
        };
        // Git sorts folders as if their names ended in a slash; here a file and a folder of one name must meet.
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    fn entries(&mut self, old: Option<Child>, new: Option<Child>, folder: &str, depth: usize) -> Result<()> {
        let same = |old: &Child, new: &Child| old.id == new.id && old.kind == new.kind;
        let name = old.as_ref().or(new.as_ref()).map(|child| child.name.clone()).unwrap_or_default();
        if old.as_ref().zip(new.as_ref()).is_some_and(|(old, new)| same(old, new)) {
            return Ok(());
        }
        self.seen += 1;
        check_count(self.repository.limits, self.seen)?;
        let path = joined(folder, &name);
        let folder_id = |child: &Option<Child>| {
            child.as_ref().filter(|child| child.kind == ChildKind::Folder).map(|child| child.id)
        };
        self.folders(folder_id(&old), folder_id(&new), &path, depth + 1)?;
        let (old, new) = (leaf(old, &path), leaf(new, &path));
        if old.is_some() || new.is_some() {
            self.changes.push(PathChange { path, old, new });
        }
        Ok(())
    }
}

fn leaf(child: Option<Child>, path: &str) -> Option<Entry> {
    let child = child?;
    match child.kind {
        ChildKind::Folder => None,
        ChildKind::Leaf(kind) => Some(Entry { path: path.to_owned(), kind, id: ObjectId::from(child.id) }),
    }
}
