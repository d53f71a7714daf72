//! What containers print: kept in files of bounded size and number.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::entry::entries;
use super::journal::Journal;
use super::mask::{Mask, Masked};
use crate::model::time::Timestamp;

/// How much of a container's output is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogLimits {
    /// The size in bytes at which a file is set aside.
    pub max_size: u64,
    /// How many files a container has at most: the one being written and those set aside.
    pub max_files: u32,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self { max_size: 10 << 20, max_files: 3 }
    }
}

/// How much of the end of the output is kept for messages.
const TAIL_BYTES: usize = 4096;

/// Takes a container's output, and keeps it without the secrets in it. A full disk loses output, never the container.
#[derive(Debug)]
pub(crate) struct LogWriter {
    masked: Masked,
    kept: LogFile,
}

/// What is kept of it.
#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    limits: LogLimits,
    file: Option<File>,
    size: u64,
    /// How often the container was started before.
    run: u32,
    /// Whether the last line that is kept has no end yet.
    is_within_line: bool,
    /// Whether the last entry may have been written in part.
    is_torn: bool,
    tail: VecDeque<u8>,
    /// Where it goes besides.
    journal: Option<Journal>,
}

impl LogWriter {
    /// Goes on with the file at `path`.
    pub(crate) fn new(path: PathBuf, limits: LogLimits, mask: &Mask) -> Self {
        let (size, run, tail) = Default::default();
        let (file, journal) = (None, None);
        let kept = LogFile { path, limits, file, size, run, is_within_line: false, is_torn: false, tail, journal };
        Self { masked: mask.stream(), kept }
    }

    /// The same, which also sends it to a journal.
    pub(crate) fn with_journal(self, journal: Option<Journal>) -> Self {
        Self { kept: LogFile { journal, ..self.kept }, ..self }
    }

    /// Takes some output.
    pub(crate) fn write(&mut self, output: &[u8], at: Timestamp) {
        self.masked.push(output, |clean| self.kept.write(clean, at));
    }

    /// The process that printed it has ended.
    pub(crate) fn end(&mut self, at: Timestamp) {
        self.masked.end(|clean| self.kept.write(clean, at));
    }

    /// What comes now is printed by another process, before which there were so many.
    pub(crate) fn begin(&mut self, run: u32, at: Timestamp) {
        self.kept.begin(run, at);
    }

    /// The last lines of output since [`Self::begin`].
    pub(crate) fn tail(&self) -> String {
        self.kept.tail()
    }
}

impl LogFile {
    fn write(&mut self, output: &[u8], at: Timestamp) {
        self.tail.extend(output.iter().skip(output.len().saturating_sub(TAIL_BYTES)));
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus);
        self.keep(output, at);
        if let Some(journal) = &mut self.journal {
            journal.write(output);
        }
    }

    fn begin(&mut self, run: u32, at: Timestamp) {
        if self.is_within_line {
            self.keep(b"\n", at);
        }
        self.journal.iter_mut().for_each(Journal::end_line);
        self.run = run;
        self.tail.clear();
    }

    fn keep(&mut self, output: &[u8], at: Timestamp) {
        self.is_torn = self.append(&entries(output, at, self.run)).is_err();
        if self.is_torn {
            self.file = None;
        }
        self.is_within_line = !output.ends_with(b"\n");
    }

    fn tail(&self) -> String {
        let bytes: Vec<u8> = self.tail.iter().copied().collect();
        let whole =
            if bytes.len() < TAIL_BYTES { 0 } else { bytes.iter().position(|b| *b == b'\n').map_or(0, |at| at + 1) };
        String::from_utf8_lossy(bytes.get(whole..).unwrap_or_default()).trim_end().to_owned()
    }

    fn append(&mut self, entries: &[u8]) -> io::Result<()> {
        if self.size >= self.limits.max_size {
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
        if self.is_torn {
            file.write_all(b"\n")?;
        }
        file.write_all(entries)?;
        self.size += entries.len() as u64;
        self.file = Some(file);
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        for number in (0..self.limits.max_files.saturating_sub(1)).rev() {
            absent_or(fs::rename(part(&self.path, number), part(&self.path, number + 1)))?;
        }
        if self.limits.max_files <= 1 {
            absent_or(fs::remove_file(&self.path))?;
        }
        self.file = None;
        self.size = 0;
        Ok(())
    }
}

fn absent_or(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn part(path: &Path, number: u32) -> PathBuf {
    if number == 0 {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

/// The files that hold a container's output, newest first, each once although one may be set aside meanwhile.
pub(crate) fn open_parts(path: &Path, most: u32) -> io::Result<Vec<File>> {
    let (mut files, mut known) = (Vec::new(), BTreeSet::new());
    for number in 0..most {
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

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp(0);
    const LIMITS: LogLimits = LogLimits { max_size: 1000, max_files: 3 };

    fn sizes(folder: &Path) -> Vec<u64> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).collect()
    }

    #[test]
    fn a_flood_is_bounded_on_the_disk_and_its_end_is_kept() {
        for max_files in [1, 2, 3] {
            let folder = tempfile::tempdir().unwrap();
            let mut log =
                LogWriter::new(folder.path().join("web.cri"), LogLimits { max_files, ..LIMITS }, &Mask::default());
            (0..1000).for_each(|line| log.write(format!("line {line}\n").as_bytes(), AT));
            let sizes = sizes(folder.path());
            assert!(sizes.len() == max_files as usize && sizes.iter().all(|size| *size <= 1100), "{sizes:?}");
            assert!(fs::read_to_string(&log.kept.path).unwrap().ends_with("line 999\n"));
            assert!(log.tail().starts_with("line ") && log.tail().ends_with("line 999"));
            assert!(log.tail().len() <= TAIL_BYTES);
        }
    }

    #[test]
    fn a_writer_goes_on_where_an_earlier_one_ended_and_another_run_begins_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("web.cri");
        LogWriter::new(path.clone(), LIMITS, &Mask::default()).write(b"a\n", AT);
        let mut second = LogWriter::new(path.clone(), LIMITS, &Mask::default());
        second.write(b"b", AT);
        assert_eq!(second.tail(), "b");
        second.begin(1, AT);
        assert_eq!(second.tail(), "");
        second.write(b"c\n", AT);
        let kept = fs::read_to_string(path).unwrap().replace("1970-01-01T00:00:00.000Z stdout ", "");
        assert_eq!(kept, "F a\nP b\nF \nF:1 c\n");
    }
}
