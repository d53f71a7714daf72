//! The image that is shipped, built and run by Podman as the documentation says: a push, a dead daemon, stops, an upgrade.

#![expect(clippy::unwrap_used, reason = "a failing test panics")]

#[path = "../support/packaged.rs"]
mod packaged;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use packaged::{SHOP, eventually};

const PROGRAM: &str = r#"#!/usr/bin/perl
use IO::Socket::INET;
my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $ENV{PORT}, Listen => 16) or die $!;
while (my $client = $server->accept) {
    while (<$client>) { last if /^\r?$/ }
    print $client "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nv1";
    close $client;
}
"#;
const CONFIGURATION: &str = "repositories: [{name: shop, url: /srv/git/shop.git, branch: main}]\n";
/// The user that the image has.
const USER: u32 = 999;

fn output(script: &str) -> Output {
    Command::new("bash").args(["-euc", script]).output().unwrap()
}

/// What a script prints.
fn run(script: &str) -> String {
    let output = output(script);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {:?}: {said}{complained}", output.status);
    said
}

/// The machine that the documentation has in mind: its folders are in one of the test's.
struct Machine {
    disk: tempfile::TempDir,
    running: String,
}

impl Machine {
    /// One on which the documentation was followed, with a shop to deploy.
    fn new() -> Self {
        let disk = tempfile::tempdir().unwrap();
        let project = Path::new(env!("CARGO_MANIFEST_DIR"));
        let documentation = fs::read_to_string(project.join("docs/operating.md")).unwrap();
        let (_, chapter) = documentation.split_once("## In a container").unwrap();
        let block = chapter.split("```").nth(1).unwrap().strip_prefix("sh\n").unwrap();
        let (building, running) = block.split_once('\n').unwrap();
        let machine = Self { running: machine_of(running, disk.path()), disk };
        machine.push("v1");
        machine.write("etc/launchway.yaml", CONFIGURATION);
        let programs = machine.disk.path().join("build/src/target/dist");
        fs::create_dir_all(&programs).unwrap();
        for (variable, program) in [
            ("LAUNCHWAY_PROGRAM", env!("CARGO_BIN_EXE_launchway")),
            ("LAUNCHWAY_SHIM_PROGRAM", env!("CARGO_BIN_EXE_launchway-shim")),
        ] {
            let program = std::env::var_os(variable).map_or_else(|| PathBuf::from(program), PathBuf::from);
            fs::copy(&program, programs.join(Path::new(program.file_name().unwrap()))).unwrap();
        }
        // What the first stage would build is here already.
        let context = format!("--network host --build-context build={}/build", machine.disk.path().display());
        let building = building.replace("sudo podman build", &format!("podman build {context}"));
        run(&format!("cd {}; {building}", project.display()));
        machine
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.disk.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Pushes a shop that says this.
    fn push(&self, says: &str) {
        self.write("shop/web.yaml", SHOP);
        self.write("shop/web/bin/launch", &PROGRAM.replace("v1", says));
        let disk = self.disk.path().display();
        let pushing = "cd shop; chmod 755 web/bin/launch; git init --quiet --initial-branch main; git add --all
            git -c user.name=A -c user.email=a@example.com commit --quiet --message 'The shop'
            [ -e ../git/shop.git ] || git init --quiet --bare --initial-branch main ../git/shop.git
            git push --quiet ../git/shop.git main";
        run(&format!(
            "cd {disk}; chmod 755 .; mkdir -p git; chown -R {USER}:{USER} shop git
            setpriv --reuid {USER} --regid {USER} --clear-groups env HOME={disk} bash -euc \"{pushing}\""
        ));
    }

    /// Runs it as the documentation says.
    fn start(&self) {
        run(&self.running);
    }

    /// Waits until both pods serve what was pushed last; their processes.
    fn serving(&self, says: &str) -> Vec<String> {
        let answer = || {
            let services = String::from_utf8(output(&launchway("get services")).stdout).ok()?;
            let line = services.lines().find(|line| line.starts_with("web "))?;
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [_, _, address, "2", "-"] = fields[..] else { return None };
            let (host, port) = address.split_once(':')?;
            let ask = format!("exec 3<>/dev/tcp/{host}/{port}; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3");
            let answer = Command::new("podman").args(["exec", "launchway", "bash", "-c", &ask]).output().ok()?;
            String::from_utf8_lossy(&answer.stdout).ends_with(says).then_some(())
        };
        eventually(&format!("two pods serve {says}"), answer);
        processes("/usr/bin/perl")
    }

    /// In which runs of a machine the pods that are there were started.
    fn boots(&self) -> Vec<String> {
        let read = "cat /var/lib/launchway/local/pods/*/web-*/status.json";
        let statuses = run(&format!("podman exec launchway sh -c '{read}'"));
        statuses.split("\"bootId\":\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
    }
}

/// The documentation's commands on the folders and in the network of a test, where they can be in nobody's way.
fn machine_of(commands: &str, disk: &Path) -> String {
    let disk = disk.display();
    let commands = commands.replace("--volume /etc/launchway:", &format!("--volume {disk}/etc:"));
    let commands = commands.replace("--volume /srv/git:", &format!("--volume {disk}/git:"));
    commands.replace("--network host", "--network none").replace("sudo ", "")
}

fn launchway(command: &str) -> String {
    format!("podman exec launchway launchway {command}")
}

/// The processes in the container whose command lines begin so.
fn processes(program: &str) -> Vec<String> {
    let search = format!(
        "for it in /proc/[0-9]*; do case $(tr \"\\0\" \" \" 2>/dev/null <$it/cmdline) in '{program} '*) echo ${{it#/proc/}};; esac; done"
    );
    let found = Command::new("podman").args(["exec", "launchway", "sh", "-c", &search]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().lines().map(str::to_owned).collect()
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Either fails only if it was never made.
        output("podman rm --force --time 10 launchway; podman volume rm --force launchway");
    }
}

#[test]
#[ignore = "needs root and Podman, as tests/container/base prepares it"]
fn the_image_runs_pods_that_outlive_the_daemon_and_come_back_with_the_container() {
    let machine = Machine::new();
    machine.start();
    let pods = machine.serving("v1");
    assert_eq!(run(&launchway("status --wait")).matches("success").count(), 3);
    let notes = "git -c safe.directory='*' --git-dir git/shop.git log --notes=launchway -1 main";
    let written = || run(&format!("cd {}; {notes}", machine.disk.path().display()));
    eventually("the result is on the commit", || written().contains("web version 1 serves").then_some(()));

    let daemons = processes("launchway serve");
    assert_eq!(daemons.len(), 1);
    let daemon = &daemons[0];
    run(&format!("podman exec launchway sh -c 'kill -KILL {daemon}'"));
    eventually("another daemon", || {
        Some(processes("launchway serve")).filter(|now| now.len() == 1 && now[0] != *daemon)
    });
    assert_eq!(machine.serving("v1"), pods, "the death of the daemon restarts no pod");
    machine.push("v2");
    machine.serving("v2");
    assert_eq!(run(&launchway("status --wait")).matches("success").count(), 3);

    let before = machine.boots();
    run("podman stop launchway");
    assert_eq!(run("podman inspect --format '{{.State.ExitCode}}' launchway").trim(), "0", "all has ended in time");
    run("podman start launchway");
    machine.serving("v2");
    let left = run("podman exec launchway sh -c 'cat /var/lib/launchway/local/pods/*/web-2-*/home/left'");
    assert_eq!(left, "left\nleft\n", "both pods ran `preStop`, although their program takes no notice of SIGTERM");
    assert!(machine.boots().iter().any(|boot| !before.contains(boot)), "for pods it is another machine");

    run("podman kill launchway && podman wait launchway && podman start launchway");
    machine.serving("v2");
    run("podman stop launchway && podman rm launchway");
    machine.start();
    machine.serving("v2");
    assert!(run(&launchway("status")).contains("web version 2 serves"), "nothing of this is a new version");
    run(&launchway("down"));
    assert_eq!(processes("/usr/bin/perl"), [""; 0]);
}
