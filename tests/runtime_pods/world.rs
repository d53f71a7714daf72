//! A local runtime in a folder of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use launchway::clock::SystemClock;
use launchway::error::{Failure, Result};
use launchway::model::ids::{Incarnation, Namespace, PodName, RepositoryName};
use launchway::model::object::ObjectKey;
use launchway::model::outcome::PodOutcome;
use launchway::model::pod::{ObservedPod, Pod, PodId, PodOwner, PodPhase, SecurityContext};
use launchway::runtime::exec::{ExecCommand, ExecOutput};
use launchway::runtime::local::launchable::images::Images;
use launchway::runtime::local::service::PodEndpoint;
use launchway::runtime::local::service::table::ServiceTable;
use launchway::runtime::local::{Allow, LocalOptions, LocalRuntime, LogLimits, Program};
use launchway::runtime::logs::{self, LogQuery};
use launchway::runtime::{ImageUse, Runtime, ServiceAddress, ServiceSpec};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Long, because machines that run tests are busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Names another copy of the program that shims run.
pub(crate) const SHIM_VARIABLE: &str = "LAUNCHWAY_TEST_SHIM";

/// Images are the folders of that name below the runtime's own.
struct FolderImages(PathBuf);

impl Images for FolderImages {
    fn prepare(&self, _: &RepositoryName, image: &str, _: SecurityContext) -> Result<()> {
        if self.0.join(image).is_dir() { Ok(()) } else { Err(Failure::waiting("not installed")) }
    }

    fn path(&self, _: &RepositoryName, image: &str) -> Result<Option<PathBuf>> {
        Ok(Some(self.0.join(image)))
    }

    fn forget_failure(&self, _repository: &RepositoryName, _image: &str) -> Result<()> {
        Ok(())
    }

    fn collect(&self, _: &[ImageUse], _: bool) -> Result<u64> {
        Ok(0)
    }
}

/// Services that are as they are, and remember what they were told.
#[derive(Default)]
pub(crate) struct Services {
    pub(crate) addresses: Mutex<Vec<ServiceAddress>>,
    pub(crate) told: Mutex<Vec<BTreeSet<String>>>,
}

impl ServiceTable for Services {
    fn namespaces(&self) -> Result<Vec<Namespace>> {
        Ok(Vec::new())
    }

    fn get(&self, namespace: &Namespace, name: &str) -> Result<Option<ServiceAddress>> {
        Ok(self.list(namespace)?.into_iter().find(|service| service.name == name))
    }

    fn list(&self, _: &Namespace) -> Result<Vec<ServiceAddress>> {
        Ok(self.addresses.lock().unwrap().clone())
    }

    fn addresses(&self, namespace: &Namespace) -> Result<Vec<ServiceAddress>> {
        self.list(namespace)
    }

    fn apply(&self, service: &ServiceSpec) -> Result<ServiceAddress> {
        Err(Failure::stalled(format!("no service {}", service.name)))
    }

    fn spec(&self, _: &Namespace, _: &str) -> Result<Option<ServiceSpec>> {
        Ok(None)
    }

    fn selected(&self, _: &ServiceSpec) -> Vec<PodName> {
        Vec::new()
    }

    fn remove(&self, _: &Namespace, _: &str) -> Result<()> {
        Ok(())
    }

    fn pods_changed(&self, _: &Namespace, pods: Vec<PodEndpoint>) -> Result<()> {
        self.told.lock().unwrap().push(pods.into_iter().map(|pod| pod.name.to_string()).collect());
        Ok(())
    }

    fn pod_changed(&self, pod: &PodId, now: &dyn Fn() -> Option<PodEndpoint>) -> Result<()> {
        let mut told = self.told.lock().unwrap();
        let mut pods = told.last().cloned().unwrap_or_default();
        pods.remove(pod.name.as_str());
        pods.extend(now().map(|pod| pod.name.to_string()));
        told.push(pods);
        Ok(())
    }
}

pub(crate) struct World {
    folder: TempDir,
    pub(crate) services: Arc<Services>,
    runtime: Option<LocalRuntime>,
    /// Which life of the store asks for pods.
    pub(crate) life: Incarnation,
    /// The socket of a journal to which output goes after the next restart.
    pub(crate) journal: Option<PathBuf>,
}

/// The program that shims run; another user's tests have theirs where they get at it.
fn shim_program() -> PathBuf {
    std::env::var_os(SHIM_VARIABLE).unwrap_or_else(|| env!("CARGO_BIN_EXE_launchway-shim").into()).into()
}

pub(crate) fn allow_all() -> Allow {
    Allow { users: BTreeSet::from([65534]), host_paths: Vec::new(), host_image: true }
}

impl World {
    pub(crate) fn new() -> Self {
        let mut world = Self {
            folder: tempfile::tempdir().unwrap(),
            services: Arc::default(),
            runtime: None,
            life: "first".into(),
            journal: None,
        };
        world.restart();
        world
    }

    /// As if the daemon had died and come back.
    pub(crate) fn restart(&mut self) {
        self.kill_daemon();
        let (changes, _) = tokio::sync::broadcast::channel(64);
        let runtime = LocalRuntime::open(LocalOptions {
            root: self.root(),
            hidden: vec![self.root(), self.file("shop-token")],
            incarnation: self.life.clone(),
            program: Arc::new(Program::at(shim_program())),
            search_path: "/usr/local/bin:/usr/bin:/bin".into(),
            logs: LogLimits::default(),
            journal: self.journal.clone(),
            clock: Arc::new(SystemClock),
            images: Arc::new(FolderImages(self.root().join("images"))),
            services: self.services.clone(),
            changes,
        });
        let runtime = runtime.unwrap();
        runtime.allow("shop".into(), allow_all());
        self.runtime = Some(runtime);
    }

    /// As if the daemon had died: none of its threads reads or asks for anything any more.
    pub(crate) fn kill_daemon(&mut self) {
        drop(self.runtime.take());
        eventually("the end of the runtime's threads", || Arc::strong_count(&self.services) == 1);
    }

    /// A folder for the test's own files.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("runtime")
    }

    /// A launchable.
    pub(crate) fn image(&self, name: &str) -> PathBuf {
        self.root().join("images").join(name)
    }

    pub(crate) fn runtime(&self) -> &LocalRuntime {
        self.runtime.as_ref().unwrap()
    }

    pub(crate) fn dir(&self, pod: &Pod) -> PathBuf {
        self.root().join("pods").join(pod.id.namespace.as_str()).join(pod.id.name.as_str())
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) async fn start(&self, pod: &Pod) {
        self.start_with(pod, &BTreeMap::new()).await;
    }

    pub(crate) async fn start_with(&self, pod: &Pod, objects: &BTreeMap<ObjectKey, Value>) {
        self.runtime().start_pod(pod, objects).await.unwrap();
    }

    pub(crate) async fn observe(&self, pod: &Pod) -> Option<ObservedPod> {
        let pods = self.runtime().observe(&pod.id.namespace).await.unwrap();
        pods.into_iter().find(|observed| observed.id == pod.id)
    }

    /// Forgets a pod if it has ended.
    pub(crate) async fn forget(&self, pod: &Pod) {
        if let Some(observed) = self.observe(pod).await {
            self.runtime().remove_pod(&observed).await.unwrap();
        }
    }

    pub(crate) async fn until(&self, pod: &Pod, what: &str, test: impl Fn(&ObservedPod) -> bool) -> ObservedPod {
        let since = Instant::now();
        loop {
            let observed = self.observe(pod).await;
            if let Some(observed) = observed.clone().filter(|observed| test(observed)) {
                return observed;
            }
            assert!(since.elapsed() < PATIENCE, "not {what}: {observed:?}\n{}", self.logs(pod).await);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Runs a command beside a pod's processes to its end; its exit code and its two outputs.
    pub(crate) async fn exec(&self, pod: &Pod, words: &[&str]) -> Result<(i32, Vec<u8>, Vec<u8>)> {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let mut session = self.runtime().exec(&pod.id, None, &ExecCommand { words, ..ExecCommand::default() }).await?;
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        loop {
            match session.output.recv().await.expect("it ends by its end")? {
                ExecOutput::Stdout(bytes) => stdout.extend(bytes),
                ExecOutput::Stderr(bytes) => stderr.extend(bytes),
                ExecOutput::Ended(code) => return Ok((code, stdout, stderr)),
            }
        }
    }

    pub(crate) async fn ready(&self, pod: &Pod) -> ObservedPod {
        self.until(pod, "ready", |observed| matches!(observed.phase, PodPhase::Ready { .. })).await
    }

    pub(crate) async fn ended(&self, pod: &Pod) -> PodOutcome {
        let observed = self.until(pod, "ended", |observed| matches!(observed.phase, PodPhase::Ended { .. })).await;
        match observed.phase {
            PodPhase::Ended { outcome } => outcome,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn stop(&self, pod: &Pod) -> PodOutcome {
        self.runtime().stop_pod(&pod.id).await.unwrap();
        self.ended(pod).await
    }

    pub(crate) async fn logs(&self, pod: &Pod) -> String {
        self.logs_of(pod, &LogQuery::default()).await
    }

    pub(crate) async fn logs_of(&self, pod: &Pod, query: &LogQuery) -> String {
        let Ok(logs) = self.runtime().logs(&pod.id, query).await else { return String::new() };
        String::from_utf8_lossy(&logs::whole(logs).await.unwrap()).into_owned()
    }

    /// What the shim says on the disk.
    pub(crate) fn status(&self, pod: &Pod) -> Value {
        serde_json::from_slice(&std::fs::read(self.dir(pod).join("status.json")).unwrap()).unwrap()
    }

    pub(crate) fn shim_pid(&self, pod: &Pod) -> i32 {
        i32::try_from(self.status(pod)["shim"]["pid"].as_i64().unwrap()).unwrap()
    }
}

impl Drop for World {
    /// Ends what the test left running, by asking the shims; they are this world's own.
    fn drop(&mut self) {
        let pods = std::fs::read_dir(self.root().join("pods")).into_iter().flatten().flatten();
        let dirs: Vec<PathBuf> = pods
            .flat_map(|namespace| std::fs::read_dir(namespace.path()).into_iter().flatten().flatten())
            .map(|pod| pod.path())
            .collect();
        for dir in &dirs {
            let status = std::fs::read(dir.join("status.json")).ok();
            let shim = status
                .and_then(|text| serde_json::from_slice::<Value>(&text).ok())
                .and_then(|status| status["shim"]["pid"].as_i64());
            std::fs::write(dir.join("stop"), "").ok();
            wake(dir);
            let since = Instant::now();
            while shim.is_some_and(|pid| lives(i32::try_from(pid).unwrap()))
                && since.elapsed() < Duration::from_secs(10)
            {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// Tells the shim of the pod in `dir`, if one listens, to look around.
fn wake(dir: &Path) {
    let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK;
    let pipe = rustix::fs::open(dir.join("wake"), flags, rustix::fs::Mode::empty());
    pipe.and_then(|pipe| rustix::io::write(pipe, b"!")).ok();
}

/// Whether a process runs; one that only waits to be reaped does not.
pub(crate) fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// What a machine that shuts down sends to everything.
pub(crate) fn terminate(pid: i32) {
    send(pid, Signal::TERM);
}

pub(crate) fn kill(pid: i32) {
    send(pid, Signal::KILL);
}

fn send(pid: i32, signal: Signal) {
    rustix::process::kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

pub(crate) fn eventually(what: &str, test: impl Fn() -> bool) {
    let since = Instant::now();
    while !test() {
        assert!(since.elapsed() < PATIENCE, "not {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The number that a process wrote into a file.
pub(crate) fn number_in(path: &Path) -> i32 {
    eventually(&format!("a number in {}", path.display()), || read(path).trim().parse::<i32>().is_ok());
    read(path).trim().parse().unwrap()
}

/// A container that runs a shell script from the host. Kubernetes reads `$$` in commands as `$`.
pub(crate) fn shell(script: &str) -> Value {
    let script = script.replace("$$", "$$$$");
    json!({"name": "web", "image": "host", "command": ["sh", "-c", script]})
}

/// `base` with `more` on top.
pub(crate) fn with(mut base: Value, more: Value) -> Value {
    for (key, value) in more.as_object().unwrap() {
        base[key] = value.clone();
    }
    base
}

/// A pod that serves.
pub(crate) fn pod(spec: Value) -> Pod {
    Pod {
        id: PodId { namespace: "shop-dev".into(), name: "web-1-a".into() },
        owner: PodOwner::Run {
            run: launchway::model::ids::RunId::new("run"),
            step: "web".into(),
            since: launchway::model::time::Timestamp(1),
        },
        template: serde_json::from_value(json!({"metadata": {"labels": {"app": "web"}}, "spec": spec})).unwrap(),
        repository: "shop".into(),
        commit: "0123456789012345678901234567890123456789".into(),
        run_once_seconds: None,
        tells_result: false,
        deploys: false,
    }
}

/// A pod that serves by a shell script.
pub(crate) fn serving(script: &str) -> Pod {
    pod(json!({"containers": [shell(script)]}))
}

/// A pod that runs a shell script once.
pub(crate) fn once(script: &str) -> Pod {
    Pod { run_once_seconds: Some(60), ..serving(script) }
}

/// A python program that answers every GET with 200, on the port that it is told.
pub(crate) const SERVER: &str = "exec python3 -u -m http.server --bind 127.0.0.1 \"$PORT\"";
