//! `status.json`: what became of a pod. Its shim writes it, whoever wants to know reads it.

use serde::{Deserialize, Serialize};

use super::paths::PodDir;
use crate::error::{Context, Result};
use crate::model::outcome::PodOutcome;
use crate::model::pod::PodPhase;
use crate::model::time::Timestamp;
use crate::runtime::local::host::cgroup::PodGroups;
use crate::runtime::local::host::files::{self, Durability};
use crate::runtime::local::host::format;
use crate::runtime::local::host::process::{ProcessId, boot_id};
use crate::runtime::local::host::program::BUILD;

/// The version of the file that this program writes and reads.
const VERSION: u32 = 1;
/// A status holds a few messages of bounded size.
const MAX_BYTES: u64 = 4 << 20;

/// What is known of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodStatus {
    /// The version of this shape.
    pub(crate) v: u32,
    /// The run of the machine in which this was written.
    pub(crate) boot_id: String,
    /// The shim that wrote it.
    pub(crate) shim: Option<ProcessId>,
    /// What its program is called; a shim of before does not say it.
    #[serde(default)]
    pub(crate) build: String,
    /// Set before the first command starts: from then on nobody may start this pod's commands again.
    pub(crate) intent: bool,
    /// Its control groups, which are there before the intent is; a shim of before does not say them.
    #[serde(default)]
    pub(crate) groups: PodGroups,
    /// Where the pod is in its life.
    #[serde(flatten)]
    pub(crate) phase: PodPhase,
    /// Its containers.
    pub(crate) containers: Vec<ContainerStatus>,
    /// What holds it back or how it ended.
    pub(crate) message: String,
    /// When it ended.
    #[serde(default)]
    pub(crate) ended_at: Option<Timestamp>,
}

/// What is known of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ContainerStatus {
    /// Its name.
    pub(crate) name: String,
    /// Its process, while it runs.
    pub(crate) process: Option<ProcessId>,
    /// When that started.
    pub(crate) started_at: Option<Timestamp>,
    /// The exit code of the last process that ended, or 128 + the signal's number.
    pub(crate) exit: Option<i32>,
    /// How often it was started again.
    pub(crate) restarts: u32,
    /// Whether it may get new connections.
    pub(crate) ready: bool,
}

impl PodStatus {
    /// How often a container was started again.
    pub(crate) fn restarts_of(&self, container: &str) -> Option<u32> {
        self.containers.iter().find(|status| status.name == container).map(|status| status.restarts)
    }

    /// The status of a pod whose shim just began.
    pub(crate) fn beginning(boot_id: String, shim: Option<ProcessId>) -> Self {
        let (containers, message) = (Vec::new(), String::new());
        Self {
            v: VERSION,
            boot_id,
            shim,
            build: BUILD.to_owned(),
            intent: false,
            groups: PodGroups::default(),
            phase: PodPhase::Starting,
            containers,
            message,
            ended_at: None,
        }
    }

    /// Whether nothing of the pod runs any more.
    pub(crate) fn ended(&self) -> bool {
        matches!(self.phase, PodPhase::Ended { .. })
    }

    /// Whether the shim of another program than this one wrote it.
    pub(crate) fn is_of_another_build(&self) -> bool {
        self.build != BUILD
    }

    /// How often its containers were started again.
    pub(crate) fn restarts(&self) -> u32 {
        self.containers.iter().map(|container| container.restarts).fold(0, u32::saturating_add)
    }

    /// It as a run of the machine sees it: if an earlier one shut down, that is over, and keeps nothing from being started.
    pub(crate) fn seen_in(mut self, boot_id: &str) -> Self {
        if let PodPhase::Stopping { interrupted }
        | PodPhase::Ended { outcome: PodOutcome::Unknown { interrupted, .. } } = &mut self.phase
        {
            *interrupted &= self.boot_id == boot_id;
        }
        self
    }

    /// Writes it.
    pub(crate) fn write(&self, dir: &PodDir, durability: Durability) -> Result<()> {
        let wrong = || format!("cannot write `{}`", dir.status().display());
        let content = serde_json::to_vec(self).or_stalled(wrong)?;
        files::write_whole(&dir.status(), dir.path(), &content, durability).or_transient(wrong)
    }

    /// Reads the status of a folder; `None` if no shim wrote one yet.
    pub(crate) fn read(dir: &PodDir) -> Result<Option<Self>> {
        let path = dir.status();
        let wrong = || format!("cannot read `{}`", path.display());
        let Some(content) = files::read_bounded(&path, MAX_BYTES).or_transient(wrong)? else { return Ok(None) };
        format::parse(&content, VERSION).map(Some).or_stalled(wrong)
    }

    /// Reads the status of a folder in which no shim lives. If it is damaged, or gone although a shim was there, commands
    /// may have run, and nobody knows what they did.
    pub(crate) fn read_or_lost(dir: &PodDir) -> Result<Option<Self>> {
        let lost = || Self { intent: true, ..Self::beginning(boot_id(), None) };
        match Self::read(dir) {
            Ok(None) => Ok(dir.wake().exists().then(lost)),
            Err(failure) if format::is_damage(&failure) => Ok(Some(lost())),
            read => read,
        }
    }
}
