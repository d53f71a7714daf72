//! A real daemon on a real repository, and whatever it started, ended with the test.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::support::git::GitFixture;

/// Two stages that follow each other, and one that a person starts.
pub(crate) const BY_HAND: &str = "\
apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shop}
spec:
  stages:
  - {name: dev, sequences: [{name: delivery, tasks: [{name: deployment}]}]}
  - name: production
    sequences:
    - {name: delivery, triggeredOn: [{event: dev.delivery.finished}], tasks: [{name: deployment}]}
  - {name: spare, sequences: [{name: delivery, tasks: [{name: deployment}]}]}
";

/// Long, because machines that run tests are busy.
const PATIENCE: Duration = Duration::from_secs(90);

/// A repository named `shop`, the configuration of a daemon that watches it, and that daemon.
pub(crate) struct World {
    pub(crate) git: GitFixture,
    daemon: Mutex<Option<Child>>,
}

impl World {
    /// A daemon that is not started yet. `more` are further settings of the repository, a line each.
    pub(crate) fn new(more: &[&str]) -> Self {
        let world = Self { git: GitFixture::new(), daemon: Mutex::default() };
        let bare = world.git.bare().display().to_string();
        world.configure(&repository("shop", &bare, more));
        world
    }

    /// Sets which repositories are watched.
    pub(crate) fn configure(&self, repositories: &str) {
        fs::write(self.config(), format!("listen: 127.0.0.1:0\nrepositories:\n{repositories}")).unwrap();
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.git.path("config.yaml")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.git.path("state")
    }

    /// `launchway` with this world's state folder, and nothing of the surroundings of who runs the test.
    pub(crate) fn launchway(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_launchway"));
        command.current_dir(self.git.root()).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(self.git.environment()).env("LAUNCHWAY_STATE", self.state()).stdin(Stdio::null());
        command
    }

    /// Runs a verb to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.launchway().args(arguments).output().unwrap()
    }

    /// What a verb prints. Panics if it fails.
    pub(crate) fn tell(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", complaint(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What a verb prints as JSON; null if it fails.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["-o", "json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// Starts the daemon and waits until it serves.
    pub(crate) fn start(&self) {
        self.start_as(|command| command);
    }

    /// Starts the daemon as the leader of a process group of its own, after `change`.
    pub(crate) fn start_as(&self, change: impl FnOnce(&mut Command) -> &mut Command) {
        let mut command = self.launchway();
        command.arg("serve").arg("--config").arg(self.config());
        change(&mut command);
        self.spawn(&mut command);
        eventually("a daemon that serves", || {
            assert!(self.daemon_lives(), "the daemon ended: {}", self.log());
            self.output().contains("serving http")
        });
    }

    /// Starts a daemon's process.
    pub(crate) fn spawn(&self, command: &mut Command) {
        let output = File::create(self.git.path("daemon.out")).unwrap();
        let log = File::options().create(true).append(true).open(self.git.path("daemon.log")).unwrap();
        let child = command.process_group(0).stdin(Stdio::null()).stdout(output).stderr(log).spawn().unwrap();
        *self.daemon.lock().unwrap() = Some(child);
    }

    pub(crate) fn output(&self) -> String {
        fs::read_to_string(self.git.path("daemon.out")).unwrap_or_default()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.git.path("daemon.log")).unwrap_or_default()
    }

    pub(crate) fn daemon_lives(&self) -> bool {
        let mut daemon = self.daemon.lock().unwrap();
        daemon.as_mut().is_some_and(|child| child.try_wait().unwrap().is_none())
    }

    pub(crate) fn pid(&self) -> i32 {
        self.daemon.lock().unwrap().as_ref().map_or(0, |child| i32::try_from(child.id()).unwrap())
    }

    /// Sends the daemon a signal and waits for its end; gives its exit code.
    pub(crate) fn stop_with(&self, signal: Signal) -> Option<i32> {
        let mut child = self.daemon.lock().unwrap().take()?;
        send(i32::try_from(child.id()).unwrap(), signal);
        child.wait().unwrap().code()
    }

    /// Waits for the end of a daemon that ends by itself; gives its exit code.
    pub(crate) fn exit_code(&self) -> Option<i32> {
        self.daemon.lock().unwrap().take()?.wait().unwrap().code()
    }

    pub(crate) fn stop(&self) {
        assert_eq!(self.stop_with(Signal::TERM), Some(0), "{}", self.log());
    }

    pub(crate) fn kill(&self) {
        self.stop_with(Signal::KILL);
    }

    /// Kills the daemon's whole process group, as a service manager may do.
    pub(crate) fn kill_group(&self) {
        let mut child = self.daemon.lock().unwrap().take().unwrap();
        let group = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        rustix::process::kill_process_group(group, Signal::KILL).unwrap();
        child.wait().unwrap();
    }

    /// The statuses in the Git notes of a commit: context to state and description.
    pub(crate) fn notes(&self, commit: &str) -> BTreeMap<String, (String, String)> {
        let output = self.git.try_git_in(&self.git.bare(), &["notes", "--ref=launchway", "show", commit]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let entry = |line: &str| {
            let mut words = line.splitn(3, ' ').map(str::to_owned);
            let (state, context) = (words.next()?, words.next()?);
            Some((context, (state, words.next().unwrap_or_default())))
        };
        text.lines().filter_map(entry).collect()
    }

    /// Waits until a status of a commit has a state; gives its description.
    pub(crate) fn status(&self, commit: &str, context: &str, state: &str) -> String {
        let since = Instant::now();
        loop {
            let notes = self.notes(commit);
            if let Some((found, description)) = notes.get(context)
                && found == state
            {
                return description.clone();
            }
            let late = since.elapsed() > PATIENCE;
            assert!(!late, "{context} is not {state}: {notes:#?}\n{}\n{}", self.log(), self.output());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Commits files, pushes them and waits until the default stage has this state.
    pub(crate) fn deploy(&self, files: &[(&str, &str)], state: &str) -> String {
        let commit = self.git.push_files(files);
        self.status(&commit, "launchway/default", state);
        commit
    }

    /// The lines of a file in the world's folder.
    pub(crate) fn lines(&self, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.git.path(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The processes that this world's daemons started and that run now: shims, pods, services.
    pub(crate) fn processes(&self) -> Vec<i32> {
        // What it starts is still called as it is until its program is there.
        let (daemon, all, root) = (command(self.pid()), all_processes(), self.git.root());
        let mut mine: Vec<i32> =
            all.keys().copied().filter(|pid| command(*pid) != daemon && mentions(*pid, root)).collect();
        loop {
            let children = all.iter().filter(|(pid, parent)| mine.contains(parent) && !mine.contains(pid));
            let children: Vec<i32> = children.map(|(pid, _)| *pid).collect();
            if children.is_empty() {
                return mine;
            }
            mine.extend(children);
        }
    }

    /// Kills every process of pods and services, as the end of the machine would.
    pub(crate) fn kill_processes(&self) {
        while let left @ [_, ..] = &self.processes()[..] {
            left.iter().for_each(|pid| send(*pid, Signal::KILL));
        }
    }

    /// The folders of pods that are there, by namespace and name.
    pub(crate) fn pod_folders(&self) -> BTreeMap<String, PathBuf> {
        let folders = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
        let pods =
            folders(&self.state().join("local/pods")).flat_map(|namespace| folders(&namespace).collect::<Vec<_>>());
        let name = |path: &Path| {
            path.components()
                .rev()
                .take(2)
                .map(|part| part.as_os_str().to_string_lossy().into_owned())
                .collect::<Vec<_>>()
        };
        pods.map(|path| (name(&path).into_iter().rev().collect::<Vec<_>>().join("/"), path)).collect()
    }

    /// What a pod's shim says on the disk.
    pub(crate) fn pod(&self, pod: &str) -> Value {
        let path = self.pod_folders().get(pod).map(|folder| folder.join("status.json"));
        let text = path.and_then(|path| fs::read(path).ok()).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Waits until a pod is in a phase; gives the process of its first container.
    pub(crate) fn pod_in(&self, pod: &str, phase: &str) -> i64 {
        eventually(&format!("{pod} {phase}"), || self.pod(pod)["phase"] == phase);
        self.pod(pod)["containers"][0]["process"]["pid"].as_i64().unwrap_or_default()
    }

    /// The address of the daemon.
    pub(crate) fn address(&self) -> String {
        let output = self.output();
        let url = output.split_whitespace().find_map(|word| word.strip_prefix("http://"));
        assert!(url.is_some(), "no address in: {output}");
        url.unwrap_or_default().to_owned()
    }

    /// A metric's value.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let (_, text) = http(&self.address(), "GET", "/metrics", &[], b"");
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or_default()
    }

    /// How often the repository was synced.
    pub(crate) fn syncs(&self) -> f64 {
        self.metric("launchway_repository_syncs_total{repository=\"shop\"}")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.kill();
        self.kill_processes();
        if !std::thread::panicking() {
            let log = self.log();
            let is_lost =
                ["nobody was woken", "pods had changed without an event"].iter().any(|text| log.contains(text));
            assert!(!is_lost, "a wake-up was lost: {log}");
        }
    }
}

/// A repository's entry in a configuration: found by events alone, allowed to use the machine's programs.
pub(crate) fn repository(name: &str, url: &str, more: &[&str]) -> String {
    let mut text = format!("  - name: {name}\n    url: {url}\n    branch: main\n    allow: {{hostImage: true}}\n");
    if !more.iter().any(|line| line.starts_with("poll:")) {
        text += "    poll: 0s\n";
    }
    for line in more {
        text += &format!("    {line}\n");
    }
    text
}

/// A deployment config whose pod sleeps. `strategy` is the strategy's content, `variable` a value in its environment.
pub(crate) fn sleeper(name: &str, strategy: &str, variable: &str) -> String {
    config(
        name,
        strategy,
        &format!("{{name: main, image: host, command: [sleep, '1000'], env: [{{name: V, value: '{variable}'}}]}}"),
    )
}

/// A deployment config with one container.
pub(crate) fn config(name: &str, strategy: &str, container: &str) -> String {
    format!(
        "apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nmetadata: {{name: {name}}}\nspec:\n  replicas: 1\n  \
         selector: {{app: {name}}}\n  strategy: {{{strategy}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    \
         spec:\n      terminationGracePeriodSeconds: 5\n      containers:\n      - {container}\n"
    )
}

/// A lifecycle hook that runs a shell script.
pub(crate) fn hook(point: &str, policy: &str, script: &str) -> String {
    let script = script.replace('\'', "''");
    format!("{point}: {{failurePolicy: {policy}, execNewPod: {{containerName: main, command: [sh, -c, '{script}']}}}}")
}

/// Waits for a condition.
/// Writes a file as secrets have to be.
pub(crate) fn private(path: &Path, content: &str) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

pub(crate) fn eventually(what: &str, test: impl Fn() -> bool) {
    let since = Instant::now();
    while !test() {
        assert!(since.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Does something, and fails unless every answer was good meanwhile; `is_answered` asks once.
pub(crate) fn answering(is_answered: impl Fn() -> bool + Sync, done: impl FnOnce()) {
    let (stop, failed, served) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                let counter = if is_answered() { &served } else { &failed };
                counter.fetch_add(1, Ordering::SeqCst);
            }
        });
        // Also if what is done fails: the scope waits for the thread.
        let _stop = Stop(&stop);
        done();
    });
    assert_eq!(failed.load(Ordering::SeqCst), 0, "of {served:?}");
    assert!(served.load(Ordering::SeqCst) > 0);
}

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// One request on a connection of its own: status and body.
pub(crate) fn http(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
    try_http(address, method, path, headers, body).unwrap_or_else(|error| (0, error.to_string()))
}

fn try_http(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("content-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes())?;
    // A server that refuses early need not read what it refuses.
    drop(stream.write_all(body));
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer));
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
    Ok((status, body.to_owned()))
}

pub(crate) fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

/// Sends a signal to a process, if it is still there.
pub(crate) fn send(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        rustix::process::kill_process(pid, signal).ok();
    }
}

/// Every process that runs, with its parent; those that wait to be reaped do not.
fn all_processes() -> BTreeMap<i32, i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()));
    pids.filter_map(|pid: i32| parent(pid).map(|parent| (pid, parent))).collect()
}

fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    fields.next().filter(|_| !matches!(state, "Z" | "X"))?.parse().ok()
}

fn command(pid: i32) -> String {
    String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).into_owned()
}

/// Whether a process was started for what lies in a folder, or works in it.
fn mentions(pid: i32, folder: &Path) -> bool {
    let command = command(pid);
    // A daemon runs Git for a moment, in the repository, whenever it writes on a commit.
    let program = Path::new(command.split('\0').next().unwrap_or_default()).file_name();
    let is_gits = program.is_some_and(|program| program == "git") || command.contains("receive-pack");
    let said = command.contains(&*folder.to_string_lossy());
    !is_gits && (said || fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder)))
}
