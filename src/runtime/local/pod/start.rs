//! Writing down a pod before it starts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use serde_json::Value;

use super::logs::LogLimits;
use super::paths::{self, PodDir};
use super::record::{PodRecord, PortMapping, StoredObject};
use crate::error::{Context, Failure, Result};
use crate::model::ids::Incarnation;
use crate::model::object::ObjectKey;
use crate::model::pod::{Container, ContainerPort, Pod};
use crate::model::time::Timestamp;
use crate::runtime::ServiceAddress;
use crate::runtime::local::host::address::{choose_address, choose_port, is_free, number_of};
use crate::runtime::local::host::files;

/// All that goes into a record besides the pod.
pub(crate) struct Surroundings {
    pub(crate) created_at: Timestamp,
    pub(crate) incarnation: Incarnation,
    pub(crate) images: BTreeMap<String, PathBuf>,
    pub(crate) services: Vec<ServiceAddress>,
    pub(crate) search_path: String,
    pub(crate) claims: PathBuf,
    pub(crate) host_paths: Vec<PathBuf>,
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) api: Option<PathBuf>,
    pub(crate) change: PathBuf,
    pub(crate) logs: LogLimits,
    pub(crate) journal: Option<PathBuf>,
}

/// What other pods have.
pub(crate) struct InUse<'a> {
    pub(crate) address: &'a dyn Fn(Ipv4Addr) -> bool,
    pub(crate) port: &'a dyn Fn(u16) -> bool,
}

/// Writes a new pod down, durably: from now on it exists.
pub(crate) fn write_record(
    pod: &Pod,
    objects: &BTreeMap<ObjectKey, Value>,
    dir: &PodDir,
    around: Surroundings,
    in_use: &InUse<'_>,
) -> Result<PodRecord> {
    check_names(pod)?;
    let uid = make_folder(pod, dir, around.created_at)?;
    let seed = number_of(&format!("{} {uid}", dir.path().display()));
    let address = choose_address(seed, in_use.address)
        .ok_or_else(|| Failure::waiting("all addresses of this machine's pods are in use"))?;
    let mut record = PodRecord {
        v: PodRecord::VERSION,
        uid,
        created_at: around.created_at,
        incarnation: around.incarnation,
        pod: pod.clone(),
        objects: stored(objects),
        address,
        ports: Vec::new(),
        images: around.images,
        services: around.services,
        search_path: around.search_path,
        claims: around.claims,
        host_paths: around.host_paths,
        hidden: around.hidden,
        api: around.api,
        change: around.change,
        logs: around.logs,
        journal: around.journal,
    };
    record.ports = map_ports(&record, seed, in_use)?;
    record.write(dir)?;
    Ok(record)
}

/// Containers name files, and messages name containers.
fn check_names(pod: &Pod) -> Result<()> {
    let spec = &pod.template.spec;
    let mut names = BTreeSet::new();
    for container in spec.init_containers.iter().chain(&spec.containers) {
        if !names.insert(paths::component(&container.name)?) {
            return Err(Failure::stalled(format!("two containers are named `{}`", container.name)));
        }
    }
    Ok(())
}

/// Makes the pod's folder; the result is an id that no other pod of this machine has or had.
fn make_folder(pod: &Pod, dir: &PodDir, created_at: Timestamp) -> Result<String> {
    let wrong = || format!("cannot make `{}`", dir.path().display());
    let spec = &pod.template.spec;
    let containers = spec.init_containers.iter().chain(&spec.containers);
    let contexts = containers.map(|container| container.security_context).chain([spec.security_context]);
    let other_users = contexts.into_iter().any(|context| context.run_as_user.is_some());
    if let Some(parent) = dir.path().parent() {
        files::make_folder(parent, 0o711).or_transient(wrong)?;
    }
    // Other users' processes must be able to reach their volumes, but not to list anything.
    let mode = if other_users { 0o711 } else { 0o700 };
    files::make_folder(dir.path(), mode).or_transient(wrong)?;
    files::make_file(&dir.connections()).or_transient(wrong)?;
    Ok(format!("{}{:x}", folder_id(dir).or_transient(wrong)?, created_at.0))
}

/// With what the id begins of every pod that this folder is or was of.
pub(crate) fn folder_id(dir: &PodDir) -> io::Result<String> {
    Ok(format!("{:x}-", fs::metadata(dir.path())?.ino()))
}

fn stored(objects: &BTreeMap<ObjectKey, Value>) -> Vec<StoredObject> {
    let pairs = objects.iter();
    pairs.map(|(key, content)| StoredObject { key: key.clone(), content: content.clone() }).collect()
}

/// Gives every declared TCP port its `hostPort` or a free one, or itself if the pod binds its own address.
fn map_ports(record: &PodRecord, seed: u32, in_use: &InUse<'_>) -> Result<Vec<PortMapping>> {
    let mut own = BTreeSet::new();
    let own_address = record.listens_on_pod_ip();
    let tcp = |port: &&ContainerPort| port.protocol.as_deref().is_none_or(|protocol| protocol == "TCP");
    let declared = |container: &Container| container.ports.iter().filter(tcp).cloned().collect::<Vec<_>>();
    let all =
        record.containers().flat_map(|container| declared(container).into_iter().map(|port| (&container.name, port)));
    all.map(|(container, port)| {
        let real = match port.host_port.filter(|asked| *asked > 0) {
            _ if own_address => port.container_port,
            Some(asked) if own.contains(&asked) || (in_use.port)(asked) => {
                return Err(Failure::waiting(format!("another pod has `hostPort` {asked}")));
            }
            Some(asked) if !is_free(asked) => {
                return Err(Failure::waiting(format!("another program of this machine has `hostPort` {asked}")));
            }
            Some(asked) => asked,
            None => choose_port(seed, |port| own.contains(&port) || (in_use.port)(port))
                .ok_or_else(|| Failure::waiting("all ports for pods of this machine are in use"))?,
        };
        own.insert(real);
        Ok(PortMapping { container: container.clone(), name: port.name, declared: port.container_port, real })
    })
    .collect()
}
