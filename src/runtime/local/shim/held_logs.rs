//! Logs of shims that are watched for being let go of. A shim has its log open from its first moment to its last, as its standard
//! error, and nobody else has: so all shims together take one descriptor of who watches them, and none each.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

/// Where the kernel says how many files a user may watch.
const MOST: &str = "/proc/sys/fs/inotify/max_user_watches";
/// The bytes that are read of the queue at once.
const BUFFER: usize = 4096;

/// The instance of inotify by which they are watched.
#[derive(Debug)]
pub(super) struct HeldLogs {
    queue: OwnedFd,
    /// How many are watched at most: half of what a user may watch, who watches other things too.
    most: usize,
}

/// Logs that were let go of.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LetGo {
    /// These, by their numbers.
    These(Vec<i32>),
    /// Nobody knows which: the kernel had more to tell than it keeps.
    Unknown,
}

impl HeldLogs {
    pub(super) fn new() -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let most = fs::read_to_string(MOST)?.trim().parse().unwrap_or(0_usize) / 2;
        Ok(Self { queue, most })
    }

    /// Watches a log beside so many others; its number. `None` if there are enough, or it is not the log that the process
    /// has as its standard error: somebody may have deleted that.
    pub(super) fn watch(&self, log: &Path, pid: i32, others: usize) -> Option<i32> {
        if others >= self.most {
            return None;
        }
        let number = inotify::add_watch(&self.queue, log, WatchFlags::CLOSE_WRITE).ok()?;
        let file = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
        let its_own = file(Path::new(&format!("/proc/{pid}/fd/2")));
        if its_own.is_some() && its_own == file(log) {
            return Some(number);
        }
        self.forget(number);
        None
    }

    /// Watches a log no longer.
    pub(super) fn forget(&self, number: i32) {
        // Fails for what is gone.
        inotify::remove_watch(&self.queue, number).ok();
    }

    /// The logs that were let go of since it was asked last. They are watched no longer.
    pub(super) fn take_let_go(&self) -> LetGo {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut events = Reader::new(&self.queue, &mut buffer);
        let (mut numbers, mut is_known) = (Vec::new(), true);
        while let Ok(event) = events.next() {
            is_known &= !event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            numbers.push(event.wd());
        }
        numbers.iter().for_each(|number| self.forget(*number));
        if is_known { LetGo::These(numbers) } else { LetGo::Unknown }
    }
}

impl AsFd for HeldLogs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}
