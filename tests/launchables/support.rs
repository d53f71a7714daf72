//! A runtime's launchables, with a folder in the place of a repository.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use launchway::error::{Class, Failure, Result};
use launchway::model::ids::RepositoryName;
use launchway::model::pod::SecurityContext;
use launchway::runtime::RuntimeChange;
use launchway::runtime::local::Program;
use launchway::runtime::local::launchable::{LaunchableSettings, Launchables, TreeExport};
use tokio::sync::broadcast;

/// Longer than anything here takes on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// A repository whose trees are lists of files. Every file is executable.
#[derive(Debug, Default)]
pub(crate) struct Trees {
    pub(crate) files: Vec<(&'static str, String)>,
    pub(crate) exports: AtomicUsize,
}

impl TreeExport for Trees {
    fn export(&self, _repository: &RepositoryName, tree_id: &str, path: &str, into: &Path) -> Result<()> {
        self.exports.fetch_add(1, Ordering::SeqCst);
        if tree_id.starts_with("dead") {
            return Err(Failure::stalled(format!("`{path}` is not in the repository")).hint("push it"));
        }
        for (name, content) in &self.files {
            let place = into.join(name);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(&place, content).unwrap();
            fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Ok(())
    }
}

/// A state folder with launchables, as a daemon opens them.
pub(crate) struct World {
    pub(crate) root: tempfile::TempDir,
    /// A folder that builds may write to.
    pub(crate) outside: tempfile::TempDir,
    pub(crate) trees: Arc<Trees>,
    pub(crate) settings: LaunchableSettings,
    pub(crate) changes: broadcast::Sender<RuntimeChange>,
}

impl World {
    pub(crate) fn new(files: &[(&'static str, &str)]) -> Self {
        let files = files.iter().map(|(name, content)| (*name, (*content).to_owned())).collect();
        let root = tempfile::tempdir().unwrap();
        let program = Arc::new(Program::at(PathBuf::from(env!("CARGO_BIN_EXE_launchway"))));
        let settings = LaunchableSettings::new(program, vec![root.path().to_owned()]);
        Self {
            root,
            outside: tempfile::tempdir().unwrap(),
            trees: Arc::new(Trees { files, exports: AtomicUsize::new(0) }),
            settings: LaunchableSettings { host_allowed: BTreeSet::from([repository()]), ..settings },
            changes: broadcast::channel(16).0,
        }
    }

    pub(crate) fn open(&self) -> Launchables {
        let (settings, trees) = (self.settings.clone(), self.trees.clone());
        Launchables::open(self.root.path(), settings, trees, self.changes.clone()).unwrap()
    }

    /// A file of which every line that a builder appends can be counted.
    pub(crate) fn journal(&self) -> PathBuf {
        self.outside.path().join("journal")
    }

    pub(crate) fn journal_lines(&self) -> usize {
        fs::read_to_string(self.journal()).unwrap_or_default().lines().count()
    }
}

/// An image of a tree.
pub(crate) fn tree(digit: char) -> String {
    format!("git:apps/web@{}", digit.to_string().repeat(40))
}

pub(crate) fn repository() -> RepositoryName {
    RepositoryName::from("shop")
}

/// Asks until the image is ready or fails for good.
pub(crate) fn prepare(launchables: &Launchables, image: &str) -> Result<PathBuf> {
    let mut result = None;
    eventually("the image is ready or has failed", || {
        let answer = launchables.prepare(&repository(), image, SecurityContext::default());
        if matches!(&answer, Err(failure) if failure.class() == Class::Waiting) {
            return false;
        }
        result = Some(answer);
        true
    });
    result.unwrap()?;
    Ok(launchables.path(&repository(), image)?.unwrap())
}

pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {DEADLINE:?}: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
