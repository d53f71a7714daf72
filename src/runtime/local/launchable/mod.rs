//! Launchables: what an image names on this machine, installed once by content.
//!
//! ```text
//!  git:   ─▶ TreeExport ─┐
//!  file:  ─▶ copy ───────┼─▶ verify ─▶ unpack ─▶ bin/build, if there is one ─▶ seal
//!  https: ─▶ download ───┘            (a thread of the daemon)  (a process of its own)
//! ```

mod archive;
mod build;
mod disk;
mod folder;
mod image;
mod install;
mod limits;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::broadcast;

pub use self::limits::Limits;

use self::disk::on_disk;
use self::folder::{BuildFailure, Folder, Order};
use self::image::{Image, Key};
use self::install::Sources;
use crate::error::{Class, Failure, Result};
use crate::model::ids::RepositoryName;
use crate::model::pod::SecurityContext;
use crate::runtime::{ImageUse, RuntimeChange};

/// How many launchables are installed at once; others wait until one is done.
const MAX_JOBS: usize = 4;
/// How long a failure other than a build's is remembered, so that all who wait for it hear of it.
const REMEMBERED: Duration = Duration::from_secs(10);

/// Runs the program as a builder, if the arguments ask for it.
pub fn process_entry(arguments: &[OsString]) -> Option<ExitCode> {
    match arguments {
        [verb, folder] if verb == "build" => Some(build::run(&Folder::new(folder))),
        _ => None,
    }
}

/// Where the trees of `git:` images come from.
pub trait TreeExport: Send + Sync {
    /// Writes the files of a tree into `into`, which is an empty folder. `path` is where the tree is in its revision,
    /// for messages.
    fn export(&self, repository: &RepositoryName, tree_id: &str, path: &str, into: &Path) -> Result<()>;
}

/// How launchables are installed.
#[derive(Clone, Debug)]
pub struct LaunchableSettings {
    /// The program whose [`process_entry`] is this one.
    pub executable: PathBuf,
    /// The repositories that may use the host's own files.
    pub host_allowed: BTreeSet<RepositoryName>,
    /// Bounds of each.
    pub limits: Limits,
    /// How long `bin/build` may take.
    pub build_patience: Duration,
    /// Certificates that downloads trust besides the machine's own, as PEM.
    pub ca_file: Option<PathBuf>,
}

impl LaunchableSettings {
    /// The usual bounds; no repository may use the host's files.
    pub fn new(executable: PathBuf) -> Self {
        let build_patience = Duration::from_secs(15 * 60);
        Self { executable, host_allowed: BTreeSet::new(), limits: Limits::default(), build_patience, ca_file: None }
    }
}

/// All launchables of this machine's runtime.
#[derive(Clone)]
pub struct Launchables(Arc<Inner>);

struct Inner {
    root: PathBuf,
    settings: LaunchableSettings,
    trees: Arc<dyn TreeExport>,
    changes: broadcast::Sender<RuntimeChange>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What is being installed.
    jobs: BTreeSet<Key>,
    /// What failed a short time ago, other than by its build.
    failures: BTreeMap<Key, (Instant, Remembered)>,
    /// Digests of files whose images name none.
    digests: BTreeMap<PathBuf, (FileVersion, String)>,
}

type FileVersion = (u64, u64, i64, i64);

/// A failure that is told again.
#[derive(Clone, Debug)]
struct Remembered {
    class: Class,
    message: String,
    hint: Option<String>,
}

impl std::fmt::Debug for Launchables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launchables").field("root", &self.0.root).finish_non_exhaustive()
    }
}

impl Launchables {
    /// The launchables below `<root>/launchables`. What an earlier process left half done is removed; builds that it
    /// left running are waited for. `changes` is told [`RuntimeChange::Image`] when one is done or has failed.
    pub fn open(
        root: &Path,
        settings: LaunchableSettings,
        trees: Arc<dyn TreeExport>,
        changes: broadcast::Sender<RuntimeChange>,
    ) -> Result<Self> {
        let failed = || format!("cannot open the launchables below `{}`", root.display());
        let root = std::path::absolute(root.join("launchables")).map_err(on_disk(failed))?;
        fs::create_dir_all(&root).map_err(on_disk(failed))?;
        let launchables = Self(Arc::new(Inner { root, settings, trees, changes, state: Mutex::default() }));
        launchables.recover().map_err(on_disk(failed))?;
        Ok(launchables)
    }

    /// Makes an image runnable. Its build, if it has one, runs as `run_as`.
    ///
    /// # Errors
    /// `Waiting` while it is being installed or built; `Stalled` with the builder's last lines if it does not build,
    /// until [`Self::forget_failure`]; otherwise what is wrong with the image or the machine.
    pub fn prepare(&self, repository: &RepositoryName, image: &str, run_as: SecurityContext) -> Result<()> {
        let image = Image::parse(image)?;
        let Some(key) = self.key(repository, &image)? else { return Ok(()) };
        let folder = self.folder(&key);
        if folder.is_sealed() {
            return Ok(());
        }
        if let Some(failure) = self.0.failure_of(&folder, &key, &image)? {
            return Err(failure);
        }
        let waiting = Err(Failure::waiting(format!("`{image}` is being installed")));
        let mut state = self.0.state();
        if state.jobs.len() >= MAX_JOBS || !state.jobs.insert(key.clone()) {
            return waiting;
        }
        drop(state);
        let (inner, repository) = (self.0.clone(), repository.clone());
        thread::spawn(move || {
            let result = inner.install(&folder, &repository, &image, run_as);
            inner.finish(key, result);
        });
        waiting
    }

    /// Where an installed image is; `None` for the host's own files.
    ///
    /// # Errors
    /// `Waiting` if it is not installed.
    pub fn path(&self, repository: &RepositoryName, image: &str) -> Result<Option<PathBuf>> {
        let image = Image::parse(image)?;
        let Some(key) = self.key(repository, &image)? else { return Ok(None) };
        let folder = self.folder(&key);
        if !folder.is_sealed() {
            return Err(Failure::waiting(format!("`{image}` is not installed yet")));
        }
        Ok(Some(folder.tree()))
    }

    /// Lets an image that failed be tried again.
    pub fn forget_failure(&self, repository: &RepositoryName, image: &str) -> Result<()> {
        let image = Image::parse(image)?;
        let Some(key) = self.key(repository, &image)? else { return Ok(()) };
        let mut state = self.0.state();
        state.failures.remove(&key);
        let folder = self.folder(&key);
        let failed = || format!("cannot forget the failure of `{image}`");
        if !state.jobs.contains(&key) && folder.read_failure().map_err(on_disk(failed))?.is_some() {
            disk::remove(folder.path()).map_err(on_disk(failed))?;
        }
        Ok(())
    }

    /// Deletes all launchables but those in `keep` and those that are being installed.
    pub fn collect(&self, keep: &[ImageUse]) -> Result<()> {
        let kept: BTreeSet<Key> = keep.iter().filter_map(|used| self.key_of_use(used)).collect();
        let failed = || "cannot delete launchables that are not used".to_owned();
        for folder in self.0.folders().map_err(on_disk(failed))? {
            let Some(key) = folder.key() else { continue };
            // Held while it is removed from sight, so that no job starts in it.
            let state = self.0.state();
            if kept.contains(&key) || state.jobs.contains(&key) || folder.is_being_built() {
                continue;
            }
            let trash = self.0.root.join(format!(".trash-{}", key.as_str()));
            disk::remove(&trash).and_then(|()| fs::rename(folder.path(), &trash)).map_err(on_disk(failed))?;
            drop(state);
            disk::remove(&trash).map_err(on_disk(failed))?;
        }
        Ok(())
    }

    /// Removes what is half done, except where a builder is still at work: then its end is waited for.
    fn recover(&self) -> io::Result<()> {
        for folder in self.0.folders()? {
            let Some(key) = folder.key() else {
                disk::remove(folder.path())?;
                continue;
            };
            if folder.is_being_built() {
                self.0.state().jobs.insert(key.clone());
                let inner = self.0.clone();
                thread::spawn(move || {
                    let result = built(&folder);
                    inner.finish(key, result);
                });
            } else if !folder.is_sealed() && folder.read_failure()?.is_none() {
                disk::remove(folder.path())?;
            }
        }
        Ok(())
    }

    fn folder(&self, key: &Key) -> Folder {
        Folder::new(self.0.root.join(key.as_str()))
    }

    fn key_of_use(&self, used: &ImageUse) -> Option<Key> {
        // What cannot be read is not installed either.
        self.key(&used.repository, &Image::parse(&used.image).ok()?).ok().flatten()
    }

    /// The key of an image; `None` for the host's files, if they are allowed.
    fn key(&self, repository: &RepositoryName, image: &Image) -> Result<Option<Key>> {
        match image {
            Image::Host if self.0.settings.host_allowed.contains(repository) => Ok(None),
            Image::Host => Err(Failure::stalled(format!("repository `{repository}` may not use the image `host`"))
                .hint("set `allow: {hostImage: true}` for it in the daemon's configuration")),
            Image::Tree { id, .. } => Ok(Some(Key::tree(id))),
            Image::File { digest: Some(digest), .. } | Image::Web { digest, .. } => Ok(Some(Key::archive(digest))),
            Image::File { path, digest: None } => Ok(Some(Key::archive(&self.0.digest_of(path, image)?))),
        }
    }
}

impl Inner {
    fn install(
        &self,
        folder: &Folder,
        repository: &RepositoryName,
        image: &Image,
        run_as: SecurityContext,
    ) -> Result<()> {
        if folder.is_sealed() {
            return Ok(());
        }
        let failed = || format!("cannot install `{image}`");
        folder.start_over().map_err(on_disk(failed))?;
        let settings = &self.settings;
        let sources = Sources { trees: &*self.trees, limits: settings.limits, ca_file: settings.ca_file.as_deref() };
        let filled = sources.fill(folder, repository, image).and_then(|()| match folder.builder() {
            None => folder.seal().map_err(on_disk(failed)),
            Some(_) => self.build(folder, run_as).map_err(on_disk(failed)),
        });
        if let Err(failure) = filled {
            // The failure is what matters; what is left is removed at the next attempt.
            disk::remove(folder.path()).ok();
            return Err(failure);
        }
        built(folder)
    }

    fn build(&self, folder: &Folder, run_as: SecurityContext) -> io::Result<()> {
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let order = Order {
            user: run_as.run_as_user.filter(|user| *user != own.0),
            group: run_as.run_as_group.filter(|group| *group != own.1),
            patience_ms: u64::try_from(self.settings.build_patience.as_millis()).unwrap_or(u64::MAX),
        };
        folder.write_order(&order)?;
        build::spawn(&self.settings.executable, folder)?.wait().map(drop)
    }

    /// Tells that an installation is over.
    fn finish(&self, key: Key, result: Result<()>) {
        let mut state = self.state();
        state.jobs.remove(&key);
        state.failures.retain(|_, (at, _)| at.elapsed() < REMEMBERED);
        if let Err(failure) = result {
            let remembered = Remembered {
                class: failure.class(),
                message: format!("{failure:#}"),
                hint: failure.hint_text().map(str::to_owned),
            };
            state.failures.insert(key, (Instant::now(), remembered));
        }
        drop(state);
        // Nobody may be listening, and whoever asks again sees it anyway.
        self.changes.send(RuntimeChange::Image).ok();
    }

    /// Why an image failed, if that is still to be told.
    fn failure_of(&self, folder: &Folder, key: &Key, image: &Image) -> Result<Option<Failure>> {
        let state = self.state();
        if state.jobs.contains(key) {
            return Ok(None);
        }
        let recorded = folder.read_failure().map_err(on_disk(|| format!("cannot look for `{image}`")))?;
        if let Some(recorded) = recorded {
            return Ok(Some(does_not_build(&recorded, folder, Some(image))));
        }
        let recent = state.failures.get(key).filter(|(at, _)| at.elapsed() < REMEMBERED);
        Ok(recent.map(|(_, remembered)| remembered.to_failure()))
    }

    fn folders(&self) -> io::Result<Vec<Folder>> {
        fs::read_dir(&self.root)?.map(|entry| Ok(Folder::new(entry?.path()))).collect()
    }

    /// The digest of a file; read again only when the file changed.
    fn digest_of(&self, path: &Path, image: &Image) -> Result<String> {
        let version = file_version(path);
        let known = self.state().digests.get(path).filter(|(known, _)| Some(*known) == version).cloned();
        if let Some((_, digest)) = known {
            return Ok(digest);
        }
        let digest = install::digest_of(path, image)?;
        if let Some(version) = version {
            self.state().digests.insert(path.to_owned(), (version, digest.clone()));
        }
        Ok(digest)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Remembered {
    fn to_failure(&self) -> Failure {
        let message = self.message.clone();
        let failure = match self.class {
            Class::Transient => Failure::transient(message),
            Class::Waiting => Failure::waiting(message),
            Class::Stalled => Failure::stalled(message),
        };
        match &self.hint {
            Some(hint) => failure.hint(hint.clone()),
            None => failure,
        }
    }
}

/// What became of a build, once no builder is at work.
fn built(folder: &Folder) -> Result<()> {
    let failed = || format!("cannot look at `{}`", folder.path().display());
    if folder.is_sealed() {
        return Ok(());
    }
    folder.wait_for_builder().map_err(on_disk(failed))?;
    if folder.is_sealed() {
        return Ok(());
    }
    match folder.read_failure().map_err(on_disk(failed))? {
        Some(recorded) => Err(does_not_build(&recorded, folder, None)),
        None => Err(Failure::transient("the builder ended without a result").hint("it is tried again")),
    }
}

fn does_not_build(failure: &BuildFailure, folder: &Folder, image: Option<&Image>) -> Failure {
    let of = image.map(|image| format!(" of `{image}`")).unwrap_or_default();
    let BuildFailure { what, last_lines } = failure;
    let said = if last_lines.is_empty() { String::new() } else { format!("; its last lines:\n{last_lines}") };
    Failure::stalled(format!("`bin/build`{of} {what}{said}"))
        .hint(format!("push a change that builds, or retry; all output is in {}", folder.log().display()))
}

fn file_version(path: &Path) -> Option<FileVersion> {
    use std::os::unix::fs::MetadataExt;
    let file = fs::metadata(path).ok()?;
    Some((file.ino(), file.size(), file.mtime(), file.mtime_nsec()))
}
