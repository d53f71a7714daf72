//! Installing in the background, and remembering what came of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::broadcast;

use super::build;
use super::disk::on_disk;
use super::folder::{BuildFailure, Folder, Order};
use super::image::{Image, Key};
use super::install::{self, Sources};
use super::{LaunchableSettings, TreeExport};
use crate::error::{Class, Failure, Result};
use crate::model::ids::RepositoryName;
use crate::model::pod::SecurityContext;
use crate::runtime::RuntimeChange;
use crate::runtime::local::host::files::remove_folder_if_there;
use crate::runtime::local::host::isolation::outermost;

/// How many launchables are installed at once.
const THREADS: usize = 4;
/// How long a failure other than a build's is remembered, so that all who wait for it hear of it.
const REMEMBERED: Duration = Duration::from_secs(10);

/// What all users of the launchables share.
pub(super) struct Installer {
    pub(super) root: PathBuf,
    pub(super) settings: LaunchableSettings,
    pub(super) trees: Arc<dyn TreeExport>,
    pub(super) changes: broadcast::Sender<RuntimeChange>,
    pub(super) state: Mutex<State>,
}

/// What is known only as long as the daemon lives.
#[derive(Default)]
pub(super) struct State {
    /// What is being installed, or waits for that.
    jobs: BTreeSet<Key>,
    /// What waits, in the order in which it was asked for.
    waiting: VecDeque<Job>,
    /// How many threads install.
    threads: usize,
    /// What failed a short time ago, other than by its build.
    failures: BTreeMap<Key, (Instant, Remembered)>,
    /// Digests of files whose images name none.
    digests: BTreeMap<PathBuf, (FileVersion, String)>,
}

/// Inode, size and time of change of a file.
type FileVersion = (u64, u64, i64, i64);

/// An image that is to be installed.
pub(super) struct Job {
    pub(super) key: Key,
    pub(super) repository: RepositoryName,
    pub(super) image: Image,
    pub(super) run_as: SecurityContext,
}

impl Installer {
    pub(super) fn folder(&self, key: &Key) -> Folder {
        Folder::new(self.root.join(key.as_str()))
    }

    /// Everything that lies where launchables do.
    pub(super) fn folders(&self) -> io::Result<Vec<Folder>> {
        fs::read_dir(&self.root)?.map(|entry| Ok(Folder::new(entry?.path()))).collect()
    }

    /// Starts a job when its turn comes, unless the same one is under way or has failed since it was asked about.
    pub(super) fn start(self: &Arc<Self>, job: Job) {
        let mut state = self.state();
        let failed = self.known_failure(&state, &job.key, &job.image).is_ok_and(|failure| failure.is_some());
        if failed || !state.jobs.insert(job.key.clone()) {
            return;
        }
        state.waiting.push_back(job);
        if state.threads < THREADS {
            state.threads += 1;
            let installer = self.clone();
            thread::spawn(move || {
                while let Some(job) = installer.next() {
                    let result = installer.install(&job);
                    installer.finish(&job.key, result);
                }
            });
        }
    }

    /// The job whose turn it is; a thread that finds none ends.
    fn next(&self) -> Option<Job> {
        let mut state = self.state();
        let job = state.waiting.pop_front();
        if job.is_none() {
            state.threads -= 1;
        }
        job
    }

    /// Removes what is half done, except where a builder is still at work: then its end is waited for.
    pub(super) fn recover(self: &Arc<Self>) -> io::Result<()> {
        for folder in self.folders()? {
            match folder.key() {
                Some(key) if folder.is_being_built() => {
                    self.state().jobs.insert(key.clone());
                    let installer = self.clone();
                    thread::spawn(move || installer.finish(&key, result_of_build(&folder)));
                }
                Some(_) if folder.is_sealed() || folder.read_failure()?.is_some() => {}
                _ => folder.clear()?,
            }
        }
        Ok(())
    }

    /// Why an image failed, if nobody has heard of it yet.
    pub(super) fn failure(&self, key: &Key, image: &Image) -> Result<Option<Failure>> {
        self.known_failure(&self.state(), key, image)
    }

    fn known_failure(&self, state: &State, key: &Key, image: &Image) -> Result<Option<Failure>> {
        let folder = self.folder(key);
        if state.jobs.contains(key) {
            return Ok(None);
        }
        let recorded = folder.read_failure().map_err(on_disk(|| format!("cannot look for `{image}`")))?;
        if let Some(recorded) = recorded {
            return Ok(Some(does_not_build(&recorded, &folder, Some(image))));
        }
        let recent = state.failures.get(key).filter(|(at, _)| at.elapsed() < REMEMBERED);
        Ok(recent.map(|(_, remembered)| remembered.to_failure()))
    }

    /// Lets an image that failed be tried again.
    pub(super) fn forget_failure(&self, key: &Key, image: &Image) -> Result<()> {
        let (mut state, folder) = (self.state(), self.folder(key));
        state.failures.remove(key);
        let failed = || format!("cannot forget the failure of `{image}`");
        if !state.jobs.contains(key) && folder.read_failure().map_err(on_disk(failed))?.is_some() {
            remove_folder_if_there(folder.path()).map_err(on_disk(failed))?;
        }
        Ok(())
    }

    /// Deletes a launchable, unless it is being installed.
    pub(super) fn discard(&self, key: &Key) -> io::Result<()> {
        let (folder, trash) = (self.folder(key), self.root.join(format!(".trash-{}", key.as_str())));
        {
            // Held while it is moved out of sight, so that no job starts in it.
            let state = self.state();
            if state.jobs.contains(key) || folder.is_being_built() {
                return Ok(());
            }
            remove_folder_if_there(&trash)?;
            fs::rename(folder.path(), &trash)?;
        }
        remove_folder_if_there(&trash)
    }

    /// The digest of a file; read again only when the file changed.
    pub(super) fn digest_of(&self, path: &Path, image: &Image) -> Result<String> {
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

    fn install(&self, job: &Job) -> Result<()> {
        let (folder, image) = (self.folder(&job.key), &job.image);
        if folder.is_sealed() {
            return Ok(());
        }
        let failed = || format!("cannot install `{image}`");
        folder.start_over().map_err(on_disk(failed))?;
        let filled =
            self.sources(&job.repository).fill(&folder, &job.repository, image).and_then(|()| match folder.builder() {
                None => folder.seal().map_err(on_disk(failed)),
                Some(_) => self.build(&folder, job).map_err(on_disk(failed)),
            });
        if let Err(failure) = filled {
            // The failure is what matters; what is left is removed at the next attempt.
            remove_folder_if_there(folder.path()).ok();
            return Err(failure);
        }
        result_of_build(&folder)
    }

    fn sources(&self, repository: &RepositoryName) -> Sources<'_> {
        let limits = self.settings.limits_of(repository);
        Sources { trees: &*self.trees, limits, ca_file: self.settings.ca_file.as_deref() }
    }

    /// Lets a process of its own build, and waits for it.
    fn build(&self, folder: &Folder, job: &Job) -> io::Result<()> {
        let Job { run_as, repository, .. } = job;
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let order = Order {
            user: run_as.run_as_user.filter(|wanted| *wanted != user),
            group: run_as.run_as_group.filter(|wanted| *wanted != group),
            limits: self.settings.limits_of(repository),
            hidden: outermost(self.settings.hidden.iter().chain([&self.root])),
        };
        folder.write_order(&order)?;
        build::spawn(&self.settings.executable, folder)?.wait().map(drop)
    }

    /// Tells that a job is over.
    fn finish(&self, key: &Key, result: Result<()>) {
        let mut state = self.state();
        state.jobs.remove(key);
        state.failures.retain(|_, (at, _)| at.elapsed() < REMEMBERED);
        if let Err(failure) = result {
            state.failures.insert(key.clone(), (Instant::now(), Remembered::new(&failure)));
        }
        drop(state);
        // Nobody may be listening, and whoever asks again sees it anyway.
        self.changes.send(RuntimeChange::Image(key.as_str().to_owned())).ok();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A failure that is reported again.
#[derive(Clone, Debug)]
struct Remembered {
    class: Class,
    message: String,
    hint: Option<String>,
}

impl Remembered {
    fn new(failure: &Failure) -> Self {
        let hint = failure.hint_text().map(str::to_owned);
        Self { class: failure.class(), message: format!("{failure:#}"), hint }
    }

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

/// What became of a folder, once no builder is at work in it.
fn result_of_build(folder: &Folder) -> Result<()> {
    let failed = || format!("cannot examine `{}`", folder.path().display());
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
    let file = fs::metadata(path).ok()?;
    Some((file.ino(), file.size(), file.mtime(), file.mtime_nsec()))
}
