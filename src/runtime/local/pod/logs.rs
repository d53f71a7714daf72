//! What containers print: kept in files of bounded size, and read from their end.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::mask::{Mask, Masked};

/// The size at which a file is set aside.
const PART_BYTES: u64 = 10 << 20;
/// How many files a container has at most: the one being written and those set aside.
const PARTS: u32 = 3;
/// How much of the end of the output is kept for messages.
const TAIL_BYTES: usize = 4096;

/// Takes a container's output, and keeps it without the secrets in it. A full disk loses output, never the container.
#[derive(Debug)]
pub(crate) struct LogWriter {
    masked: Masked,
    kept: Kept,
}

/// What is kept of it.
#[derive(Debug)]
struct Kept {
    path: PathBuf,
    file: Option<File>,
    size: u64,
    part_bytes: u64,
    tail: VecDeque<u8>,
}

impl LogWriter {
    /// Goes on with the file at `path`.
    pub(crate) fn new(path: PathBuf, mask: &Mask) -> Self {
        let kept = Kept { path, file: None, size: 0, part_bytes: PART_BYTES, tail: VecDeque::new() };
        Self { masked: mask.stream(), kept }
    }

    /// One that sets a file aside at `part_bytes`.
    #[cfg(test)]
    pub(crate) fn with_parts_of(path: PathBuf, part_bytes: u64) -> Self {
        let mut writer = Self::new(path, &Mask::default());
        writer.kept.part_bytes = part_bytes;
        writer
    }

    /// Takes some output.
    pub(crate) fn write(&mut self, output: &[u8]) {
        self.masked.push(output, |clean| self.kept.write(clean));
    }

    /// The process that printed it has ended.
    pub(crate) fn end(&mut self) {
        self.masked.end(|clean| self.kept.write(clean));
    }

    /// Forgets the lines that an earlier process printed.
    pub(crate) fn begin(&mut self) {
        self.kept.tail.clear();
    }

    /// The last lines of output since [`Self::begin`].
    pub(crate) fn tail(&self) -> String {
        self.kept.tail()
    }
}

impl Kept {
    fn write(&mut self, output: &[u8]) {
        self.tail.extend(output.iter().skip(output.len().saturating_sub(TAIL_BYTES)));
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus);
        if self.append(output).is_err() {
            self.file = None;
        }
    }

    fn tail(&self) -> String {
        let bytes: Vec<u8> = self.tail.iter().copied().collect();
        let whole =
            if bytes.len() < TAIL_BYTES { 0 } else { bytes.iter().position(|b| *b == b'\n').map_or(0, |at| at + 1) };
        String::from_utf8_lossy(bytes.get(whole..).unwrap_or_default()).trim_end().to_owned()
    }

    fn append(&mut self, output: &[u8]) -> io::Result<()> {
        if self.size >= self.part_bytes {
            self.rotate()?;
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => {
                let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.path)?;
                self.size = file.metadata()?.len();
                file
            }
        };
        file.write_all(output)?;
        self.size += output.len() as u64;
        self.file = Some(file);
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        for part in (0..PARTS - 1).rev() {
            match fs::rename(self.part(part), self.part(part + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.file = None;
        self.size = 0;
        Ok(())
    }

    fn part(&self, number: u32) -> PathBuf {
        part(&self.path, number)
    }
}

fn part(path: &Path, number: u32) -> PathBuf {
    if number == 0 { path.to_owned() } else { path.with_extension(format!("log.{number}")) }
}

/// The files that hold a container's output, newest first, each once although one may be set aside meanwhile.
pub(crate) fn open_parts(path: &Path) -> io::Result<Vec<File>> {
    let (mut files, mut known) = (Vec::new(), BTreeSet::new());
    for number in 0..PARTS {
        let file = match File::open(part(path, number)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue, // the newest was just set aside
            Err(error) => return Err(error),
        };
        if known.insert(file.metadata()?.ino()) {
            files.push(file);
        }
    }
    Ok(files)
}

/// The last `limit` bytes of a container's output, oldest first.
pub(crate) fn read_end(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut parts = Vec::new();
    let mut left = limit;
    for file in open_parts(path)? {
        let end = end_of(file, left)?;
        left = left.saturating_sub(end.len() as u64);
        parts.push(end);
    }
    Ok(parts.into_iter().rev().flatten().collect())
}

/// The last `limit` bytes of several containers' output, in their order; with more than one, each line has the
/// container's name before it.
pub(crate) fn read_all(containers: &[(String, PathBuf)], limit: u64) -> io::Result<Vec<u8>> {
    if let [(_, path)] = containers {
        return read_end(path, limit);
    }
    let share = limit / containers.len().max(1) as u64;
    let mut all = Vec::new();
    for (name, path) in containers {
        append_named(&mut all, name, &read_end(path, share)?);
    }
    Ok(all)
}

/// Appends output with a name before each line.
pub(crate) fn append_named(all: &mut Vec<u8>, name: &str, output: &[u8]) {
    for line in output.split_inclusive(|byte| *byte == b'\n') {
        all.extend_from_slice(name.as_bytes());
        all.push(b' ');
        all.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            all.push(b'\n');
        }
    }
}

fn end_of(mut file: File, limit: u64) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(limit)))?;
    let mut content = Vec::new();
    file.take(limit).read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(folder: &Path) -> LogWriter {
        LogWriter::with_parts_of(folder.join("web.log"), 100)
    }

    #[test]
    fn a_flood_is_bounded_on_the_disk_and_its_end_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = writer(folder.path());
        (0..1000).for_each(|line| log.write(format!("line {line}\n").as_bytes()));
        let sizes = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
        let sizes: Vec<u64> = sizes.collect();
        assert!(sizes.len() == 3 && sizes.iter().all(|size| *size <= 110), "{sizes:?}");
        let end = String::from_utf8(read_end(&log.kept.path, 25).unwrap()).unwrap();
        assert!(end.ends_with("line 998\nline 999\n") && end.len() == 25, "{end}");
        assert!(log.tail().starts_with("line ") && log.tail().ends_with("line 999"));
        assert!(log.tail().len() <= TAIL_BYTES);
    }

    #[test]
    fn a_writer_goes_on_where_an_earlier_one_ended() {
        let folder = tempfile::tempdir().unwrap();
        writer(folder.path()).write(b"a\n");
        let mut second = writer(folder.path());
        second.write(b"b\n");
        assert_eq!(read_end(&second.kept.path, 100).unwrap(), b"a\nb\n");
        assert_eq!(second.tail(), "b");
        second.begin();
        assert_eq!(second.tail(), "");
    }

    #[test]
    fn a_container_that_printed_nothing_has_empty_logs() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read_end(&folder.path().join("none.log"), 10).unwrap().is_empty());
    }
}
