//! A namespace with services, pods that are servers of the test's own, and a client that notices everything.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Path as UrlPath, Request, State};
use axum::response::Response;
use axum::routing::any;
use launchway::model::ids::{ConfigKey, Namespace};
use launchway::model::pod::{PodId, Scalar};
use launchway::runtime::local::service::{PodEndpoint, Services};
use launchway::runtime::local::{PodDir, Program};
use launchway::runtime::{ServiceAddress, ServicePort, ServiceSpec};
use rustix::fs::inotify;

/// Longer than anything here takes on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// Waits until a condition holds.
pub(crate) fn eventually(what: &str, condition: impl FnMut() -> bool) {
    assert!(holds_within(DEADLINE, condition), "not within {DEADLINE:?}: {what}");
}

fn holds_within(patience: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    while !condition() {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

/// The namespace `shop-dev` of a runtime of its own. Its services end with it.
pub(crate) struct World {
    pub(crate) services: Services,
    pub(crate) root: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        Self { services: open(root.path()), root }
    }

    /// Applies a service on one port that nobody uses, which leads to the pods' port `http`.
    pub(crate) fn web(&self) -> (ServiceSpec, SocketAddr) {
        let spec = spec("web", &[unused_port()]);
        let address = self.apply(&spec);
        (spec, address)
    }

    /// So many of these, in the order of their names.
    pub(crate) fn webs(&self, count: usize) -> (Vec<String>, Vec<SocketAddr>) {
        let names = (0..count).map(|number| format!("web-{number:03}"));
        names.map(|name| (name.clone(), self.apply(&spec(&name, &[unused_port()])))).unzip()
    }

    pub(crate) fn apply(&self, spec: &ServiceSpec) -> SocketAddr {
        service_of(&self.services.apply(spec).unwrap(), spec)
    }

    pub(crate) fn select(&self, pods: &[&Pod]) {
        let endpoints: Vec<PodEndpoint> = pods.iter().map(|pod| pod.endpoint()).collect();
        self.services.pods_changed(&namespace(), endpoints).unwrap();
    }

    /// A pod has come, or changed.
    pub(crate) fn comes(&self, pod: &Pod) {
        self.services.pod_changed(&pod.id(), &|| Some(pod.endpoint())).unwrap();
    }

    /// A pod has gone.
    pub(crate) fn goes(&self, pod: &PodId) {
        self.services.pod_changed(pod, &|| None).unwrap();
    }

    pub(crate) fn listed(&self, name: &str) -> ServiceAddress {
        let services = self.services.list(&namespace()).unwrap();
        services.into_iter().find(|service| service.name == name).unwrap()
    }

    pub(crate) fn service_dir(&self, name: &str) -> PathBuf {
        self.root.path().join("services/shop-dev").join(name)
    }

    /// The process id of the services' shim, once there is one that serves.
    pub(crate) fn shim(&self) -> i32 {
        let (services, mut found) = (self.root.path().join("services"), None);
        eventually("a shim runs", || {
            let pid = fs::read_to_string(services.join("shim.pid")).unwrap_or_default();
            found = pid.parse().ok().filter(|pid| is_running(*pid));
            found.is_some()
        });
        found.unwrap()
    }

    /// The process id of its proxy, once there is one.
    pub(crate) fn proxy(&self) -> i32 {
        let mut found = None;
        eventually("a proxy runs", || {
            let shim = self.shim();
            let children = fs::read_to_string(format!("/proc/{shim}/task/{shim}/children")).unwrap_or_default();
            found = children.split_whitespace().next().and_then(|pid| pid.parse().ok());
            found.is_some()
        });
        found.unwrap()
    }

    /// Ends the shim and its proxy, as a machine that shuts down does.
    pub(crate) fn terminate(&self) {
        let (shim, proxy) = (self.shim(), self.proxy());
        let pid = rustix::process::Pid::from_raw(shim).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        eventually("both are gone", || !is_running(shim) && !is_running(proxy));
    }

    /// A folder for a pod.
    pub(crate) fn pod_dir(&self, name: &str) -> PathBuf {
        let dir = self.root.path().join("pods/shop-dev").join(name);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    /// A pod with an HTTP server.
    pub(crate) fn pod(&self, name: &str) -> Pod {
        Pod::start(self.pod_dir(name), name)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for service in self.services.list(&namespace()).unwrap_or_default() {
            self.services.remove(&namespace(), &service.name).ok();
        }
    }
}

/// Where a service answers that has no problem.
pub(crate) fn service_of(applied: &ServiceAddress, spec: &ServiceSpec) -> SocketAddr {
    assert_eq!(applied.problem, None);
    SocketAddr::new(applied.address, spec.ports[0].port)
}

pub(crate) fn open(root: &Path) -> Services {
    let program = Program::at(PathBuf::from(env!("CARGO_BIN_EXE_launchway-shim")));
    Services::open(root.to_owned(), Arc::new(program)).unwrap()
}

pub(crate) fn config(name: &str) -> ConfigKey {
    ConfigKey { project: "shop".into(), stage: "dev".into(), name: name.to_owned() }
}

pub(crate) fn namespace() -> Namespace {
    Namespace::from("shop-dev")
}

/// A service that selects all pods of the tests and leads to their port `http`.
pub(crate) fn spec(name: &str, ports: &[u16]) -> ServiceSpec {
    let port = |port: &u16| ServicePort {
        name: None,
        port: *port,
        target_port: Scalar::Text("http".into()),
        protocol: Some("TCP".into()),
    };
    ServiceSpec {
        namespace: namespace(),
        name: name.to_owned(),
        ports: ports.iter().map(port).collect(),
        selector: BTreeMap::from([("app".to_owned(), "web".to_owned())]),
        external: vec![],
        backends: vec![],
        earlier: vec![],
    }
}

/// A port that no address of this machine uses at this moment.
pub(crate) fn unused_port() -> u16 {
    std::net::TcpListener::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port()
}

/// A pod: a folder with its marker, and usually a server.
pub(crate) struct Pod {
    name: String,
    pub(crate) dir: PathBuf,
    pub(crate) port: u16,
    retired: Arc<AtomicBool>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Pod {
    /// Starts a server that is not ready yet. After its retirement it answers 500 to everything.
    fn start(dir: PathBuf, name: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let retired = Arc::new(AtomicBool::new(false));
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = router(name, retired.clone());
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { name: name.to_owned(), dir, port, retired, runtime: Some(runtime) }
    }

    /// A pod whose server is somebody else's business.
    pub(crate) fn at(dir: PathBuf, name: &str, port: u16) -> Self {
        Self { name: name.to_owned(), dir, port, retired: Arc::default(), runtime: None }
    }

    /// Pods that are named `<config>-<version>` are of that version.
    fn version(&self) -> Option<(ConfigKey, u32)> {
        let (name, version) = self.name.rsplit_once('-')?;
        Some((config(name), version.parse().ok()?))
    }

    pub(crate) fn id(&self) -> PodId {
        PodId { namespace: namespace(), name: self.name.as_str().into() }
    }

    pub(crate) fn endpoint(&self) -> PodEndpoint {
        let labels = BTreeMap::from([("app".to_owned(), "web".to_owned()), ("x".to_owned(), "y".to_owned())]);
        let (name, dir) = (self.name.as_str().into(), PodDir::new(&self.dir));
        PodEndpoint { name, labels: labels.into(), dir, version: self.version() }
    }

    pub(crate) fn make_ready(&self) {
        let marker = serde_json::json!({"address": "127.0.0.1", "ports": {"8080": self.port, "http": self.port}});
        fs::write(self.dir.join("draft"), marker.to_string()).unwrap();
        fs::rename(self.dir.join("draft"), self.dir.join("ready")).unwrap();
    }

    pub(crate) fn make_unready(&self) {
        fs::remove_file(self.dir.join("ready")).unwrap();
    }

    /// Whether nothing is on its way to the pod.
    pub(crate) fn is_drained(&self) -> bool {
        let lock = File::options().create(true).truncate(false).write(true).open(self.dir.join("connections")).unwrap();
        lock.try_lock().is_ok()
    }

    /// Ends as a pod's shim ends it: marker, lock, then without mercy.
    pub(crate) fn retire(mut self) {
        self.make_unready();
        eventually("the pod is drained", || self.is_drained());
        self.retired.store(true, Ordering::SeqCst);
        self.runtime.take().unwrap().shutdown_background();
    }

    /// Dies without a word.
    pub(crate) fn die(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
        eventually("the pod's port is closed", || TcpStream::connect(("127.0.0.1", self.port)).is_err());
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn router(name: &str, retired: Arc<AtomicBool>) -> Router {
    let name = name.to_owned();
    let who = move |State(retired): State<Arc<AtomicBool>>| async move {
        assert!(!retired.load(Ordering::SeqCst), "a request reached a retired pod");
        name
    };
    let echo = |request: Request| async { Response::new(Body::new(request.into_body())) };
    let slow = |UrlPath(pause): UrlPath<u64>| async move {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        "slow"
    };
    let headers = |request: Request| async move { format!("{:?} {:?}", request.uri(), request.headers()) };
    Router::new()
        .route("/", any(who))
        .route("/echo", any(echo))
        .route("/slow/{pause}", any(slow))
        .route("/headers", any(headers))
        .with_state(retired)
}

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// A client that keeps its connection and hides nothing.
pub(crate) struct Client {
    connection: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        Ok(Self::of(stream))
    }

    /// Either end of a connection.
    pub(crate) fn of(stream: TcpStream) -> Self {
        Self { connection: BufReader::new(stream) }
    }

    /// Whether something comes in this time, which stays unread.
    pub(crate) fn hears_within(&mut self, time: Duration) -> bool {
        self.connection.get_ref().set_read_timeout(Some(time)).unwrap();
        let heard = self.connection.fill_buf().is_ok();
        self.connection.get_ref().set_read_timeout(Some(DEADLINE)).unwrap();
        heard
    }

    /// Whether the other side has closed the connection, which is waited for.
    pub(crate) fn is_closed(&mut self) -> bool {
        match self.connection.fill_buf() {
            Ok(bytes) => bytes.is_empty(),
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    pub(crate) fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n\r\n"))
    }

    pub(crate) fn send(&mut self, request: &str) -> io::Result<Answer> {
        self.write(request.as_bytes())?;
        self.answer()
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.connection.get_mut().write_all(bytes)
    }

    /// Reads one answer with a `Content-Length`, or in chunks.
    pub(crate) fn answer(&mut self) -> io::Result<Answer> {
        let status = self.line()?.split(' ').nth(1).and_then(|code| code.parse().ok());
        let (mut length, mut chunked) = (0, false);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            match line.split_once(": ") {
                Some(("content-length", value)) => length = value.parse().map_err(io::Error::other)?,
                Some(("transfer-encoding", _)) => chunked = true,
                None if line.is_empty() => break,
                _ => {}
            }
        }
        let body = if chunked { self.chunks()? } else { self.exactly(length)? };
        let status = status.ok_or(io::ErrorKind::InvalidData)?;
        Ok(Answer { status, body: String::from_utf8(body).map_err(io::Error::other)? })
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let length = usize::from_str_radix(&self.line()?, 16).map_err(io::Error::other)?;
            body.extend(self.exactly(length)?);
            self.line()?;
            if length == 0 {
                return Ok(body);
            }
        }
    }

    pub(crate) fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut body = vec![0; length];
        self.connection.read_exact(&mut body)?;
        Ok(body)
    }

    pub(crate) fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.connection.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }
}

/// One request on a connection of its own.
pub(crate) fn get(address: SocketAddr, path: &str) -> io::Result<Answer> {
    Client::connect(address)?.get(path)
}

/// What a load has seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) answers: BTreeMap<String, usize>,
    pub(crate) refused: usize,
    /// Connections that broke off, with the text of the error.
    pub(crate) broken: Vec<String>,
}

/// Requests without a pause, until it is told to end.
pub(crate) struct Load {
    ended: Arc<AtomicBool>,
    workers: Vec<JoinHandle<Seen>>,
}

impl Load {
    /// Two clients that keep their connections, and two that open one for every request.
    pub(crate) fn start(address: SocketAddr) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let worker = |keep_alive: bool| {
            let ended = ended.clone();
            thread::spawn(move || work(address, keep_alive, &ended))
        };
        let workers = [true, true, false, false].map(worker).into();
        Self { ended, workers }
    }

    pub(crate) fn end(self) -> Seen {
        self.ended.store(true, Ordering::SeqCst);
        let mut all = Seen::default();
        for worker in self.workers {
            let seen = worker.join().unwrap();
            all.refused += seen.refused;
            all.broken.extend(seen.broken);
            for (answer, count) in seen.answers {
                *all.answers.entry(answer).or_default() += count;
            }
        }
        all
    }
}

fn work(address: SocketAddr, keep_alive: bool, ended: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    let mut kept = None;
    while !ended.load(Ordering::SeqCst) {
        let connected = kept.take().map_or_else(|| Client::connect(address), Ok);
        let Ok(mut client) = connected else {
            seen.refused += 1;
            continue;
        };
        match client.get("/") {
            Ok(answer) => {
                *seen.answers.entry(format!("{} {}", answer.status, answer.body.trim())).or_default() += 1;
                kept = keep_alive.then_some(client);
            }
            Err(error) => seen.broken.push(error.to_string()),
        }
    }
    seen
}

/// Which files in some folders are opened, by whomever.
pub(crate) struct Opens(OwnedFd);

impl Opens {
    pub(crate) fn within(folders: &[PathBuf]) -> Self {
        let opens = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
        for folder in folders {
            inotify::add_watch(&opens, folder, inotify::WatchFlags::OPEN).unwrap();
        }
        Self(opens)
    }

    /// Waits until the processes of services have read what they read at their start.
    pub(crate) fn come_to_rest(&self, name: &str) {
        eventually("nobody reads any more", || {
            thread::sleep(Duration::from_millis(200));
            self.of(name) == 0
        });
    }

    /// How often files of this name were opened since the last time; several times in a row count once.
    pub(crate) fn of(&self, name: &str) -> usize {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.0, &mut buffer);
        let is_it = |event: inotify::Event<'_>| event.file_name().is_some_and(|it| it.to_bytes() == name.as_bytes());
        let mut count = 0;
        while let Ok(event) = events.next() {
            count += usize::from(is_it(event));
        }
        count
    }
}

/// Ends a process at once.
pub(crate) fn kill(pid: i32) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::KILL).unwrap();
}

/// Whether a process is there and no zombie.
pub(crate) fn is_running(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}
