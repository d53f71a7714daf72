//! The example is a shop that works by hand too: its files are sound, its services serve, and they end cleanly.

#![expect(clippy::unwrap_used, reason = "a failing test panics")]

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a service may take to answer, also on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(20);

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples-repo")
}

/// The shop's services on ports of their own, with their data in one folder.
struct Shop {
    data: tempfile::TempDir,
    ports: [u16; 3],
    running: Vec<Child>,
}

const SERVICES: [&str; 3] = ["catalog", "cart", "web"];

impl Shop {
    fn new() -> Self {
        let free = || TcpListener::bind("127.0.0.1:0").unwrap();
        let listeners = [free(), free(), free()];
        let ports = listeners.each_ref().map(|listener| listener.local_addr().unwrap().port());
        Self { data: tempfile::tempdir().unwrap(), ports, running: Vec::new() }
    }

    fn command(&self, service: &str, program: &str) -> Command {
        let folder = example().join("services").join(service);
        let mut command = Command::new(folder.join("bin").join(program));
        command.current_dir(folder).stdout(Stdio::null());
        for (name, port) in SERVICES.iter().zip(self.ports) {
            let name = name.to_uppercase();
            command
                .env(format!("{name}_SERVICE_HOST"), "127.0.0.1")
                .env(format!("{name}_SERVICE_PORT"), port.to_string());
        }
        let port = SERVICES.iter().zip(self.ports).find(|(name, _)| **name == service).unwrap().1;
        let settings = [("SHOP_NAME", "The Shop"), ("CURRENCY", "EUR"), ("SESSION_KEY", "only-for-this-test")];
        command.envs(settings).env("PORT", port.to_string());
        command.env("DATA_DIR", self.data.path()).env("JOURNAL_DIR", self.data.path());
        command
    }

    fn run(&self, service: &str, program: &str) -> ExitStatus {
        self.command(service, program).status().unwrap()
    }

    fn launch(&mut self, service: &str) {
        let child = self.command(service, "launch").spawn().unwrap();
        self.running.push(child);
    }

    /// Asks every service to end; says how each did.
    fn stop(&mut self) -> Vec<ExitStatus> {
        for child in &self.running {
            let pid = rustix::process::Pid::from_child(child);
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        }
        self.running.drain(..).map(|mut child| child.wait().unwrap()).collect()
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        for child in &mut self.running {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "{what} does not happen");
        std::thread::yield_now();
    }
}

#[test]
fn its_files_are_sound() {
    let output = Command::new(env!("CARGO_BIN_EXE_launchway")).arg("validate").arg(example()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "good: 0 errors, 0 warnings\n");
}

#[test]
fn every_service_carries_the_same_way_of_serving() {
    let file = |service: &str| fs::read(example().join("services").join(service).join("serving.py")).unwrap();
    assert!(SERVICES.iter().all(|service| file(service) == file("web")));
}

#[test]
fn it_sells_and_ends_cleanly() {
    let mut shop = Shop::new();
    assert!(shop.run("catalog", "backup").success());
    assert!(shop.run("catalog", "migrate").success());
    assert!(shop.run("web", "check").success());
    for service in SERVICES {
        shop.launch(service);
    }
    let ports = shop.ports;
    for port in ports {
        eventually("a service that answers", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    }
    assert!(shop.run("catalog", "verify").success());
    for service in SERVICES {
        assert!(shop.run(service, "test").success(), "{service}");
    }
    let hooks = fs::read_to_string(shop.data.path().join("hooks.log")).unwrap();
    let points: Vec<&str> = hooks.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(points, ["pre", "mid", "pre", "post"]);
    assert!(shop.stop().iter().all(ExitStatus::success));
}
