//! `pod.json`: everything that was decided about a pod before it started. It never changes afterwards, so that a shim reads
//! what daemons of all versions wrote.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::logs::LogLimits;
use super::paths::{self, PodDir};
use crate::error::{Context, Failure, Result};
use crate::model::ids::Incarnation;
use crate::model::object::{Kind, ObjectKey};
use crate::model::pod::{Container, Pod, Scalar};
use crate::model::time::Timestamp;
use crate::runtime::ServiceAddress;
use crate::runtime::local::host::files::{self, Durability};
use crate::runtime::local::host::format;

/// The version of the file that this program writes and reads.
const VERSION: u32 = 1;
/// ConfigMaps and Secrets hold at most 1 MiB each; a pod refers to a handful.
const MAX_BYTES: u64 = 64 << 20;

/// A pod as it was asked for, with all it needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodRecord {
    /// The version of this shape.
    pub(crate) v: u32,
    /// Another one for every pod, also if it has the name of an earlier one.
    pub(crate) uid: String,
    /// When it was asked for.
    pub(crate) created_at: Timestamp,
    /// The life of the store that asked for it.
    pub(crate) incarnation: Incarnation,
    /// What was asked for.
    pub(crate) pod: Pod,
    /// The ConfigMaps and Secrets that it refers to.
    pub(crate) objects: Vec<StoredObject>,
    /// `POD_IP`: its own address on this machine.
    pub(crate) address: Ipv4Addr,
    /// The real ports of its declared ones.
    pub(crate) ports: Vec<PortMapping>,
    /// The launchable of each container; none for `host`.
    pub(crate) images: BTreeMap<String, PathBuf>,
    /// The services of its namespace.
    pub(crate) services: Vec<ServiceAddress>,
    /// Where to find commands.
    pub(crate) search_path: String,
    /// The folder of its namespace's claims.
    pub(crate) claims: PathBuf,
    /// The folders of the machine that it may use.
    pub(crate) host_paths: Vec<PathBuf>,
    /// The folders of which its processes see nothing but what is their own; none if an older daemon asked for it.
    #[serde(default)]
    pub(crate) hidden: Vec<PathBuf>,
    /// The folder of the socket by which it reaches the daemon, if it is a deployer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) api: Option<PathBuf>,
    /// The file to touch when it changes.
    pub(crate) change: PathBuf,
    /// How much of its containers' output is kept.
    #[serde(default)]
    pub(crate) logs: LogLimits,
    /// The socket of the journal to which the output goes too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) journal: Option<PathBuf>,
}

/// An object with its key; JSON has no maps by key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredObject {
    /// Which.
    pub(crate) key: ObjectKey,
    /// What it holds.
    pub(crate) content: Value,
}

/// A declared port and the one that stands for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PortMapping {
    /// The container that declares it.
    pub(crate) container: String,
    /// Its name, if it has one.
    pub(crate) name: Option<String>,
    /// `containerPort`.
    pub(crate) declared: u16,
    /// Where the container listens.
    pub(crate) real: u16,
}

impl PodRecord {
    /// The version to put into a new record.
    pub(crate) const VERSION: u32 = VERSION;

    /// The value of the mark that all its processes carry.
    pub(crate) fn mark(&self) -> String {
        format!("{}:{}", self.pod.id, self.uid)
    }

    /// All its containers, those that initialise first.
    pub(crate) fn containers(&self) -> impl Iterator<Item = &Container> {
        self.pod.template.spec.init_containers.iter().chain(&self.pod.template.spec.containers)
    }

    /// A container by name.
    pub(crate) fn container(&self, name: &str) -> Option<&Container> {
        self.containers().find(|container| container.name == name)
    }

    /// The name of a container, if there is one of that name.
    pub(crate) fn existing<'a>(&self, name: &'a str) -> Result<&'a str> {
        paths::component(name)?;
        let there = self.container(name).is_some();
        if there { Ok(name) } else { Err(Failure::stalled(format!("pod `{}` has no container `{name}`", self.pod.id))) }
    }

    /// Whether its processes bind `POD_IP` with their declared ports.
    pub(crate) fn listens_on_pod_ip(&self) -> bool {
        let listen = self.pod.template.metadata.annotations.get(crate::runtime::local::LISTEN_ANNOTATION);
        listen.is_some_and(|value| value == "pod-ip")
    }

    /// Where probes and services reach it.
    pub(crate) fn reachable_at(&self) -> Ipv4Addr {
        if self.listens_on_pod_ip() { self.address } else { Ipv4Addr::LOCALHOST }
    }

    /// The real port behind a declared one; a number that was not declared stands for itself.
    pub(crate) fn real_port(&self, container: &str, port: &Scalar) -> Result<u16, String> {
        let matches = |mapping: &&PortMapping| match port {
            Scalar::Number(number) => i64::from(mapping.declared) == *number,
            Scalar::Text(name) => mapping.name.as_deref() == Some(name) || mapping.declared.to_string() == *name,
        };
        let own = self.ports.iter().filter(|mapping| mapping.container == container).find(matches);
        match (own.or_else(|| self.ports.iter().find(matches)), port) {
            (Some(mapping), _) => Ok(mapping.real),
            (None, Scalar::Number(number)) => port_number(*number),
            (None, Scalar::Text(name)) => {
                name.parse().ok().ok_or_else(|| format!("no container port is named `{name}`"))
            }
        }
    }

    /// The data of a ConfigMap or Secret.
    pub(crate) fn object(&self, kind: &Kind, name: &str) -> Option<&Value> {
        let wanted = |object: &&StoredObject| object.key.kind == *kind && object.key.name == name;
        self.objects.iter().find(wanted).map(|object| &object.content)
    }

    /// Writes it, so that it survives whatever comes.
    pub(crate) fn write(&self, dir: &PodDir) -> Result<()> {
        let content = serde_json::to_vec(self).or_stalled(|| format!("cannot write down pod `{}`", self.pod.id))?;
        files::write_whole(&dir.record(), dir.path(), &content, Durability::Durable)
            .or_transient(|| format!("cannot write `{}`", dir.record().display()))
    }

    /// Reads the record of a folder; `None` if it holds no pod.
    pub(crate) fn read(dir: &PodDir) -> Result<Option<Self>> {
        let path = dir.record();
        let wrong = || format!("cannot read `{}`", path.display());
        let Some(content) = files::read_bounded(&path, MAX_BYTES).or_transient(wrong)? else { return Ok(None) };
        format::parse(&content, VERSION).map(Some).or_stalled(wrong)
    }
}

/// A number as a port.
pub(crate) fn port_number(number: i64) -> Result<u16, String> {
    u16::try_from(number).ok().filter(|port| *port > 0).ok_or_else(|| format!("{number} is no port"))
}
