//! File events on a local repository's refs. A hint only: what is missed, the next poll finds. A watch is of folders, not of
//! their names: whoever holds one asks whether it is still of those that are there.
//!
//! Directories are watched, never files: Git replaces `packed-refs` and every ref by a rename, after which a watch on
//! the file itself is deaf.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use notify::event::{EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

use crate::error::{Context, Failure, Result};
use crate::folder_id::FolderId;

/// `.git` files and `commondir` hold one path.
const MAX_POINTER: u64 = 8 << 10;

/// Watches the refs of any number of repositories by one instance of inotify: a user has few of them.
#[derive(Clone, Debug, Default)]
pub struct RefWatches(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    watcher: Mutex<Option<RecommendedWatcher>>,
    listeners: Arc<Listeners>,
}

/// Who hears what, by a number.
#[derive(Default)]
struct Listeners(RwLock<BTreeMap<u64, Listener>>);

struct Listener {
    refs: Refs,
    changed: Box<dyn Fn() + Send + Sync>,
}

/// A running watch; dropping it ends it.
#[derive(Debug)]
pub struct RefWatch {
    all: Arc<Shared>,
    number: u64,
    path: PathBuf,
    /// Those of them that are there.
    folders: Vec<Option<FolderId>>,
}

impl RefWatches {
    /// Calls `changed` whenever a branch or a tag of the repository at `path` may have moved: a bare repository, a work tree, or
    /// a linked work tree.
    ///
    /// # Errors
    /// If there are no file events: there is no repository, or the machine has no more of them for this user.
    pub fn watch(&self, path: &Path, changed: impl Fn() + Send + Sync + 'static) -> Result<RefWatch> {
        let folder = watched_folder(path)?;
        // Before they are watched: what takes their place meanwhile is noticed.
        let folders = identities(&folder);
        let number = self.0.try_watch(folder, Box::new(changed))?;
        Ok(RefWatch { all: self.0.clone(), number, path: path.to_owned(), folders })
    }
}

impl RefWatch {
    /// Whether it hears of the repository that is there now: one that was deleted and made again is another.
    pub fn is_current(&self) -> bool {
        watched_folder(&self.path).is_ok_and(|folder| identities(&folder) == self.folders)
    }
}

impl Drop for RefWatch {
    fn drop(&mut self) {
        // The kernel still delivers events of its folders, and nobody hears them.
        self.all.listeners.0.write().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}

impl Shared {
    fn try_watch(&self, folder: PathBuf, changed: Box<dyn Fn() + Send + Sync>) -> Result<u64> {
        let doing = || format!("cannot watch `{}`", folder.display());
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        if watcher.is_none() {
            let listeners = self.listeners.clone();
            *watcher = Some(notify::recommended_watcher(move |event| listeners.tell(&event)).or_transient(doing)?);
        }
        let Some(watcher) = watcher.as_mut() else { return Err(Failure::transient(doing())) };
        watcher.watch(&folder, RecursiveMode::NonRecursive).or_transient(doing)?;
        for (below, mode) in REFS {
            let below = folder.join(below);
            if below.is_dir() {
                watcher.watch(&below, mode).or_transient(doing)?;
            }
        }
        Ok(self.listeners.add(Listener { refs: Refs { folder }, changed }))
    }
}

impl Listeners {
    fn add(&self, listener: Listener) -> u64 {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let number = all.last_key_value().map_or(0, |(last, _)| last + 1);
        all.insert(number, listener);
        number
    }

    fn tell(&self, event: &notify::Result<Event>) {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match event {
            Ok(event) => {
                all.values().filter(|listener| listener.refs.concerns(event)).for_each(|listener| (listener.changed)());
            }
            Err(error) => {
                tracing::warn!(%error, "file events were lost; syncing");
                all.values().for_each(|listener| (listener.changed)());
            }
        }
    }
}

impl std::fmt::Debug for Listeners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listeners").finish_non_exhaustive()
    }
}

/// Where branches and tags are kept. Other refs are not watched, so that writing notes causes no sync.
const REFS: [(&str, RecursiveMode); 3] = [
    ("refs/heads", RecursiveMode::Recursive),
    ("refs/tags", RecursiveMode::Recursive),
    ("reftable", RecursiveMode::NonRecursive),
];

struct Refs {
    folder: PathBuf,
}

impl Refs {
    /// Whether an event may mean that a branch or a tag moved.
    fn concerns(&self, event: &Event) -> bool {
        let is_moved = matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
        if event.need_rescan() || is_moved && event.paths.contains(&self.folder) {
            return true;
        }
        let changes = matches!(event.kind, EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_));
        changes && event.paths.iter().any(|path| self.is_ref(path))
    }

    fn is_ref(&self, path: &Path) -> bool {
        let Ok(path) = path.strip_prefix(&self.folder) else { return false };
        let is_lock = path.extension().is_some_and(|extension| extension == "lock");
        let is_watched = REFS.iter().any(|(below, _)| path.starts_with(below));
        !is_lock && (is_watched || path == Path::new("packed-refs"))
    }
}

/// The folder to watch, as its events spell it.
fn watched_folder(path: &Path) -> Result<PathBuf> {
    let folder = common_folder(path)?;
    folder.canonicalize().or_stalled(|| format!("cannot watch `{}`", folder.display()))
}

/// Which folders are watched of a repository.
fn identities(folder: &Path) -> Vec<Option<FolderId>> {
    let below = REFS.iter().map(|(below, _)| folder.join(below));
    std::iter::once(folder.to_owned()).chain(below).map(|path| FolderId::of(&path).ok()).collect()
}

/// The folder that holds a repository's refs; of linked work trees, the one they share.
fn common_folder(path: &Path) -> Result<PathBuf> {
    let dot_git = path.join(".git");
    let folder = if dot_git.is_dir() {
        dot_git
    } else if dot_git.is_file() {
        let pointer = read_pointer(&dot_git)?;
        let target = pointer.strip_prefix("gitdir:").map(str::trim);
        let target = target.ok_or_else(|| Failure::stalled(format!("`{}` names no folder", dot_git.display())))?;
        path.join(target)
    } else {
        path.to_owned()
    };
    let common = folder.join("commondir");
    let folder = if common.is_file() { folder.join(read_pointer(&common)?) } else { folder };
    if folder.join("HEAD").is_file() && folder.join("objects").is_dir() {
        return Ok(folder);
    }
    Err(Failure::stalled(format!("`{}` is no Git repository", path.display())))
}

fn read_pointer(path: &Path) -> Result<String> {
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|file| file.take(MAX_POINTER).read_to_string(&mut text));
    read.or_stalled(|| format!("cannot read `{}`", path.display()))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use notify::event::{CreateKind, Flag, ModifyKind, RemoveKind, RenameMode};

    use super::*;

    #[test]
    fn only_events_on_branches_and_tags_concern() {
        let refs = Refs { folder: "/r".into() };
        let create = EventKind::Create(CreateKind::File);
        let cases = [
            (create, "/r/refs/heads/main", true),
            (EventKind::Modify(ModifyKind::Any), "/r/refs/heads/feature/x", true),
            (EventKind::Remove(RemoveKind::File), "/r/packed-refs", true),
            (create, "/r/refs/tags/cart/v1", true),
            (create, "/r/reftable/0x1.ref", true),
            (create, "/r/refs/heads/main.lock", false),
            (create, "/r/packed-refs.lock", false),
            (create, "/r/refs/notes/launchway", false),
            (create, "/r/index", false),
            (create, "/r/objects/pack/p.pack", false),
            (create, "/elsewhere/refs/heads/main", false),
            (EventKind::Access(notify::event::AccessKind::Any), "/r/refs/heads/main", false),
            (EventKind::Remove(RemoveKind::Folder), "/r", true),
            (EventKind::Modify(ModifyKind::Name(RenameMode::From)), "/r", true),
            (EventKind::Modify(ModifyKind::Any), "/r", false),
        ];
        for (kind, path, expected) in cases {
            assert_eq!(refs.concerns(&Event::new(kind).add_path(path.into())), expected, "{kind:?} {path}");
        }
        assert!(refs.concerns(&Event::new(EventKind::Other).set_flag(Flag::Rescan)));
    }

    #[test]
    fn what_is_no_repository_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let problem = common_folder(folder.path()).unwrap_err().to_string();
        assert!(problem.contains("is no Git repository"), "{problem}");
        fs::write(folder.path().join(".git"), "gibberish").unwrap();
        let problem = common_folder(folder.path()).unwrap_err().to_string();
        assert!(problem.contains("names no folder"), "{problem}");
    }
}
