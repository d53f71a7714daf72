//! Folders whose changes are seen, so that their files need not be read before each request.
//!
//! Who changes a folder goes on only when the kernel has queued that for this process. So one read of the queue tells all
//! that was done before it, of all folders.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

use super::super::shim::complain;

/// What changes a file by its name, or the folder's own.
const CHANGES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);
/// After these the folder is no longer where it was.
const GONE: ReadFlags = ReadFlags::IGNORED.union(ReadFlags::DELETE_SELF).union(ReadFlags::MOVE_SELF);

/// All of them.
#[derive(Debug)]
pub(super) struct Folders {
    /// A user has few of these: where none is left, files are read each time.
    queue: Option<OwnedFd>,
    /// By the number that the kernel has given them.
    watched: Mutex<HashMap<i32, Arc<Folder>>>,
}

/// One of them, which counts its changes.
#[derive(Debug, Default)]
struct Folder {
    changes: AtomicU64,
}

/// That a folder was read.
#[derive(Debug)]
pub(super) struct Look {
    folder: Arc<Folder>,
    changes: u64,
}

impl Look {
    /// Whether nothing has changed since, as far as was caught up.
    pub(super) fn holds(&self) -> bool {
        self.folder.changes.load(Ordering::Acquire) == self.changes
    }
}

impl Folders {
    pub(super) fn new() -> Arc<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
        let queue = queue.inspect_err(|error| complain(&format!("files are looked at for each request: {error}"))).ok();
        Arc::new(Self { queue, watched: Mutex::default() })
    }

    /// Begins to look at a folder's files; `None` if its changes cannot be seen.
    pub(super) fn look(&self, folder: &Path) -> Option<Look> {
        let queue = self.queue.as_ref()?;
        let mut watched = self.watched();
        let number = inotify::add_watch(queue, folder, CHANGES).ok()?;
        let folder = watched.entry(number).or_default().clone();
        for (unneeded, _) in watched.extract_if(|_, folder| Arc::strong_count(folder) == 1) {
            // Fails for what is gone.
            inotify::remove_watch(queue, unneeded).ok();
        }
        let changes = folder.changes.load(Ordering::Acquire);
        Some(Look { folder, changes })
    }

    /// Takes in what has changed until now.
    pub(super) fn catch_up(&self) {
        let Some(queue) = &self.queue else { return };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        // Held while reading: what another one has read must be taken in as well.
        let mut watched = self.watched();
        let mut events = Reader::new(queue, &mut buffer);
        while let Ok(event) = events.next() {
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                watched.values().for_each(|folder| folder.change());
            }
            let Some(folder) = watched.get(&event.wd()) else { continue };
            folder.change();
            if event.events().intersects(GONE) {
                watched.remove(&event.wd());
                // Fails unless it only moved.
                inotify::remove_watch(queue, event.wd()).ok();
            }
        }
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<i32, Arc<Folder>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Folder {
    fn change(&self) {
        self.changes.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::path::PathBuf;

    use super::*;

    struct World {
        folders: Arc<Folders>,
        root: tempfile::TempDir,
    }

    impl World {
        fn new() -> Self {
            Self { folders: Folders::new(), root: tempfile::tempdir().unwrap() }
        }

        /// A folder with a file `f`.
        fn folder(&self, name: &str) -> PathBuf {
            let folder = self.root.path().join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("f"), "").unwrap();
            folder
        }

        fn holds(&self, look: &Look) -> bool {
            self.folders.catch_up();
            look.holds()
        }
    }

    #[test]
    fn every_change_of_a_file_or_of_its_folder_is_seen() {
        let changes: [fn(&Path); 8] = [
            |folder| fs::write(folder.join("new"), "").unwrap(),
            |folder| fs::write(folder.join("f"), "other").unwrap(),
            |folder| fs::remove_file(folder.join("f")).unwrap(),
            |folder| fs::rename(folder.join("f"), folder.join("g")).unwrap(),
            |folder| fs::rename(folder.join("f"), folder.with_file_name("outside")).unwrap(),
            |folder| fs::rename(folder.with_file_name("draft"), folder.join("f")).unwrap(),
            |folder| fs::remove_dir_all(folder).unwrap(),
            |folder| fs::rename(folder, folder.with_file_name("moved")).unwrap(),
        ];
        for (number, change) in changes.iter().enumerate() {
            let world = World::new();
            fs::write(world.root.path().join("draft"), "").unwrap();
            let folder = world.folder("a");
            let look = world.folders.look(&folder).unwrap();
            assert!(world.holds(&look));
            change(&folder);
            assert!(!world.holds(&look), "change {number}");
        }
    }

    #[test]
    fn another_folder_in_the_place_of_one_that_is_gone_is_seen_too() {
        let world = World::new();
        let leaves: [fn(&Path); 2] = [
            |folder| fs::remove_dir_all(folder).unwrap(),
            |folder| fs::rename(folder, folder.with_file_name("moved")).unwrap(),
        ];
        for leave in leaves {
            let before = world.folders.look(&world.folder("a")).unwrap();
            leave(&world.root.path().join("a"));
            assert!(!world.holds(&before) && world.folders.look(&world.root.path().join("a")).is_none());
            let after = world.folders.look(&world.folder("a")).unwrap();
            assert!(world.holds(&after));
            fs::remove_file(world.root.path().join("a/f")).unwrap();
            assert!(!world.holds(&after));
        }
    }

    #[test]
    fn many_may_look_at_a_folder_and_nobody_at_one_that_is_not_needed() {
        let world = World::new();
        let [a, b] = ["a", "b"].map(|name| world.folder(name));
        let looks = [world.folders.look(&a).unwrap(), world.folders.look(&a).unwrap()];
        let other = world.folders.look(&b).unwrap();
        fs::remove_file(a.join("f")).unwrap();
        assert_eq!(looks.each_ref().map(|look| world.holds(look)), [false, false]);
        assert!(world.holds(&other));
        drop(looks);
        assert_eq!(world.folders.watched().len(), 2);
        drop(world.folders.look(&b));
        assert_eq!(world.folders.watched().len(), 1);
    }

    #[test]
    fn what_did_not_fit_into_the_queue_may_be_any_change() {
        let most: usize = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
        let world = World::new();
        let looks = ["a", "b"].map(|name| world.folders.look(&world.folder(name)).unwrap());
        // Changes of one file that follow each other count once, so two take turns.
        let mut files = ["f", "g"].map(|name| fs::File::create(world.root.path().join("a").join(name)).unwrap());
        for number in 0..=most {
            files[number % 2].write_all(b"x").unwrap();
        }
        fs::remove_file(world.root.path().join("b/f")).unwrap();
        assert_eq!(looks.each_ref().map(|look| world.holds(look)), [false, false]);
    }
}
