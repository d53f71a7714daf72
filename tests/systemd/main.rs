//! The unit that is shipped, under a real systemd: installed as the documentation says, restarted, killed, upgraded, rebooted.

#![expect(clippy::unwrap_used, reason = "a failing test panics")]

mod machine;
#[path = "../support/packaged.rs"]
mod packaged;

use std::fs;
use std::path::Path;

use machine::Machine;
use packaged::{SHOP, eventually};

/// Where the source is on the machine.
const SOURCE: &str = "/src";
const PROGRAM: &str = "#!/bin/sh\nexec python3 -m http.server \"$PORT\" --bind 127.0.0.1\n";
const PUSH: &str = "
cd /root/shop && chmod +x web/bin/launch
git init --quiet --initial-branch main && git add --all
git -c user.name=A -c user.email=a@example.com commit --quiet --message 'A shop'
git init --quiet --bare --initial-branch main /srv/git/shop.git && git push --quiet /srv/git/shop.git main";

/// Tells the processes of pods; the brackets keep the shell that runs this from being one.
const PODS: &str = "pgrep --full '[h]ttp.server'";

fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    fs::create_dir_all(to.as_ref().parent().unwrap()).unwrap();
    fs::copy(from, to).unwrap();
}

fn write(path: impl AsRef<Path>, content: &str) {
    fs::create_dir_all(path.as_ref().parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Installs what was built, by the commands that the documentation gives.
fn install(machine: &Machine) {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = machine.path(SOURCE);
    for file in ["deploy/launchway.service", "deploy/launchway.yaml"] {
        copy(project.join(file), source.join(file));
    }
    copy(env!("CARGO_BIN_EXE_launchway"), source.join("target/dist/launchway"));
    copy(env!("CARGO_BIN_EXE_launchway-shim"), source.join("target/dist/launchway-shim"));
    let documentation = fs::read_to_string(project.join("docs/operating.md")).unwrap();
    let (_, chapter) = documentation.split_once("## As a service").unwrap();
    let block = chapter.split("```").nth(1).unwrap();
    let (building, commands) = block.strip_prefix("sh\n").unwrap().split_once('\n').unwrap();
    assert!(building.starts_with("cargo build --profile dist"), "{building}");
    machine.run(&format!("cd {SOURCE}; sudo() {{ \"$@\"; }}\n{commands}"));
}

fn push(machine: &Machine) {
    write(machine.path("/root/shop/web.yaml"), SHOP);
    write(machine.path("/root/shop/web/bin/launch"), PROGRAM);
    machine.run(PUSH);
}

fn launchway(command: &str) -> String {
    format!("launchway --state /var/lib/launchway {command}")
}

/// Waits until both pods serve; their processes.
fn serving(machine: &Machine) -> String {
    let answers = || {
        let services = String::from_utf8(machine.try_run(&launchway("get services"))?.stdout).ok()?;
        let fields: Vec<&str> = services.lines().find(|line| line.starts_with("web "))?.split_whitespace().collect();
        let [_, _, address, "2", "-"] = fields[..] else { return None };
        machine.try_run(&format!("curl --silent --fail http://{address}/")).filter(|output| output.status.success())
    };
    eventually("two pods answer on port 80", answers);
    let pods = machine.run(PODS);
    assert_eq!(pods.lines().count(), 2);
    pods
}

fn main_process(machine: &Machine) -> String {
    machine.run("systemctl show --property MainPID --value launchway").trim().to_owned()
}

#[test]
#[ignore = "needs root and systemd"]
fn the_unit_runs_pods_that_outlive_the_daemon_and_come_back_after_a_reboot() {
    let mut machine = Machine::new();
    machine.boot();
    push(&machine);
    install(&machine);
    let pods = serving(&machine);
    assert_eq!(machine.run(&launchway("status --wait")).matches("success").count(), 3);
    let groups = machine.run("find /sys/fs/cgroup/system.slice/launchway.service/launchway-pods -name web");
    assert_eq!(groups.lines().count(), 2, "each pod has a group: {groups}");

    machine.run("systemctl restart launchway");
    assert_eq!(serving(&machine), pods, "a restart of the daemon restarts no pod");
    let killed = main_process(&machine);
    machine.run(&format!("kill -KILL {killed}"));
    eventually("systemd starts it again", || {
        Some(main_process(&machine)).filter(|pid| ![&killed, "0"].contains(&&**pid))
    });
    assert_eq!(serving(&machine), pods, "nor does its death");
    machine.run(&format!("systemctl stop launchway && cd {SOURCE} && install target/dist/launchway /usr/local/bin"));
    assert_eq!(machine.run(PODS), pods, "nor does a stop");
    machine.run("systemctl start launchway");
    assert_eq!(serving(&machine), pods, "nor does an upgrade");

    machine.power_off();
    machine.boot();
    serving(&machine);
    let left = machine.run("cat /var/lib/launchway/local/pods/*/web-1-*/home/left");
    assert_eq!(left, "left\nleft\n", "both pods ran `preStop`, although their program takes no notice of SIGTERM");
    assert_eq!(machine.run("systemctl is-active launchway").trim(), "active");
    assert!(machine.run(&launchway("status")).contains("web version 1 serves"), "a reboot is no new version");
    machine.run(&launchway("down"));
    assert!(!machine.try_run(PODS).unwrap().status.success());
    machine.power_off();
}
