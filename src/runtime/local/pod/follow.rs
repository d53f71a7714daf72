//! What containers print, from what is kept of it and as it comes, in whole lines.

use std::collections::VecDeque;
use std::fs::File;
use std::future::ready;
use std::io::{self, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{StreamExt as _, TryStreamExt as _, try_unfold};

use super::lines::{Kept, Lines};
use super::logs::open_parts;
use crate::error::Context;
use crate::runtime::logs::{LogQuery, LogStream};

/// How often to check for output.
const PERIOD: Duration = Duration::from_millis(200);
/// The most bytes that are read of a container at once.
const PIECE_BYTES: u64 = 256 << 10;
/// A line that is longer is given in parts.
const LINE_BYTES: usize = 64 << 10;

/// Reads what a container has printed, and goes on where it ended, also in files that were set aside meanwhile.
#[derive(Debug)]
pub(crate) struct Follower {
    kept: Kept,
    lines: Lines,
    /// What is to be read, oldest first; the last is the one that is being written, or was.
    files: VecDeque<File>,
    /// How many bytes are read at most.
    left: u64,
    /// The beginning of a line of what is kept.
    raw: Vec<u8>,
    /// The beginning of a line of output whose end has not come yet.
    line: Vec<u8>,
    /// So many bytes of output are left out yet.
    skip: u64,
}

impl Follower {
    /// Begins with the first that is asked for of what was printed until now.
    pub(crate) fn new(kept: &Kept, query: &LogQuery) -> io::Result<Self> {
        let mut follower = Self::from_the_beginning(kept, query)?;
        if query.tail.is_none() && query.bytes.is_none() {
            return Ok(follower);
        }
        // The same files, which may be set aside meanwhile.
        let mut files: VecDeque<File> = follower.files.iter().map(File::try_clone).collect::<io::Result<_>>()?;
        let (mut bytes, end) = (0, follower.left);
        follower.left = follower.files.iter().map(|file| Ok(file.metadata()?.len())).sum::<io::Result<u64>>()?;
        loop {
            let came = follower.more()?;
            if came.is_empty() {
                break;
            }
            bytes += came.len() as u64;
        }
        bytes += follower.rest().len() as u64;
        let lines = query.tail.map_or(0, |tail| follower.lines.count().saturating_sub(tail));
        files.iter_mut().try_for_each(Seek::rewind)?;
        follower.lines = Lines::new(kept, query, lines);
        (follower.files, follower.raw, follower.line, follower.left) = (files, Vec::new(), Vec::new(), end);
        follower.skip = query.bytes.map_or(0, |most| bytes.saturating_sub(most));
        Ok(follower)
    }

    fn from_the_beginning(kept: &Kept, query: &LogQuery) -> io::Result<Self> {
        let files: VecDeque<File> = open_parts(&kept.path, kept.most)?.into_iter().rev().collect();
        let sizes = files.iter().map(|file| Ok(file.metadata()?.len())).sum::<io::Result<u64>>()?;
        let left = if query.follow { u64::MAX } else { sizes };
        let (raw, line, skip) = Default::default();
        Ok(Self { kept: kept.clone(), lines: Lines::new(kept, query, 0), files, left, raw, line, skip })
    }

    /// The whole lines that came since the last call.
    pub(crate) fn more(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let before = self.left;
            self.read()?;
            let whole = match self.line.iter().rposition(|byte| *byte == b'\n') {
                Some(end) => end + 1,
                None if self.line.len() >= LINE_BYTES => self.line.len(),
                None => 0,
            };
            let rest = self.line.split_off(whole);
            let lines = std::mem::replace(&mut self.line, rest);
            let shown = self.skipped(lines);
            // There is more, of which nothing was asked for so far.
            if !shown.is_empty() || before - self.left < PIECE_BYTES {
                return Ok(shown);
            }
        }
    }

    /// The beginning of a line that has no end.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        if !self.kept.has_entries {
            self.lines.take(&std::mem::take(&mut self.raw), &mut self.line);
        }
        let mut line = std::mem::take(&mut self.line);
        if self.kept.name.is_some() && !line.is_empty() {
            line.push(b'\n');
        }
        self.skipped(line)
    }

    fn skipped(&mut self, mut output: Vec<u8>) -> Vec<u8> {
        let left_out = usize::try_from(self.skip).unwrap_or(usize::MAX).min(output.len());
        self.skip -= left_out as u64;
        output.drain(..left_out);
        output
    }

    /// Reads a piece, and takes the whole lines of it.
    fn read(&mut self) -> io::Result<()> {
        let mut left = PIECE_BYTES.min(self.left);
        while left > 0 {
            if let Some(file) = self.files.front_mut() {
                let count = file.take(left).read_to_end(&mut self.raw)? as u64;
                (left, self.left) = (left - count, self.left - count);
            }
            if self.files.len() > 1 {
                if left > 0 {
                    self.files.pop_front(); // nobody writes to it any more
                }
                continue;
            }
            // What was set aside meanwhile is read to its end once more.
            let newer = self.newer()?;
            if newer.is_empty() {
                break;
            }
            self.files.extend(newer);
        }
        let whole = self.raw.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let rest = self.raw.split_off(whole);
        for raw in std::mem::replace(&mut self.raw, rest).split_inclusive(|byte| *byte == b'\n') {
            self.lines.take(raw, &mut self.line);
        }
        Ok(())
    }

    /// The files that were begun after the last that is known, oldest first.
    fn newer(&self) -> io::Result<VecDeque<File>> {
        let known = self.files.back().map(inode).transpose()?;
        let mut newer = VecDeque::new();
        for file in open_parts(&self.kept.path, self.kept.most)? {
            if Some(inode(&file)?) == known {
                break;
            }
            newer.push_front(file);
        }
        Ok(newer)
    }
}

fn inode(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.ino())
}

/// What comes of some containers, until `ended` says that no more will.
pub(crate) fn stream(followers: Vec<Follower>, ended: impl Fn() -> bool + Send + Sync + 'static) -> LogStream {
    let next =
        |(followers, ended)| async move { next(followers, ended).await.or_transient(|| "cannot read logs".into()) };
    try_unfold((followers, Arc::new(ended)), next).try_filter(|came| ready(!came.is_empty())).boxed()
}

/// What came next; empty if nothing came within [`PERIOD`], and nothing at all once it has ended and all of it came.
async fn next<E>(mut followers: Vec<Follower>, ended: Arc<E>) -> io::Result<Option<(Vec<u8>, (Vec<Follower>, Arc<E>))>>
where
    E: Fn() -> bool + Send + Sync + 'static,
{
    let read = move || {
        let is_over = ended(); // asked first: what was printed then is all there is
        let came = more_of(&mut followers, is_over);
        came.map(|came| came.map(|came| (came, (followers, ended))))
    };
    let next = tokio::task::spawn_blocking(read).await.map_err(io::Error::other)??;
    if next.as_ref().is_some_and(|(came, _)| came.is_empty()) {
        tokio::time::sleep(PERIOD).await;
    }
    Ok(next)
}

fn more_of(followers: &mut [Follower], is_over: bool) -> io::Result<Option<Vec<u8>>> {
    let mut came = Vec::new();
    for follower in &mut *followers {
        came.extend(follower.more()?);
    }
    if is_over && came.is_empty() {
        came.extend(followers.iter_mut().flat_map(Follower::rest));
        return Ok(Some(came).filter(|came| !came.is_empty()));
    }
    Ok(Some(came))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::logs::{LogLimits, LogWriter};
    use super::super::mask::Mask;
    use super::*;
    use crate::model::time::Timestamp;

    const AT: Timestamp = Timestamp(0);

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    fn kept(path: &Path) -> Kept {
        Kept { name: None, path: path.to_owned(), most: 3, has_entries: true, run: None }
    }

    fn follow() -> LogQuery {
        LogQuery { follow: true, ..LogQuery::default() }
    }

    fn writer(path: &Path, max_size: u64) -> LogWriter {
        LogWriter::new(path.to_owned(), LogLimits { max_size, max_files: 3 }, &Mask::default())
    }

    #[test]
    fn nothing_is_lost_or_told_twice_while_files_are_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("web.cri");
        let mut writer = writer(&path, 500);
        let mut follower = Follower::new(&kept(&path), &follow()).unwrap();
        let (mut written, mut read) = (String::new(), String::new());
        for number in 0..500 {
            let line = format!("line {number}\n");
            writer.write(line.as_bytes(), AT);
            written.push_str(&line);
            if number % 7 == 0 {
                read.push_str(&text(follower.more().unwrap()));
            }
        }
        read.push_str(&text(follower.more().unwrap()));
        assert_eq!(read, written);
        assert!(follower.more().unwrap().is_empty());
    }

    #[test]
    fn it_begins_before_the_end_and_gives_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("web.cri");
        let mut writer = writer(&path, 10);
        writer.write(b"first 0123456789\n", AT);
        writer.write(b"second\n", AT);
        let named = Kept { name: Some("web".into()), ..kept(&path) };
        let mut by_bytes = Follower::new(&kept(&path), &LogQuery { bytes: Some(9), ..follow() }).unwrap();
        assert_eq!(text(by_bytes.more().unwrap()), "9\nsecond\n");
        let mut follower = Follower::new(&named, &LogQuery { tail: Some(1), ..follow() }).unwrap();
        assert_eq!(text(follower.more().unwrap()), "web second\n");
        writer.write(b"thi", AT);
        assert_eq!(text(follower.more().unwrap()), "");
        writer.write(b"rd\nfour", AT);
        assert_eq!(text(follower.more().unwrap()), "web third\n");
        assert_eq!(text(follower.rest()), "web four\n");
        assert_eq!(text(follower.rest()), "");
    }

    #[test]
    fn what_comes_later_is_not_read_unless_it_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("web.cri");
        let mut follower = Follower::new(&kept(&path), &follow()).unwrap();
        assert!(follower.more().unwrap().is_empty());
        let mut writer = writer(&path, 1000);
        writer.write(b"hello\n", AT);
        let mut once = Follower::new(&kept(&path), &LogQuery::default()).unwrap();
        writer.write(b"later\n", AT);
        assert_eq!(text(follower.more().unwrap()), "hello\nlater\n");
        assert_eq!(text(once.more().unwrap()), "hello\n");
        assert!(once.more().unwrap().is_empty() && once.rest().is_empty());
    }

    #[test]
    fn what_a_shim_of_an_earlier_version_has_kept_is_read_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("web.log");
        std::fs::write(&path, "one\ntwo\nthree").unwrap();
        let earlier = Kept { has_entries: false, ..kept(&path) };
        let query = LogQuery { tail: Some(1), timestamps: true, ..LogQuery::default() };
        let mut follower = Follower::new(&earlier, &query).unwrap();
        assert_eq!(text(follower.more().unwrap()), "");
        assert_eq!(text(follower.rest()), "three");
    }
}
