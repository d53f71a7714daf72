//! The pods that are known, in memory: what the folders say, as of the last change.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::adopted;
use super::index::Index;
use super::lost::Lost;
use super::paths::PodDir;
use super::record::PodRecord;
use super::status::PodStatus;
use crate::error::Result;
use crate::model::ids::{ConfigKey, Incarnation, Namespace, PodName};
use crate::model::pod::{ObservedPod, Origin, PodId, PodOwner, PodPhase, STRANGER};
use crate::model::time::Timestamp;
use crate::runtime::ImageUse;
use crate::runtime::local::host::format;
use crate::runtime::local::host::process::boot_id;
use crate::runtime::local::service::PodEndpoint;

/// The least time between two shims of a pod.
const SHIM_PAUSE: Duration = Duration::from_secs(1);

/// Pods by identity.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pods: BTreeMap<PodId, Box<Entry>>,
    /// The pods of each deployment config.
    of_config: BTreeSet<(ConfigKey, PodId)>,
    addresses: BTreeSet<Ipv4Addr>,
    /// By how many pods that have not ended each port is used: those that listen on their own address may share one.
    ports: BTreeMap<u16, usize>,
    /// Which of them need something.
    index: Index,
    /// Those whose records cannot be read.
    lost: BTreeMap<PodId, Lost>,
}

/// A pod.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its folder.
    pub(crate) dir: PodDir,
    status: Option<PodStatus>,
    /// Since when its shim's last word is damaged or gone, and what people read of it.
    unreadable: Option<(Instant, String)>,
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
    /// Whether its folder is being deleted, because nobody needs it any more.
    pub(crate) leaves: bool,
    /// When it was asked for.
    pub(crate) created_at: Timestamp,
    labels: Arc<BTreeMap<String, String>>,
    address: Ipv4Addr,
    ports: Vec<u16>,
    images: Box<[ImageUse]>,
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
            unreadable: None,
            owner,
            origin,
            watched: false,
            leaves: false,
            shim_started: None,
            labels: record.pod.template.metadata.labels.clone().into(),
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
        let (status, unreadable) = match PodStatus::read(dir) {
            Ok(status) => (status.map(|status| status.seen_in(&boot_id())), None),
            Err(failure) if !format::is_damage(&failure) => return Err(failure),
            Err(failure) => (None, Some((Instant::now(), failure.one_line()))),
        };
        Ok(Some(Self { unreadable, ..Self::new(&record, dir.clone(), status, owner) }))
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

    /// Whether its shim's last word is damaged or gone.
    pub(super) fn is_unreadable(&self) -> bool {
        self.unreadable.is_some()
    }

    /// It as services see it; nothing of it answers once it has ended.
    fn endpoint(&self, id: &PodId) -> Option<PodEndpoint> {
        let version = match &self.owner {
            PodOwner::Version { config, .. } if self.origin == Origin::Stranger => Some((config.clone(), STRANGER)),
            PodOwner::Version { config, version, .. } => Some((config.clone(), *version)),
            PodOwner::Run { .. } | PodOwner::Unknown => None,
        };
        let (name, labels, dir) = (id.name.clone(), self.labels.clone(), self.dir.clone());
        (!self.ended()).then_some(PodEndpoint { name, labels, dir, version })
    }

    fn observed(&self, id: &PodId) -> ObservedPod {
        let status = self.status.as_ref();
        let stopping = self.stop_requested && !self.ended();
        let phase = status.map_or(PodPhase::Starting, |status| status.phase.clone());
        let unreadable = self.unreadable.as_ref().map(|(_, why)| why.clone());
        ObservedPod {
            id: id.clone(),
            owner: self.owner.clone(),
            origin: self.origin,
            labels: self.labels.clone(),
            phase: if stopping { PodPhase::Stopping { interrupted: false } } else { phase },
            restarts: status.map_or(0, PodStatus::restarts),
            message: unreadable.or_else(|| status.map(|status| status.message.clone())).unwrap_or_default(),
            created_at: self.created_at,
            ended_at: status.and_then(|status| status.ended_at),
        }
    }
}

fn images(record: &PodRecord) -> Box<[ImageUse]> {
    let installed = record.containers().filter(|container| record.images.contains_key(&container.name));
    let repository = &record.pod.repository;
    installed.map(|it| ImageUse { repository: repository.clone(), image: it.image.clone() }).collect()
}

impl Table {
    /// A pod.
    pub(crate) fn get(&self, id: &PodId) -> Option<&Entry> {
        self.pods.get(id).map(Box::as_ref)
    }

    /// Changes a pod, if it is known.
    pub(crate) fn change<T>(&mut self, id: &PodId, change: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        let entry = self.pods.get_mut(id)?;
        let changed = change(entry);
        self.index.note(id, Some(entry));
        Some(changed)
    }

    /// Adds a pod.
    pub(crate) fn insert(&mut self, id: PodId, entry: Entry) {
        self.remove(&id);
        self.lost.remove(&id);
        self.addresses.insert(entry.address);
        if !entry.ended() {
            take_ports(&mut self.ports, &entry);
        }
        if let PodOwner::Version { config, .. } = &entry.owner {
            self.of_config.insert((config.clone(), id.clone()));
        }
        self.index.note(&id, Some(&entry));
        self.pods.insert(id, entry.into());
    }

    /// Takes over what a pod's shim says; says what is new, if anything is.
    pub(crate) fn set_status(&mut self, id: &PodId, status: Option<PodStatus>) -> Option<StatusChange> {
        let change = self.change(id, |entry| {
            let was_unreadable = entry.unreadable.take().is_some();
            if entry.status == status && !was_unreadable {
                return None;
            }
            let before = entry.ended();
            entry.status = status;
            Some(StatusChange { owner: entry.owner.clone(), ended: !before && entry.ended() })
        })??;
        if let Some(entry) = self.pods.get(id).filter(|_| change.ended) {
            give_ports_back(&mut self.ports, entry);
        }
        Some(change)
    }

    /// Forgets a pod.
    pub(crate) fn remove(&mut self, id: &PodId) {
        let Some(entry) = self.pods.remove(id) else { return };
        self.index.note(id, None);
        self.addresses.remove(&entry.address);
        if !entry.ended() {
            give_ports_back(&mut self.ports, &entry);
        }
        if let PodOwner::Version { config, .. } = &entry.owner {
            self.of_config.remove(&(config.clone(), id.clone()));
        }
    }

    /// Notes that what a pod's shim said last is damaged or gone.
    pub(crate) fn cannot_read(&mut self, id: &PodId, why: String) {
        self.change(id, |entry| _ = entry.unreadable.get_or_insert((Instant::now(), why)));
    }

    /// The pods of which that is so, with for how long.
    pub(crate) fn unreadable(&self) -> Vec<(PodId, PodDir, Duration)> {
        let since = |entry: &Entry| entry.unreadable.as_ref().map(|(since, _)| since.elapsed());
        let those = self.index.unreadable.iter().filter_map(|id| Some((id, self.get(id)?)));
        those.filter_map(|(id, entry)| Some((id.clone(), entry.dir.clone(), since(entry)?))).collect()
    }

    /// Whether there is anything that cannot be read.
    pub(crate) fn has_unreadable(&self) -> bool {
        !self.lost.is_empty() || !self.index.unreadable.is_empty()
    }

    /// Adds a pod whose records cannot be read.
    pub(crate) fn lose(&mut self, id: PodId, lost: Lost) {
        self.lost.entry(id).or_insert(lost);
    }

    /// A pod whose records cannot be read.
    pub(crate) fn lost(&self, id: &PodId) -> Option<&Lost> {
        self.lost.get(id)
    }

    /// All of these.
    pub(crate) fn lost_ids(&self) -> Vec<PodId> {
        self.lost.keys().cloned().collect()
    }

    /// Says something of one of them; whether that is new.
    pub(crate) fn say_of_lost(&mut self, id: &PodId, message: &str) -> bool {
        self.lost.get_mut(id).is_some_and(|lost| lost.say(message))
    }

    /// Forgets one of them.
    pub(crate) fn forget_lost(&mut self, id: &PodId) {
        self.lost.remove(id);
    }

    /// All folders.
    pub(crate) fn dirs(&self) -> Vec<(PodId, PodDir)> {
        self.pods.iter().map(|(id, entry)| (id.clone(), entry.dir.clone())).collect()
    }

    /// All identities.
    pub(crate) fn ids(&self) -> Vec<PodId> {
        self.pods.keys().cloned().collect()
    }

    /// The pods that need a shim now.
    pub(crate) fn without_shim(&self) -> Vec<PodId> {
        let lacks_shim = |id: &&PodId| self.get(id).is_some_and(Entry::lacks_shim);
        self.index.unwatched.iter().filter(lacks_shim).cloned().collect()
    }

    /// The pods of a namespace, sorted by name.
    pub(crate) fn observe(&self, namespace: &Namespace) -> Vec<ObservedPod> {
        let known = self.of(namespace).map(|(id, entry)| entry.observed(id));
        let mut pods: Vec<ObservedPod> = known.chain(self.lost_in(namespace)).collect();
        pods.sort_by(|one, other| one.id.cmp(&other.id));
        pods
    }

    /// The pods of a deployment config, sorted by name, and those that may be its.
    pub(crate) fn observe_config(&self, namespace: &Namespace, config: &ConfigKey) -> Vec<ObservedPod> {
        let first = PodId { namespace: Namespace::new(""), name: PodName::new("") };
        let pods = self.of_config.range((config.clone(), first)..).take_while(|(of, _)| of == config);
        let known = pods.filter_map(|(_, id)| Some(self.pods.get(id)?.observed(id)));
        known.chain(self.lost_in(namespace).filter(|pod| pod.id.may_be_of(&config.name))).collect()
    }

    fn lost_in(&self, namespace: &Namespace) -> impl Iterator<Item = ObservedPod> {
        self.lost.iter().filter(move |(id, _)| id.namespace == *namespace).map(|(id, lost)| lost.observed(id))
    }

    /// One pod.
    pub(crate) fn observe_pod(&self, id: &PodId) -> Option<ObservedPod> {
        let known = self.pods.get(id).map(|entry| entry.observed(id));
        known.or_else(|| self.lost.get(id).map(|lost| lost.observed(id)))
    }

    /// How many pods run under shims of another program than this one.
    pub(crate) fn of_another_build(&self) -> usize {
        self.index.of_another_build.len()
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
        let runs_once = |id: &&PodId| self.get(id).is_some_and(|entry| matches!(entry.owner, PodOwner::Run { .. }));
        self.index.strange_in(namespace).filter(runs_once).cloned().collect()
    }

    /// Whether a namespace has pods that another life of the store has left and that nobody has told to end.
    pub(crate) fn has_strangers(&self, namespace: &Namespace) -> bool {
        self.index.strange_in(namespace).any(|id| self.get(id).is_some_and(|entry| entry.observed(id).lives()))
    }

    /// The namespaces that have pods.
    pub(crate) fn namespaces(&self) -> BTreeSet<Namespace> {
        self.pods.keys().chain(self.lost.keys()).map(|id| id.namespace.clone()).collect()
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
        let pods = self.pods.range(first..).take_while(move |(id, _)| id.namespace == *namespace);
        pods.map(|(id, entry)| (id, &**entry))
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

#[cfg(test)]
mod tests;
