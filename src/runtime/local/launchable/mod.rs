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
pub mod images;
mod install;
mod installer;
mod limits;
mod processes;
mod step;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use tokio::sync::broadcast;

pub use self::limits::{BuildLimits, Limits};

use self::disk::on_disk;
use self::folder::Folder;
use self::image::{Image, Key};
use self::installer::{Installer, Job};
use crate::error::{Failure, Result};
use crate::model::ids::RepositoryName;
use crate::model::pod::SecurityContext;
use crate::runtime::local::host::files;
use crate::runtime::local::host::program::Program;
use crate::runtime::{ImageUse, RuntimeChange};

/// Runs the program as a builder, if the arguments ask for it.
pub fn process_entry(arguments: &[OsString]) -> Option<ExitCode> {
    match arguments {
        [verb, folder] if verb == "build" => Some(build::run(&Folder::new(folder))),
        [verb, folder] if verb == step::VERB => Some(step::run(&Folder::new(folder))),
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
    pub executable: Arc<Program>,
    /// The repositories that may use the host's own files.
    pub host_allowed: BTreeSet<RepositoryName>,
    /// Bounds of each.
    pub limits: Limits,
    /// Those of repositories that have their own.
    pub limits_by_repository: BTreeMap<RepositoryName, Limits>,
    /// The folders and files of which builds see nothing but what is their own: the daemon's.
    pub hidden: Vec<PathBuf>,
    /// Certificates that downloads trust besides the machine's own, as PEM.
    pub ca_file: Option<PathBuf>,
}

impl LaunchableSettings {
    /// The usual bounds; no repository may use the host's files.
    pub fn new(executable: Arc<Program>, hidden: Vec<PathBuf>) -> Self {
        let (limits, limits_by_repository) = Default::default();
        Self { executable, host_allowed: BTreeSet::new(), limits, limits_by_repository, hidden, ca_file: None }
    }

    fn limits_of(&self, repository: &RepositoryName) -> Limits {
        self.limits_by_repository.get(&repository.watched()).copied().unwrap_or(self.limits)
    }
}

/// All launchables of this machine's runtime.
#[derive(Clone)]
pub struct Launchables(Arc<Installer>);

impl std::fmt::Debug for Launchables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launchables").field("root", &self.0.root).finish_non_exhaustive()
    }
}

impl Launchables {
    /// The launchables below `<root>/launchables`. What an earlier process left half done is removed; builds that it
    /// left running are waited for. `changes` gets [`RuntimeChange::Image`] when one is done or has failed.
    pub fn open(
        root: &Path,
        settings: LaunchableSettings,
        trees: Arc<dyn TreeExport>,
        changes: broadcast::Sender<RuntimeChange>,
    ) -> Result<Self> {
        let failed = || format!("cannot open the launchables below `{}`", root.display());
        let root = root.join("launchables");
        files::make_folder(&root, 0o711).map_err(on_disk(failed))?;
        // Pods see it where it is: a link that leads there may be hidden from them.
        let root = root.canonicalize().map_err(on_disk(failed))?;
        let installer = Arc::new(Installer { root, settings, trees, changes, state: Mutex::default() });
        installer.recover().map_err(on_disk(failed))?;
        Ok(Self(installer))
    }

    /// Makes an image runnable. Its build, if it has one, runs as `run_as`.
    ///
    /// # Errors
    /// `Waiting` while it is being installed or built; `Stalled` with the builder's last lines if it does not build,
    /// until [`Self::forget_failure`]; otherwise what is wrong with the image or the machine.
    pub fn prepare(&self, repository: &RepositoryName, image: &str, run_as: SecurityContext) -> Result<()> {
        let image = Image::parse(image)?;
        let Some(key) = self.key(repository, &image)? else { return Ok(()) };
        if self.0.folder(&key).is_sealed() {
            return Ok(());
        }
        if let Some(failure) = self.0.failure(&key, &image)? {
            return Err(failure);
        }
        let waiting = Failure::waiting(format!("`{image}` is being installed")).until(key.as_str());
        self.0.start(Job { key, repository: repository.clone(), image, run_as });
        Err(waiting)
    }

    /// Where an installed image is; `None` for the host's own files.
    ///
    /// # Errors
    /// `Waiting` if it is not installed.
    pub fn path(&self, repository: &RepositoryName, image: &str) -> Result<Option<PathBuf>> {
        let image = Image::parse(image)?;
        let Some(key) = self.key(repository, &image)? else { return Ok(None) };
        let folder = self.0.folder(&key);
        if !folder.is_sealed() {
            return Err(Failure::waiting(format!("`{image}` is not installed yet")).until(key.as_str()));
        }
        Ok(Some(folder.tree()))
    }

    /// Lets an image that failed be tried again.
    pub fn forget_failure(&self, repository: &RepositoryName, image: &str) -> Result<()> {
        let image = Image::parse(image)?;
        let Some(key) = self.key(repository, &image)? else { return Ok(()) };
        self.0.forget_failure(&key, &image)
    }

    /// Deletes all launchables but those in `keep` and those that are being installed, or only counts them; says how
    /// many.
    pub fn collect(&self, keep: &[ImageUse], dry_run: bool) -> Result<u64> {
        let failed = || "cannot delete launchables that are not used".to_owned();
        let kept: BTreeSet<Key> = keep.iter().filter_map(|used| self.key_of_use(used)).collect();
        let keys = self.0.folders().map_err(on_disk(failed))?.into_iter().filter_map(|folder| folder.key());
        let unused: Vec<Key> = keys.filter(|key| !kept.contains(key)).collect();
        if !dry_run {
            unused.iter().try_for_each(|key| self.0.discard(key)).map_err(on_disk(failed))?;
        }
        Ok(unused.len() as u64)
    }

    fn key_of_use(&self, used: &ImageUse) -> Option<Key> {
        // What cannot be read is not installed either.
        self.key(&used.repository, &Image::parse(&used.image).ok()?).ok().flatten()
    }

    /// The key of an image; `None` for the host's files, if they are allowed.
    fn key(&self, repository: &RepositoryName, image: &Image) -> Result<Option<Key>> {
        match image {
            Image::Host if self.0.settings.host_allowed.contains(&repository.watched()) => Ok(None),
            Image::Host => Err(Failure::stalled(format!("repository `{repository}` may not use the image `host`"))
                .hint("set `allow: {hostImage: true}` for it in the daemon's configuration")),
            Image::Tree { id, .. } => Ok(Some(Key::tree(id))),
            Image::File { digest: Some(digest), .. } | Image::Web { digest, .. } => Ok(Some(Key::archive(digest))),
            Image::File { path, digest: None } => Ok(Some(Key::archive(&self.0.digest_of(path, image)?))),
        }
    }
}
