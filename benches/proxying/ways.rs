//! The ways to the backend.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use launchway::model::ids::Namespace;
use launchway::model::pod::Scalar;
use launchway::runtime::local::service::{PodEndpoint, Services};
use launchway::runtime::local::{PodDir, Program};
use launchway::runtime::{ServicePort, ServiceSpec};

use super::backend::Backend;

/// A way to the backend.
pub(crate) enum Way {
    Direct(SocketAddr),
    Service(Service),
    HaProxy(HaProxy),
}

impl Way {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Direct(_) => "direct",
            Self::Service(_) => "service",
            Self::HaProxy(_) => "HAProxy",
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Direct(address) => *address,
            Self::Service(service) => service.address,
            Self::HaProxy(haproxy) => haproxy.address,
        }
    }

    /// The process on the way.
    pub(crate) fn process(&self) -> Option<u32> {
        match self {
            Self::Direct(_) => None,
            Self::Service(service) => Some(service.proxy),
            Self::HaProxy(haproxy) => Some(haproxy.process.id()),
        }
    }
}

/// A service whose only pod is the backend. It ends with this.
pub(crate) struct Service {
    services: Services,
    address: SocketAddr,
    proxy: u32,
    _root: tempfile::TempDir,
}

impl Service {
    pub(crate) fn start(backend: &Backend) -> Option<Way> {
        let root = tempfile::tempdir().unwrap();
        let program = Program::at(PathBuf::from(env!("CARGO_BIN_EXE_launchway-shim")));
        let services = Services::open(root.path().to_owned(), Arc::new(program)).unwrap();
        let spec = spec();
        let applied = services.apply(&spec).unwrap();
        assert_eq!(applied.problem, None);
        let dir = root.path().join("pods/bench/web");
        std::fs::create_dir_all(&dir).unwrap();
        let marker = serde_json::json!({"address": "127.0.0.1", "ports": {"http": backend.address().port()}});
        std::fs::write(dir.join("ready"), marker.to_string()).unwrap();
        let pod = PodEndpoint {
            name: "web".into(),
            labels: spec.selector.clone().into(),
            dir: PodDir::new(dir),
            version: None,
        };
        services.pods_changed(&spec.namespace, vec![pod]).unwrap();
        let address = SocketAddr::new(applied.address, spec.ports[0].port);
        wait_for(address);
        Some(Way::Service(Self {
            services,
            address,
            proxy: proxy_of(&root.path().join("services/shim.pid")),
            _root: root,
        }))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.services.remove(&spec().namespace, &spec().name).ok();
    }
}

fn spec() -> ServiceSpec {
    let target_port = Scalar::Text("http".into());
    ServiceSpec {
        namespace: Namespace::from("bench"),
        name: "web".to_owned(),
        ports: vec![ServicePort { name: None, port: 8080, target_port, protocol: Some("TCP".into()) }],
        selector: BTreeMap::from([("app".to_owned(), "web".to_owned())]),
        external: vec![],
        backends: vec![],
        earlier: vec![],
    }
}

/// The proxy of a shim, once there is one.
fn proxy_of(shim: &Path) -> u32 {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let shim = std::fs::read_to_string(shim).unwrap_or_default();
        let children = std::fs::read_to_string(format!("/proc/{shim}/task/{shim}/children")).unwrap_or_default();
        if let Some(proxy) = children.split_whitespace().next() {
            return proxy.parse().unwrap();
        }
        assert!(Instant::now() < deadline, "no proxy was started");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The threads of the service proxy; HAProxy gets as many.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(4)
}

/// HAProxy with a configuration that does what the service proxy does. It ends with this.
pub(crate) struct HaProxy {
    process: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl HaProxy {
    /// `None` if it is not installed.
    pub(crate) fn start(backend: &Backend, files: u64) -> Option<Way> {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("haproxy.cfg");
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let text = format!(
            "global\n  nbthread {}\n  no strict-limits\n  maxconn {}\n\
             defaults\n  mode http\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\n\
             frontend web\n  bind {address} backlog 4096\n  default_backend pods\n\
             backend pods\n  http-reuse safe\n  server web {}\n",
            threads(),
            files.saturating_sub(100) / 2,
            backend.address()
        );
        std::fs::write(&config, text).unwrap();
        let command = || Command::new("haproxy");
        if command().arg("-v").stdout(Stdio::null()).status().is_err() {
            println!("HAProxy is not installed");
            return None;
        }
        let process = command().arg("-db").arg("-f").arg(&config).spawn().unwrap();
        wait_for(address);
        Some(Way::HaProxy(Self { process, address, _folder: folder }))
    }
}

impl Drop for HaProxy {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn wait_for(address: SocketAddr) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(address).is_err() {
        assert!(Instant::now() < deadline, "nobody listens at {address}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
