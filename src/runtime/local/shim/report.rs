//! What the shim tells: the status, the marker that lets connections in, and the hint that something changed.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::error::{Context, Result};
use crate::folder_id::FolderId;
use crate::runtime::local::host::cgroup::PodGroups;
use crate::runtime::local::host::files::{self, Durability};
use crate::runtime::local::host::format;
use crate::runtime::local::pod::paths::PodDir;
use crate::runtime::local::pod::record::PodRecord;
use crate::runtime::local::pod::status::{ContainerStatus, PodStatus};

/// The version of the marker.
const VERSION: u32 = format::FIRST;

/// Writes what others read; only what changed, and nothing once the pod's folder is deleted: another may have its name.
#[derive(Debug)]
pub(super) struct Report {
    dir: PodDir,
    folder: FolderId,
    lock: File,
    change: PathBuf,
    marker: Vec<u8>,
    status: PodStatus,
    written: bool,
    marked: bool,
}

impl Report {
    /// Reports on a pod whose status so far is `status`, in a folder of which `lock` is owned.
    pub(super) fn new(record: &PodRecord, (dir, lock): (PodDir, &File), status: PodStatus) -> io::Result<Self> {
        let (folder, lock) = (FolderId::of(dir.path())?, lock.try_clone()?);
        let (change, marker) = (record.change.clone(), admission(record).to_string().into_bytes());
        Ok(Self { dir, folder, lock, change, marker, status, written: false, marked: false })
    }

    /// Whether somebody deleted the pod's folder, whatever has its name now.
    pub(super) fn is_deleted(&self) -> bool {
        files::is_deleted(&self.lock)
            && match FolderId::of(self.dir.path()) {
                Ok(there) => there != self.folder,
                Err(error) => error.kind() == io::ErrorKind::NotFound,
            }
    }

    /// The last status.
    pub(super) fn status(&self) -> &PodStatus {
        &self.status
    }

    /// Writes down that commands are about to be started in these groups, so that no other shim ever starts them again.
    pub(super) fn intend(&mut self, groups: PodGroups) -> Result<()> {
        (self.status.intent, self.status.groups) = (true, groups);
        self.status.write(&self.dir, Durability::Durable)
    }

    /// Tells what is so now; the outcome of a pod survives whatever comes.
    pub(super) fn tell(&mut self, status: PodStatus) -> Result<()> {
        if status == self.status && self.written {
            return Ok(());
        }
        self.written = false;
        self.status = status;
        if self.is_deleted() {
            self.written = true;
            return Ok(());
        }
        let durability = if self.status.ended() { Durability::Durable } else { Durability::Plain };
        self.status.write(&self.dir, durability)?;
        self.written = true;
        files::write_whole(&self.change, self.dir.path(), b"", Durability::Plain)
            .or_transient(|| format!("cannot write `{}`", self.change.display()))
    }

    /// Tells it again the next time, whether it changed or not: what was written may be gone.
    pub(super) fn repeat(&mut self) {
        self.written = false;
    }

    /// Lets new connections in, or no more.
    pub(super) fn admit(&mut self, admitted: bool) -> Result<()> {
        if admitted == self.marked {
            return Ok(());
        }
        let path = self.dir.ready();
        let done = if self.is_deleted() {
            Ok(())
        } else if admitted {
            files::write_whole(&path, self.dir.path(), &self.marker, Durability::Plain)
        } else {
            files::remove_if_there(&path)
        };
        done.or_transient(|| format!("cannot change `{}`", path.display()))?;
        self.marked = admitted;
        Ok(())
    }
}

/// Where a pod takes connections: its address, and its real ports by declared number and by name.
fn admission(record: &PodRecord) -> Value {
    let mut ports = Map::new();
    for port in &record.ports {
        let keys = [Some(port.declared.to_string()), port.name.clone()];
        keys.into_iter().flatten().for_each(|key| {
            ports.entry(key).or_insert(json!(port.real));
        });
    }
    json!({"v": VERSION, "address": record.reachable_at(), "ports": ports})
}

/// The status of a container that was not started yet.
pub(super) fn unstarted(name: &str) -> ContainerStatus {
    ContainerStatus { name: name.to_owned(), ..ContainerStatus::default() }
}
