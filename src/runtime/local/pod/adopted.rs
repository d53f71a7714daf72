//! `adopted.json`: a life of the store that did not start a pod has made it one of its own.

use serde::{Deserialize, Serialize};

use super::paths::PodDir;
use super::record::PodRecord;
use crate::error::{Context, Result};
use crate::model::ids::Incarnation;
use crate::model::pod::{Origin, PodOwner};
use crate::runtime::local::host::files::{self, Durability};
use crate::runtime::local::host::format;

/// The version of the file that this program writes and reads.
const VERSION: u32 = format::FIRST;
/// More than a file of this kind ever holds.
const MAX_BYTES: u64 = 64 << 10;

/// Who took a pod over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Adopted {
    /// The version of this shape.
    #[serde(default = "format::first")]
    v: u32,
    /// The life of the store.
    incarnation: Incarnation,
    /// The version that the pod is one of there.
    version: u32,
}

impl Adopted {
    /// One of the pods of `version` from now on.
    pub(crate) fn new(incarnation: Incarnation, version: u32) -> Self {
        Self { v: VERSION, incarnation, version }
    }

    /// Writes it, so that it survives whatever comes.
    pub(crate) fn write(&self, dir: &PodDir) -> Result<()> {
        let wrong = || format!("cannot write `{}`", dir.adopted().display());
        let content = serde_json::to_vec(self).or_stalled(wrong)?;
        files::write_whole(&dir.adopted(), dir.path(), &content, Durability::Durable).or_transient(wrong)
    }

    fn read(dir: &PodDir) -> Result<Option<Self>> {
        let path = dir.adopted();
        let wrong = || format!("cannot read `{}`", path.display());
        let content = files::read_bounded(&path, MAX_BYTES).or_transient(wrong)?;
        match content.map(|content| format::parse(&content, VERSION).or_stalled(wrong)).transpose() {
            // Then it is a stranger again, which is judged anew.
            Err(failure) if format::is_damage(&failure) => Ok(None),
            read => read,
        }
    }
}

/// Whose a pod is in a life of the store, and where it comes from.
pub(crate) fn owner(record: &PodRecord, dir: &PodDir, life: &Incarnation) -> Result<(PodOwner, Origin)> {
    let mut owner = record.pod.owner.clone();
    if &record.incarnation == life {
        return Ok((owner, Origin::Own));
    }
    let adopted = Adopted::read(dir)?.filter(|adopted| &adopted.incarnation == life);
    let (Some(adopted), PodOwner::Version { version, .. }) = (adopted, &mut owner) else {
        return Ok((owner, Origin::Stranger));
    };
    *version = adopted.version;
    Ok((owner, Origin::Adopted))
}
