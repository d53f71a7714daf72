//! The files through which the daemon, the services' shim and their proxy speak to each other.
//!
//! They are of one version ([`VERSION`]), which each but the list of endpoints names. The shim and the proxy run on with
//! the program that they were started with until a daemon of another one renews them: see [`mod@format`].

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::spec;
use crate::error::{Failure, Result};
use crate::model::ids::Namespace;
use crate::model::pod::Scalar;
use crate::runtime::local::host::files::{self, Durability};
use crate::runtime::local::host::format;
use crate::runtime::{ServiceAddress, ServicePort, ServiceSpec};

/// The version of these files that this program writes and reads.
pub(super) const VERSION: u32 = format::FIRST;
/// The most that one of these files may hold; an endpoint list of thousands of pods is far below.
const MAX_FILE: u64 = 4 << 20;

/// A pod behind a service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Endpoint {
    /// The folder of one that gets as much as every other.
    Equal(PathBuf),
    /// One of a version that has a weight.
    Weighed {
        /// Its folder.
        dir: PathBuf,
        /// What it shares the weight with.
        version: String,
        /// The weight.
        weight: u32,
    },
    /// One of a version for which the service has other ports.
    Earlier {
        /// As it would be else.
        pod: Box<Endpoint>,
        /// The ports.
        ports: Vec<ServicePort>,
    },
}

impl Endpoint {
    /// The pod's folder.
    pub(super) fn dir(&self) -> &Path {
        match self {
            Self::Equal(dir) | Self::Weighed { dir, .. } => dir,
            Self::Earlier { pod, .. } => pod.dir(),
        }
    }

    /// The version that it shares a weight with, and that weight.
    pub(super) fn share(&self) -> Option<(&str, u32)> {
        match self {
            Self::Equal(_) => None,
            Self::Weighed { version, weight, .. } => Some((version, *weight)),
            Self::Earlier { pod, .. } => pod.share(),
        }
    }
}

/// The folder of all services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServicesDir(PathBuf);

impl ServicesDir {
    pub(super) fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Locked by the living shim.
    pub(super) fn lock(&self) -> PathBuf {
        self.0.join("shim.lock")
    }

    /// The process id of the shim; it means something only while the lock is held. If it is there and the lock is not held,
    /// the shim has died.
    pub(super) fn pid(&self) -> PathBuf {
        self.0.join("shim.pid")
    }

    /// What the shim and the proxy complain about.
    pub(super) fn log(&self) -> PathBuf {
        self.0.join("services.log")
    }

    /// The namespaces that have services.
    pub(super) fn namespaces(&self) -> io::Result<Vec<Namespace>> {
        let folders = files::folders(&self.0)?;
        Ok(folders.iter().filter_map(|folder| Some(Namespace::from(folder.file_name()?.to_str()?))).collect())
    }

    /// The services of a namespace that have a folder, by name. Nobody has applied what is no name.
    pub(super) fn services_of(&self, namespace: &Namespace) -> io::Result<Vec<ServiceId>> {
        let folders = files::folders(&self.0.join(namespace.as_str()))?;
        let id = |folder: &PathBuf| ServiceId::new(namespace.as_str(), folder.file_name()?.to_str()?).ok();
        Ok(folders.iter().filter_map(id).collect())
    }

    /// All services that have a folder.
    pub(super) fn services(&self) -> io::Result<Vec<ServiceId>> {
        let of_each = self.namespaces()?.into_iter().map(|namespace| self.services_of(&namespace));
        Ok(of_each.collect::<io::Result<Vec<_>>>()?.concat())
    }

    /// The folder of a service.
    pub(super) fn of(&self, service: &ServiceId) -> ServiceDir {
        ServiceDir::new(self.0.join(&service.0))
    }
}

/// Which service of this machine: `<namespace>/<name>`, which is also where its folder lies.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct ServiceId(String);

impl ServiceId {
    /// # Errors
    /// If one of the two is no name.
    pub(super) fn new(namespace: &str, name: &str) -> Result<Self> {
        spec::check_name(namespace).and(spec::check_name(name))?;
        Ok(Self(format!("{namespace}/{name}")))
    }

    /// The service's name in its namespace.
    pub(super) fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }
}

impl TryFrom<String> for ServiceId {
    type Error = Failure;

    fn try_from(text: String) -> Result<Self> {
        let (namespace, name) = text.split_once('/').unwrap_or_default();
        Self::new(namespace, name)
    }
}

impl fmt::Display for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The folder of one service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServiceDir(PathBuf);

impl ServiceDir {
    pub(super) fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// What is wanted; only the daemon writes it.
    pub(super) fn record(&self) -> PathBuf {
        self.0.join("service.json")
    }

    /// The pods behind it, as a list of [`Endpoint`]s; only the daemon writes it.
    pub(super) fn endpoints(&self) -> PathBuf {
        self.0.join("endpoints.json")
    }

    /// Puts one of these files in place as a whole.
    pub(super) fn write(&self, path: &Path, value: &impl Serialize, durability: Durability) -> io::Result<()> {
        files::write_whole(path, &self.0, &serde_json::to_vec_pretty(value)?, durability)
    }
}

/// Reads one of these files; `None` if it is not there.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let Some(content) = files::read_bounded(path, MAX_FILE)? else { return Ok(None) };
    format::parse(&content, VERSION).map(Some).map_err(|problem| io::Error::new(io::ErrorKind::InvalidData, problem))
}

/// Like [`read`]; what is damaged is not there, because nobody will ever read it.
pub(super) fn read_whole<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match read(path) {
        Err(error) if is_damage(&error) => {
            tracing::warn!(file = %path.display(), %error, "what cannot be read is written anew");
            Ok(None)
        }
        read => read,
    }
}

/// Whether one of these files is not what it says it is.
pub(super) fn is_damage(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|problem| format::is_damage(problem))
}

/// `service.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ServiceRecord {
    /// The version of this shape.
    #[serde(default = "format::first")]
    pub(super) v: u32,
    /// Counts the changes, so that the shim can say which one it has made true.
    pub(super) generation: u64,
    /// The service's address, the same for its whole life.
    pub(super) address: Ipv4Addr,
    /// What is wanted.
    pub(super) spec: ServiceSpec,
}

impl ServiceRecord {
    /// Where it answers.
    pub(super) fn address(&self) -> ServiceAddress {
        let (name, ports) = (self.spec.name.clone(), self.spec.ports.clone());
        ServiceAddress { name, address: IpAddr::V4(self.address), ports, selects: None, ready: 0, problem: None }
    }

    /// Where connections to one of the service's ports go in a pod.
    pub(super) fn target_port<'a>(&'a self, pod: &'a Endpoint, port: u16) -> Option<&'a Scalar> {
        let ports = match pod {
            Endpoint::Earlier { ports, .. } => ports,
            Endpoint::Equal(_) | Endpoint::Weighed { .. } => &self.spec.ports,
        };
        ports.iter().find(|candidate| candidate.port == port).map(|found| &found.target_port)
    }
}

/// `<pod dir>/ready`: where a pod that is ready takes its connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReadyMarker {
    /// The pod's address.
    pub(super) address: Arc<str>,
    /// The real port of each declared number and name.
    #[serde(default)]
    pub(super) ports: BTreeMap<String, u16>,
}

impl ReadyMarker {
    /// The real port behind a service's target: a declared name or number, else the number itself.
    pub(super) fn resolve(&self, target: &Scalar) -> Option<u16> {
        match target {
            Scalar::Number(number) => {
                self.ports.get(&number.to_string()).copied().or_else(|| u16::try_from(*number).ok())
            }
            Scalar::Text(name) => self.ports.get(name).copied().or_else(|| name.parse().ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_declared_name_or_number_or_the_number_itself() {
        let text = r#"{"address":"127.0.0.1","ports":{"8080":41234,"http":41234}}"#;
        let marker: ReadyMarker = serde_json::from_str(text).unwrap();
        let cases = [
            (Scalar::Number(8080), Some(41234)),
            (Scalar::Text("http".into()), Some(41234)),
            (Scalar::Text("8080".into()), Some(41234)),
            (Scalar::Number(9090), Some(9090)),
            (Scalar::Text("admin".into()), None),
            (Scalar::Number(70_000), None),
            (Scalar::Number(-1), None),
        ];
        for (target, expected) in cases {
            assert_eq!(marker.resolve(&target), expected, "{target:?}");
        }
    }

    #[test]
    fn a_service_is_named_by_its_folder_which_leads_nowhere_else() {
        let read = |text: &str| serde_json::from_value::<ServiceId>(text.into());
        let dir = ServicesDir::new("/s").of(&read("shop-dev/web").unwrap());
        assert_eq!(dir.record(), Path::new("/s/shop-dev/web/service.json"));
        for text in ["", "web", "../web", "shop-dev/", "shop-dev/../web", "/etc/web", "a/b/c"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
