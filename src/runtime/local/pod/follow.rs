//! What containers print, as it comes, in whole lines.

use std::collections::VecDeque;
use std::fs::File;
use std::future::ready;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{StreamExt as _, TryStreamExt as _, try_unfold};

use super::logs::{append_named, open_parts};
use crate::error::Context;
use crate::runtime::LogStream;

/// How often to check for output.
const PERIOD: Duration = Duration::from_millis(200);
/// The most bytes that are read of a container at once.
const PIECE_BYTES: u64 = 256 << 10;
/// A line that is longer is given in parts.
const LINE_BYTES: usize = 64 << 10;

/// Goes on reading a container's output where it ended, also in files that were set aside meanwhile.
#[derive(Debug)]
pub(crate) struct Follower {
    path: PathBuf,
    /// What lies before each line: the container's name, where a pod has several.
    name: Option<String>,
    /// What is to be read, oldest first; the last is the one that is being written, or was.
    files: VecDeque<File>,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
}

impl Follower {
    /// Begins `limit` bytes before the end of what was printed until now.
    pub(crate) fn new(path: PathBuf, name: Option<String>, limit: u64) -> io::Result<Self> {
        let (mut files, mut left) = (VecDeque::new(), limit);
        for mut file in open_parts(&path)? {
            let size = file.metadata()?.len();
            file.seek(SeekFrom::Start(size.saturating_sub(left)))?;
            files.push_front(file);
            left = left.saturating_sub(size);
            if left == 0 {
                break;
            }
        }
        Ok(Self { path, name, files, line: Vec::new() })
    }

    /// The whole lines that came since the last call.
    pub(crate) fn more(&mut self) -> io::Result<Vec<u8>> {
        self.read()?;
        let whole = match self.line.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            None if self.line.len() >= LINE_BYTES => self.line.len(),
            None => 0,
        };
        let rest = self.line.split_off(whole);
        let lines = std::mem::replace(&mut self.line, rest);
        Ok(self.named(lines))
    }

    /// The beginning of a line that has no end.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let line = std::mem::take(&mut self.line);
        self.named(line)
    }

    fn named(&self, lines: Vec<u8>) -> Vec<u8> {
        let Some(name) = &self.name else { return lines };
        let mut named = Vec::new();
        append_named(&mut named, name, &lines);
        named
    }

    fn read(&mut self) -> io::Result<()> {
        let mut left = PIECE_BYTES;
        while left > 0 {
            if let Some(file) = self.files.front_mut() {
                left -= file.take(left).read_to_end(&mut self.line)? as u64;
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
        Ok(())
    }

    /// The files that were begun after the last that is known, oldest first.
    fn newer(&self) -> io::Result<VecDeque<File>> {
        let known = self.files.back().map(inode).transpose()?;
        let mut newer = VecDeque::new();
        for file in open_parts(&self.path)? {
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
    use super::super::logs::LogWriter;
    use super::super::mask::Mask;
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn nothing_is_lost_or_told_twice_while_files_are_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("web.log");
        let mut writer = LogWriter::with_parts_of(path.clone(), 100);
        let mut follower = Follower::new(path, None, 1000).unwrap();
        let (mut written, mut read) = (String::new(), String::new());
        for number in 0..500 {
            let line = format!("line {number}\n");
            writer.write(line.as_bytes());
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
        let path = folder.path().join("web.log");
        let mut writer = LogWriter::with_parts_of(path.clone(), 10);
        writer.write(b"first 0123456789\n");
        writer.write(b"second\n");
        let mut follower = Follower::new(path, Some("web".into()), 9).unwrap();
        assert_eq!(text(follower.more().unwrap()), "web 9\nweb second\n");
        writer.write(b"thi");
        assert_eq!(text(follower.more().unwrap()), "");
        writer.write(b"rd\nfour");
        assert_eq!(text(follower.more().unwrap()), "web third\n");
        assert_eq!(text(follower.rest()), "web four\n");
        assert_eq!(text(follower.rest()), "");
    }

    #[test]
    fn a_container_that_has_printed_nothing_yet_is_followed_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("web.log");
        let mut follower = Follower::new(path.clone(), None, 100).unwrap();
        assert!(follower.more().unwrap().is_empty());
        LogWriter::new(path, &Mask::default()).write(b"hello\n");
        assert_eq!(text(follower.more().unwrap()), "hello\n");
    }
}
