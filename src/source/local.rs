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

use git2::Oid;

use super::git::failed;
use super::history::commits_beyond;
use super::notes::NOTES_REF;
use super::packs;
use super::tree::each_new_object;
use crate::error::{Context as _, Result};

/// Takes over the commit `id`, which `reference` of `source` points at, with its history.
pub(super) fn import(source: &git2::Repository, mirror: &git2::Repository, reference: &str, id: Oid) -> Result<()> {
    let is_new = mirror.references().map_err(failed(|| "cannot read the mirror".to_owned()))?.next().is_none();
    let objects = source.commondir().join("objects");
    // What a repository borrows itself is not under its own folder.
    let linked = is_new && !objects.join("info/alternates").exists();
    if linked {
        link_objects(&objects, &mirror.path().join("objects"))?;
    }
    copy_shallow_bounds(source, mirror)?;
    let describe = || format!("cannot read the history of `{id}` in `{}`", source.path().display());
    let missing = find_missing(source, mirror, (reference, id), linked).map_err(failed(describe))?;
    packs::write(source, mirror, &missing)
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

/// Links every object file, or copies it where links are not possible. Loose objects come first, because they move
/// into packs and never back.
fn link_objects(from: &Path, to: &Path) -> Result<()> {
    let is_loose = |name: &String| name.len() == 2 && name.bytes().all(|digit| digit.is_ascii_hexdigit());
    for folder in file_names(from)?.iter().filter(|name| is_loose(name)) {
        let names = file_names(&from.join(folder))?;
        link_files(&from.join(folder), &to.join(folder), &names)?;
    }
    let (from, to) = (from.join("pack"), to.join("pack"));
    let (indexes, packs) = file_names(&from)?.into_iter().partition::<Vec<_>, _>(|name| name.ends_with(".idx"));
    let packs: Vec<_> = packs.into_iter().filter(|name| name.ends_with(".pack")).collect();
    // The index is what makes a pack seen.
    link_files(&from, &to, &packs)?;
    link_files(&from, &to, &indexes)
}

fn link_files(from: &Path, to: &Path, names: &[String]) -> Result<()> {
    fs::create_dir_all(to).or_transient(|| format!("cannot create `{}`", to.display()))?;
    names.iter().try_for_each(|name| link(&from.join(name), &to.join(name)))
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
        // A repack moved it meanwhile; what is missing then is copied object by object.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    let linked = fs::hard_link(from, to).or_else(|error| match error.kind() {
        // Left by an import that was cut short; the source may have been repaired since.
        io::ErrorKind::AlreadyExists => fs::remove_file(to).and_then(|()| fs::hard_link(from, to)),
        _ => Err(error),
    });
    done(linked)
        .or_else(|_other_device| done(copy(from, to)))
        .or_transient(|| format!("cannot write `{}`", to.display()))
}

/// Copies under another name first: a half-written object must not be taken for one.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let partial = to.with_extension("partial");
    fs::copy(from, &partial)?;
    fs::rename(&partial, to)
}

/// The objects of `id`'s history that the mirror lacks.
///
/// That the mirror has an object does not mean that it has what the object refers to: files may have been linked
/// while a push was moving its own into the source. So trees are compared with those of parents that are known whole,
/// not just looked up. Of a history that was linked a moment ago, only the head's tree is looked through; older ones
/// were complete long before.
fn find_missing(
    source: &git2::Repository,
    mirror: &git2::Repository,
    (reference, id): (&str, Oid),
    linked: bool,
) -> Result<Vec<Oid>, git2::Error> {
    let have = mirror.odb()?;
    if linked {
        have.refresh()?; // it does not know yet what was linked
    }
    let mut missing = Missing { source, have, found: Vec::new(), seen: HashSet::new() };
    for commit in new_commits(source, mirror, reference, id)? {
        missing.add(commit);
        if !linked || commit == id {
            missing.add_tree_of(commit, linked)?;
        }
    }
    Ok(missing.found)
}

/// The commits of `id`'s history that no reference of the mirror reaches. Notes have a history of their own: what is older
/// than they are would be compared with all of it.
fn new_commits(
    source: &git2::Repository,
    mirror: &git2::Repository,
    reference: &str,
    id: Oid,
) -> Result<Vec<Oid>, git2::Error> {
    let mut known = Vec::new();
    for here in mirror.references()? {
        let here = here?;
        let is_related = (here.name() == Ok(NOTES_REF)) == (reference == NOTES_REF);
        known.extend(here.target().filter(|_| is_related));
    }
    commits_beyond(source, id, known)
}

struct Missing<'a> {
    source: &'a git2::Repository,
    have: git2::Odb<'a>,
    found: Vec<Oid>,
    seen: HashSet<Oid>,
}

impl Missing<'_> {
    /// Notes an object if it is absent; false if it was noted before.
    fn add(&mut self, id: Oid) -> bool {
        let is_first = self.seen.insert(id);
        if is_first && !self.have.exists_ext(id, git2::OdbLookupFlags::NO_REFRESH) {
            self.found.push(id);
        }
        is_first
    }

    fn add_tree_of(&mut self, commit: Oid, whole: bool) -> Result<(), git2::Error> {
        let commit = self.source.find_commit(commit)?;
        // In a shallow clone, a parent may be named and not be there.
        let parent = if whole { None } else { commit.parent(0).ok().map(|parent| parent.tree_id()) };
        each_new_object(self.source, parent, commit.tree_id(), |id| self.add(id))
    }
}
