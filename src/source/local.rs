//! Taking over what a repository on this machine has.
//!
//! The mirror never borrows objects from the user's repository (`objects/info/alternates`): a `git gc` there after a
//! rewritten branch would take away what is deployed. The first time, its packs and loose objects are hard-linked, as
//! `git clone` does on one machine, which costs neither time nor space; after that only what a push added is copied,
//! as one pack. What is large there is not unpacked for that: the file that holds it is linked, too.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use git2::Oid;

use super::git::failed;
use super::history::commits_beyond;
use super::notes::NOTES_REF;
use super::packs;
use super::transport::smart::too_much;
use super::tree::each_new_object;
use crate::error::{Context as _, Result};

/// Of so many repositories it is known from which others they borrow in turn. Git follows five, one after the other.
const MAX_BORROWED: usize = 16;

/// Takes over the commit `id`, which `reference` of `source` points at, with its history, unless that comes to more than
/// `most` bytes. Whole files that are linked the first time take no space, and do not count.
pub(super) fn import(
    source: &git2::Repository,
    mirror: &git2::Repository,
    (reference, id): (&str, Oid),
    most: u64,
) -> Result<()> {
    let is_new = mirror.references().map_err(failed(|| "cannot read the mirror".to_owned()))?.next().is_none();
    let objects = source.commondir().join("objects");
    let mut left = most;
    let mut take = |bytes: u64| match left.checked_sub(bytes) {
        Some(rest) => {
            left = rest;
            Ok(())
        }
        None => Err(too_much(source.workdir().unwrap_or_else(|| source.path()).display(), most)),
    };
    // What a repository borrows itself is not under its own folder.
    let linked = is_new && !objects.join("info/alternates").exists();
    if linked {
        link_objects(&objects, &mirror.path().join("objects"), &mut take)?;
    }
    copy_shallow_bounds(source, mirror)?;
    let describe = || format!("cannot read the history of `{id}` in `{}`", source.path().display());
    let mut missing = find_missing(source, mirror, (reference, id), linked).map_err(failed(describe))?;
    let large = packs::large(source, &missing).map_err(failed(describe))?;
    let holders = Holders::of(&objects, large, &missing)?;
    take(holders.bytes())?;
    missing.retain(|id| !holders.held.contains(id));
    packs::write(source, mirror, &missing, &mut take)?;
    // Last, so that nothing of what is refused is here the next time, and not counted then.
    holders.link_into(&mirror.path().join("objects"))
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

/// Asked before so many bytes are taken over; refuses what is too much.
type Take<'a> = &'a mut dyn FnMut(u64) -> Result<()>;

/// Links every object file, or copies it where links are not possible. Loose objects come first, because they move
/// into packs and never back.
fn link_objects(from: &Path, to: &Path, take: Take<'_>) -> Result<()> {
    let is_loose = |name: &String| name.len() == 2 && name.bytes().all(|digit| digit.is_ascii_hexdigit());
    for folder in file_names(from)?.iter().filter(|name| is_loose(name)) {
        let names = file_names(&from.join(folder))?;
        link_files(&from.join(folder), &to.join(folder), &names, take)?;
    }
    let (from, to) = (from.join("pack"), to.join("pack"));
    let (indexes, packs) = file_names(&from)?.into_iter().partition::<Vec<_>, _>(|name| name.ends_with(".idx"));
    let packs: Vec<_> = packs.into_iter().filter(|name| name.ends_with(".pack")).collect();
    // The index is what makes a pack seen.
    link_files(&from, &to, &packs, take)?;
    link_files(&from, &to, &indexes, take)
}

fn link_files(from: &Path, to: &Path, names: &[String], take: Take<'_>) -> Result<()> {
    fs::create_dir_all(to).or_transient(|| format!("cannot create `{}`", to.display()))?;
    names.iter().try_for_each(|name| link(&from.join(name), &to.join(name), take))
}

/// The files that hold large objects: each its own, or a pack.
#[derive(Default)]
struct Holders {
    /// Each with the folder of objects that its name begins at.
    files: Vec<(PathBuf, String)>,
    /// What is in them of all that is missing.
    held: HashSet<Oid>,
}

impl Holders {
    fn of(objects: &Path, mut wanted: Vec<Oid>, missing: &[Oid]) -> Result<Self> {
        let mut holders = Self::default();
        let folders = if wanted.is_empty() { Vec::new() } else { object_folders(objects) };
        for folder in folders {
            for id in &wanted {
                if folder.join(loose_name(*id)).exists() {
                    holders.files.push((folder.clone(), loose_name(*id)));
                    holders.held.insert(*id);
                }
            }
            wanted.retain(|id| !holders.held.contains(id));
            for pack in file_names(&folder.join("pack"))?.iter().filter_map(|name| name.strip_suffix(".idx")) {
                holders.add_pack(&folder, pack, &wanted, missing);
                wanted.retain(|id| !holders.held.contains(id));
            }
        }
        Ok(holders)
    }

    /// Adds a pack if it has something that is wanted. One whose index is of an old format is left to libgit2, which unpacks
    /// what is in it.
    fn add_pack(&mut self, folder: &Path, pack: &str, wanted: &[Oid], missing: &[Oid]) {
        let index = folder.join(format!("pack/{pack}.idx"));
        let held = |objects: &[Oid]| packs::held(&index, objects).unwrap_or_default();
        if !wanted.is_empty() && !held(wanted).is_empty() {
            // The index is what makes a pack seen.
            self.files.extend(["pack", "idx"].map(|end| (folder.to_owned(), format!("pack/{pack}.{end}"))));
            self.held.extend(held(missing));
        }
    }

    fn bytes(&self) -> u64 {
        self.files.iter().map(|(folder, name)| fs::metadata(folder.join(name)).map_or(0, |file| file.len())).sum()
    }

    fn link_into(&self, objects: &Path) -> Result<()> {
        self.files.iter().try_for_each(|(folder, name)| {
            let to = objects.join(name);
            let made = to.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
                let from = folder.join(name);
                hard_link(&from, &to).or_else(|_| copy(&from, &to))
            });
            made.or_transient(|| format!("cannot write `{}`", to.display()))
        })
    }
}

/// Where a repository's objects are: in its own folder, and in those of the repositories that it borrows from.
fn object_folders(own: &Path) -> Vec<PathBuf> {
    let mut folders = vec![own.to_owned()];
    for next in 0..MAX_BORROWED {
        let Some(folder) = folders.get(next).cloned() else { break };
        let borrowed = fs::read_to_string(folder.join("info/alternates")).unwrap_or_default();
        let named = borrowed.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        folders.extend(named.map(|line| folder.join(line)));
    }
    folders.retain(|folder| folder.join("pack").is_dir());
    folders
}

/// The path of an object's own file.
fn loose_name(id: Oid) -> String {
    let id = id.to_string();
    let (folder, file) = id.split_at(2);
    format!("{folder}/{file}")
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

fn link(from: &Path, to: &Path, take: Take<'_>) -> Result<()> {
    let done = |result: io::Result<()>| match result {
        // A repack moved it meanwhile; what is missing then is copied object by object.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    if done(hard_link(from, to)).is_ok() {
        return Ok(());
    }
    // On another device, or of another user.
    take(fs::metadata(from).map_or(0, |file| file.len()))?;
    done(copy(from, to)).or_transient(|| format!("cannot write `{}`", to.display()))
}

fn hard_link(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to).or_else(|error| match error.kind() {
        // Left by an import that was cut short; the source may have been repaired since.
        io::ErrorKind::AlreadyExists => fs::remove_file(to).and_then(|()| fs::hard_link(from, to)),
        _ => Err(error),
    })
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
