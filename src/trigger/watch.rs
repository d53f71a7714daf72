//! File events on a local repository's refs. A hint only: what is missed, the next poll finds.
//!
//! Directories are watched, never files: Git replaces `packed-refs` and every ref by a rename, after which a watch on
//! the file itself is deaf.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use notify::event::EventKind;
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

use crate::error::{Context, Failure, Result};

/// `.git` files and `commondir` hold one path.
const MAX_POINTER: u64 = 8 << 10;

/// A running watch; dropping it ends it.
#[derive(Debug)]
pub struct RefWatch {
    _watcher: RecommendedWatcher,
}

impl RefWatch {
    /// Calls `changed` whenever a branch of the repository at `path` may have moved: a bare repository, a work tree, or
    /// a linked work tree. `None`, with a line in the log, where there are no file events: polling goes on.
    pub fn start(path: &Path, changed: impl Fn() + Send + 'static) -> Option<Self> {
        match try_start(path, changed) {
            Ok(watch) => Some(watch),
            Err(failure) => {
                let problem = failure.one_line();
                tracing::warn!(path = %path.display(), problem, "no file events for this repository; it is polled only");
                None
            }
        }
    }
}

fn try_start(path: &Path, changed: impl Fn() + Send + 'static) -> Result<RefWatch> {
    let folder = common_folder(path)?;
    let doing = || format!("cannot watch `{}`", folder.display());
    // Events carry the paths as watched; comparing needs the same spelling.
    let folder = folder.canonicalize().or_stalled(doing)?;
    let refs = Refs { folder: folder.clone() };
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| match event {
        Ok(event) if refs.concerns(&event) => changed(),
        Ok(_) => {}
        Err(error) => {
            tracing::warn!(%error, "file events were lost; looking again");
            changed();
        }
    })
    .or_transient(doing)?;
    watcher.watch(&folder, RecursiveMode::NonRecursive).or_transient(doing)?;
    for (below, mode) in BRANCHES {
        let below = folder.join(below);
        if below.is_dir() {
            watcher.watch(&below, mode).or_transient(doing)?;
        }
    }
    Ok(RefWatch { _watcher: watcher })
}

/// Where branches are kept. Other refs are not watched, so that writing notes causes no look.
const BRANCHES: [(&str, RecursiveMode); 2] =
    [("refs/heads", RecursiveMode::Recursive), ("reftable", RecursiveMode::NonRecursive)];

struct Refs {
    folder: PathBuf,
}

impl Refs {
    /// Whether an event may mean that a branch moved.
    fn concerns(&self, event: &Event) -> bool {
        if event.need_rescan() {
            return true;
        }
        let changes = matches!(event.kind, EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_));
        changes && event.paths.iter().any(|path| self.is_ref(path))
    }

    fn is_ref(&self, path: &Path) -> bool {
        let Ok(path) = path.strip_prefix(&self.folder) else { return false };
        let is_lock = path.extension().is_some_and(|extension| extension == "lock");
        let is_branch = BRANCHES.iter().any(|(below, _)| path.starts_with(below));
        !is_lock && (is_branch || path == Path::new("packed-refs"))
    }
}

/// The folder that holds a repository's branches; of linked work trees, the one they share.
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
    use notify::event::{CreateKind, Flag, ModifyKind, RemoveKind};

    use super::*;

    #[test]
    fn only_events_on_branches_concern() {
        let refs = Refs { folder: "/r".into() };
        let create = EventKind::Create(CreateKind::File);
        let cases = [
            (create, "/r/refs/heads/main", true),
            (EventKind::Modify(ModifyKind::Any), "/r/refs/heads/feature/x", true),
            (EventKind::Remove(RemoveKind::File), "/r/packed-refs", true),
            (create, "/r/reftable/0x1.ref", true),
            (create, "/r/refs/heads/main.lock", false),
            (create, "/r/packed-refs.lock", false),
            (create, "/r/refs/notes/launchway", false),
            (create, "/r/index", false),
            (create, "/r/objects/pack/p.pack", false),
            (create, "/elsewhere/refs/heads/main", false),
            (EventKind::Access(notify::event::AccessKind::Any), "/r/refs/heads/main", false),
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
