//! Packs of the mirror: one more with every fetch, and consolidated before they are too many.
//!
//! libgit2 has no `gc`. Nothing is ever dropped here, reachable or not: what was deployed may be asked for again.

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use git2::Oid;

use super::git::failed;
use crate::error::{Context as _, Failure, Result};

/// More small packs than this are made one. Each costs an open file and a search at every read.
const MAX_SMALL_PACKS: usize = 32;
/// A pack of this size or more is left alone: writing it again costs more than it saves.
const LARGE_PACK_BYTES: u64 = 16 << 20;
/// And so is one with an object of this size or more, however small it is packed: to write it again, libgit2 unpacks ten of
/// them at once.
const LARGE_OBJECT_BYTES: usize = 8 << 20;
/// Notes are written as loose objects. About so many are packed, and no more at a time than a fetch can wait for.
const MAX_LOOSE_OBJECTS: usize = 2048;
/// Ids spread evenly: what one of the 256 folders holds tells about all, as `git gc --auto` has it.
const SAMPLE: &str = "17";

/// Writes `objects`, read from `source`, into `target` as one pack. `take` is asked before so many bytes are written.
pub(super) fn write(
    source: &git2::Repository,
    target: &git2::Repository,
    objects: &[Oid],
    take: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<()> {
    if objects.is_empty() {
        return Ok(());
    }
    let describe = || format!("cannot copy {} objects into `{}`", objects.len(), target.path().display());
    let mut builder = builder(source, objects).map_err(failed(describe))?;
    let folder = target.path().join("objects/pack");
    fs::create_dir_all(&folder).or_transient(describe)?;
    let mut indexer = git2::Indexer::new(None, &folder, 0o444, false).map_err(failed(describe))?;
    let mut written = Ok(());
    let built = builder.foreach(|bytes| {
        written = take(bytes.len() as u64).and_then(|()| indexer.write_all(bytes).or_transient(describe));
        written.is_ok()
    });
    written?;
    built.map_err(failed(describe))?;
    indexer.commit().map(drop).map_err(failed(describe))
}

/// Those of some objects that must not be unpacked by the dozen.
pub(super) fn large(repository: &git2::Repository, objects: &[Oid]) -> Result<Vec<Oid>, git2::Error> {
    let database = repository.odb()?;
    let mut found = Vec::new();
    for id in objects {
        if database.read_header(*id)?.0 >= LARGE_OBJECT_BYTES {
            found.push(*id);
        }
    }
    Ok(found)
}

/// A pack of `objects`, to be written somewhere.
pub(super) fn builder<'a>(
    repository: &'a git2::Repository,
    objects: &[Oid],
) -> Result<git2::PackBuilder<'a>, git2::Error> {
    let mut builder = repository.packbuilder()?;
    objects.iter().try_for_each(|object| builder.insert_object(*object, None))?;
    Ok(builder)
}

/// What there is to consolidate.
struct Small {
    /// With the size of each one's pack in bytes, smallest first.
    indexes: Vec<(u64, PathBuf)>,
    loose: Vec<(Oid, PathBuf)>,
}

/// Makes one pack of all small ones and of loose objects, if there are many. No other handle may be open.
pub(super) fn consolidate(repository: &git2::Repository) -> Result<()> {
    let objects = repository.path().join("objects");
    let mut small = Small { indexes: small_packs(&objects)?, loose: Vec::new() };
    let sizes: Vec<u64> = small.indexes.iter().map(|(bytes, _)| *bytes).collect();
    small.indexes.truncate(if sizes.len() > MAX_SMALL_PACKS { worth_writing_again(&sizes) } else { 0 });
    if own_loose(&objects, SAMPLE)?.len() > MAX_LOOSE_OBJECTS / 256 {
        small.loose = all_loose(repository, &objects)?;
    }
    let mut ids: Vec<Oid> = small.loose.iter().map(|(id, _)| *id).collect();
    for (bytes, index) in std::mem::take(&mut small.indexes) {
        let held = read_index(&index)?;
        if large_in(repository, &held)?.is_empty() {
            ids.extend(held);
            small.indexes.push((bytes, index));
        } else {
            let keep = keep(&index);
            fs::write(&keep, "").or_transient(|| format!("cannot write `{}`", keep.display()))?;
        }
    }
    if ids.is_empty() {
        return Ok(());
    }
    ids.sort_unstable();
    ids.dedup();
    let kept = write_consolidated(repository, &ids)?;
    remove(&small, &kept)
}

fn large_in(mirror: &git2::Repository, objects: &[Oid]) -> Result<Vec<Oid>> {
    large(mirror, objects).map_err(failed(|| format!("cannot read `{}`", mirror.path().display())))
}

/// The file that says, to Git as well, that a pack is left alone.
fn keep(index: &Path) -> PathBuf {
    index.with_extension("keep")
}

/// How many of the smallest packs are made one, given the sizes of all, smallest first: at least half of them, up to
/// one that is as large as all of those together, else all. So an object is written again only a logarithmic number of
/// times, as by `git repack --geometric`.
fn worth_writing_again(sizes: &[u64]) -> usize {
    let mut smaller = 0;
    for (index, size) in sizes.iter().enumerate() {
        if index >= sizes.len() / 2 && *size >= smaller {
            return index;
        }
        smaller += size;
    }
    sizes.len()
}

/// Writes the new pack and gives the path of its index.
fn write_consolidated(repository: &git2::Repository, ids: &[Oid]) -> Result<PathBuf> {
    let describe = || format!("cannot consolidate `{}`", repository.path().display());
    let folder = repository.path().join("objects/pack");
    let mut builder = builder(repository, ids).map_err(failed(describe))?;
    builder.write(&folder, 0o444).map_err(failed(describe))?;
    let name = builder.name().map_err(failed(describe))?.unwrap_or_default();
    let index = folder.join(format!("pack-{name}.idx"));
    let complete = read_index(&index)?.len() == ids.len();
    if complete { Ok(index) } else { Err(Failure::transient(describe())) }
}

/// An index goes before its pack: without it, the pack is not seen.
fn remove(small: &Small, kept: &Path) -> Result<()> {
    let indexes = small.indexes.iter().map(|(_, index)| index).filter(|index| *index != kept);
    let packs = indexes.clone().map(|index| index.with_extension("pack"));
    let loose = small.loose.iter().map(|(_, path)| path.clone());
    for path in indexes.cloned().chain(packs).chain(loose) {
        fs::remove_file(&path).or_transient(|| format!("cannot remove `{}`", path.display()))?;
    }
    Ok(())
}

/// The indexes of small packs, the smallest pack first.
fn small_packs(objects: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let indexes = list(&objects.join("pack"))?.into_iter().filter(|path| path.extension() == Some("idx".as_ref()));
    let mut small: Vec<_> = indexes
        .filter_map(|path| Some((fs::metadata(path.with_extension("pack")).ok()?.len(), path)))
        .filter(|(bytes, index)| *bytes < LARGE_PACK_BYTES && !keep(index).exists())
        .collect();
    small.sort();
    Ok(small)
}

fn all_loose(mirror: &git2::Repository, objects: &Path) -> Result<Vec<(Oid, PathBuf)>> {
    let mut found = Vec::new();
    for folder in 0..=255_u8 {
        let mut own = own_loose(objects, &format!("{folder:02x}"))?;
        let large = large_in(mirror, &own.iter().map(|(id, _)| *id).collect::<Vec<_>>())?;
        own.retain(|(id, _)| !large.contains(id));
        found.extend(own);
    }
    found.truncate(MAX_LOOSE_OBJECTS);
    Ok(found)
}

/// The loose objects of one folder that are not shared with the user's repository: those cost no space.
fn own_loose(objects: &Path, folder: &str) -> Result<Vec<(Oid, PathBuf)>> {
    let path = objects.join(folder);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let own = |path: &PathBuf| fs::metadata(path).is_ok_and(|file| file.nlink() == 1);
    let object = |path: PathBuf| Some((loose_id(folder, &path)?, path));
    Ok(list(&path)?.into_iter().filter(own).filter_map(object).collect())
}

fn loose_id(folder: &str, path: &Path) -> Option<Oid> {
    let rest = path.file_name()?.to_str()?;
    (rest.len() == 38).then(|| Oid::from_str(&format!("{folder}{rest}")).ok()).flatten()
}

fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let describe = || format!("cannot read the folder `{}`", folder.display());
    let entries = fs::read_dir(folder).or_transient(describe)?;
    entries.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<_>>().or_transient(describe)
}

/// All ids in a pack's index.
fn read_index(path: &Path) -> Result<Vec<Oid>> {
    let mut index = Index::open(path)?;
    index.ids(0..index.total())
}

/// Those of some objects that a pack has, by its index.
pub(super) fn held(index: &Path, objects: &[Oid]) -> Result<Vec<Oid>> {
    let mut index = Index::open(index)?;
    let mut objects = objects.to_vec();
    objects.sort_unstable();
    let (mut range, mut ids, mut found) = (0..0, Vec::new(), Vec::new());
    for id in objects {
        let beside = index.beside(id);
        if beside != range {
            (range, ids) = (beside.clone(), index.ids(beside)?);
        }
        if ids.binary_search(&id).is_ok() {
            found.push(id);
        }
    }
    Ok(found)
}

/// A pack's index of version 2: a header of 8 bytes, then for each first byte of an id how many ids begin with it or one
/// before, 4 bytes each, then the ids, sorted.
struct Index<'a> {
    path: &'a Path,
    file: fs::File,
    counts: Vec<u32>,
}

impl<'a> Index<'a> {
    const HEADER: &'static [u8; 8] = b"\xfftOc\0\0\0\x02";
    const TABLE: usize = Self::HEADER.len() + 256 * 4;

    fn open(path: &'a Path) -> Result<Self> {
        let describe = || format!("cannot read `{}`", path.display());
        let mut file = fs::File::open(path).or_transient(describe)?;
        let mut table = [0; Self::TABLE];
        file.read_exact(&mut table).or_stalled(describe)?;
        let (header, table) = table.split_at(Self::HEADER.len());
        let counts = table.as_chunks().0.iter().map(|bytes| u32::from_be_bytes(*bytes)).collect();
        let index = Self { path, file, counts };
        if header == Self::HEADER { Ok(index) } else { Err(index.damaged()) }
    }

    fn damaged(&self) -> Failure {
        Failure::stalled(format!("the pack index `{}` is damaged", self.path.display()))
    }

    fn total(&self) -> u32 {
        self.counts.last().copied().unwrap_or_default()
    }

    /// Where the ids are that begin as this one.
    fn beside(&self, id: Oid) -> Range<u32> {
        let first = usize::from(id.as_bytes().first().copied().unwrap_or_default());
        let count = |at: usize| self.counts.get(at).copied().unwrap_or_default();
        first.checked_sub(1).map_or(0, count)..count(first)
    }

    fn ids(&mut self, range: Range<u32>) -> Result<Vec<Oid>> {
        let describe = || format!("cannot read `{}`", self.path.display());
        let count = range.end.saturating_sub(range.start);
        let begin = Self::TABLE as u64 + u64::from(range.start) * 20;
        self.file.seek(SeekFrom::Start(begin)).or_transient(describe)?;
        let mut ids = Vec::new();
        (&self.file).take(u64::from(count) * 20).read_to_end(&mut ids).or_transient(describe)?;
        let ids: Vec<Oid> = ids.chunks_exact(20).filter_map(|bytes| Oid::from_bytes(bytes).ok()).collect();
        if u32::try_from(ids.len()) == Ok(count) { Ok(ids) } else { Err(self.damaged()) }
    }
}

#[cfg(test)]
mod tests {
    use super::worth_writing_again;

    #[test]
    fn large_packs_stay_until_as_much_has_come_after_them() {
        assert_eq!(worth_writing_again(&[]), 0);
        assert_eq!(worth_writing_again(&[1, 1, 1, 1, 1_000_000]), 4, "the large one stays");
        assert_eq!(worth_writing_again(&[1, 1, 1, 1, 3]), 5, "it is smaller than all others together");
        assert_eq!(worth_writing_again(&[1, 1, 1, 1, 70, 90]), 4, "two large ones stay");
        assert_eq!(worth_writing_again(&[1, 2, 90, 90, 90, 90]), 6, "too few would be saved");
    }

    #[test]
    fn each_object_is_written_again_a_logarithmic_number_of_times() {
        let (mut packs, mut written) = (Vec::new(), 0);
        for _ in 0..10_000 {
            packs.push(1_u64);
            packs.sort_unstable();
            if packs.len() > super::MAX_SMALL_PACKS {
                let smallest = worth_writing_again(&packs);
                let one: u64 = packs.drain(..smallest).sum();
                written += one;
                packs.push(one);
            }
            assert!(packs.len() <= super::MAX_SMALL_PACKS);
        }
        assert!(written < 5 * 10_000, "{written}");
    }
}
