//! How the daemon hears of what shims write: one watched folder.

use std::path::PathBuf;
use std::sync::Weak;
use std::time::Duration;

use notify::{Event, EventHandler, RecommendedWatcher, RecursiveMode, Watcher};

use crate::error::{Context, Result};
use crate::folder_id::FolderId;
use crate::runtime::local::host::files;
use crate::runtime::local::pod::paths::Root;
use crate::runtime::local::runtime::Inner;

/// How often pods are read where they cannot be watched.
const POLLING: Duration = Duration::from_millis(500);

/// The folder that shims rename files into, and what watches it. A user has few instances of inotify
/// (`fs.inotify.max_user_instances`), and other programs need some too: where none is left, all pods are read regularly.
#[derive(Debug)]
pub(crate) struct ChangesFolder {
    path: PathBuf,
    /// The folder that is watched: another one may get its name.
    watched: FolderId,
    watcher: Option<RecommendedWatcher>,
}

impl ChangesFolder {
    /// Refreshes every pod that a shim says has changed, for as long as this lives.
    pub(crate) fn watch(path: PathBuf, runtime: &Weak<Inner>) -> Result<Self> {
        let wrong = || format!("cannot make `{}`", path.display());
        files::make_folder(&path, 0o700).or_stalled(wrong)?;
        let watched = FolderId::of(&path).or_stalled(wrong)?;
        let watcher = notify::recommended_watcher(Listener(Weak::clone(runtime))).and_then(|mut watcher| {
            watcher.watch(&path, RecursiveMode::NonRecursive)?;
            Ok(watcher)
        });
        if let Err(error) = &watcher {
            tracing::warn!(%error, every = ?POLLING, "pods cannot be watched, and are read regularly instead");
            let runtime = Weak::clone(runtime);
            let thread = std::thread::Builder::new().name("pods".to_owned());
            thread.spawn(move || poll_pods(&runtime)).or_transient(|| "cannot start a thread".to_owned())?;
        }
        Ok(Self { path, watched, watcher: watcher.ok() })
    }

    /// Watches anew if somebody deleted or replaced the folder; says whether that was so.
    pub(crate) fn watch_again(&mut self, runtime: &Weak<Inner>) -> Result<bool> {
        if FolderId::of(&self.path).is_ok_and(|there| there == self.watched) {
            return Ok(false);
        }
        tracing::error!(folder = %self.path.display(), "the folder by which pods tell of changes was deleted or replaced; it is made and watched again");
        if self.watcher.is_some() {
            *self = Self::watch(self.path.clone(), runtime)?;
        } else {
            files::make_folder(&self.path, 0o700).or_transient(|| format!("cannot make `{}`", self.path.display()))?;
            self.watched =
                FolderId::of(&self.path).or_transient(|| format!("cannot read `{}`", self.path.display()))?;
        }
        Ok(true)
    }
}

/// Refreshes all pods again and again, as long as there is a runtime.
fn poll_pods(runtime: &Weak<Inner>) {
    while let Some(runtime) = runtime.upgrade() {
        runtime.refresh_each();
        drop(runtime);
        std::thread::sleep(POLLING);
    }
}

struct Listener(Weak<Inner>);

impl EventHandler for Listener {
    fn handle_event(&mut self, event: notify::Result<Event>) {
        let Some(runtime) = self.0.upgrade() else { return };
        match event {
            Ok(event) if !event.need_rescan() => {
                for pod in event.paths.iter().filter_map(|path| Root::changed(path)) {
                    runtime.refresh(&pod);
                }
            }
            _ => runtime.refresh_all(),
        }
    }
}
