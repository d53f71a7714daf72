//! Services: an address each, behind which pods come and go.
//!
//! ```text
//!  daemon ── service.json, endpoints.json ─▶ folder ◀── <pod>/ready, <pod>/connections ── a pod's shim
//!                                             │ read by
//!  clients ─▶ sockets held by service-shim ─▶ proxy ─▶ pods
//! ```
//!
//! Each service has a shim, which holds its listening sockets, and below it a proxy, which accepts from them. Neither
//! the daemon's nor the proxy's death refuses a connection, and if the shim dies its proxy starts another one.

mod address;
mod backoff;
mod by_label;
mod kept;
mod known;
mod pods;
mod ports;
mod proxy;
mod record;
mod shim;
mod sockets;
mod spec;
pub mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use self::known::Known;
use self::pods::Pods;
use self::record::{Endpoint, ServiceDir, ServiceRecord, ShimStatus};
use self::sockets::Sockets;
use crate::error::{Context, Failure, Result};
use crate::model::ids::{ConfigKey, Namespace, PodName};
use crate::model::pod::PodId;
use crate::runtime::local::PodDir;
use crate::runtime::local::host::files::{self, Durability};
use crate::runtime::local::host::program::Program;
use crate::runtime::local::host::wait::wait_until;
use crate::runtime::{ServiceAddress, ServiceSpec};

/// How long a shim may take to follow a change; it takes a few milliseconds.
const FOLLOW: Duration = Duration::from_secs(5);
/// How long a shim may take to be there once it was started.
const START: Duration = Duration::from_secs(1);
/// How often to check for a shim's answer.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Runs the program as a service's shim or proxy, if the arguments ask for it.
pub fn process_entry(arguments: &[OsString]) -> Option<ExitCode> {
    let (verb, rest) = arguments.split_first()?;
    let (dir, options) = rest.split_first()?;
    let dir = ServiceDir::new(dir);
    match (verb.to_str()?, options) {
        ("service-shim", []) => Some(shim::run(dir, false)),
        ("service-shim", [option]) if option == "--adopt" => Some(shim::run(dir, true)),
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

/// All services of this machine's runtime. Its calls block for milliseconds, and for a few seconds at worst.
#[derive(Debug)]
pub struct Services {
    root: PathBuf,
    program: Arc<Program>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The pods of each namespace, as last reported; a namespace without a report is not in it.
    pods: BTreeMap<Namespace, Pods>,
    /// What the records of services say.
    known: Known,
    /// Shims that this process started, to be reaped when they end.
    shims: Vec<Child>,
}

impl Services {
    /// The services below `<root>/services`.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn open(root: PathBuf, program: Arc<Program>) -> Result<Self> {
        let root = std::path::absolute(root.join("services")).or_stalled(|| "cannot find the state folder".into())?;
        files::make_folder(&root, 0o700).or_stalled(|| format!("cannot make `{}`", root.display()))?;
        Ok(Self { root, program, state: Mutex::default() })
    }

    /// Makes a service answer at its address, or changes it; also brings back one whose processes are gone. The
    /// answer's `problem` says if some of its ports cannot be had.
    ///
    /// # Errors
    /// `Stalled` if the specification cannot be served on this machine; else what the file system says.
    pub fn apply(&self, spec: &ServiceSpec) -> Result<ServiceAddress> {
        spec::check(spec)?;
        let dir = self.dir(&spec.namespace, &spec.name);
        let record = {
            let mut state = self.state();
            state.reap();
            let (record, claimed) = self.write_record(&mut state.known, &dir, spec)?;
            state.known.note(&record);
            state.write_endpoints(&dir, spec)?;
            match claimed {
                Some(sockets) => self.start_shim(&mut state, &dir, Some(&sockets))?,
                None => self.wake_shim(&mut state, &dir)?,
            }
            record
        };
        let followed = self.is_followed(&dir, record.generation);
        let mut address = describe(&dir, &record);
        if !followed {
            address.problem = Some(format!("its shim does not answer: see {}", dir.log().display()));
        }
        Ok(address)
    }

    /// Waits until a shim has followed a change, or says what this program does not understand. One that was ending then
    /// gets a successor.
    fn is_followed(&self, dir: &ServiceDir, generation: u64) -> bool {
        let mut told = Instant::now();
        wait_until(FOLLOW, LOOK_AGAIN, || {
            if told.elapsed() > START && !is_alive(dir) {
                // If it cannot be started, the time runs out and the problem says where to look.
                self.start_shim(&mut self.state(), dir, None).ok();
                told = Instant::now();
            }
            status(dir).map_or(true, |status| status.is_some_and(|status| status.generation >= generation))
        })
    }

    /// Ends a service; requests under way are answered. Nothing happens if it is unknown.
    pub fn remove(&self, namespace: &Namespace, name: &str) -> Result<()> {
        spec::check_name(namespace.as_str()).and(spec::check_name(name))?;
        let dir = self.dir(namespace, name);
        let mut state = self.state();
        if !dir.path().exists() {
            state.known.forget(namespace, name);
            return Ok(());
        }
        let failed = || format!("cannot end service `{namespace}/{name}`");
        fs::write(dir.stop(), "").or_transient(failed)?;
        signal_shim(&dir, Signal::TERM);
        if !wait_until(FOLLOW, LOOK_AGAIN, || !is_alive(&dir)) {
            return Err(Failure::transient(format!("{}: its shim does not end", failed())));
        }
        match fs::remove_dir_all(dir.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).or_transient(failed),
            _ => {
                state.known.forget(namespace, name);
                Ok(())
            }
        }
    }

    /// The namespaces that have services.
    pub fn namespaces(&self) -> Result<Vec<Namespace>> {
        namespaces(&self.root)
    }

    /// The services of a namespace, by name.
    pub fn list(&self, namespace: &Namespace) -> Result<Vec<ServiceAddress>> {
        spec::check_name(namespace.as_str())?;
        let dirs = service_dirs(&self.root.join(namespace.as_str()))
            .or_transient(|| format!("cannot list the services of `{namespace}`"))?;
        Ok(dirs.iter().filter_map(|dir| describe_any(dir, namespace)).collect())
    }

    /// Where the services of a namespace answer, by name, whether they do or not.
    pub fn addresses(&self, namespace: &Namespace) -> Result<Vec<ServiceAddress>> {
        let mut state = self.state();
        let records = state.known.of(&self.root, namespace)?;
        Ok(records.all().map(|record| record.address(0, None)).collect())
    }

    /// Tells which pods a namespace has now. Its services find out by themselves which of them are ready. Services
    /// whose processes are gone get new ones.
    pub fn pods_changed(&self, namespace: &Namespace, pods: Vec<PodEndpoint>) -> Result<()> {
        let mut state = self.state();
        state.reap();
        state.pods.insert(namespace.clone(), pods.into_iter().collect());
        let records = state.known.of(&self.root, namespace)?;
        let specs: Vec<ServiceSpec> = records.all().map(|record| record.spec.clone()).collect();
        tell_each(&specs, |spec| {
            let dir = self.dir(namespace, &spec.name);
            state.write_endpoints(&dir, spec)?;
            self.keep_shim(&mut state, &dir)
        })
    }

    /// Tells what has become of one pod, as `now` says, to the services that select it or did.
    pub fn pod_changed(&self, pod: &PodId, now: &dyn Fn() -> Option<PodEndpoint>) -> Result<()> {
        let mut state = self.state();
        state.reap();
        let now = now();
        let pods = state.pods.entry(pod.namespace.clone()).or_default();
        let before = match &now {
            Some(now) => pods.insert(now.clone()),
            None => pods.remove(&pod.name),
        };
        let before_and_now: Vec<&PodEndpoint> = before.iter().chain(&now).collect();
        let specs = state.known.of(&self.root, &pod.namespace)?.selecting(&before_and_now);
        tell_each(&specs, |spec| {
            let dir = self.dir(&pod.namespace, &spec.name);
            if !exchange_endpoint(&dir, spec, &before_and_now, now.as_ref())? {
                state.write_endpoints(&dir, spec)?;
            }
            self.keep_shim(&mut state, &dir)
        })
    }

    /// Starts a shim where none lives and one should.
    fn keep_shim(&self, state: &mut State, dir: &ServiceDir) -> Result<()> {
        if is_alive(dir) || dir.is_stopped() { Ok(()) } else { self.start_shim(state, dir, None) }
    }

    fn dir(&self, namespace: &Namespace, name: &str) -> ServiceDir {
        ServiceDir::new(self.root.join(namespace.as_str()).join(name))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down what is wanted, if it is not written yet. A service keeps the address that it once got; a new one
    /// comes with the sockets that claim it.
    fn write_record(
        &self,
        known: &mut Known,
        dir: &ServiceDir,
        spec: &ServiceSpec,
    ) -> Result<(ServiceRecord, Option<Sockets>)> {
        let failed = || format!("cannot write down service `{}/{}`", spec.namespace, spec.name);
        fs::create_dir_all(dir.path()).or_transient(failed)?;
        files::remove_if_there(&dir.stop()).or_transient(failed)?;
        let unreadable = || format!("{}: cannot read `{}`", failed(), dir.record().display());
        let before = match record::read::<ServiceRecord>(&dir.record()) {
            Ok(Some(record)) if record.spec == *spec => return Ok((record, None)),
            Err(error) if record::is_damage(&error) => {
                tracing::warn!(file = %dir.record().display(), %error, "the record of a service is written anew");
                salvage(dir).or_transient(unreadable)?
            }
            read => read.or_transient(unreadable)?.map(|record| (record.generation, record.address)),
        };
        let (generation, address, claimed) = match before {
            Some((generation, address)) => (generation + 1, address, None),
            None => {
                let (address, sockets) = self.claim_address(known, spec)?;
                (1, address, Some(sockets))
            }
        };
        let record = ServiceRecord { v: record::VERSION, generation, spec: spec.clone(), address };
        dir.write(&dir.record(), &record, Durability::Durable).or_transient(failed)?;
        Ok((record, claimed))
    }

    /// A new address with the sockets that listen there. They are never let go of until the shim has them: another
    /// launchway on this machine, which has the same names, would take the address in between.
    fn claim_address(&self, known: &mut Known, spec: &ServiceSpec) -> Result<(Ipv4Addr, Sockets)> {
        let taken = known.taken_for(&self.root, spec)?;
        let claim = |address| ports::claim(address, spec);
        address::choose(spec.namespace.as_str(), &spec.name, taken, claim)
            .ok_or_else(|| Failure::stalled("no free address for a service").hint("remove services that are not used"))
    }

    /// Makes the shim read its record again, or starts one if none lives.
    fn wake_shim(&self, state: &mut State, dir: &ServiceDir) -> Result<()> {
        if signal_shim(dir, Signal::HUP) {
            return Ok(());
        }
        self.start_shim(state, dir, None)
    }

    /// Starts a shim, which takes over the sockets that it is given.
    fn start_shim(&self, state: &mut State, dir: &ServiceDir, sockets: Option<&Sockets>) -> Result<()> {
        let program = self.program.path();
        let failed = || format!("cannot start `{}`", program.display());
        let passed = sockets.map(sockets::sent).transpose().or_transient(failed)?;
        state.shims.push(shim::spawn(program, dir, passed).or_transient(failed)?);
        Ok(())
    }
}

impl State {
    /// Writes the folders of a service's pods, if they changed. As long as nobody has told which pods there are,
    /// those of the last time stand.
    fn write_endpoints(&self, dir: &ServiceDir, spec: &ServiceSpec) -> Result<()> {
        let failed = || format!("cannot write down the pods of service `{}/{}`", spec.namespace, spec.name);
        let before = record::read_whole::<Vec<Endpoint>>(&dir.endpoints()).or_transient(failed)?;
        let now = match self.pods.get(&spec.namespace) {
            Some(pods) => spec::select(spec, pods.candidates(spec)),
            None => before.clone().unwrap_or_default(),
        };
        if before.as_ref() == Some(&now) {
            return Ok(());
        }
        dir.write(&dir.endpoints(), &now, Durability::Plain).or_transient(failed)
    }

    fn reap(&mut self) {
        self.shims.retain_mut(|shim| matches!(shim.try_wait(), Ok(None)));
    }
}

/// The generation and the address of a damaged record, as far as the living shim knows them. A shim that does not say its
/// address ends, so that the service can have the address again.
fn salvage(dir: &ServiceDir) -> io::Result<Option<(u64, Ipv4Addr)>> {
    let said = record::read_whole::<ShimStatus>(&dir.status())?.filter(|_| is_alive(dir));
    if let Some(ShimStatus { generation, address: Some(address), .. }) = said {
        return Ok(Some((generation, address)));
    }
    fs::write(dir.stop(), "")?;
    signal_shim(dir, Signal::TERM);
    if !wait_until(FOLLOW, LOOK_AGAIN, || !is_alive(dir)) {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "its shim does not end"));
    }
    files::remove_if_there(&dir.stop())?;
    Ok(None)
}

/// Tells each service its news, also if that fails with another; hands back what failed first.
fn tell_each(specs: &[ServiceSpec], tell: impl FnMut(&ServiceSpec) -> Result<()>) -> Result<()> {
    specs.iter().map(tell).fold(Ok(()), Result::and)
}

/// Writes down that a pod is now behind a service, or no longer. The others stay as they are written; says whether they
/// could be read.
fn exchange_endpoint(
    dir: &ServiceDir,
    spec: &ServiceSpec,
    before_and_now: &[&PodEndpoint],
    now: Option<&PodEndpoint>,
) -> Result<bool> {
    let failed = || format!("cannot write down the pods of service `{}/{}`", spec.namespace, spec.name);
    let before = match record::read::<BTreeSet<Endpoint>>(&dir.endpoints()) {
        Err(error) if record::is_damage(&error) => return Ok(false),
        read => read.or_transient(failed)?,
    };
    let others =
        before.iter().flatten().filter(|it| before_and_now.iter().all(|pod| pod.dir.path() != it.dir())).cloned();
    let endpoints = others.chain(spec::select(spec, now)).collect();
    if before.as_ref() != Some(&endpoints) {
        dir.write(&dir.endpoints(), &endpoints, Durability::Plain).or_transient(failed)?;
    }
    Ok(true)
}

/// A service as it is now, also if its record cannot be read; `None` if the folder holds none.
fn describe_any(dir: &ServiceDir, namespace: &Namespace) -> Option<ServiceAddress> {
    let error = match record::read::<ServiceRecord>(&dir.record()) {
        Ok(record) => return Some(describe(dir, &record?)),
        Err(error) => error,
    };
    let (name, unknown) = (dir.path().file_name()?.to_str()?.to_owned(), Ipv4Addr::UNSPECIFIED);
    let address = status(dir).ok().flatten().and_then(|status| status.address).unwrap_or(unknown);
    let problem = format!(
        "cannot read `{}`: {error}; it is written anew when {namespace}/{name} is applied again",
        dir.record().display()
    );
    Some(ServiceAddress { name, address: address.into(), ports: Vec::new(), ready: 0, problem: Some(problem) })
}

/// A service as it is now.
fn describe(dir: &ServiceDir, record: &ServiceRecord) -> ServiceAddress {
    let pods = record::read::<Vec<Endpoint>>(&dir.endpoints()).ok().flatten().unwrap_or_default();
    let ready = pods.iter().filter(|pod| pod.dir().join("ready").exists()).count();
    let problem = match status(dir) {
        Ok(Some(status)) if status.problems.is_empty() => None,
        Ok(Some(status)) => Some(status.problems.join("; ")),
        Ok(None) => Some("it has no shim; it gets one when it is applied again".to_owned()),
        Err(error) => Some(format!("cannot read what its shim says: {error}")),
    };
    record.address(u32::try_from(ready).unwrap_or(u32::MAX), problem)
}

/// What the living shim says.
fn status(dir: &ServiceDir) -> io::Result<Option<ShimStatus>> {
    if is_alive(dir) { record::read(&dir.status()) } else { Ok(None) }
}

fn is_alive(dir: &ServiceDir) -> bool {
    files::is_locked(&dir.lock()).unwrap_or(false)
}

/// Sends a signal to the living shim; returns whether there is one.
fn signal_shim(dir: &ServiceDir, signal: Signal) -> bool {
    let Ok(Some(status)) = status(dir) else { return false };
    let Some(pid) = Pid::from_raw(status.pid) else { return false };
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    // Still alive now: so the descriptor is of the shim, and not of a later process with its number.
    is_alive(dir) && pidfd_send_signal(process, signal).is_ok()
}

fn namespaces(root: &Path) -> Result<Vec<Namespace>> {
    let folders = folders(root).or_transient(|| "cannot list the namespaces of services".to_owned())?;
    let name = |folder: PathBuf| Some(Namespace::from(folder.file_name()?.to_str()?));
    Ok(folders.into_iter().filter_map(name).collect())
}

fn service_dirs(namespace: &Path) -> io::Result<Vec<ServiceDir>> {
    Ok(folders(namespace)?.into_iter().map(ServiceDir::new).collect())
}

/// The folders in a folder, by name; none if it is not there.
fn folders(parent: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(parent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut folders = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.push(entry.path());
        }
    }
    folders.sort();
    Ok(folders)
}
