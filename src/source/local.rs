//! Taking over what a repository on this machine has.
//!
//! The mirror never borrows objects from the user's repository (`objects/info/alternates`): a `git gc` there after a
//! rewritten branch would take away what is deployed. The first time, its packs and loose objects are hard-linked, as
//! `git clone` does on one machine, which costs neither time nor space; after that only what a push added is copied,
//! as one pack.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;

use git2::{ObjectType, Oid};

use super::git::{existing, failed};
use super::packs;
use crate::error::{Context as _, Result};

/// Takes over the commit `id` with its history from `source`.
pub(super) fn import(source: &git2::Repository, mirror: &git2::Repository, id: Oid) -> Result<()> {
    let is_new = mirror.references().map_err(failed(|| "cannot read the mirror".to_owned()))?.next().is_none();
    let objects = source.commondir().join("objects");
    // What a repository borrows itself is not under its own folder.
    let borrows = objects.join("info/alternates").exists();
    if is_new && !borrows {
        link_objects(&objects, &mirror.path().join("objects"))?;
    }
    copy_shallow_bounds(source, mirror)?;
    copy_missing(source, mirror, id)
}

/// A shallow clone stays readable when it is known where its history ends.
fn copy_shallow_bounds(source: &git2::Repository, mirror: &git2::Repository) -> Result<()> {
    let (from, to) = (source.commondir().join("shallow"), mirror.path().join("shallow"));
    match fs::read(&from) {
        Ok(bounds) => fs::write(&to, bounds).or_transient(|| format!("cannot write `{}`", to.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).or_stalled(|| format!("cannot read `{}`", from.display())),
    }
}

/// Links every object file, or copies it where links are not possible. A pack's index comes last, because it is what
/// makes the pack seen.
fn link_objects(from: &Path, to: &Path) -> Result<()> {
    for folder in folders_of_objects(from)? {
        let (from, to) = (from.join(&folder), to.join(&folder));
        fs::create_dir_all(&to).or_transient(|| format!("cannot create `{}`", to.display()))?;
        let mut names = file_names(&from)?;
        names.retain(|name| folder != "pack" || name.ends_with(".pack") || name.ends_with(".idx"));
        names.sort_by_key(|name| name.ends_with(".idx"));
        for name in names {
            link(&from.join(&name), &to.join(&name))?;
        }
    }
    Ok(())
}

fn folders_of_objects(objects: &Path) -> Result<Vec<String>> {
    let mut names = file_names(objects)?;
    names.retain(|name| name == "pack" || (name.len() == 2 && name.bytes().all(|digit| digit.is_ascii_hexdigit())));
    Ok(names)
}

fn file_names(folder: &Path) -> Result<Vec<String>> {
    let describe = || format!("cannot read the folder `{}`", folder.display());
    let entries = fs::read_dir(folder).or_stalled(describe)?;
    let name = |entry: io::Result<fs::DirEntry>| entry.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names = entries.map(name).collect::<io::Result<Vec<_>>>().or_stalled(describe)?;
    // Of files that are being written.
    names.retain(|name| !name.starts_with("tmp_") && !name.starts_with('.'));
    Ok(names)
}

fn link(from: &Path, to: &Path) -> Result<()> {
    let done = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // A repack moved it meanwhile; what is missing then is copied object by object.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    let linked = done(fs::hard_link(from, to));
    linked.or_else(|_other_device| done(copy(from, to))).or_transient(|| format!("cannot write `{}`", to.display()))
}

/// Copies under another name first: a half-written object must not be taken for one.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let partial = to.with_extension("partial");
    fs::copy(from, &partial)?;
    fs::rename(&partial, to)
}

/// Packs what `id` needs and the mirror lacks. What the mirror has of a tree it has whole, because packs appear whole.
fn copy_missing(source: &git2::Repository, mirror: &git2::Repository, id: Oid) -> Result<()> {
    let describe = || format!("cannot read the history of `{id}` in `{}`", source.path().display());
    let mut missing =
        Missing { source, have: mirror.odb().map_err(failed(describe))?, found: Vec::new(), seen: HashSet::new() };
    for commit in new_commits(source, mirror, id).map_err(failed(describe))? {
        missing.commit(commit).map_err(failed(describe))?;
    }
    packs::write(source, mirror, &missing.found)
}

/// The commits of `id`'s history that no reference of the mirror reaches.
fn new_commits(source: &git2::Repository, mirror: &git2::Repository, id: Oid) -> Result<Vec<Oid>, git2::Error> {
    let mut walk = source.revwalk()?;
    walk.push(id)?;
    for reference in mirror.references()? {
        // A commit that was rewritten away is not in the source any more, and hides nothing there.
        if let Some(known) = reference?.target().filter(|known| source.find_commit(*known).is_ok()) {
            walk.hide(known)?;
        }
    }
    walk.collect()
}

struct Missing<'a> {
    source: &'a git2::Repository,
    have: git2::Odb<'a>,
    found: Vec<Oid>,
    seen: HashSet<Oid>,
}

impl Missing<'_> {
    fn is_new(&mut self, id: Oid) -> bool {
        !self.have.exists_ext(id, git2::OdbLookupFlags::NO_REFRESH) && self.seen.insert(id)
    }

    fn commit(&mut self, id: Oid) -> Result<(), git2::Error> {
        if self.is_new(id) {
            self.found.push(id);
            self.tree(self.source.find_commit(id)?.tree_id())?;
        }
        Ok(())
    }

    fn tree(&mut self, root: Oid) -> Result<(), git2::Error> {
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            if !self.is_new(id) {
                continue;
            }
            self.found.push(id);
            let Some(tree) = existing(self.source.find_tree(id))? else { continue };
            for entry in &tree {
                match entry.kind() {
                    Some(ObjectType::Tree) => open.push(entry.id()),
                    Some(ObjectType::Blob) if self.is_new(entry.id()) => self.found.push(entry.id()),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
