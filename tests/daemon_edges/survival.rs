//! Daemons, shims, proxies and machines that die.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use launchway::clock::SystemClock;
use launchway::store::sqlite::SqliteStore;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::daemon::{World, answering, config, eventually, hook, send, sleeper};

/// What served must answer again before a safety net could be what brings it back; machines that run tests are busy.
const SECONDS: Duration = Duration::from_secs(20);
pub(super) const SERVICE: &str = "\
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
";

/// The same service under a name, and with that an address, that no other test's has: what a reboot frees, a service
/// of the same name in another test might take.
fn service_of_its_own(name: &str) -> String {
    SERVICE.replacen("name: web", &format!("name: {name}"), 1)
}

/// A service whose pod answers HTTP.
pub(super) fn server() -> String {
    let container = "{name: main, image: host, ports: [{containerPort: 8080}], command: [sh, -c, 'exec python3 -m \
                     http.server --bind 127.0.0.1 $PORT'], readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}}";
    config("web", "type: Recreate", container)
}

fn pid(value: i64) -> i32 {
    i32::try_from(value).unwrap()
}

fn shim(world: &World, pod: &str) -> i32 {
    pid(world.pod(pod)["shim"]["pid"].as_i64().unwrap())
}

#[test]
fn pods_survive_the_kill_of_the_daemons_group_and_are_adopted() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &server()), ("service.yaml", SERVICE)], "success");
    world.pod_in("shop-default/web-1-0", "ready");
    let address = service_address(&world);
    eventually("the service answers", || answers(&address));
    let mut before = world.processes();
    world.kill_group();
    assert!(answers(&address), "the service goes on without a daemon");
    world.start();
    world.tell(&["sync"]);
    let mut after = world.processes();
    before.sort_unstable();
    after.sort_unstable();
    assert_eq!(before, after, "the same processes");
    assert!(answers(&address));
}

#[test]
fn a_daemon_that_lost_its_store_stops_at_once() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    let before = world.processes();
    let _taken = take_over(&world);
    world.git.push_files(&[("web.yaml", &sleeper("web", "type: Recreate", "2"))]);
    assert_stopped(&world);
    assert_eq!(world.processes(), before, "what runs goes on");
}

#[test]
fn a_daemon_that_lost_its_store_replaces_no_pod() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    let before = Vec::from_iter(world.pod_folders().into_keys());
    let _taken = take_over(&world);
    send(shim(&world, &before[0]), Signal::KILL);
    assert_stopped(&world);
    assert_eq!(Vec::from_iter(world.pod_folders().into_keys()), before, "whoever has the store now replaces the pod");
}

fn take_over(world: &World) -> SqliteStore {
    SqliteStore::open(&world.state().join("store.db"), Arc::new(SystemClock)).unwrap()
}

fn assert_stopped(world: &World) {
    eventually("the daemon's end", || !world.daemon_lives());
    assert_eq!(world.exit_code(), Some(3));
    assert!(world.log().contains("another launchway process has taken over this state folder"), "{}", world.log());
}

#[test]
fn a_pod_whose_shim_dies_is_replaced() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))], "success");
    let process = pid(world.pod_in("shop-default/web-1-0", "ready"));
    send(shim(&world, "shop-default/web-1-0"), Signal::KILL);
    eventually("another pod", || {
        let ready = world.pod_folders().into_keys().find(|pod| world.pod(pod)["phase"] == "ready");
        ready.is_some_and(|pod| world.pod(&pod)["containers"][0]["process"]["pid"] != process)
    });
    eventually("two processes", || world.processes().len() == 2);
    assert!(!world.processes().contains(&process));
}

#[test]
fn what_a_hook_did_whose_shim_died_is_for_the_policy_to_say() {
    for (policy, runs, state) in [("Abort", 1, "failure"), ("Retry", 2, "success"), ("Ignore", 1, "success")] {
        let world = World::new(&[]);
        let (runs_file, go) = (world.git.path("runs"), world.git.path("go"));
        let script =
            format!("echo run >> {}; while [ ! -f {} ]; do sleep 0.05; done", runs_file.display(), go.display());
        let strategy = format!("type: Recreate, recreateParams: {{{}}}", hook("pre", policy, &script));
        world.start();
        let commit = world.git.push_files(&[("web.yaml", &sleeper("web", &strategy, "1"))]);
        eventually("the hook runs", || world.lines("runs").len() == 1);
        let shim = shim(&world, "shop-default/web-1-hook-pre");
        send(shim, Signal::KILL);
        if policy == "Retry" {
            eventually("the hook runs again", || world.lines("runs").len() == 2);
        }
        std::fs::write(&go, "").unwrap();
        world.status(&commit, "launchway/default", state);
        assert_eq!(world.lines("runs").len(), runs, "{policy}");
    }
}

#[test]
fn no_connection_is_refused_when_a_proxy_dies() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &server()), ("service.yaml", SERVICE)], "success");
    let address = service_address(&world);
    eventually("the service answers", || answers(&address));
    answering(
        || TcpStream::connect(&address).is_ok(),
        || {
            for _ in 0..3 {
                let proxy = proxy(&world).expect("a proxy");
                send(proxy, Signal::KILL);
                eventually("another proxy", || self::proxy(&world).is_some_and(|next| next != proxy));
                eventually("the service answers again", || answers(&address));
            }
        },
    );
}

#[test]
fn after_a_reboot_what_served_serves_again_without_network_and_hooks() {
    let world = World::new(&[]);
    let count = hook("pre", "Abort", &format!("echo pre >> {}", world.git.path("hooks").display()));
    let strategy = format!("type: Recreate, recreateParams: {{{count}}}");
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", &strategy, "1"))], "success");
    let before = world.pod_in("shop-default/web-1-0", "ready");
    reboot(&world);
    std::fs::rename(world.git.bare(), world.git.path("gone.git")).unwrap();
    world.start();
    eventually("the last complete version serves", || {
        let pods = world.json(&["get", "pods"])["items"].as_array().cloned().unwrap_or_default();
        pods.iter().any(|pod| pod["config"] == "web" && pod["status"] == "Ready" && pod["version"] == 1)
    });
    assert_eq!(world.lines("hooks"), ["pre"]);
    assert!(!world.processes().contains(&pid(before)));
    assert_eq!(world.processes().len(), 2);
}

/// A server that is ready once the file `go` is there; it serves a folder with a file that names its version.
pub(super) fn careful_server(world: &World, strategy: &str, version: &str) -> String {
    let (folder, go) = (world.git.path(version), world.git.path("go"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("version"), version).unwrap();
    let script = format!("cd {} && exec python3 -m http.server --bind 127.0.0.1 $PORT", folder.display());
    let check = match version {
        "one" => "true".to_owned(),
        _ => format!("test -f {}", go.display()),
    };
    let container = format!(
        "{{name: main, image: host, ports: [{{containerPort: 8080}}], command: [sh, -c, '{script}'], \
         readinessProbe: {{exec: {{command: [sh, -c, '{check}']}}, periodSeconds: 1}}}}"
    );
    config("web", strategy, &container)
}

fn has_process(world: &World, pod: &str) -> bool {
    world.pod(pod)["containers"][0]["process"]["pid"].is_number()
}

/// The end of the machine and its next start, without the daemon's.
fn reboot(world: &World) {
    world.kill();
    world.kill_processes();
    for folder in world.pod_folders().into_values() {
        pretend(&folder, "bootId", "an-earlier-boot");
    }
}

#[test]
fn status_says_how_many_pods_run_on_under_another_version_until_they_start_anew() {
    let world = World::new(&[]);
    world.start();
    world.deploy(&[("web.yaml", &sleeper("web", "type: Recreate", "one"))], "success");
    let says_so = || world.tell(&["status"]).contains("1 pod runs on under another version of launchway");
    assert!(!says_so());
    world.kill();
    pretend(&world.pod_folders()["shop-default/web-1-0"], "build", "another");
    world.start();
    assert!(says_so());
    world.tell(&["rollout", "latest", "dc/web"]);
    eventually("the pod has started anew", || !says_so());
}

#[test]
fn a_reboot_in_the_middle_of_a_rollout_is_no_outage() {
    let world = World::new(&[]);
    let rolling = "type: Rolling, rollingParams: {maxUnavailable: 0, maxSurge: 1}";
    world.start();
    let service = service_of_its_own("rolled");
    world.deploy(&[("web.yaml", &careful_server(&world, rolling, "one")), ("service.yaml", &service)], "success");
    let address = service_address(&world);
    eventually("version one answers", || says(&address, "one"));
    let commit = world.git.push_files(&[("web.yaml", &careful_server(&world, rolling, "two"))]);
    eventually("the second version's process", || has_process(&world, "shop-default/web-2-0"));
    assert!(says(&address, "one"));
    for _ in 0..2 {
        reboot(&world);
        assert!(!says(&address, "one"));
        let since = Instant::now();
        world.start();
        eventually("what served answers again", || says(&address, "one"));
        assert!(since.elapsed() < SECONDS, "{:?}", since.elapsed());
    }
    std::fs::write(world.git.path("go"), "").unwrap();
    world.status(&commit, "launchway/default", "success");
    eventually("version two answers", || says(&address, "two"));
    eventually("one pod, with its service", || world.processes().len() == 4);
}

#[test]
fn a_rollout_that_got_ready_while_no_daemon_ran_has_made_progress() {
    let timeout = Duration::from_secs(4);
    let strategy = format!("type: Recreate, recreateParams: {{timeoutSeconds: {}}}", timeout.as_secs());
    let world = World::new(&[]);
    world.start();
    let begun = Instant::now();
    let commit = world.git.push_files(&[("web.yaml", &careful_server(&world, &strategy, "two"))]);
    eventually("its process", || has_process(&world, "shop-default/web-1-0"));
    world.kill();
    std::fs::write(world.git.path("go"), "").unwrap();
    world.pod_in("shop-default/web-1-0", "ready");
    eventually("the end of the time that it had", || begun.elapsed() > 2 * timeout);
    world.start();
    world.status(&commit, "launchway/default", "success");
    assert_eq!(world.pod_folders().len(), 1, "the same pod");
}

#[test]
fn after_a_reboot_a_recreated_service_goes_on_to_the_version_that_took_its_place() {
    let world = World::new(&[]);
    world.start();
    let service = service_of_its_own("recreated");
    world.deploy(
        &[("web.yaml", &careful_server(&world, "type: Recreate", "one")), ("service.yaml", &service)],
        "success",
    );
    let address = service_address(&world);
    eventually("version one answers", || says(&address, "one"));
    let commit = world.git.push_files(&[("web.yaml", &careful_server(&world, "type: Recreate", "two"))]);
    eventually("the second version's process", || has_process(&world, "shop-default/web-2-0"));
    reboot(&world);
    std::fs::write(world.git.path("go"), "").unwrap();
    let since = Instant::now();
    world.start();
    eventually("the new version answers", || says(&address, "two"));
    assert!(since.elapsed() < SECONDS, "{:?}", since.elapsed());
    world.status(&commit, "launchway/default", "success");
}

/// Changes what a pod's shim has said.
fn pretend(folder: &Path, field: &str, said: &str) {
    let status = folder.join("status.json");
    let mut value: Value = serde_json::from_slice(&std::fs::read(&status).unwrap()).unwrap();
    value[field] = json!(said);
    std::fs::write(status, value.to_string()).unwrap();
}

/// Where the service `web` listens.
pub(super) fn service_address(world: &World) -> String {
    let mut found = None;
    let known = std::cell::RefCell::new(&mut found);
    eventually("a service", || {
        let services = world.json(&["get", "services"]);
        let address = services["items"][0]["address"].as_str().map(|host| format!("{host}:80"));
        **known.borrow_mut() = address;
        known.borrow().is_some()
    });
    found.unwrap()
}

/// Whether HTTP is answered with success.
pub(super) fn answers(address: &str) -> bool {
    asked(address, "/").is_some()
}

/// Whether a careful server of this version answers.
pub(super) fn says(address: &str, version: &str) -> bool {
    asked(address, "/version").is_some_and(|answer| answer.ends_with(version))
}

fn asked(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let mut answer = String::new();
    stream.write_all(format!("GET {path} HTTP/1.0\r\nhost: web\r\n\r\n").as_bytes()).ok()?;
    stream.read_to_string(&mut answer).ok()?;
    (answer.split(' ').nth(1) == Some("200")).then_some(answer)
}

/// The proxy's process: the child of the shim that holds the service's socket.
fn proxy(world: &World) -> Option<i32> {
    world.processes().into_iter().find(|pid| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).split('\0').any(|word| word == "proxy")
    })
}
