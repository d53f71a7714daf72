//! Archives: `tar`, plain or compressed by gzip, from people who may mean harm.

use std::cell::Cell;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

use super::disk::{copy_bounded, on_disk};
use super::limits::{Budget, Limits};
use crate::error::{Failure, Result};

/// The most bytes between the contents of two entries: the headers of one, with its name and its target.
const MAX_HEADERS: u64 = 1 << 20;
/// The first bytes of gzip: RFC 1952, 2.3.1.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Unpacks an archive into an empty folder. Owners and times are not kept.
pub(super) fn extract(archive: &Path, into: &Path, limits: Limits) -> Result<()> {
    let reader = open(archive).map_err(on_disk(|| format!("cannot read `{}`", archive.display())))?;
    let mut unpacking = Unpacking { into, budget: Budget::new(limits) };
    let allowance = Allowance::default();
    let mut archive = Archive::new(Metered { reader, allowance: allowance.clone() });
    let mut entries = archive.entries().map_err(damaged)?;
    loop {
        allowance.set(MAX_HEADERS);
        let Some(entry) = entries.next() else { return Ok(()) };
        let mut entry = entry.map_err(|error| if allowance.get() == 0 { overlong() } else { damaged(error) })?;
        // What it holds is counted as it is written.
        allowance.set(u64::MAX);
        unpacking.entry(&mut entry)?;
    }
}

/// How many bytes may be read still.
type Allowance = Rc<Cell<u64>>;

/// A reader that fails where its allowance ends: long names and other extended headers are read into memory whole.
struct Metered<R> {
    reader: R,
    allowance: Allowance,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let allowed = self.allowance.get();
        if allowed == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let room = usize::try_from(allowed).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.reader.read(buffer.get_mut(..room).unwrap_or_default())?;
        self.allowance.set(allowed - count as u64);
        Ok(count)
    }
}

fn overlong() -> Failure {
    Failure::stalled(format!("the archive has headers of more than {MAX_HEADERS} bytes for one entry"))
        .hint("names are shorter than that in an archive that `tar` makes")
}

fn open(archive: &Path) -> io::Result<Box<dyn Read>> {
    let mut file = File::open(archive)?;
    let mut magic = [0; 2];
    let is_gzip = file.read_exact(&mut magic).is_ok() && magic == GZIP;
    file.rewind()?;
    let reader = BufReader::with_capacity(64 << 10, file);
    Ok(if is_gzip { Box::new(MultiGzDecoder::new(reader)) } else { Box::new(reader) })
}

fn damaged(error: io::Error) -> Failure {
    Failure::stalled("the archive cannot be read")
        .because(error)
        .hint("it must be a tar archive, plain or compressed by gzip")
}

fn refused(path: &Path, what: &str) -> Failure {
    Failure::stalled(format!("the archive's `{}` {what}", path.display().to_string().escape_debug()))
}

struct Unpacking<'a> {
    into: &'a Path,
    budget: Budget,
}

impl Unpacking<'_> {
    fn entry<R: Read>(&mut self, entry: &mut Entry<'_, R>) -> Result<()> {
        let kind = entry.header().entry_type();
        if matches!(kind, EntryType::XGlobalHeader) {
            return Ok(());
        }
        let path = entry.path().map_err(damaged)?.into_owned();
        let Some(inside) = normal(&path) else { return Err(refused(&path, "leads out of it")) };
        self.budget.take_entry(inside.components().count())?;
        if inside.as_os_str().is_empty() {
            return Ok(());
        }
        let failed = || format!("cannot unpack `{}`", inside.display());
        self.make_parents(&inside)?;
        let place = self.into.join(&inside);
        match kind {
            EntryType::Directory => make_folder(&place).map_err(on_disk(failed)),
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => self.file(entry, &place, failed),
            EntryType::Symlink => self.link(entry, &inside, &place),
            EntryType::Link => self.hard_link(entry, &inside, &place),
            _ => Err(refused(&inside, "is neither file, folder nor link")),
        }
    }

    fn file<R: Read>(&mut self, entry: &mut Entry<'_, R>, place: &Path, failed: impl Fn() -> String) -> Result<()> {
        let executable = entry.header().mode().map_err(damaged)? & 0o111 != 0;
        let mode = if executable { 0o755 } else { 0o644 };
        remove_other(place).map_err(on_disk(&failed))?;
        let options = OpenOptions::new().write(true).create_new(true).mode(mode).open(place);
        copy_bounded(entry, &mut options.map_err(on_disk(&failed))?, &mut self.budget, |_| ()).map_err(|error| {
            match error {
                super::disk::CopyError::Read(error) => damaged(error),
                super::disk::CopyError::Write(error) => on_disk(&failed)(error),
                super::disk::CopyError::Limit(failure) => failure,
            }
        })
    }

    /// A link's target must stay inside, as far as its text tells; what it really leads to is checked at the end.
    fn link<R: Read>(&self, entry: &Entry<'_, R>, inside: &Path, place: &Path) -> Result<()> {
        let target = link_target(entry, inside)?;
        let from = inside.parent().unwrap_or(Path::new(""));
        if !stays_inside(from, &target) {
            return Err(refused(inside, "is a link that leads out of it"));
        }
        remove_other(place)
            .and_then(|()| symlink(&target, place))
            .map_err(on_disk(|| format!("cannot unpack `{}`", inside.display())))
    }

    /// Refers to a file that came earlier, by its name in the archive.
    fn hard_link<R: Read>(&self, entry: &Entry<'_, R>, inside: &Path, place: &Path) -> Result<()> {
        let target = link_target(entry, inside)?;
        let Some(target) = normal(&target) else { return Err(refused(inside, "is a link that leads out of it")) };
        self.make_parents(&target)?;
        let original = self.into.join(&target);
        if !fs::symlink_metadata(&original).is_ok_and(|file| file.is_file()) {
            return Err(refused(inside, "is a link to a file that did not come before it"));
        }
        if original == place {
            return Ok(());
        }
        remove_other(place)
            .and_then(|()| fs::hard_link(&original, place))
            .map_err(on_disk(|| format!("cannot unpack `{}`", inside.display())))
    }

    /// Makes the folders above a path. Nothing is ever written through a link.
    fn make_parents(&self, inside: &Path) -> Result<()> {
        let mut place = self.into.to_owned();
        for component in inside.parent().into_iter().flat_map(Path::components) {
            place.push(component);
            match fs::symlink_metadata(&place) {
                Ok(file) if file.is_dir() => {}
                Ok(_) => return Err(refused(inside, "lies below something that is no folder")),
                Err(_) => make_folder(&place).map_err(on_disk(|| format!("cannot unpack `{}`", inside.display())))?,
            }
        }
        Ok(())
    }
}

fn link_target<R: Read>(entry: &Entry<'_, R>, inside: &Path) -> Result<PathBuf> {
    let target = entry.link_name().map_err(damaged)?;
    target.map(std::borrow::Cow::into_owned).ok_or_else(|| refused(inside, "is a link to nothing"))
}

/// A path without `.`; `None` if it is absolute or has `..`.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(normal)
}

/// Whether a relative path, seen from a folder inside, does not climb above the top.
fn stays_inside(from: &Path, target: &Path) -> bool {
    let mut depth = from.components().count();
    for component in target.components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    true
}

fn make_folder(place: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o755).create(place) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && place.is_dir() => Ok(()),
        made => made,
    }
}

/// Later entries of the same name win, as with `tar` itself.
fn remove_other(place: &Path) -> io::Result<()> {
    match fs::remove_file(place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use tar::{Builder, Header};

    /// An entry: kind, path, content or target, mode.
    type Item<'a> = (EntryType, &'a str, &'a str, u32);

    /// Writes names as they are: the builder's own methods would refuse the hostile ones.
    fn archive(items: &[Item<'_>]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (kind, path, text, mode) in items {
            let mut header = Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(*mode);
            header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
            let is_link = matches!(kind, EntryType::Symlink | EntryType::Link);
            if is_link {
                header.as_mut_bytes()[157..157 + text.len()].copy_from_slice(text.as_bytes());
            }
            let content = if is_link { "" } else { text };
            header.set_size(content.len() as u64);
            header.set_cksum();
            builder.append(&header, content.as_bytes()).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn unpack(bytes: &[u8], limits: Limits) -> (tempfile::TempDir, Result<()>) {
        let folder = tempfile::tempdir().unwrap();
        let (file, into) = (folder.path().join("archive"), folder.path().join("tree"));
        fs::write(&file, bytes).unwrap();
        fs::create_dir(&into).unwrap();
        let result = extract(&file, &into, limits);
        (folder, result)
    }

    const FILE: EntryType = EntryType::Regular;

    #[test]
    fn files_folders_and_links_come_out_and_gzip_is_noticed() {
        let plain = archive(&[
            (EntryType::Directory, "./", "", 0o755),
            (EntryType::Directory, "./bin/", "", 0o700),
            (FILE, "./bin/launch", "#!/bin/sh\n", 0o4755),
            (FILE, "lib/deep/data", "1", 0o600),
            (FILE, "lib/deep/data", "2", 0o600),
            (EntryType::Symlink, "lib/up", "../bin/launch", 0o777),
            (EntryType::Link, "same", "./lib/deep/data", 0o600),
        ]);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        io::Write::write_all(&mut gzip, &plain).unwrap();
        for bytes in [plain, gzip.finish().unwrap()] {
            let (folder, result) = unpack(&bytes, Limits::default());
            result.unwrap();
            let tree = folder.path().join("tree");
            let mode =
                std::os::unix::fs::PermissionsExt::mode(&fs::metadata(tree.join("bin/launch")).unwrap().permissions());
            assert_eq!(mode & 0o7111, 0o111);
            assert_eq!(fs::read_to_string(tree.join("lib/up")).unwrap(), "#!/bin/sh\n");
            assert_eq!(fs::read_to_string(tree.join("same")).unwrap(), "2");
        }
    }

    #[test]
    fn whatever_leads_out_is_refused() {
        let cases: [(&[Item<'_>], &str); 9] = [
            (&[(FILE, "/etc/x", "", 0o644)], "the archive's `/etc/x` leads out of it"),
            (&[(FILE, "a/../../x", "", 0o644)], "the archive's `a/../../x` leads out of it"),
            (&[(EntryType::Symlink, "a", "/etc", 0)], "the archive's `a` is a link that leads out of it"),
            (&[(EntryType::Symlink, "a/b", "../../x", 0)], "the archive's `a/b` is a link that leads out of it"),
            (&[(EntryType::Link, "a", "../x", 0)], "the archive's `a` is a link that leads out of it"),
            (&[(EntryType::Link, "a", "b", 0)], "the archive's `a` is a link to a file that did not come before it"),
            (
                &[(EntryType::Symlink, "a", ".", 0), (FILE, "a/b", "", 0o644)],
                "the archive's `a/b` lies below something that is no folder",
            ),
            (&[(EntryType::Char, "a", "", 0)], "the archive's `a` is neither file, folder nor link"),
            (&[(EntryType::Fifo, "a", "", 0)], "the archive's `a` is neither file, folder nor link"),
        ];
        for (items, expected) in cases {
            let (_folder, result) = unpack(&archive(items), Limits::default());
            assert_eq!(result.unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_bomb_is_refused_when_it_passes_the_limits() {
        let big = "x".repeat(1000);
        let items: [Item<'_>; 2] = [(FILE, "a", &big, 0o644), (FILE, "b", &big, 0o644)];
        let limits = Limits { bytes: 1500, ..Limits::default() };
        let (_folder, result) = unpack(&archive(&items), limits);
        assert_eq!(result.unwrap_err().to_string(), "the launchable has more than 1500 bytes");
        let (_folder, result) = unpack(&archive(&items), Limits { entries: 1, ..Limits::default() });
        assert_eq!(result.unwrap_err().to_string(), "the launchable has more than 1 entries");
    }

    #[test]
    fn long_names_come_out_and_overlong_ones_are_never_read() {
        let long = format!("{}/name", "folder".repeat(30));
        let mut builder = Builder::new(Vec::new());
        let mut header = Header::new_gnu();
        header.set_size(1);
        header.set_mode(0o644);
        builder.append_data(&mut header, &long, &b"1"[..]).unwrap();
        builder.append_pax_extensions([("comment", "x".repeat(10_000).as_bytes())]).unwrap();
        builder.append_data(&mut header, "after", &b"2"[..]).unwrap();
        let (folder, result) = unpack(&builder.into_inner().unwrap(), Limits::default());
        result.unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("tree").join(long)).unwrap(), "1");
        assert_eq!(fs::read_to_string(folder.path().join("tree/after")).unwrap(), "2");
        for kind in [EntryType::GNULongName, EntryType::GNULongLink, EntryType::XHeader, EntryType::XGlobalHeader] {
            let text = "n".repeat(8 << 20);
            let bytes = archive(&[(kind, "x", &text, 0o644), (FILE, "a", "1", 0o644)]);
            let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
            io::Write::write_all(&mut gzip, &bytes).unwrap();
            let (_folder, result) = unpack(&gzip.finish().unwrap(), Limits::default());
            let told = result.unwrap_err().to_string();
            assert_eq!(told, "the archive has headers of more than 1048576 bytes for one entry", "{kind:?}");
        }
    }

    #[test]
    fn what_is_no_archive_is_said_to_be_none() {
        for bytes in [&b"<html>not found</html>"[..], &[0x1f, 0x8b, 8, 0, 0]] {
            let padded = [bytes, &vec![b'x'; 600]].concat();
            let (_folder, result) = unpack(&padded, Limits::default());
            assert_eq!(result.unwrap_err().to_string(), "the archive cannot be read");
        }
    }

    proptest! {
        #[test]
        fn a_damaged_archive_never_panics(position in 0usize..2048, value: u8) {
            let mut bytes = archive(&[(FILE, "a", "1", 0o644), (EntryType::Symlink, "b", "a", 0)]);
            if let Some(byte) = bytes.get_mut(position) {
                *byte = value;
            }
            let (_folder, _result) = unpack(&bytes, Limits { bytes: 1 << 20, ..Limits::default() });
        }
    }
}
