//! The pods that are known, in memory: what the folders say, as of the last change.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use super::adopted;
use super::paths::PodDir;
use super::record::PodRecord;
use super::status::PodStatus;
use crate::error::Result;
use crate::model::ids::{ConfigKey, Incarnation, Namespace, PodName};
use crate::model::pod::{ObservedPod, Origin, PodId, PodOwner, PodPhase, STRANGER};
use crate::model::time::Timestamp;
use crate::runtime::ImageUse;
use crate::runtime::local::service::PodEndpoint;

/// The least time between two shims of a pod.
const SHIM_PAUSE: Duration = Duration::from_secs(1);

/// Pods by identity.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pods: BTreeMap<PodId, Entry>,
    /// The pods of each deployment config.
    of_config: BTreeMap<ConfigKey, BTreeSet<PodId>>,
    addresses: BTreeSet<Ipv4Addr>,
    /// By how many pods that have not ended each port is used: those that listen on their own address may share one.
    ports: BTreeMap<u16, usize>,
}

/// A pod.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its folder.
    pub(crate) dir: PodDir,
    status: Option<PodStatus>,
    /// Whose it is.
    pub(crate) owner: PodOwner,
    /// Which life of the store it comes from.
    pub(crate) origin: Origin,
    /// Whether the end of its shim is being waited for.
    pub(crate) watched: bool,
    /// When a shim was last started for it.
    pub(crate) shim_started: Option<Instant>,
    /// Whether it was asked to end.
    pub(crate) stop_requested: bool,
    /// When it was asked for.
    pub(crate) created_at: Timestamp,
    labels: BTreeMap<String, String>,
    address: Ipv4Addr,
    ports: Vec<u16>,
    images: Vec<ImageUse>,
}

/// What a pod's shim said that is new.
#[derive(Debug)]
pub(crate) struct StatusChange {
    /// Whose pod it is.
    pub(crate) owner: PodOwner,
    /// Whether it has ended with this.
    pub(crate) ended: bool,
}

impl Entry {
    /// A pod as recorded.
    pub(crate) fn new(
        record: &PodRecord,
        dir: PodDir,
        status: Option<PodStatus>,
        (owner, origin): (PodOwner, Origin),
    ) -> Self {
        Self {
            stop_requested: dir.stop().exists(),
            dir,
            status,
            owner,
            origin,
            watched: false,
            shim_started: None,
            labels: record.pod.template.metadata.labels.clone(),
            created_at: record.created_at,
            address: record.address,
            ports: record.ports.iter().map(|port| port.real).collect(),
            images: images(record),
        }
    }

    /// The pod of a folder, as a life of the store sees it; `None` if it holds none.
    pub(crate) fn read(dir: &PodDir, life: &Incarnation) -> Result<Option<Self>> {
        let Some(record) = PodRecord::read(dir)? else { return Ok(None) };
        let owner = adopted::owner(&record, dir, life)?;
        Ok(Some(Self::new(&record, dir.clone(), PodStatus::read(dir)?, owner)))
    }

    /// What its shim said last.
    pub(crate) fn status(&self) -> Option<&PodStatus> {
        self.status.as_ref()
    }

    /// Whether nothing of it runs any more.
    pub(crate) fn ended(&self) -> bool {
        self.status.as_ref().is_some_and(PodStatus::ended)
    }

    /// Whether it needs a shim now. One that ended at once is not followed by another at once.
    pub(crate) fn lacks_shim(&self) -> bool {
        !self.watched && !self.ended() && self.shim_started.is_none_or(|started| started.elapsed() > SHIM_PAUSE)
    }

    /// Whether another life of the store started it to run once.
    fn is_strange_run(&self) -> bool {
        self.origin == Origin::Stranger && matches!(self.owner, PodOwner::Run { .. })
    }

    /// It as services see it; nothing of it answers once it has ended.
    fn endpoint(&self, id: &PodId) -> Option<PodEndpoint> {
        let version = match &self.owner {
            PodOwner::Version { config, .. } if self.origin == Origin::Stranger => Some((config.clone(), STRANGER)),
            PodOwner::Version { config, version, .. } => Some((config.clone(), *version)),
            PodOwner::Run { .. } => None,
        };
        let (name, dir) = (id.name.to_string(), self.dir.path().to_owned());
        (!self.ended()).then(|| PodEndpoint { name, labels: self.labels.clone(), dir, version })
    }

    fn observed(&self, id: &PodId) -> ObservedPod {
        let status = self.status.as_ref();
        let stopping = self.stop_requested && !self.ended();
        let phase = status.map_or(PodPhase::Starting, |status| status.phase.clone());
        ObservedPod {
            id: id.clone(),
            owner: self.owner.clone(),
            origin: self.origin,
            labels: self.labels.clone(),
            phase: if stopping { PodPhase::Stopping } else { phase },
            restarts: status.map_or(0, PodStatus::restarts),
            message: status.map(|status| status.message.clone()).unwrap_or_default(),
            created_at: self.created_at,
            ended_at: status.and_then(|status| status.ended_at),
        }
    }
}

fn images(record: &PodRecord) -> Vec<ImageUse> {
    let installed = record.containers().filter(|container| record.images.contains_key(&container.name));
    let repository = &record.pod.repository;
    installed.map(|it| ImageUse { repository: repository.clone(), image: it.image.clone() }).collect()
}

impl Table {
    /// A pod.
    pub(crate) fn get(&self, id: &PodId) -> Option<&Entry> {
        self.pods.get(id)
    }

    /// A pod, to be changed.
    pub(crate) fn get_mut(&mut self, id: &PodId) -> Option<&mut Entry> {
        self.pods.get_mut(id)
    }

    /// Adds a pod.
    pub(crate) fn insert(&mut self, id: PodId, entry: Entry) {
        self.remove(&id);
        self.addresses.insert(entry.address);
        if !entry.ended() {
            take_ports(&mut self.ports, &entry);
        }
        if let PodOwner::Version { config, .. } = &entry.owner {
            self.of_config.entry(config.clone()).or_default().insert(id.clone());
        }
        self.pods.insert(id, entry);
    }

    /// Takes over what a pod's shim says; says what is new, if anything is.
    pub(crate) fn set_status(&mut self, id: &PodId, status: Option<PodStatus>) -> Option<StatusChange> {
        let entry = self.pods.get_mut(id).filter(|entry| entry.status != status)?;
        let before = entry.ended();
        entry.status = status;
        let ended = !before && entry.ended();
        if ended {
            give_ports_back(&mut self.ports, entry);
        }
        Some(StatusChange { owner: entry.owner.clone(), ended })
    }

    /// Forgets a pod.
    pub(crate) fn remove(&mut self, id: &PodId) {
        let Some(entry) = self.pods.remove(id) else { return };
        self.addresses.remove(&entry.address);
        if !entry.ended() {
            give_ports_back(&mut self.ports, &entry);
        }
        if let PodOwner::Version { config, .. } = &entry.owner
            && let Some(pods) = self.of_config.get_mut(config)
        {
            pods.remove(id);
            if pods.is_empty() {
                self.of_config.remove(config);
            }
        }
    }

    /// All identities.
    pub(crate) fn ids(&self) -> Vec<PodId> {
        self.pods.keys().cloned().collect()
    }

    /// The pods that need a shim now.
    pub(crate) fn without_shim(&self) -> Vec<PodId> {
        self.pods.iter().filter(|(_, entry)| entry.lacks_shim()).map(|(id, _)| id.clone()).collect()
    }

    /// The pods of a namespace, sorted by name.
    pub(crate) fn observe(&self, namespace: &Namespace) -> Vec<ObservedPod> {
        self.of(namespace).map(|(id, entry)| entry.observed(id)).collect()
    }

    /// The pods of a deployment config, sorted by name.
    pub(crate) fn observe_config(&self, config: &ConfigKey) -> Vec<ObservedPod> {
        let pods = self.of_config.get(config).into_iter().flatten();
        pods.filter_map(|id| Some(self.pods.get(id)?.observed(id))).collect()
    }

    /// One pod.
    pub(crate) fn observe_pod(&self, id: &PodId) -> Option<ObservedPod> {
        self.pods.get(id).map(|entry| entry.observed(id))
    }

    /// The pods of a namespace that services may lead to.
    pub(crate) fn endpoints(&self, namespace: &Namespace) -> Vec<PodEndpoint> {
        self.of(namespace).filter_map(|(id, entry)| entry.endpoint(id)).collect()
    }

    /// One pod, if services may lead to it.
    pub(crate) fn endpoint(&self, id: &PodId) -> Option<PodEndpoint> {
        self.pods.get(id).and_then(|entry| entry.endpoint(id))
    }

    /// The run-once pods of a namespace that another life of the store has left and that still run.
    pub(crate) fn strange_runs(&self, namespace: &Namespace) -> Vec<PodId> {
        let strange = self.of(namespace).filter(|(_, entry)| entry.is_strange_run() && !entry.ended());
        strange.map(|(id, _)| id.clone()).collect()
    }

    /// The namespaces that have pods.
    pub(crate) fn namespaces(&self) -> BTreeSet<Namespace> {
        self.pods.keys().map(|id| id.namespace.clone()).collect()
    }

    /// Whether a pod has this address.
    pub(crate) fn has_address(&self, address: Ipv4Addr) -> bool {
        self.addresses.contains(&address)
    }

    /// Whether a pod has this port; one that ended has no use for its own.
    pub(crate) fn has_port(&self, port: u16) -> bool {
        self.ports.contains_key(&port)
    }

    /// The images that are in use.
    pub(crate) fn images(&self) -> Vec<ImageUse> {
        self.pods.values().filter(|entry| !entry.ended()).flat_map(|entry| entry.images.iter().cloned()).collect()
    }

    fn of(&self, namespace: &Namespace) -> impl Iterator<Item = (&PodId, &Entry)> {
        let first = PodId { namespace: namespace.clone(), name: PodName::new("") };
        self.pods.range(first..).take_while(move |(id, _)| id.namespace == *namespace)
    }
}

fn take_ports(ports: &mut BTreeMap<u16, usize>, entry: &Entry) {
    for port in &entry.ports {
        *ports.entry(*port).or_default() += 1;
    }
}

fn give_ports_back(ports: &mut BTreeMap<u16, usize>, entry: &Entry) {
    for port in &entry.ports {
        if let Some(users) = ports.get_mut(port) {
            *users -= 1;
            if *users == 0 {
                ports.remove(port);
            }
        }
    }
}
