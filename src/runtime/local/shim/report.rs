//! What the shim tells: the status, the marker that lets connections in, and the hint that something changed.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::error::{Context, Result};
use crate::runtime::local::host::cgroup::PodGroups;
use crate::runtime::local::host::files::{self, Durability};
use crate::runtime::local::host::format;
use crate::runtime::local::pod::paths::PodDir;
use crate::runtime::local::pod::record::PodRecord;
use crate::runtime::local::pod::status::{ContainerStatus, PodStatus};

/// The version of the marker.
const VERSION: u32 = format::FIRST;

/// Writes what others read; only what changed.
#[derive(Debug)]
pub(super) struct Report {
    dir: PodDir,
    change: PathBuf,
    marker: Vec<u8>,
    status: PodStatus,
    written: bool,
    marked: bool,
}

impl Report {
    /// Reports on a pod whose status so far is `status`.
    pub(super) fn new(record: &PodRecord, dir: PodDir, status: PodStatus) -> Self {
        let marker = admission(record).to_string().into_bytes();
        Self { dir, change: record.change.clone(), marker, status, written: false, marked: false }
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
        let done = if admitted {
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
