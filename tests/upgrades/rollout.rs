//! A rollout in its middle: two pods of `web` serve, a third of the next version is not ready yet, and the hook of
//! `worker` runs. No file of the repository depends on where the test runs, so that its commits are always the same.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::daemon::{World, complaint, config, eventually, hook, http, sleeper};

/// What serves before, and what is rolled out.
pub(super) const PODS: [&str; 4] = ["web-1-0", "web-1-1", "web-2-0", "worker-2-hook-pre"];

const SERVICE: &str = "\
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 8088, targetPort: 8080}]}
";
/// A file beside the state folder, of which pods see nothing, lets the rollout go on; commands start in the home folder of their
/// pod.
const GO: &str = "../../../../../../go";

/// Commits both versions; gives their commits.
pub(super) fn commit(world: &World) -> [String; 2] {
    let first = world.git.commit_files(&[
        ("service.yaml", SERVICE),
        ("web.yaml", &web("one", "true")),
        ("worker.yaml", &sleeper("worker", "type: Recreate", "one")),
    ]);
    let waits = hook("pre", "Abort", &format!("while [ ! -f {GO} ]; do sleep 0.05; done"));
    let second = world.git.commit_files(&[
        ("web.yaml", &web("two", &format!("test -f {GO}"))),
        ("worker.yaml", &sleeper("worker", &format!("type: Recreate, recreateParams: {{{waits}}}"), "two")),
    ]);
    [first, second]
}

/// Two pods that say their version once `check` succeeds.
fn web(version: &str, check: &str) -> String {
    let script = format!("printf {version} > version; exec python3 -m http.server --bind 127.0.0.1 $PORT");
    let container = format!(
        "{{name: main, image: host, ports: [{{containerPort: 8080}}], command: [sh, -c, '{script}'], \
         readinessProbe: {{exec: {{command: [sh, -c, '{check}']}}, periodSeconds: 1}}}}"
    );
    let text = config("web", "type: Rolling, rollingParams: {maxUnavailable: 0, maxSurge: 1}", &container);
    text.replace("replicas: 1", "replicas: 2")
}

/// Lets the rollout go on.
pub(super) fn let_go(world: &World) {
    fs::write(world.state().with_file_name("go"), "").unwrap();
}

/// Has the program in a folder begin the rollout, and kills it in the middle; gives the commits.
pub(super) fn begin_with(world: &World, programs: &Path) -> [String; 2] {
    let [first, second] = commit(world);
    start_of(world, programs);
    world.git.git(&["push", "--quiet", "origin", &format!("{first}:refs/heads/main")]);
    world.status(&first, "launchway/default", "success");
    world.git.push();
    until_the_middle(world);
    world.kill();
    [first, second]
}

/// The program of a folder.
pub(super) fn of(world: &World, programs: &Path) -> Command {
    command(world, programs.join("launchway"))
}

/// Another program in the surroundings of the world's own.
pub(super) fn command(world: &World, program: impl AsRef<OsStr>) -> Command {
    let today = world.launchway();
    let mut command = Command::new(program);
    let environment = today.get_envs().filter_map(|(name, value)| Some((name, value?)));
    command.env_clear().envs(environment).current_dir(world.git.root()).stdin(Stdio::null());
    command
}

/// Starts the daemon of the program in a folder.
pub(super) fn start_of(world: &World, programs: &Path) {
    world.spawn(of(world, programs).arg("serve").arg("--config").arg(world.config()));
    eventually("a daemon of the program before", || {
        assert!(world.daemon_lives(), "it ended: {}", world.log());
        world.output().contains("serving http")
    });
}

/// Waits until the rollout cannot go on by itself.
pub(super) fn until_the_middle(world: &World) {
    for pod in ["web-1-0", "web-1-1"] {
        world.pod_in(&format!("shop-default/{pod}"), "ready");
    }
    for pod in ["web-2-0", "worker-2-hook-pre"] {
        eventually(pod, || process(&world.pod(&format!("shop-default/{pod}"))).is_some());
    }
    eventually("a service", || answers(world));
}

fn process(status: &Value) -> Option<i64> {
    status["containers"][0]["process"]["pid"].as_i64()
}

/// The processes of the rollout: of each pod its shim and its command.
pub(super) fn processes(world: &World) -> Vec<Option<i64>> {
    let of_pods = PODS.map(|pod| world.pod(&format!("shop-default/{pod}")));
    of_pods.iter().flat_map(|status| [status["shim"]["pid"].as_i64(), process(status)]).collect()
}

/// The process of the services' shim.
pub(super) fn services_shim(world: &World) -> Option<i64> {
    fs::read_to_string(services_folder(world).join("shim.pid")).ok()?.parse().ok()
}

pub(super) fn services_folder(world: &World) -> PathBuf {
    world.state().join("local/services")
}

pub(super) fn service_folder(world: &World) -> PathBuf {
    services_folder(world).join("shop-default/web")
}

pub(super) fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap_or_default()).unwrap_or_default()
}

/// Whether the service answers, with either version.
pub(super) fn answers(world: &World) -> bool {
    says(world).is_some_and(|version| ["one", "two"].contains(&version.as_str()))
}

/// The same at once or after the gap in which the shims end that the program before had for each service.
pub(super) fn answers_in_the_end(world: &World) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !answers(world) {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Which version answers.
pub(super) fn says(world: &World) -> Option<String> {
    let record = read(&service_folder(world).join("service.json"));
    let address = format!("{}:8088", record["address"].as_str()?);
    let (status, body) = http(&address, "GET", "/version", &[], b"");
    (status == 200).then_some(body)
}

/// Waits until the second version of a deployment config has this status.
pub(super) fn ended(world: &World, name: &str, status: &str) {
    ended_as_told(|| world.launchway(), name, status);
}

/// The same as a program tells it: each reaches the daemon of its own kind.
pub(super) fn ended_as_told(program: impl Fn() -> Command, name: &str, status: &str) {
    eventually(&format!("{name} {status}"), || {
        let told = program().args(["get", "deployments", "--output", "json"]).output().unwrap();
        let told: Value = serde_json::from_slice(&told.stdout).unwrap_or_default();
        let items = told["items"].as_array().cloned().unwrap_or_default();
        items.iter().any(|it| it["name"] == name && it["latestVersion"] == 2 && it["status"] == status)
    });
}

/// Expects that nothing is left to do.
pub(super) fn nothing_to_do(world: &World) {
    let plan = world.run(&["plan", "work", "--from", "applied", "--exit-code"]);
    assert_eq!(plan.status.code(), Some(0), "the plan is not empty: {}", complaint(&plan));
}

/// The end of the machine and its next start, without the daemon's.
pub(super) fn reboot(world: &World) {
    world.stop_with(Signal::KILL);
    world.kill_processes();
    for folder in world.pod_folders().into_values() {
        let path = folder.join("status.json");
        let mut status = read(&path);
        status["bootId"] = "an-earlier-boot".into();
        fs::write(path, status.to_string()).unwrap();
    }
}
