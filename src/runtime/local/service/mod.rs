//! Services: an address each, behind which pods come and go.
//!
//! ```text
//!  daemon ── service.json, endpoints.json ─▶ folder ◀── <pod>/ready, <pod>/connections ── a pod's shim
//!     │ channel                                │ read by
//!     └──▶ service-shim ── channel, sockets ─▶ proxy ─▶ pods
//!  clients ─▶ its sockets ─────────────────────┘
//! ```
//!
//! One shim holds the listening sockets of all services, and below it one proxy accepts from them. Neither the daemon's nor
//! the proxy's death refuses a connection; if the shim dies, its proxy gives the sockets to another one. A daemon of another
//! program renews both: the new shim takes the sockets over, and the old proxy ends with its last connection.

mod address;
mod backoff;
mod before;
mod by_label;
mod channel;
mod endpoints;
mod given;
mod known;
mod listening;
mod pods;
mod ports;
mod proxy;
mod record;
mod shim;
mod shim_client;
mod spec;
pub mod table;
mod watched_channel;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::channel::Status;
use self::known::Known;
use self::pods::Pods;
use self::ports::Ports;
use self::record::{Endpoint, ServiceDir, ServiceId, ServiceRecord, ServicesDir};
use self::shim_client::ShimClient;
use crate::error::{Context, Failure, Result};
use crate::model::ids::{ConfigKey, Namespace, PodName};
use crate::model::pod::PodId;
use crate::runtime::local::PodDir;
use crate::runtime::local::host::files::{self, Durability};
use crate::runtime::local::host::program::Program;
use crate::runtime::{ServiceAddress, ServiceSpec};

/// Runs the program as the services' shim or proxy, if the arguments ask for it.
pub fn process_entry(arguments: &[OsString]) -> Option<ExitCode> {
    let (verb, rest) = arguments.split_first()?;
    let (dir, options) = rest.split_first()?;
    let dir = ServicesDir::new(dir);
    match (verb.to_str()?, options) {
        ("service-shim", []) => Some(shim::run(dir, shim::Start::Alone)),
        ("service-shim", [option]) if option == shim::SUCCEED => Some(shim::run(dir, shim::Start::Succeeding)),
        ("proxy", []) => Some(proxy::run(dir)),
        _ => None,
    }
}

/// A pod that services may select.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodEndpoint {
    /// Its name.
    pub name: PodName,
    /// What selectors match.
    pub labels: Arc<BTreeMap<String, String>>,
    /// Its folder, in which `ready` and `connections` lie.
    pub dir: PodDir,
    /// The deployment config and the version that it is one of the pods of.
    pub version: Option<(ConfigKey, u32)>,
}

impl PodEndpoint {
    /// The deployment config and the version that it is one of the pods of.
    fn version(&self) -> Option<(&ConfigKey, u32)> {
        self.version.as_ref().map(|(config, version)| (config, *version))
    }
}

/// All services of this machine's runtime. Its calls block for milliseconds, and for a few seconds at worst.
#[derive(Debug)]
pub struct Services {
    dir: ServicesDir,
    shim: Arc<ShimClient>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The pods of each namespace, as last reported; a namespace without a report is not in it.
    pods: BTreeMap<Namespace, Pods>,
    /// What the records of services say.
    known: Known,
}

impl Services {
    /// The services below `<root>/services`.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn open(root: PathBuf, program: Arc<Program>) -> Result<Self> {
        let root = std::path::absolute(root.join("services")).or_stalled(|| "cannot find the state folder".into())?;
        files::make_folder(&root, 0o700).or_stalled(|| format!("cannot make `{}`", root.display()))?;
        let dir = ServicesDir::new(root);
        before::end_all(&dir)
            .or_stalled(|| "cannot end the shims that an earlier version had for each service".into())?;
        Ok(Self { shim: ShimClient::new(dir.clone(), program), dir, state: Mutex::default() })
    }

    /// Makes a service answer at its address, or changes it; also brings back the processes of services that are gone. The
    /// answer's `problem` says if some of its ports cannot be had.
    ///
    /// # Errors
    /// `Stalled` if the specification cannot be served on this machine; else what the file system says.
    pub fn apply(&self, spec: &ServiceSpec) -> Result<ServiceAddress> {
        spec::check(spec)?;
        let id = ServiceId::new(spec.namespace.as_str(), &spec.name)?;
        let dir = self.dir.of(&id);
        fs::create_dir_all(dir.path()).or_transient(|| format!("cannot make the folder of service `{id}`"))?;
        let (record, claimed) = {
            let mut state = self.state();
            // First which of the pods go on with what the service was: whoever reads both in between takes no pod's port for another's.
            state.write_endpoints(&dir, spec)?;
            let (record, claimed) = self.write_record(&mut state.known, &id, spec)?;
            state.known.note(&record);
            (record, claimed)
        };
        Ok(describe(&dir, &record, self.shim.follow(&id, claimed).map(Some)))
    }

    /// Ends a service; requests under way are answered. Nothing happens if it is unknown.
    pub fn remove(&self, namespace: &Namespace, name: &str) -> Result<()> {
        let id = ServiceId::new(namespace.as_str(), name)?;
        let dir = self.dir.of(&id);
        let mut state = self.state();
        if dir.path().exists() {
            let failed = || format!("cannot end service `{id}`");
            files::remove_if_there(&dir.record()).or_transient(failed)?;
            self.shim.ask(&id).or_transient(failed)?;
            files::remove_folder_if_there(dir.path()).or_transient(failed)?;
        }
        state.known.forget(namespace, name);
        Ok(())
    }

    /// The namespaces that have services.
    pub fn namespaces(&self) -> Result<Vec<Namespace>> {
        self.dir.namespaces().or_transient(|| "cannot list the namespaces of services".to_owned())
    }

    /// The services of a namespace, by name.
    pub fn list(&self, namespace: &Namespace) -> Result<Vec<ServiceAddress>> {
        spec::check_name(namespace.as_str())?;
        let services = self.dir.services_of(namespace);
        let services = services.or_transient(|| format!("cannot list the services of `{namespace}`"))?;
        Ok(services.iter().filter_map(|id| self.describe_any(id)).collect())
    }

    /// One service of a namespace.
    pub fn get(&self, namespace: &Namespace, name: &str) -> Result<Option<ServiceAddress>> {
        Ok(self.describe_any(&ServiceId::new(namespace.as_str(), name)?))
    }

    /// A service as it was asked for last; nothing, if it is unknown or its record is damaged.
    pub fn spec(&self, namespace: &Namespace, name: &str) -> Result<Option<ServiceSpec>> {
        let dir = self.dir.of(&ServiceId::new(namespace.as_str(), name)?);
        match record::read::<ServiceRecord>(&dir.record()) {
            Ok(record) => Ok(record.map(|record| record.spec)),
            Err(error) if record::is_damage(&error) => Ok(None),
            Err(error) => Err(error).or_transient(|| format!("cannot read `{}`", dir.record().display())),
        }
    }

    /// A service as it is now, also if its record cannot be read; `None` if the folder holds none.
    fn describe_any(&self, id: &ServiceId) -> Option<ServiceAddress> {
        let dir = self.dir.of(id);
        let record = record::read::<ServiceRecord>(&dir.record());
        if let Ok(None) = record {
            return None;
        }
        let status = self.shim.ask(id);
        match record {
            Ok(record) => Some(describe(&dir, &record?, status)),
            Err(error) => Some(describe_damaged(id, &dir, &error, status.ok().flatten())),
        }
    }

    /// Where the services of a namespace answer, by name, whether they do or not.
    pub fn addresses(&self, namespace: &Namespace) -> Result<Vec<ServiceAddress>> {
        let mut state = self.state();
        let records = state.known.of(&self.dir, namespace)?;
        Ok(records.all().map(|record| record.address()).collect())
    }

    /// The pods that a service leads to, as they were last told, sorted.
    pub fn selected(&self, service: &ServiceSpec) -> Vec<PodName> {
        let state = self.state();
        let pods = state.pods.get(&service.namespace).into_iter().flat_map(|pods| pods.candidates(service));
        pods.filter(|pod| spec::leads_to(service, pod)).map(|pod| pod.name.clone()).collect()
    }

    /// Tells which pods a namespace has now. Its services find out by themselves which of them are ready. If their processes
    /// are gone, they get new ones.
    pub fn pods_changed(&self, namespace: &Namespace, pods: Vec<PodEndpoint>) -> Result<()> {
        let mut state = self.state();
        state.pods.insert(namespace.clone(), pods.into_iter().collect());
        let records = state.known.of(&self.dir, namespace)?;
        let specs: Vec<ServiceSpec> = records.all().map(|record| record.spec.clone()).collect();
        let told = tell_each(&specs, |spec| state.write_endpoints(&self.dir_of(spec)?, spec));
        drop(state);
        told.and(self.keep_shim(&specs))
    }

    /// Tells what has become of one pod, as `now` says, to the services that select it or did.
    pub fn pod_changed(&self, pod: &PodId, now: &dyn Fn() -> Option<PodEndpoint>) -> Result<()> {
        let mut state = self.state();
        let now = now();
        let pods = state.pods.entry(pod.namespace.clone()).or_default();
        let before = match &now {
            Some(now) => pods.insert(now.clone()),
            None => pods.remove(&pod.name),
        };
        let before_and_now: Vec<&PodEndpoint> = before.iter().chain(&now).collect();
        let specs = state.known.of(&self.dir, &pod.namespace)?.selecting(&before_and_now);
        let told = tell_each(&specs, |spec| {
            let dir = self.dir_of(spec)?;
            let is_written = endpoints::exchange(&dir, spec, &before_and_now, now.as_ref())?;
            if is_written { Ok(()) } else { state.write_endpoints(&dir, spec) }
        });
        drop(state);
        told.and(self.keep_shim(&specs))
    }

    /// Starts the shim if it does not live and one of these services needs it.
    fn keep_shim(&self, services: &[ServiceSpec]) -> Result<()> {
        if services.is_empty() {
            return Ok(());
        }
        self.shim.keep().or_transient(|| "cannot start the services' shim".to_owned())
    }

    fn dir_of(&self, spec: &ServiceSpec) -> Result<ServiceDir> {
        Ok(self.dir.of(&ServiceId::new(spec.namespace.as_str(), &spec.name)?))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down what is wanted, if it is not written yet. A service keeps the address that it once got; a new one
    /// comes with the sockets that claim it.
    fn write_record(&self, known: &mut Known, id: &ServiceId, spec: &ServiceSpec) -> Result<(ServiceRecord, Ports)> {
        let dir = self.dir.of(id);
        let failed = || format!("cannot write down service `{id}`");
        let unreadable = || format!("{}: cannot read `{}`", failed(), dir.record().display());
        let before = match record::read::<ServiceRecord>(&dir.record()) {
            Ok(Some(record)) if record.spec == *spec => return Ok((record, Ports::new())),
            Err(error) if record::is_damage(&error) => {
                tracing::warn!(file = %dir.record().display(), %error, "the record of a service is written anew");
                let status = self.shim.ask(id).or_transient(unreadable)?.unwrap_or_default();
                status.address.map(|address| (status.generation, address))
            }
            read => read.or_transient(unreadable)?.map(|record| (record.generation, record.address)),
        };
        let (generation, address, claimed) = match before {
            Some((generation, address)) => (generation + 1, address, Ports::new()),
            None => {
                let (address, ports) = self.claim_address(known, spec)?;
                (1, address, ports)
            }
        };
        let record = ServiceRecord { v: record::VERSION, generation, spec: spec.clone(), address };
        dir.write(&dir.record(), &record, Durability::Durable).or_transient(failed)?;
        Ok((record, claimed))
    }

    /// A new address with the sockets that listen there. They are never let go of until the shim has them: another
    /// launchway on this machine, which has the same names, would take the address in between.
    fn claim_address(&self, known: &mut Known, spec: &ServiceSpec) -> Result<(Ipv4Addr, Ports)> {
        let taken = known.taken_for(&self.dir, spec)?;
        let claim = |address| ports::claim(address, spec);
        address::choose(spec.namespace.as_str(), &spec.name, taken, claim)
            .ok_or_else(|| Failure::stalled("no free address for a service").hint("remove services that are not used"))
    }
}

impl State {
    /// Writes the folders of a service's pods, if they changed. As long as nobody has told which pods there are,
    /// those of the last time stand.
    fn write_endpoints(&self, dir: &ServiceDir, spec: &ServiceSpec) -> Result<()> {
        endpoints::write(dir, spec, self.pods.get(&spec.namespace))
    }
}

/// Tells each service its news, also if that fails with another; hands back what failed first.
fn tell_each(specs: &[ServiceSpec], tell: impl FnMut(&ServiceSpec) -> Result<()>) -> Result<()> {
    specs.iter().map(tell).fold(Ok(()), Result::and)
}

/// A service as it is now.
fn describe(dir: &ServiceDir, record: &ServiceRecord, status: io::Result<Option<Status>>) -> ServiceAddress {
    let pods = record::read::<Vec<Endpoint>>(&dir.endpoints()).ok().flatten().unwrap_or_default();
    let ready = pods.iter().filter(|pod| pod.dir().join("ready").exists()).count();
    let problem = match status {
        Ok(Some(status)) if status.problems.is_empty() => None,
        Ok(Some(status)) => Some(status.problems.join("; ")),
        Ok(None) => Some("no shim of services lives; one is started when a service or a pod changes".to_owned()),
        Err(error) => Some(format!("the services' shim does not answer: {error}")),
    };
    let count = |pods| u32::try_from(pods).unwrap_or(u32::MAX);
    let selects = (!record.spec.selector.is_empty()).then(|| count(pods.len()));
    ServiceAddress { selects, ready: count(ready), problem, ..record.address() }
}

/// One whose record cannot be read.
fn describe_damaged(id: &ServiceId, dir: &ServiceDir, error: &io::Error, status: Option<Status>) -> ServiceAddress {
    let name = id.name().to_owned();
    let address = status.and_then(|status| status.address).unwrap_or(Ipv4Addr::UNSPECIFIED);
    let file = dir.record().display().to_string();
    let problem = format!("cannot read `{file}`: {error}; it is written anew when {id} is applied again");
    ServiceAddress { name, address: address.into(), ports: Vec::new(), selects: None, ready: 0, problem: Some(problem) }
}
