//! The folder of one launchable, and what its files mean.
//!
//! A tree is built at the path where it stays, because builders write absolute paths into their results (a Python
//! `venv` does). Nobody sees it before `sealed` appears, by one rename.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::disk;
use super::image::Key;
use super::limits::Limits;
use super::processes;
use crate::model::pod::SecurityContext;
use crate::runtime::local::host::files::{self, Durability, remove_folder_if_there};

/// The most that a file of the folder's own holds.
const MAX_FILE: u64 = 1 << 20;

/// `<root>/launchables/<key>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The key that it is named after, unless it is something else.
    pub(super) fn key(&self) -> Option<Key> {
        Key::of_folder(self.0.file_name()?.to_str()?)
    }

    /// The launchable itself.
    pub(super) fn tree(&self) -> PathBuf {
        self.0.join("tree")
    }

    /// An archive on its way.
    pub(super) fn archive(&self) -> PathBuf {
        self.0.join("archive")
    }

    /// The home and temporary folder of the builder.
    pub(super) fn home(&self) -> PathBuf {
        self.0.join("home")
    }

    /// An empty folder, in which mounts are put together for the build.
    pub(super) fn scratch(&self) -> PathBuf {
        self.0.join("scratch")
    }

    /// The name of the build's control group.
    pub(super) fn group(&self) -> String {
        format!("build-{}", self.0.file_name().unwrap_or_default().to_string_lossy())
    }

    /// What the builder printed.
    pub(super) fn log(&self) -> PathBuf {
        self.0.join("build.log")
    }

    /// Whether the launchable is complete.
    pub(super) fn is_sealed(&self) -> bool {
        self.sealed().exists()
    }

    fn sealed(&self) -> PathBuf {
        self.0.join("sealed")
    }

    fn order(&self) -> PathBuf {
        self.0.join("build.json")
    }

    fn failure(&self) -> PathBuf {
        self.0.join("failed.json")
    }

    fn lock_file(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// Removes it, and ends what a build whose builder was killed left running in it.
    pub(super) fn clear(&self) -> io::Result<()> {
        if self.order().exists() {
            processes::end_marked(&self.0.to_string_lossy())?;
        }
        remove_folder_if_there(&self.0)
    }

    /// Makes it anew, whatever was in it.
    pub(super) fn start_over(&self) -> io::Result<()> {
        self.clear()?;
        files::make_folder(&self.0, 0o711)?;
        files::make_folder(&self.tree(), 0o755)
    }

    /// The program that has to run before the launchable is complete.
    pub(super) fn builder(&self) -> Option<PathBuf> {
        let path = self.tree().join("bin/build");
        let executable = fs::metadata(&path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
        executable.then_some(path)
    }

    /// Seals the tree and announces that it is complete.
    pub(super) fn seal(&self) -> io::Result<()> {
        disk::seal(&self.tree())?;
        files::write_whole(&self.sealed(), &self.0, b"", Durability::Durable)
    }

    /// Says what the builder has to do.
    pub(super) fn write_order(&self, order: &Order) -> io::Result<()> {
        files::write_whole(&self.order(), &self.0, &serde_json::to_vec(order)?, Durability::Plain)
    }

    pub(super) fn read_order(&self) -> io::Result<Option<Order>> {
        read(&self.order())
    }

    /// Remembers that it does not build, and drops what was built. Its log stays.
    pub(super) fn write_failure(&self, failure: &BuildFailure) -> io::Result<()> {
        files::write_whole(&self.failure(), &self.0, &serde_json::to_vec(failure)?, Durability::Durable)?;
        remove_folder_if_there(&self.tree())
    }

    pub(super) fn read_failure(&self) -> io::Result<Option<BuildFailure>> {
        read(&self.failure())
    }

    /// The builder's lock; `None` if there is a living one already.
    pub(super) fn take_lock(&self) -> io::Result<Option<File>> {
        files::take_lock(&self.lock_file())
    }

    /// Whether a builder is at work.
    pub(super) fn is_being_built(&self) -> bool {
        files::is_locked(&self.lock_file()).unwrap_or(false)
    }

    /// Waits until no builder is at work.
    pub(super) fn wait_for_builder(&self) -> io::Result<()> {
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(self.lock_file())?.lock_shared()
    }
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let Some(content) = files::read_bounded(path, MAX_FILE)? else { return Ok(None) };
    Ok(Some(serde_json::from_slice(&content)?))
}

/// What a builder has to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Order {
    /// Whom the build runs as; whoever runs launchway unless given.
    pub(super) user: Option<u32>,
    /// Its group.
    pub(super) group: Option<u32>,
    /// What it may take, and leave behind.
    pub(super) limits: Limits,
    /// The folders of which the build sees nothing but what is its own.
    pub(super) hidden: Vec<PathBuf>,
}

impl Order {
    /// Whom the build runs as.
    pub(super) fn run_as(&self) -> SecurityContext {
        SecurityContext { run_as_user: self.user, run_as_group: self.group }
    }
}

/// Why a launchable does not build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BuildFailure {
    /// How it ended.
    pub(super) what: String,
    /// The last lines that it printed.
    pub(super) last_lines: String,
}
